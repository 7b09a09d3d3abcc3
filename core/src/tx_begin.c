/* tx_begin.c - the op that begins an attempt, at a good time.
 *
 *   first ------ writers met here lately? -- no -------------------> open
 *                       | yes                                         ^
 *                       v                                             |
 *                  wait for our turn ---- ours, or the first time ----+
 *                       ^          \---- not to be had ---> pause ----+
 *   after a conflict ---+- the third in a row                 ^
 *         |             \- before, or the turn is ours -------+
 *         \-- attempts or time used up --> CONFLICT
 *
 * It pauses at random, up to a limit that doubles: writers that met once do not meet
 * again. A comparison pauses as well, though it is likely to fail then: its caller would
 * come back at once, and twice as many attempts would be in vain.
 */
#include "token.h"
#include "tx_op.h"

#include <stdlib.h>

#define PAUSE_LIMIT_MS 64
#define TURN_PAUSE_MS 4        /* the same for whoever others wait for */
#define ORDER_AFTER 3          /* conflicts in a row */

static uint32_t random_below(uint32_t limit)
{
    char digits[2 * TOKEN_RANDOM + 1] = "";
    if (!sneck__token_tail(digits))
        return limit / 2;
    digits[8] = '\0';
    return (uint32_t)strtoul(digits, NULL, 16) % limit;
}

static uint32_t pause_limit(const sneck_tx *tx)
{
    uint32_t most = tx->ordered ? TURN_PAUSE_MS : PAUSE_LIMIT_MS;
    return tx->attempts < 6 && 1u << tx->attempts < most ? 1u << tx->attempts : most;
}

static void open_attempt(struct tx_op *o)
{
    sneck_tx *tx = o->tx;
    if (tx->guard && sneck_lock_token(tx->guard, NULL, 0) == 0)
        sneck__tx_op_finish(o, sneck__tx_guard_lost(tx));
    else if (sneck__tx_open(tx))
        sneck__tx_op_end(o, SNECK_OK);
    else
        sneck__tx_op_no_memory(o);
}

static void pause_or_open(struct tx_op *o)
{
    sneck_tx *tx = o->tx;
    if (tx->attempts == 0) {
        open_attempt(o);
        return;
    }
    int64_t due = sneck__now_ms() + random_below(pause_limit(tx) + 1);
    o->then = open_attempt;
    sneck__op_set_timer(&o->op, sneck__least_ms(due, tx->end_ms));
}

static void turn_came(struct tx_op *o)
{
    sneck__tx_note_turn(o);
    if (o->tx->ordered)
        open_attempt(o);
    else
        pause_or_open(o); /* its turn cannot be had */
}

static bool is_used_up(const sneck_tx *tx)
{
    return tx->attempts > 0 && (tx->attempts >= tx->options.attempts ||
                                sneck__now_ms() >= tx->end_ms);
}

static int tell_used_up(sneck_tx *tx)
{
    long long ms = (long long)(sneck__now_ms() - tx->begun_ms);
    char quoted[QUOTED_SIZE];
    if (tx->lost) {
        char why[SNECK_ERROR_SIZE];
        sneck__message(why, "%s", tx->error);
        sneck__tx_message(tx, "%.250s; nothing was written in %d attempts, %lld ms", why,
                          tx->attempts, ms);
        return SNECK_CONNECTION;
    }
    sneck__tx_message(tx, "transaction: key %s%s: others changed it in each of %d attempts,"
                      " %lld ms; allow more, or use a lock", tx->count
                      ? sneck__quote(quoted, tx->first.bytes + tx->key_at, tx->key_len) : "(none)",
                      tx->count > 1 ? " or another watched one" : "", tx->attempts, ms);
    return SNECK_CONFLICT;
}

static void begin_attempt(struct tx_op *o)
{
    sneck_tx *tx = o->tx;
    bool order = tx->meets || tx->attempts >= ORDER_AFTER;
    o->reports = true;
    tx->open = false;
    tx->link->pinned = false;
    if (tx->done) {
        sneck__tx_message(tx, "transaction: it has ended; make another one");
        sneck__tx_op_end(o, SNECK_INVALID);
        return;
    }
    if (is_used_up(tx)) {
        sneck__tx_op_finish(o, tell_used_up(tx));
        return;
    }
    if (tx->attempts >= 2)
        sneck__note_busy(&tx->client->counters, tx->hot, true);
    if (tx->count == 0 || tx->ordered || !order || !sneck__tx_take_turn(o, turn_came))
        pause_or_open(o);
}

int sneck_tx_begin_start(sneck_op **out, sneck_tx *tx)
{
    struct tx_op *o = sneck__tx_op_new(tx);
    if (!o)
        return SNECK_NO_MEMORY;
    if (o->tx)
        begin_attempt(o);
    *out = &o->op;
    return SNECK_OK;
}
