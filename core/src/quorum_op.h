#ifndef SNECK_QUORUM_OP_H
#define SNECK_QUORUM_OP_H

#include "lock_op.h"
#include "quorum.h"

/* One server's part of an op. */
struct member {
    sneck_op op;                /* on the connection to that server; has no end of its own */
    struct quorum_op *whole;
    enum voice {
        SILENT,                 /* asked, and not heard yet */
        YES, NO,                /* what these mean is the capability's */
        FAILED,                 /* not reached, or an error; or not asked in this round */
    } voice;
    bool asked;                 /* and it may have been done, since a capability set it to false */
    bool asked_before;          /* the same, but for what is under way */
    bool doubtful;              /* FAILED: it may have done it, or do it yet */
    const char *why;            /* of NO and FAILED; static, or op.error. NULL: nothing to say */
    int64_t number;             /* of YES and NO, where a number was the answer */
};

/* The first member of every op on a quorum's lock. It asks all servers at once, in rounds. */
struct quorum_op {
    struct lock_op base;
    const struct quorum_kind *kind;
    struct member *members;     /* in the memory of the op */
    size_t count, majority;     /* count 0: it has ended already */
    size_t silent, yes, no, failed; /* of this round */
    size_t refused;             /* of the failed: by an error that does not pass by itself */
    int64_t limit_ms;           /* how long a round waits for an answer */
    int64_t sent_ms;            /* before the round was sent */
    struct buffer bytes;        /* what is sent to each server */
    struct buffer text;         /* the same for one that may not know the script; or empty */
};

/* What a capability is to quorum_op.c. */
struct quorum_kind {
    /* What a reply says; for NO it sets `why`. FAILED: it is no answer. */
    enum voice (*read)(struct quorum_op *q, struct member *m, const redisReply *reply);
    /* One more was heard, or nobody is silent any more: ends the op, or the round, if that
     * decides it. */
    void (*decide)(struct quorum_op *q);
};

/* As sneck__lock_op_new(), for an op whose struct has `size` bytes. Its limit is that of a
 * release: as long as a person would wait. */
void *sneck__quorum_op_new(size_t size, const struct op_class *class,
                           const struct quorum_kind *kind, sneck_lock *lock, sneck_link *link);

/* What a class has in common: at the timer, who is silent has failed. */
void sneck__quorum_timer(sneck_op *op);
void sneck__quorum_leave(sneck_op *op);
void sneck__quorum_clear(sneck_op *op);

/* The op begins with a struct quorum_op. */
bool sneck__is_quorum_op(const sneck_op *op);

/* Begins a round: nobody is asked yet. */
void sneck__quorum_round(struct quorum_op *q);

/* Formats what is to be sent: a command, or the script that was composed. */
bool sneck__quorum_format(struct quorum_op *q, struct command command);

/* Sends it to one server, or to all of them; its answer counts in this round. */
void sneck__quorum_ask(struct quorum_op *q, struct member *m);
void sneck__quorum_ask_all(struct quorum_op *q, struct command command);

/* Composes a script on the lock's keys, and sends it to all servers. */
void sneck__quorum_ask_script(struct quorum_op *q, const struct script *script, size_t argc,
                              const char *const *argv, const size_t *len);

/* What a server would say is known: it counts without being asked. */
void sneck__quorum_speak(struct member *m, enum voice voice);

/* Who is silent is not waited for any more; the replies are swallowed. */
void sneck__quorum_give_up(struct quorum_op *q);

/* As long as this may still come, or cannot any more. */
bool sneck__quorum_may_agree(const struct quorum_op *q);   /* a majority says YES */
bool sneck__quorum_may_deny(const struct quorum_op *q);    /* so many NO that none can */
bool sneck__quorum_agrees(const struct quorum_op *q);
bool sneck__quorum_denies(const struct quorum_op *q);
bool sneck__quorum_fails(const struct quorum_op *q);       /* so many failed that none can */

/* Some server may have done what was asked, or do it yet. */
bool sneck__quorum_doubtful(const struct quorum_op *q);

/* Writes `lock "x": 2 of 5 servers DID it, 3 are needed`, and what each server said. */
void sneck__quorum_tell(const struct quorum_op *q, char out[SNECK_ERROR_SIZE], const char *did);

/* Ends the op with that message; or with one of so many servers, where YES is not what counts. */
void sneck__quorum_end(struct quorum_op *q, int status, const char *did);
void sneck__quorum_end_counted(struct quorum_op *q, int status, size_t servers, const char *did);

/* What extend.lua answers where there is no key. */
#define NO_KEY (-1)
bool sneck__has_no_key(const redisReply *reply);

/* quorum_put_back.c: a majority has just extended the token. Servers that say, now or later, that
 * they have no key are given it again. */
void sneck__quorum_put_back(struct quorum_op *q, const char *token, size_t len, int64_t ttl_ms);

/* The capabilities. */
int sneck__quorum_acquire_start(sneck_op **out, sneck_lock *lock, sneck_link *link,
                                int64_t wait_ms);
int sneck__quorum_release_start(sneck_op **out, sneck_lock *lock, sneck_link *link,
                                const uint64_t *only);
int sneck__quorum_extend_start(sneck_op **out, sneck_lock *lock, sneck_link *link,
                               int64_t ttl_ms);
int sneck__quorum_holder_start(sneck_op **out, sneck_lock *lock, sneck_link *link);
int sneck__quorum_force_release_start(sneck_op **out, sneck_lock *lock, sneck_link *link);
int sneck__quorum_holder(sneck_holder *out, const sneck_op *op);
int sneck__quorum_was_held(bool *out, const sneck_op *op);

#endif
