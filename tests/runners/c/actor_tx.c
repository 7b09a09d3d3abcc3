/* actor_tx.c - the verbs of compare-and-set and of transactions.
 *
 * Invariant: the actor's session is there exactly as long as its transaction is open.
 */
#include "actor.h"

#include "outcome.h"

#include <stdlib.h>
#include <string.h>

/* Appends the words, whose bytes are all that counts; a bare `nil` stays one. */
static void add_words(struct words *to, const struct word *const *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct word *word = words_add(to);
        word->quoted = !word_is(from[i], "nil");
        bytes_add(&word->bytes, from[i]->bytes.at, from[i]->bytes.len);
    }
}

/* ------------------------------------------------------------------- failures */

/* C's callers know the keys of a conflict. */
static void note_keys(struct actor *actor, const struct word *const *keys, size_t count)
{
    words_clear(&actor->keys);
    add_words(&actor->keys, keys, count);
}

/* Keeps the call if it failed, for the verb `failure`; else frees it. */
static void note_failure(struct actor *actor, struct call *call)
{
    if (actor->failure)
        actor_free_call(actor->failure);
    actor->failure = NULL;
    if (call->status != SNECK_OK)
        actor->failure = call;
    else
        actor_free_call(call);
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

static const char *verb_failure(const struct actor *actor, const struct arguments *a,
                                struct words *outcome)
{
    const char *wrong = arguments_check(a, 1, "");
    const struct call *call = actor->failure;
    if (wrong || !call)
        return wrong ? wrong : "nothing has failed";
    bool conflict = call->status == SNECK_CONFLICT, failed = call->report.failed != SIZE_MAX;
    if (conflict && word_is(a->places[0], "attempts"))
        outcome_ok_number(outcome, call->report.attempts);
    else if (conflict && word_is(a->places[0], "waited"))
        outcome_ok_number(outcome, call->report.elapsed_ms);
    else if (conflict && word_is(a->places[0], "keys"))
        put_keys(&actor->keys, outcome);
    else if (failed && word_is(a->places[0], "index"))
        outcome_ok_number(outcome, (int64_t)call->report.failed);
    else if (failed && word_is(a->places[0], "results"))
        words_append(outcome, &call->reply);
    else
        return "unknown field";
    return NULL;
}

/* -------------------------------------------------------------------- options */

/* Reads the options of a transaction; `*made` is false when an outcome says that the
 * guard's object cannot be. */
static const char *read_options(struct actor *actor, const struct arguments *a,
                                sneck_tx_options *out, bool *made, struct words *outcome)
{
    const char *wait = arguments_text(a, "wait"), *guard = arguments_text(a, "guard");
    const char *attempts = arguments_text(a, "attempts");
    int64_t number = 0;
    *out = (sneck_tx_options)SNECK_TX_OPTIONS;
    *made = true;
    if (attempts && (!read_number(attempts, &number) || number > INT32_MAX))
        return "not a number of attempts";
    if (attempts)
        out->attempts = (int)number;
    if (wait && strcmp(wait, "forever") == 0)
        out->wait_ms = SNECK_FOREVER;
    else
        out->wait_ms = arguments_ms(a, "wait", out->wait_ms);
    /* -1 is SNECK_FOREVER to the library, and a mistake in a case */
    if (out->wait_ms == SNECK_FOREVER && wait && strcmp(wait, "forever") != 0)
        return "write wait=forever";
    if (guard) {
        struct word name = {0};
        bytes_add(&name.bytes, guard, arguments_text_len(a, "guard"));
        out->guard = actor_lock(actor, &name, outcome);
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

static const char *verb_update(struct actor *actor, const struct arguments *a,
                               struct words *outcome)
{
    bool made;
    sneck_tx_options options;
    const char *wrong = arguments_check(a, 1, "add append delete keep ttl attempts wait guard");
    if (!wrong)
        wrong = read_options(actor, a, &options, &made, outcome);
    if (wrong || !made)
        return wrong;
    struct call *call = actor_new_call(actor, CALL_UPDATE);
    call->options = options;
    call->ms = arguments_ms(a, "ttl", 0);
    add_words(&call->command, a->places, 1);
    note_keys(actor, a->places, 1);
    wrong = read_change(call, a);
    if (wrong) {
        actor_free_call(call);
        return wrong;
    }
    return finish(actor, call, outcome);
}

static const char *verb_compare(struct actor *actor, const struct arguments *a,
                                struct words *outcome)
{
    bool set = word_is(a->verb, "compare_and_set");
    const char *wrong = arguments_check(a, set ? 3 : 2, set ? "ttl" : "");
    if (wrong)
        return wrong;
    struct call *call = actor_new_call(actor, CALL_COMPARE);
    call->ms = arguments_ms(a, "ttl", 0);
    add_words(&call->command, a->places, a->place_count);
    note_keys(actor, a->places, 1);
    if (!set)
        words_add_keyword(&call->command, "nil");
    return finish(actor, call, outcome);
}

/* ---------------------------------------------------------------- transactions */

static struct call *call_of_session(const struct actor *actor, enum call_kind kind)
{
    struct call *call = actor_new_call(actor, kind);
    call->session = actor->session;
    return call;
}

/* Runs the call, and ends the session with the transaction. */
static const char *run_in_session(struct actor *actor, struct call *call, struct words *outcome)
{
    const char *wrong = actor_finish(actor, call);
    if (wrong)
        return wrong;
    actor_put_outcome(call, outcome);
    call->session = NULL;
    if (actor->session->open) {
        actor_free_call(call);
        return NULL;
    }
    note_failure(actor, call);
    free(actor->session);
    actor->session = NULL;
    return NULL;
}

static const char *verb_begin(struct actor *actor, const struct arguments *a,
                              struct words *outcome)
{
    bool made;
    sneck_tx_options options;
    const char *wrong = arguments_check(a, a->place_count, "attempts wait guard");
    if (!wrong && actor->session)
        wrong = "the actor is in a transaction";
    if (!wrong)
        wrong = read_options(actor, a, &options, &made, outcome);
    if (wrong || !made)
        return wrong;
    actor->session = calloc(1, sizeof *actor->session);
    if (!actor->session)
        abort();
    note_keys(actor, a->places, a->place_count);
    struct call *call = call_of_session(actor, CALL_BEGIN);
    call->options = options;
    add_words(&call->command, a->places, a->place_count);
    return run_in_session(actor, call, outcome);
}

/* Verbs whose words are a command, or keys. */
static const char *verb_words(struct actor *actor, enum call_kind kind, const struct words *step,
                              size_t count, struct words *outcome)
{
    struct call *call = call_of_session(actor, kind);
    for (size_t i = 2; i < count; i++)
        words_add_bytes(&call->command, step->at[i].bytes.at, step->at[i].bytes.len);
    return run_in_session(actor, call, outcome);
}

static const char *verb_give_up(struct actor *actor, bool raise, struct words *outcome)
{
    struct words ended = {0};
    const char *wrong = run_in_session(actor, call_of_session(actor, CALL_GIVE_UP), &ended);
    if (!wrong && !raise && word_is(&ended.at[0], "ok"))
        outcome_nil(outcome);
    else
        words_append(outcome, &ended);
    words_clear(&ended);
    return wrong;
}

/* --------------------------------------------------------------------- public */

static enum call_kind kind_of(const struct word *verb)
{
    static const struct {
        const char *name;
        enum call_kind kind;
    } verbs[] = {
        {"begin", CALL_BEGIN}, {"read", CALL_READ}, {"watch", CALL_WATCH}, {"queue", CALL_QUEUE},
        {"conflicts", CALL_CONFLICTS}, {"commit", CALL_COMMIT}, {"abort", CALL_GIVE_UP},
        {"raise", CALL_GIVE_UP},
    };
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (word_is(verb, verbs[i].name))
            return verbs[i].kind;
    return CALL_EXECUTE;
}

bool actor_is_tx_verb(const struct word *verb)
{
    return kind_of(verb) != CALL_EXECUTE;
}

static const char *run_session_verb(struct actor *actor, const struct words *step, size_t count,
                                    const struct arguments *a, enum call_kind kind,
                                    struct words *outcome)
{
    if (kind == CALL_BEGIN)
        return verb_begin(actor, a, outcome);
    if (!actor->session)
        return "the actor is in no transaction";
    if (kind == CALL_READ || kind == CALL_WATCH || kind == CALL_QUEUE)
        return verb_words(actor, kind, step, count, outcome);
    const char *wrong = arguments_check(a, 0, "");
    if (wrong)
        return wrong;
    if (kind == CALL_GIVE_UP)
        return verb_give_up(actor, word_is(a->verb, "raise"), outcome);
    return run_in_session(actor, call_of_session(actor, kind), outcome);
}

const char *actor_run_tx(struct actor *actor, const struct words *step, size_t count,
                         const struct arguments *a, bool *known, struct words *outcome)
{
    enum call_kind kind = kind_of(&step->at[1]);
    *known = true;
    if (kind != CALL_EXECUTE)
        return run_session_verb(actor, step, count, a, kind, outcome);
    if (word_is(a->verb, "update"))
        return verb_update(actor, a, outcome);
    if (word_is(a->verb, "compare_and_set") || word_is(a->verb, "compare_and_delete"))
        return verb_compare(actor, a, outcome);
    if (word_is(a->verb, "failure"))
        return verb_failure(actor, a, outcome);
    *known = false;
    return NULL;
}

bool actor_close_tx(struct actor *actor)
{
    struct words outcome = {0};
    bool closed = !actor->session || !verb_give_up(actor, false, &outcome);
    words_clear(&outcome);
    words_clear(&actor->keys);
    if (actor->failure)
        actor_free_call(actor->failure);
    actor->failure = NULL;
    return closed;
}
