/* holder.c - the op that asks who has a lock. It changes nothing. */
#include "lock_op.h"
#include "quorum_op.h"

struct ask_holder {
    struct lock_op base;
    sneck_holder holder;    /* valid once the op has ended OK */
};

static bool holder_reply(sneck_op *op, redisReply *reply)
{
    struct ask_holder *h = (struct ask_holder *)op;
    const redisReply *token = sneck__held_token(reply);
    if (token && token->type == REDIS_REPLY_STRING)
        sneck__token_read(&h->holder, token->str, (size_t)token->len,
                          reply->element[1]->integer);
    if (token)
        sneck__op_end(op, SNECK_OK, "%s", "");
    else
        sneck__op_end_reply(op, reply, h->base.lock->what);
    return false;
}

static void holder_lost(sneck_op *op, bool sent)
{
    (void)sent; /* it only reads: that the reply is lost leaves no doubt */
    sneck__op_end_lost(op, false, ((struct ask_holder *)op)->base.lock->what);
}

static const struct op_class holder_class = {
    .reply = holder_reply,
    .lost = holder_lost,
    .clear = sneck__lock_op_clear,
};

int sneck_lock_holder_start(sneck_op **out, sneck_lock *lock, sneck_link *link)
{
    if (lock->client->quorum)
        return sneck__quorum_holder_start(out, lock, link);
    struct ask_holder *h = sneck__lock_op_new(sizeof *h, &holder_class, lock, link);
    if (!h)
        return SNECK_NO_MEMORY;
    if (h->base.op.status == SNECK_PENDING)
        sneck__lock_op_script(&h->base, lock->kind->holder, 0, NULL, NULL);
    *out = &h->base.op;
    return SNECK_OK;
}

int sneck_op_holder(sneck_holder *out, const sneck_op *op)
{
    if (sneck__is_quorum_op(op))
        return sneck__quorum_holder(out, op);
    if (op->class != &holder_class || op->status != SNECK_OK)
        return SNECK_INVALID;
    *out = ((const struct ask_holder *)op)->holder;
    return SNECK_OK;
}
