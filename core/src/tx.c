/* tx.c - the transaction: what it watches, queues and knows, and its connection.
 *
 *   begin --> reads, more watches, writes (any number) --> commit --> done
 *     ^  \-- used up --> done                               |   \
 *     +----------------------- conflict -------------------+    unwatch: done
 *
 * No I/O here. What talks to the server are ops, one at a time: tx_begin.c, tx_read.c
 * and tx_commit.c, over what tx_op.c does for all of them.
 *
 * Invariant: from the first WATCH on the link is pinned. If its connection goes,
 * nothing of the attempt is sent on another one: without WATCH there, EXEC would
 * commit whatever has changed. The attempt is over then, and can be made again,
 * unless EXEC itself may have arrived: then its outcome is unknown. A connection
 * whose state is in any doubt is closed before anybody else gets the link.
 */
#include "tx.h"

#include "command_guard.h"
#include "tx_op.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- failures */

static void write_message(sneck_tx *tx, const char *format, va_list args)
{
    vsnprintf(tx->error, sizeof tx->error, format, args);
}

void sneck__tx_message(sneck_tx *tx, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_message(tx, format, args);
    va_end(args);
}

int sneck__tx_fail(sneck_tx *tx, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_message(tx, format, args);
    va_end(args);
    if (tx->status == SNECK_OK)
        tx->status = status;
    return status;
}

void sneck__tx_report(const sneck_tx *tx, int status)
{
    sneck_tx_report *report = tx->options.report;
    if (!report)
        return;
    report->attempts = tx->attempts;
    report->elapsed_ms = sneck__now_ms() - tx->begun_ms;
    report->failed = tx->failed;
    snprintf(report->server_code, sizeof report->server_code, "%s",
             status == SNECK_SERVER ? tx->server_code : "");
}

/* ------------------------------------------------------------ one attempt's state */

bool sneck__tx_add_watch(sneck_tx *tx, const char *key, size_t len)
{
    bool ok = sneck__wire_format(&tx->watches, (struct command){2,
        (const char *const[]){"WATCH", key}, (const size_t[]){5, len}});
    tx->watch_count += ok;
    return ok;
}

void sneck__tx_shut(sneck_tx *tx)
{
    tx->open = false;
    tx->watch_count = tx->write_count = 0;
    sneck__buffer_clear(&tx->watches);
    sneck__buffer_clear(&tx->writes);
}

bool sneck__tx_open(sneck_tx *tx)
{
    sneck__tx_shut(tx);
    tx->status = SNECK_OK;
    tx->lost = false;
    tx->failed = SIZE_MAX;
    tx->error[0] = tx->server_code[0] = '\0';
    tx->asks = tx->count > 0 && !tx->ordered;
    if ((tx->watching && !sneck__buffer_append(&tx->watches, UNWATCH.bytes, UNWATCH.len)) ||
        (tx->count > 0 && !sneck__buffer_append(&tx->watches, tx->first.bytes, tx->first.len)))
        return false;
    tx->watch_count = tx->count + tx->watching;
    tx->open = true;
    tx->attempts++;
    return true;
}

bool sneck__tx_connected(const sneck_tx *tx)
{
    const sneck_link *link = tx->link;
    if (!link->pinned)
        return true;
    /* where a cleanup is still to be answered, bytes that came are no bad sign */
    return link->wire.state == WIRE_READY &&
           (!sneck__link_quiet(link) || !sneck__wire_gone(&link->wire));
}

void sneck__tx_close(sneck_tx *tx)
{
    tx->link->pinned = true; /* what is queued must not leave later */
    sneck__wire_fail(&tx->link->wire, SNECK_CONNECTION, "", "closed by a transaction");
    tx->link->pinned = tx->watching = tx->unclean = false;
}

/* ----------------------------------------------------------------- for the body */

int sneck__tx_check(sneck_tx *tx, size_t argc, const void *const *argv, const size_t *len)
{
    char quoted[QUOTED_SIZE];
    const char *why = sneck__command_refused(IN_TRANSACTION, argc, argv, len);
    if (!why)
        return SNECK_OK;
    bool named = argc > 0 && argv[0];
    return sneck__tx_fail(tx, SNECK_INVALID, "transaction: command %s: %s",
                          sneck__quote(quoted, named ? argv[0] : "", named ? len[0] : 0), why);
}

static int refuse_shut(sneck_tx *tx)
{
    sneck__tx_message(tx, "%s", NO_ATTEMPT);
    return SNECK_INVALID;
}

int sneck_tx_watch(sneck_tx *tx, const void *key, size_t key_len)
{
    if (!tx->open)
        return refuse_shut(tx);
    if (!key || key_len > SNECK_NAME_MAX)
        return sneck__tx_fail(tx, SNECK_INVALID, "transaction: a key to watch is NULL or longer"
                              " than 1 MiB");
    if (!sneck__tx_add_watch(tx, key, key_len))
        return sneck__tx_fail(tx, SNECK_NO_MEMORY, "out of memory");
    return SNECK_OK;
}

int sneck_tx_queue(sneck_tx *tx, size_t argc, const void *const *argv, const size_t *argv_len)
{
    if (!tx->open)
        return refuse_shut(tx);
    int status = sneck__tx_check(tx, argc, argv, argv_len);
    if (status != SNECK_OK)
        return status;
    if (!sneck__wire_format(&tx->writes,
                            (struct command){argc, (const char *const *)argv, argv_len}))
        return sneck__tx_fail(tx, SNECK_NO_MEMORY, "out of memory");
    tx->write_count++;
    return SNECK_OK;
}

const char *sneck__tx_put_refused(const void *key, int64_t ttl_ms)
{
    if (!key)
        return "the key is NULL";
    if (ttl_ms < 0 || ttl_ms > SNECK_TTL_MAX_MS)
        return "a ttl is 0, to keep the key's own, or up to 365 days";
    return NULL;
}

int sneck_tx_put(sneck_tx *tx, const void *key, size_t key_len, const void *value,
                 size_t value_len, int64_t ttl_ms)
{
    char ttl[24];
    if (!tx->open)
        return refuse_shut(tx);
    const char *why = sneck__tx_put_refused(key, ttl_ms);
    if (why)
        return sneck__tx_fail(tx, SNECK_INVALID, "transaction: %s", why);
    if (!value)
        return sneck_tx_queue(tx, 2, (const void *const[]){"DEL", key},
                              (const size_t[]){3, key_len});
    bool keep = ttl_ms == 0;
    size_t width = (size_t)snprintf(ttl, sizeof ttl, "%lld", (long long)ttl_ms);
    return sneck_tx_queue(tx, keep ? 4 : 5,
                          (const void *const[]){"SET", key, value, keep ? "KEEPTTL" : "PX", ttl},
                          (const size_t[]){3, key_len, value_len, keep ? 7 : 2, width});
}

int sneck_tx_conflicts(const sneck_tx *tx)
{
    return tx->attempts > 0 ? tx->attempts - 1 : 0;
}

const char *sneck_tx_error(const sneck_tx *tx)
{
    return tx->error;
}

const char *sneck_tx_server_code(const sneck_tx *tx)
{
    return tx->server_code;
}

/* -------------------------------------------------------------------- lifetime */

static const char *check_arguments_of_tx(const sneck_client *client, size_t count,
                                         const void *const *keys, const size_t *key_len,
                                         const sneck_tx_options *o)
{
    if (client->quorum)
        return NO_SERVER_OF_ITS_OWN;
    if (o->size != sizeof *o)
        return "start the options from SNECK_TX_OPTIONS";
    if (o->attempts < 1)
        return "the number of attempts is from 1";
    if (!sneck__is_wait(o->wait_ms))
        return "a wait is from 0 ms to 365 days, or SNECK_FOREVER";
    if (o->guard && o->guard->client->quorum)
        return "the guard is a quorum's lock, which no one server can vouch for";
    if (o->guard && o->guard->client != client)
        return "the guard belongs to another client";
    if (o->guard && !o->guard->kind->queues)
        return "a timestamp lock cannot be a guard";
    for (size_t i = 0; i < count; i++)
        if (!keys[i] || key_len[i] > SNECK_NAME_MAX)
            return "a key is NULL or longer than 1 MiB";
    return NULL;
}

/* The turn is a lock beside the first key; its key has the client's prefix. */
static bool name_turn(sneck_tx *tx, const void *key, size_t key_len)
{
    const sneck_client *client = tx->client;
    struct buffer name = {0};
    tx->hot = sneck__hash(key, key_len);
    tx->meets = sneck__was_busy(&tx->client->counters, tx->hot);
    bool ok = sneck__companion(&tx->turn, key, key_len, "order") &&
              (client->prefix_len == 0 ||
               (sneck__buffer_append(&name, client->prefix, client->prefix_len) &&
                sneck__buffer_append(&name, tx->turn.text, tx->turn.len))) &&
              sneck__wire_format(&tx->question, (struct command){2,
                  (const char *const[]){"EXISTS", name.len ? name.bytes : tx->turn.text},
                  (const size_t[]){6, name.len ? name.len : tx->turn.len}});
    sneck__buffer_clear(&name);
    return ok;
}

static bool fill_tx(sneck_tx *tx, const void *const *keys, const size_t *key_len)
{
    bool ok = tx->link && (tx->count == 0 || name_turn(tx, keys[0], key_len[0]));
    for (size_t i = 0; i < tx->count && ok; i++) {
        ok = sneck__wire_format(&tx->first, (struct command){2,
            (const char *const[]){"WATCH", keys[i]}, (const size_t[]){5, key_len[i]}});
        if (i == 0 && ok) {
            tx->key_len = key_len[0];
            tx->key_at = tx->first.len - strlen("\r\n") - key_len[0];
        }
    }
    return ok;
}

int sneck_tx_new(sneck_tx **out, sneck_client *client, size_t count, const void *const *keys,
                 const size_t *key_len, const sneck_tx_options *options, char *error)
{
    static const sneck_tx_options defaults = SNECK_TX_OPTIONS;
    const sneck_tx_options *o = options ? options : &defaults;
    const char *why = check_arguments_of_tx(client, count, keys, key_len, o);
    if (why) {
        sneck__message(error, "transaction: %s", why);
        return SNECK_INVALID;
    }
    sneck_tx *tx = calloc(1, sizeof *tx);
    if (tx) {
        tx->client = sneck__client_share(client);
        tx->link = sneck__client_borrow(client);
        tx->guard = o->guard ? sneck__lock_share(o->guard) : NULL;
        tx->options = *o;
        tx->count = count;
        tx->failed = SIZE_MAX;
        tx->begun_ms = sneck__now_ms();
        tx->end_ms = sneck__end_ms(tx->begun_ms, o->wait_ms);
    }
    if (tx && fill_tx(tx, keys, key_len)) {
        *out = tx;
        return SNECK_OK;
    }
    sneck_tx_free(tx);
    sneck__message(error, "out of memory");
    return SNECK_NO_MEMORY;
}

/* Gives the link back with no watch, no open MULTI, no reply that is not awaited, and
 * none of our ops. What cleans up behind a cancelled one may still leave. */
static void return_link(sneck_tx *tx)
{
    sneck_link *link = tx->link;
    for (sneck_op *op; (op = sneck__link_any_op(link));)
        sneck__op_detach(op);
    if (tx->watching || tx->unclean) {
        if (!tx->unclean && !sneck__link_quiet(link))
            sneck__link_flush_all(link);
        sneck__tx_close(tx);
    }
    link->pinned = false;
    sneck__client_give_back(link);
}

void sneck_tx_free(sneck_tx *tx)
{
    if (!tx)
        return;
    if (tx->op)
        sneck_op_cancel(&tx->op->op);
    if (tx->link)
        return_link(tx);
    sneck__tx_shut(tx);
    sneck__buffer_clear(&tx->first);
    sneck__buffer_clear(&tx->question);
    free(tx->turn.text);
    sneck_lock_free(tx->order);
    if (tx->guard)
        sneck__lock_drop(tx->guard);
    sneck__client_drop(tx->client);
    free(tx);
}
