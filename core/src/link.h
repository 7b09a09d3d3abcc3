#ifndef SNECK_LINK_H
#define SNECK_LINK_H

#include "inbox.h"
#include "sneck.h"
#include "text.h"
#include "wire.h"

/* A command that was queued and is not answered yet. */
struct request {
    sneck_op *op;        /* NULL: abandoned, its reply is swallowed */
    uint64_t begin;      /* place of its first byte among all bytes queued */
    int64_t limit_ms;    /* when its answer is overdue */
};

struct sneck_link {
    sneck_client *client;            /* a reference */
    unsigned fork_count;             /* whose sockets these are */
    struct wire wire;                /* for commands */
    struct inbox inbox;              /* for grants; closed until something waits */

    struct request *requests;        /* a ring, in the order sent; owned */
    size_t first, count, size;

    int64_t used_ms;                 /* when the last reply came */
    bool answered;                   /* this connection has answered once */
    bool may_commit;                 /* on it MULTI and EXEC are known to be allowed */
    bool pinned;                     /* what is queued is for this connection alone */

    sneck_op *ops;                   /* those on this link, doubly linked */
    sneck_link *next_idle;           /* in the client's pool */

    int fail_status;                 /* of the last failure, with its message */
    char fail_code[CODE_SIZE];
    char fail_text[SNECK_ERROR_SIZE];
};

/* Queues a command; its reply goes to op's class, or is swallowed when op is
 * NULL. Nothing is sent before the next step. false: no memory, nothing queued. */
bool sneck__link_send(sneck_link *link, sneck_op *op, struct command command);

/* The same for `replies` commands that are formatted already. */
bool sneck__link_send_bytes(sneck_link *link, sneck_op *op, const char *bytes, size_t len,
                            size_t replies);

/* One step; reads only where told that there is something to read, which spares a
 * system call to who has just polled. */
struct readable {
    bool commands, inbox;
};
void sneck__link_step(sneck_link *link, struct readable readable);

/* Makes tombstones of the op's requests: their replies will be swallowed. */
void sneck__link_abandon(sneck_link *link, const sneck_op *op);

/* The op's oldest request has not left yet, not even in part. */
bool sneck__link_unsent(const sneck_link *link, const sneck_op *op);

/* Notices a connection that was lost while it was idle, as sending does. */
void sneck__link_look(sneck_link *link);

/* No reply is outstanding and nothing waits to be sent. */
bool sneck__link_quiet(const sneck_link *link);

/* From the inbox: its state has changed; a message has come. */
void sneck__link_wake(sneck_link *link);
void sneck__link_deliver(sneck_link *link, const char *message, size_t len);

#endif
