/* actor_lock.c - the verbs of locks, and those about the client that has them. */
#include "verbs.h"

#include "outcome.h"
#include "sneck_legacy.h"

#include <string.h>
#include <time.h>

#define AGAIN_MS 5        /* between two looks at who waits */

/* ------------------------------------------------------------------- options */

static bool read_flag(const struct arguments *a, const char *key, const char **wrong)
{
    const char *text = arguments_text(a, key);
    if (text && strcmp(text, "yes") != 0)
        *wrong = "a flag is yes, or not there";
    return text != NULL;
}

bool read_lock_options(const struct arguments *a, sneck_lock_options *out, const char **wrong)
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
    return out->fair || out->renew || out->fence || out->label || arguments_text(a, "ttl") ||
           arguments_text(a, "poll") || arguments_text(a, "max_hold");
}

int64_t read_wait_ms(const struct arguments *a, int64_t fallback)
{
    const char *wait = arguments_text(a, "wait");
    return wait && strcmp(wait, "forever") == 0 ? SNECK_FOREVER
                                                : arguments_ms(a, "wait", fallback);
}

/* Which timestamp lock is asked for; NULL: none. */
static const char *read_kind(const struct arguments *a, const char **wrong)
{
    const char *kind = arguments_text(a, "kind");
    if (kind && strcmp(kind, "timestamp") != 0 && strcmp(kind, "timestamp_ms") != 0)
        *wrong = "a kind is timestamp, timestamp_ms, or not there";
    return kind;
}

static sneck_legacy_unit legacy_unit(const char *kind)
{
    return strcmp(kind, "timestamp_ms") == 0 ? SNECK_LEGACY_MILLISECONDS : SNECK_LEGACY_SECONDS;
}

/* -------------------------------------------------------------- lock objects */

/* The lock, which is the actor's object for the name from now on; NULL stays NULL. */
static sneck_lock *keep_lock(struct actor *actor, const struct word *name, sneck_lock *lock)
{
    if (!lock)
        return NULL;
    struct named *named = actor_named(actor, name);
    sneck_lock_free(named->lock);
    named->lock = lock;
    return lock;
}

/* NULL, with an outcome, when it is refused; so with adopt(). */
static sneck_lock *make_lock(struct actor *actor, const struct word *name, const char *kind,
                             const sneck_lock_options *options, struct words *outcome)
{
    const struct bytes *bytes = &name->bytes;
    sneck_lock *lock = NULL;
    int rc = kind ? sneck_legacy_lock_new(&lock, actor->client, bytes->at, bytes->len, options,
                                          legacy_unit(kind), NULL)
                  : sneck_lock_new(&lock, actor->client, bytes->at, bytes->len, options, NULL);
    if (rc != SNECK_OK)
        outcome_fail(outcome, rc, "");
    return keep_lock(actor, name, lock);
}

static sneck_lock *adopt(struct actor *actor, const struct word *name, const char *token,
                         size_t token_len, const sneck_lock_options *options,
                         struct words *outcome)
{
    sneck_lock *lock = NULL;
    int rc = sneck_lock_adopt(&lock, actor->client, name->bytes.at, name->bytes.len, token,
                              token_len, options, NULL);
    if (rc != SNECK_OK)
        outcome_fail(outcome, rc, "");
    return lock;
}

sneck_lock *actor_lock(struct actor *actor, const struct word *name, struct words *outcome)
{
    struct named *named = actor_named(actor, name);
    return named->lock ? named->lock : make_lock(actor, name, NULL, NULL, outcome);
}

/* --------------------------------------------------------------------- verbs */

const char *verb_acquire(struct actor *actor, const struct act *act)
{
    const struct arguments *a = &act->arguments;
    const struct word *name = a->places[0];
    sneck_lock_options options;
    const char *wrong;
    bool fresh = read_lock_options(a, &options, &wrong);
    const char *kind = read_kind(a, &wrong);
    if (wrong)
        return wrong;
    sneck_lock *lock = fresh || kind ? make_lock(actor, name, kind, &options, act->outcome)
                                       : actor_lock(actor, name, act->outcome);
    if (!lock)
        return NULL;
    struct call *call = call_for(actor, act);
    call->lock = lock;
    call->ms = read_wait_ms(a, 0);
    actor_do_call(actor, call, act);
    return NULL;
}

/* Release and extend: of the actor's lock object, or of one adopted for the step. */
const char *verb_release(struct actor *actor, const struct act *act)
{
    const struct arguments *a = &act->arguments;
    const char *token = arguments_text(a, "token");
    sneck_lock *lock = token ? adopt(actor, a->places[0], token, arguments_text_len(a, "token"),
                                     NULL, act->outcome)
                             : actor_lock(actor, a->places[0], act->outcome);
    if (!lock)
        return NULL;
    struct call *call = call_for(actor, act);
    call->lock = lock;
    call->ms = arguments_ms(a, "ttl", 0);
    actor_do_call(actor, call, act);
    if (token && !actor->waiting)
        sneck_lock_free(lock);
    return NULL;
}

const char *verb_adopt(struct actor *actor, const struct act *act)
{
    const struct word *name = act->arguments.places[0];
    const struct bytes *token = &act->arguments.places[1]->bytes;
    sneck_lock_options options;
    const char *wrong;
    read_lock_options(&act->arguments, &options, &wrong);
    if (keep_lock(actor, name, adopt(actor, name, token->at, token->len, &options, act->outcome)))
        outcome_ok(act->outcome);
    return NULL;
}

const char *verb_remaining(struct actor *actor, const struct act *act)
{
    (void)actor;
    outcome_ok_number(act->outcome, sneck_lock_remaining_ms(act->lock));
    return NULL;
}

const char *verb_owned(struct actor *actor, const struct act *act)
{
    (void)actor;
    outcome_ok_yes(act->outcome, sneck_lock_remaining_ms(act->lock) > 0);
    return NULL;
}

const char *verb_token(struct actor *actor, const struct act *act)
{
    (void)actor;
    outcome_token(act->outcome, act->lock);
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

/* Who holds it. False: that is not known; `*wrong` when the call did not end. */
static bool ask_holder(sneck_holder *out, struct actor *actor, const struct act *act,
                       const char **wrong)
{
    struct call *call = call_for(actor, act);
    call->lock = act->lock;
    *wrong = actor_finish(actor, call);
    if (*wrong)
        return false;
    bool known = call->status == SNECK_OK;
    *out = call->holder;
    if (!known)
        actor_put_outcome(call, act->outcome);
    call_free(call);
    return known;
}

const char *verb_holder(struct actor *actor, const struct act *act)
{
    sneck_holder holder;
    const char *wrong;
    if (!ask_holder(&holder, actor, act, &wrong))
        return wrong;
    if (holder.held)
        return holder_field(&holder, act->arguments.places[1]->bytes.at, act->outcome);
    outcome_nil(act->outcome);
    return NULL;
}

const char *verb_locked(struct actor *actor, const struct act *act)
{
    sneck_holder holder;
    const char *wrong;
    if (ask_holder(&holder, actor, act, &wrong))
        outcome_ok_yes(act->outcome, holder.held);
    return wrong;
}

/* Asks who waits, again until `count` do; -1: once. NULL: a call did not end. */
static struct call *ask_waiters(struct actor *actor, const struct act *act, int64_t count)
{
    for (int tries = CALL_LIMIT_MS / AGAIN_MS;; tries--) {
        struct call *call = call_for(actor, act);
        call->lock = act->lock;
        if (actor_finish(actor, call))
            return NULL;
        if (call->status != SNECK_OK || count < 0 || (int64_t)call->waiter_count == count ||
            tries == 0)
            return call;
        call_free(call);
        nanosleep(&(struct timespec){0, AGAIN_MS * 1000000}, NULL);
    }
}

const char *verb_waiters(struct actor *actor, const struct act *act)
{
    const struct arguments *a = &act->arguments;
    int64_t count = -1;
    if (a->place_count == 2 && !read_number(a->places[1]->bytes.at, &count))
        return "not a number of waiters";
    struct call *call = ask_waiters(actor, act, count);
    if (!call)
        return "the call did not end";
    actor_put_outcome(call, act->outcome);
    call_free(call);
    return NULL;
}

const char *verb_force_release(struct actor *actor, const struct act *act)
{
    struct call *call = call_for(actor, act);
    call->lock = act->lock;
    actor_do_call(actor, call, act);
    return NULL;
}

/* ----------------------------------------------------------------- the client */

static const char *wakeups_text(sneck_wakeups wakeups)
{
    static const char *const texts[] = {
        [SNECK_WAKEUPS_UNTRIED] = "untried",
        [SNECK_WAKEUPS_USED] = "used",
        [SNECK_WAKEUPS_DENIED] = "denied",
    };
    return texts[wakeups];
}

const char *verb_stats(struct actor *actor, const struct act *act)
{
    const struct word *field = act->arguments.places[0];
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
        if (word_is(field, fields[i].name)) {
            outcome_ok_number(act->outcome, (int64_t)fields[i].count);
            return NULL;
        }
    if (!word_is(field, "wakeups"))
        return "unknown field";
    const char *text = wakeups_text(stats.wakeups);
    outcome_ok_bytes(act->outcome, text, strlen(text));
    return NULL;
}

const char *verb_execute(struct actor *actor, const struct act *act)
{
    struct call *call = call_for(actor, act);
    call_add_words(call, act->arguments.places, act->arguments.place_count);
    actor_do_call(actor, call, act);
    return NULL;
}
