#ifndef RUNNER_VERBS_H
#define RUNNER_VERBS_H

#include "actor.h"
#include "arguments.h"

/* What an actor is to do: a verb, and what the case gives it. */
struct act {
    const struct verb *verb;
    struct arguments arguments;
    const struct variables *variables;
    bool leave;                  /* it is expected to wait, so it gets a moment only */
    sneck_lock *lock;            /* of a verb ABOUT_A_LOCK */
    struct words *outcome;
};

/* Puts down what came of it. Returns NULL, or what is wrong with the step. */
typedef const char *verb_function(struct actor *actor, const struct act *act);

enum verb_trait {
    OF_AN_OWNER = 1,             /* for steps with the option `owner` only */
    ABOUT_A_LOCK = 2,            /* gets the actor's lock object of the name in its first place */
    WORDS_ONLY = 4,              /* has no options: every word behind it is an argument */
    MAY_WAIT = 8,                /* may be left waiting */
    MAKES_CLIENT = 16,           /* stands before there is a client */
};

struct verb {
    const char *name;
    unsigned traits;
    enum call_kind kind;
    size_t fewest, most;         /* arguments by position */
    const char *options;         /* their keys, blank between */
    verb_function *run;
};

/* The row of what the step begins with, its actor first; NULL: an unknown verb. */
const struct verb *verb_find(const struct words *step, size_t count);

/* actor_connect.c */
verb_function verb_connect;

/* actor_lock.c */
verb_function verb_acquire, verb_release, verb_adopt, verb_remaining, verb_owned, verb_token,
    verb_holder, verb_locked, verb_waiters, verb_force_release, verb_stats, verb_execute;

/* actor_lease.c */
verb_function verb_lease, verb_lost, verb_fence, verb_keep_alive, verb_clone;

/* actor_rlock.c */
verb_function verb_owner_call, verb_owner_owned;

/* actor_try_lock.c */
verb_function verb_try_lock;

/* actor_tx.c */
verb_function verb_update, verb_compare, verb_failure, verb_begin, verb_in_tx, verb_abort;

/* For these verbs. The actor's lock object for the name, made where there is none; NULL, with
 * an outcome, when it cannot be made. */
sneck_lock *actor_lock(struct actor *actor, const struct word *name, struct words *outcome);

/* The options that make a new lock object, and whether there is one; `*wrong` when one is
 * not understood. */
#define LOCK_OPTIONS "ttl label fair poll renew fence max_hold"
bool read_lock_options(const struct arguments *a, sneck_lock_options *out, const char **wrong);

/* The option `wait`, which may be `forever`. */
int64_t read_wait_ms(const struct arguments *a, int64_t fallback);

/* A call of the kind that the verb is, without its lock. */
struct call *call_for(const struct actor *actor, const struct act *act);

/* Runs a call, and puts down what came of it; one that is left waiting is the actor's. */
void actor_do_call(struct actor *actor, struct call *call, const struct act *act);

/* Runs a call to its end; NULL, or that it did not end. */
const char *actor_finish(struct actor *actor, struct call *call);
void actor_put_outcome(const struct call *call, struct words *outcome);

#endif
