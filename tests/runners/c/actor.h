#ifndef RUNNER_ACTOR_H
#define RUNNER_ACTOR_H

#include "arguments.h"
#include "call.h"

#define LOCKS_MAX 8

/* What an actor has by one name; NULL: not made yet. */
struct named {
    struct bytes name;
    sneck_lock *lock;
    sneck_rlock *rlock;
};

/* A client of its own, with one lock object per name. */
struct actor {
    char name[32];
    const struct driver *driver;
    const char *servers;         /* the directory of a quorum's sockets, borrowed; or NULL */
    size_t server_count;         /* how many its client has; 0: the one server */
    size_t alone;                /* its client is of that one alone, from 1, past the proxy */
    sneck_client *client;        /* NULL until the first use */
    sneck_link *link;
    struct named named[LOCKS_MAX];
    size_t named_count;
    struct call *waiting;        /* the call that a step left pending, or NULL */
    struct session *session;     /* the transaction that is open, or NULL */
    struct words keys;           /* of the last transaction or update */
    struct call *failure;        /* how that failed; NULL: it did not */
};

/* What a step that is a call gets to end. */
#define CALL_LIMIT_MS 30000

/* Makes the client, without options when there are none. NULL, or a status that
 * is put into `outcome`. */
bool actor_connect(struct actor *actor, const char *url, const sneck_client_options *options,
                   struct words *outcome);

/* The same without options, of the case's server or the one that the actor is for. */
bool actor_connect_plainly(struct actor *actor, const struct variables *v,
                           struct words *outcome);

/* The verb that makes the client with options. Returns what is wrong with the step, or NULL. */
const char *actor_verb_connect(struct actor *actor, const struct arguments *a,
                               const struct variables *v, struct words *outcome);

/* Runs the verb and its arguments. `leave`: the call is expected to wait, so give
 * it a moment only. Returns NULL, or what is wrong with the step. */
const char *actor_run(struct actor *actor, const struct words *step, size_t count,
                      const struct variables *v, bool leave, struct words *outcome);

/* Gives the call left waiting its time to end. */
const char *actor_resume(struct actor *actor, bool leave, struct words *outcome);

/* The verbs of compare-and-set and transactions; `*known`: whether it is one. */
const char *actor_run_tx(struct actor *actor, const struct words *step, size_t count,
                         const struct arguments *a, bool *known, struct words *outcome);

bool actor_is_tx_verb(const struct word *verb);

/* Gives up the transaction that is open. False: it does not end. */
bool actor_close_tx(struct actor *actor);

/* The verbs about what is known of a lease, and what keeps it. */
const char *actor_run_lease(struct actor *actor, const struct arguments *a, bool *known,
                            struct words *outcome);

/* The verbs that have an `owner`, where they have one. */
const char *actor_run_rlock(struct actor *actor, const struct arguments *a, bool *known,
                            struct words *outcome);

/* The verbs of locks that are a key and a value. */
const char *actor_run_try_lock(struct actor *actor, const struct arguments *a, bool leave,
                               bool *known, struct words *outcome);

/* For these verbs. The actor's object for the name; NULL, with an outcome, when it
 * cannot be made. */
sneck_lock *actor_lock(struct actor *actor, const struct word *name, struct words *outcome);
struct named *actor_named(struct actor *actor, const struct word *name);
struct call *actor_new_call(const struct actor *actor, enum call_kind kind);
void actor_free_call(struct call *call);

/* The options that make a new lock object, and whether there is one; `*wrong` when one is
 * not understood. */
#define LOCK_OPTIONS "ttl label fair poll renew fence max_hold"
bool actor_lock_options(const struct arguments *a, sneck_lock_options *out, const char **wrong);

/* The wait of an acquire. */
int64_t actor_wait_ms(const struct arguments *a);

/* Runs a call, and puts down what came of it; one that is left waiting is the actor's. */
void actor_do_call(struct actor *actor, struct call *call, bool leave, struct words *outcome);

/* Runs a call to its end; NULL, or that it did not end. */
const char *actor_finish(struct actor *actor, struct call *call);
void actor_put_outcome(const struct call *call, struct words *outcome);

/* Closes all. False: a call is still under way and does not end. */
bool actor_close(struct actor *actor);

#endif
