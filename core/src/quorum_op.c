/* quorum_op.c - what the ops on a quorum's lock have in common: to ask all servers at
 * once, to count what they say, and to tell it.
 *
 * A round is one request to each server and the answers that come within the limit. The
 * capability looks at the counts after each answer and ends the round as soon as it
 * is decided; what comes later is swallowed. The next round may begin at once, since each
 * connection answers in order.
 *
 *   round --answers--> decided --> the next round, or the end
 *      \------ limit: who is silent has failed ------^
 */
#include "quorum_op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_MAX_MS 1000

/* ------------------------------------------------------------------ the counts */

static size_t *count_of(struct quorum_op *q, enum voice voice)
{
    size_t *const counts[] = {&q->silent, &q->yes, &q->no, &q->failed};
    return counts[voice];
}

void sneck__quorum_speak(struct member *m, enum voice voice)
{
    --*count_of(m->whole, m->voice);
    ++*count_of(m->whole, voice);
    m->voice = voice;
}

static size_t tolerated(const struct quorum_op *q)
{
    return q->count - q->majority;
}

bool sneck__quorum_agrees(const struct quorum_op *q)
{
    return q->yes >= q->majority;
}

bool sneck__quorum_denies(const struct quorum_op *q)
{
    return q->no > tolerated(q);
}

bool sneck__quorum_fails(const struct quorum_op *q)
{
    return q->failed > tolerated(q);
}

bool sneck__quorum_refuses(const struct quorum_op *q)
{
    return q->refused > tolerated(q);
}

bool sneck__quorum_may_agree(const struct quorum_op *q)
{
    return q->yes + q->silent >= q->majority;
}

bool sneck__quorum_may_deny(const struct quorum_op *q)
{
    return q->no + q->silent > tolerated(q);
}

bool sneck__quorum_doubtful(const struct quorum_op *q)
{
    for (size_t i = 0; i < q->count; i++)
        if (q->members[i].voice == SILENT || q->members[i].doubtful)
            return true;
    return q->yes > 0;
}

/* --------------------------------------------------------------------- failures */

void sneck__quorum_keep_why(struct member *m, const char *text)
{
    free(m->op.error);
    m->op.error = strdup(text);
    m->why = m->op.error ? m->op.error : "out of memory";
}

static void fail_lost(struct member *m, bool sent)
{
    const sneck_link *link = m->op.link;
    sneck__quorum_keep_why(m, link->fail_text + link->fail_why);
    m->doubtful = sent;
    m->asked = sent || m->asked_before;
    m->whole->refused += link->fail_status != SNECK_CONNECTION;
    sneck__quorum_speak(m, FAILED);
}

static void fail_reply(struct member *m, const redisReply *reply)
{
    char code[CODE_SIZE], text[SNECK_ERROR_SIZE];
    if (reply->type == REDIS_REPLY_ERROR) {
        sneck__code_word(code, reply->str, (size_t)reply->len);
        snprintf(text, sizeof text, "%.200s%s", reply->str, sneck__advice(code, reply->str));
        m->whole->refused += !sneck__code_passes(code);
    } else {
        snprintf(text, sizeof text, "a reply of an unexpected type");
        m->whole->refused++;
    }
    sneck__quorum_keep_why(m, text);
    sneck__quorum_speak(m, FAILED);
}

static void abandon(struct member *m)
{
    if (m->op.in_flight > 0)
        sneck__link_abandon(m->op.link, &m->op);
    m->op.in_flight = 0;
}

void sneck__quorum_give_up(struct quorum_op *q)
{
    for (size_t i = 0; i < q->count; i++)
        abandon(&q->members[i]);
}

/* ---------------------------------------------------------- what a server answers */

/* The server does not know the script. */
static bool ask_by_text(struct quorum_op *q, struct member *m, const redisReply *reply)
{
    sneck_op *op = &q->base.op;
    if (!op->script || !sneck__is_noscript(reply))
        return false;
    sneck__op_as_text(op);
    if (!sneck__link_send(m->op.link, &m->op, (struct command){op->argc, op->argv, op->argv_len}))
        return false;
    sneck__link_note_script(m->op.link, op->script);
    m->op.in_flight++;
    return true;
}

static bool member_reply(sneck_op *op, redisReply *reply)
{
    struct member *m = (struct member *)op;
    struct quorum_op *q = m->whole;
    if (q->base.op.status != SNECK_PENDING || ask_by_text(q, m, reply))
        return false;
    enum voice voice = q->kind->read(q, m, reply);
    if (voice == FAILED)
        fail_reply(m, reply);
    else
        sneck__quorum_speak(m, voice);
    q->kind->decide(q);
    return false;
}

static void member_lost(sneck_op *op, bool sent)
{
    struct member *m = (struct member *)op;
    struct quorum_op *q = m->whole;
    if (q->base.op.status != SNECK_PENDING)
        return;
    fail_lost(m, sent);
    q->kind->decide(q);
}

static const struct op_class member_class = {
    .reply = member_reply,
    .lost = member_lost,
};

void sneck__quorum_timer(sneck_op *op)
{
    struct quorum_op *q = (struct quorum_op *)op;
    char text[48];
    snprintf(text, sizeof text, "no answer within %lld ms", (long long)q->limit_ms);
    for (size_t i = 0; i < q->count; i++) {
        struct member *m = &q->members[i];
        if (m->voice != SILENT)
            continue;
        abandon(m);
        sneck__quorum_keep_why(m, text);
        m->doubtful = true;
        sneck__quorum_speak(m, FAILED);
    }
    q->kind->decide(q);
}

/* ----------------------------------------------------------------------- rounds */

void sneck__quorum_round(struct quorum_op *q)
{
    sneck__quorum_give_up(q);
    q->silent = q->yes = q->no = q->refused = 0;
    q->failed = q->count;
    for (size_t i = 0; i < q->count; i++)
        q->members[i].voice = FAILED;
    q->sent_ms = sneck__now_ms();
    sneck__op_set_timer(&q->base.op, sneck__later_ms(q->sent_ms, q->limit_ms));
}

bool sneck__quorum_format(struct quorum_op *q, struct command command)
{
    sneck__buffer_drop(&q->bytes, sneck__buffer_end(&q->bytes));
    sneck__buffer_drop(&q->text, sneck__buffer_end(&q->text));
    return sneck__wire_format(&q->bytes, command);
}

/* Nobody may be left to hear of a script that is not there, so it is sent by its text to
 * who may not know it. */
static const struct buffer *request_for(struct quorum_op *q, const struct member *m)
{
    sneck_op *op = &q->base.op;
    if (!op->script || sneck__link_knows(m->op.link, op->script))
        return &q->bytes;
    if (q->text.len == 0) {
        sneck__op_as_text(op);
        sneck__wire_format(&q->text, (struct command){op->argc, op->argv, op->argv_len});
    }
    return &q->text;
}

void sneck__quorum_ask(struct quorum_op *q, struct member *m)
{
    const struct buffer *request = request_for(q, m);
    m->doubtful = false;
    if (sneck__link_stuck(m->op.link)) {
        m->why = "what was sent to it before still waits to leave";
    } else if (request->len > 0 &&
        sneck__link_send_bytes(m->op.link, &m->op, request->bytes, request->len, 1)) {
        m->op.in_flight++;
        m->asked_before = m->asked;
        m->asked = true;
        sneck__link_note_script(m->op.link, q->base.op.script);
        sneck__quorum_speak(m, SILENT);
    } else {
        m->why = "out of memory";
    }
}

void sneck__quorum_ask_all(struct quorum_op *q, struct command command)
{
    sneck__quorum_round(q);
    bool formatted = sneck__quorum_format(q, command);
    for (size_t i = 0; i < q->count; i++) {
        q->members[i].why = formatted ? NULL : "out of memory";
        if (formatted)
            sneck__quorum_ask(q, &q->members[i]);
    }
    if (q->silent == 0)
        q->kind->decide(q);
}

void sneck__quorum_ask_script(struct quorum_op *q, const struct script *script, size_t argc,
                              const char *const *argv, const size_t *len)
{
    sneck_op *op = &q->base.op;
    sneck__lock_op_compose(&q->base, script, argc, argv, len);
    sneck__quorum_ask_all(q, (struct command){op->argc, op->argv, op->argv_len});
}

/* --------------------------------------------------------------------- messages */

static void tell(const struct quorum_op *q, char out[SNECK_ERROR_SIZE], size_t servers,
                 const char *did)
{
    int used = snprintf(out, SNECK_ERROR_SIZE, "%s: %zu of %zu servers %s, %zu are needed",
                        q->base.lock->what, servers, q->count, did, q->majority);
    for (size_t i = 0; i < q->count && used < SNECK_ERROR_SIZE; i++) {
        const struct member *m = &q->members[i];
        if (m->why && m->voice != YES)
            used += snprintf(out + used, (size_t)(SNECK_ERROR_SIZE - used), "; %s: %s",
                             sneck_client_address(q->base.lock->client, i), m->why);
    }
}

void sneck__quorum_tell(const struct quorum_op *q, char out[SNECK_ERROR_SIZE], const char *did)
{
    tell(q, out, q->yes, did);
}

void sneck__quorum_end_counted(struct quorum_op *q, int status, size_t servers, const char *did)
{
    char text[SNECK_ERROR_SIZE];
    tell(q, text, servers, did);
    sneck__op_end(&q->base.op, status, "%s", text);
}

void sneck__quorum_end(struct quorum_op *q, int status, const char *did)
{
    sneck__quorum_end_counted(q, status, q->yes, did);
}

const sneck_client *sneck_op_client(const sneck_op *op)
{
    return op->link ? op->link->client : NULL;
}

const char *sneck_op_member_error(const sneck_op *op, size_t server)
{
    const struct quorum_op *q = (const struct quorum_op *)op;
    if (!sneck__is_quorum_op(op) || server >= q->count || !q->members[server].why)
        return "";
    return q->members[server].why;
}

/* --------------------------------------------------------------------- lifetime */

static void begin_members(struct quorum_op *q, struct member *members)
{
    const sneck_link *link = q->base.op.link;
    q->members = members;
    q->count = link->member_count;
    q->majority = link->client->quorum->majority;
    q->failed = q->count;
    for (size_t i = 0; i < q->count; i++) {
        members[i].whole = q;
        members[i].voice = FAILED;
        sneck__op_begin_part(&members[i].op, &member_class, link->members[i]);
    }
}

void *sneck__quorum_op_new(size_t size, const struct op_class *class,
                           const struct quorum_kind *kind, sneck_lock *lock, sneck_link *link)
{
    const sneck_client *client = lock->client;
    size_t total = size + client->quorum->count * sizeof(struct member);
    struct quorum_op *q = sneck__lock_op_new(total, class, lock, link);
    if (!q)
        return NULL;
    q->kind = kind;
    q->limit_ms = sneck__least_ms(client->io_timeout_ms, LIMIT_MAX_MS);
    if (q->base.op.status == SNECK_PENDING)
        begin_members(q, (struct member *)(void *)((char *)q + size));
    return q;
}

void sneck__quorum_leave(sneck_op *op)
{
    struct quorum_op *q = (struct quorum_op *)op;
    for (size_t i = 0; i < q->count; i++)
        sneck__op_leave_part(&q->members[i].op);
}

void sneck__quorum_clear(sneck_op *op)
{
    struct quorum_op *q = (struct quorum_op *)op;
    for (size_t i = 0; i < q->count; i++)
        free(q->members[i].op.error);
    sneck__buffer_clear(&q->bytes);
    sneck__buffer_clear(&q->text);
    sneck__lock_op_clear(op);
}

bool sneck__is_quorum_op(const sneck_op *op)
{
    return op->class->leave == sneck__quorum_leave;
}
