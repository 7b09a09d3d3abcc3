/* acquire_waiting.c - how an acquire waits: in the lock's queue, or by polling.
 *
 *              inbox not open                ready
 *   next --------------------> JOINING -------------> ASKING (with an entry)
 *      | denied, or one try                              |  in the queue
 *      v                                                 v
 *   ASKING (without) --not free--> PAUSING            QUEUED --timer--> ASKING
 *      ^                             |                   | grant
 *      +----------- timer -----------+                   v
 *                                       CONFIRMING, if in doubt --> held
 *                                          \-- too late --> ASKING
 *
 * A grant says how long after our queueing the server gave us the lock. Our clock
 * from before that queueing plus this delay is a time not after the grant, so the
 * lease is never believed to be longer than it is, however late the grant is read.
 * Where our own link has released the lock, the grant tells when that was sent instead.
 * A grant does not tell which queueing it answers. So the first one counts as long
 * as the op lives, also when it has queued again since.
 *
 * The timer is the safety net for everything that a grant can miss: a holder that
 * died, a message that was lost, a server that restarted. The first in the queue
 * asks again when the holder's lease ends, the next ones a little later, and all of
 * them every two seconds, which also tells that they are not frozen. Since a holder
 * may have as short a ttl as ours, nobody waits longer than one ttl to look again.
 */
#include "acquire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEARTBEAT_MS 2000   /* at least this often; a fourth of it is jitter */
#define STAGGER_MS 50       /* between the ranks that watch a lease end */
#define WATCHERS 3          /* how many do */
#define RETRY_MS 50         /* after a failure; jittered by half */
#define TOLD_MAX 256        /* of what the key holds, so much is told by a script */
#define NO_TIME (-2)        /* in place of a rank: what a timestamp lock's key holds is none */

static uint32_t next_random(struct acquire *a)
{
    a->random ^= a->random << 13;
    a->random ^= a->random >> 17;
    a->random ^= a->random << 5;
    return a->random;
}

/* A time from 0.5 to 1.5 of ms. */
static int64_t jittered(struct acquire *a, int64_t ms)
{
    return ms / 2 + (int64_t)(next_random(a) % (uint64_t)(ms + 1));
}

static void set_timer(struct acquire *a, int64_t pause_ms)
{
    int64_t due = sneck__later_ms(sneck__now_ms(), pause_ms);
    sneck__op_set_timer(&a->base.op, sneck__least_ms(due, a->end_ms));
}

/* -------------------------------------------------------------------- asking */

static bool wants_fence(const struct acquire *a)
{
    return a->base.lock->fence_key.text != NULL;
}

static bool in_queue_with(const struct acquire *a, const char *inbox)
{
    size_t len = strlen(inbox);
    return a->queued_ms && a->entry_len > a->token_len + len + 1 &&
           memcmp(a->token + a->token_len + 1, inbox, len) == 0;
}

/* Keeps the entry that a new one replaces, to be taken out of the queue. Without
 * memory it stays there, and is dropped as what it is: dead. */
static void keep_former(struct acquire *a)
{
    free(a->former);
    a->former = malloc(a->entry_len);
    a->former_len = a->former ? a->entry_len : 0;
    if (a->former)
        memcpy(a->former, a->token, a->entry_len);
}

/* Makes our entry for this inbox, behind our token. */
static void write_entry(struct acquire *a, const char *inbox)
{
    a->former_len = 0;
    if (in_queue_with(a, inbox))
        return;
    if (a->queued_ms)
        keep_former(a);
    int tail_len = snprintf(a->token + a->token_len, ENTRY_TAIL_SIZE, " %s %s%s", inbox, a->ttl,
                            wants_fence(a) ? " f" : "");
    a->entry_len = a->token_len + (size_t)tail_len;
}

static void ask(struct acquire *a, const char *entry, size_t entry_len, const char *former,
                size_t former_len)
{
    const struct lock_kind *kind = a->base.lock->kind;
    bool writes_time = kind->unit != NULL;
    a->phase = ASKING;
    sneck__acquire_expect(a);
    sneck__lock_op_script(&a->base, kind->acquire, sneck__acquire_chosen(a) || writes_time ? 6 : 5,
        (const char *const[]){a->token, a->ttl, entry, former, a->queued_ms ? "1" : "0",
                              writes_time ? kind->unit : a->value},
        (const size_t[]){a->token_len, a->ttl_len, entry_len, former_len, 1,
                         writes_time ? strlen(kind->unit) : a->value_len});
}

/* Asks with an entry, and so stays in the queue or joins it. */
static void ask_in_queue(struct acquire *a)
{
    sneck_op *op = &a->base.op;
    if (!sneck__listen(&op->link->listeners, op, a->token, a->token_len)) {
        sneck__op_end(op, SNECK_NO_MEMORY, "%s: out of memory", a->base.lock->what);
        return;
    }
    write_entry(a, op->link->inbox.id);
    int64_t first_ms = a->queued_ms;
    ask(a, a->token, a->entry_len, a->former_len ? a->former : "", a->former_len);
    a->queued_ms = first_ms ? first_ms : a->sent_ms;
}

/* Asks without one, and so leaves the queue. */
static void ask_outside(struct acquire *a)
{
    ask(a, "", 0, a->token, a->queued_ms ? a->entry_len : 0);
}

void sneck__waiting_look(struct acquire *a)
{
    ask_outside(a);
}

void sneck__waiting_next(struct acquire *a)
{
    if (!sneck__acquire_time_left(a) || !a->base.lock->kind->queues) {
        ask_outside(a);
        return;
    }
    switch (sneck__inbox_want(&a->base.op.link->inbox)) {
    case INBOX_READY:
        ask_in_queue(a);
        break;
    case INBOX_DENIED:
        ask_outside(a);
        break;
    case INBOX_CLOSED:
    case INBOX_OPENING:
        a->phase = JOINING;
        sneck__op_set_timer(&a->base.op, a->end_ms);
        break;
    }
}

void sneck__waiting_retry(struct acquire *a)
{
    a->phase = PAUSING;
    set_timer(a, jittered(a, RETRY_MS));
}

/* ------------------------------------------------------------------- waiting */

/* How long anybody in the queue waits at most before looking again. */
static int64_t heartbeat(struct acquire *a)
{
    int64_t ttl_ms = a->base.lock->ttl_ms;
    int64_t beat = sneck__most_ms(sneck__least_ms(ttl_ms, HEARTBEAT_MS), STAGGER_MS);
    return beat - (int64_t)(next_random(a) % (uint64_t)(beat / 4 + 1));
}

/* When to look again, from the queue. */
static int64_t pause_in_queue(struct acquire *a, int64_t rank)
{
    const sneck_lock *lock = a->base.lock;
    int64_t beat = heartbeat(a);
    int64_t end = a->holder_ttl_ms + 1 + rank * STAGGER_MS;
    if (a->holder_foreign && rank == 0 && lock->poll_ms < beat)
        beat = jittered(a, lock->poll_ms);
    if (a->holder_ttl_ms >= 0 && rank < WATCHERS && end < beat)
        beat = end;
    return beat;
}

/* When to ask again, from outside of the queue or where there is none. */
static int64_t pause_outside(struct acquire *a)
{
    int64_t pause = jittered(a, a->base.lock->poll_ms);
    bool soon = a->holder_ttl_ms >= 0 && a->holder_ttl_ms < pause;
    return soon ? a->holder_ttl_ms + 1 : pause;
}

/* In the queue, behind others: who has the lock is their business. */
static void far_back(struct acquire *a)
{
    a->uncertain = false;
    sneck__acquire_found_busy(a);
    a->phase = QUEUED;
    set_timer(a, heartbeat(a));
}

/* Of a long value the server tells the beginning only: it may be ours. */
static bool is_value(const struct acquire *a, const redisReply *held)
{
    size_t told = a->value_len < TOLD_MAX ? a->value_len : TOLD_MAX;
    return (size_t)held->len == told && memcmp(held->str, a->value, told) == 0;
}

static void not_free(struct acquire *a, const redisReply *const *reply)
{
    sneck_holder holder;
    int64_t rank = reply[2]->integer;
    a->uncertain = false;
    a->value_in_doubt = a->value_in_doubt && is_value(a, reply[1]);
    sneck__acquire_found_busy(a);
    sneck__token_read(&holder, reply[1]->str, (size_t)reply[1]->len, reply[0]->integer);
    a->holder_ttl_ms = holder.ttl_ms;
    a->holder_foreign = holder.foreign;
    if (!sneck__acquire_time_left(a) && rank < 0) {
        sneck__acquire_not_free(a, &holder, rank == NO_TIME);
    } else if (rank >= 0) {
        a->phase = QUEUED;
        set_timer(a, pause_in_queue(a, rank));
    } else if (!a->base.lock->kind->queues || a->base.op.link->inbox.state == INBOX_DENIED) {
        a->phase = PAUSING;
        set_timer(a, pause_outside(a));
    } else {
        sneck__waiting_next(a); /* one look for a fair lock: now queue */
    }
}

/* -------------------------------------------------------------------- grants */

/* A grant gives less than was wanted: to ask puts a chosen value in the place of our token,
 * and makes the fence that whoever granted the lock could not make. */
static bool lacks_something(const struct acquire *a)
{
    return sneck__acquire_chosen(a) || (wants_fence(a) && a->fence == 0);
}

static void confirm(struct acquire *a)
{
    if (lacks_something(a)) {
        ask_outside(a);
        return;
    }
    a->phase = CONFIRMING;
    a->uncertain = true;
    sneck__acquire_expect(a);
    sneck__lock_op_script(&a->base, a->base.lock->kind->extend, 2,
                          (const char *const[]){a->token, a->ttl},
                          (const size_t[]){a->token_len, a->ttl_len});
}

/* The grant took us out of the queue. If much of the lease has passed, if the
 * server gave us only the time to claim it, or if the grant and a request of ours have
 * `overlapped`, ask whether the lock is still ours. */
static void take_grant(struct acquire *a, bool overlapped)
{
    const sneck_lock *lock = a->base.lock;
    int64_t given_ms = a->grant_given_ms;
    bool clocks_agree = given_ms <= a->grant_received_ms;
    int64_t deadline_ms = sneck__validity_ms(sneck__least_ms(given_ms, a->grant_received_ms),
                                             lock->ttl_ms);
    atomic_fetch_add(&lock->counters->handoffs, 1);
    a->granted = false;
    if (!overlapped && !lacks_something(a) && clocks_agree && a->grant_ttl_ms == lock->ttl_ms &&
        deadline_ms - sneck__now_ms() > lock->ttl_ms / 2)
        sneck__acquire_won(a, deadline_ms);
    else
        confirm(a);
}

/* The one before us has this long to claim the lock. */
static void look_after(struct acquire *a, int64_t claim_ms)
{
    if (a->phase == QUEUED)
        set_timer(a, claim_ms + 1);
}

bool sneck__waiting_message(struct acquire *a, const char *message, size_t len)
{
    char numbers[64];
    size_t from = a->token_len + 1;
    if (len <= from || len - from >= sizeof numbers || message[a->token_len] != ' ' ||
        memcmp(message, a->token, a->token_len) != 0)
        return false;
    memcpy(numbers, message + from, len - from);
    numbers[len - from] = '\0';
    char *rest;
    if (*numbers == '-') {
        look_after(a, strtoll(numbers + 1, NULL, 10));
        return true;
    }
    bool by_us = *numbers == '@';
    a->grant_given_ms = (by_us ? 0 : a->queued_ms) + strtoll(numbers + by_us, &rest, 10);
    a->grant_ttl_ms = strtoll(rest, &rest, 10);
    a->fence = strtoll(rest, NULL, 10);
    a->grant_received_ms = sneck__now_ms();
    sneck__acquire_found_busy(a);
    a->granted = a->queued_ms != 0;
    /* a request under way must be answered first: the server may do it later than
     * our release, and would take the lock for nobody */
    if (a->granted && a->base.op.in_flight == 0)
        take_grant(a, false);
    return true;
}

/* ------------------------------------------------------- what the op passes on */

static bool is_holder(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
           reply->element[0]->type == REDIS_REPLY_INTEGER &&
           reply->element[1]->type == REDIS_REPLY_STRING &&
           reply->element[2]->type == REDIS_REPLY_INTEGER;
}

static bool is_number(const redisReply *reply, long long number)
{
    return reply->type == REDIS_REPLY_INTEGER && reply->integer == number;
}

/* To an asking, 1 or the fence says that it is ours; to a confirming, 1. */
static bool says_ours(const struct acquire *a, const redisReply *reply)
{
    return reply->type == REDIS_REPLY_INTEGER &&
           (reply->integer == 1 || (a->phase == ASKING && reply->integer > 1));
}

/* The lease began when the request that was answered now was handled. */
static void is_ours(struct acquire *a, int64_t fence)
{
    if (wants_fence(a) && a->phase == ASKING)
        a->fence = fence;
    int64_t deadline_ms = sneck__validity_ms(a->sent_ms, a->base.lock->ttl_ms);
    if (a->granted) /* the grant came first, while we asked */
        atomic_fetch_add(&a->base.lock->counters->handoffs, 1);
    a->uncertain = a->granted = false;
    if (sneck__now_ms() < deadline_ms)
        sneck__acquire_won(a, deadline_ms);
    else
        sneck__acquire_late(a);
}

static void lost_grant(struct acquire *a)
{
    a->uncertain = false;
    a->fence = 0;
    sneck__waiting_next(a);
}

bool sneck__waiting_reply(struct acquire *a, const redisReply *reply)
{
    if (says_ours(a, reply))
        is_ours(a, reply->integer);
    else if (a->phase == CONFIRMING && reply->type == REDIS_REPLY_INTEGER)
        lost_grant(a); /* another holds it, or nobody */
    else if (a->phase != ASKING || !(is_number(reply, 0) || is_holder(reply)))
        return false;
    else if (a->granted)
        take_grant(a, true); /* which of both came first on the server? */
    else if (is_number(reply, 0))
        far_back(a);
    else
        not_free(a, (const redisReply *const *)reply->element);
    if (a->base.op.status == SNECK_PENDING)
        sneck__waiting_wake(a);
    return true;
}

/* Nobody is there to be asked, as others on this link have just found. */
static bool is_too_early(const struct acquire *a)
{
    const struct wire *wire = &a->base.op.link->wire;
    return a->phase == PAUSING && wire->state == WIRE_CLOSED &&
           sneck__now_ms() < wire->retry_ms && sneck__acquire_time_left(a);
}

/* Many on this link look again at once, for instance since the loop was blocked. Who stands
 * in the queue lets what they have asked leave first: so the link's memory stays small. */
static bool is_crowded_out(const struct acquire *a)
{
    return a->phase == QUEUED && sneck__link_crowded(a->base.op.link) &&
           sneck__acquire_time_left(a);
}

void sneck__waiting_timer(struct acquire *a)
{
    if (is_too_early(a)) {
        set_timer(a, a->base.op.link->wire.retry_ms - sneck__now_ms());
        return;
    }
    if (is_crowded_out(a)) {
        set_timer(a, jittered(a, RETRY_MS));
        return;
    }
    if (a->phase == QUEUED || a->phase == PAUSING)
        atomic_fetch_add(&a->base.lock->counters->polls, 1);
    sneck__waiting_next(a);
}

void sneck__waiting_wake(struct acquire *a)
{
    const struct inbox *inbox = &a->base.op.link->inbox;
    if (a->phase == JOINING && inbox->state != INBOX_OPENING) {
        if (inbox->state == INBOX_CLOSED)
            sneck__waiting_retry(a);
        else
            sneck__waiting_next(a);
    } else if (a->phase == QUEUED &&
               (inbox->state != INBOX_READY || !in_queue_with(a, inbox->id))) {
        sneck__waiting_retry(a);
    }
}
