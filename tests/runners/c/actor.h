#ifndef RUNNER_ACTOR_H
#define RUNNER_ACTOR_H

#include "arguments.h"
#include "call.h"

#define LOCKS_MAX 8

/* A client of its own, with one lock object per name. */
struct actor {
    char name[32];
    const struct driver *driver;
    sneck_client *client;        /* NULL until the first use */
    sneck_link *link;
    struct {
        struct bytes name;
        sneck_lock *lock;
    } locks[LOCKS_MAX];
    size_t lock_count;
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

/* Runs the verb and its arguments. `leave`: the call is expected to wait, so give
 * it a moment only. Returns NULL, or what is wrong with the step. */
const char *actor_run(struct actor *actor, const struct words *step, size_t count,
                      const struct variables *v, bool leave, struct words *outcome);

/* Gives the call left waiting its time to end. */
const char *actor_resume(struct actor *actor, bool leave, struct words *outcome);

/* The verbs of compare-and-set and transactions; `*known`: whether it is one. */
const char *actor_run_tx(struct actor *actor, const struct words *step, size_t count,
                         const struct arguments *a, bool *known, struct words *outcome);

/* Gives up the transaction that is open. False: it does not end. */
bool actor_close_tx(struct actor *actor);

/* For these verbs. The actor's object for the name; NULL, with an outcome, when it
 * cannot be made. */
sneck_lock *actor_lock(struct actor *actor, const struct word *name, struct words *outcome);
struct call *actor_new_call(const struct actor *actor, enum call_kind kind);
void actor_free_call(struct call *call);

/* Runs a call to its end; NULL, or that it did not end. */
const char *actor_finish(struct actor *actor, struct call *call);
void actor_put_outcome(const struct call *call, struct words *outcome);

/* Closes all. False: a call is still under way and does not end. */
bool actor_close(struct actor *actor);

#endif
