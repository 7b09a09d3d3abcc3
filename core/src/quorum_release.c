/* quorum_release.c - the op that gives a quorum's lock back: the release script to all
 * servers. It has ended when a majority has deleted the token, or so many never had it that
 * none can; where too few answer for either, the token is kept, to be released again. */
#include "client.h"
#include "quorum_op.h"

#include <stdlib.h>

struct quorum_release {
    struct quorum_op q;
    struct token_release pending;
};

static enum voice release_read(struct quorum_op *q, struct member *m, const redisReply *reply)
{
    (void)q;
    if (reply->type != REDIS_REPLY_INTEGER)
        return FAILED;
    if (reply->integer > 0)
        return YES;
    m->why = reply->integer == 0 ? "another holds it" : "it was not there any more";
    return NO;
}

/* Where the release has deleted the token, the grant was done. */
static uint32_t find_unreleased(const struct quorum_op *q, const struct grant *grant)
{
    uint32_t servers = grant->servers;
    for (size_t i = 0; i < q->count; i++)
        if (q->members[i].voice == YES)
            servers &= ~((uint32_t)1 << i);
    return servers;
}

/* What goes by this link is behind its grants anyway, but where so much waits to leave that
 * nothing is asked any more; other links are asked to send it as well. Not before this release
 * is decided: it would not find what they have deleted. */
static void follow_grants(const struct quorum_release *r)
{
    const struct quorum_op *q = &r->q;
    const struct token_release *p = &r->pending;
    sneck_lock *lock = q->base.lock;
    for (size_t g = 0; g < p->grant_count; g++) {
        struct grant grant = {p->grants[g].link, find_unreleased(q, &p->grants[g])};
        if (grant.servers && grant.link != q->base.op.link->number)
            sneck__lock_clean_up_behind(lock, &grant, p->token, p->token_len);
        for (size_t i = 0; grant.link == q->base.op.link->number && i < q->count; i++)
            if (grant.servers >> i & 1 && sneck__link_stuck(q->members[i].op.link))
                sneck__lock_clean_up(lock, q->members[i].op.link, p->token, p->token_len, "", 0);
    }
}

/* Where the release could not leave, or was lost, the token may be. The lock is given up, so it
 * may be deleted there whenever a connection is open again. Before the release ends, which frees
 * the token. */
static void release_late(struct quorum_release *r)
{
    const struct token_release *p = &r->pending;
    follow_grants(r);
    for (size_t i = 0; i < r->q.count; i++) {
        const struct member *m = &r->q.members[i];
        if (m->voice == FAILED && m->op.link->wire.state == WIRE_CLOSED)
            sneck__lock_clean_up(r->q.base.lock, m->op.link, p->token, p->token_len, "", 0);
    }
}

static void not_released(struct quorum_release *r)
{
    sneck_lock *lock = r->q.base.lock;
    release_late(r);
    if (sneck__lock_end_release(lock, &r->pending, false)) {
        sneck__op_end(&r->q.base.op, SNECK_OK, "%s", "");
        return;
    }
    atomic_fetch_add(&lock->counters->losses, 1);
    sneck__quorum_end(&r->q, SNECK_NOT_OWNER, "still had it, so it was lost before its release");
}

static void too_few(struct quorum_release *r)
{
    sneck_lock *lock = r->q.base.lock;
    if (sneck__quorum_doubtful(&r->q))
        sneck__lock_doubt_release(lock, &r->pending);
    else
        sneck__lock_undo_release(lock, &r->pending);
    sneck__quorum_end(&r->q, SNECK_QUORUM, "have released it");
}

static void release_decide(struct quorum_op *q)
{
    struct quorum_release *r = (struct quorum_release *)q;
    if (sneck__quorum_agrees(q)) {
        release_late(r);
        sneck__lock_end_release(q->base.lock, &r->pending, true);
        sneck__op_end(&q->base.op, SNECK_OK, "%s", "");
    } else if (sneck__quorum_denies(q)) {
        not_released(r);
    } else if (!sneck__quorum_may_agree(q) && !sneck__quorum_may_deny(q)) {
        too_few(r);
    }
}

static void quorum_release_cancel(sneck_op *op)
{
    struct quorum_release *r = (struct quorum_release *)op;
    sneck__op_end(op, SNECK_UNKNOWN, "%s: cancelled while its release was under way; release"
                  " again to be certain", r->q.base.lock->what);
    sneck__lock_doubt_release(r->q.base.lock, &r->pending);
}

static void quorum_release_clear(sneck_op *op)
{
    struct quorum_release *r = (struct quorum_release *)op;
    sneck__lock_undo_release(r->q.base.lock, &r->pending);
    sneck__quorum_clear(op);
}

static const struct op_class quorum_release_class = {
    .timer = sneck__quorum_timer,
    .cancel = quorum_release_cancel,
    .leave = sneck__quorum_leave,
    .clear = quorum_release_clear,
};

static const struct quorum_kind quorum_release_kind = {release_read, release_decide};

static void ask_release(struct quorum_release *r)
{
    const struct token_release *p = &r->pending;
    sneck__quorum_ask_script(&r->q, &script_release, 2, (const char *const[]){p->token, ""},
                             (const size_t[]){p->token_len, 0});
}

/* The release goes by the link that a grant is under way on, if nobody else has that. */
static struct quorum_release *new_release(sneck_lock *lock, sneck_link *link)
{
    sneck_link *borrowed = NULL;
    uint64_t number = link ? 0 : sneck__lock_grant_link(lock);
    if (number > 0 && !(borrowed = sneck__client_borrow_this(lock->client, number)))
        return NULL;
    struct quorum_release *r = sneck__quorum_op_new(sizeof *r, &quorum_release_class,
                                                    &quorum_release_kind, lock,
                                                    borrowed ? borrowed : link);
    if (borrowed && r)
        r->q.base.op.pooled = r->q.base.op.alone = true;
    else if (borrowed)
        sneck__client_give_back(borrowed);
    return r;
}

int sneck__quorum_release_start(sneck_op **out, sneck_lock *lock, sneck_link *link,
                                const uint64_t *only)
{
    struct quorum_release *r = new_release(lock, link);
    if (!r)
        return SNECK_NO_MEMORY;
    if (r->q.base.op.status == SNECK_PENDING &&
        sneck__lock_op_begin_release(&r->q.base, only, &r->pending))
        ask_release(r);
    *out = &r->q.base.op;
    return SNECK_OK;
}
