/* quorum_busy.c - what an acquire of a quorum's lock tells of those who kept it away. Their
 * servers say only "no" to a SET, so before it gives up it asks all of them once who holds
 * the lock: holder.lua also says that the key is none. */
#include "quorum_busy.h"

#include <stdio.h>
#include <string.h>

void sneck__quorum_busy_ask(struct quorum_op *q, struct quorum_busy *busy)
{
    sneck_op *op = &q->base.op;
    memset(busy, 0, sizeof *busy);
    sneck__quorum_round(q);
    sneck__lock_op_compose(&q->base, &script_holder, 0, NULL, NULL);
    if (!sneck__quorum_format(q, (struct command){op->argc, op->argv, op->argv_len}))
        return;
    for (size_t i = 0; i < q->count; i++)
        sneck__quorum_ask(q, &q->members[i]);
}

static size_t kept_of(size_t len)
{
    return len < OWN_TOKEN_MAX ? len : OWN_TOKEN_MAX;
}

static void keep_first(struct quorum_busy *busy, struct member *m, const redisReply *token,
                       int64_t ttl_ms)
{
    sneck_holder holder;
    char who[HOLDER_TOLD_SIZE];
    busy->len = (size_t)token->len;
    busy->first = (size_t)(m - m->whole->members);
    memcpy(busy->token, token->str, kept_of(busy->len));
    sneck__token_read(&holder, token->str, (size_t)token->len, ttl_ms);
    sneck__holder_tell(&holder, who);
    sneck__quorum_keep_why(m, who);
}

static bool is_first(const struct quorum_busy *busy, const redisReply *token)
{
    return busy->len == (size_t)token->len &&
           memcmp(busy->token, token->str, kept_of(busy->len)) == 0;
}

enum voice sneck__quorum_busy_read(struct quorum_op *q, struct quorum_busy *busy,
                                   struct member *m, const redisReply *reply)
{
    const redisReply *token = sneck__held_token(reply);
    if (!token)
        return FAILED;
    if (token->type == REDIS_REPLY_NIL)
        return YES;
    if (busy->len == 0)
        keep_first(busy, m, token, reply->element[1]->integer);
    else if (is_first(busy, token))
        busy->others |= (uint32_t)1 << (m - q->members);
    else
        m->why = "held by yet another";
    return NO;
}

bool sneck__quorum_busy_known(const struct quorum_op *q)
{
    return q->silent == 0 || sneck__quorum_denies(q) || sneck__quorum_refuses(q);
}

/* The first one speaks for all that said the same. */
static void name_once(struct quorum_op *q, const struct quorum_busy *busy)
{
    char text[HOLDER_TOLD_SIZE + 32];
    size_t servers = 1;
    for (size_t i = 0; i < q->count; i++)
        if (busy->others >> i & 1) {
            servers++;
            sneck__quorum_speak(&q->members[i], YES);
        }
    if (servers == 1)
        return;
    struct member *first = &q->members[busy->first];
    snprintf(text, sizeof text, "%s; so at %zu servers", first->why, servers);
    sneck__quorum_keep_why(first, text);
}

void sneck__quorum_busy_end(struct quorum_op *q, const struct quorum_busy *busy, int status,
                            size_t granted)
{
    if (sneck__quorum_refuses(q))
        status = SNECK_QUORUM;
    name_once(q, busy);
    sneck__quorum_end_counted(q, status, granted, "granted it");
}
