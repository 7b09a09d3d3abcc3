/* transact.c - the calls on a transaction that wait: its body run until the writes are
 * committed, and the body's reads. */
#include "clock.h"
#include "tx.h"

#define LEAVE_MS 100 /* how long an interrupted call may take to tidy up */

static int wait_and_free(sneck_op *op, const sneck_tx *tx)
{
    int status = sneck_op_wait(op, tx->options.interrupt, tx->options.interrupt_data);
    sneck_op_free(op);
    return status;
}

static int no_memory_in(sneck_tx *tx)
{
    return sneck__tx_fail(tx, SNECK_NO_MEMORY, "out of memory");
}

int sneck_tx_read(sneck_reply **out, sneck_tx *tx, size_t argc, const void *const *argv,
                  const size_t *argv_len)
{
    sneck_op *op;
    if (sneck_tx_read_start(&op, tx, argc, argv, argv_len) != SNECK_OK)
        return no_memory_in(tx);
    if (sneck_op_wait(op, tx->options.interrupt, tx->options.interrupt_data) == SNECK_OK)
        *out = sneck__op_take_reply(op);
    return wait_and_free(op, tx);
}

/* ------------------------------------------------------------------- attempts */

static int begin_and_wait(sneck_tx *tx)
{
    sneck_op *op;
    if (sneck_tx_begin_start(&op, tx) != SNECK_OK)
        return no_memory_in(tx);
    return wait_and_free(op, tx);
}

static int commit_and_wait(sneck_reply **out, sneck_tx *tx)
{
    sneck_op *op;
    if (sneck_tx_commit_start(&op, tx) != SNECK_OK)
        return no_memory_in(tx);
    sneck_op_wait(op, tx->options.interrupt, tx->options.interrupt_data);
    *out = sneck__op_take_reply(op);
    return wait_and_free(op, tx);
}

static int too_long(void *data)
{
    return sneck__now_ms() >= *(const int64_t *)data;
}

/* Whatever the body or an interrupt left: the watches and the turn. The interrupt has
 * done its part, and is not asked again. */
static void leave_clean(sneck_tx *tx, int status)
{
    sneck_op *op;
    int64_t end_ms = sneck__now_ms() + LEAVE_MS;
    if ((!tx->watching && !tx->ordered) || sneck_tx_unwatch_start(&op, tx) != SNECK_OK)
        return;
    if (status == SNECK_INTERRUPTED || status == SNECK_UNKNOWN) {
        sneck_op_wait(op, too_long, &end_ms);
        sneck_op_free(op);
    } else {
        wait_and_free(op, tx);
    }
}

static int run_attempts(sneck_reply **out, sneck_tx *tx, sneck_tx_body *body, void *data)
{
    for (;;) {
        int status = begin_and_wait(tx);
        if (status != SNECK_OK) /* CONFLICT: attempts or time are used up */
            return status;
        status = body(tx, data);
        if (status == SNECK_OK)
            status = commit_and_wait(out, tx);
        if (status != SNECK_CONFLICT)
            return status;
    }
}

int sneck_transact(sneck_reply **out, sneck_client *client, size_t count,
                   const void *const *keys, const size_t *key_len,
                   const sneck_tx_options *options, sneck_tx_body *body, void *data, char *error)
{
    sneck_tx *tx;
    sneck_reply *reply = NULL;
    int status = sneck_tx_new(&tx, client, count, keys, key_len, options, error);
    if (status != SNECK_OK)
        return status;
    status = run_attempts(&reply, tx, body, data);
    leave_clean(tx, status);
    if (status == SNECK_OK || reply)
        *out = reply;
    sneck__tx_report(tx, status);
    if (status != SNECK_OK)
        sneck__message(error, "%s", tx->error);
    sneck_tx_free(tx);
    return status;
}
