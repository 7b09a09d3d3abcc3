/* actor_tx.c - the verbs of compare-and-set and of transactions.
 *
 * Invariant: the actor's session is there exactly as long as its transaction is open.
 */
#include "verbs.h"

#include "outcome.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- failures */

/* C's callers know the keys of a conflict. */
static void note_keys(struct actor *actor, const struct word *const *keys, size_t count)
{
    words_clear(&actor->keys);
    for (size_t i = 0; i < count; i++)
        words_add_bytes(&actor->keys, keys[i]->bytes.at, keys[i]->bytes.len);
}

/* Keeps the call if it failed, for the verb `failure`; else frees it. */
static void note_failure(struct actor *actor, struct call *call)
{
    if (actor->failure)
        call_free(actor->failure);
    actor->failure = NULL;
    if (call->status != SNECK_OK)
        actor->failure = call;
    else
        call_free(call);
}

/* Runs a call of its own to its end. */
static const char *finish(struct actor *actor, struct call *call, struct words *outcome)
{
    const char *wrong = actor_finish(actor, call);
    if (wrong)
        return wrong;
    actor_put_outcome(call, outcome);
    note_failure(actor, call);
    return NULL;
}

static void put_keys(const struct words *keys, struct words *outcome)
{
    outcome_ok(outcome);
    words_add_keyword(outcome, "[");
    for (size_t i = 0; i < keys->count; i++)
        words_add_bytes(outcome, keys->at[i].bytes.at, keys->at[i].bytes.len);
    words_add_keyword(outcome, "]");
}

const char *verb_failure(struct actor *actor, const struct act *act)
{
    const struct word *field = act->arguments.places[0];
    const struct call *call = actor->failure;
    struct words *outcome = act->outcome;
    if (!call)
        return "nothing has failed";
    bool conflict = call->status == SNECK_CONFLICT, failed = call->report.failed != SIZE_MAX;
    if (conflict && word_is(field, "attempts"))
        outcome_ok_number(outcome, call->report.attempts);
    else if (conflict && word_is(field, "waited"))
        outcome_ok_number(outcome, call->report.elapsed_ms);
    else if (conflict && word_is(field, "keys"))
        put_keys(&actor->keys, outcome);
    else if (failed && word_is(field, "index"))
        outcome_ok_number(outcome, (int64_t)call->report.failed);
    else if (failed && word_is(field, "results"))
        words_append(outcome, &call->reply);
    else
        return "unknown field";
    return NULL;
}

/* -------------------------------------------------------------------- options */

/* Reads the options of a transaction; `*made` is false when an outcome says that the
 * guard's object cannot be. */
static const char *read_options(struct actor *actor, const struct act *act,
                                sneck_tx_options *out, bool *made)
{
    const struct arguments *a = &act->arguments;
    const char *wait = arguments_text(a, "wait"), *guard = arguments_text(a, "guard");
    const char *attempts = arguments_text(a, "attempts");
    int64_t number = 0;
    *out = (sneck_tx_options)SNECK_TX_OPTIONS;
    *made = true;
    if (attempts && (!read_number(attempts, &number) || number > INT32_MAX))
        return "not a number of attempts";
    if (attempts)
        out->attempts = (int)number;
    out->wait_ms = read_wait_ms(a, out->wait_ms);
    /* -1 is SNECK_FOREVER to the library, and a mistake in a case */
    if (out->wait_ms == SNECK_FOREVER && wait && strcmp(wait, "forever") != 0)
        return "write wait=forever";
    if (guard) {
        struct word name = {0};
        bytes_add(&name.bytes, guard, arguments_text_len(a, "guard"));
        out->guard = actor_lock(actor, &name, act->outcome);
        *made = out->guard != NULL;
        free(name.bytes.at);
    }
    return NULL;
}

/* -------------------------------------------------------------- values of a key */

static const char *read_change(struct call *call, const struct arguments *a)
{
    static const char *const names[] = {
        [CHANGE_ADD] = "add", [CHANGE_APPEND] = "append", [CHANGE_DELETE] = "delete",
        [CHANGE_KEEP] = "keep",
    };
    int found = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = arguments_text(a, names[i]);
        if (!text)
            continue;
        found++;
        call->change = (enum change)i;
        bytes_add(&call->argument, text, arguments_text_len(a, names[i]));
    }
    return found == 1 ? NULL : "an update has one of add, append, delete and keep";
}

const char *verb_update(struct actor *actor, const struct act *act)
{
    const struct arguments *a = &act->arguments;
    bool made;
    sneck_tx_options options;
    const char *wrong = read_options(actor, act, &options, &made);
    if (wrong || !made)
        return wrong;
    struct call *call = call_for(actor, act);
    call->options = options;
    call->ms = arguments_ms(a, "ttl", 0);
    call_add_words(call, a->places, 1);
    note_keys(actor, a->places, 1);
    wrong = read_change(call, a);
    if (wrong) {
        call_free(call);
        return wrong;
    }
    return finish(actor, call, act->outcome);
}

/* To delete is to set to nil. */
const char *verb_compare(struct actor *actor, const struct act *act)
{
    const struct arguments *a = &act->arguments;
    struct call *call = call_for(actor, act);
    call->ms = arguments_ms(a, "ttl", 0);
    call_add_words(call, a->places, a->place_count);
    note_keys(actor, a->places, 1);
    if (a->place_count == 2)
        words_add_keyword(&call->command, "nil");
    return finish(actor, call, act->outcome);
}

/* ---------------------------------------------------------------- transactions */

/* Runs the call, and ends the session with the transaction. */
static const char *run_in_session(struct actor *actor, struct call *call, struct words *outcome)
{
    call->session = actor->session;
    const char *wrong = actor_finish(actor, call);
    if (wrong)
        return wrong;
    actor_put_outcome(call, outcome);
    call->session = NULL;
    if (actor->session->open) {
        call_free(call);
        return NULL;
    }
    note_failure(actor, call);
    free(actor->session);
    actor->session = NULL;
    return NULL;
}

const char *verb_begin(struct actor *actor, const struct act *act)
{
    const struct arguments *a = &act->arguments;
    bool made;
    sneck_tx_options options;
    if (actor->session)
        return "the actor is in a transaction";
    const char *wrong = read_options(actor, act, &options, &made);
    if (wrong || !made)
        return wrong;
    actor->session = calloc(1, sizeof *actor->session);
    if (!actor->session)
        abort();
    note_keys(actor, a->places, a->place_count);
    struct call *call = call_for(actor, act);
    call->options = options;
    call_add_words(call, a->places, a->place_count);
    return run_in_session(actor, call, act->outcome);
}

/* Verbs whose words are a command or keys, or that have none. */
const char *verb_in_tx(struct actor *actor, const struct act *act)
{
    struct call *call = call_for(actor, act);
    call_add_words(call, act->arguments.places, act->arguments.place_count);
    return run_in_session(actor, call, act->outcome);
}

const char *verb_abort(struct actor *actor, const struct act *act)
{
    struct words ended = {0};
    const char *wrong = run_in_session(actor, call_for(actor, act), &ended);
    if (!wrong && word_is(&ended.at[0], "ok"))
        outcome_nil(act->outcome);
    else
        words_append(act->outcome, &ended);
    words_clear(&ended);
    return wrong;
}

bool actor_close_tx(struct actor *actor)
{
    struct words outcome = {0};
    const struct act give_up = {.verb = &(struct verb){.kind = CALL_GIVE_UP}};
    bool closed = !actor->session ||
                  !run_in_session(actor, call_for(actor, &give_up), &outcome);
    words_clear(&outcome);
    words_clear(&actor->keys);
    if (actor->failure)
        call_free(actor->failure);
    actor->failure = NULL;
    return closed;
}
