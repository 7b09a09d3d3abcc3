/* quorum_extend.c - the op that sets how long a quorum's lease has left: the extend script
 * to all servers, none of which creates a key by it.
 *
 * A majority must do it while the new lease is still valid. What fails at a minority changes
 * nothing, and nothing is released for it. Until it is confirmed the shorter lease counts. Then
 * who has lost the token is given it again. */
#include "quorum_op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct quorum_extend {
    struct quorum_op q;
    char *token;             /* owned; the one to extend */
    size_t token_len;
    int64_t ttl_ms;
    int64_t asked_ms;        /* before it was sent */
    bool counted;            /* the lock was told of its beginning, not of its end */
    char ttl[24];            /* in decimal */
};

static enum voice extend_read(struct quorum_op *q, struct member *m, const redisReply *reply)
{
    (void)q;
    if (reply->type != REDIS_REPLY_INTEGER)
        return FAILED;
    if (reply->integer == 1)
        return YES;
    m->number = reply->integer;
    m->why = "not ours there any more";
    return NO;
}

static void end_counted_extend(struct quorum_extend *e, bool confirmed)
{
    if (e->counted)
        sneck__lock_end_extend(e->q.base.lock, e->token, e->token_len, e->asked_ms, confirmed);
    e->counted = false;
}

static void extended(struct quorum_extend *e)
{
    bool valid = sneck__now_ms() < sneck__validity_ms(e->asked_ms, e->ttl_ms);
    end_counted_extend(e, valid);
    if (valid) {
        sneck__quorum_put_back(&e->q, e->token, e->token_len, e->ttl_ms);
        sneck__op_end(&e->q.base.op, SNECK_OK, "%s", "");
    } else {
        sneck__op_end(&e->q.base.op, SNECK_QUORUM, "%s: the servers' answers took longer than the"
                      " ttl of %lld ms; use a longer one", e->q.base.lock->what,
                      (long long)e->ttl_ms);
    }
    sneck__renewal_reset(e->q.base.lock);
}

static void not_extended(struct quorum_extend *e)
{
    sneck_lock *lock = e->q.base.lock;
    end_counted_extend(e, false);
    if (sneck__lock_lose(lock, e->token, e->token_len))
        atomic_fetch_add(&lock->counters->losses, 1);
    sneck__quorum_end(&e->q, SNECK_NOT_OWNER, "still had it, so it is not ours any more");
    sneck__renewal_reset(lock);
}

/* A connection that is given up by renewal, which holds its mutex then, decides nothing but
 * that too few have answered: only answers lead to what takes that mutex. */
static void extend_decide(struct quorum_op *q)
{
    struct quorum_extend *e = (struct quorum_extend *)q;
    if (sneck__quorum_agrees(q)) {
        extended(e);
    } else if (sneck__quorum_denies(q)) {
        not_extended(e);
    } else if (!sneck__quorum_may_agree(q) && !sneck__quorum_may_deny(q)) {
        end_counted_extend(e, false);
        sneck__quorum_end(q, SNECK_QUORUM, "have extended it");
    }
}

static void quorum_extend_cancel(sneck_op *op)
{
    struct quorum_extend *e = (struct quorum_extend *)op;
    end_counted_extend(e, false);
    sneck__op_end(op, SNECK_UNKNOWN, "%s: cancelled while it was being extended; the shorter"
                  " lease counts", e->q.base.lock->what);
}

static void quorum_extend_clear(sneck_op *op)
{
    struct quorum_extend *e = (struct quorum_extend *)op;
    end_counted_extend(e, false); /* where it ended with its link */
    free(e->token);
    sneck__quorum_clear(op);
}

static const struct op_class quorum_extend_class = {
    .timer = sneck__quorum_timer,
    .cancel = quorum_extend_cancel,
    .leave = sneck__quorum_leave,
    .clear = quorum_extend_clear,
};

static const struct quorum_kind quorum_extend_kind = {extend_read, extend_decide};

static void begin_quorum_extend(struct quorum_extend *e)
{
    if (!sneck__lock_op_token_to_extend(&e->q.base, &e->token, &e->token_len, e->ttl_ms))
        return;
    e->asked_ms = sneck__now_ms();
    e->counted = sneck__lock_op_begin_extend(&e->q.base, e->token, e->token_len, e->asked_ms,
                                             e->ttl_ms);
    if (!e->counted)
        return;
    snprintf(e->ttl, sizeof e->ttl, "%lld", (long long)e->ttl_ms);
    sneck__quorum_ask_script(&e->q, &script_extend, 2, (const char *const[]){e->token, e->ttl},
                             (const size_t[]){e->token_len, strlen(e->ttl)});
}

int sneck__quorum_extend_start(sneck_op **out, sneck_lock *lock, sneck_link *link,
                               int64_t ttl_ms)
{
    struct quorum_extend *e = sneck__quorum_op_new(sizeof *e, &quorum_extend_class,
                                                   &quorum_extend_kind, lock, link);
    if (!e)
        return SNECK_NO_MEMORY;
    e->ttl_ms = ttl_ms == 0 ? lock->ttl_ms : ttl_ms;
    if (e->q.base.op.status == SNECK_PENDING)
        begin_quorum_extend(e);
    *out = &e->q.base.op;
    return SNECK_OK;
}
