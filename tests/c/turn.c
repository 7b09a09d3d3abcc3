/* turn.c - a transaction step by step, and the turn that others have, for tests. */
#include "turn.h"

int set_up_turn(void **state)
{
    static struct turn turn;
    empty_server(state);
    turn = (struct turn){.client = new_client(), .other = new_client(),
                         .options = SNECK_TX_OPTIONS};
    turn.options.report = &turn.report;
    turn.order = new_lock(turn.other, ORDER, 60000);
    DO(turn.other, "SET", "a", "1");
    DO(turn.client, "PING");
    *state = &turn;
    return 0;
}

int tear_down_turn(void **state)
{
    struct turn *turn = *state;
    sneck_tx_free(turn->tx);
    sneck_lock_free(turn->order);
    sneck_client_free(turn->client);
    sneck_client_free(turn->other);
    return 0;
}

sneck_tx *make(struct turn *turn)
{
    sneck_tx_free(turn->tx);
    turn->tx = NULL;
    assert_int_equal(sneck_tx_new(&turn->tx, turn->client, 1, (const void *const[]){"a"},
                                  (const size_t[]){1}, &turn->options, turn->error), SNECK_OK);
    return turn->tx;
}

sneck_op *start(start_function *function, sneck_tx *tx)
{
    sneck_op *op = NULL;
    assert_int_equal(function(&op, tx), SNECK_OK);
    return op;
}

int begin(sneck_tx *tx)
{
    return end_op(start(sneck_tx_begin_start, tx));
}

int commit(sneck_tx *tx)
{
    return end_op(start(sneck_tx_commit_start, tx));
}

int unwatch(sneck_tx *tx)
{
    return end_op(start(sneck_tx_unwatch_start, tx));
}

size_t count_waiting(struct turn *turn)
{
    sneck_waiter *waiters;
    size_t count;
    assert_int_equal(sneck_lock_waiters(&waiters, &count, turn->order), SNECK_OK);
    sneck_waiters_free(waiters);
    return count;
}

sneck_op *wait_for_turn(struct turn *turn)
{
    sneck_tx *tx = make(turn);
    assert_int_equal(begin(tx), SNECK_OK);
    sneck_op *op = READ_START(tx, "GET", "a");
    while (count_waiting(turn) == 0) {
        step_once(sneck_op_link(op), 10);
        assert_int_equal(sneck_op_status(op), SNECK_PENDING);
    }
    return op;
}
