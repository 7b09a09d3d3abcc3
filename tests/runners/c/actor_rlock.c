/* actor_rlock.c - acquire, release and owned, where they are one owner's of a re-entrant lock.
 *
 * Invariant: an actor has one re-entrant lock for a name, which all owners share.
 */
#include "actor.h"

#include "outcome.h"

/* Makes it by the step's options where these ask for a new one, or there is none. NULL, with
 * an outcome: that is refused. */
static sneck_rlock *use_rlock(struct actor *actor, const struct arguments *a, bool fresh,
                              const sneck_lock_options *options, struct words *outcome)
{
    struct named *named = actor_named(actor, a->places[0]);
    const struct bytes *name = &named->name;
    sneck_rlock *rlock;
    if (named->rlock && !fresh)
        return named->rlock;
    int status = sneck_rlock_new(&rlock, actor->client, name->at, name->len, options, NULL);
    if (status != SNECK_OK) {
        outcome_fail(outcome, status, "");
        return NULL;
    }
    sneck_rlock_free(named->rlock);
    named->rlock = rlock;
    return rlock;
}

static void put_owned(sneck_rlock *rlock, uint64_t owner, struct words *outcome)
{
    sneck_lock *lock = sneck_rlock_lock(rlock, owner);
    outcome_ok_yes(outcome, lock && sneck_lock_remaining_ms(lock) > 0);
}

const char *actor_run_rlock(struct actor *actor, const struct arguments *a, bool *known,
                            struct words *outcome)
{
    bool acquire = word_is(a->verb, "acquire"), owned = word_is(a->verb, "owned");
    const char *text = arguments_text(a, "owner"), *wrong;
    sneck_lock_options options;
    int64_t owner;
    *known = text && (acquire || owned || word_is(a->verb, "release"));
    if (!*known)
        return NULL;
    const char *refused = arguments_check(a, 1, acquire ? LOCK_OPTIONS " wait owner" : "owner");
    bool fresh = actor_lock_options(a, &options, &wrong);
    if (refused || wrong)
        return refused ? refused : wrong;
    if (!read_number(text, &owner) || owner < 0)
        return "an owner is a number";
    sneck_rlock *rlock = use_rlock(actor, a, fresh, &options, outcome);
    if (!rlock)
        return NULL;
    if (owned) {
        put_owned(rlock, (uint64_t)owner, outcome);
        return NULL;
    }
    struct call *call = actor_new_call(actor, acquire ? CALL_ACQUIRE : CALL_RELEASE);
    call->rlock = rlock;
    call->owner = (uint64_t)owner;
    call->ms = actor_wait_ms(a);
    actor_do_call(actor, call, false, outcome);
    return NULL;
}
