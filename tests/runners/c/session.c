/* session.c - a transaction that stays open from call to call, by sneck_transact().
 *
 *   BEGIN --> the body runs: READ, WATCH, QUEUE, CONFLICTS
 *                ^             |
 *              again           | COMMIT, GIVE_UP, or a call that failed
 *                |             v
 *                \------- the body ends --> the transaction has ended
 *
 * It runs on a thread, whose body waits for calls and does them. A call is answered
 * there, or by what comes behind it: the next run, or the end. Invariant: a call
 * belongs to the thread from session_start() until `answered` is set.
 */
#include "call.h"
#include "latch.h"
#include "outcome.h"

#include <stdio.h>
#include <stdlib.h>

#define GAVE_UP 77 /* the body's own status */

struct body {
    pthread_t thread;
    struct latch asked, answered;
    struct call *call;         /* under way; NULL between two */
    sneck_client *client;
    struct words keys;
    sneck_tx_options options;
    sneck_tx_report report;
    char error[SNECK_ERROR_SIZE];
};

static void answer(struct body *body, int status)
{
    struct call *call = body->call;
    call->status = status;
    body->call = NULL;
    latch_set(&body->answered);
}

static int read_now(sneck_tx *tx, struct call *call)
{
    sneck_reply *reply = NULL;
    struct argv argv = argv_of(&call->command);
    int status = sneck_tx_read(&reply, tx, argv.count, argv.at, argv.len);
    argv_clear(&argv);
    call_take_reply(call, reply);
    return status;
}

static int do_call(sneck_tx *tx, struct call *call)
{
    return call->kind == CALL_READ ? read_now(tx, call) : run_on_tx(tx, call);
}

/* The call that ended the attempt before is answered by this one's beginning. */
static int run_body(sneck_tx *tx, void *data)
{
    struct body *body = data;
    body->call->again = body->call->kind != CALL_BEGIN;
    answer(body, SNECK_OK);
    for (;;) {
        latch_wait(&body->asked, -1);
        if (body->call->kind == CALL_COMMIT)
            return SNECK_OK;
        if (body->call->kind == CALL_GIVE_UP)
            return GAVE_UP;
        int status = do_call(tx, body->call);
        if (status != SNECK_OK)
            return status;
        answer(body, SNECK_OK);
    }
}

static void *run(void *data)
{
    struct body *body = data;
    sneck_reply *reply = NULL;
    struct argv keys = argv_of(&body->keys);
    int status = sneck_transact(&reply, body->client, keys.count, keys.at, keys.len,
                                &body->options, run_body, body, body->error);
    argv_clear(&keys);
    struct call *call = body->call;
    words_clear(&call->reply);
    if (!reply && status == SNECK_OK)
        outcome_nothing(&call->reply);
    call_take_reply(call, reply);
    call->report = body->report;
    snprintf(call->error, sizeof call->error, "%s", body->error);
    snprintf(call->server_code, sizeof call->server_code, "%s", body->report.server_code);
    call->session->open = false;
    bool gave_up = call->kind == CALL_GIVE_UP && status == GAVE_UP;
    answer(body, gave_up ? SNECK_OK : status);
    return NULL;
}

static void begin(struct call *call)
{
    struct body *body = calloc(1, sizeof *body);
    if (!body)
        abort();
    body->call = call;
    body->client = call->client;
    body->options = call->options;
    body->options.report = &body->report;
    body->report.failed = SIZE_MAX;
    words_append(&body->keys, &call->command);
    latch_init(&body->asked);
    latch_init(&body->answered);
    call->session->open = true;
    call->session->under_way = body;
    if (pthread_create(&body->thread, NULL, run, body) != 0)
        abort();
}

void session_start(struct call *call)
{
    struct body *body = call->session->under_way;
    if (call->kind == CALL_BEGIN) {
        begin(call);
        return;
    }
    body->call = call;
    latch_set(&body->asked);
}

static void end(struct body *body)
{
    pthread_join(body->thread, NULL);
    latch_destroy(&body->asked);
    latch_destroy(&body->answered);
    words_clear(&body->keys);
    free(body);
}

bool session_wait(struct call *call, int64_t ms)
{
    struct body *body = call->session->under_way;
    if (!latch_wait(&body->answered, ms))
        return false;
    if (!call->session->open) {
        end(body);
        call->session->under_way = NULL;
    }
    return true;
}
