/* tx_commit.c - the ops that end an attempt: commit, or give up.
 *
 *   commit --> the guard's token, or PING behind new watches --> MULTI, writes, EXEC
 *                 \-- not ours: NOT_OWNER                           |
 *                                                CONFLICT <-- nil --+-- done
 *
 * Invariant: all watches are there, and heard of, before EXEC leaves; and so is that
 * this connection may MULTI.
 */
#include "tx_op.h"

#include <string.h>

/* ------------------------------------------------------------- what EXEC said */

/* EXEC did nothing; say which command was the cause. Only EXECABORT tells that the
 * connection is out of its transaction. */
static int refused_as_whole(const struct tx_op *o)
{
    sneck_tx *tx = o->tx;
    const char *cause = o->failure ? o->failure->str : sneck__tx_cause(o->answer->str);
    tx->unclean = strncmp(o->answer->str, "EXECABORT", 9) != 0;
    sneck__code_word(tx->server_code, cause, strlen(cause));
    return sneck__tx_fail(tx, SNECK_SERVER, "transaction: %s: %.200s; %s",
                          tx->client->address.text, cause,
                          o->not_opened ? "this was the answer to MULTI, so the writes may have"
                                          " been done one by one" : "nothing was written");
}

/* The last reply, to the turn's release, is none of the caller's. */
static void take_release(struct tx_op *o)
{
    redisReply *results = o->answer;
    if (!o->passing.token || results->elements == 0)
        return;
    redisReply *last = results->element[--results->elements];
    sneck__tx_note_release(o, last);
    freeReplyObject(last);
}

/* Committed; but single commands may have failed when they were run. */
static int read_results(struct tx_op *o)
{
    sneck_tx *tx = o->tx;
    const redisReply *results = o->op.reply = o->answer;
    o->answer = NULL;
    for (size_t i = 0; i < results->elements; i++) {
        const redisReply *result = results->element[i];
        if (result->type != REDIS_REPLY_ERROR)
            continue;
        tx->failed = i;
        sneck__code_word(tx->server_code, result->str, (size_t)result->len);
        return sneck__tx_fail(tx, SNECK_SERVER, "transaction: %s: command %zu of %zu failed:"
                              " %.200s; the others were run", tx->client->address.text, i + 1,
                              results->elements, result->str);
    }
    return SNECK_OK;
}

static void exec_answered(struct tx_op *o)
{
    sneck_tx *tx = o->tx;
    tx->watching = false; /* EXEC ended it, whatever came of it */
    switch (o->answer->type) {
    case REDIS_REPLY_NIL:
        sneck__lock_undo_release(tx->order, &o->passing);
        sneck__tx_message(tx, "transaction: a watched key was changed; nothing was written");
        sneck__tx_op_end(o, SNECK_CONFLICT);
        break;
    case REDIS_REPLY_ARRAY:
        take_release(o);
        sneck__tx_op_finish(o, read_results(o));
        break;
    case REDIS_REPLY_ERROR:
        sneck__lock_undo_release(tx->order, &o->passing);
        sneck__tx_op_finish(o, refused_as_whole(o));
        break;
    default:
        tx->unclean = true;
        sneck__lock_doubt_release(tx->order, &o->passing);
        sneck__tx_op_finish(o, sneck__tx_fail(tx, SNECK_PROTOCOL, "transaction: %s: a reply of an"
                                              " unexpected type", tx->client->address.text));
    }
}

/* --------------------------------------------------------------------- commit */

static void send_exec(struct tx_op *o);

static void settle_watches(struct tx_op *o)
{
    sneck__tx_op_ask(o, (struct command){1, (const char *const[]){"PING"}, (const size_t[]){4}},
                     send_exec);
}

static void send_exec(struct tx_op *o)
{
    sneck_tx *tx = o->tx;
    if (!sneck__tx_op_begin(o, exec_answered))
        return;
    if (!tx->link->may_commit) {
        settle_watches(o);
        return;
    }
    o->commits = true;
    sneck__tx_op_sent(o, sneck__tx_op_send(o, MULTI.bytes, MULTI.len, 1) &&
                             sneck__tx_op_send(o, tx->writes.bytes, tx->writes.len,
                                               tx->write_count) &&
                             sneck__tx_send_release(o) &&
                             sneck__tx_op_send(o, EXEC.bytes, EXEC.len, 1));
}

int sneck__tx_guard_lost(sneck_tx *tx)
{
    return sneck__tx_fail(tx, SNECK_NOT_OWNER, "transaction: its guard, %s, is not ours any more;"
                          " nothing was written", tx->guard->what);
}

static void guard_answered(struct tx_op *o)
{
    sneck_tx *tx = o->tx;
    const redisReply *held = o->answer;
    if (held->type == REDIS_REPLY_ERROR) {
        sneck__code_word(tx->server_code, held->str, (size_t)held->len);
        sneck__tx_op_finish(o, sneck__tx_fail(tx, SNECK_SERVER, "transaction: %s: %.200s",
                                              tx->client->address.text, held->str));
    } else if (held->type != REDIS_REPLY_STRING || (size_t)held->len != o->token_len ||
               memcmp(held->str, o->token, o->token_len) != 0) {
        sneck__tx_op_finish(o, sneck__tx_guard_lost(tx));
    } else {
        send_exec(o);
    }
}

/* Watches the guard's key and compares its token. Only now, so that an extension of
 * ours while the body was running is no conflict; and from now on it is not renewed. */
static void check_guard(struct tx_op *o)
{
    sneck_tx *tx = o->tx;
    const sneck_lock *guard = tx->guard;
    tx->guard_paused = true;
    sneck__renewal_pause(tx->guard, true);
    if (sneck__lock_copy_token(tx->guard, &o->token, &o->token_len, NULL) != SNECK_OK)
        sneck__tx_op_no_memory(o);
    else if (!o->token)
        sneck__tx_op_finish(o, sneck__tx_guard_lost(tx));
    else if (!sneck__tx_add_watch(tx, guard->name, guard->name_len))
        sneck__tx_op_no_memory(o);
    else
        sneck__tx_op_ask(o, (struct command){2, (const char *const[]){"GET", guard->name},
                                             (const size_t[]){3, guard->name_len}},
                         guard_answered);
}

static void commit(struct tx_op *o)
{
    sneck_tx *tx = o->tx;
    o->reports = true;
    if (!tx->open) {
        sneck__tx_message(tx, "%s", NO_ATTEMPT);
        sneck__tx_op_end(o, SNECK_INVALID);
        return;
    }
    tx->open = false;
    if (tx->lost)
        sneck__tx_op_end(o, SNECK_CONFLICT);
    else if (tx->status != SNECK_OK) /* a failure that was not heeded */
        sneck__tx_op_finish(o, tx->status);
    else if (tx->write_count == 0)
        sneck__tx_op_finish(o, SNECK_OK);
    else if (tx->guard)
        check_guard(o);
    else if (tx->watch_count > 0)
        settle_watches(o);
    else
        send_exec(o);
}

int sneck_tx_commit_start(sneck_op **out, sneck_tx *tx)
{
    struct tx_op *o = sneck__tx_op_new(tx);
    if (!o)
        return SNECK_NO_MEMORY;
    if (o->tx)
        commit(o);
    *out = &o->op;
    return SNECK_OK;
}

/* -------------------------------------------------------------------- give up */

int sneck_tx_unwatch_start(sneck_op **out, sneck_tx *tx)
{
    struct tx_op *o = sneck__tx_op_new(tx);
    if (!o)
        return SNECK_NO_MEMORY;
    *out = &o->op;
    if (o->tx)
        sneck__tx_op_finish(o, SNECK_OK);
    return SNECK_OK;
}
