/* actor.c - the verbs of a case, done with a client of the actor's own.
 *
 * Invariant: an actor has at most one call under way, and touches no lock object
 * of it before it has ended.
 */
#include "actor.h"

#include "outcome.h"
#include "sneck_legacy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LEAVE_MS 80       /* how long a call that should wait is watched */
#define AGAIN_MS 5        /* between two looks at who waits */

void call_argv(const struct words *command, const void ***argv, size_t **len)
{
    *argv = calloc(command->count + 1, sizeof **argv);
    *len = calloc(command->count + 1, sizeof **len);
    if (!*argv || !*len)
        abort();
    for (size_t i = 0; i < command->count; i++) {
        (*argv)[i] = command->at[i].bytes.at;
        (*len)[i] = command->at[i].bytes.len;
    }
}

/* --------------------------------------------------------------------- locks */

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

static void put_lock(struct actor *actor, const struct word *name, sneck_lock *lock)
{
    struct named *named = actor_named(actor, name);
    sneck_lock_free(named->lock);
    named->lock = lock;
}

static bool read_flag(const struct arguments *a, const char *key, const char **wrong)
{
    const char *text = arguments_text(a, key);
    if (text && strcmp(text, "yes") != 0)
        *wrong = "a flag is yes, or not there";
    return text != NULL;
}

bool actor_lock_options(const struct arguments *a, sneck_lock_options *out, const char **wrong)
{
    *out = (sneck_lock_options)SNECK_LOCK_OPTIONS;
    *wrong = NULL;
    out->ttl_ms = arguments_ms(a, "ttl", out->ttl_ms);
    out->label = arguments_text(a, "label");
    out->poll_ms = arguments_ms(a, "poll", out->poll_ms);
    out->max_hold_ms = arguments_ms(a, "max_hold", out->max_hold_ms);
    out->fair = read_flag(a, "fair", wrong);
    out->renew = read_flag(a, "renew", wrong);
    out->fence = read_flag(a, "fence", wrong);
    const char *kind = arguments_text(a, "kind");
    if (kind && strcmp(kind, "timestamp") != 0 && strcmp(kind, "timestamp_ms") != 0)
        *wrong = "a kind is timestamp, timestamp_ms, or not there";
    return out->fair || out->renew || out->fence || out->label || arguments_text(a, "ttl") ||
           arguments_text(a, "poll") || arguments_text(a, "max_hold") || kind;
}

static sneck_legacy_unit legacy_unit(const struct arguments *a)
{
    return strcmp(arguments_text(a, "kind"), "timestamp_ms") == 0 ? SNECK_LEGACY_MILLISECONDS
                                                                  : SNECK_LEGACY_SECONDS;
}

/* Makes a lock object by the step's options; NULL when that is refused. */
static sneck_lock *make_lock(struct actor *actor, const struct arguments *a,
                             const char *token, size_t token_len, struct words *outcome)
{
    sneck_lock_options options;
    const char *wrong;
    const struct bytes *name = &a->places[0]->bytes;
    sneck_lock *lock = NULL;
    actor_lock_options(a, &options, &wrong);
    int rc = token ? sneck_lock_adopt(&lock, actor->client, name->at, name->len, token,
                                      token_len, &options, NULL)
             : arguments_text(a, "kind")
                   ? sneck_legacy_lock_new(&lock, actor->client, name->at, name->len, &options,
                                           legacy_unit(a), NULL)
                   : sneck_lock_new(&lock, actor->client, name->at, name->len, &options, NULL);
    if (rc != SNECK_OK)
        outcome_fail(outcome, rc, "");
    return lock;
}

/* The actor's object for the name; a new one where `fresh` or where there is none. */
static sneck_lock *use_lock(struct actor *actor, const struct arguments *a, bool fresh,
                            struct words *outcome)
{
    struct named *named = actor_named(actor, a->places[0]);
    if (named->lock && !fresh)
        return named->lock;
    sneck_lock *lock = make_lock(actor, a, NULL, 0, outcome);
    if (lock)
        put_lock(actor, a->places[0], lock);
    return lock;
}

int64_t actor_wait_ms(const struct arguments *a)
{
    const char *wait = arguments_text(a, "wait");
    return wait && strcmp(wait, "forever") == 0 ? SNECK_FOREVER : arguments_ms(a, "wait", 0);
}

static void outcome_token(struct words *outcome, const sneck_lock *lock)
{
    size_t len = sneck_lock_token(lock, NULL, 0);
    char *token = malloc(len + 1);
    if (!token || sneck_lock_token(lock, token, len) != len)
        abort();
    if (len)
        outcome_ok_bytes(outcome, token, len);
    else
        outcome_nil(outcome);
    free(token);
}

/* --------------------------------------------------------------------- calls */

static struct call *make_call(const struct actor *actor, enum call_kind kind, sneck_lock *lock)
{
    struct call *call = calloc(1, sizeof *call);
    if (!call)
        abort();
    call->kind = kind;
    call->client = actor->client;
    call->link = actor->link;
    call->lock = lock;
    return call;
}

void actor_free_call(struct call *call)
{
    words_clear(&call->command);
    words_clear(&call->reply);
    free(call->argument.at);
    free(call);
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

void actor_do_call(struct actor *actor, struct call *call, bool leave, struct words *outcome)
{
    if (run_call(actor, call, leave)) {
        actor_put_outcome(call, outcome);
        actor_free_call(call);
    } else {
        words_add_keyword(outcome, "...");
    }
}

struct call *actor_new_call(const struct actor *actor, enum call_kind kind)
{
    return make_call(actor, kind, NULL);
}

const char *actor_finish(struct actor *actor, struct call *call)
{
    return run_call(actor, call, false) ? NULL : "the call did not end";
}

sneck_lock *actor_lock(struct actor *actor, const struct word *name, struct words *outcome)
{
    return use_lock(actor, &(struct arguments){.places = {name}, .place_count = 1}, false, outcome);
}

/* --------------------------------------------------------------------- verbs */

static const char *verb_acquire(struct actor *actor, const struct arguments *a, bool leave,
                                struct words *outcome)
{
    sneck_lock_options options;
    const char *wrong, *refused = arguments_check(a, 1, LOCK_OPTIONS " kind wait");
    bool fresh = actor_lock_options(a, &options, &wrong);
    if (refused || wrong)
        return refused ? refused : wrong;
    sneck_lock *lock = use_lock(actor, a, fresh, outcome);
    if (!lock)
        return NULL;
    struct call *call = make_call(actor, CALL_ACQUIRE, lock);
    call->ms = actor_wait_ms(a);
    actor_do_call(actor, call, leave, outcome);
    return NULL;
}

/* Release and extend: of the actor's lock object, or of one adopted for the step. */
static const char *verb_owner(struct actor *actor, const struct arguments *a,
                              enum call_kind kind, struct words *outcome)
{
    const char *wrong = arguments_check(a, 1, kind == CALL_EXTEND ? "ttl token" : "token");
    const char *token = arguments_text(a, "token");
    if (wrong)
        return wrong;
    struct arguments plain = *a;
    plain.option_count = 0;
    sneck_lock *lock = token ? make_lock(actor, &plain, token, arguments_text_len(a, "token"),
                                         outcome)
                             : use_lock(actor, &plain, false, outcome);
    if (!lock)
        return NULL;
    struct call *call = make_call(actor, kind, lock);
    call->ms = arguments_ms(a, "ttl", 0);
    actor_do_call(actor, call, false, outcome);
    if (token && !actor->waiting)
        sneck_lock_free(lock);
    return NULL;
}

static const char *verb_adopt(struct actor *actor, const struct arguments *a,
                              struct words *outcome)
{
    const char *wrong = arguments_check(a, 2, "ttl");
    if (wrong)
        return wrong;
    const struct bytes *token = &a->places[1]->bytes;
    sneck_lock *lock = make_lock(actor, a, token->at, token->len, outcome);
    if (lock) {
        put_lock(actor, a->places[0], lock);
        outcome_ok(outcome);
    }
    return NULL;
}

static const char *verb_object(struct actor *actor, const struct arguments *a,
                               struct words *outcome)
{
    const char *wrong = arguments_check(a, 1, "");
    if (wrong)
        return wrong;
    sneck_lock *lock = use_lock(actor, a, false, outcome);
    if (!lock)
        return NULL;
    if (word_is(a->verb, "remaining"))
        outcome_ok_number(outcome, sneck_lock_remaining_ms(lock));
    else if (word_is(a->verb, "owned"))
        outcome_ok_yes(outcome, sneck_lock_remaining_ms(lock) > 0);
    else
        outcome_token(outcome, lock);
    return NULL;
}

static size_t shown_len(const sneck_holder *holder)
{
    return holder->token_len < sizeof holder->token ? holder->token_len : sizeof holder->token;
}

static const char *holder_field(const sneck_holder *holder, const char *field,
                                struct words *outcome)
{
    if (strcmp(field, "token") == 0)
        outcome_ok_bytes(outcome, holder->token, shown_len(holder));
    else if (strcmp(field, "host") == 0)
        outcome_ok_bytes(outcome, holder->host, strlen(holder->host));
    else if (strcmp(field, "label") == 0)
        outcome_ok_bytes(outcome, holder->label, strlen(holder->label));
    else if (strcmp(field, "pid") == 0)
        outcome_ok_number(outcome, holder->pid);
    else if (strcmp(field, "foreign") == 0)
        outcome_ok_yes(outcome, holder->foreign);
    else if (strcmp(field, "ttl") != 0)
        return "unknown field";
    else if (holder->ttl_ms < 0)
        outcome_ok_bytes(outcome, "never", 5);
    else
        outcome_ok_number(outcome, holder->ttl_ms);
    return NULL;
}

static const char *verb_holder(struct actor *actor, const struct arguments *a,
                               struct words *outcome)
{
    bool locked = word_is(a->verb, "locked");
    const char *wrong = arguments_check(a, locked ? 1 : 2, "");
    if (wrong)
        return wrong;
    sneck_lock *lock = use_lock(actor, a, false, outcome);
    if (!lock)
        return NULL;
    struct call *call = make_call(actor, CALL_HOLDER, lock);
    if (!run_call(actor, call, false))
        return "the call did not end";
    if (call->status != SNECK_OK)
        actor_put_outcome(call, outcome);
    else if (locked)
        outcome_ok_yes(outcome, call->holder.held);
    else if (!call->holder.held)
        outcome_nil(outcome);
    else
        wrong = holder_field(&call->holder, a->places[1]->bytes.at, outcome);
    actor_free_call(call);
    return wrong;
}

/* Asks who waits, again until `count` do; -1: once. NULL: a call did not end. */
static struct call *ask_waiters(struct actor *actor, sneck_lock *lock, int64_t count)
{
    for (int tries = CALL_LIMIT_MS / AGAIN_MS;; tries--) {
        struct call *call = make_call(actor, CALL_WAITERS, lock);
        if (!run_call(actor, call, false))
            return NULL;
        if (call->status != SNECK_OK || count < 0 || (int64_t)call->waiter_count == count ||
            tries == 0)
            return call;
        actor_free_call(call);
        nanosleep(&(struct timespec){0, AGAIN_MS * 1000000}, NULL);
    }
}

static const char *verb_waiters(struct actor *actor, const struct arguments *a,
                                struct words *outcome)
{
    int64_t count = -1;
    const char *wrong = arguments_check(a, a->place_count == 2 ? 2 : 1, "");
    if (wrong)
        return wrong;
    if (a->place_count == 2 && !read_number(a->places[1]->bytes.at, &count))
        return "not a number of waiters";
    sneck_lock *lock = use_lock(actor, a, false, outcome);
    if (!lock)
        return NULL;
    struct call *call = ask_waiters(actor, lock, count);
    if (!call)
        return "the call did not end";
    actor_put_outcome(call, outcome);
    actor_free_call(call);
    return NULL;
}

static const char *verb_force_release(struct actor *actor, const struct arguments *a,
                                      struct words *outcome)
{
    const char *wrong = arguments_check(a, 1, "");
    if (wrong)
        return wrong;
    sneck_lock *lock = use_lock(actor, a, false, outcome);
    if (lock)
        actor_do_call(actor, make_call(actor, CALL_FORCE_RELEASE, lock), false, outcome);
    return NULL;
}

static const char *wakeups_text(sneck_wakeups wakeups)
{
    static const char *const texts[] = {
        [SNECK_WAKEUPS_UNTRIED] = "untried",
        [SNECK_WAKEUPS_USED] = "used",
        [SNECK_WAKEUPS_DENIED] = "denied",
    };
    return texts[wakeups];
}

static const char *verb_stats(struct actor *actor, const struct arguments *a,
                              struct words *outcome)
{
    const char *wrong = arguments_check(a, 1, "");
    if (wrong)
        return wrong;
    sneck_stats stats;
    sneck_client_stats(&stats, actor->client);
    const struct {
        const char *name;
        uint64_t count;
    } fields[] = {
        {"acquisitions", stats.acquisitions}, {"contended", stats.contended},
        {"handoffs", stats.handoffs}, {"polls", stats.polls}, {"wait", stats.wait_ms},
        {"losses", stats.losses}, {"unknown", stats.unknown},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (word_is(a->places[0], fields[i].name)) {
            outcome_ok_number(outcome, (int64_t)fields[i].count);
            return NULL;
        }
    if (!word_is(a->places[0], "wakeups"))
        return "unknown field";
    const char *text = wakeups_text(stats.wakeups);
    outcome_ok_bytes(outcome, text, strlen(text));
    return NULL;
}

static const char *verb_execute(struct actor *actor, const struct words *step, size_t count,
                                struct words *outcome)
{
    struct call *call = make_call(actor, CALL_EXECUTE, NULL);
    for (size_t i = 2; i < count; i++)
        words_add_bytes(&call->command, step->at[i].bytes.at, step->at[i].bytes.len);
    actor_do_call(actor, call, false, outcome);
    return NULL;
}

/* Verbs behind which every word is an argument. */
static bool takes_words(const struct word *verb)
{
    return word_is(verb, "execute") || word_is(verb, "read") || word_is(verb, "queue") ||
           word_is(verb, "watch");
}

static const char *run_verb(struct actor *actor, const struct arguments *a, bool leave,
                            struct words *outcome)
{
    if (word_is(a->verb, "acquire"))
        return verb_acquire(actor, a, leave, outcome);
    if (word_is(a->verb, "release"))
        return verb_owner(actor, a, CALL_RELEASE, outcome);
    if (word_is(a->verb, "extend"))
        return verb_owner(actor, a, CALL_EXTEND, outcome);
    if (word_is(a->verb, "adopt"))
        return verb_adopt(actor, a, outcome);
    if (word_is(a->verb, "remaining") || word_is(a->verb, "owned") || word_is(a->verb, "token"))
        return verb_object(actor, a, outcome);
    if (word_is(a->verb, "holder") || word_is(a->verb, "locked"))
        return verb_holder(actor, a, outcome);
    if (word_is(a->verb, "waiters"))
        return verb_waiters(actor, a, outcome);
    if (word_is(a->verb, "force_release"))
        return verb_force_release(actor, a, outcome);
    if (word_is(a->verb, "stats"))
        return verb_stats(actor, a, outcome);
    return "unknown verb";
}

/* -------------------------------------------------------------------- public */

const char *actor_run(struct actor *actor, const struct words *step, size_t count,
                      const struct variables *v, bool leave, struct words *outcome)
{
    struct arguments a = {.verb = &step->at[1]};
    bool known, execute = word_is(a.verb, "execute");
    const char *wrong = takes_words(a.verb) ? NULL : arguments_read(&a, step, count);
    if (wrong)
        return wrong;
    if (actor->waiting)
        return "the actor is still waiting";
    if (leave && !word_is(a.verb, "acquire") && !word_is(a.verb, "try_lock"))
        return "only an acquire or a try may be left waiting";
    if (leave && arguments_text(&a, "owner"))
        return "an owner's acquire is not left waiting";
    if (word_is(a.verb, "connect"))
        return actor_verb_connect(actor, &a, v, outcome);
    if (!actor->client && !actor_connect_plainly(actor, v, outcome))
        return NULL;
    if (execute)
        return verb_execute(actor, step, count, outcome);
    wrong = actor_run_tx(actor, step, count, &a, &known, outcome);
    if (!known)
        wrong = actor_run_lease(actor, &a, &known, outcome);
    if (!known)
        wrong = actor_run_rlock(actor, &a, &known, outcome);
    if (!known)
        wrong = actor_run_try_lock(actor, &a, leave, &known, outcome);
    return known ? wrong : run_verb(actor, &a, leave, outcome);
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
    actor_free_call(call);
    return NULL;
}

bool actor_close(struct actor *actor)
{
    if (actor->waiting) {
        if (!actor->driver->wait(actor->waiting, CALL_LIMIT_MS))
            return false;
        actor_free_call(actor->waiting);
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
