#ifndef SNECK_OP_H
#define SNECK_OP_H

#include "clock.h"
#include "heap.h"
#include "link.h"
#include "script.h"
#include "sneck.h"
#include "text.h"

#define SCRIPT_WORDS_MAX 8 /* keys and arguments of a script */

/* What a capability is, to the link and to op.c. Every function gets the op; only
 * `reply` and `lost` must be there. None of them blocks. */
struct op_class {
    /* A reply to its oldest request. True: the op keeps it; else it is freed. */
    bool (*reply)(sneck_op *op, redisReply *reply);
    /* Its request will not be answered. `sent`: the server may have got it. What
     * happened stands in op->link. */
    void (*lost)(sneck_op *op, bool sent);
    /* Its timer ran out; the timer is off already. */
    void (*timer)(sneck_op *op);
    /* The link's inbox has another state, or its connection broke. */
    void (*wake)(sneck_op *op);
    /* A message came to the inbox; true: it was for this op. */
    bool (*message)(sneck_op *op, const char *message, size_t len);
    /* Gives up while pending, and sends what cleans up; ends with INTERRUPTED
     * unless it ended the op itself. */
    void (*cancel)(sneck_op *op);
    /* Gives back what the op owns. */
    void (*clear)(sneck_op *op);
    /* Takes its parts off the link, before it leaves that itself. */
    void (*leave)(sneck_op *op);
};

struct sneck_op {
    const struct op_class *class;
    sneck_link *link;           /* borrowed from the pool, or the caller's */
    bool pooled;                /* give the link back when freed */
    bool alone;                 /* nobody else steps the link: a wait lets it settle */
    void *data;                 /* the caller's */
    struct op_list *list;       /* which of the link's it is in */
    sneck_op *prev, *next;      /* in that list */
    sneck_op *parent;           /* on the same link; its timer fires when this one ends */
    int status;
    struct heap_item timer;     /* in the link's timers while it is on */
    bool listening;             /* in the link's listeners, for a token with this hash */
    uint32_t listens_for;
    sneck_op *next_listener;
    size_t in_flight;           /* its requests that the link still holds */
    uint64_t first_request, last_request; /* their numbers lie from the one to the other */

    /* The script under way, kept for EVAL should the server not know it. */
    const struct script *script;
    bool named_twice;           /* it was sent once more by its SHA-1 */
    const char *argv[3 + SCRIPT_WORDS_MAX];
    size_t argv_len[3 + SCRIPT_WORDS_MAX];
    size_t argc;

    uint64_t lease_number;      /* of the lease that an acquire or an extend is about */
    redisReply *reply;          /* owned; what it gives to its caller */
    char server_code[CODE_SIZE];
    char *error;                /* owned; NULL: none */
};

/* Allocates an op of `size` bytes, its first member a sneck_op, on a link; NULL
 * link: one of the client's pool. NULL: no memory. When the client is closed the
 * op has ended already. */
void *sneck__op_new(size_t size, const struct op_class *class, sneck_client *client,
                    sneck_link *link);

/* An op that is a part of another, in whose memory it is: it stays pending on its link, is
 * never told by it, and has no timer. It leaves before the other does. */
void sneck__op_begin_part(sneck_op *part, const struct op_class *class, sneck_link *link);
void sneck__op_leave_part(sneck_op *part);

/* Ends the op with a status and one line. */
__attribute__((format(printf, 3, 4)))
void sneck__op_end(sneck_op *op, int status, const char *format, ...);

/* Sets its timer, in place of the one before; NEVER_MS: off. */
void sneck__op_set_timer(sneck_op *op, int64_t due_ms);

/* Sends one command for the op; ends it with NO_MEMORY where that fails. */
void sneck__op_send(sneck_op *op, struct command command);

/* Makes sure that the request under way is never done. False: it may have been, or may be
 * yet, since other ops have queued theirs around it. */
bool sneck__op_withdraw(sneck_op *op);

/* Keeps a script with its words, which are so many keys, then arguments; and sends it. All
 * bytes must stay until its reply is there. Composed, op->argv are the words of EVALSHA;
 * as_text() makes them those of EVAL. */
void sneck__op_compose(sneck_op *op, const struct script *script, size_t keys, size_t count,
                       const char *const *words, const size_t *len);
void sneck__op_send_script(sneck_op *op);
void sneck__op_as_text(sneck_op *op);

/* The server does not know the script of an EVALSHA. */
bool sneck__is_noscript(const redisReply *reply);

/* What to do about an error reply that begins with this code; "": nothing is known. */
const char *sneck__advice(const char *code, const char *text);

/* Ends the op as its link failed: `what` names the subject, as in "lock "x"". */
void sneck__op_end_lost(sneck_op *op, bool sent, const char *what);

/* The status that this would be, with its message. */
int sneck__op_tell_lost(char error[SNECK_ERROR_SIZE], const sneck_op *op, bool sent,
                        const char *what);

/* Ends the op for an error reply, or for one of a type that was not expected. */
void sneck__op_end_reply(sneck_op *op, const redisReply *reply, const char *what);

/* Moves the reply out of an op that has ended; the caller frees it. */
sneck_reply *sneck__op_take_reply(sneck_op *op);

/* Moves the list out of a waiters op that ended OK. */
sneck_waiter *sneck__waiters_take(sneck_op *op, size_t *count);

/* Waits until a descriptor of the link or, if not -1, the other one can be read, or
 * until the time is over or a signal came. The only poll(2) of the library. Returns
 * false where nothing was ready. */
bool sneck__wait(const sneck_link *link, int other, int64_t timeout_ms,
                 struct readable *readable);

/* What the link calls. */
void sneck__op_reply(sneck_op *op, redisReply *reply);
void sneck__op_lost(sneck_op *op, bool sent);
void sneck__op_timer(sneck_op *op);
void sneck__op_wake(sneck_op *op);
bool sneck__op_message(sneck_op *op, const char *message, size_t len);
void sneck__op_detach(sneck_op *op); /* also from one that ends: nothing more is sent */

#endif
