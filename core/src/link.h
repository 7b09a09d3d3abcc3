#ifndef SNECK_LINK_H
#define SNECK_LINK_H

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

/* A command that was queued and is not answered yet. */
struct request {
    sneck_op *op;        /* NULL: abandoned, its reply is swallowed */
    uint64_t begin;      /* place of its first byte among all bytes queued */
    int64_t limit_ms;    /* when its answer is overdue */
};

struct sneck_link {
    sneck_client *client;            /* a reference */
    enum link_state { LINK_CLOSED, LINK_CONNECTING, LINK_GREETING, LINK_READY } state;
    unsigned fork_count;             /* whose socket it is */
    redisContext *context;           /* owned; NULL when closed */
    struct reply_guard guard;

    struct buffer hello;             /* AUTH, SELECT, ...: goes before `out` */
    struct buffer out;               /* the commands queued */

    struct request *requests;        /* a ring, in the order sent; owned */
    size_t first, count, size;

    size_t greetings;                /* replies to AUTH, SELECT, ... to come */
    struct places places;            /* the host's addresses, while connecting */
    int64_t connect_limit_ms;        /* when this address, or the greeting, is overdue */
    int64_t connect_end_ms;          /* when connecting as a whole is */
    int64_t used_ms;                 /* when a reply came last */
    bool was_ready;                  /* this connection has answered once */

    sneck_op *ops;                   /* those on this link, doubly linked */
    sneck_link *next_idle;           /* in the client's pool */

    int fail_status;                 /* of the last failure, with its message */
    char fail_code[24];
    char fail_text[SNECK_ERROR_SIZE];
};

/* Queues a command; its reply goes to op's class, or is swallowed when op is
 * NULL. Nothing is sent before the next step. false: no memory, nothing queued. */
bool sneck__link_send(sneck_link *link, sneck_op *op, struct command command);

/* One step; reads only when told that there is something to read, which spares
 * a system call to who has just polled. */
void sneck__link_step(sneck_link *link, bool readable);

/* Makes tombstones of the op's requests: their replies will be swallowed. */
void sneck__link_abandon(sneck_link *link, const sneck_op *op);

/* The op's oldest request has not left yet, not even in part. */
bool sneck__link_unsent(const sneck_link *link, const sneck_op *op);

/* No reply is outstanding and nothing waits to be sent. */
bool sneck__link_quiet(const sneck_link *link);

#endif
