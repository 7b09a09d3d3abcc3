#ifndef SNECK_LOCK_H
#define SNECK_LOCK_H

#include "client.h"
#include "companion.h"
#include "renewal.h"
#include "text.h"
#include "token.h"

/* What is known of the token. A lost reply leaves a doubt, which the next
 * definite answer ends. */
enum lock_doubt { DOUBT_NONE, DOUBT_ACQUIRE, DOUBT_RELEASE };

struct script;
struct body;

/* What a kind of lock does on the server. */
struct lock_kind {
    const struct script *acquire, *release, *extend, *holder, *force_release;
    const char *beside;         /* the purpose of the key beside the lock's own */
    const char *unit;           /* of the time that acquire writes; NULL: it writes none */
    bool queues;                /* who waits stands in a queue; else each asks by itself */
};

/* The requests that grant a quorum's token may still be under way on this link. What ends the
 * token goes behind them there: on another one it could come before them. */
struct grant {
    uint64_t link;              /* its number */
    uint32_t servers;           /* to which of them, a bit for each */
};
#define GRANTS_MAX 8

struct sneck_lock {
    atomic_size_t references;   /* the handle and ops */
    sneck_client *client;       /* a reference */
    const struct lock_kind *kind;
    struct counters *counters;  /* where what it does is counted */
    char *name;                 /* the key: prefix and name; never changes */
    size_t name_len;
    struct companion beside_key; /* its queue: who waits, by arrival; or see timestamp_lock.c */
    struct companion fence_key; /* the last fence; text NULL: no fences */
    uint32_t hash;              /* of the name */
    int64_t ttl_ms;
    int64_t poll_ms;            /* between two askings where nothing wakes */
    bool fair;                  /* never passes the queue */
    bool renew;                 /* renewed from acquire on */
    int64_t max_hold_ms;        /* renewed for no longer; SNECK_FOREVER: no limit */
    sneck_lost *on_lost;        /* or NULL */
    void *on_lost_data;
    char *label;                /* or NULL */
    struct lock_renewal renewal; /* under the renewal's mutex */
    char *what;                 /* owned; `lock "name"`, for messages */

    pthread_mutex_t mutex;      /* for what follows; never held across I/O */
    atomic_uint fork_count;     /* whose token and head they are */
    char *head;                 /* owned; of this process's tokens, with room for any pid */
    size_t head_len;
    char *token;                /* owned; room for one of those, or for what was adopted */
    size_t token_len;           /* 0: owns none */
    uint64_t lease_number;      /* counts the tokens that it owned; 0: none yet */
    struct body *bodies;        /* owned; the newest first; see bodies.c */
    enum lock_doubt doubt;
    unsigned releasing;         /* releases of this token that are under way */
    int64_t kept_ms;            /* the validity before the first of them */
    bool released_in_time;      /* DOUBT_RELEASE: the first one was sent while valid */
    bool lost;                  /* the last token was lost, as the server said */
    bool moved;                 /* and so by a time that another client has written */
    bool failing;               /* the last renewal failed */
    int64_t deadline_ms;        /* validity; 0: not known */
    struct grant grants[GRANTS_MAX]; /* of this token */
    size_t grant_count;
    unsigned extending;         /* extends of this token that are under way */
    int64_t shortest_ms;        /* the shortest ttl of those and what they overlap */
    int64_t fence;              /* of the last acquire; 0: none */
    char *error;                /* owned; NULL: none yet, or no memory for it */
    char server_code[CODE_SIZE];
};

/* As sneck_lock_new(), for any kind, which must stay. */
int sneck__lock_make(sneck_lock **out, sneck_client *client, const void *name, size_t name_len,
                     const sneck_lock_options *options, const struct lock_kind *kind,
                     char *error);

sneck_lock *sneck__lock_share(sneck_lock *lock);
void sneck__lock_drop(sneck_lock *lock);

/* An op or a transaction has it, beside its handle. */
bool sneck__lock_is_shared(const sneck_lock *lock);

/* Keeps the message and the server's code word of a blocking call that failed. */
void sneck__lock_report(sneck_lock *lock, const char *error, const char *code);

/* From here on: lease.c, what is known of the token. */

/* The end of the validity of a lease of `ttl_ms` that began after `sent_ms`. */
int64_t sneck__validity_ms(int64_t sent_ms, int64_t ttl_ms);

/* Makes a token of this process; its length, or 0 without randomness. */
size_t sneck__lock_make_token(sneck_lock *lock, char out[OWN_TOKEN_MAX]);

/* Takes the lock's mutex, and gives it back. */
void sneck__lock_enter(sneck_lock *lock);
void sneck__lock_exit(sneck_lock *lock);

/* Copies the token for an op, malloc'd; *out NULL and OK when there is none. `number`:
 * of its lease, or NULL. */
int sneck__lock_copy_token(sneck_lock *lock, char **out, size_t *len, uint64_t *number);

/* The token is ours until deadline_ms; `fence` 0: it has none. Gives the lease's number. */
uint64_t sneck__lock_hold(sneck_lock *lock, const char *token, size_t len, int64_t deadline_ms,
                          int64_t fence);

/* A grant of the token that we hold is under way: to these servers, on the link of this number.
 * False: it must not be, since it is not ours any more, or there is no room. */
bool sneck__lock_note_grant(sneck_lock *lock, const char *token, size_t len, struct grant grant);

/* The link where one is under way; 0: none. */
uint64_t sneck__lock_grant_link(sneck_lock *lock);

/* The acquire's reply was lost; keeps the token unless another is still valid. */
void sneck__lock_doubt_acquire(sneck_lock *lock, const char *token, size_t len);

/* A release of a token. It is under way from its begin to the first of the three that
 * end it; these do nothing when it is not. */
struct token_release {
    char *token;                /* owned; NULL: it is not under way */
    size_t token_len;
    bool in_time;               /* sent while the token was valid */
    struct grant grants[GRANTS_MAX]; /* behind which it has to go */
    size_t grant_count;
};

/* The release of this token goes out now: nothing is surely ours any more. */
void sneck__lock_begin_release(sneck_lock *lock, struct token_release *release);

/* It was not done: the deadline stands again, unless another release is under way or in doubt. */
void sneck__lock_undo_release(sneck_lock *lock, struct token_release *release);

/* Its reply was lost. */
void sneck__lock_doubt_release(sneck_lock *lock, struct token_release *release);

/* The server does not have the token any more; `found`: it had it until now. True:
 * all is well, also because an earlier call whose reply was lost can have done it;
 * false: the lock was lost before. */
bool sneck__lock_end_release(sneck_lock *lock, struct token_release *release, bool found);

/* The token, acquired just now, is given up again. */
void sneck__lock_give_up(sneck_lock *lock, const char *token, size_t len);

/* An extend found the lock not ours. True: it was lost; false: it is being released,
 * or something newer is known. */
bool sneck__lock_lose(sneck_lock *lock, const char *token, size_t len);

/* It was lost just now to who has written a time over ours. */
void sneck__lock_note_moved(sneck_lock *lock);

/* What renewal goes by. */
struct lock_lease {
    bool owned;             /* and nothing that was sent may end that */
    bool lost;              /* the server said so */
    bool moved;             /* and that another client has written a time over ours */
    int64_t deadline_ms;    /* NEVER_MS: not known */
};
struct lock_lease sneck__lock_lease(sneck_lock *lock);

/* A renewal was answered well, or not at all. */
void sneck__lock_note_renewal(sneck_lock *lock, bool well);

/* An extend of this token goes out now, and may shorten the lease. False: it must
 * not, since a release that was sent may still come. */
bool sneck__lock_begin_extend(sneck_lock *lock, const char *token, size_t len,
                              int64_t sent_ms, int64_t ttl_ms);

/* It is over; where it is `confirmed`, the lease is what it says. */
void sneck__lock_end_extend(sneck_lock *lock, const char *token, size_t len,
                            int64_t sent_ms, bool confirmed);

#endif
