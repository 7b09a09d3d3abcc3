/* force_release.c - the op that takes a lock away from whoever holds it. */
#include "lock_op.h"
#include "quorum_op.h"

struct force_release {
    struct lock_op base;
    bool was_held;          /* valid once the op has ended OK */
};

static bool force_reply(sneck_op *op, redisReply *reply)
{
    struct force_release *f = (struct force_release *)op;
    if (reply->type == REDIS_REPLY_INTEGER) {
        f->was_held = reply->integer != 0;
        sneck__op_end(op, SNECK_OK, "%s", "");
    } else {
        sneck__op_end_reply(op, reply, f->base.lock->what);
    }
    return false;
}

static void force_lost(sneck_op *op, bool sent)
{
    sneck__op_end_lost(op, sent, ((struct force_release *)op)->base.lock->what);
}

static void force_cancel(sneck_op *op)
{
    if (!sneck__op_withdraw(op))
        sneck__op_end(op, SNECK_UNKNOWN, "%s: cancelled while it was being taken away",
                      ((struct force_release *)op)->base.lock->what);
}

static const struct op_class force_class = {
    .reply = force_reply,
    .lost = force_lost,
    .cancel = force_cancel,
    .clear = sneck__lock_op_clear,
};

int sneck_lock_force_release_start(sneck_op **out, sneck_lock *lock, sneck_link *link)
{
    if (lock->client->quorum)
        return sneck__quorum_force_release_start(out, lock, link);
    struct force_release *f = sneck__lock_op_new(sizeof *f, &force_class, lock, link);
    if (!f)
        return SNECK_NO_MEMORY;
    if (f->base.op.status == SNECK_PENDING)
        sneck__lock_op_script(&f->base, lock->kind->force_release, 0, NULL, NULL);
    *out = &f->base.op;
    return SNECK_OK;
}

int sneck_op_was_held(bool *out, const sneck_op *op)
{
    if (sneck__is_quorum_op(op))
        return sneck__quorum_was_held(out, op);
    if (op->class != &force_class || op->status != SNECK_OK)
        return SNECK_INVALID;
    *out = ((const struct force_release *)op)->was_held;
    return SNECK_OK;
}
