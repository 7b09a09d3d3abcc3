#ifndef SNECK_ACQUIRE_H
#define SNECK_ACQUIRE_H

#include "lock_op.h"

#define ENTRY_TAIL_SIZE (INBOX_ID_SIZE + 26) /* of an entry, behind the token */

/* The op that takes a lock. acquire.c has its beginning and its ends, acquire_waiting.c
 * what lies between. */
struct acquire {
    struct lock_op base;
    enum acquire_phase {
        SETTING,    /* SET NX PX is under way */
        ASKING,     /* acquire.lua is under way */
        JOINING,    /* the inbox is being opened */
        QUEUED,     /* in the queue: a grant, or the timer, comes next */
        PAUSING,    /* not in the queue: the timer comes next */
        CONFIRMING, /* extend.lua is under way: is the grant still good? */
    } phase;
    int64_t wait_ms;
    int64_t begun_ms;
    int64_t end_ms;                 /* of the wait; NEVER_MS: no end */
    int64_t sent_ms;                /* before the last request was sent */
    bool answered;                  /* the server was there once */
    bool uncertain;                 /* a lost request may have taken the lock */
    bool contended;                 /* it was found busy */
    bool value_in_doubt;            /* a lost request may have set the key to a chosen value */
    uint32_t random;
    int64_t holder_ttl_ms;          /* of whoever had it when we asked last */
    bool holder_foreign;
    unsigned fork_count;            /* whose token it is */

    int64_t queued_ms;              /* before the first request that queued us; 0: never */
    bool granted;                   /* a grant came while a request is under way */
    int64_t grant_received_ms;
    int64_t grant_given_ms;         /* not after the server gave it, by our clock */
    int64_t grant_ttl_ms;
    int64_t fence;                  /* of our lease; 0: none yet */

    size_t token_len, ttl_len, entry_len, former_len;
    char ttl[24];                   /* the lock's ttl in decimal */
    char *token;                    /* owned; the beginning of our entry in the queue, if we have
                                     * one: "token inbox ttl", or with " f" for a fence */
    char *former;                   /* owned; an entry of ours whose inbox is gone, or NULL */
    char *value;                    /* what the key holds when it is ours: the token; or owned,
                                     * and chosen by the caller */
    size_t value_len;
};

/* As sneck_lock_acquire_start(), but the key is to hold the value. */
int sneck__acquire_start(sneck_op **out, sneck_lock *lock, sneck_link *link, int64_t wait_ms,
                         const void *value, size_t value_len);

/* Its value is chosen by the caller: others may use the same, so that the key does not
 * tell whether it is ours. */
bool sneck__acquire_chosen(const struct acquire *a);

/* acquire.c: how it ends. */
void sneck__acquire_won(struct acquire *a, int64_t deadline_ms);
/* `no_time`: in the place of a timestamp lock's time the key holds something else. */
void sneck__acquire_not_free(struct acquire *a, const sneck_holder *holder, bool no_time);

/* Counts it, once. */
void sneck__acquire_found_busy(struct acquire *a);

/* It is ours, or was: the answer took longer than the lease. Goes on while there is time. */
void sneck__acquire_late(struct acquire *a);

/* Notes the time before a request, and for how long its answer is waited for. */
void sneck__acquire_expect(struct acquire *a);
bool sneck__acquire_time_left(const struct acquire *a);

/* acquire_waiting.c: what follows each event. `look` asks once, outside of the queue. */
void sneck__waiting_look(struct acquire *a);
void sneck__waiting_next(struct acquire *a);
void sneck__waiting_retry(struct acquire *a);
bool sneck__waiting_reply(struct acquire *a, const redisReply *reply);
void sneck__waiting_timer(struct acquire *a);
void sneck__waiting_wake(struct acquire *a);
bool sneck__waiting_message(struct acquire *a, const char *message, size_t len);

#endif
