/* wire.c - one socket to the server: connects, greets, sends, reads replies.
 *
 * It knows nothing of what the replies answer; its owner does (link.c for
 * commands, inbox.c for messages). When anything goes wrong the wire is closed
 * first and the owner is told then, so an owner never meets a half-open one.
 *
 *          open             connected          greetings answered
 *   CLOSED -----> CONNECTING -------> GREETING -----------------> READY
 *     ^               |                  |                          |
 *     +---------------+------- fail -----+--------------------------+
 */
#include "wire.h"

#include "client.h"
#include "clock.h"
#include "fork.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define READ_SIZE 16384    /* so much hiredis reads at once */
#define READS_MAX 64       /* in one step */
#define PAUSE_MIN_MS 50    /* after a connection that was of no use */
#define PAUSE_MAX_MS 1000  /* doubled up to this */

/* ------------------------------------------------------------------- closing */

static void prove(struct wire *w)
{
    w->proven = true;
    w->pause_ms = 0;
}

static void note_end(struct wire *w)
{
    int64_t twice = sneck__least_ms(2 * w->pause_ms, PAUSE_MAX_MS);
    if (!w->proven)
        w->pause_ms = sneck__most_ms(twice, PAUSE_MIN_MS);
    w->retry_ms = sneck__later_ms(sneck__now_ms(), w->pause_ms);
}

void sneck__wire_close(struct wire *w)
{
    if (w->context) {
        w->generation++;
        if (w->fork_count == sneck__fork_count())
            sneck__fork_forget(w->context->fd);
        else
            w->context->fd = -1; /* closed in this child already */
        redisFree(w->context);
    }
    w->context = NULL;
    w->guard = (struct reply_guard){0};
    w->greetings = 0;
    w->state = WIRE_CLOSED;
    sneck__buffer_drop(&w->hello, sneck__buffer_end(&w->hello));
}

void sneck__wire_fail(struct wire *w, int status, const char *code, const char *why)
{
    if (w->state != WIRE_READY)
        sneck__client_reached(w->client, false);
    sneck__wire_close(w);
    note_end(w);
    w->owner->failed(w, status, code, why);
}

static void fail_no_memory(struct wire *w)
{
    sneck__wire_fail(w, SNECK_NO_MEMORY, "", "out of memory");
}

/* hiredis' words live in its context, which closing frees. */
static void fail_context(struct wire *w)
{
    char why[sizeof w->context->errstr];
    memcpy(why, w->context->errstr, sizeof why);
    sneck__wire_fail(w, SNECK_CONNECTION, "", why);
}

void sneck__wire_clear(struct wire *w)
{
    sneck__wire_close(w);
    sneck__buffer_clear(&w->hello);
    sneck__buffer_clear(&w->out);
}

/* ------------------------------------------------------------------- queueing */

static bool format(struct buffer *buffer, size_t argc, const char **argv, const size_t *len)
{
    char *bytes;
    long long size = redisFormatCommandArgv(&bytes, (int)argc, argv, len);
    if (size < 0)
        return false;
    bool ok = sneck__buffer_append(buffer, bytes, (size_t)size);
    redisFreeCommand(bytes);
    return ok;
}

bool sneck__wire_format(struct buffer *out, struct command command)
{
    return format(out, command.argc, (const char **)command.argv, command.len);
}

bool sneck__wire_queue(struct wire *w, struct command command)
{
    return sneck__wire_format(&w->out, command);
}

bool sneck__wire_greet(struct wire *w, size_t argc, const char **argv)
{
    bool ok = format(&w->hello, argc, argv, NULL);
    w->greetings += ok;
    return ok;
}

/* --------------------------------------------------------------- connecting */

static bool compose_greetings(struct wire *w)
{
    const sneck_client *client = w->client;
    const struct address *at = &client->address;
    char db[16];
    snprintf(db, sizeof db, "%d", at->db);
    return (!at->password ||
            (at->user
                 ? sneck__wire_greet(w, 3, (const char *[]){"AUTH", at->user, at->password})
                 : sneck__wire_greet(w, 2, (const char *[]){"AUTH", at->password}))) &&
           (at->db == 0 || sneck__wire_greet(w, 2, (const char *[]){"SELECT", db})) &&
           (!client->name ||
            sneck__wire_greet(w, 3, (const char *[]){"CLIENT", "SETNAME", client->name})) &&
           (!w->owner->greet || w->owner->greet(w));
}

static void prepare_socket(struct wire *w)
{
    int fd = w->context->fd;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    sneck__fork_note(fd);
#if defined(SO_NOSIGPIPE)
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    if (!w->client->address.path)
        redisEnableKeepAlive(w->context);
}

static void fail_connecting(struct wire *w, const char *why);

/* Connects to the unix socket, or to the next of the host's addresses, which may
 * take its share of the time left. */
static void try_next_place(struct wire *w)
{
    const struct address *at = &w->client->address;
    struct places *places = &w->places;
    int64_t left = w->end_ms - sneck__now_ms();
    w->limit_ms = w->end_ms;
    w->fork_count = sneck__fork_count();
    if (at->path) {
        w->context = redisConnectUnixNonBlock(at->path);
    } else {
        if (places->count - places->next > 1)
            w->limit_ms -= left - left / (int64_t)(places->count - places->next);
        w->context = redisConnectNonBlock(places->text[places->next++], at->port);
    }
    if (!w->context) {
        fail_no_memory(w);
    } else if (w->context->err) {
        char why[sizeof w->context->errstr];
        memcpy(why, w->context->errstr, sizeof why);
        fail_connecting(w, why);
    } else {
        prepare_socket(w);
        w->generation++;
        w->state = WIRE_CONNECTING;
    }
}

/* This address does not work: try the next, or give up. */
static void fail_connecting(struct wire *w, const char *why)
{
    if (w->places.next >= w->places.count) {
        sneck__wire_fail(w, SNECK_CONNECTION, "", why);
        return;
    }
    sneck__wire_close(w);
    try_next_place(w);
}

void sneck__wire_open(struct wire *w)
{
    const sneck_client *client = w->client;
    const char *why = NULL;
    w->end_ms = sneck__later_ms(sneck__now_ms(), client->connect_timeout_ms);
    w->places.count = w->places.next = 0;
    w->proven = false;
    if (!client->address.path)
        why = sneck__client_places(w->client, &w->places);
    if (why)
        sneck__wire_fail(w, SNECK_CONNECTION, "", why);
    else
        try_next_place(w);
}

static void become_ready(struct wire *w)
{
    w->state = WIRE_READY;
    sneck__client_reached(w->client, true);
    w->owner->ready(w);
}

/* Is it connected by now? SO_ERROR is 0 also while it is under way. */
static void check_connected(struct wire *w)
{
    int error = 0;
    socklen_t len = sizeof error;
    struct sockaddr_storage peer;
    socklen_t peer_len = sizeof peer;
    if (getsockopt(w->context->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error) {
        fail_connecting(w, strerror(error));
    } else if (getpeername(w->context->fd, (struct sockaddr *)&peer, &peer_len) == 0) {
        w->state = WIRE_GREETING;
        w->limit_ms = w->end_ms;
        if (!compose_greetings(w))
            fail_no_memory(w);
        else if (w->greetings == 0)
            become_ready(w);
    }
}

/* ------------------------------------------------------------------- reading */

static void take_greeting(struct wire *w, redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        char code[CODE_SIZE], why[SNECK_ERROR_SIZE / 2];
        sneck__code_word(code, reply->str, (size_t)reply->len);
        snprintf(why, sizeof why, "%s", reply->str);
        sneck__wire_fail(w, SNECK_SERVER, code, why);
    } else if (--w->greetings == 0) {
        prove(w);
        become_ready(w);
    }
    freeReplyObject(reply);
}

static void parse(struct wire *w)
{
    while (w->context) {
        void *reply = NULL;
        redisReader *reader = w->context->reader;
        if (redisReaderGetReply(reader, &reply) != REDIS_OK) {
            char why[sizeof reader->errstr];
            memcpy(why, reader->errstr, sizeof why);
            sneck__wire_fail(w, SNECK_PROTOCOL, "", why);
        } else if (!reply) {
            return;
        } else if (w->state == WIRE_GREETING) {
            take_greeting(w, reply);
        } else {
            prove(w);
            w->owner->reply(w, reply);
        }
    }
}

/* True: as much came as hiredis reads at once, so there may be more. */
static bool receive(struct wire *w)
{
    const redisReader *reader = w->context->reader;
    size_t before = reader->len;
    if (redisBufferRead(w->context) != REDIS_OK) {
        fail_context(w);
        return false;
    }
    size_t came = reader->len - before;
    const char *why = sneck__guard(&w->guard, reader->buf + before, came);
    if (why)
        sneck__wire_fail(w, SNECK_PROTOCOL, "", why);
    else
        parse(w);
    return came >= READ_SIZE;
}

static bool may_read(const struct wire *w)
{
    return w->state == WIRE_GREETING || w->state == WIRE_READY;
}

/* Reads what has come, so that a deadline which is looked at next does not strike what is
 * answered already; but not for ever, as other connections wait for their turn. */
static void receive_all(struct wire *w)
{
    for (int i = 0; i < READS_MAX && may_read(w) && receive(w); i++)
        continue;
}

/* ------------------------------------------------------------------ stepping */

void sneck__wire_step(struct wire *w, bool readable)
{
    if (w->state == WIRE_CONNECTING)
        check_connected(w);
    if (readable)
        receive_all(w);
    int64_t limit_ms = sneck__wire_limit_ms(w);
    if (limit_ms == NEVER_MS || limit_ms > sneck__now_ms())
        return;
    if (w->state == WIRE_CONNECTING)
        fail_connecting(w, "connecting took too long; see the connect timeout");
    else
        sneck__wire_fail(w, SNECK_CONNECTION, "", "no answer to the first commands within"
                         " the connect timeout");
}

void sneck__wire_flush(struct wire *w)
{
    bool ok = true;
    if (w->state == WIRE_GREETING)
        ok = sneck__buffer_flush(&w->hello, w->context->fd);
    else if (w->state == WIRE_READY)
        ok = sneck__buffer_flush(&w->out, w->context->fd);
    if (!ok)
        sneck__wire_fail(w, SNECK_CONNECTION, "", strerror(errno));
}

bool sneck__wire_poll(const struct wire *w, struct pollfd *fd)
{
    const struct buffer *waiting = w->state == WIRE_READY ? &w->out : &w->hello;
    if (w->state == WIRE_CLOSED)
        return false;
    *fd = (struct pollfd){.fd = w->context->fd, .events = POLLIN};
    if (w->state == WIRE_CONNECTING)
        fd->events = POLLOUT;
    else if (waiting->sent < waiting->len)
        fd->events |= POLLOUT;
    return true;
}

int64_t sneck__wire_limit_ms(const struct wire *w)
{
    return w->state == WIRE_CONNECTING || w->state == WIRE_GREETING ? w->limit_ms : NEVER_MS;
}

bool sneck__wire_gone(const struct wire *w)
{
    char byte;
    if (w->state != WIRE_READY)
        return false;
    ssize_t n = recv(w->context->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}
