/* tx_read.c - the op that reads within an attempt. */
#include "tx_op.h"

static void read_done(struct tx_op *o)
{
    sneck_tx *tx = o->tx;
    if (o->answer->type != REDIS_REPLY_ERROR) {
        o->op.reply = o->answer;
        o->answer = NULL;
        sneck__tx_op_end(o, SNECK_OK);
        return;
    }
    /* no failure of the transaction: it is the caller's to judge, and may go on */
    sneck__code_word(tx->server_code, o->answer->str, (size_t)o->answer->len);
    sneck__tx_message(tx, "transaction: %s: %.200s", tx->client->address.text, o->answer->str);
    sneck__tx_op_end(o, SNECK_SERVER);
}

int sneck_tx_read_start(sneck_op **out, sneck_tx *tx, size_t argc, const void *const *argv,
                        const size_t *argv_len)
{
    struct tx_op *o = sneck__tx_op_new(tx);
    if (!o)
        return SNECK_NO_MEMORY;
    *out = &o->op;
    if (!o->tx)
        return SNECK_OK;
    if (!tx->open) {
        sneck__tx_message(tx, "%s", NO_ATTEMPT);
        sneck__tx_op_end(o, SNECK_INVALID);
    } else if (sneck__tx_check(tx, argc, argv, argv_len) != SNECK_OK) {
        sneck__tx_op_end(o, SNECK_INVALID);
    } else {
        sneck__tx_op_ask(o, (struct command){argc, (const char *const *)argv, argv_len},
                         read_done);
    }
    return SNECK_OK;
}
