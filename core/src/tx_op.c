/* tx_op.c - what the ops of a transaction have in common: exchanges, and ends.
 *
 *   PENDING --then, then, ...--> end                 the transaction goes on
 *      |                     \-> finish --> UNWATCH, if watching
 *      |                            --> release of the turn, if ours --> end
 *      \-- cancel --> end, and the connection is closed if a reply is due
 *
 * An exchange leaves in one write. A connection that goes before the commit has left
 * is a conflict, the attempt over; one that was never there is an error. When the
 * outcome is known, whatever happens while the op tidies up does not change it.
 *
 * MULTI, the writes and EXEC leave in one write, so a user that may not MULTI would
 * write without a transaction. So each connection first proves that it may, by an
 * empty one, which leaves with the first watches.
 */
#include "tx_op.h"

#include <stdlib.h>
#include <string.h>

static const char subject[] = "transaction";

/* ------------------------------------------------------------------ its ends */

void sneck__tx_op_end(struct tx_op *o, int status)
{
    sneck_tx *tx = o->tx;
    o->tx = NULL;
    tx->op = NULL;
    if (tx->guard_paused)
        sneck__renewal_pause(tx->guard, false);
    tx->guard_paused = false;
    sneck__op_end(&o->op, status, "%s", status == SNECK_OK ? "" : tx->error);
    if (status == SNECK_SERVER)
        memcpy(o->op.server_code, tx->server_code, sizeof o->op.server_code);
    if (o->reports)
        sneck__tx_report(tx, status);
}

void sneck__tx_op_no_memory(struct tx_op *o)
{
    sneck__tx_op_end(o, sneck__tx_fail(o->tx, SNECK_NO_MEMORY, "out of memory"));
}

/* Not while the link tells of a failure: then the connection is closed already. */
static void close_if_bad(sneck_tx *tx)
{
    if (tx->link->wire.state == WIRE_READY && (tx->unclean || !sneck__tx_connected(tx)))
        sneck__tx_close(tx);
}

static void end_finished(struct tx_op *o)
{
    sneck_op_free(o->child);
    o->child = NULL;
    memcpy(o->tx->error, o->message, sizeof o->message);
    sneck__tx_op_end(o, o->outcome);
}

static void tidied_up(struct tx_op *o)
{
    sneck_tx *tx = o->tx;
    tx->unclean = tx->unclean || (o->answer && o->answer->type == REDIS_REPLY_ERROR);
    tx->watching = false;
    close_if_bad(tx);
    tx->link->pinned = false;
    if (!sneck__tx_pass_turn(o, end_finished))
        end_finished(o);
}

static void forget_answers(struct tx_op *o)
{
    if (o->failure)
        freeReplyObject(o->failure);
    if (o->answer)
        freeReplyObject(o->answer);
    o->failure = o->answer = NULL;
    o->proofs = 0;
    o->refused = false;
}

void sneck__tx_op_finish(struct tx_op *o, int status)
{
    sneck_tx *tx = o->tx;
    o->outcome = status;
    o->ending = true;
    o->commits = false;
    memcpy(o->message, tx->error, sizeof tx->error); /* tx->error may change meanwhile */
    sneck__tx_shut(tx);
    tx->done = true;
    forget_answers(o);
    close_if_bad(tx);
    /* behind what a wait for the turn has left it is asked, too: then the server has done that */
    bool owes = tx->watching || !sneck__link_quiet(tx->link);
    if (!owes || !sneck__tx_connected(tx)) {
        tidied_up(o);
        return;
    }
    o->then = tidied_up;
    sneck__tx_op_sent(o, sneck__tx_op_send(o, UNWATCH.bytes, UNWATCH.len, 1));
}

/* The connection went before the commit: the attempt is over, but not the whole. */
static void end_lost_attempt(struct tx_op *o)
{
    o->tx->lost = true;
    o->tx->watching = false;
    sneck__tx_op_end(o, SNECK_CONFLICT);
}

static void end_gone(struct tx_op *o)
{
    sneck__tx_message(o->tx, "%s: its connection was closed before the commit", subject);
    end_lost_attempt(o);
}

/* ----------------------------------------------------------------- exchanges */

/* It was replaced in the very moment between the decision not to try MULTI and the
 * first WATCH. To try it now would drop the watches. */
static bool is_untried(const sneck_tx *tx)
{
    return tx->link->pinned && tx->watching && !tx->link->may_commit;
}

bool sneck__tx_op_begin(struct tx_op *o, void (*then)(struct tx_op *o))
{
    sneck_tx *tx = o->tx;
    forget_answers(o);
    o->then = then;
    o->begun = o->not_opened = o->reached = false;
    o->was_there = o->was_there || tx->link->pinned || tx->link->answered;
    sneck__link_look(tx->link);
    if (is_untried(tx))
        sneck__tx_close(tx);
    else if (!tx->lost && sneck__tx_connected(tx))
        return true;
    close_if_bad(tx);
    end_gone(o);
    return false;
}

bool sneck__tx_op_send(struct tx_op *o, const char *bytes, size_t len, size_t replies)
{
    bool ok = sneck__link_send_bytes(o->op.link, &o->op, bytes, len, replies);
    if (ok)
        o->op.in_flight += replies;
    return ok;
}

bool sneck__tx_op_send_watches(struct tx_op *o)
{
    sneck_tx *tx = o->tx;
    bool ok = tx->watch_count == 0 ||
              sneck__tx_op_send(o, tx->watches.bytes, tx->watches.len, tx->watch_count);
    tx->watching = tx->watching || tx->watch_count > 0;
    tx->watch_count = 0;
    sneck__buffer_clear(&tx->watches);
    return ok;
}

void sneck__tx_op_sent(struct tx_op *o, bool ok)
{
    sneck_tx *tx = o->tx;
    bool gone = tx->link->pinned && tx->link->wire.state != WIRE_READY;
    tx->link->pinned = true;
    if (ok)
        return;
    o->op.in_flight = 0; /* what was queued goes with the connection */
    sneck__link_abandon(o->op.link, &o->op);
    sneck__tx_close(tx);
    if (o->ending)
        tidied_up(o);
    else if (gone)
        end_gone(o);
    else
        sneck__tx_op_no_memory(o);
}

static bool may_answer(const struct tx_op *o)
{
    return !o->failure || o->commits || o->ending;
}

const char *sneck__tx_cause(const char *error)
{
    static const char because[] = "because of: ";
    const char *inner = strstr(error, because);
    return inner ? inner + strlen(because) : error;
}

/* All replies are there. A watch that was refused guards nothing, and a connection is
 * of no use within a MULTI whose EXEC was refused. */
static void go_on(struct tx_op *o)
{
    sneck_tx *tx = o->tx;
    if (!o->refused && may_answer(o)) {
        o->then(o);
        return;
    }
    if (o->refused)
        sneck__tx_close(tx);
    const char *cause = sneck__tx_cause(o->failure->str);
    sneck__code_word(tx->server_code, cause, strlen(cause));
    sneck__tx_op_end(o, sneck__tx_fail(tx, SNECK_SERVER, "%s: %s: %s: %.200s; nothing was written",
                                       subject, tx->client->address.text, o->refused
                                       ? "trying MULTI and EXEC" : "watching a key", cause));
}

/* The first replies, to PROOF. */
static void note_proof(struct tx_op *o, const redisReply *reply)
{
    o->proofs--;
    o->refused = o->refused || reply->type == REDIS_REPLY_ERROR;
    o->op.link->may_commit = o->proofs == 0 && !o->refused;
}

static bool tx_op_reply(sneck_op *op, redisReply *reply)
{
    struct tx_op *o = (struct tx_op *)op;
    bool last = op->in_flight == 0;
    if (o->commits && !o->begun)
        o->not_opened = reply->type == REDIS_REPLY_ERROR;
    o->begun = true;
    if (o->proofs > 0)
        note_proof(o, reply);
    if (o->asks && op->in_flight == 1) {
        /* an error, such as NOPERM, is no harm: the turn is advice */
        o->others_turn = reply->type == REDIS_REPLY_INTEGER && reply->integer != 0;
        return false;
    }
    redisReply **place = last ? &o->answer : &o->failure;
    bool keep = !*place && (last || reply->type == REDIS_REPLY_ERROR);
    if (keep)
        *place = reply;
    if (last)
        go_on(o);
    return keep;
}

/* A server that was never there is an error; one that went away, a lost attempt. */
static void end_lost(struct tx_op *o, bool committing)
{
    sneck_tx *tx = o->tx;
    if (committing)
        sneck__lock_doubt_release(tx->order, &o->passing);
    else
        sneck__lock_undo_release(tx->order, &o->passing);
    int status = sneck__op_tell_lost(tx->error, &o->op, committing, subject);
    tx->watching = false;
    if (status == SNECK_CONNECTION && (o->was_there || tx->attempts > 1 || o->reached)) {
        end_lost_attempt(o);
        return;
    }
    tx->status = status;
    memcpy(tx->server_code, o->op.link->fail_code, sizeof tx->server_code);
    if (o->commits)
        sneck__tx_op_finish(o, status);
    else
        sneck__tx_op_end(o, status);
}

/* Each of its requests is told to be lost, in order: the last one decides, since
 * a transaction without its EXEC has done nothing. */
static void tx_op_lost(sneck_op *op, bool sent)
{
    struct tx_op *o = (struct tx_op *)op;
    o->reached = o->reached || sent;
    if (op->in_flight > 0)
        return;
    if (o->ending)
        tidied_up(o);
    else
        end_lost(o, sent && o->commits);
}

static void tx_op_timer(sneck_op *op)
{
    struct tx_op *o = (struct tx_op *)op;
    o->then(o);
}

/* ------------------------------------------------------------- the first exchange */

static void ask_again(struct tx_op *o)
{
    sneck__tx_note_turn(o);
    if (!sneck__tx_op_begin(o, o->after))
        return;
    bool ok = sneck__tx_op_send(o, UNWATCH.bytes, UNWATCH.len, 1) &&
              sneck__tx_op_send(o, o->watches.bytes, o->watches.len, o->watch_count) &&
              sneck__tx_op_send_watches(o) &&
              sneck__tx_op_send(o, o->command.bytes, o->command.len, 1);
    sneck__tx_op_sent(o, ok);
}

/* It is polite to wait for our turn, and to read again then: a writer that never meets
 * a conflict would otherwise go first for ever. */
static void heard(struct tx_op *o)
{
    o->asks = false;
    if (!o->others_turn)
        o->after(o);
    else if (!sneck__tx_take_turn(o, ask_again))
        ask_again(o);
}

static bool send_proof(struct tx_op *o)
{
    o->proofs = o->tx->link->may_commit ? 0 : 2;
    return o->proofs == 0 || sneck__tx_op_send(o, PROOF.bytes, PROOF.len, o->proofs);
}

static bool send_with_question(struct tx_op *o, struct command command)
{
    sneck_tx *tx = o->tx;
    o->after = o->then;
    o->then = heard;
    o->asks = true;
    tx->asks = false;
    tx->watching = true;
    o->watches = tx->watches;
    o->watch_count = tx->watch_count;
    tx->watches = (struct buffer){0};
    tx->watch_count = 0;
    return sneck__wire_format(&o->command, command) &&
           sneck__tx_op_send(o, o->watches.bytes, o->watches.len, o->watch_count) &&
           sneck__tx_op_send(o, tx->question.bytes, tx->question.len, 1) &&
           sneck__tx_op_send(o, o->command.bytes, o->command.len, 1);
}

static bool send_with_watches(struct tx_op *o, struct command command)
{
    bool ok = sneck__tx_op_send_watches(o) && sneck__link_send(o->op.link, &o->op, command);
    o->op.in_flight += ok;
    return ok;
}

void sneck__tx_op_ask(struct tx_op *o, struct command command, void (*then)(struct tx_op *o))
{
    if (!sneck__tx_op_begin(o, then))
        return;
    bool asks = o->tx->asks && o->tx->watch_count > 0;
    sneck__tx_op_sent(o, send_proof(o) && (asks ? send_with_question(o, command)
                                                : send_with_watches(o, command)));
}

/* ------------------------------------------------------------------- the class */

/* What is still queued must not leave, nor a reply come to who uses the link next. */
static void tx_op_cancel(sneck_op *op)
{
    struct tx_op *o = (struct tx_op *)op;
    sneck_tx *tx = o->tx;
    bool awaits = op->in_flight > 0;
    bool sent = awaits && o->commits && !sneck__link_unsent(op->link, op);
    if (o->child && !o->ending) {
        sneck_op_cancel(o->child); /* a cleanup follows, unless it has the turn already */
        sneck__tx_note_turn(o);
    }
    if (sent)
        sneck__lock_doubt_release(tx->order, &o->passing);
    else
        sneck__lock_undo_release(tx->order, &o->passing);
    if (o->ending)
        end_finished(o);
    else if (sent)
        sneck__tx_op_end(o, sneck__tx_fail(tx, SNECK_UNKNOWN, "%s: cancelled while its commit was"
                         " under way, so the server may or may not have done it", subject));
    else
        sneck__tx_op_end(o, sneck__tx_fail(tx, SNECK_INTERRUPTED, "%s: cancelled before it was"
                         " done; nothing was written", subject));
    tx->done = tx->done || sent;
    if (awaits)
        sneck__tx_close(tx);
}

static void tx_op_clear(sneck_op *op)
{
    struct tx_op *o = (struct tx_op *)op;
    sneck_op_free(o->child);
    forget_answers(o);
    sneck__buffer_clear(&o->watches);
    sneck__buffer_clear(&o->command);
    free(o->token);
    free(o->passing.token);
}

static const struct op_class tx_op_class = {
    .reply = tx_op_reply,
    .lost = tx_op_lost,
    .timer = tx_op_timer,
    .cancel = tx_op_cancel,
    .clear = tx_op_clear,
};

struct tx_op *sneck__tx_op_new(sneck_tx *tx)
{
    struct tx_op *o = sneck__op_new(sizeof *o, &tx_op_class, tx->client, tx->link);
    if (!o)
        return NULL;
    o->op.alone = true;
    if (tx->op) {
        sneck__op_end(&o->op, SNECK_INVALID, "%s: another op of it is under way", subject);
    } else if (o->op.status == SNECK_PENDING) {
        o->tx = tx;
        tx->op = o;
    } else {
        sneck__tx_fail(tx, o->op.status, "%s", sneck_op_error(&o->op));
    }
    return o;
}
