/* actor_lease.c - the verbs about what is known of a lease, and what keeps it alive.
 *
 * Nothing here goes to the server; renewal does that from a thread of the client's.
 */
#include "verbs.h"

#include "outcome.h"

#include <string.h>

const char *verb_lease(struct actor *actor, const struct act *act)
{
    static const char *const texts[] = {
        [SNECK_LEASE_NONE] = "none",
        [SNECK_LEASE_HELD] = "held",
        [SNECK_LEASE_UNCERTAIN] = "uncertain",
        [SNECK_LEASE_LOST] = "lost",
    };
    const char *text = texts[sneck_lock_lease(act->lock)];
    (void)actor;
    outcome_ok_bytes(act->outcome, text, strlen(text));
    return NULL;
}

const char *verb_lost(struct actor *actor, const struct act *act)
{
    (void)actor;
    outcome_ok_yes(act->outcome, sneck_lock_lease(act->lock) == SNECK_LEASE_LOST);
    return NULL;
}

const char *verb_fence(struct actor *actor, const struct act *act)
{
    int64_t fence = sneck_lock_fence(act->lock);
    (void)actor;
    if (fence)
        outcome_ok_number(act->outcome, fence);
    else
        outcome_nil(act->outcome);
    return NULL;
}

static void put_status(int status, struct words *outcome)
{
    if (status == SNECK_OK)
        outcome_ok(outcome);
    else
        outcome_fail(outcome, status, "");
}

const char *verb_keep_alive(struct actor *actor, const struct act *act)
{
    const struct word *switched = act->arguments.places[1];
    bool on = word_is(switched, "on");
    (void)actor;
    if (!on && !word_is(switched, "off"))
        return "keep_alive is on, or off";
    put_status(sneck_lock_renew(act->lock, on), act->outcome);
    return NULL;
}

const char *verb_clone(struct actor *actor, const struct act *act)
{
    struct named *named = actor_named(actor, act->arguments.places[1]);
    if (named->lock)
        return "the name of the clone is taken";
    put_status(sneck_lock_clone(&named->lock, act->lock), act->outcome);
    return NULL;
}
