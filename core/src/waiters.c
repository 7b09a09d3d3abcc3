/* waiters.c - the op that lists who waits for a lock. It changes nothing. */
#include "lock_op.h"

#include <stdlib.h>
#include <string.h>

struct ask_waiters {
    struct lock_op base;
    sneck_waiter *list;     /* owned; NULL when none waits */
    size_t count;
};

/* Reads "token inbox ttl". */
static void read_waiter(sneck_waiter *out, const redisReply *entry, int64_t waited_ms)
{
    sneck_holder who;
    const char *space = memchr(entry->str, ' ', (size_t)entry->len);
    size_t len = space ? (size_t)(space - entry->str) : (size_t)entry->len;
    sneck__token_read(&who, entry->str, len, 0);
    *out = (sneck_waiter){.pid = who.pid, .waited_ms = waited_ms > 0 ? waited_ms : 0};
    memcpy(out->host, who.host, sizeof out->host);
    memcpy(out->label, who.label, sizeof out->label);
}

static bool is_list(const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements % 2 != 1)
        return false;
    for (size_t i = 0; i < reply->elements; i++)
        if (reply->element[i]->type != REDIS_REPLY_STRING)
            return false;
    return true;
}

static bool waiters_reply(sneck_op *op, redisReply *reply)
{
    struct ask_waiters *w = (struct ask_waiters *)op;
    if (!is_list(reply)) {
        sneck__op_end_reply(op, reply, w->base.lock->what);
        return false;
    }
    size_t count = reply->elements / 2;
    w->list = count ? malloc(count * sizeof *w->list) : NULL;
    if (count && !w->list) {
        sneck__op_end(op, SNECK_NO_MEMORY, "%s: out of memory", w->base.lock->what);
        return false;
    }
    w->count = count;
    double now_us = strtod(reply->element[0]->str, NULL);
    for (size_t i = 0; i < count; i++) {
        double since_us = strtod(reply->element[2 + 2 * i]->str, NULL);
        read_waiter(&w->list[i], reply->element[1 + 2 * i],
                    (int64_t)((now_us - since_us) / 1000));
    }
    sneck__op_end(op, SNECK_OK, "%s", "");
    return false;
}

static void waiters_lost(sneck_op *op, bool sent)
{
    (void)sent; /* it only reads */
    sneck__op_end_lost(op, false, ((struct ask_waiters *)op)->base.lock->what);
}

static void waiters_clear(sneck_op *op)
{
    free(((struct ask_waiters *)op)->list);
    sneck__lock_op_clear(op);
}

static const struct op_class waiters_class = {
    .reply = waiters_reply,
    .lost = waiters_lost,
    .clear = waiters_clear,
};

int sneck_lock_waiters_start(sneck_op **out, sneck_lock *lock, sneck_link *link)
{
    struct ask_waiters *w = sneck__lock_op_new(sizeof *w, &waiters_class, lock, link);
    if (!w)
        return SNECK_NO_MEMORY;
    if (w->base.op.status == SNECK_PENDING && (lock->client->quorum || !lock->kind->queues))
        sneck__op_end(&w->base.op, SNECK_OK, "%s", ""); /* nobody queues there */
    else if (w->base.op.status == SNECK_PENDING)
        sneck__lock_op_script(&w->base, &script_waiters, 0, NULL, NULL);
    *out = &w->base.op;
    return SNECK_OK;
}

int sneck_op_waiters(const sneck_waiter **out, size_t *count, const sneck_op *op)
{
    if (op->class != &waiters_class || op->status != SNECK_OK)
        return SNECK_INVALID;
    *out = ((const struct ask_waiters *)op)->list;
    *count = ((const struct ask_waiters *)op)->count;
    return SNECK_OK;
}

void sneck_waiters_free(sneck_waiter *waiters)
{
    free(waiters);
}

sneck_waiter *sneck__waiters_take(sneck_op *op, size_t *count)
{
    struct ask_waiters *w = (struct ask_waiters *)op;
    sneck_waiter *list = w->list;
    *count = w->count;
    w->list = NULL;
    return list;
}
