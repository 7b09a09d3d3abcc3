/* actor.c - does the verbs of a case with a client of the actor's own.
 *
 * Invariant: an actor has at most one call under way, and touches no lock object
 * of it before it has ended.
 */
#include "verbs.h"

#include "outcome.h"

#include <stdlib.h>
#include <string.h>

#define LEAVE_MS 80       /* how long a call that should wait is watched */

struct named *actor_named(struct actor *actor, const struct word *name)
{
    size_t i = 0;
    while (i < actor->named_count &&
           (actor->named[i].name.len != name->bytes.len ||
            memcmp(actor->named[i].name.at, name->bytes.at, name->bytes.len) != 0))
        i++;
    if (i == LOCKS_MAX)
        abort();
    if (i == actor->named_count) {
        bytes_add(&actor->named[i].name, name->bytes.at, name->bytes.len);
        actor->named_count++;
    }
    return &actor->named[i];
}

/* --------------------------------------------------------------------- calls */

struct call *call_for(const struct actor *actor, const struct act *act)
{
    struct call *call = calloc(1, sizeof *call);
    if (!call)
        abort();
    call->kind = act->verb->kind;
    call->client = actor->client;
    call->link = actor->link;
    return call;
}

void actor_put_outcome(const struct call *call, struct words *outcome)
{
    if (call->again) {
        words_add_keyword(outcome, "again");
    } else if (call->status != SNECK_OK) {
        outcome_fail(outcome, call->status, call->server_code);
    } else if (call->kind == CALL_ACQUIRE) {
        outcome_token(outcome, call->rlock ? sneck_rlock_lock(call->rlock, call->owner)
                                           : call->lock);
    } else if (call->kind == CALL_FORCE_RELEASE) {
        outcome_ok_yes(outcome, call->was_held);
    } else if (call->reply.count > 0) {
        words_append(outcome, &call->reply);
    } else {
        outcome_ok(outcome);
    }
}

/* Runs a call to its end, or for a moment; then it is the actor's waiting one. */
static bool run_call(struct actor *actor, struct call *call, bool leave)
{
    actor->driver->start(call);
    if (actor->driver->wait(call, leave ? LEAVE_MS : CALL_LIMIT_MS))
        return true;
    actor->waiting = call;
    return false;
}

void actor_do_call(struct actor *actor, struct call *call, const struct act *act)
{
    if (run_call(actor, call, act->leave)) {
        actor_put_outcome(call, act->outcome);
        call_free(call);
    } else {
        words_add_keyword(act->outcome, "...");
    }
}

const char *actor_finish(struct actor *actor, struct call *call)
{
    return run_call(actor, call, false) ? NULL : "the call did not end";
}

/* -------------------------------------------------------------------- public */

/* NULL, or why the actor does not do it now. */
static const char *refuse(const struct actor *actor, const struct act *act)
{
    if (actor->waiting)
        return "the actor is still waiting";
    if (act->leave && !(act->verb->traits & MAY_WAIT))
        return "only an acquire without an owner or a try may be left waiting";
    if (act->verb->kind > CALL_BEGIN && !actor->session)
        return "the actor is in no transaction";
    return NULL;
}

const char *actor_run(struct actor *actor, const struct words *step, size_t count,
                      const struct variables *v, bool leave, struct words *outcome)
{
    const struct verb *verb = verb_find(step, count);
    struct act act = {.verb = verb, .variables = v, .leave = leave, .outcome = outcome};
    struct arguments *a = &act.arguments;
    if (!verb)
        return "unknown verb";
    const char *wrong = arguments_read(a, step, count, !(verb->traits & WORDS_ONLY));
    if (!wrong)
        wrong = arguments_check(a, verb->fewest, verb->most, verb->options);
    if (!wrong)
        wrong = refuse(actor, &act);
    if (wrong)
        return wrong;
    if (!actor->client && !(verb->traits & MAKES_CLIENT) &&
        !actor_connect_plainly(actor, v, outcome))
        return NULL;
    if (verb->traits & ABOUT_A_LOCK && !(act.lock = actor_lock(actor, a->places[0], outcome)))
        return NULL;
    return verb->run(actor, &act);
}

const char *actor_resume(struct actor *actor, bool leave, struct words *outcome)
{
    struct call *call = actor->waiting;
    if (!call)
        return "the actor has no call that waits";
    if (!actor->driver->wait(call, leave ? LEAVE_MS : CALL_LIMIT_MS)) {
        words_add_keyword(outcome, "...");
        return NULL;
    }
    actor->waiting = NULL;
    actor_put_outcome(call, outcome);
    call_free(call);
    return NULL;
}

bool actor_close(struct actor *actor)
{
    if (actor->waiting) {
        if (!actor->driver->wait(actor->waiting, CALL_LIMIT_MS))
            return false;
        call_free(actor->waiting);
    }
    if (!actor_close_tx(actor))
        return false;
    for (size_t i = 0; i < actor->named_count; i++) {
        sneck_lock_free(actor->named[i].lock);
        sneck_rlock_free(actor->named[i].rlock);
        free(actor->named[i].name.at);
    }
    if (actor->client)
        actor->driver->close(actor->link);
    sneck_client_free(actor->client);
    *actor = (struct actor){0};
    return true;
}
