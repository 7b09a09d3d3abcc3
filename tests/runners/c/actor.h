#ifndef RUNNER_ACTOR_H
#define RUNNER_ACTOR_H

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

/* Runs the verb and its arguments. `leave`: the call is expected to wait, so give
 * it a moment only. Returns NULL, or what is wrong with the step. */
const char *actor_run(struct actor *actor, const struct words *step, size_t count,
                      const struct variables *v, bool leave, struct words *outcome);

/* Whether it is one of an open transaction, or begins one. */
bool verb_is_of_tx(const struct word *word);

/* Gives the call left waiting its time to end. */
const char *actor_resume(struct actor *actor, bool leave, struct words *outcome);

/* Gives up the transaction that is open. False: it does not end. */
bool actor_close_tx(struct actor *actor);

/* What it has by the name; without objects when that is new. */
struct named *actor_named(struct actor *actor, const struct word *name);

/* Closes all. False: a call is still under way and does not end. */
bool actor_close(struct actor *actor);

#endif
