/* release.c - the op that gives a lock back: compare, and hand on or delete, in
 * one script.
 *
 * GET, compare and DEL from the client would delete the next holder's lock when
 * ours expires in between. Until a definite answer the token is kept, so that a
 * release whose reply was lost can be repeated.
 */
#include "lock_op.h"
#include "quorum_op.h"

#include <stdio.h>
#include <stdlib.h>

struct release {
    struct lock_op base;
    struct token_release pending;
    char mark[RELEASE_MARK_SIZE];
};

/* What the script says of a lock that is not ours. */
static const char *how_lost(long long reply)
{
    return reply == 0 ? ", and has another owner now"
         : reply == LOST_MOVED ? LOST_MOVED_TEXT : "";
}

static bool release_reply(sneck_op *op, redisReply *reply)
{
    struct release *r = (struct release *)op;
    if (reply->type != REDIS_REPLY_INTEGER) {
        sneck__op_end_reply(op, reply, r->base.lock->what);
        sneck__lock_undo_release(r->base.lock, &r->pending);
        return false;
    }
    if (sneck__lock_end_release(r->base.lock, &r->pending, reply->integer > 0)) {
        sneck__op_end(op, SNECK_OK, "%s", "");
        if (reply->integer == 3)
            sneck__client_count_wakeups(r->base.lock->client, false);
        return false;
    }
    atomic_fetch_add(&r->base.lock->counters->losses, 1);
    sneck__op_end(op, SNECK_NOT_OWNER, "%s: lost before its release: it had expired, or was"
                  " deleted%s; use a longer ttl, or extend it in time", r->base.lock->what,
                  how_lost(reply->integer));
    return false;
}

static void release_lost(sneck_op *op, bool sent)
{
    struct release *r = (struct release *)op;
    sneck__op_end_lost(op, sent, r->base.lock->what);
    if (sent)
        sneck__lock_doubt_release(r->base.lock, &r->pending);
    else
        sneck__lock_undo_release(r->base.lock, &r->pending);
}

static void release_cancel(sneck_op *op)
{
    struct release *r = (struct release *)op;
    if (sneck__op_withdraw(op)) {
        sneck__lock_undo_release(r->base.lock, &r->pending);
        return;
    }
    sneck__op_end(op, SNECK_UNKNOWN, "%s: cancelled while its release was under way; release"
                  " again to be certain", r->base.lock->what);
    sneck__lock_doubt_release(r->base.lock, &r->pending);
}

/* One that is under way yet has ended for want of memory, before anything was done. */
static void release_clear(sneck_op *op)
{
    struct release *r = (struct release *)op;
    sneck__lock_undo_release(r->base.lock, &r->pending);
    sneck__lock_op_clear(op);
}

static const struct op_class release_class = {
    .reply = release_reply,
    .lost = release_lost,
    .cancel = release_cancel,
    .clear = release_clear,
};

size_t sneck__lock_op_mark(const struct lock_op *o, char out[RELEASE_MARK_SIZE])
{
    const struct inbox *inbox = &o->op.link->inbox;
    out[0] = '\0';
    if (inbox->state != INBOX_READY || !o->lock->kind->queues)
        return 0;
    return (size_t)snprintf(out, RELEASE_MARK_SIZE, "%s %lld", inbox->id,
                            (long long)sneck__now_ms());
}

bool sneck__lock_op_begin_release(struct lock_op *o, const uint64_t *only,
                                  struct token_release *release)
{
    sneck_lock *lock = o->lock;
    uint64_t number;
    int status = sneck__lock_copy_token(lock, &release->token, &release->token_len, &number);
    if (status != SNECK_OK)
        sneck__op_end(&o->op, SNECK_NO_MEMORY, "%s: out of memory", lock->what);
    else if (only && *only != number)
        sneck__op_end(&o->op, SNECK_NOT_OWNER, "%s: not held any more: it was lost or released,"
                      " and this object has been acquired anew since", lock->what);
    else if (!release->token && sneck__lock_lease(lock).lost)
        sneck__op_end(&o->op, SNECK_NOT_OWNER, "%s: lost before its release, as its renewal"
                      " or an extend found: it had expired, or was deleted or taken%s", lock->what,
                      sneck__lock_lease(lock).moved ? LOST_MOVED_TEXT : "");
    else if (!release->token)
        sneck__op_end(&o->op, SNECK_NOT_OWNER, "%s: not held by this object: it was not acquired,"
                      " or released already", lock->what);
    if (o->op.status != SNECK_PENDING)
        return false;
    sneck__renewal_end(lock, number);
    sneck__lock_begin_release(lock, release);
    return true;
}

static void begin_release(struct release *r, const uint64_t *only)
{
    const struct token_release *p = &r->pending;
    if (!sneck__lock_op_begin_release(&r->base, only, &r->pending))
        return;
    size_t mark_len = sneck__lock_op_mark(&r->base, r->mark);
    sneck__lock_op_script(&r->base, r->base.lock->kind->release, mark_len ? 3 : 2,
                          (const char *const[]){p->token, "", r->mark},
                          (const size_t[]){p->token_len, 0, mark_len});
    if (r->base.op.status != SNECK_PENDING)
        sneck__lock_undo_release(r->base.lock, &r->pending);
}

static int start_release(sneck_op **out, sneck_lock *lock, sneck_link *link, const uint64_t *only)
{
    if (lock->client->quorum)
        return sneck__quorum_release_start(out, lock, link, only);
    struct release *r = sneck__lock_op_new(sizeof *r, &release_class, lock, link);
    if (!r)
        return SNECK_NO_MEMORY;
    if (r->base.op.status == SNECK_PENDING)
        begin_release(r, only);
    *out = &r->base.op;
    return SNECK_OK;
}

int sneck_lock_release_start(sneck_op **out, sneck_lock *lock, sneck_link *link)
{
    return start_release(out, lock, link, NULL);
}

int sneck_lock_release_lease_start(sneck_op **out, sneck_lock *lock, sneck_link *link,
                                   uint64_t number)
{
    return start_release(out, lock, link, &number);
}
