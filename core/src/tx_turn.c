/* tx_turn.c - the turn to write a hot key: a lock beside it.
 *
 * After three conflicts in a row a writer queues for that lock, and so does every
 * writer that sees somebody hold it: they go one after the other then. The lock is
 * advice only. What makes a commit right is WATCH, also against writers that know
 * nothing of the lock; so it is no harm if it cannot be had, or ends too early.
 *
 *   held --> released by EXEC, with the writes
 *      \----> released by an op of its own, if there is no EXEC or it did not do it
 *
 * EXEC hands the turn on at once, so that the next writer reads while this one still
 * waits for the reply. A command that is refused when it is queued would spoil the
 * transaction; but who acquired the lock by a script may run the script that releases it.
 */
#include "tx_op.h"

#define ORDER_TTL_MS 2000
#define ORDER_WAIT_MS 1000

/* Nobody has asked for these locks: what becomes of them is in no statistics. */
static struct counters uncounted;

static void make_order(sneck_tx *tx)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.ttl_ms = ORDER_TTL_MS;
    if (tx->order)
        return;
    if (sneck_lock_new(&tx->order, tx->client, tx->turn.text, tx->turn.len, &options, NULL) ==
        SNECK_OK)
        tx->order->counters = &uncounted;
    else
        tx->order = NULL;
}

/* The op goes on when its child has ended, which it may have done already. */
static void wait_for_child(struct tx_op *o, void (*then)(struct tx_op *o))
{
    o->then = then;
    o->child->parent = &o->op;
    if (o->child->status != SNECK_PENDING)
        sneck__op_set_timer(&o->op, 0);
}

bool sneck__tx_take_turn(struct tx_op *o, void (*then)(struct tx_op *o))
{
    sneck_tx *tx = o->tx;
    int64_t left = tx->end_ms - sneck__now_ms();
    make_order(tx);
    if (!tx->order || left <= 0 ||
        sneck_lock_acquire_start(&o->child, tx->order, tx->link,
                                 sneck__least_ms(left, ORDER_WAIT_MS)) != SNECK_OK)
        return false;
    wait_for_child(o, then);
    return true;
}

void sneck__tx_note_turn(struct tx_op *o)
{
    sneck_tx *tx = o->tx;
    struct counters *counters = &tx->client->counters;
    if (!o->child)
        return;
    tx->ordered = o->child->status == SNECK_OK;
    tx->by_script = o->child->argc > 0;
    sneck__note_busy(counters, tx->hot,
                     !tx->ordered || sneck__was_busy(counters, tx->order->hash));
    sneck_op_free(o->child);
    o->child = NULL;
}

bool sneck__tx_send_release(struct tx_op *o)
{
    sneck_lock *order = o->tx->order;
    struct token_release *p = &o->passing;
    if (!o->tx->ordered || !o->tx->by_script)
        return true;
    if (sneck__lock_copy_token(order, &p->token, &p->token_len, NULL) != SNECK_OK)
        return false;
    if (!p->token)
        return true;
    sneck__lock_begin_release(order, p);
    bool ok = sneck__link_send(o->op.link, &o->op, (struct command){7,
        (const char *const[]){"EVALSHA", script_release.sha1, "2", order->name,
                              order->beside_key.text, p->token, ""},
        (const size_t[]){7, 40, 1, order->name_len, order->beside_key.len, p->token_len, 0}});
    o->op.in_flight += ok;
    return ok;
}

void sneck__tx_note_release(struct tx_op *o, const redisReply *reply)
{
    sneck_tx *tx = o->tx;
    if (reply->type != REDIS_REPLY_INTEGER) { /* NOSCRIPT, perhaps */
        sneck__lock_undo_release(tx->order, &o->passing);
        return;
    }
    tx->ordered = false;
    sneck__lock_end_release(tx->order, &o->passing, reply->integer > 0);
    if (reply->integer == 3)
        sneck__client_count_wakeups(tx->client, false);
}

bool sneck__tx_pass_turn(struct tx_op *o, void (*then)(struct tx_op *o))
{
    sneck_tx *tx = o->tx;
    if (!tx->ordered || sneck_lock_release_start(&o->child, tx->order, tx->link) != SNECK_OK)
        return false;
    tx->ordered = false;
    wait_for_child(o, then);
    return true;
}
