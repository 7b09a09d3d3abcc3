/* acquire.c - the op that takes a lock, waiting for it where asked.
 *
 *   SETTING --OK--> held
 *      |  nil: somebody has it          not free, time left
 *      +------------------> ASKING ------------------------> PAUSING
 *                           |  ^  \-- free or ours --> held     |
 *                           |  +-------------- timer -----------+
 *                           +-- not free, no time left --> BUSY, TIMEOUT
 *
 * SETTING is `SET name token NX PX ttl`: one round trip when the lock is free.
 * ASKING runs acquire.lua, which takes the lock if it can, also when an earlier
 * request whose reply was lost took it for us, and otherwise tells who has it
 * and for how long. A lost reply while there is time left is settled by asking
 * again; without time left the outcome is unknown, and a cleanup is sent.
 *
 * Each op makes a token of its own, so nothing that a late request does can be
 * taken for another acquire's.
 */
#include "lock.h"
#include "op.h"

#include <stdio.h>
#include <string.h>

#define POLL_MS 50          /* between two askings; jittered by half */
#define LAST_ANSWER_MS 500  /* how long a reply may overrun the wait */

struct acquire {
    sneck_op op;
    sneck_lock *lock;               /* a reference */
    enum { SETTING, ASKING, PAUSING } phase;
    int64_t wait_ms;
    int64_t end_ms;                 /* of the wait; NEVER_MS: no end */
    int64_t sent_ms;                /* before the last request was sent */
    bool answered;                  /* the server was there once */
    bool uncertain;                 /* a lost request may have taken the lock */
    uint32_t random;
    sneck_holder holder;            /* who had it when we asked last */
    char ttl[24];                   /* the lock's ttl in decimal */
    size_t token_len;
    char token[OWN_TOKEN_MAX];
};

/* ------------------------------------------------------------------- sending */

static void expect_answer(struct acquire *a)
{
    a->sent_ms = sneck__now_ms();
    if (a->wait_ms > 0 && a->end_ms != NEVER_MS) {
        int64_t last = a->sent_ms + LAST_ANSWER_MS;
        a->op.timer_ms = a->end_ms > last ? a->end_ms : last;
    }
}

static void set_lock(struct acquire *a)
{
    const sneck_lock *lock = a->lock;
    a->phase = SETTING;
    expect_answer(a);
    sneck__op_send(&a->op, (struct command){
        6, (const char *const[]){"SET", lock->name, a->token, "NX", "PX", a->ttl},
        (const size_t[]){3, lock->name_len, a->token_len, 2, 2, strlen(a->ttl)}});
}

static void ask(struct acquire *a)
{
    const sneck_lock *lock = a->lock;
    a->phase = ASKING;
    expect_answer(a);
    sneck__op_script(&a->op, &script_acquire, lock->name, lock->name_len, 2,
                     (const char *const[]){a->token, a->ttl},
                     (const size_t[]){a->token_len, strlen(a->ttl)});
}

/* Sends a release behind whatever of ours is still under way. It is an EVAL, so
 * that it needs no second try; its reply is swallowed. */
static void clean_up(struct acquire *a)
{
    const sneck_lock *lock = a->lock;
    const char *text = script_release.text;
    sneck__link_send(a->op.link, NULL, (struct command){
        5, (const char *const[]){"EVAL", text, "1", lock->name, a->token},
        (const size_t[]){4, strlen(text), 1, lock->name_len, a->token_len}});
}

/* ------------------------------------------------------------------- waiting */

static uint32_t next_random(struct acquire *a)
{
    a->random ^= a->random << 13;
    a->random ^= a->random >> 17;
    a->random ^= a->random << 5;
    return a->random;
}

static bool time_left(const struct acquire *a)
{
    return a->wait_ms != 0 && sneck__now_ms() < a->end_ms;
}

/* Pauses for the usual interval, but not past the end of the holder's lease or
 * of the wait: at each of these it is worth asking once more. */
static void pause_until_next(struct acquire *a, int64_t holder_ttl_ms)
{
    int64_t now = sneck__now_ms();
    int64_t pause = POLL_MS / 2 + (int64_t)(next_random(a) % POLL_MS);
    if (holder_ttl_ms >= 0 && holder_ttl_ms < pause)
        pause = holder_ttl_ms + 1;
    a->phase = PAUSING;
    a->op.timer_ms = now + pause < a->end_ms ? now + pause : a->end_ms;
}

/* -------------------------------------------------------------------- ending */

static void describe_holder(const struct acquire *a, char out[256])
{
    const sneck_holder *h = &a->holder;
    char ends[48] = "without an expiry: it may never end";
    if (h->ttl_ms >= 0)
        snprintf(ends, sizeof ends, "its lease ends in %lld ms", (long long)h->ttl_ms);
    if (h->foreign)
        snprintf(out, 256, "held by a client of another kind, %s", ends);
    else
        snprintf(out, 256, "held by pid %lld on %s%s%s, %s", (long long)h->pid, h->host,
                 *h->label ? ", label " : "", h->label, ends);
}

static void end_not_free(struct acquire *a)
{
    char who[256];
    describe_holder(a, who);
    if (a->wait_ms == 0)
        sneck__op_end(&a->op, SNECK_BUSY, "%s: %s", a->lock->what, who);
    else
        sneck__op_end(&a->op, SNECK_TIMEOUT, "%s: not free within %lld ms; %s",
                      a->lock->what, (long long)a->wait_ms, who);
}

static void end_unknown(struct acquire *a)
{
    sneck__lock_doubt_acquire(a->lock, a->token, a->token_len);
    clean_up(a);
}

static void won(struct acquire *a)
{
    int64_t deadline_ms = sneck__validity_ms(a->sent_ms, a->lock->ttl_ms);
    a->uncertain = false;
    if (sneck__now_ms() < deadline_ms) {
        sneck__lock_hold(a->lock, a->token, a->token_len, deadline_ms);
        sneck__op_end(&a->op, SNECK_OK, "%s", "");
    } else if (time_left(a)) {
        ask(a); /* it was ours, but the answer came too late: start the lease anew */
    } else {
        clean_up(a);
        sneck__op_end(&a->op, SNECK_TIMEOUT, "%s: the server's answer took longer than the ttl"
                      " of %lld ms; use a longer one", a->lock->what,
                      (long long)a->lock->ttl_ms);
    }
}

static void busy(struct acquire *a, const redisReply *ttl, const redisReply *token)
{
    a->uncertain = false;
    sneck__token_read(&a->holder, token->str, (size_t)token->len, ttl->integer);
    if (time_left(a))
        pause_until_next(a, ttl->integer);
    else
        end_not_free(a);
}

/* A server that has just started, or runs a long script, will answer later. */
static bool passes_by_itself(const redisReply *reply)
{
    char code[24];
    sneck__code_word(code, reply->str, (size_t)reply->len);
    return strcmp(code, "LOADING") == 0 || strcmp(code, "BUSY") == 0;
}

/* ----------------------------------------------------------- events of the op */

static bool is_holder(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
           reply->element[0]->type == REDIS_REPLY_INTEGER &&
           reply->element[1]->type == REDIS_REPLY_STRING;
}

static bool acquire_reply(sneck_op *op, redisReply *reply)
{
    struct acquire *a = (struct acquire *)op;
    a->answered = true;
    op->timer_ms = NEVER_MS;
    if (reply->type == REDIS_REPLY_ERROR && time_left(a) && passes_by_itself(reply))
        pause_until_next(a, -1);
    else if (a->phase == SETTING && reply->type == REDIS_REPLY_NIL)
        ask(a);
    else if (a->phase == SETTING && reply->type == REDIS_REPLY_STATUS &&
             strcmp(reply->str, "OK") == 0)
        won(a);
    else if (a->phase == ASKING && reply->type == REDIS_REPLY_INTEGER && reply->integer == 1)
        won(a);
    else if (a->phase == ASKING && is_holder(reply))
        busy(a, reply->element[0], reply->element[1]);
    else
        sneck__op_end_reply(op, reply, a->lock->what);
    return false;
}

static void acquire_lost(sneck_op *op, bool sent)
{
    struct acquire *a = (struct acquire *)op;
    a->uncertain = a->uncertain || sent;
    op->timer_ms = NEVER_MS;
    bool gone = op->link->fail_status == SNECK_CONNECTION;
    if (gone && time_left(a) && (a->answered || a->uncertain)) {
        pause_until_next(a, -1);
        return;
    }
    sneck__op_end_lost(op, a->uncertain, a->lock->what);
    if (a->uncertain)
        end_unknown(a);
}

static void acquire_timer(sneck_op *op)
{
    struct acquire *a = (struct acquire *)op;
    if (a->phase == PAUSING) {
        ask(a);
        return;
    }
    bool unsent = sneck__link_unsent(op->link, op);
    const char *place = a->lock->client->address.text;
    if (unsent && !a->uncertain) {
        sneck__op_end(op, SNECK_CONNECTION, "%s: %s: not connected when the wait of %lld ms"
                      " ended; nothing was done", a->lock->what, place,
                      (long long)a->wait_ms);
    } else {
        sneck__op_end(op, SNECK_UNKNOWN, "%s: %s: no answer when the wait of %lld ms ended, so"
                      " the lock may be ours; release it to be certain", a->lock->what, place,
                      (long long)a->wait_ms);
        end_unknown(a);
    }
}

static void acquire_cancel(sneck_op *op)
{
    struct acquire *a = (struct acquire *)op;
    if (op->in_flight > 0 || a->uncertain)
        clean_up(a);
}

static void acquire_clear(sneck_op *op)
{
    sneck__lock_drop(((struct acquire *)op)->lock);
}

static const struct op_class acquire_class = {
    acquire_reply, acquire_lost, acquire_timer, acquire_cancel, acquire_clear,
};

/* ----------------------------------------------------------------- the public */

static void begin(struct acquire *a, int64_t wait_ms)
{
    sneck_lock *lock = a->lock;
    if (wait_ms != SNECK_FOREVER && (wait_ms < 0 || wait_ms > SNECK_TTL_MAX_MS)) {
        sneck__op_end(&a->op, SNECK_INVALID, "%s: a wait is from 0 ms to 365 days, or"
                      " SNECK_FOREVER", lock->what);
        return;
    }
    a->token_len = sneck__lock_make_token(lock, a->token);
    if (a->token_len == 0) {
        sneck__op_end(&a->op, SNECK_NO_MEMORY, "%s: the system gives no random bytes for a"
                      " token", lock->what);
        return;
    }
    memcpy(&a->random, a->token + a->token_len - sizeof a->random, sizeof a->random);
    snprintf(a->ttl, sizeof a->ttl, "%lld", (long long)lock->ttl_ms);
    a->wait_ms = wait_ms;
    a->end_ms = wait_ms == SNECK_FOREVER ? NEVER_MS
                                         : sneck__later_ms(sneck__now_ms(), wait_ms);
    set_lock(a);
}

int sneck_lock_acquire_start(sneck_op **out, sneck_lock *lock, sneck_link *link,
                             int64_t wait_ms)
{
    struct acquire *a = sneck__op_new(sizeof *a, &acquire_class, lock->client, link);
    if (!a)
        return SNECK_NO_MEMORY;
    a->lock = sneck__lock_share(lock);
    if (a->op.status == SNECK_PENDING)
        begin(a, wait_ms);
    *out = &a->op;
    return SNECK_OK;
}
