/* quorum_force.c - the op that takes a quorum's lock away, on all servers, from whoever
 * holds it. A majority has to answer; it was held if a majority held it. */
#include "quorum_op.h"

struct quorum_force {
    struct quorum_op q;
    bool was_held;          /* valid once the op has ended OK */
};

static enum voice force_read(struct quorum_op *q, struct member *m, const redisReply *reply)
{
    (void)q;
    (void)m;
    if (reply->type != REDIS_REPLY_INTEGER)
        return FAILED;
    return reply->integer != 0 ? YES : NO;
}

static void end_force(struct quorum_force *f, bool was_held)
{
    f->was_held = was_held;
    sneck__op_end(&f->q.base.op, SNECK_OK, "%s", "");
}

static void force_decide(struct quorum_op *q)
{
    struct quorum_force *f = (struct quorum_force *)q;
    if (sneck__quorum_agrees(q) || sneck__quorum_denies(q))
        end_force(f, sneck__quorum_agrees(q));
    else if (q->silent == 0 && q->yes + q->no >= q->majority)
        end_force(f, q->yes > 0); /* who has failed may have held it */
    else if (q->yes + q->no + q->silent < q->majority)
        sneck__quorum_end(q, SNECK_QUORUM, "had it taken away");
}

static void quorum_force_cancel(sneck_op *op)
{
    sneck__op_end(op, SNECK_UNKNOWN, "%s: cancelled while it was being taken away",
                  ((struct quorum_op *)op)->base.lock->what);
}

static const struct op_class quorum_force_class = {
    .timer = sneck__quorum_timer,
    .cancel = quorum_force_cancel,
    .leave = sneck__quorum_leave,
    .clear = sneck__quorum_clear,
};

static const struct quorum_kind quorum_force_kind = {force_read, force_decide};

int sneck__quorum_force_release_start(sneck_op **out, sneck_lock *lock, sneck_link *link)
{
    struct quorum_force *f = sneck__quorum_op_new(sizeof *f, &quorum_force_class,
                                                  &quorum_force_kind, lock, link);
    if (!f)
        return SNECK_NO_MEMORY;
    if (f->q.base.op.status == SNECK_PENDING)
        sneck__quorum_ask_script(&f->q, &script_force_release, 0, NULL, NULL);
    *out = &f->q.base.op;
    return SNECK_OK;
}

int sneck__quorum_was_held(bool *out, const sneck_op *op)
{
    if (op->class != &quorum_force_class || op->status != SNECK_OK)
        return SNECK_INVALID;
    *out = ((const struct quorum_force *)op)->was_held;
    return SNECK_OK;
}
