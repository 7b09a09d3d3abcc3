#ifndef SNECK_WIRE_H
#define SNECK_WIRE_H

#include "buffer.h"
#include "reply_guard.h"
#include "resolve.h"
#include "sneck.h"

#include <hiredis/hiredis.h>

/* A command as pointers and lengths, all borrowed. */
struct command {
    size_t argc;
    const char *const *argv;
    const size_t *len;
};

struct wire;

/* What a wire tells its owner. None of these may block, or free the wire. */
struct wire_owner {
    /* Queues what the connection starts with besides the usual; may be NULL.
     * False: no memory. */
    bool (*greet)(struct wire *wire);
    /* Connected, and every greeting was answered well. */
    void (*ready)(struct wire *wire);
    /* A reply, which the owner takes over. */
    void (*reply)(struct wire *wire, redisReply *reply);
    /* It is closed: why, as a status, the server's code word or "", and words.
     * `out` is as it was: what had left and what had not can be told. */
    void (*failed)(struct wire *wire, int status, const char *code, const char *why);
};

struct wire {
    const struct wire_owner *owner;
    sneck_client *client;            /* borrowed; where to connect, as whom */
    enum wire_state { WIRE_CLOSED, WIRE_CONNECTING, WIRE_GREETING, WIRE_READY } state;
    redisContext *context;           /* owned; NULL when closed */
    unsigned fork_count;             /* whose socket it is */
    uint64_t generation;             /* how often one was opened or closed */
    struct reply_guard guard;
    struct buffer hello;             /* AUTH, SELECT, ...: goes before `out` */
    struct buffer out;               /* the commands queued */
    size_t greetings;                /* replies to them that are still to come */
    struct places places;            /* the host's addresses, while connecting */
    int64_t limit_ms;                /* when this address, or the greeting, is overdue */
    int64_t end_ms;                  /* when connecting as a whole is */
    bool proven;                     /* this connection has been of use */
    int64_t pause_ms;                /* after the last ones that were of none; else 0 */
    int64_t retry_ms;                /* who is in no hurry opens it no earlier */
};

/* Starts to connect. */
void sneck__wire_open(struct wire *wire);

/* Closes without telling the owner. `out` stays. */
void sneck__wire_close(struct wire *wire);

/* Closes, and tells the owner. */
void sneck__wire_fail(struct wire *wire, int status, const char *code, const char *why);

void sneck__wire_clear(struct wire *wire);

/* Appends a command as the wire wants it. False: no memory, nothing appended. */
bool sneck__wire_format(struct buffer *out, struct command command);

/* Queues a command; from `greet`, one that the connection starts with. False: no
 * memory, nothing queued. */
bool sneck__wire_queue(struct wire *wire, struct command command);
bool sneck__wire_greet(struct wire *wire, size_t argc, const char **argv);

/* Goes on connecting and, when there may be something to read, reads. */
void sneck__wire_step(struct wire *wire, bool readable);

/* Sends what is queued, as far as that does not block. */
void sneck__wire_flush(struct wire *wire);

/* Fills in what to wait for; false: nothing, it is closed. */
bool sneck__wire_poll(const struct wire *wire, struct pollfd *fd);

/* When connecting is overdue; NEVER_MS when it is not connecting. */
int64_t sneck__wire_limit_ms(const struct wire *wire);

/* The server has closed a ready wire, or sent something that nobody asked for. */
bool sneck__wire_gone(const struct wire *wire);

#endif
