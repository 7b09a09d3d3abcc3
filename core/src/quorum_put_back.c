/* quorum_put_back.c - a server that came back without the token of a quorum's lock is given it
 * again, so that a majority has it also when one server after the other loses what it had.
 *
 * Only a majority's extend makes that safe: while its lease is valid nobody else can have a
 * majority, and one more server with the token lets nobody in. What is put back counts in
 * later extends alone, and lasts longer than the client believes. It is written only where no
 * key is, and only while the lock is surely ours; the lock knows of it, so that the release goes
 * behind it.
 *
 * An extend does not wait for all servers. What one says later, that it has no key, is heard by
 * a part which the extend leaves behind on the connection.
 */
#include "quorum_op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct late_answer {
    sneck_op op;        /* on the connection to that server; frees itself when it was answered */
    sneck_lock *lock;   /* a reference */
    struct grant grant; /* what is granted by putting it back */
    int64_t ttl_ms;
    size_t token_len;
    char token[];
};

static size_t in_decimal(char out[24], int64_t number)
{
    return (size_t)snprintf(out, 24, "%lld", (long long)number);
}

/* Behind the token, as the server may have lost both. */
static void give_fence_again(sneck_lock *lock, sneck_link *link, const char *token, size_t len)
{
    char text[24];
    int64_t fence = lock->fence_key.text ? sneck_lock_fence(lock) : 0;
    if (fence == 0)
        return;
    size_t text_len = in_decimal(text, fence);
    sneck__link_send_unheard(link, &script_raise_fence, 5,
        (const char *const[]){"2", lock->name, lock->fence_key.text, token, text},
        (const size_t[]){1, lock->name_len, lock->fence_key.len, len, text_len});
}

static void give_again(sneck_lock *lock, sneck_link *link, struct grant grant, const char *token,
                     size_t len, int64_t ttl_ms)
{
    char ttl[24];
    if (sneck__link_stuck(link) || !sneck__lock_note_grant(lock, token, len, grant))
        return;
    size_t ttl_len = in_decimal(ttl, ttl_ms);
    sneck__link_send(link, NULL, (struct command){6,
        (const char *const[]){"SET", lock->name, token, "NX", "PX", ttl},
        (const size_t[]){3, lock->name_len, len, 2, 2, ttl_len}});
    give_fence_again(lock, link, token, len);
}

static void free_late_answer(struct late_answer *l)
{
    sneck_lock *lock = l->lock;
    sneck__op_leave_part(&l->op);
    free(l);
    sneck__lock_drop(lock);
}

static bool late_reply(sneck_op *op, redisReply *reply)
{
    struct late_answer *l = (struct late_answer *)op;
    if (sneck__has_no_key(reply))
        give_again(l->lock, op->link, l->grant, l->token, l->token_len, l->ttl_ms);
    free_late_answer(l);
    return false;
}

static void late_lost(sneck_op *op, bool sent)
{
    (void)sent;
    free_late_answer((struct late_answer *)op);
}

static const struct op_class late_answer_class = {
    .reply = late_reply,
    .lost = late_lost,
};

/* Without memory the next extend finds it out. */
static void hear_later(sneck_lock *lock, struct member *m, struct grant grant, const char *token,
                       size_t len, int64_t ttl_ms)
{
    struct late_answer *l = calloc(1, sizeof *l + len);
    if (!l)
        return;
    l->lock = sneck__lock_share(lock);
    l->grant = grant;
    l->ttl_ms = ttl_ms;
    l->token_len = len;
    memcpy(l->token, token, len);
    sneck__op_begin_part(&l->op, &late_answer_class, m->op.link);
    sneck__link_hand_over(m->op.link, &m->op, &l->op);
}

bool sneck__has_no_key(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_INTEGER && reply->integer == NO_KEY;
}

void sneck__quorum_put_back(struct quorum_op *q, const char *token, size_t len, int64_t ttl_ms)
{
    sneck_lock *lock = q->base.lock;
    for (size_t i = 0; i < q->count; i++) {
        struct member *m = &q->members[i];
        struct grant grant = {q->base.op.link->number, (uint32_t)1 << i};
        if (m->voice == NO && m->number == NO_KEY)
            give_again(lock, m->op.link, grant, token, len, ttl_ms);
        else if (m->voice == SILENT && m->op.in_flight > 0)
            hear_later(lock, m, grant, token, len, ttl_ms);
    }
}
