/* extend.c - the op that sets how long a lease has left: compare and expire, in
 * one script that never creates a key.
 *
 * From the moment it is sent the shorter of both leases counts, since its reply
 * may be lost; once confirmed, the new one. lease.c knows of others that overlap.
 */
#include "lock_op.h"
#include "quorum_op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct extend {
    struct lock_op base;
    char *token;             /* owned; the one to extend */
    size_t token_len;
    int64_t sent_ms;         /* before it was sent */
    bool counted;            /* the lock was told of its beginning, not of its end */
    char ttl[24];            /* in decimal */
};

static void end_counted(struct extend *e, bool confirmed)
{
    if (e->counted)
        sneck__lock_end_extend(e->base.lock, e->token, e->token_len, e->sent_ms, confirmed);
    e->counted = false;
}

static void lose(struct extend *e, bool moved)
{
    sneck_lock *lock = e->base.lock;
    if (sneck__lock_lose(lock, e->token, e->token_len)) {
        atomic_fetch_add(&lock->counters->losses, 1);
        if (moved)
            sneck__lock_note_moved(lock);
    }
    sneck__op_end(&e->base.op, SNECK_NOT_OWNER, "%s: not ours any more: it had expired, or was"
                  " deleted or taken%s; use a longer ttl, or extend it in time", lock->what,
                  moved ? LOST_MOVED_TEXT : "");
}

static bool extend_reply(sneck_op *op, redisReply *reply)
{
    struct extend *e = (struct extend *)op;
    end_counted(e, reply->type == REDIS_REPLY_INTEGER && reply->integer == 1);
    if (reply->type != REDIS_REPLY_INTEGER) {
        sneck__op_end_reply(op, reply, e->base.lock->what);
    } else if (reply->integer == 1) {
        sneck__op_end(op, SNECK_OK, "%s", "");
    } else {
        lose(e, reply->integer == LOST_MOVED);
    }
    sneck__renewal_reset(e->base.lock);
    return false;
}

static void extend_lost(sneck_op *op, bool sent)
{
    end_counted((struct extend *)op, false);
    sneck__op_end_lost(op, sent, ((struct extend *)op)->base.lock->what);
}

static void extend_cancel(sneck_op *op)
{
    end_counted((struct extend *)op, false);
    if (!sneck__op_withdraw(op))
        sneck__op_end(op, SNECK_UNKNOWN, "%s: cancelled while it was being extended; the shorter"
                      " lease counts", ((struct extend *)op)->base.lock->what);
}

static void extend_clear(sneck_op *op)
{
    end_counted((struct extend *)op, false); /* where it ended without memory */
    free(((struct extend *)op)->token);
    sneck__lock_op_clear(op);
}

static const struct op_class extend_class = {
    .reply = extend_reply,
    .lost = extend_lost,
    .cancel = extend_cancel,
    .clear = extend_clear,
};

bool sneck__lock_op_token_to_extend(struct lock_op *o, char **token, size_t *len, int64_t ttl_ms)
{
    sneck_lock *lock = o->lock;
    if (ttl_ms < SNECK_TTL_MIN_MS || ttl_ms > SNECK_TTL_MAX_MS)
        sneck__op_end(&o->op, SNECK_INVALID, "%s: a ttl is from 3 ms to 365 days", lock->what);
    else if (sneck__lock_copy_token(lock, token, len, &o->op.lease_number) != SNECK_OK)
        sneck__op_end(&o->op, SNECK_NO_MEMORY, "%s: out of memory", lock->what);
    else if (!*token)
        sneck__op_end(&o->op, SNECK_NOT_OWNER, "%s: not held by this object, so it cannot be"
                      " extended; acquire it first", lock->what);
    return o->op.status == SNECK_PENDING;
}

bool sneck__lock_op_begin_extend(struct lock_op *o, const char *token, size_t len,
                                 int64_t sent_ms, int64_t ttl_ms)
{
    bool may = sneck__lock_begin_extend(o->lock, token, len, sent_ms, ttl_ms);
    if (!may)
        sneck__op_end(&o->op, SNECK_NOT_OWNER, "%s: not surely ours: it is being released,"
                      " or its acquire or release is unknown; release it to be certain",
                      o->lock->what);
    return may;
}

static void begin_extend(struct extend *e, int64_t ttl_ms)
{
    if (!sneck__lock_op_token_to_extend(&e->base, &e->token, &e->token_len, ttl_ms))
        return;
    e->sent_ms = sneck__now_ms();
    e->counted = sneck__lock_op_begin_extend(&e->base, e->token, e->token_len, e->sent_ms, ttl_ms);
    if (!e->counted)
        return;
    snprintf(e->ttl, sizeof e->ttl, "%lld", (long long)ttl_ms);
    sneck__lock_op_script(&e->base, e->base.lock->kind->extend, 2,
                          (const char *const[]){e->token, e->ttl},
                          (const size_t[]){e->token_len, strlen(e->ttl)});
}

int sneck_lock_extend_start(sneck_op **out, sneck_lock *lock, sneck_link *link,
                            int64_t ttl_ms)
{
    if (lock->client->quorum)
        return sneck__quorum_extend_start(out, lock, link, ttl_ms);
    struct extend *e = sneck__lock_op_new(sizeof *e, &extend_class, lock, link);
    if (!e)
        return SNECK_NO_MEMORY;
    if (e->base.op.status == SNECK_PENDING)
        begin_extend(e, ttl_ms == 0 ? lock->ttl_ms : ttl_ms);
    *out = &e->base.op;
    return SNECK_OK;
}
