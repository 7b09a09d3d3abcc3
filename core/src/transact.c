/* transact.c - runs a transaction's body until its writes are committed.
 *
 *   attempt --committed--> done
 *      ^  \-- conflict --> attempts or time used up? --> CONFLICT
 *      |                        | no
 *      +---- pause, or order ---+
 *
 * After a conflict it pauses at random, up to a limit that doubles: writers that met
 * once do not meet again. After three in a row it queues for a lock beside the first
 * key, and so does every writer that sees somebody hold it: they go one after the other
 * then. That lock is advice only. What makes a commit right is WATCH, also
 * against writers that know nothing of the lock; so it is no harm if it cannot be
 * had, or ends too early.
 */
#include "clock.h"
#include "companion.h"
#include "tx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_LIMIT_MS 64
#define TURN_PAUSE_MS 4        /* the same for whoever others wait for */
#define ORDER_AFTER 3          /* conflicts in a row */
#define ORDER_TTL_MS 2000
#define ORDER_WAIT_MS 1000

struct run {
    sneck_client *client;
    size_t count;
    const void *const *keys;
    const size_t *key_len;
    const sneck_tx_options *options;
    sneck_tx_body *body;
    void *data;
    int64_t begun_ms, end_ms;
    uint32_t hot;              /* marks the first key as one where writers meet */
    struct companion name;     /* of the lock that orders the writers */
    struct companion order_key; /* its key: with the client's prefix */
    sneck_lock *order;         /* owned; NULL: not made yet */
    bool ordered;              /* it is held */
    bool lost;                 /* the last attempt ended with its connection */
    int attempts;              /* runs of the body */
    size_t failed;             /* the first write that failed; SIZE_MAX: none was run */
    char error[SNECK_ERROR_SIZE];
    char server_code[CODE_SIZE];
};

/* ------------------------------------------------------------------- pausing */

static bool no_reply(sneck_op *op, redisReply *reply)
{
    (void)op, (void)reply; /* it sends nothing */
    return false;
}

static void no_loss(sneck_op *op, bool sent)
{
    (void)op, (void)sent;
}

static void pause_over(sneck_op *op)
{
    sneck__op_end(op, SNECK_OK, "%s", "");
}

static const struct op_class pause_class = {
    .reply = no_reply, .lost = no_loss, .timer = pause_over,
};

static uint32_t random_below(uint32_t limit)
{
    char digits[2 * TOKEN_RANDOM + 1] = "";
    if (!sneck__token_tail(digits))
        return limit / 2;
    digits[8] = '\0';
    return (uint32_t)strtoul(digits, NULL, 16) % limit;
}

static uint32_t pause_limit(const struct run *run, int conflicts)
{
    uint32_t most = run->ordered ? TURN_PAUSE_MS : PAUSE_LIMIT_MS;
    return conflicts < 6 && 1u << conflicts < most ? 1u << conflicts : most;
}

static int pause_after(struct run *run, int conflicts)
{
    uint32_t limit = pause_limit(run, conflicts);
    int64_t due = sneck__now_ms() + random_below(limit + 1);
    sneck_op *op = sneck__op_new(sizeof *op, &pause_class, run->client, NULL);
    if (!op)
        return SNECK_NO_MEMORY;
    sneck__op_set_timer(op, due < run->end_ms ? due : run->end_ms);
    int status = sneck_op_wait(op, run->options->interrupt, run->options->interrupt_data);
    snprintf(run->error, sizeof run->error, "%s", sneck_op_error(op));
    sneck_op_free(op);
    return status;
}

/* ------------------------------------------------------------------ ordering */

/* Names the lock that orders the writers of the first key. */
static bool name_order(struct run *run)
{
    const sneck_client *client = run->client;
    if (!sneck__companion(&run->name, run->keys[0], run->key_len[0], "order"))
        return false;
    run->order_key.len = client->prefix_len + run->name.len;
    run->order_key.text = malloc(run->order_key.len);
    if (!run->order_key.text)
        return false;
    memcpy(run->order_key.text, client->prefix, client->prefix_len);
    memcpy(run->order_key.text + client->prefix_len, run->name.text, run->name.len);
    return true;
}

static void make_order(struct run *run)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.ttl_ms = ORDER_TTL_MS;
    if (sneck_lock_new(&run->order, run->client, run->name.text, run->name.len, &options,
                       NULL) != SNECK_OK)
        run->order = NULL;
}

/* Waits for our turn. An interrupt is for the caller; everything else is no harm. */
static int take_order(void *data)
{
    struct run *run = data;
    sneck_op *op;
    struct counters *counters = &run->client->counters;
    int64_t left = run->end_ms - sneck__now_ms();
    if (!run->order)
        make_order(run);
    if (!run->order || left <= 0 ||
        sneck_lock_acquire_start(&op, run->order, NULL,
                                 left < ORDER_WAIT_MS ? left : ORDER_WAIT_MS) != SNECK_OK)
        return SNECK_OK;
    int status = sneck_op_wait(op, run->options->interrupt, run->options->interrupt_data);
    run->ordered = status == SNECK_OK;
    sneck__note_busy(counters, run->hot,
                     !run->ordered || sneck__was_busy(counters, run->order->hash));
    snprintf(run->error, sizeof run->error, "%s", sneck_op_error(op));
    sneck_op_free(op);
    return status == SNECK_INTERRUPTED ? status : SNECK_OK;
}

static void end_order(struct run *run)
{
    if (run->ordered)
        sneck_lock_release(run->order);
    sneck_lock_free(run->order);
    free(run->name.text);
    free(run->order_key.text);
}

/* ------------------------------------------------------------------ attempts */

static int watch_all(struct run *run, sneck_tx *tx)
{
    int status = SNECK_OK;
    for (size_t i = 0; i < run->count && status == SNECK_OK; i++)
        status = sneck_tx_watch(tx, run->keys[i], run->key_len[i]);
    return status;
}

static int run_body(struct run *run, sneck_tx *tx, sneck_reply **out)
{
    run->attempts++;
    int status = run->body(tx, run->data);
    if (status != SNECK_OK) /* CONFLICT: from a read whose connection was lost */
        return status;
    if (tx->lost)
        return SNECK_CONFLICT;
    if (tx->status != SNECK_OK) /* a failure that the body did not heed */
        return tx->status;
    return tx->write_count > 0 ? sneck__tx_commit(out, tx) : SNECK_OK;
}

static int attempt(struct run *run, int conflicts, sneck_reply **out)
{
    sneck_tx tx;
    const struct tx_turn turn = {run->order_key.text, run->order_key.len, take_order, run};
    int status = sneck__tx_begin(&tx, run->client, run->options,
                                 run->ordered || run->count == 0 ? NULL : &turn, conflicts);
    if (status == SNECK_OK)
        status = watch_all(run, &tx);
    if (status == SNECK_OK)
        status = run_body(run, &tx, out);
    run->lost = tx.lost;
    run->failed = tx.failed;
    memcpy(run->error, tx.error, sizeof run->error);
    memcpy(run->server_code, tx.server_code, sizeof run->server_code);
    sneck__tx_end(&tx);
    return status;
}

static int used_up(struct run *run)
{
    int attempts = run->attempts;
    long long ms = (long long)(sneck__now_ms() - run->begun_ms);
    char quoted[QUOTED_SIZE], why[SNECK_ERROR_SIZE];
    if (run->lost) {
        snprintf(why, sizeof why, "%s", run->error);
        sneck__message(run->error, "%.250s; nothing was written in %d attempts, %lld ms", why,
                       attempts, ms);
        return SNECK_CONNECTION;
    }
    sneck__message(run->error, "transaction: key %s%s: others changed it in each of %d attempts,"
                   " %lld ms; allow more, or use a lock",
                   run->count ? sneck__quote(quoted, run->keys[0], run->key_len[0]) : "(none)",
                   run->count > 1 ? " or another watched one" : "", attempts, ms);
    return SNECK_CONFLICT;
}

static int run_attempts(struct run *run, sneck_reply **out)
{
    bool meets = run->count > 0 && sneck__was_busy(&run->client->counters, run->hot);
    for (int conflicts = 0;;) {
        int status = SNECK_OK;
        bool had_order = run->ordered;
        if (!had_order && (meets || (conflicts >= ORDER_AFTER && run->count > 0)))
            status = take_order(run);
        if (status == SNECK_OK && conflicts > 0 && run->ordered == had_order)
            status = pause_after(run, conflicts); /* its turn cannot be had, or is no help */
        if (status == SNECK_OK)
            status = attempt(run, conflicts, out);
        if (status != SNECK_CONFLICT)
            return status;
        conflicts++;
        if (conflicts >= run->options->attempts || sneck__now_ms() >= run->end_ms)
            return used_up(run);
        if (conflicts >= 2)
            sneck__note_busy(&run->client->counters, run->hot, true);
    }
}

/* ----------------------------------------------------------------- the public */

static const char *check_run(const struct run *run)
{
    const sneck_tx_options *o = run->options;
    if (o->size != sizeof *o)
        return "start the options from SNECK_TX_OPTIONS";
    if (o->attempts < 1)
        return "the number of attempts is from 1";
    if (o->wait_ms != SNECK_FOREVER && (o->wait_ms < 0 || o->wait_ms > SNECK_TTL_MAX_MS))
        return "a wait is from 0 ms to 365 days, or SNECK_FOREVER";
    if (o->guard && o->guard->client != run->client)
        return "the guard belongs to another client";
    for (size_t i = 0; i < run->count; i++)
        if (!run->keys[i] || run->key_len[i] > SNECK_NAME_MAX)
            return "a key is NULL or longer than 1 MiB";
    return NULL;
}

static void write_report(const struct run *run, int status)
{
    sneck_tx_report *report = run->options->report;
    if (!report)
        return;
    report->attempts = run->attempts;
    report->elapsed_ms = sneck__now_ms() - run->begun_ms;
    report->failed = run->failed;
    snprintf(report->server_code, sizeof report->server_code, "%s",
             status == SNECK_SERVER ? run->server_code : "");
}

int sneck_transact(sneck_reply **out, sneck_client *client, size_t count,
                   const void *const *keys, const size_t *key_len,
                   const sneck_tx_options *options, sneck_tx_body *body, void *data, char *error)
{
    static const sneck_tx_options defaults = SNECK_TX_OPTIONS;
    sneck_reply *reply = NULL;
    struct run run = {
        .client = client, .count = count, .keys = keys, .key_len = key_len,
        .options = options ? options : &defaults, .body = body, .data = data,
        .begun_ms = sneck__now_ms(), .failed = SIZE_MAX,
    };
    const char *why = check_run(&run);
    if (why) {
        sneck__message(error, "transaction: %s", why);
        return SNECK_INVALID;
    }
    int64_t wait_ms = run.options->wait_ms;
    run.end_ms = wait_ms == SNECK_FOREVER ? NEVER_MS : sneck__later_ms(run.begun_ms, wait_ms);
    run.hot = count ? sneck__hash(keys[0], key_len[0]) : 0;
    int status = SNECK_NO_MEMORY;
    if (count > 0 && !name_order(&run))
        sneck__message(run.error, "out of memory");
    else
        status = run_attempts(&run, &reply);
    end_order(&run);
    if (status == SNECK_OK || reply)
        *out = reply;
    write_report(&run, status);
    if (status != SNECK_OK)
        sneck__message(error, "%s", run.error);
    return status;
}
