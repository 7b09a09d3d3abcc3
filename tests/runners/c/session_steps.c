/* session_steps.c - a transaction that stays open from call to call, by single ops.
 *
 *   BEGIN --begin op--> READ by an op; WATCH, QUEUE, CONFLICTS at once
 *               ^             |
 *             again           | COMMIT by an op, or a READ that lost its connection
 *               \-- begin op -+--> the end
 *                                  by an unwatch op after GIVE_UP and what failed
 *
 * Invariant: `op` is the one under way for the call; NULL between two calls.
 */
#include "call.h"
#include "outcome.h"

#include <stdio.h>
#include <stdlib.h>

struct steps {
    sneck_tx *tx;
    sneck_tx_report report;
    sneck_op *op;
    bool begins, gives_up;     /* what the op does, whatever the call is */
    int failure;               /* of the call that made it give up; SNECK_OK: none */
};

static void check_started(int status)
{
    if (status != SNECK_OK)
        abort();
}

static void end(struct call *call, int status)
{
    struct steps *s = call->session->under_way;
    call->status = status;
    call->report = s->report;
    call->session->open = false;
    call->session->under_way = NULL;
    sneck_op_free(s->op);
    sneck_tx_free(s->tx);
    free(s);
}

static void start_begin(struct steps *s)
{
    s->begins = true;
    check_started(sneck_tx_begin_start(&s->op, s->tx));
}

/* Ends the transaction without a commit, and with a status. */
static void start_giving_up(struct steps *s, int status)
{
    s->gives_up = true;
    s->failure = status;
    check_started(sneck_tx_unwatch_start(&s->op, s->tx));
}

/* ------------------------------------------------------------------ starting */

static void open_session(struct call *call)
{
    struct steps *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    call->session->open = true;
    call->session->under_way = s;
    call->options.report = &s->report;
    s->report.failed = SIZE_MAX;
    struct argv keys = argv_of(&call->command);
    int status = sneck_tx_new(&s->tx, call->client, keys.count, keys.at, keys.len,
                              &call->options, call->error);
    argv_clear(&keys);
    if (status == SNECK_OK)
        start_begin(s);
    else
        end(call, status);
}

static void start_read(struct steps *s, const struct words *command)
{
    struct argv argv = argv_of(command);
    check_started(sneck_tx_read_start(&s->op, s->tx, argv.count, argv.at, argv.len));
    argv_clear(&argv);
}

void session_steps_start(struct call *call)
{
    struct steps *s = call->session->under_way;
    int status;
    switch (call->kind) {
    case CALL_BEGIN:
        open_session(call);
        return;
    case CALL_READ:
        start_read(s, &call->command);
        return;
    case CALL_COMMIT:
        check_started(sneck_tx_commit_start(&s->op, s->tx));
        return;
    case CALL_GIVE_UP:
        start_giving_up(s, SNECK_OK);
        return;
    default:
        status = run_on_tx(s->tx, call);
    }
    if (status != SNECK_OK)
        start_giving_up(s, status);
}

/* -------------------------------------------------------------------- ending */

static void take_reply(struct call *call, const sneck_op *op, int status)
{
    const sneck_reply *reply = sneck_op_reply(op);
    if (reply)
        outcome_reply(&call->reply, reply);
    else if (status == SNECK_OK && call->kind == CALL_COMMIT)
        outcome_nothing(&call->reply);
}

/* The op has ended. What comes next is another one, or the call's end. */
static void finish_op(struct call *call)
{
    struct steps *s = call->session->under_way;
    sneck_op *op = s->op;
    int status = sneck_op_status(op);
    bool begun = s->begins;
    s->op = NULL;
    s->begins = false;
    if (!s->gives_up) {
        snprintf(call->server_code, sizeof call->server_code, "%s", sneck_op_server_code(op));
        take_reply(call, op, status);
    }
    sneck_op_free(op);
    if (s->gives_up) {
        end(call, s->failure);
    } else if (begun && status == SNECK_OK) {
        call->again = call->kind != CALL_BEGIN;
    } else if (!begun && status == SNECK_CONFLICT) {
        start_begin(s);
    } else if (begun || call->kind == CALL_COMMIT) {
        end(call, status);
    } else if (status != SNECK_OK) {
        start_giving_up(s, status);
    }
}

sneck_op *session_steps_op(const struct call *call)
{
    const struct steps *s = call->session->under_way;
    return s ? s->op : NULL;
}

bool session_steps_advance(struct call *call)
{
    sneck_op *op;
    while ((op = session_steps_op(call)) && sneck_op_status(op) != SNECK_PENDING)
        finish_op(call);
    return !op;
}
