/* link.c - one connection that many ops share.
 *
 * Invariant: `requests` holds, in the order sent, one entry for each reply that is
 * still to come. An op that gives up leaves its entry behind without the op, so a
 * reply can never reach a command that it does not answer. Any doubt about the
 * stream (a broken exchange, an overdue reply) closes the connection, and every
 * op learns whether its command may have reached the server.
 *
 * Commands that had not left when a connection failed which used to work stay
 * queued for the next one: a server's restart is no error for them. A pinned link
 * loses them: a transaction must not go on where its WATCH never was.
 *
 * A quorum's release that no op waits for any more, and that has not left when all else is given
 * up, is kept, and goes out before whatever is queued next. It opens no connection by itself.
 *
 * Beside the socket for commands a link has an inbox, opened when something waits.
 * When one of the two is replaced so is the other, and with it the inbox's name.
 *
 * A command connects at once. Thousands that wait are in no hurry: while the server cannot
 * be reached the inbox is tried again after pauses that double, and for all of them; so is
 * the commands' connection, where they wait by polling.
 */
#include "link.h"

#include "client.h"
#include "clock.h"
#include "fork.h"
#include "op.h"
#include "script.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STALE_MS 100           /* idle for longer: look before writing */
#define GRACE_MS 1000          /* for answers that nobody has looked for in time */
#define CROWD_BYTES 65536      /* so much in the buffer is a crowd */
#define STUCK_BYTES 1048576    /* more than that waits to be sent */
#define STUCK_MS 1000          /* and the first of it for so long */
#define LINGER_MS 100          /* how long what nobody waits for may delay a close, a quorum's */

static sneck_link *link_of(struct wire *wire)
{
    return (sneck_link *)((char *)wire - offsetof(sneck_link, wire));
}

/* ------------------------------------------------------------- the requests */

static struct request *request_at(const sneck_link *link, size_t i)
{
    return &link->requests[(link->first + i) % link->size];
}

static bool push_request(sneck_link *link, struct request request)
{
    if (link->count == link->size) {
        size_t size = link->size ? link->size * 2 : 8;
        struct request *grown = malloc(size * sizeof *grown);
        if (!grown)
            return false;
        for (size_t i = 0; i < link->count; i++)
            grown[i] = *request_at(link, i);
        free(link->requests);
        link->requests = grown;
        link->first = 0;
        link->size = size;
    }
    link->count++;
    *request_at(link, link->count - 1) = request;
    return true;
}

static struct request pop_request(sneck_link *link)
{
    struct request request = *request_at(link, 0);
    link->first = (link->first + 1) % link->size;
    link->count--;
    link->popped++;
    return request;
}

/* An op has few requests, but thousands of others may stand before and behind them:
 * they are found by their numbers, which begin with 1 and have no gaps. */
static void note_requests(sneck_link *link, sneck_op *op, size_t count)
{
    uint64_t next = link->popped + link->count + 1;
    if (op->last_request <= link->popped)
        op->first_request = next;
    op->last_request = next + count - 1;
}

struct range {
    size_t begin, end; /* places in the line */
};

static struct range requests_of(const sneck_link *link, const sneck_op *op)
{
    if (op->last_request <= link->popped)
        return (struct range){0, 0};
    struct range range = {0, (size_t)(op->last_request - link->popped)};
    if (op->first_request > link->popped)
        range.begin = (size_t)(op->first_request - link->popped) - 1;
    if (range.end > link->count)
        range.end = link->count;
    return range;
}

void sneck__link_abandon(sneck_link *link, const sneck_op *op)
{
    struct range range = requests_of(link, op);
    for (size_t i = range.begin; i < range.end; i++)
        if (request_at(link, i)->op == op)
            request_at(link, i)->op = NULL;
}

void sneck__link_hand_over(sneck_link *link, sneck_op *from, sneck_op *to)
{
    struct range range = requests_of(link, from);
    for (size_t i = range.begin; i < range.end; i++)
        if (request_at(link, i)->op == from)
            request_at(link, i)->op = to;
    to->first_request = from->first_request;
    to->last_request = from->last_request;
    to->in_flight = from->in_flight;
    from->in_flight = 0;
}

bool sneck__link_unsent(const sneck_link *link, const sneck_op *op)
{
    struct range range = requests_of(link, op);
    for (size_t i = range.begin; i < range.end; i++)
        if (request_at(link, i)->op == op)
            return request_at(link, i)->begin >= sneck__buffer_sent(&link->wire.out);
    return true;
}

/* When it was queued, or when it could leave, if that was later. */
static int64_t begun_ms(const sneck_link *link, size_t i)
{
    return request_at(link, i)->limit_ms - link->client->io_timeout_ms;
}

bool sneck__link_stuck(const sneck_link *link)
{
    const struct buffer *out = &link->wire.out;
    return out->len - out->sent > STUCK_BYTES && link->count > 0 &&
           sneck__now_ms() - begun_ms(link, 0) >= STUCK_MS;
}

bool sneck__link_crowded(const sneck_link *link)
{
    return link->wire.out.len > CROWD_BYTES; /* what has left of it takes memory until all has */
}

int64_t sneck__link_linger_ms(const sneck_link *link)
{
    return link->count > 0 ? begun_ms(link, link->count - 1) + LINGER_MS : 0;
}

/* ------------------------------------------------------------ what may be late */

static uint64_t end_of(const sneck_link *link, size_t i)
{
    return i + 1 < link->count ? request_at(link, i + 1)->begin
                               : sneck__buffer_end(&link->wire.out);
}

/* A release does nothing but to the token that it names, and nobody takes that again: it may be
 * done at any time. One that has left in part only was not done, though what went before it may
 * be done yet. Only of a quorum's is it noted which script they run. */
static bool may_be_late(const sneck_link *link, size_t i)
{
    const struct buffer *out = &link->wire.out;
    const struct request *request = request_at(link, i);
    return !request->op && request->script == &script_release &&
           request->begin >= out->before && end_of(link, i) > sneck__buffer_sent(out);
}

/* Where there is no room for all, the first are kept: the longer nothing leaves, the less is
 * there to be released. */
static void keep_late(sneck_link *link, size_t i)
{
    const struct buffer *out = &link->wire.out;
    uint64_t begin = request_at(link, i)->begin;
    size_t len = (size_t)(end_of(link, i) - begin);
    if (link->late_count < LATE_MAX && link->late.len + len <= STUCK_BYTES &&
        sneck__buffer_append(&link->late, out->bytes + (begin - out->before), len))
        link->late_len[link->late_count++] = len;
}

/* Keeps what may be late of the first `count` requests, which are dropped next. */
static void keep_all_late(sneck_link *link, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (may_be_late(link, i))
            keep_late(link, i);
}

static void forget_late(sneck_link *link)
{
    sneck__buffer_drop(&link->late, sneck__buffer_end(&link->late));
    link->late_count = 0;
}

/* ------------------------------------------------------------------- failing */

void sneck__link_wake(sneck_link *link)
{
    for (sneck_op *op = link->pending.first, *next; op; op = next) {
        next = op->next; /* it may end, and leave the list */
        sneck__op_wake(op);
    }
}

/* How many requests a failure ends: all of them, or those that have left. */
static size_t count_lost(const sneck_link *link, bool keep_unsent)
{
    size_t n = 0;
    while (n < link->count &&
           (!keep_unsent || request_at(link, n)->begin < sneck__buffer_sent(&link->wire.out)))
        n++;
    return n;
}

static void lose_all(sneck_link *link)
{
    while (link->count > 0) {
        struct request request = pop_request(link);
        if (request.op)
            sneck__op_lost(request.op, false);
    }
}

static void tell_why(sneck_link *link, const char *why)
{
    size_t size = sizeof link->fail_text;
    size_t used = (size_t)snprintf(link->fail_text, size, "%s: ", link->client->address.text);
    link->fail_why = used < size ? used : size - 1;
    snprintf(link->fail_text + link->fail_why, size - link->fail_why, "%s", why);
}

/* Ends what was under way on the connection that is closed now. */
static void link_failed(struct wire *wire, int status, const char *code, const char *why)
{
    sneck_link *link = link_of(wire);
    struct buffer *out = &wire->out;
    link->fail_status = status;
    snprintf(link->fail_code, sizeof link->fail_code, "%s", code);
    tell_why(link, why);
    uint64_t sent = sneck__buffer_sent(out);
    bool may_reconnect = status == SNECK_CONNECTION && link->answered && !link->pinned;
    size_t lost = count_lost(link, may_reconnect);
    keep_all_late(link, lost);
    sneck__buffer_drop(out, lost < link->count ? request_at(link, lost)->begin
                                               : sneck__buffer_end(out));
    link->answered = link->may_commit = false;
    link->known_count = link->told_count = 0;
    sneck__inbox_close(&link->inbox);
    /* ops may queue new requests meanwhile: these come behind the lost ones */
    while (lost-- > 0) {
        struct request request = pop_request(link);
        if (request.op)
            sneck__op_lost(request.op, request.begin < sent);
    }
    sneck__link_wake(link);
}

static void fail(sneck_link *link, int status, const char *why)
{
    sneck__wire_fail(&link->wire, status, "", why);
}

void sneck__link_fail_one(sneck_link *link, const char *why)
{
    fail(link, SNECK_CONNECTION, why);
}

/* After fork() the sockets are the parent's, and so is what it has queued: let go of
 * them without a word. */
static void disown(sneck_link *link)
{
    link->fork_count = sneck__fork_count();
    link->answered = false; /* or else it would be sent from here, too */
    for (size_t i = 0; i < link->count; i++)
        request_at(link, i)->script = NULL; /* nor may it be late */
    forget_late(link);
    fail(link, SNECK_CONNECTION, "the connection belongs to the parent process");
}

/* ------------------------------------------------------- what the wire tells */

/* What is under way has so long from now on, or what is left to it if that is more. */
static void allow(sneck_link *link, int64_t ms)
{
    int64_t limit_ms = sneck__later_ms(sneck__now_ms(), ms);
    for (size_t i = 0; i < link->count; i++)
        if (request_at(link, i)->limit_ms < limit_ms)
            request_at(link, i)->limit_ms = limit_ms;
}

static void link_ready(struct wire *wire)
{
    sneck_link *link = link_of(wire);
    link->used_ms = sneck__now_ms();
    link->put_off = false;
    allow(link, link->client->io_timeout_ms);
}

void sneck__link_note_script(sneck_link *link, const struct script *script)
{
    request_at(link, link->count - 1)->script = script;
}

static void link_reply(struct wire *wire, redisReply *reply)
{
    sneck_link *link = link_of(wire);
    if (link->count == 0) {
        freeReplyObject(reply);
        fail(link, SNECK_PROTOCOL, "it sent a reply that answers no command");
        return;
    }
    struct request request = pop_request(link);
    link->answered = true;
    link->put_off = false;
    if (request.script && reply->type != REDIS_REPLY_ERROR)
        sneck__link_learn(link, request.script);
    if (link->count == 0)
        link->used_ms = sneck__now_ms();
    if (request.op) {
        sneck__op_reply(request.op, reply);
        return;
    }
    if (sneck__is_noscript(reply))
        link->known_count = 0; /* its scripts were flushed */
    freeReplyObject(reply);
}

void sneck__link_deliver(sneck_link *link, const char *message, size_t len)
{
    sneck__listeners_tell(&link->listeners, message, len);
}

static const struct wire_owner link_owner = {NULL, link_ready, link_reply, link_failed};

/* ------------------------------------------------------------------- sending */

/* A connection at rest that the server has closed since is noticed here, before a
 * command is entrusted to it. */
static bool gone_stale(const sneck_link *link)
{
    return link->count == 0 && sneck__now_ms() - link->used_ms >= STALE_MS &&
           sneck__wire_gone(&link->wire);
}

void sneck__link_look(sneck_link *link)
{
    if (link->fork_count != sneck__fork_count())
        disown(link);
    if (gone_stale(link))
        sneck__wire_fail(&link->wire, SNECK_CONNECTION, "", "closed while idle");
}

static bool push_requests(sneck_link *link, sneck_op *op, size_t replies)
{
    struct request request = {
        .op = op,
        .begin = sneck__buffer_end(&link->wire.out),
        .limit_ms = sneck__later_ms(sneck__now_ms(), link->client->io_timeout_ms),
    };
    if (op)
        note_requests(link, op, replies);
    for (size_t i = 0; i < replies; i++)
        if (!push_request(link, request)) {
            link->count -= i;
            return false;
        }
    return true;
}

/* Without memory it is as if they had been too many to be kept. */
static void queue_late(sneck_link *link)
{
    const char *bytes = link->late.bytes;
    for (size_t i = 0; i < link->late_count; i++) {
        if (!push_requests(link, NULL, 1))
            break;
        if (!sneck__buffer_append(&link->wire.out, bytes, link->late_len[i])) {
            link->count--;
            break;
        }
        sneck__link_note_script(link, &script_release);
        bytes += link->late_len[i];
    }
    forget_late(link);
}

/* Makes the link ready to queue something. A pinned one is not reconnected. */
static bool may_send(sneck_link *link)
{
    if (link->ends)
        return false;
    sneck__link_look(link);
    if (link->late_count > 0)
        queue_late(link);
    return !link->pinned || link->wire.state == WIRE_READY;
}

bool sneck__link_send(sneck_link *link, sneck_op *op, struct command command)
{
    if (!may_send(link) || !push_requests(link, op, 1))
        return false;
    if (sneck__wire_queue(&link->wire, command))
        return true;
    link->count--;
    return false;
}

bool sneck__link_send_bytes(sneck_link *link, sneck_op *op, const char *bytes, size_t len,
                            size_t replies)
{
    if (!may_send(link) || !push_requests(link, op, replies))
        return false;
    if (sneck__buffer_append(&link->wire.out, bytes, len))
        return true;
    link->count -= replies;
    return false;
}

/* ------------------------------------------------------------------ stepping */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool is_overdue(const sneck_link *link)
{
    return link->wire.state == WIRE_READY && link->count > 0 &&
           sneck__now_ms() >= request_at(link, 0)->limit_ms;
}

static void fail_overdue(sneck_link *link)
{
    char why[64];
    snprintf(why, sizeof why, "no answer within %lld ms",
             (long long)link->client->io_timeout_ms);
    fail(link, SNECK_CONNECTION, why);
}

/* Nobody has looked at it for a while, so the silence was not the server's: there may be more
 * to read, or what was queued has not even left. Once, until an answer comes. */
static bool put_off(sneck_link *link)
{
    if (link->put_off || sneck__now_ms() - request_at(link, 0)->limit_ms < STALE_MS)
        return false;
    allow(link, earlier(GRACE_MS, link->client->io_timeout_ms));
    return link->put_off = true;
}

static bool must_open(const sneck_link *link)
{
    return link->wire.state == WIRE_CLOSED && link->count > 0;
}

static bool wants_inbox(const sneck_link *link)
{
    return link->inbox.state == INBOX_OPENING && link->inbox.wire.state == WIRE_CLOSED;
}

/* What is overdue may have come already, where nobody has looked for a while. */
void sneck__link_take(sneck_link *link, bool commands, bool inbox)
{
    if (link->fork_count != sneck__fork_count())
        disown(link);
    if (must_open(link))
        sneck__wire_open(&link->wire);
    if (wants_inbox(link) && sneck__now_ms() >= link->inbox.wire.retry_ms)
        sneck__wire_open(&link->inbox.wire);
    bool overdue = is_overdue(link);
    sneck__wire_step(&link->wire, commands || overdue);
    if (link->inbox.state != INBOX_CLOSED)
        sneck__wire_step(&link->inbox.wire, inbox);
    if (overdue && is_overdue(link) && !put_off(link))
        fail_overdue(link);
}

void sneck__link_flush(sneck_link *link)
{
    sneck__wire_flush(&link->inbox.wire);
    sneck__wire_flush(&link->wire);
}

void sneck__link_drop_unsent_one(sneck_link *link)
{
    if (link->wire.state == WIRE_READY)
        return;
    keep_all_late(link, link->count);
    sneck__buffer_drop(&link->wire.out, sneck__buffer_end(&link->wire.out));
    lose_all(link);
}

void sneck__link_end_one(sneck_link *link)
{
    lose_all(link);
}

void sneck__link_catch_up_one(sneck_link *link)
{
    if (link->count > 0 && sneck__now_ms() - link->used_ms >= STALE_MS)
        sneck__link_take(link, true, false);
}

size_t sneck__link_poll(const sneck_link *link, struct pollfd *fds)
{
    size_t n = sneck__wire_poll(&link->wire, &fds[0]);
    return n + sneck__wire_poll(&link->inbox.wire, &fds[n]);
}

int64_t sneck__link_due_ms(const sneck_link *link)
{
    if (must_open(link))
        return 0;
    int64_t next = earlier(sneck__wire_limit_ms(&link->wire),
                           sneck__wire_limit_ms(&link->inbox.wire));
    if (wants_inbox(link))
        next = earlier(next, link->inbox.wire.retry_ms);
    if (link->wire.state == WIRE_READY && link->count > 0)
        next = earlier(next, request_at(link, 0)->limit_ms);
    return next;
}

/* ------------------------------------------------------------------ lifetime */

int sneck__link_new_one(sneck_link **out, sneck_client *client)
{
    sneck_link *link = calloc(1, sizeof *link);
    if (!link)
        return SNECK_NO_MEMORY;
    link->client = sneck__client_share(client);
    link->itself = link;
    link->members = &link->itself;
    link->member_count = 1;
    link->fork_count = sneck__fork_count();
    link->wire.owner = &link_owner;
    link->wire.client = client;
    sneck__inbox_init(&link->inbox, client);
    *out = link;
    return SNECK_OK;
}

sneck_op *sneck__link_any_op(const sneck_link *link)
{
    return link->pending.first ? link->pending.first
           : link->ended.first ? link->ended.first : link->told.first;
}

void sneck__link_free_one(sneck_link *link)
{
    sneck__wire_clear(&link->wire);
    sneck__wire_clear(&link->inbox.wire);
    sneck__buffer_clear(&link->late);
    free(link->requests);
    free(link->timers.items);
    free(link->listeners.slots);
    sneck__client_drop(link->client);
    free(link);
}
