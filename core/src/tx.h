#ifndef SNECK_TX_H
#define SNECK_TX_H

#include "buffer.h"
#include "client.h"
#include "companion.h"
#include "lock.h"
#include "op.h"

/* A transaction: attempts, one after the other, on one connection. */
struct sneck_tx {
    sneck_client *client;       /* a reference */
    sneck_link *link;           /* borrowed from the pool; nobody else has ops on it */
    sneck_lock *guard;          /* a reference; NULL: none */
    bool guard_paused;          /* it is not renewed while its key is watched */
    sneck_tx_options options;
    size_t count;               /* of the keys that are watched from the start */
    struct buffer first;        /* a WATCH for each of them */
    size_t key_at, key_len;     /* where the first key stands there */
    struct buffer question;     /* EXISTS: has somebody the turn to write? */
    int64_t begun_ms, end_ms;

    struct companion turn;      /* the name of the lock that is the turn */
    sneck_lock *order;          /* owned; that lock; NULL: not made yet */
    bool ordered;               /* it is held */
    bool by_script;             /* a script acquired it, so this user may run one */
    uint32_t hot;               /* marks the first key as one where writers meet */
    bool meets;                 /* they did before this transaction */

    struct tx_op *op;           /* the one under way; NULL: none */
    int attempts;               /* begun so far */
    bool open;                  /* reads and writes are welcome */
    bool done;                  /* its outcome is known, or it was given up */

    /* of this attempt */
    struct buffer watches;      /* WATCH commands that wait for the next exchange */
    size_t watch_count;
    struct buffer writes;       /* what goes between MULTI and EXEC */
    size_t write_count;
    bool watching;              /* the server has been told to watch */
    bool asks;                  /* the first exchange is still to ask for the turn */
    int status;                 /* SNECK_OK until something failed for good */
    bool lost;                  /* its connection went: the attempt is over */
    bool unclean;               /* the connection may be within a MULTI */
    size_t failed;              /* the first write that failed in EXEC; SIZE_MAX: none */
    char server_code[CODE_SIZE];
    char error[SNECK_ERROR_SIZE];
};

/* Notes a failure; one that is for good prevents a commit. */
__attribute__((format(printf, 3, 4)))
int sneck__tx_fail(sneck_tx *tx, int status, const char *format, ...);
__attribute__((format(printf, 2, 3)))
void sneck__tx_message(sneck_tx *tx, const char *format, ...);

/* Makes a WATCH that waits for the next exchange. False: no memory. */
bool sneck__tx_add_watch(sneck_tx *tx, const char *key, size_t len);

/* Checks a command for this transaction; INVALID, noted, where it has no place. */
int sneck__tx_check(sneck_tx *tx, size_t argc, const void *const *argv, const size_t *len);

/* Why sneck_tx_put() would refuse that; NULL: it would not. */
const char *sneck__tx_put_refused(const void *key, int64_t ttl_ms);

/* The guard is not ours: NOT_OWNER, noted. */
int sneck__tx_guard_lost(sneck_tx *tx);

/* Begins an attempt; nothing of the one before is left. False: no memory. */
bool sneck__tx_open(sneck_tx *tx);

/* Forgets the writes and the watches that wait, and takes no more. */
void sneck__tx_shut(sneck_tx *tx);

/* The connection is still the one that the server was told to watch on, if it was. */
bool sneck__tx_connected(const sneck_tx *tx);

/* Closes the connection, and drops what is queued there. The link stays, and connects
 * again when it is needed. */
void sneck__tx_close(sneck_tx *tx);

/* Writes the report, if one is wanted. */
void sneck__tx_report(const sneck_tx *tx, int status);

#endif
