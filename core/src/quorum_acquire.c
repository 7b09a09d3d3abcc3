/* quorum_acquire.c - the op that takes a quorum's lock: attempts, with pauses at random.
 *
 *   GRANTING --a majority--> [RAISING the fence --a majority-->] still valid? --> held
 *      |                        |                                  |
 *      +------ impossible, or the limit has passed ----------------+
 *      v
 *   CLEANING --answered, or the limit--> BACKING_OFF --time left--> GRANTING
 *                                           |-- none, others hold it --> ASKING_WHO
 *                                           \-- none --> QUORUM             |
 *                                                                BUSY, TIMEOUT
 *
 * An attempt has a token of its own: what an earlier one has left on its way, its
 * request or its cleanup, can then neither grant nor end the lease of this one.
 *
 * It is won when a majority of all servers has said yes and the lease, counted from
 * before the attempt's first request, is still valid. Otherwise what it may have got is
 * released everywhere, behind whatever is queued there: nobody is kept out by a lock that
 * nobody holds. Only who has said yes, or could not, is waited for, so that who asks next finds
 * it gone. The others are heard until the next attempt: a key that is no lock says so to the
 * release, where it said only no to the SET.
 */
#include "fork.h"
#include "quorum_busy.h"

#include <stdio.h>
#include <string.h>

#define ATTEMPT_PART 20       /* of the ttl: how long an attempt waits for answers, within: */
#define ATTEMPT_MIN_MS 2
#define ATTEMPT_MAX_MS 1000
#define LAST_ANSWER_MS 500    /* how long an attempt may overrun the wait */

struct quorum_acquire {
    struct quorum_op q;
    enum { GRANTING, RAISING, CLEANING, BACKING_OFF, ASKING_WHO } phase;
    int64_t wait_ms, begun_ms, end_ms;
    int64_t asked_ms;                   /* before the attempt's first request */
    unsigned fork_count;                /* whose tokens these are */
    uint32_t random;
    bool contended;                     /* others were found to hold it */
    int64_t fence;                      /* of this attempt; 0: none */
    size_t token_len, ttl_len, fence_len;
    char ttl[24], fence_text[24];       /* in decimal */
    char token[OWN_TOKEN_MAX];          /* of this attempt */
    int status;                         /* how the last attempt failed */
    size_t granted;                     /* and how many had said yes to it */
    bool held;                          /* since others hold it */
    bool hopeless;                      /* and the next would do so, too */
    uint32_t awaited;                   /* servers whose answer the cleaning waits for */
    struct quorum_busy busy;
    char message[SNECK_ERROR_SIZE];
};

static struct quorum_acquire *acquire_of(struct quorum_op *q)
{
    return (struct quorum_acquire *)q;
}

static sneck_lock *lock_of_acquire(const struct quorum_acquire *a)
{
    return a->q.base.lock;
}

static bool wants_fence_of(const struct quorum_acquire *a)
{
    return lock_of_acquire(a)->fence_key.text != NULL;
}

static bool has_time(const struct quorum_acquire *a)
{
    return a->wait_ms != 0 && sneck__now_ms() < a->end_ms;
}

static int64_t attempt_limit(const struct quorum_acquire *a)
{
    const sneck_lock *lock = lock_of_acquire(a);
    int64_t limit = sneck__most_ms(lock->ttl_ms / ATTEMPT_PART, ATTEMPT_MIN_MS);
    limit = sneck__least_ms(limit, ATTEMPT_MAX_MS);
    limit = sneck__least_ms(limit, lock->client->io_timeout_ms);
    int64_t left = a->end_ms - sneck__now_ms();
    return sneck__least_ms(limit, sneck__most_ms(left, LAST_ANSWER_MS));
}

/* -------------------------------------------------------------------- cleaning up */

/* Sends a release to a server, of which nothing is heard; but not where the token was never
 * sent. */
static void clean_unheard(struct quorum_acquire *a, struct member *m)
{
    if (m->asked)
        sneck__lock_clean_up(lock_of_acquire(a), m->op.link, a->token, a->token_len, "", 0);
}

static void clean_all_unheard(struct quorum_acquire *a)
{
    sneck__quorum_give_up(&a->q);
    for (size_t i = 0; i < a->q.count; i++)
        clean_unheard(a, &a->q.members[i]);
}

/* It has said yes; or its connection broke before it could, and a new one tells soon. */
static bool may_have_token(const struct member *m)
{
    return m->voice == YES ||
           (m->voice == FAILED && m->doubtful && m->op.link->wire.state == WIRE_CLOSED);
}

static bool is_awaited(const struct quorum_acquire *a, size_t server)
{
    return a->awaited >> server & 1;
}

/* Who may have the token has answered to its release. */
static bool is_clean(const struct quorum_acquire *a)
{
    for (size_t i = 0; i < a->q.count; i++)
        if (is_awaited(a, i) && a->q.members[i].voice == SILENT)
            return false;
    return true;
}

/* All that were asked are sent a release; who has failed cannot be heard. */
static void clean_round(struct quorum_acquire *a)
{
    struct quorum_op *q = &a->q;
    sneck_op *op = &q->base.op;
    bool is_heard[SNECK_QUORUM_MAX];
    a->awaited = 0;
    for (size_t i = 0; i < q->count; i++) {
        bool may = may_have_token(&q->members[i]);
        a->awaited |= (uint32_t)may << i;
        is_heard[i] = may || q->members[i].voice == NO;
    }
    a->phase = CLEANING;
    sneck__quorum_round(q);
    sneck__lock_op_compose(&q->base, &script_release, 2, (const char *const[]){a->token, ""},
                           (const size_t[]){a->token_len, 0});
    bool formatted = sneck__quorum_format(q, (struct command){op->argc, op->argv, op->argv_len});
    for (size_t i = 0; i < q->count; i++) {
        if (is_heard[i] && formatted)
            sneck__quorum_ask(q, &q->members[i]);
        else
            clean_unheard(a, &q->members[i]);
    }
}

/* -------------------------------------------------------------------- ending */

static void count_quorum_wait(struct quorum_acquire *a)
{
    if (a->contended)
        atomic_fetch_add(&lock_of_acquire(a)->counters->wait_ms,
                         (uint64_t)(sneck__now_ms() - a->begun_ms));
}

/* Where the grant may still be done. */
static uint32_t find_ungranted(const struct quorum_op *q)
{
    uint32_t servers = 0;
    for (size_t i = 0; i < q->count; i++)
        if (q->members[i].asked && (q->members[i].voice == SILENT || q->members[i].voice == FAILED))
            servers |= (uint32_t)1 << i;
    return servers;
}

static void hold(struct quorum_acquire *a, int64_t deadline_ms)
{
    sneck_lock *lock = lock_of_acquire(a);
    struct grant late = {a->q.base.op.link->number, find_ungranted(&a->q)};
    a->q.base.op.lease_number = sneck__lock_hold(lock, a->token, a->token_len, deadline_ms,
                                                 a->fence);
    if (late.servers)
        sneck__lock_note_grant(lock, a->token, a->token_len, late);
    int status = sneck__lock_op_keep_alive(&a->q.base);
    if (status != SNECK_OK) {
        sneck__lock_give_up(lock, a->token, a->token_len);
        clean_all_unheard(a);
        sneck__lock_op_end_unrenewed(&a->q.base, status);
        return;
    }
    sneck__op_end(&a->q.base.op, SNECK_OK, "%s", "");
    atomic_fetch_add_explicit(&lock->counters->acquisitions, 1, memory_order_relaxed);
    count_quorum_wait(a);
}

static void tell_who(struct quorum_acquire *a)
{
    sneck__quorum_busy_end(&a->q, &a->busy, a->status, a->granted);
    count_quorum_wait(a);
}

static void ask_who(struct quorum_acquire *a)
{
    a->phase = ASKING_WHO;
    a->q.limit_ms = attempt_limit(a);
    sneck__quorum_busy_ask(&a->q, &a->busy);
    if (a->q.silent == 0)
        tell_who(a);
}

static void end_as_told(struct quorum_acquire *a)
{
    sneck__op_end(&a->q.base.op, a->status, "%s", a->message);
    count_quorum_wait(a);
}

/* Pauses, or ends as the last attempt did. */
static void attempt_over(struct quorum_acquire *a)
{
    sneck_op *op = &a->q.base.op;
    if (a->hopeless || !has_time(a)) {
        if (a->held)
            ask_who(a);
        else
            end_as_told(a);
        return;
    }
    int64_t most = 2 * lock_of_acquire(a)->poll_ms;
    int64_t due = sneck__later_ms(sneck__now_ms(), 1 + (int64_t)(a->random % (uint64_t)most));
    a->phase = BACKING_OFF;
    sneck__op_set_timer(op, sneck__least_ms(due, a->end_ms));
}

static void clean_and_go_on(struct quorum_acquire *a)
{
    clean_round(a);
    if (is_clean(a))
        attempt_over(a);
}

/* An answer to a release, while or after it is waited for. */
static void cleaned(struct quorum_acquire *a)
{
    if (sneck__quorum_refuses(&a->q)) { /* by all of them the next attempt would be, too */
        sneck__quorum_end_counted(&a->q, SNECK_QUORUM, a->granted, "granted it");
        count_quorum_wait(a);
    } else if (a->phase == CLEANING && is_clean(a)) {
        attempt_over(a);
    }
}

static void found_held(struct quorum_acquire *a)
{
    if (!a->contended && a->q.no > 0) {
        atomic_fetch_add(&lock_of_acquire(a)->counters->contended, 1);
        a->contended = true;
    }
}

/* No majority grants it, and whether others or failures keep it away does not depend on who is
 * heard first. */
static bool is_decided_against(const struct quorum_op *q)
{
    return sneck__quorum_denies(q) || q->silent == 0 ||
           (sneck__quorum_fails(q) && !sneck__quorum_may_deny(q));
}

static void attempt_failed(struct quorum_acquire *a, const char *did)
{
    const struct quorum_op *q = &a->q;
    a->held = sneck__quorum_denies(q) || !sneck__quorum_fails(q);
    a->granted = q->yes;
    found_held(a);
    a->hopeless = !a->held && sneck__quorum_refuses(q);
    a->status = !a->held ? SNECK_QUORUM : a->wait_ms == 0 ? SNECK_BUSY : SNECK_TIMEOUT;
    if (!a->held) /* or else it is told when it is known who holds it */
        sneck__quorum_tell(q, a->message, did);
    clean_and_go_on(a);
}

static void too_slow(struct quorum_acquire *a)
{
    const sneck_lock *lock = lock_of_acquire(a);
    a->hopeless = a->held = false;
    a->status = SNECK_TIMEOUT;
    sneck__message(a->message, "%s: the servers' answers took longer than the ttl of %lld ms; use"
                   " a longer one", lock->what, (long long)lock->ttl_ms);
    clean_and_go_on(a);
}

static void won(struct quorum_acquire *a)
{
    int64_t deadline_ms = sneck__validity_ms(a->asked_ms, lock_of_acquire(a)->ttl_ms);
    if (sneck__now_ms() < deadline_ms)
        hold(a, deadline_ms);
    else
        too_slow(a);
}

/* -------------------------------------------------------------------- the fence */

/* The greatest of those that were granted is the lock's: greater than all before it, since these
 * were written to majorities, too. */
static void choose_fence(struct quorum_acquire *a)
{
    const struct quorum_op *q = &a->q;
    a->fence = 0;
    for (size_t i = 0; i < q->count; i++)
        if (q->members[i].voice == YES && q->members[i].number > a->fence)
            a->fence = q->members[i].number;
    a->fence_len = (size_t)snprintf(a->fence_text, sizeof a->fence_text, "%lld",
                                    (long long)a->fence);
}

static bool compose_raise(struct quorum_acquire *a)
{
    sneck_op *op = &a->q.base.op;
    const sneck_lock *lock = lock_of_acquire(a);
    sneck__op_compose(op, &script_raise_fence, 2, 4,
                      (const char *const[]){lock->name, lock->fence_key.text, a->token,
                                            a->fence_text},
                      (const size_t[]){lock->name_len, lock->fence_key.len, a->token_len,
                                       a->fence_len});
    return sneck__quorum_format(&a->q, (struct command){op->argc, op->argv, op->argv_len});
}

/* It is written to a majority that holds the token. Who has not answered yet is asked as well,
 * behind its grant: one of those that have may be stalled by now. */
static void raise_fence(struct quorum_acquire *a)
{
    struct quorum_op *q = &a->q;
    enum voice granted[SNECK_QUORUM_MAX];
    for (size_t i = 0; i < q->count; i++)
        granted[i] = q->members[i].voice;
    choose_fence(a);
    a->phase = RAISING;
    sneck__quorum_round(q);
    bool formatted = compose_raise(a);
    for (size_t i = 0; i < q->count; i++) {
        struct member *m = &q->members[i];
        if (granted[i] == NO || (granted[i] == YES && m->number == a->fence))
            sneck__quorum_speak(m, granted[i]); /* held by another; it made this one */
        else if (granted[i] != FAILED && formatted)
            sneck__quorum_ask(q, m);
    }
}

/* ------------------------------------------------------------------- an attempt */

static void attempt(struct quorum_acquire *a)
{
    sneck_lock *lock = lock_of_acquire(a);
    struct quorum_op *q = &a->q;
    a->token_len = sneck__lock_make_token(lock, a->token);
    if (a->token_len == 0) {
        sneck__op_end(&q->base.op, SNECK_NO_MEMORY, "%s: the system gives no random bytes for a"
                      " token", lock->what);
        return;
    }
    memcpy(&a->random, a->token + a->token_len - sizeof a->random, sizeof a->random);
    for (size_t i = 0; i < q->count; i++)
        q->members[i].asked = false;
    a->phase = GRANTING;
    a->asked_ms = sneck__now_ms();
    q->limit_ms = attempt_limit(a);
    if (wants_fence_of(a)) {
        sneck__quorum_ask_script(q, &script_acquire, 5,
            (const char *const[]){a->token, a->ttl, "", "", "0"},
            (const size_t[]){a->token_len, a->ttl_len, 0, 0, 1});
    } else {
        q->base.op.script = NULL;
        sneck__quorum_ask_all(q, (struct command){6,
            (const char *const[]){"SET", lock->name, a->token, "NX", "PX", a->ttl},
            (const size_t[]){3, lock->name_len, a->token_len, 2, 2, a->ttl_len}});
    }
}

static enum voice read_granting(struct member *m, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "OK") == 0)
        return YES;
    if (reply->type == REDIS_REPLY_INTEGER && reply->integer > 0) {
        m->number = reply->integer;
        return YES;
    }
    if (reply->type != REDIS_REPLY_NIL && reply->type != REDIS_REPLY_ARRAY)
        return FAILED;
    m->why = "held by another";
    return NO;
}

static enum voice read_raising(struct member *m, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_INTEGER)
        return FAILED;
    if (reply->integer != 0)
        return YES;
    m->why = "it does not hold our token";
    return NO;
}

static enum voice acquire_read(struct quorum_op *q, struct member *m, const redisReply *reply)
{
    switch (acquire_of(q)->phase) {
    case GRANTING:
        return read_granting(m, reply);
    case RAISING:
        return read_raising(m, reply);
    case ASKING_WHO:
        return sneck__quorum_busy_read(q, &acquire_of(q)->busy, m, reply);
    default: /* cleaned or not, there is no more to be done */
        if (reply->type == REDIS_REPLY_ERROR)
            return FAILED;
        return is_awaited(acquire_of(q), (size_t)(m - q->members)) ? YES : NO;
    }
}

static void decide_acquire(struct quorum_op *q)
{
    struct quorum_acquire *a = acquire_of(q);
    if (a->fork_count != sneck__fork_count()) {
        sneck__op_end(&q->base.op, SNECK_INTERRUPTED, "%s: it is the parent process that acquires"
                      " it", q->base.lock->what);
    } else if (a->phase == CLEANING || a->phase == BACKING_OFF) {
        cleaned(a);
    } else if (a->phase == ASKING_WHO) {
        if (sneck__quorum_busy_known(q))
            tell_who(a);
    } else if (sneck__quorum_agrees(q)) {
        if (a->phase == GRANTING && wants_fence_of(a))
            raise_fence(a);
        if (sneck__quorum_agrees(q))
            won(a);
    } else if (is_decided_against(q)) {
        attempt_failed(a, a->phase == RAISING ? "took its fence" : "granted it");
    }
}

/* ----------------------------------------------------------------- the public */

static void quorum_acquire_timer(sneck_op *op)
{
    struct quorum_acquire *a = (struct quorum_acquire *)op;
    if (a->phase != BACKING_OFF) {
        sneck__quorum_timer(op);
    } else if (a->fork_count != sneck__fork_count()) {
        decide_acquire(&a->q);
    } else if (!has_time(a)) {
        attempt_over(a);
    } else {
        atomic_fetch_add(&lock_of_acquire(a)->counters->polls, 1);
        attempt(a);
    }
}

static void quorum_acquire_cancel(sneck_op *op)
{
    struct quorum_acquire *a = (struct quorum_acquire *)op;
    if (a->phase < BACKING_OFF && a->fork_count == sneck__fork_count())
        clean_all_unheard(a);
    count_quorum_wait(a);
}

static const struct op_class quorum_acquire_class = {
    .timer = quorum_acquire_timer,
    .cancel = quorum_acquire_cancel,
    .leave = sneck__quorum_leave,
    .clear = sneck__quorum_clear,
};

static const struct quorum_kind quorum_acquire_kind = {acquire_read, decide_acquire};

static void begin_quorum_acquire(struct quorum_acquire *a, int64_t wait_ms)
{
    sneck_lock *lock = lock_of_acquire(a);
    if (!sneck__lock_op_check_wait(&a->q.base, wait_ms))
        return;
    int status = lock->renew ? sneck__renewal_start(lock->client) : SNECK_OK;
    if (status != SNECK_OK) {
        sneck__lock_op_end_unrenewed(&a->q.base, status);
        return;
    }
    a->ttl_len = (size_t)snprintf(a->ttl, sizeof a->ttl, "%lld", (long long)lock->ttl_ms);
    a->wait_ms = wait_ms;
    a->begun_ms = sneck__now_ms();
    a->end_ms = sneck__end_ms(a->begun_ms, wait_ms);
    attempt(a);
}

int sneck__quorum_acquire_start(sneck_op **out, sneck_lock *lock, sneck_link *link,
                                int64_t wait_ms)
{
    struct quorum_acquire *a = sneck__quorum_op_new(sizeof *a, &quorum_acquire_class,
                                                    &quorum_acquire_kind, lock, link);
    if (!a)
        return SNECK_NO_MEMORY;
    a->fork_count = sneck__fork_count();
    if (a->q.base.op.status == SNECK_PENDING)
        begin_quorum_acquire(a, wait_ms);
    *out = &a->q.base.op;
    return SNECK_OK;
}
