#ifndef SNECK_TX_OP_H
#define SNECK_TX_OP_H

#include "tx.h"

/* One op of a transaction. It goes on step by step: `then` is called when the replies
 * to what was sent are there, when its child has ended, or when its timer ran out. */
struct tx_op {
    sneck_op op;
    sneck_tx *tx;                   /* NULL: the op has ended */
    void (*then)(struct tx_op *o);
    sneck_op *child;                /* owned; an op on the turn's lock */
    bool reports;                   /* its end is one for the report */
    bool ending;                    /* the outcome is known, and op.error; it tidies up */
    int outcome;

    /* what was sent last */
    bool commits;                   /* its last reply answers EXEC */
    size_t proofs;                  /* replies, from the first, that tell of MULTI and EXEC */
    bool refused;                   /* one of them is an error */
    bool was_there;                 /* the connection had been in use before */
    bool reached;                   /* a lost request had left */
    bool begun;                     /* the first reply is there */
    bool not_opened;                /* it answers MULTI, with an error */
    struct token_release passing;   /* of the turn; stands before EXEC */
    redisReply *failure;            /* owned; the first error among the others */
    redisReply *answer;             /* owned; the last reply */

    /* the first exchange, which asks for the turn as well */
    bool asks;                      /* the last reply but one tells of it */
    bool others_turn;
    struct buffer watches, command; /* to be sent again when our turn has come */
    size_t watch_count;
    void (*after)(struct tx_op *o); /* what follows */

    char message[SNECK_ERROR_SIZE]; /* of the outcome, while it tidies up */
    char *token;                    /* owned; the guard's, to be compared */
    size_t token_len;
};

/* Within the text of an error: that of the error which was its cause, if it names one,
 * as EXEC does. */
const char *sneck__tx_cause(const char *error);

/* A command as the wire wants it. */
struct fixed_command {
    const char *bytes;
    size_t len;
};
#define FIXED(text) ((struct fixed_command){text, sizeof text - 1})
#define UNWATCH FIXED("*1\r\n$7\r\nUNWATCH\r\n")
#define MULTI FIXED("*1\r\n$5\r\nMULTI\r\n")
#define EXEC FIXED("*1\r\n$4\r\nEXEC\r\n")
#define PROOF FIXED("*1\r\n$5\r\nMULTI\r\n*1\r\n$4\r\nEXEC\r\n")

#define NO_ATTEMPT "transaction: no attempt is open; begin one first"

/* Makes an op; NULL: no memory. One that is not PENDING was refused, since another is
 * under way or the client is closed. */
struct tx_op *sneck__tx_op_new(sneck_tx *tx);

/* Ends it as it is; the message, unless OK, is the transaction's. */
void sneck__tx_op_end(struct tx_op *o, int status);

/* Ends it, and the transaction: what is watched is forgotten, and the turn passed on,
 * before the op ends. */
void sneck__tx_op_finish(struct tx_op *o, int status);

/* Ends it for want of memory. */
void sneck__tx_op_no_memory(struct tx_op *o);

/* An exchange: everything goes in one write, and all replies are awaited. False: the
 * connection is not there any more, and the op has ended. */
bool sneck__tx_op_begin(struct tx_op *o, void (*then)(struct tx_op *o));
bool sneck__tx_op_send(struct tx_op *o, const char *bytes, size_t len, size_t replies);
bool sneck__tx_op_send_watches(struct tx_op *o);
void sneck__tx_op_sent(struct tx_op *o, bool ok);

/* Sends a command behind the watches that wait. The first time it asks for the turn, and
 * if somebody has it, sends all again after ours has come. On a connection that has not
 * committed yet it also finds out whether that is allowed. */
void sneck__tx_op_ask(struct tx_op *o, struct command command, void (*then)(struct tx_op *o));

/* Waits for our turn to write, with `then` at its end; false: it is not to be had. */
bool sneck__tx_take_turn(struct tx_op *o, void (*then)(struct tx_op *o));

/* Its first thing: notes whether the turn is ours. */
void sneck__tx_note_turn(struct tx_op *o);

/* Sends the turn's release as the last command before EXEC, if it is ours; its reply is
 * in flight then. False: no memory, or no connection. */
bool sneck__tx_send_release(struct tx_op *o);

/* What became of it: its reply in EXEC's. Where the turn is still ours, as it is when EXEC did
 * nothing or that is not known, sneck__tx_pass_turn() passes it on. */
void sneck__tx_note_release(struct tx_op *o, const redisReply *reply);

/* Passes the turn on; false: it was not ours, or cannot be. */
bool sneck__tx_pass_turn(struct tx_op *o, void (*then)(struct tx_op *o));

#endif
