/* actor_rlock.c - acquire, release and owned, where they are one owner's of a re-entrant lock.
 *
 * Invariant: an actor has one re-entrant lock for a name, which all owners share.
 */
#include "verbs.h"

#include "outcome.h"

/* Makes it by the step's options where these ask for a new one, or there is none. NULL, with
 * an outcome: that is refused. */
static sneck_rlock *use_rlock(struct actor *actor, const struct act *act, bool fresh,
                              const sneck_lock_options *options)
{
    struct named *named = actor_named(actor, act->arguments.places[0]);
    const struct bytes *name = &named->name;
    sneck_rlock *rlock;
    if (named->rlock && !fresh)
        return named->rlock;
    int status = sneck_rlock_new(&rlock, actor->client, name->at, name->len, options, NULL);
    if (status != SNECK_OK) {
        outcome_fail(act->outcome, status, "");
        return NULL;
    }
    sneck_rlock_free(named->rlock);
    named->rlock = rlock;
    return rlock;
}

/* The lock and the number of the owner. NULL, with an outcome or with `*wrong`: there is none. */
static sneck_rlock *rlock_of(struct actor *actor, const struct act *act, uint64_t *owner,
                             const char **wrong)
{
    sneck_lock_options options;
    int64_t number;
    bool fresh = read_lock_options(&act->arguments, &options, wrong);
    if (!read_number(arguments_text(&act->arguments, "owner"), &number) || number < 0)
        *wrong = "an owner is a number";
    if (*wrong)
        return NULL;
    *owner = (uint64_t)number;
    return use_rlock(actor, act, fresh, &options);
}

const char *verb_owner_call(struct actor *actor, const struct act *act)
{
    const char *wrong;
    uint64_t owner;
    sneck_rlock *rlock = rlock_of(actor, act, &owner, &wrong);
    if (!rlock)
        return wrong;
    struct call *call = call_for(actor, act);
    call->rlock = rlock;
    call->owner = owner;
    call->ms = read_wait_ms(&act->arguments, 0);
    actor_do_call(actor, call, act);
    return NULL;
}

const char *verb_owner_owned(struct actor *actor, const struct act *act)
{
    const char *wrong;
    uint64_t owner;
    sneck_rlock *rlock = rlock_of(actor, act, &owner, &wrong);
    if (!rlock)
        return wrong;
    sneck_lock *lock = sneck_rlock_lock(rlock, owner);
    outcome_ok_yes(act->outcome, lock && sneck_lock_remaining_ms(lock) > 0);
    return NULL;
}
