/* tx.c - one attempt of a transaction, on a connection to itself.
 *
 *   begin --> reads, more watches (any number) --> commit --> end
 *                                              \-- or not ----^  UNWATCH
 *
 * The first exchange also asks whether somebody has the turn to write. If so it is
 * polite to wait for ours, and to read again then: a writer that never meets a
 * conflict would otherwise go first for ever.
 *
 * Each arrow that talks to the server is one exchange: everything that waits to be
 * sent leaves in one write, and all replies are awaited. WATCH waits for the first
 * read, so a read, a decision and a write take two exchanges.
 *
 * Invariant: from the first WATCH on the link is pinned. If its connection goes,
 * nothing of the attempt is sent on another one: without WATCH there, EXEC would
 * commit whatever has changed. The attempt is over then, and can be made again,
 * unless EXEC itself may have arrived: then its outcome is unknown.
 */
#include "tx.h"

#include "command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char subject[] = "transaction";

int sneck__tx_fail(sneck_tx *tx, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(tx->error, sizeof tx->error, format, args);
    va_end(args);
    if (tx->status == SNECK_OK)
        tx->status = status;
    return status;
}

/* ----------------------------------------------------------------- exchanges */

struct exchange {
    sneck_op op;
    bool commits;           /* the last reply answers EXEC */
    bool reached;           /* a lost request had left */
    bool others_turn;       /* the turn's key exists */
    redisReply *failure;    /* owned; the first error among the others */
    redisReply *reply;      /* owned; the last one */
};

static bool exchange_reply(sneck_op *op, redisReply *reply)
{
    struct exchange *x = (struct exchange *)op;
    bool last = op->in_flight == 0;
    if (last)
        sneck__op_end(op, SNECK_OK, "%s", "");
    if (!last && reply->type == REDIS_REPLY_INTEGER)
        x->others_turn = reply->integer != 0;
    redisReply **place = last ? &x->reply : &x->failure;
    if (*place || (!last && reply->type != REDIS_REPLY_ERROR))
        return false;
    *place = reply;
    return true;
}

/* Each of its requests is told to be lost, in order: the last one decides, since
 * a transaction without its EXEC has done nothing. */
static void exchange_lost(sneck_op *op, bool sent)
{
    struct exchange *x = (struct exchange *)op;
    x->reached = x->reached || sent;
    if (op->in_flight == 0)
        sneck__op_end_lost(op, sent && x->commits, subject);
}

static void exchange_cancel(sneck_op *op)
{
    if (((struct exchange *)op)->commits && !sneck__link_unsent(op->link, op))
        sneck__op_end(op, SNECK_UNKNOWN, "transaction: cancelled while its commit was under way,"
                      " so the server may or may not have done it");
}

static void exchange_clear(sneck_op *op)
{
    struct exchange *x = (struct exchange *)op;
    if (x->failure)
        freeReplyObject(x->failure);
    if (x->reply)
        freeReplyObject(x->reply);
}

static const struct op_class exchange_class = {
    .reply = exchange_reply,
    .lost = exchange_lost,
    .cancel = exchange_cancel,
    .clear = exchange_clear,
};

static bool send_block(struct exchange *x, struct buffer *block, size_t replies)
{
    bool ok = sneck__link_send_bytes(x->op.link, &x->op, block->bytes, block->len, replies);
    if (ok)
        x->op.in_flight += replies;
    sneck__buffer_clear(block);
    return ok;
}

static bool send_command(struct exchange *x, struct command command)
{
    bool ok = sneck__link_send(x->op.link, &x->op, command);
    x->op.in_flight += ok;
    return ok;
}

static const struct command begin_writes = {1, (const char *const[]){"MULTI"}, (const size_t[]){5}};
static const struct command drop_watches = {1, (const char *const[]){"UNWATCH"}, (const size_t[]){7}};
static const struct command run_writes = {1, (const char *const[]){"EXEC"}, (const size_t[]){4}};

/* The watches that wait, then a command or, without one, the whole commit. */
static bool send_all(struct exchange *x, sneck_tx *tx, const struct command *command)
{
    bool ok = tx->watch_count == 0 || send_block(x, &tx->watches, tx->watch_count);
    tx->watching = tx->watching || tx->watch_count > 0;
    tx->watch_count = 0;
    if (command)
        return ok && send_command(x, *command);
    return ok && send_command(x, begin_writes) && send_block(x, &tx->writes, tx->write_count) &&
           send_command(x, run_writes);
}

/* The connection went before the commit: the attempt is over, but not the whole. */
static int lose(sneck_tx *tx, const char *why)
{
    tx->lost = true;
    snprintf(tx->error, sizeof tx->error, "%s", why);
    return SNECK_CONFLICT;
}

static bool still_connected(const sneck_tx *tx)
{
    return !tx->link->pinned ||
           (tx->link->wire.state == WIRE_READY && !sneck__wire_gone(&tx->link->wire));
}

/* A server that was never there is an error; one that went away, a lost attempt. */
static int exchange_failed(sneck_tx *tx, const struct exchange *x)
{
    bool was_there = tx->watching || tx->conflicts > 0 || x->reached;
    if (x->op.status == SNECK_CONNECTION && was_there)
        return lose(tx, x->op.error);
    memcpy(tx->server_code, x->op.server_code, sizeof tx->server_code);
    return sneck__tx_fail(tx, x->op.status, "%s", x->op.error);
}

/* Sends what waits with the command or, without one, the commit, and waits for all
 * replies. OK: *out is the exchange, to be freed. Else `tx` has the reason. */
static int run_exchange(struct exchange **out, sneck_tx *tx, const struct command *command)
{
    if (tx->lost || !still_connected(tx))
        return lose(tx, "transaction: its connection was closed before the commit");
    struct exchange *x = sneck__op_new(sizeof *x, &exchange_class, tx->client, tx->link);
    if (!x)
        return sneck__tx_fail(tx, SNECK_NO_MEMORY, "out of memory");
    x->commits = !command;
    bool was_watching = tx->watching;
    if (x->op.status == SNECK_PENDING && !send_all(x, tx, command))
        sneck__op_end(&x->op, SNECK_NO_MEMORY, "out of memory");
    tx->link->pinned = true;
    int status = sneck_op_wait(&x->op, tx->interrupt, tx->interrupt_data);
    if (status != SNECK_OK) {
        tx->watching = was_watching;
        status = exchange_failed(tx, x);
    } else if (x->failure && command) {
        sneck__code_word(tx->server_code, x->failure->str, (size_t)x->failure->len);
        status = sneck__tx_fail(tx, SNECK_SERVER, "transaction: %s: watching a key: %.200s",
                                tx->client->address.text, x->failure->str);
    }
    if (status == SNECK_OK)
        *out = x;
    else
        sneck_op_free(&x->op);
    return status;
}

/* --------------------------------------------------------------- for the body */

static int check(sneck_tx *tx, size_t argc, const void *const *argv, const size_t *len)
{
    char quoted[QUOTED_SIZE];
    const char *why = sneck__command_refused(IN_TRANSACTION, argc, argv, len);
    if (!why)
        return SNECK_OK;
    bool named = argc > 0 && argv[0];
    return sneck__tx_fail(tx, SNECK_INVALID, "transaction: command %s: %s",
                          sneck__quote(quoted, named ? argv[0] : "", named ? len[0] : 0), why);
}

static bool add_watch(sneck_tx *tx, struct command command)
{
    bool ok = sneck__wire_format(&tx->watches, command);
    tx->watch_count += ok;
    return ok;
}

/* The first exchange, with its question; made again after our turn has come. */
static int first_exchange(struct exchange **out, sneck_tx *tx, const struct command *command)
{
    const struct tx_turn *turn = tx->turn;
    struct buffer again = {0};
    size_t count = tx->watch_count + 1;
    tx->turn = NULL;
    bool ok = sneck__wire_format(&again, drop_watches) &&
              sneck__buffer_append(&again, tx->watches.bytes, tx->watches.len) &&
              add_watch(tx, (struct command){2, (const char *const[]){"EXISTS", turn->key},
                                             (const size_t[]){6, turn->key_len}});
    int status = ok ? run_exchange(out, tx, command)
                    : sneck__tx_fail(tx, SNECK_NO_MEMORY, "out of memory");
    if (status == SNECK_OK && (*out)->others_turn) {
        sneck_op_free(&(*out)->op);
        status = turn->take(turn->data);
        if (status == SNECK_OK) {
            tx->watches = again;
            tx->watch_count = count;
            return run_exchange(out, tx, command);
        }
        sneck__tx_fail(tx, status, "transaction: interrupted while waiting for its turn");
    }
    sneck__buffer_clear(&again);
    return status;
}

static int read_exchange(struct exchange **out, sneck_tx *tx, const struct command *command)
{
    return tx->turn && tx->watch_count > 0 ? first_exchange(out, tx, command)
                                           : run_exchange(out, tx, command);
}

int sneck_tx_read(sneck_reply **out, sneck_tx *tx, size_t argc, const void *const *argv,
                  const size_t *argv_len)
{
    struct exchange *x;
    int status = check(tx, argc, argv, argv_len);
    if (status != SNECK_OK)
        return status;
    struct command command = {argc, (const char *const *)argv, argv_len};
    status = read_exchange(&x, tx, &command);
    if (status != SNECK_OK)
        return status;
    if (x->reply->type == REDIS_REPLY_ERROR) {
        sneck__code_word(tx->server_code, x->reply->str, (size_t)x->reply->len);
        snprintf(tx->error, sizeof tx->error, "transaction: %s: %.200s",
                 tx->client->address.text, x->reply->str);
        status = SNECK_SERVER; /* the body's to judge: it may go on */
    } else {
        *out = (sneck_reply *)x->reply;
        x->reply = NULL;
    }
    sneck_op_free(&x->op);
    return status;
}

int sneck_tx_watch(sneck_tx *tx, const void *key, size_t key_len)
{
    if (!key || key_len > SNECK_NAME_MAX)
        return sneck__tx_fail(tx, SNECK_INVALID, "transaction: a key to watch is NULL or longer"
                              " than 1 MiB");
    if (!add_watch(tx, (struct command){2, (const char *const[]){"WATCH", key},
                                        (const size_t[]){5, key_len}}))
        return sneck__tx_fail(tx, SNECK_NO_MEMORY, "out of memory");
    return SNECK_OK;
}

int sneck_tx_queue(sneck_tx *tx, size_t argc, const void *const *argv, const size_t *argv_len)
{
    int status = check(tx, argc, argv, argv_len);
    if (status != SNECK_OK)
        return status;
    if (!sneck__wire_format(&tx->writes,
                            (struct command){argc, (const char *const *)argv, argv_len}))
        return sneck__tx_fail(tx, SNECK_NO_MEMORY, "out of memory");
    tx->write_count++;
    return SNECK_OK;
}

int sneck_tx_conflicts(const sneck_tx *tx)
{
    return tx->conflicts;
}

const char *sneck_tx_error(const sneck_tx *tx)
{
    return tx->error;
}

/* -------------------------------------------------------------------- its ends */

int sneck__tx_begin(sneck_tx *tx, sneck_client *client, const sneck_tx_options *options,
                    const struct tx_turn *turn, int conflicts)
{
    *tx = (sneck_tx){
        .client = client,
        .turn = turn,
        .conflicts = conflicts,
        .interrupt = options->interrupt,
        .interrupt_data = options->interrupt_data,
        .link = sneck__client_borrow(client),
    };
    return tx->link ? SNECK_OK : sneck__tx_fail(tx, SNECK_NO_MEMORY, "out of memory");
}

int sneck__tx_guard(sneck_tx *tx, sneck_lock *guard)
{
    char *token = NULL;
    size_t len;
    sneck_reply *reply = NULL;
    int status = sneck__lock_copy_token(guard, &token, &len);
    if (status != SNECK_OK)
        return sneck__tx_fail(tx, status, "out of memory");
    if (token)
        status = sneck_tx_watch(tx, guard->name, guard->name_len);
    if (token && status == SNECK_OK)
        status = sneck_tx_read(&reply, tx, 2, (const void *const[]){"GET", guard->name},
                               (const size_t[]){3, guard->name_len});
    if (status == SNECK_SERVER)
        status = sneck__tx_fail(tx, status, "%s", tx->error);
    if (status == SNECK_OK) {
        size_t held_len = 0;
        const char *held = reply ? sneck_reply_bytes(reply, &held_len) : NULL;
        if (!held || held_len != len || memcmp(held, token, len) != 0)
            status = sneck__tx_fail(tx, SNECK_NOT_OWNER, "transaction: its guard, %s, is not ours"
                                    " any more; nothing was written", guard->what);
    }
    sneck_reply_free(reply);
    free(token);
    return status;
}

/* Queueing was refused, so EXEC did nothing: say which command was the cause. */
static int refused_as_whole(sneck_tx *tx, const struct exchange *x)
{
    const redisReply *cause = x->failure ? x->failure : x->reply;
    sneck__code_word(tx->server_code, cause->str, (size_t)cause->len);
    return sneck__tx_fail(tx, SNECK_SERVER, "transaction: %s: %.200s; nothing was written",
                          tx->client->address.text, cause->str);
}

/* Committed; but single commands may have failed when they were run. */
static int read_results(sneck_tx *tx, const redisReply *results)
{
    for (size_t i = 0; i < results->elements; i++) {
        const redisReply *result = results->element[i];
        if (result->type != REDIS_REPLY_ERROR)
            continue;
        sneck__code_word(tx->server_code, result->str, (size_t)result->len);
        return sneck__tx_fail(tx, SNECK_SERVER, "transaction: %s: command %zu of %zu: %.200s; the"
                              " others were done", tx->client->address.text, i + 1,
                              results->elements, result->str);
    }
    return SNECK_OK;
}

int sneck__tx_commit(sneck_reply **out, sneck_tx *tx)
{
    struct exchange *x;
    int status = run_exchange(&x, tx, NULL);
    if (status != SNECK_OK)
        return status;
    tx->watching = false; /* EXEC ended it, whatever came of it */
    if (x->reply->type == REDIS_REPLY_NIL) {
        status = SNECK_CONFLICT;
    } else if (x->reply->type == REDIS_REPLY_ARRAY) {
        status = read_results(tx, x->reply);
        *out = (sneck_reply *)x->reply;
        x->reply = NULL;
    } else if (x->reply->type == REDIS_REPLY_ERROR) {
        status = refused_as_whole(tx, x);
    } else {
        status = sneck__tx_fail(tx, SNECK_PROTOCOL, "transaction: %s: a reply of an unexpected"
                                " type", tx->client->address.text);
    }
    sneck_op_free(&x->op);
    return status;
}

/* What is watched is forgotten before anybody else gets the connection. */
static void unwatch(sneck_tx *tx)
{
    struct exchange *x;
    tx->watch_count = 0;
    sneck__buffer_clear(&tx->watches);
    bool broken = tx->status == SNECK_INTERRUPTED || tx->status == SNECK_UNKNOWN;
    if (!broken && run_exchange(&x, tx, &drop_watches) == SNECK_OK)
        sneck_op_free(&x->op);
    else if (tx->link->wire.state != WIRE_CLOSED)
        sneck__wire_fail(&tx->link->wire, SNECK_CONNECTION, "", "closed with its watches");
}

void sneck__tx_end(sneck_tx *tx)
{
    if (tx->link) {
        if (tx->watching && !tx->lost)
            unwatch(tx);
        tx->link->pinned = false;
        sneck__client_give_back(tx->link);
    }
    tx->link = NULL;
    sneck__buffer_clear(&tx->watches);
    sneck__buffer_clear(&tx->writes);
}
