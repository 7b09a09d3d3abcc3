/* tx_turn.c - the turn to write a hot key: a lock beside it.
 *
 * After three conflicts in a row a writer queues for that lock, and so does every
 * writer that sees somebody hold it: they go one after the other then. The lock is
 * advice only. What makes a commit right is WATCH, also against writers that know
 * nothing of the lock; so it is no harm if it cannot be had, or ends too early.
 */
#include "tx_op.h"

#define ORDER_TTL_MS 2000
#define ORDER_WAIT_MS 1000

static void make_order(sneck_tx *tx)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.ttl_ms = ORDER_TTL_MS;
    if (!tx->order && sneck_lock_new(&tx->order, tx->client, tx->turn.text, tx->turn.len,
                                     &options, NULL) != SNECK_OK)
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
                                 left < ORDER_WAIT_MS ? left : ORDER_WAIT_MS) != SNECK_OK)
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
    sneck__note_busy(counters, tx->hot,
                     !tx->ordered || sneck__was_busy(counters, tx->order->hash));
    sneck_op_free(o->child);
    o->child = NULL;
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
