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
 * unless EXEC itself may have arrived: then its outcome is unknown. A link whose state
 * is in any doubt at the end is closed, not given back.
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
    bool asks;              /* the one before the last answers EXISTS, of the turn */
    bool begun;             /* the first reply is there */
    bool not_opened;        /* it answers MULTI, with an error */
    bool reached;           /* a lost request had left */
    bool others_turn;       /* the turn's key exists */
    redisReply *failure;    /* owned; the first error among the others */
    redisReply *reply;      /* owned; the last one */
};

static bool exchange_reply(sneck_op *op, redisReply *reply)
{
    struct exchange *x = (struct exchange *)op;
    bool last = op->in_flight == 0;
    if (x->commits && !x->begun)
        x->not_opened = reply->type == REDIS_REPLY_ERROR;
    x->begun = true;
    if (last)
        sneck__op_end(op, SNECK_OK, "%s", "");
    if (x->asks && op->in_flight == 1) {
        /* an error, such as NOPERM, is no harm: the turn is advice */
        x->others_turn = reply->type == REDIS_REPLY_INTEGER && reply->integer != 0;
        return false;
    }
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
static const struct command ping = {1, (const char *const[]){"PING"}, (const size_t[]){4}};
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
static int exchange_failed(sneck_tx *tx, const struct exchange *x, bool was_there)
{
    if (x->op.status == SNECK_CONNECTION && (was_there || tx->conflicts > 0 || x->reached))
        return lose(tx, sneck_op_error(&x->op));
    memcpy(tx->server_code, x->op.server_code, sizeof tx->server_code);
    return sneck__tx_fail(tx, x->op.status, "%s", sneck_op_error(&x->op));
}

/* Sends what waits with the command or, without one, the commit, and waits for all
 * replies. OK: *out is the exchange, to be freed. Else `tx` has the reason. */
static int run_exchange(struct exchange **out, sneck_tx *tx, const struct command *command)
{
    static const char closed[] = "transaction: its connection was closed before the commit";
    bool was_there = tx->link->pinned || tx->link->answered;
    if (tx->lost || !still_connected(tx))
        return lose(tx, closed);
    struct exchange *x = sneck__op_new(sizeof *x, &exchange_class, tx->client, tx->link);
    if (!x)
        return sneck__tx_fail(tx, SNECK_NO_MEMORY, "out of memory");
    x->commits = !command;
    x->asks = tx->asks;
    tx->asks = false;
    if (x->op.status == SNECK_PENDING && !send_all(x, tx, command)) {
        if (tx->link->pinned && tx->link->wire.state != WIRE_READY)
            sneck__op_end(&x->op, SNECK_CONNECTION, "%s", closed);
        else
            sneck__op_end(&x->op, SNECK_NO_MEMORY, "out of memory");
    }
    tx->link->pinned = true;
    int status = sneck_op_wait(&x->op, tx->interrupt, tx->interrupt_data);
    if (status != SNECK_OK) {
        status = exchange_failed(tx, x, was_there);
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
    tx->asks = ok;
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

const char *sneck_tx_server_code(const sneck_tx *tx)
{
    return tx->server_code;
}

/* -------------------------------------------------------------------- its ends */

static int guard_lost(sneck_tx *tx)
{
    return sneck__tx_fail(tx, SNECK_NOT_OWNER, "transaction: its guard, %s, is not ours any more;"
                          " nothing was written", tx->guard->what);
}

int sneck__tx_begin(sneck_tx *tx, sneck_client *client, const sneck_tx_options *options,
                    const struct tx_turn *turn, int conflicts)
{
    *tx = (sneck_tx){
        .client = client,
        .turn = turn,
        .conflicts = conflicts,
        .interrupt = options->interrupt,
        .interrupt_data = options->interrupt_data,
        .guard = options->guard,
        .failed = SIZE_MAX,
        .link = sneck__client_borrow(client),
    };
    if (!tx->link)
        return sneck__tx_fail(tx, SNECK_NO_MEMORY, "out of memory");
    return tx->guard && sneck_lock_token(tx->guard, NULL, 0) == 0 ? guard_lost(tx) : SNECK_OK;
}

/* Watches the guard's key and compares its token. Only now, so that an extension of
 * ours while the body was running is no conflict. */
static int check_guard(sneck_tx *tx)
{
    char *token = NULL;
    size_t len, held_len = 0;
    sneck_reply *reply = NULL;
    const sneck_lock *guard = tx->guard;
    int status = sneck__lock_copy_token(tx->guard, &token, &len);
    if (status != SNECK_OK)
        return sneck__tx_fail(tx, status, "out of memory");
    status = token ? sneck_tx_watch(tx, guard->name, guard->name_len) : guard_lost(tx);
    if (status == SNECK_OK)
        status = sneck_tx_read(&reply, tx, 2, (const void *const[]){"GET", guard->name},
                               (const size_t[]){3, guard->name_len});
    if (status == SNECK_OK) {
        const char *held = sneck_reply_bytes(reply, &held_len);
        if (!held || held_len != len || memcmp(held, token, len) != 0)
            status = guard_lost(tx);
    }
    sneck_reply_free(reply);
    free(token);
    return status;
}

/* All watches are there, and heard of, before EXEC leaves. */
static int settle_watches(sneck_tx *tx)
{
    struct exchange *x;
    if (tx->guard)
        return check_guard(tx);
    if (tx->watch_count == 0)
        return SNECK_OK;
    int status = read_exchange(&x, tx, &ping);
    if (status == SNECK_OK)
        sneck_op_free(&x->op);
    return status;
}

/* EXEC did nothing; say which command was the cause. Only EXECABORT tells that the
 * connection is out of its transaction. */
static int refused_as_whole(sneck_tx *tx, const struct exchange *x)
{
    static const char because[] = "because of: "; /* an error of EXEC itself */
    const char *cause = x->failure ? x->failure->str : x->reply->str;
    const char *inner = strstr(cause, because);
    tx->unclean = strncmp(x->reply->str, "EXECABORT", 9) != 0;
    if (!x->failure && inner)
        cause = inner + strlen(because);
    sneck__code_word(tx->server_code, cause, strlen(cause));
    return sneck__tx_fail(tx, SNECK_SERVER, "transaction: %s: %.200s; %s",
                          tx->client->address.text, cause,
                          x->not_opened ? "this was the answer to MULTI, so the writes may have"
                                          " been done one by one" : "nothing was written");
}

/* Committed; but single commands may have failed when they were run. */
static int read_results(sneck_tx *tx, const redisReply *results)
{
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

int sneck__tx_commit(sneck_reply **out, sneck_tx *tx)
{
    struct exchange *x;
    int status = settle_watches(tx);
    if (status == SNECK_OK)
        status = run_exchange(&x, tx, NULL);
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
        tx->unclean = true;
        status = sneck__tx_fail(tx, SNECK_PROTOCOL, "transaction: %s: a reply of an unexpected"
                                " type", tx->client->address.text);
    }
    sneck_op_free(&x->op);
    return status;
}

/* Makes the server forget what is watched; false: it may not have. */
static bool unwatch(sneck_tx *tx)
{
    struct exchange *x;
    tx->watch_count = 0;
    sneck__buffer_clear(&tx->watches);
    if (run_exchange(&x, tx, &drop_watches) != SNECK_OK)
        return false;
    bool done = x->reply->type != REDIS_REPLY_ERROR;
    sneck_op_free(&x->op);
    return done;
}

/* The next one to use the connection finds no watch, no open MULTI and no reply that
 * is not its own; what was given up is not sent after all. */
static bool is_clean(sneck_tx *tx)
{
    if (tx->lost || tx->unclean || !sneck__link_quiet(tx->link))
        return false;
    return !tx->watching || tx->link->wire.state == WIRE_CLOSED || unwatch(tx);
}

void sneck__tx_end(sneck_tx *tx)
{
    bool clean = tx->link && is_clean(tx);
    if (tx->link)
        tx->link->pinned = false;
    if (clean)
        sneck__client_give_back(tx->link);
    else
        sneck_link_free(tx->link);
    tx->link = NULL;
    sneck__buffer_clear(&tx->watches);
    sneck__buffer_clear(&tx->writes);
}
