#ifndef SNECK_TX_H
#define SNECK_TX_H

#include "buffer.h"
#include "client.h"
#include "lock.h"
#include "op.h"

/* Those who want to write the same keys may have agreed on an order. */
struct tx_turn {
    const char *key;            /* exists while somebody has the turn; borrowed */
    size_t key_len;
    int (*take)(void *data);    /* waits for our turn; OK also when it is not to be had */
    void *data;
};

/* One attempt of a transaction. */
struct sneck_tx {
    sneck_client *client;       /* a reference */
    sneck_link *link;           /* borrowed from the pool for this attempt; NULL: none yet */
    struct buffer watches;      /* WATCH commands that wait for the next exchange */
    size_t watch_count;
    struct buffer writes;       /* what goes between MULTI and EXEC */
    size_t write_count;
    bool watching;              /* the server has been told to watch */
    bool asks;                  /* an EXISTS of the turn's key is the last of them */
    sneck_lock *guard;          /* borrowed; NULL: none */
    const struct tx_turn *turn; /* who to ask for our turn; NULL: it is ours, or nobody's */
    sneck_interrupt *interrupt; /* as for sneck_op_wait() */
    void *interrupt_data;
    int conflicts;              /* attempts before this one */
    int status;                 /* SNECK_OK until something failed for good */
    bool lost;                  /* its connection went: the attempt is over */
    bool unclean;               /* the connection may be within a MULTI */
    size_t failed;              /* the first write that failed in EXEC; SIZE_MAX: none */
    char server_code[CODE_SIZE];
    char error[SNECK_ERROR_SIZE];
};

/* Begins the attempt after so many conflicts; sends nothing. NOT_OWNER when the guard
 * has no token. */
int sneck__tx_begin(sneck_tx *tx, sneck_client *client,
                    const sneck_tx_options *options, const struct tx_turn *turn,
                    int conflicts);

/* Commits; SNECK_CONFLICT when a watched key changed or the connection was lost, and
 * NOT_OWNER when the guard's key does not hold its token. */
int sneck__tx_commit(sneck_reply **out, sneck_tx *tx);

/* Ends the attempt, and gives its connection back as clean as it was. */
void sneck__tx_end(sneck_tx *tx);

__attribute__((format(printf, 3, 4)))
int sneck__tx_fail(sneck_tx *tx, int status, const char *format, ...);

#endif
