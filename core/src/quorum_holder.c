/* quorum_holder.c - the op that asks all servers of a quorum who has a lock: whoever has a
 * majority, for as long as a majority says; nobody, where no token can have one. It changes
 * nothing. */
#include "quorum_op.h"

#include <stdlib.h>
#include <string.h>

/* What a server says. */
struct holding {
    char *token;        /* owned; NULL: nobody has it, or it did not answer */
    size_t len;
    int64_t ttl_ms;     /* -1: it never ends */
};

struct quorum_ask_holder {
    struct quorum_op q;
    struct holding holdings[SNECK_QUORUM_MAX];
    sneck_holder holder;    /* valid once the op has ended OK */
};

static enum voice holder_read(struct quorum_op *q, struct member *m, const redisReply *reply)
{
    struct holding *h = &((struct quorum_ask_holder *)q)->holdings[m - q->members];
    const redisReply *token = sneck__held_token(reply);
    if (!token)
        return FAILED;
    if (token->type == REDIS_REPLY_NIL)
        return YES;
    if (!(h->token = malloc((size_t)token->len + 1)))
        return FAILED;
    memcpy(h->token, token->str, (size_t)token->len);
    h->len = (size_t)token->len;
    h->ttl_ms = reply->element[1]->integer;
    return YES;
}

static bool is_same(const struct holding *a, const struct holding *b)
{
    return b->token && a->len == b->len && memcmp(a->token, b->token, a->len) == 0;
}

static bool outlasts(int64_t ttl_ms, int64_t other_ms)
{
    return ttl_ms < 0 || (other_ms >= 0 && ttl_ms >= other_ms);
}

/* How many have the token of this one, and for how long that many do. */
static size_t count_same(const struct quorum_ask_holder *h, size_t place, int64_t *ttl_ms)
{
    const struct holding *own = &h->holdings[place];
    size_t count = 0;
    *ttl_ms = own->ttl_ms;
    for (size_t i = 0; own->token && i < h->q.count; i++)
        if (is_same(own, &h->holdings[i])) {
            count++;
            if (outlasts(*ttl_ms, h->holdings[i].ttl_ms))
                *ttl_ms = h->holdings[i].ttl_ms;
        }
    return count;
}

static void holder_decide(struct quorum_op *q)
{
    struct quorum_ask_holder *h = (struct quorum_ask_holder *)q;
    size_t most = 0;
    for (size_t i = 0; i < q->count; i++) {
        int64_t ttl_ms;
        size_t count = count_same(h, i, &ttl_ms);
        most = count > most ? count : most;
        if (count < q->majority)
            continue;
        sneck__token_read(&h->holder, h->holdings[i].token, h->holdings[i].len, ttl_ms);
        sneck__op_end(&q->base.op, SNECK_OK, "%s", "");
        return;
    }
    if (!sneck__quorum_may_agree(q))
        sneck__quorum_end(q, SNECK_QUORUM, "have told who holds it");
    else if (most + q->silent + q->failed < q->majority)
        sneck__op_end(&q->base.op, SNECK_OK, "%s", ""); /* nobody */
    else if (q->silent == 0) /* who has failed may have the same token */
        sneck__quorum_end_counted(q, SNECK_QUORUM, most, "name the same holder");
}

static void quorum_holder_clear(sneck_op *op)
{
    struct quorum_ask_holder *h = (struct quorum_ask_holder *)op;
    for (size_t i = 0; i < h->q.count; i++)
        free(h->holdings[i].token);
    sneck__quorum_clear(op);
}

static const struct op_class quorum_holder_class = {
    .timer = sneck__quorum_timer,
    .leave = sneck__quorum_leave,
    .clear = quorum_holder_clear,
};

static const struct quorum_kind quorum_holder_kind = {holder_read, holder_decide};

int sneck__quorum_holder_start(sneck_op **out, sneck_lock *lock, sneck_link *link)
{
    struct quorum_ask_holder *h = sneck__quorum_op_new(sizeof *h, &quorum_holder_class,
                                                       &quorum_holder_kind, lock, link);
    if (!h)
        return SNECK_NO_MEMORY;
    if (h->q.base.op.status == SNECK_PENDING)
        sneck__quorum_ask_script(&h->q, &script_holder, 0, NULL, NULL);
    *out = &h->q.base.op;
    return SNECK_OK;
}

int sneck__quorum_holder(sneck_holder *out, const sneck_op *op)
{
    if (op->class != &quorum_holder_class || op->status != SNECK_OK)
        return SNECK_INVALID;
    *out = ((const struct quorum_ask_holder *)op)->holder;
    return SNECK_OK;
}
