/* link.c - one connection that many ops share.
 *
 * Invariant: `requests` holds, in the order sent, one entry for each reply that is
 * still to come. An op that gives up leaves its entry behind without the op, so a
 * reply can never reach a command that it does not answer. Any doubt about the
 * stream (a broken exchange, an overdue reply) closes the connection, and every
 * op learns whether its command may have reached the server.
 *
 *          command queued        connected          greetings answered
 *   CLOSED -----------> CONNECTING -----> GREETING -----------------> READY
 *     ^                     |                 |                         |
 *     +---------------------+----- fail ------+-------------------------+
 *
 * Commands that had not left when a connection failed which used to work stay
 * queued for the next one: a server's restart is no error for them.
 */
#include "link.h"

#include "client.h"
#include "clock.h"
#include "fork.h"
#include "op.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define STALE_MS 100           /* idle for longer: look before writing */
#define TIMEOUT_MAX_MS 60000

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
    return request;
}

void sneck__link_abandon(sneck_link *link, const sneck_op *op)
{
    for (size_t i = 0; i < link->count; i++)
        if (request_at(link, i)->op == op)
            request_at(link, i)->op = NULL;
}

bool sneck__link_unsent(const sneck_link *link, const sneck_op *op)
{
    for (size_t i = 0; i < link->count; i++)
        if (request_at(link, i)->op == op)
            return request_at(link, i)->begin >= sneck__buffer_sent(&link->out);
    return true;
}

bool sneck__link_quiet(const sneck_link *link)
{
    return link->count == 0;
}

/* ------------------------------------------------------------------ failing */

static void disconnect(sneck_link *link)
{
    if (link->context)
        redisFree(link->context);
    link->context = NULL;
    link->guard = (struct reply_guard){0};
    link->greetings = 0;
    link->was_ready = false;
    link->state = LINK_CLOSED;
    sneck__buffer_drop(&link->hello, sneck__buffer_end(&link->hello));
}

/* How many requests a failure ends: all of them, or those that have left. */
static size_t count_lost(const sneck_link *link, bool keep_unsent)
{
    size_t n = 0;
    while (n < link->count &&
           (!keep_unsent || request_at(link, n)->begin < sneck__buffer_sent(&link->out)))
        n++;
    return n;
}

/* Closes the connection and ends what was under way on it. */
static void fail(sneck_link *link, int status, const char *code, const char *why)
{
    link->fail_status = status;
    snprintf(link->fail_code, sizeof link->fail_code, "%s", code);
    snprintf(link->fail_text, sizeof link->fail_text, "%s: %s", link->client->address.text, why);
    uint64_t sent = sneck__buffer_sent(&link->out);
    size_t lost = count_lost(link, status == SNECK_CONNECTION && link->was_ready);
    uint64_t keep = lost < link->count ? request_at(link, lost)->begin
                                       : sneck__buffer_end(&link->out);
    disconnect(link);
    sneck__buffer_drop(&link->out, keep);
    /* ops may queue new requests meanwhile: these come behind the lost ones */
    while (lost-- > 0) {
        struct request request = pop_request(link);
        if (request.op)
            sneck__op_lost(request.op, request.begin < sent);
    }
}

static void fail_errno(sneck_link *link, int error)
{
    fail(link, SNECK_CONNECTION, "", strerror(error));
}

static void fail_overdue(sneck_link *link, const char *what, int64_t ms)
{
    char why[80];
    snprintf(why, sizeof why, "%s within %lld ms", what, (long long)ms);
    fail(link, SNECK_CONNECTION, "", why);
}

/* After fork() the socket is the parent's: let go of it without a word. */
static void disown(sneck_link *link)
{
    link->fork_count = sneck__fork_count();
    fail(link, SNECK_CONNECTION, "", "the connection belongs to the parent process");
}

/* --------------------------------------------------------------- connecting */

static bool greet(sneck_link *link, size_t argc, const char **argv)
{
    char *wire;
    long long len = redisFormatCommandArgv(&wire, (int)argc, argv, NULL);
    if (len < 0)
        return false;
    bool ok = sneck__buffer_append(&link->hello, wire, (size_t)len);
    redisFreeCommand(wire);
    link->greetings += ok;
    return ok;
}

/* Queues what a new connection starts with. */
static bool compose_greetings(sneck_link *link)
{
    const sneck_client *client = link->client;
    const struct address *at = &client->address;
    char db[16];
    snprintf(db, sizeof db, "%d", at->db);
    return (!at->password ||
            (at->user ? greet(link, 3, (const char *[]){"AUTH", at->user, at->password})
                      : greet(link, 2, (const char *[]){"AUTH", at->password}))) &&
           (at->db == 0 || greet(link, 2, (const char *[]){"SELECT", db})) &&
           (!client->name ||
            greet(link, 3, (const char *[]){"CLIENT", "SETNAME", client->name}));
}

static void prepare_socket(sneck_link *link)
{
    int fd = link->context->fd;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
#if defined(SO_NOSIGPIPE)
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    if (!link->client->address.path)
        redisEnableKeepAlive(link->context);
}

static void fail_connecting(sneck_link *link, const char *why);

/* Connects to the unix socket, or to the next of the host's addresses, which may
 * take its share of the time left. */
static void try_next_place(sneck_link *link)
{
    const struct address *at = &link->client->address;
    struct places *places = &link->places;
    int64_t left = link->connect_end_ms - sneck__now_ms();
    link->connect_limit_ms = link->connect_end_ms;
    if (at->path) {
        link->context = redisConnectUnixNonBlock(at->path);
    } else {
        if (places->count - places->next > 1)
            link->connect_limit_ms -= left - left / (int64_t)(places->count - places->next);
        link->context = redisConnectNonBlock(places->text[places->next++], at->port);
    }
    if (!link->context) {
        fail(link, SNECK_NO_MEMORY, "", "out of memory");
    } else if (link->context->err) {
        char why[sizeof link->context->errstr];
        memcpy(why, link->context->errstr, sizeof why);
        fail_connecting(link, why);
    } else {
        prepare_socket(link);
        link->state = LINK_CONNECTING;
    }
}

/* This address does not work: try the next, or give up. */
static void fail_connecting(sneck_link *link, const char *why)
{
    bool more = link->places.next < link->places.count;
    if (!more) {
        fail(link, SNECK_CONNECTION, "", why);
        return;
    }
    disconnect(link);
    try_next_place(link);
}

static void begin_connecting(sneck_link *link)
{
    const sneck_client *client = link->client;
    const char *why = NULL;
    link->connect_end_ms = sneck__later_ms(sneck__now_ms(), client->connect_timeout_ms);
    link->places.count = link->places.next = 0;
    if (!client->address.path)
        why = sneck__resolve(&link->places, client->address.host);
    if (why)
        fail(link, SNECK_CONNECTION, "", why);
    else
        try_next_place(link);
}

static void become_ready(sneck_link *link)
{
    link->state = LINK_READY;
    int64_t now = sneck__now_ms();
    link->used_ms = now;
    for (size_t i = 0; i < link->count; i++)
        request_at(link, i)->limit_ms = sneck__later_ms(now, link->client->io_timeout_ms);
}

/* Is it connected by now? SO_ERROR is 0 also while it is under way. */
static void check_connected(sneck_link *link)
{
    int error = 0;
    socklen_t len = sizeof error;
    struct sockaddr_storage peer;
    socklen_t peer_len = sizeof peer;
    if (getsockopt(link->context->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error) {
        fail_connecting(link, strerror(error));
    } else if (getpeername(link->context->fd, (struct sockaddr *)&peer, &peer_len) == 0) {
        link->state = LINK_GREETING;
        link->connect_limit_ms = link->connect_end_ms;
        if (!compose_greetings(link))
            fail(link, SNECK_NO_MEMORY, "", "out of memory");
        else if (link->greetings == 0)
            become_ready(link);
    }
}

/* ------------------------------------------------------------------ replies */

static void take_greeting(sneck_link *link, redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        char code[24], why[SNECK_ERROR_SIZE / 2];
        sneck__code_word(code, reply->str, (size_t)reply->len);
        snprintf(why, sizeof why, "%s", reply->str);
        fail(link, SNECK_SERVER, code, why);
    } else if (--link->greetings == 0) {
        become_ready(link);
    }
    freeReplyObject(reply);
}

static void take_reply(sneck_link *link, redisReply *reply)
{
    if (link->state == LINK_GREETING) {
        take_greeting(link, reply);
        return;
    }
    if (link->count == 0) {
        freeReplyObject(reply);
        fail(link, SNECK_PROTOCOL, "", "it sent a reply that answers no command");
        return;
    }
    struct request request = pop_request(link);
    link->was_ready = true;
    if (link->count == 0)
        link->used_ms = sneck__now_ms();
    if (request.op)
        sneck__op_reply(request.op, reply);
    else
        freeReplyObject(reply);
}

static void parse(sneck_link *link)
{
    while (link->context) {
        void *reply = NULL;
        redisReader *reader = link->context->reader;
        if (redisReaderGetReply(reader, &reply) != REDIS_OK) {
            char why[sizeof reader->errstr];
            memcpy(why, reader->errstr, sizeof why);
            fail(link, SNECK_PROTOCOL, "", why);
        } else if (reply) {
            take_reply(link, reply);
        } else {
            return;
        }
    }
}

static void receive(sneck_link *link)
{
    redisContext *context = link->context;
    size_t before = context->reader->len;
    if (redisBufferRead(context) != REDIS_OK) {
        char why[sizeof context->errstr];
        memcpy(why, context->errstr, sizeof why);
        fail(link, SNECK_CONNECTION, "", why);
        return;
    }
    const char *why = sneck__guard(&link->guard, context->reader->buf + before,
                                   context->reader->len - before);
    if (why)
        fail(link, SNECK_PROTOCOL, "", why);
    else
        parse(link);
}

/* ------------------------------------------------------------------ sending */

/* A connection at rest that the server has closed since: noticed here, before a
 * command is entrusted to it. */
static bool gone_stale(const sneck_link *link)
{
    char byte;
    if (link->state != LINK_READY || link->count > 0 ||
        sneck__now_ms() - link->used_ms < STALE_MS)
        return false;
    ssize_t n = recv(link->context->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

bool sneck__link_send(sneck_link *link, sneck_op *op, struct command command)
{
    if (link->fork_count != sneck__fork_count())
        disown(link);
    if (gone_stale(link))
        disconnect(link);
    char *wire;
    long long len = redisFormatCommandArgv(&wire, (int)command.argc,
                                           (const char **)command.argv, command.len);
    if (len < 0)
        return false;
    struct request request = {
        .op = op,
        .begin = sneck__buffer_end(&link->out),
        .limit_ms = sneck__later_ms(sneck__now_ms(), link->client->io_timeout_ms),
    };
    bool ok = sneck__buffer_append(&link->out, wire, (size_t)len);
    redisFreeCommand(wire);
    if (ok && !push_request(link, request)) {
        link->out.len -= (size_t)len;
        ok = false;
    }
    return ok;
}

static void flush(sneck_link *link)
{
    bool ok = true;
    if (link->state == LINK_GREETING)
        ok = sneck__buffer_flush(&link->hello, link->context->fd);
    else if (link->state == LINK_READY)
        ok = sneck__buffer_flush(&link->out, link->context->fd);
    if (!ok)
        fail_errno(link, errno);
}

/* ------------------------------------------------------------------ stepping */

static void check_limits(sneck_link *link, int64_t now)
{
    const sneck_client *client = link->client;
    if (link->state == LINK_CONNECTING && now >= link->connect_limit_ms)
        fail_connecting(link, "connecting took too long; see the connect timeout");
    else if (link->state == LINK_GREETING && now >= link->connect_limit_ms)
        fail_overdue(link, "no answer to the first commands", client->connect_timeout_ms);
    else if (link->state == LINK_READY && link->count > 0 &&
             now >= request_at(link, 0)->limit_ms)
        fail_overdue(link, "no answer", client->io_timeout_ms);
}

static void fire_timers(sneck_link *link, int64_t now)
{
    for (sneck_op *op = link->ops; op; op = op->next)
        if (now >= op->timer_ms)
            sneck__op_timer(op);
}

void sneck__link_step(sneck_link *link, bool readable)
{
    if (link->fork_count != sneck__fork_count())
        disown(link);
    if (link->state == LINK_CLOSED && link->count > 0)
        begin_connecting(link);
    if (link->state == LINK_CONNECTING)
        check_connected(link);
    if (readable && (link->state == LINK_GREETING || link->state == LINK_READY))
        receive(link);
    int64_t now = sneck__now_ms();
    check_limits(link, now);
    fire_timers(link, now);
    flush(link);
}

void sneck_link_step(sneck_link *link)
{
    sneck__link_step(link, true);
}

size_t sneck_link_fds(const sneck_link *link, struct pollfd fds[SNECK_LINK_FDS])
{
    const struct buffer *waiting = link->state == LINK_READY ? &link->out : &link->hello;
    if (!link->context)
        return 0;
    fds[0] = (struct pollfd){.fd = link->context->fd, .events = POLLIN};
    if (link->state == LINK_CONNECTING)
        fds[0].events = POLLOUT;
    else if (waiting->sent < waiting->len)
        fds[0].events |= POLLOUT;
    return 1;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t sneck_link_timeout_ms(const sneck_link *link)
{
    int64_t next = NEVER_MS;
    if (link->state == LINK_CLOSED && link->count > 0)
        return 0;
    if (link->state == LINK_CONNECTING || link->state == LINK_GREETING)
        next = link->connect_limit_ms;
    else if (link->count > 0)
        next = request_at(link, 0)->limit_ms;
    for (const sneck_op *op = link->ops; op; op = op->next)
        next = earlier(next, op->timer_ms);
    if (next == NEVER_MS)
        return -1;
    int64_t now = sneck__now_ms();
    return next <= now ? 0 : earlier(next - now, TIMEOUT_MAX_MS);
}

/* ------------------------------------------------------------------ lifetime */

int sneck_link_new(sneck_link **out, sneck_client *client)
{
    sneck_link *link = calloc(1, sizeof *link);
    if (!link)
        return SNECK_NO_MEMORY;
    link->client = sneck__client_share(client);
    link->fork_count = sneck__fork_count();
    *out = link;
    return SNECK_OK;
}

void sneck_link_free(sneck_link *link)
{
    if (!link)
        return;
    while (link->ops)
        sneck__op_detach(link->ops);
    disconnect(link);
    sneck__buffer_clear(&link->hello);
    sneck__buffer_clear(&link->out);
    free(link->requests);
    sneck__client_drop(link->client);
    free(link);
}
