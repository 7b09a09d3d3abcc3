/* acquire.c - the op that takes a lock: how it begins, and how it can end.
 *
 *   SETTING --OK--> held
 *      | nil: somebody has it
 *      v
 *   asking and waiting, see acquire_waiting.c --ours--> held
 *      |        \-- no time left --> BUSY, TIMEOUT
 *      \-- a reply is lost --> ask again while there is time; else UNKNOWN
 *
 * SETTING is `SET name token NX PX ttl`: one round trip when the lock is free. It is
 * left out where it would fail anyway, must not pass the queue, or where a script has to
 * make what is written: a fence, or the time of a timestamp lock.
 *
 * Each op makes a token of its own, so nothing that a late request does can be
 * taken for another acquire's. Invariant: whoever ends the op otherwise than OK
 * or UNKNOWN has sent what removes the token and the entry in the queue, or has
 * the server's word that they are not there.
 *
 * The key holds the token, but for try_lock(), whose caller chooses the value. Two may
 * choose the same. So the token still stands for the op in the queue, whoever releases
 * the lock puts the token into the key, and acquire.lua puts the value in its place;
 * the value is never taken for ours. A lost reply to what may have done so is a doubt
 * that only another value in the key, or our turn, ends.
 */
#include "acquire.h"

#include "fork.h"
#include "quorum_op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAST_ANSWER_MS 500  /* how long a reply may overrun the wait */

bool sneck__acquire_time_left(const struct acquire *a)
{
    return a->wait_ms != 0 && sneck__now_ms() < a->end_ms;
}

void sneck__acquire_expect(struct acquire *a)
{
    a->sent_ms = sneck__now_ms();
    int64_t last = a->sent_ms + LAST_ANSWER_MS;
    bool limited = a->wait_ms > 0 && a->end_ms != NEVER_MS;
    sneck__op_set_timer(&a->base.op, limited ? sneck__most_ms(a->end_ms, last) : NEVER_MS);
}

static void set_lock(struct acquire *a)
{
    const sneck_lock *lock = a->base.lock;
    a->phase = SETTING;
    sneck__acquire_expect(a);
    sneck__op_send(&a->base.op, (struct command){6,
        (const char *const[]){"SET", lock->name, a->value, "NX", "PX", a->ttl},
        (const size_t[]){3, lock->name_len, a->value_len, 2, 2, a->ttl_len}});
}

/* After fork() the op goes on in the parent. Here it must neither ask for the lock nor
 * take the token away. */
static bool is_parents(const struct acquire *a)
{
    return a->fork_count != sneck__fork_count();
}

static void clean_up(struct acquire *a)
{
    if (is_parents(a))
        return;
    sneck__lock_clean_up(a->base.lock, a->base.op.link, a->token, a->token_len, a->token,
                         a->entry_len);
}

bool sneck__acquire_chosen(const struct acquire *a)
{
    return a->value != a->token;
}

/* -------------------------------------------------------------------- ending */

void sneck__acquire_found_busy(struct acquire *a)
{
    if (!a->contended)
        atomic_fetch_add(&a->base.lock->counters->contended, 1);
    a->contended = true;
}

/* Once for each op, where it ends. */
static void count_wait(struct acquire *a)
{
    if (a->contended)
        atomic_fetch_add(&a->base.lock->counters->wait_ms,
                         (uint64_t)(sneck__now_ms() - a->begun_ms));
}

/* Not to be undone: the value may be another's. */
static void end_value_in_doubt(struct acquire *a, const char *why)
{
    sneck__op_end(&a->base.op, SNECK_UNKNOWN, "%s: %s, so it may be ours; release it with its value"
                  " if nobody else uses that, or let it expire", a->base.lock->what, why);
    clean_up(a);
}

void sneck__acquire_won(struct acquire *a, int64_t deadline_ms)
{
    sneck_lock *lock = a->base.lock;
    a->base.op.lease_number = sneck__lock_hold(lock, a->token, a->token_len, deadline_ms, a->fence);
    int status = sneck__lock_op_keep_alive(&a->base);
    if (status != SNECK_OK) {
        sneck__lock_give_up(lock, a->token, a->token_len);
        clean_up(a);
        sneck__lock_op_end_unrenewed(&a->base, status);
        return;
    }
    sneck__op_end(&a->base.op, SNECK_OK, "%s", "");
    atomic_fetch_add_explicit(&lock->counters->acquisitions, 1, memory_order_relaxed);
    count_wait(a);
    sneck__note_busy(&lock->client->counters, lock->hash, a->contended);
}

void sneck__acquire_not_free(struct acquire *a, const sneck_holder *holder, bool no_time)
{
    char who[HOLDER_TOLD_SIZE];
    const char *form = no_time ? "; its key holds no time, so it is a lock of another form: its"
                                 " owner has to release it, or you to force_release it"
                               : "";
    sneck__holder_tell(holder, who);
    if (a->wait_ms == 0)
        sneck__op_end(&a->base.op, SNECK_BUSY, "%s: %s%s", a->base.lock->what, who, form);
    else if (a->value_in_doubt)
        end_value_in_doubt(a, "a reply was lost, and the key holds this value since");
    else
        sneck__op_end(&a->base.op, SNECK_TIMEOUT, "%s: not free within %lld ms; %s%s",
                      a->base.lock->what, (long long)a->wait_ms, who, form);
    count_wait(a);
}

static void end_too_slow(struct acquire *a)
{
    if (a->value_in_doubt) {
        end_value_in_doubt(a, "the server's answer took longer than the expiry");
    } else {
        clean_up(a);
        sneck__op_end(&a->base.op, SNECK_TIMEOUT, "%s: the server's answer took longer than the"
                      " ttl of %lld ms; use a longer one", a->base.lock->what,
                      (long long)a->base.lock->ttl_ms);
    }
    count_wait(a);
}

void sneck__acquire_late(struct acquire *a)
{
    a->value_in_doubt = sneck__acquire_chosen(a);
    if (sneck__acquire_time_left(a))
        sneck__waiting_next(a); /* start the lease anew */
    else
        end_too_slow(a);
}

static void stay_out(struct acquire *a)
{
    sneck__op_end(&a->base.op, SNECK_INTERRUPTED, "%s: it is the parent process that acquires it",
                  a->base.lock->what);
}

static void end_unknown(struct acquire *a)
{
    sneck__lock_doubt_acquire(a->base.lock, a->token, a->token_len);
    clean_up(a);
}

/* ----------------------------------------------------------- events of the op */

static bool passes_by_itself(const redisReply *reply)
{
    char code[CODE_SIZE];
    sneck__code_word(code, reply->str, (size_t)reply->len);
    return sneck__code_passes(code);
}

static void set_reply(struct acquire *a, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "OK") == 0) {
        int64_t deadline_ms = sneck__validity_ms(a->sent_ms, a->base.lock->ttl_ms);
        if (sneck__now_ms() < deadline_ms)
            sneck__acquire_won(a, deadline_ms);
        else
            sneck__acquire_late(a);
    } else if (reply->type == REDIS_REPLY_NIL) {
        sneck__acquire_found_busy(a);
        sneck__waiting_next(a);
    } else {
        sneck__op_end_reply(&a->base.op, reply, a->base.lock->what);
    }
}

static void fail_waiting(struct acquire *a, const redisReply *reply)
{
    if (a->value_in_doubt) {
        end_value_in_doubt(a, "a reply was lost, and the server refuses to tell more");
    } else {
        if (a->queued_ms || a->uncertain)
            clean_up(a);
        sneck__op_end_reply(&a->base.op, reply, a->base.lock->what);
    }
    count_wait(a);
}

static bool acquire_reply(sneck_op *op, redisReply *reply)
{
    struct acquire *a = (struct acquire *)op;
    a->answered = true;
    sneck__op_set_timer(op, NEVER_MS);
    if (reply->type == REDIS_REPLY_ERROR && sneck__acquire_time_left(a) &&
        passes_by_itself(reply))
        sneck__waiting_retry(a);
    else if (a->phase == SETTING)
        set_reply(a, reply);
    else if (!sneck__waiting_reply(a, reply))
        fail_waiting(a, reply);
    return false;
}

static void acquire_lost(sneck_op *op, bool sent)
{
    struct acquire *a = (struct acquire *)op;
    if (is_parents(a)) {
        stay_out(a);
        return;
    }
    a->uncertain = a->uncertain || sent || a->queued_ms != 0;
    a->value_in_doubt = a->value_in_doubt || (sent && sneck__acquire_chosen(a));
    a->granted = false;
    sneck__op_set_timer(op, NEVER_MS);
    bool gone = op->link->fail_status == SNECK_CONNECTION;
    if (gone && sneck__acquire_time_left(a) && (a->answered || a->uncertain)) {
        sneck__waiting_retry(a);
        return;
    }
    sneck__op_end_lost(op, a->uncertain, a->base.lock->what);
    if (a->uncertain)
        end_unknown(a);
    count_wait(a);
}

/* No answer came in time for the last request. */
static void give_up(struct acquire *a)
{
    sneck_op *op = &a->base.op;
    const char *what = a->base.lock->what;
    const char *place = a->base.lock->client->address.text;
    if (sneck__acquire_chosen(a) && (a->value_in_doubt || !sneck__op_withdraw(op))) {
        end_value_in_doubt(a, "no answer came before the wait ended");
    } else if (sneck__link_unsent(op->link, op) && !a->uncertain) {
        sneck__op_end(op, SNECK_CONNECTION, "%s: %s: not connected when the wait of %lld ms"
                      " ended; nothing was done", what, place, (long long)a->wait_ms);
        clean_up(a); /* the request is still queued, and may leave yet */
    } else {
        sneck__op_end(op, SNECK_UNKNOWN, "%s: %s: no answer when the wait of %lld ms ended, so"
                      " the lock may be ours; release it to be certain", what, place,
                      (long long)a->wait_ms);
        end_unknown(a);
    }
    count_wait(a);
}

static void acquire_timer(sneck_op *op)
{
    struct acquire *a = (struct acquire *)op;
    if (op->in_flight > 0)
        give_up(a);
    else
        sneck__waiting_timer(a);
}

static void acquire_wake(sneck_op *op)
{
    struct acquire *a = (struct acquire *)op;
    if (is_parents(a))
        stay_out(a);
    else
        sneck__waiting_wake(a);
}

static bool acquire_message(sneck_op *op, const char *message, size_t len)
{
    return sneck__waiting_message((struct acquire *)op, message, len);
}

static void acquire_cancel(sneck_op *op)
{
    struct acquire *a = (struct acquire *)op;
    if (sneck__acquire_chosen(a) && (a->value_in_doubt || !sneck__op_withdraw(op)))
        end_value_in_doubt(a, "cancelled while the server may have been doing it");
    else if (op->in_flight > 0 || a->uncertain || a->queued_ms)
        clean_up(a);
    count_wait(a);
}

static void acquire_clear(sneck_op *op)
{
    struct acquire *a = (struct acquire *)op;
    if (sneck__acquire_chosen(a))
        free(a->value);
    free(a->token);
    free(a->former);
    sneck__lock_op_clear(op);
}

static const struct op_class acquire_class = {
    .reply = acquire_reply,
    .lost = acquire_lost,
    .timer = acquire_timer,
    .wake = acquire_wake,
    .message = acquire_message,
    .cancel = acquire_cancel,
    .clear = acquire_clear,
};

/* ----------------------------------------------------------------- the public */

/* Makes our token, with room for the entry behind it; NULL, or what went wrong. */
static const char *make_token(struct acquire *a)
{
    char token[OWN_TOKEN_MAX];
    a->token_len = sneck__lock_make_token(a->base.lock, token);
    if (a->token_len == 0)
        return "the system gives no random bytes for a token";
    a->token = malloc(a->token_len + ENTRY_TAIL_SIZE);
    if (!a->token)
        return "out of memory";
    memcpy(a->token, token, a->token_len);
    if (!a->value) {
        a->value = a->token;
        a->value_len = a->token_len;
    }
    memcpy(&a->random, token + a->token_len - sizeof a->random, sizeof a->random);
    return NULL;
}

static void begin(struct acquire *a, int64_t wait_ms)
{
    sneck_lock *lock = a->base.lock;
    sneck_op *op = &a->base.op;
    if (!sneck__lock_op_check_wait(&a->base, wait_ms))
        return;
    const char *why = make_token(a);
    if (why) {
        sneck__op_end(op, SNECK_NO_MEMORY, "%s: %s", lock->what, why);
        return;
    }
    int status = lock->renew ? sneck__renewal_start(lock->client) : SNECK_OK;
    if (status != SNECK_OK) {
        sneck__lock_op_end_unrenewed(&a->base, status);
        return;
    }
    a->ttl_len = (size_t)snprintf(a->ttl, sizeof a->ttl, "%lld", (long long)lock->ttl_ms);
    a->wait_ms = wait_ms;
    a->begun_ms = sneck__now_ms();
    a->end_ms = sneck__end_ms(a->begun_ms, wait_ms);
    bool busy = lock->fair || sneck__was_busy(&lock->client->counters, lock->hash);
    if (busy && wait_ms != 0 && lock->kind->queues && op->link->inbox.state == INBOX_READY)
        sneck__waiting_next(a);
    else if (lock->fair || lock->fence_key.text || !lock->kind->queues)
        sneck__waiting_look(a);
    else
        set_lock(a);
}

static struct acquire *new_acquire(sneck_lock *lock, sneck_link *link)
{
    struct acquire *a = sneck__lock_op_new(sizeof *a, &acquire_class, lock, link);
    if (a)
        a->fork_count = sneck__fork_count();
    return a;
}

static void start_acquire(sneck_op **out, struct acquire *a, int64_t wait_ms)
{
    if (a->base.op.status == SNECK_PENDING)
        begin(a, wait_ms);
    *out = &a->base.op;
}

int sneck_lock_acquire_start(sneck_op **out, sneck_lock *lock, sneck_link *link,
                             int64_t wait_ms)
{
    if (lock->client->quorum)
        return sneck__quorum_acquire_start(out, lock, link, wait_ms);
    struct acquire *a = new_acquire(lock, link);
    if (!a)
        return SNECK_NO_MEMORY;
    start_acquire(out, a, wait_ms);
    return SNECK_OK;
}

int sneck__acquire_start(sneck_op **out, sneck_lock *lock, sneck_link *link, int64_t wait_ms,
                         const void *value, size_t value_len)
{
    char *copy = malloc(value_len);
    struct acquire *a = copy ? new_acquire(lock, link) : NULL;
    if (!a) {
        free(copy);
        return SNECK_NO_MEMORY;
    }
    a->value = memcpy(copy, value, value_len);
    a->value_len = value_len;
    start_acquire(out, a, wait_ms);
    return SNECK_OK;
}
