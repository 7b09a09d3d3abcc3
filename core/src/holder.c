/* holder.c - the op that asks who has a lock. It changes nothing. */
#include "lock.h"
#include "op.h"

#include <string.h>

struct ask_holder {
    sneck_op op;
    sneck_lock *lock;       /* a reference */
    sneck_holder holder;    /* valid once the op has ended OK */
};

static bool holder_reply(sneck_op *op, redisReply *reply)
{
    struct ask_holder *h = (struct ask_holder *)op;
    bool pair = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                reply->element[1]->type == REDIS_REPLY_INTEGER;
    const redisReply *token = pair ? reply->element[0] : NULL;
    if (token && token->type == REDIS_REPLY_STRING)
        sneck__token_read(&h->holder, token->str, (size_t)token->len,
                          reply->element[1]->integer);
    if (token && (token->type == REDIS_REPLY_STRING || token->type == REDIS_REPLY_NIL))
        sneck__op_end(op, SNECK_OK, "%s", "");
    else
        sneck__op_end_reply(op, reply, h->lock->what);
    return false;
}

static void holder_lost(sneck_op *op, bool sent)
{
    (void)sent; /* it only reads: that the reply is lost leaves no doubt */
    sneck__op_end_lost(op, false, ((struct ask_holder *)op)->lock->what);
}

static void holder_clear(sneck_op *op)
{
    sneck__lock_drop(((struct ask_holder *)op)->lock);
}

static const struct op_class holder_class = {
    holder_reply, holder_lost, NULL, NULL, holder_clear,
};

int sneck_lock_holder_start(sneck_op **out, sneck_lock *lock, sneck_link *link)
{
    struct ask_holder *h = sneck__op_new(sizeof *h, &holder_class, lock->client, link);
    if (!h)
        return SNECK_NO_MEMORY;
    h->lock = sneck__lock_share(lock);
    if (h->op.status == SNECK_PENDING)
        sneck__op_script(&h->op, &script_holder, lock->name, lock->name_len, 0, NULL, NULL);
    *out = &h->op;
    return SNECK_OK;
}

int sneck_op_holder(sneck_holder *out, const sneck_op *op)
{
    if (op->class != &holder_class || op->status != SNECK_OK)
        return SNECK_INVALID;
    *out = ((const struct ask_holder *)op)->holder;
    return SNECK_OK;
}
