/* actor_lease.c - the verbs about what is known of a lease, and what keeps it alive.
 *
 * Nothing here goes to the server; renewal does that from a thread of the client's.
 */
#include "actor.h"

#include "outcome.h"

#include <string.h>

static void put_lease(sneck_lease lease, struct words *outcome)
{
    static const char *const texts[] = {
        [SNECK_LEASE_NONE] = "none",
        [SNECK_LEASE_HELD] = "held",
        [SNECK_LEASE_UNCERTAIN] = "uncertain",
        [SNECK_LEASE_LOST] = "lost",
    };
    outcome_ok_bytes(outcome, texts[lease], strlen(texts[lease]));
}

static void put_fence(int64_t fence, struct words *outcome)
{
    if (fence)
        outcome_ok_number(outcome, fence);
    else
        outcome_nil(outcome);
}

static const char *verb_known(struct actor *actor, const struct arguments *a,
                              struct words *outcome)
{
    const char *wrong = arguments_check(a, 1, "");
    sneck_lock *lock = wrong ? NULL : actor_lock(actor, a->places[0], outcome);
    if (!lock)
        return wrong;
    if (word_is(a->verb, "lease"))
        put_lease(sneck_lock_lease(lock), outcome);
    else if (word_is(a->verb, "lost"))
        outcome_ok_yes(outcome, sneck_lock_lease(lock) == SNECK_LEASE_LOST);
    else
        put_fence(sneck_lock_fence(lock), outcome);
    return NULL;
}

static const char *verb_keep_alive(struct actor *actor, const struct arguments *a,
                                   struct words *outcome)
{
    const char *wrong = arguments_check(a, 2, "");
    if (wrong)
        return wrong;
    bool on = word_is(a->places[1], "on");
    if (!on && !word_is(a->places[1], "off"))
        return "keep_alive is on, or off";
    sneck_lock *lock = actor_lock(actor, a->places[0], outcome);
    int status = lock ? sneck_lock_renew(lock, on) : SNECK_OK;
    if (status != SNECK_OK)
        outcome_fail(outcome, status, "");
    else if (lock)
        outcome_ok(outcome);
    return NULL;
}

static const char *verb_clone(struct actor *actor, const struct arguments *a,
                              struct words *outcome)
{
    const char *wrong = arguments_check(a, 2, "");
    sneck_lock *lock = wrong ? NULL : actor_lock(actor, a->places[0], outcome);
    if (!lock)
        return wrong;
    struct named *named = actor_named(actor, a->places[1]);
    if (named->lock)
        return "the name of the clone is taken";
    int status = sneck_lock_clone(&named->lock, lock);
    if (status != SNECK_OK)
        outcome_fail(outcome, status, "");
    else
        outcome_ok(outcome);
    return NULL;
}

const char *actor_run_lease(struct actor *actor, const struct arguments *a, bool *known,
                            struct words *outcome)
{
    *known = true;
    if (word_is(a->verb, "lease") || word_is(a->verb, "lost") || word_is(a->verb, "fence"))
        return verb_known(actor, a, outcome);
    if (word_is(a->verb, "keep_alive"))
        return verb_keep_alive(actor, a, outcome);
    if (word_is(a->verb, "clone"))
        return verb_clone(actor, a, outcome);
    *known = false;
    return NULL;
}
