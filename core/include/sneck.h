/* sneck.h - token locks on Redis and Valkey.
 *
 *     sneck_client *client;
 *     sneck_lock *lock;
 *     char error[SNECK_ERROR_SIZE];
 *
 *     if (sneck_client_new(&client, "redis://localhost:6379", NULL, error))
 *         die(error);
 *     if (sneck_lock_new(&lock, client, "reports:42", 10, NULL, error))
 *         die(error);
 *     if (sneck_lock_acquire(lock, 30000))               // waits 30 s at most
 *         die(sneck_lock_error(lock));
 *     ...                                                // the section
 *     if (sneck_lock_release(lock))                      // lost meanwhile?
 *         warn(sneck_lock_error(lock));
 *     sneck_lock_free(lock);
 *     sneck_client_free(client);
 *
 * Conventions
 *   - Functions that can fail return a sneck_status: 0 is success, failures are
 *     negative, and every outcome that a caller may branch on has its own code.
 *   - Results go through a first parameter named `out`, written on success only.
 *   - Times are milliseconds in int64_t and end in _ms. Bytes are a pointer and
 *     a length and may hold anything. Text is NUL-terminated UTF-8.
 *   - Messages are one line: what happened, to which key or address, what to do.
 *     They belong to the handle that they are about and stand until the next
 *     call on it. Constructors, which have no handle yet, take a buffer `error`
 *     of SNECK_ERROR_SIZE bytes, or NULL.
 *   - Destructors take NULL, never fail and send nothing. Only those of locks and clients
 *     can block, where there is an on_lost: until one that is running has returned.
 *   - Every argument is copied before a call returns.
 *
 * Threads: a client may be used by any number of threads at once. Locks, links
 * and ops may move between threads but are used by one at a time, except that
 * the calls on one lock are safe against each other (its message is not).
 * After fork() the child owns no lock, and opens connections of its own.
 *
 * What a lock promises, and what it does not, stands in docs/guarantees.md. These
 * pages are installed in share/doc/sneck, and in the tree lie beside core/.
 */
#ifndef SNECK_H
#define SNECK_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SNECK_VERSION "0.1.0"

#if defined(SNECK_STATIC)
#define SNECK_API
#else
#define SNECK_API __attribute__((visibility("default")))
#endif

/* ---------------------------------------------------------------- outcomes */

/* generated from core/src/status.def by scripts/generate: begin */
typedef enum sneck_status {
    SNECK_OK = 0,
    SNECK_PENDING = 1, /* an op that has not ended yet */
    SNECK_BUSY = -1, /* another owner holds the lock */
    SNECK_TIMEOUT = -2, /* the wait ended before the lock was free */
    SNECK_NOT_OWNER = -3, /* the lock is not ours, or not any more */
    SNECK_UNKNOWN = -4, /* the reply was lost: the server may or may not have done it */
    SNECK_CONNECTION = -5, /* the server cannot be reached; nothing was done */
    SNECK_SERVER = -6, /* the server answered with an error */
    SNECK_PROTOCOL = -7, /* the server's answer is not understood */
    SNECK_INVALID = -8, /* an argument is not valid; nothing was sent */
    SNECK_INTERRUPTED = -9, /* interrupted or cancelled before it was done */
    SNECK_NO_MEMORY = -10, /* out of memory */
    SNECK_CONFLICT = -11, /* others changed the keys in every attempt */
    SNECK_QUORUM = -12, /* fewer servers than a majority could be used */
} sneck_status;
/* generated: end */

#define SNECK_ERROR_SIZE 512        /* bytes of a message, its NUL included */

/* "NOT_OWNER"; never NULL. */
SNECK_API const char *sneck_status_name(int status);

/* "the lock is not ours, or not any more"; never NULL. */
SNECK_API const char *sneck_status_text(int status);

/* The library's version at run time, such as "0.1.0". */
SNECK_API const char *sneck_version(void);

/* Called by a call that waits, after each signal and at least every 100 ms, in the
 * thread that waits. Not 0 cancels the call. */
typedef int sneck_interrupt(void *data);

/* ------------------------------------------------------------------ client */

/* A client is an address, options, and a pool of connections. */
typedef struct sneck_client sneck_client;

#define SNECK_FOREVER INT64_C(-1)

typedef struct sneck_client_options {
    size_t size;                /* set by SNECK_CLIENT_OPTIONS */
    int64_t connect_timeout_ms; /* until a connection is ready for commands */
    int64_t io_timeout_ms;      /* until a command is answered */
    const char *client_name;    /* shown by CLIENT LIST; NULL: none is set */
    const void *key_prefix;     /* put before every lock's name; NULL: none */
    size_t key_prefix_len;
    const char *label;          /* stands in tokens, for holder(); NULL: none */
} sneck_client_options;

/* sneck_client_options options = SNECK_CLIENT_OPTIONS; options.label = "cron"; */
#define SNECK_CLIENT_OPTIONS                                                   \
    { sizeof(sneck_client_options), 5000, 5000, NULL, NULL, 0, NULL }

/* Makes a client for `url`; nothing is sent yet.
 *
 *     redis://[[user]:password@]host[:port][/db]     valkey:// is a synonym
 *     unix://[[user]:password@]/path/of/socket[?db=N]
 *
 * IPv6 hosts stand in brackets; user, password, path and db may be
 * percent-encoded. A NULL url means the environment's SNECK_URL or, without
 * one, redis://localhost:6379. `options` may be NULL for the defaults.
 * Fails with INVALID (the url, an option; TLS, which is not there yet) or
 * NO_MEMORY. Release with sneck_client_free(). */
SNECK_API int sneck_client_new(sneck_client **out, const char *url,
                               const sneck_client_options *options,
                               char *error);

/* Closes the pooled connections; those in use are closed when their op ends. Ends the
 * renewal of its locks, and waits for an on_lost that is running, unless called from
 * it. Later calls on the client and its locks fail with INVALID. */
SNECK_API void sneck_client_close(sneck_client *client);

/* Closes, as above, and gives up the caller's handle. Memory goes with the last lock,
 * link and op of the client, so these may be freed in any order. */
SNECK_API void sneck_client_free(sneck_client *client);

/* The message of the last sneck_execute(), sneck_try_lock() or sneck_release_lock() that
 * failed on this client, never NULL; and after SERVER its code word. Threads that share a
 * client use ops, whose messages are their own. */
SNECK_API const char *sneck_client_error(const sneck_client *client);

/* After SERVER: the code word that it got, as sneck_lock_server_code() tells it; "" after
 * anything else. */
SNECK_API const char *sneck_client_server_code(const sneck_client *client);

/* -------------------------------------------------------------------- lock */

/* A lock is a name, a ttl and, while held, the token that proves ownership.
 *
 * On the server it is `SET name token NX PX ttl` (redis.io, "Distributed Locks
 * with Redis"), so it excludes and is excluded by every client of that form.
 * A lock object is not re-entrant: acquiring it again waits like anybody else. */
typedef struct sneck_lock sneck_lock;

#define SNECK_TTL_MIN_MS INT64_C(3)              /* 2 ms of it are for drift */
#define SNECK_TTL_MAX_MS INT64_C(31536000000)    /* 365 days; also for waits */
#define SNECK_NAME_MAX ((size_t)1 << 20)         /* bytes, prefix included */
#define SNECK_TOKEN_MAX ((size_t)1 << 16)        /* bytes of an adopted token */

/* Called when renewal finds a lock lost: from the client's renewal thread, with none of
 * the library's mutexes held. It may make any call of the library; while it runs, other
 * leases of the client are not renewed. A child that it forks must end or exec. */
typedef void sneck_lost(sneck_lock *lock, void *data);

typedef struct sneck_lock_options {
    size_t size;         /* set by SNECK_LOCK_OPTIONS */
    int64_t ttl_ms;      /* the lease: how long the server keeps the lock */
    const char *label;   /* in place of the client's; NULL: the client's */
    int64_t poll_ms;     /* how often to ask where no wake-up can come */
    bool fair;           /* true: never take a free lock before those who wait */
    bool fence;          /* true: every acquire gets a fence, see sneck_lock_fence() */
    bool renew;          /* true: renewed from acquire on, see sneck_lock_renew() */
    int64_t max_hold_ms; /* renewed for no longer than that; SNECK_FOREVER: no limit */
    sneck_lost *on_lost; /* NULL: none */
    void *on_lost_data;
} sneck_lock_options;

#define SNECK_LOCK_OPTIONS                                                     \
    { sizeof(sneck_lock_options), 10000, NULL, 50, false, false, false,        \
      SNECK_FOREVER, NULL, NULL }

/* Makes a lock object; nothing is sent. Fails with INVALID (an empty or too
 * long name, a ttl, poll interval or max_hold outside of the limits) or NO_MEMORY. */
SNECK_API int sneck_lock_new(sneck_lock **out, sneck_client *client,
                             const void *name, size_t name_len,
                             const sneck_lock_options *options, char *error);

/* Makes a lock object that owns `token`, handed over by whoever acquired it.
 * Nothing is sent, so nothing is known of the lease: remaining is 0 until
 * sneck_lock_extend() confirms it. Releasing needs no confirmation. Fails as
 * sneck_lock_new(), and with INVALID for a token of none or too many bytes. */
SNECK_API int sneck_lock_adopt(sneck_lock **out, sneck_client *client,
                               const void *name, size_t name_len,
                               const void *token, size_t token_len,
                               const sneck_lock_options *options, char *error);

/* Makes an object for the same lock with the same options, which owns nothing. No I/O.
 * Fails with NO_MEMORY only. */
SNECK_API int sneck_lock_clone(sneck_lock **out, const sneck_lock *lock);

/* Frees the object, and ends its renewal. A lock still held stays on the server until
 * its ttl ends: release first. One with `renew` that is being acquired by an op is not
 * acquired any more: the op ends with INTERRUPTED, and gives back what it gets. Waits for
 * an on_lost of this lock that is running, so hold nothing that it needs; from within it,
 * it does not wait. */
SNECK_API void sneck_lock_free(sneck_lock *lock);

/* Acquires the lock. Blocks for `wait_ms` at most: 0 tries once, SNECK_FOREVER
 * has no limit. One round trip when the lock is free. Otherwise it waits in the
 * lock's queue, first come first served, and is handed the lock by whoever
 * releases it. A holder that died is noticed when its lease ends; one that does
 * not know of the queue (a foreign one) is asked after every `poll_ms`, jittered,
 * by whoever is first.
 *
 *   OK          held; remaining counts from before the winning request was sent
 *   BUSY        wait_ms was 0 and another owner holds it
 *   TIMEOUT     the wait ended; the message says who holds it
 *   UNKNOWN     the reply was lost: the lock may be ours. A cleanup was sent if
 *               the connection took it; sneck_lock_release() makes it certain
 *   CONNECTION  no server at the first try, or none any more when the wait ended
 *   SERVER, PROTOCOL, INVALID, INTERRUPTED, NO_MEMORY
 *
 * Whatever is not OK or UNKNOWN means: not held, and no token of ours stays. */
SNECK_API int sneck_lock_acquire(sneck_lock *lock, int64_t wait_ms);

/* Releases the lock if the key still holds our token, atomically: hands it to
 * whoever waits first, or deletes it. Blocks for one round trip.
 *
 *   OK         released (also when an earlier release, whose reply was lost,
 *              did it within the lease, or an unknown acquire never happened)
 *   NOT_OWNER  not held by this object, or expired, deleted or taken meanwhile
 *   UNKNOWN    the reply was lost; the token is kept, so call again
 *   CONNECTION, SERVER  the token is kept, so call again; PROTOCOL likewise */
SNECK_API int sneck_lock_release(sneck_lock *lock);

/* Sets the time that the lease has left to `ttl_ms`, or to the lock's own ttl
 * when 0. Never creates a key. Blocks for one round trip. OK, or NOT_OWNER, or
 * UNKNOWN, after which remaining is the smaller of both leases; others as for
 * release. NOT_OWNER also where an acquire or a release is unknown: it may still end
 * the lease, so nothing can be promised before a release makes it certain. */
SNECK_API int sneck_lock_extend(sneck_lock *lock, int64_t ttl_ms);

/* Begins to renew a held lock, or ends it. A thread of the client sets the lease to the
 * lock's ttl whenever a third of it is gone, until release, loss, max_hold or the end
 * of the object or the client. It tries again after failures until the lease's
 * validity ends. All locks of a client share that one thread, which takes no signals,
 * and its one connection. What an extend made longer is renewed when two thirds of the
 * ttl are left of it; what it made shorter than that, at once. OK; NOT_OWNER: not
 * held; INVALID: the client is closed; NO_MEMORY: also no thread; CONNECTION: no
 * descriptors are left. No I/O. */
SNECK_API int sneck_lock_renew(sneck_lock *lock, bool on);

/* What is known of the lease. */
typedef enum sneck_lease {
    SNECK_LEASE_NONE,      /* not acquired, or released */
    SNECK_LEASE_HELD,      /* surely ours for remaining_ms */
    SNECK_LEASE_UNCERTAIN, /* a renewal failed, though the lease is still valid; or the
                            * token is ours, but no answer tells for how long */
    SNECK_LEASE_LOST,      /* its validity has ended, or the server says that it is not
                            * ours. Until the next acquire, or an extend that
                            * finds it ours all the same */
} sneck_lease;

/* A lock that is renewed knows of its loss one renewal later at most. No I/O. */
SNECK_API sneck_lease sneck_lock_lease(const sneck_lock *lock);

/* The fence of the present or, when it was lost, the last acquire; 0 without the
 * option, and for an adopted token. Each acquire's is greater than all before it, of
 * all clients: let what you change remember the greatest that it saw, and refuse a
 * smaller one (Kleppmann, "How to do distributed locking"). It is the greater of
 * the server's time in microseconds and one more than the last, which the server
 * keeps until a day after its clock has passed it; extending does not change it. No I/O. */
SNECK_API int64_t sneck_lock_fence(const sneck_lock *lock);

/* How long the lock is surely ours, in milliseconds: time left until the
 * validity deadline `sent + ttl - (ttl / 100 + 2 ms)`. 0 when it is not ours.
 * Never more than is true, save for steps of the server's clock. No I/O. */
SNECK_API int64_t sneck_lock_remaining_ms(const sneck_lock *lock);

/* Copies the token into `buffer`, at most `size` bytes, and returns its length;
 * 0 when the object owns none. No I/O. */
SNECK_API size_t sneck_lock_token(const sneck_lock *lock, void *buffer,
                                  size_t size);

/* An object that is shared may have lost the lock, and acquired it again for somebody else.
 * So each lease of an object has a number: 1 for the first, and one more for each after it.
 * The number of the present lease or, without one, of the last; 0 before the first. What
 * one acquire got is told by sneck_op_lease_number(). No I/O. */
SNECK_API uint64_t sneck_lock_lease_number(const sneck_lock *lock);

/* As sneck_lock_release(), but only of the lease with this number. NOT_OWNER, and nothing is
 * sent, where the object has been acquired anew since: that lease stays, and is renewed. */
SNECK_API int sneck_lock_release_lease(sneck_lock *lock, uint64_t number);

/* For those who make blocks such as Python's `with`: which lease each block has, by its
 * owner, a number as for a sneck_rlock. Begin before the acquire; set the lease that it got,
 * 0 once it was released within the block; then end it, and release *out alone. They may be
 * within each other. Whoever ends a block as another owner ends the oldest. False: there is
 * none. Begin fails with NO_MEMORY. No I/O. */
SNECK_API int sneck_lock_begin_body(sneck_lock *lock, uint64_t owner);
SNECK_API void sneck_lock_set_body(sneck_lock *lock, uint64_t owner, uint64_t number);
SNECK_API bool sneck_lock_end_body(uint64_t *out, sneck_lock *lock, uint64_t owner);

/* The lock's own ttl. */
SNECK_API int64_t sneck_lock_ttl_ms(const sneck_lock *lock);

/* The message of the last call on this lock that failed; never NULL. */
SNECK_API const char *sneck_lock_error(const sneck_lock *lock);

/* After SERVER: the code word that the last call got, such as "NOPERM", "OOM",
 * "READONLY" or "WRONGTYPE"; "" after anything else. */
SNECK_API const char *sneck_lock_server_code(const sneck_lock *lock);

/* Who holds a lock. Sneck's tokens read `sneck:host:pid:label:<random>`; the
 * fields of any other token are empty, and it is foreign. */
typedef struct sneck_holder {
    bool held;           /* false: the lock is free, and the rest is empty */
    bool foreign;        /* not a token of Sneck's form, or without an expiry */
    int64_t pid;         /* 0 when not known */
    int64_t ttl_ms;      /* time left on the server; -1: it never expires */
    char host[64];
    char label[64];
    char token[256];     /* its first bytes */
    size_t token_len;    /* of all its bytes; more than 256 means cut */
} sneck_holder;

/* Asks the server who holds the lock. Blocks for one round trip. As it changes nothing
 * it is never UNKNOWN. Fails with CONNECTION (also when the reply was lost), SERVER
 * (WRONGTYPE: the key is not a lock), PROTOCOL, INVALID (the client is closed) or
 * NO_MEMORY; of a quorum with QUORUM in place of the first three. */
SNECK_API int sneck_lock_holder(sneck_holder *out, sneck_lock *lock);

/* One who waits. */
typedef struct sneck_waiter {
    int64_t pid;
    int64_t waited_ms;
    char host[64];
    char label[64];
} sneck_waiter;

/* Lists who waits for the lock, the next one first, 1,000 at most. Blocks for one
 * round trip. Free the list with sneck_waiters_free(); it is NULL if none waits. Fails
 * as sneck_lock_holder(). Of a quorum and of a timestamp lock, which have no queue, it
 * asks nobody, and the list is empty. */
SNECK_API int sneck_lock_waiters(sneck_waiter **out, size_t *count,
                                 sneck_lock *lock);
SNECK_API void sneck_waiters_free(sneck_waiter *waiters);

/* Takes the lock away from whoever holds it, of whatever kind, and hands it to
 * whoever waits first. For people who know that the holder is gone: one that is
 * not learns of it only at its release. *out tells whether it was held. Blocks
 * for one round trip.
 *
 *   OK         it is free now, or whoever waited first has it
 *   UNKNOWN    the reply was lost, so it may have been taken away. Ask who holds it
 *              before another try: that would take it from the next one, too
 *   QUORUM     of a quorum: too few servers answered
 *   CONNECTION, SERVER, PROTOCOL, INVALID (the client is closed), NO_MEMORY */
SNECK_API int sneck_lock_force_release(bool *out, sneck_lock *lock);

/* --------------------------------------------------------------- re-entrant */

/* A lock that its owner may acquire again, and has released when it has released it as
 * often. An owner is a number that the caller gives to whatever runs one thing at a
 * time: a thread, a task, a coroutine. It makes no two calls at once; different owners
 * may. They exclude each other as other clients do. */
typedef struct sneck_rlock sneck_rlock;

/* As sneck_lock_new(). */
SNECK_API int sneck_rlock_new(sneck_rlock **out, sneck_client *client,
                              const void *name, size_t name_len,
                              const sneck_lock_options *options, char *error);

/* As sneck_lock_free(), for the locks of all owners. */
SNECK_API void sneck_rlock_free(sneck_rlock *rlock);

/* For the owner who holds it: OK, counted, without I/O; NOT_OWNER if the lease was
 * lost. For others as sneck_lock_acquire(), and so where the owner's release is under way
 * or unknown. */
SNECK_API int sneck_rlock_acquire(sneck_rlock *rlock, uint64_t owner, int64_t wait_ms);

/* Undoes the owner's last acquire. The first one's is a sneck_lock_release(), which can
 * be called again after a failure. The others' are without I/O: OK, or NOT_OWNER, when
 * the lease was lost; it is counted all the same. NOT_OWNER for who does not hold it. */
SNECK_API int sneck_rlock_release(sneck_rlock *rlock, uint64_t owner);

/* The same around any way to acquire and release, such as ops on a link. After PENDING,
 * acquire or release the lock *out, which is borrowed, and say how that ended;
 * anything else is the result. */
SNECK_API int sneck_rlock_acquire_begin(sneck_lock **out, sneck_rlock *rlock, uint64_t owner);
SNECK_API void sneck_rlock_acquire_end(sneck_rlock *rlock, uint64_t owner, int status);
SNECK_API int sneck_rlock_release_begin(sneck_lock **out, sneck_rlock *rlock, uint64_t owner);
SNECK_API void sneck_rlock_release_end(sneck_rlock *rlock, uint64_t owner, int status);

/* How often the owner has acquired it and not released. */
SNECK_API size_t sneck_rlock_count(sneck_rlock *rlock, uint64_t owner);

/* The owner's lock, to extend it or to ask it; borrowed until its last release. NULL
 * when it holds none. */
SNECK_API sneck_lock *sneck_rlock_lock(sneck_rlock *rlock, uint64_t owner);

/* The message of the last call that failed, never NULL; and after SERVER its code word. What
 * an op between a begin and its end has to say stands in the op alone. */
SNECK_API const char *sneck_rlock_error(const sneck_rlock *rlock);
SNECK_API const char *sneck_rlock_server_code(const sneck_rlock *rlock);

/* ------------------------------------------------------------------- stats */

typedef enum sneck_wakeups {
    SNECK_WAKEUPS_UNTRIED, /* nothing had to wait yet */
    SNECK_WAKEUPS_USED,
    SNECK_WAKEUPS_DENIED,  /* PUBLISH, PUBSUB or SUBSCRIBE is not allowed: waiters poll */
} sneck_wakeups;

/* What a client and its locks have done since it was made; not the locks by which writers
 * of a hot key take turns. */
typedef struct sneck_stats {
    uint64_t acquisitions; /* successful acquires */
    uint64_t contended;    /* acquires that found the lock busy, however they ended */
    uint64_t handoffs;     /* locks that were handed over to a waiter of ours */
    uint64_t polls;        /* requests that a waiter sent because of its timer */
    uint64_t wait_ms;      /* time that contended acquires took, summed up */
    uint64_t losses;       /* leases that ended before their release or extend */
    uint64_t unknown;      /* calls whose outcome is unknown */
    sneck_wakeups wakeups;
} sneck_stats;

/* Never blocks; the numbers are not a snapshot of one moment. */
SNECK_API void sneck_client_stats(sneck_stats *out, const sneck_client *client);

/* ------------------------------------------------------------ raw commands */

typedef struct sneck_reply sneck_reply;

typedef enum sneck_reply_type {
    SNECK_REPLY_NIL,
    SNECK_REPLY_BYTES,   /* bulk strings and statuses such as "OK" */
    SNECK_REPLY_INTEGER,
    SNECK_REPLY_ARRAY,
    SNECK_REPLY_ERROR,   /* only inside of arrays; bytes hold its text */
} sneck_reply_type;

/* Sends one command, blocks until it is answered, and gives its reply, which
 * the caller frees. The key prefix is not applied. Commands that change what
 * the connection is (AUTH, HELLO, SELECT, MULTI, WATCH, SUBSCRIBE, MONITOR,
 * QUIT and their kin) are refused with INVALID. UNKNOWN: sent, but the reply
 * was lost. SERVER: an error reply; see sneck_client_server_code(). */
SNECK_API int sneck_execute(sneck_reply **out, sneck_client *client,
                            size_t argc, const void *const *argv,
                            const size_t *argv_len);

SNECK_API sneck_reply_type sneck_reply_kind(const sneck_reply *reply);
/* The number; 0 for a reply of another kind. Text is not read as a number: see
 * sneck_reply_kind(). */
SNECK_API int64_t sneck_reply_integer(const sneck_reply *reply);
/* Borrowed from the reply, with a NUL behind it; NULL when it holds no bytes. `len`
 * may be NULL. */
SNECK_API const char *sneck_reply_bytes(const sneck_reply *reply, size_t *len);
/* How many items an array has; 0 for a reply of another kind. */
SNECK_API size_t sneck_reply_count(const sneck_reply *reply);
/* Borrowed from the array; NULL past its end. */
SNECK_API const sneck_reply *sneck_reply_item(const sneck_reply *reply,
                                              size_t index);
SNECK_API void sneck_reply_free(sneck_reply *reply);

/* ---------------------------------------------------------- compare-and-set */

/* Optimistic locking by WATCH (redis.io, "Transactions"): read, decide, write; the
 * writes happen together, and only if no key that was watched has changed. Two
 * round trips: WATCH and the first read leave together, as do MULTI, the writes
 * and EXEC. To lock is better where the work is long or not on the server; to
 * compare and set where it is short: nobody waits for anybody, and nothing is
 * left behind by who dies. */
typedef struct sneck_tx sneck_tx;

/* One attempt: reads by sneck_tx_read(), queues writes, and returns SNECK_OK to
 * commit them. Any other value ends the transaction with nothing written, and is
 * what sneck_transact() returns; but SNECK_CONFLICT, which a read returns whose
 * connection was lost, ends the attempt only. It is called again after a conflict,
 * so it must not keep what an earlier attempt read. */
typedef int sneck_tx_body(sneck_tx *tx, void *data);

/* How a transaction went. */
typedef struct sneck_tx_report {
    int attempts;         /* how often the body was run */
    int64_t elapsed_ms;
    size_t failed;        /* the first write that failed in EXEC, from 0; else SIZE_MAX */
    char server_code[24]; /* after SERVER: the server's code word; "" otherwise */
} sneck_tx_report;

typedef struct sneck_tx_options {
    size_t size;       /* set by SNECK_TX_OPTIONS */
    int attempts;      /* how often the body is run at most; from 1 */
    int64_t wait_ms;   /* no attempt begins after that; SNECK_FOREVER: no limit */
    sneck_lock *guard; /* commit only while this lock is ours; NULL: none. One more
                        * round trip; to extend it in the body is no conflict, but
                        * by another thread during the commit it may be one */
    sneck_interrupt *interrupt; /* as for sneck_op_wait(); NULL: none */
    void *interrupt_data;
    sneck_tx_report *report;    /* written at the end, except after INVALID; or NULL */
} sneck_tx_options;

#define SNECK_TX_OPTIONS                                                       \
    { sizeof(sneck_tx_options), 16, 5000, NULL, NULL, NULL, NULL }

/* Runs the body until its writes are committed. `keys` are watched from the start,
 * without the key prefix. Blocks. `options` may be NULL. `error` takes one line
 * about a failure, or is NULL. *out, the array of the writes' replies, is the
 * caller's; it is NULL when the body queued none.
 *
 *   OK         committed, or nothing was queued
 *   CONFLICT   every attempt found a watched key changed; the message tells
 *              attempts and time
 *   NOT_OWNER  the guard is not ours any more; nothing was written
 *   UNKNOWN    the reply to EXEC was lost: all writes happened, or none, or all
 *              will yet
 *   SERVER     a write failed. Refused when it was queued (OOM, READONLY, NOPERM, a
 *              wrong number of arguments): none happened. Failed when it was
 *              run (WRONGTYPE): the others happened, and *out is written all the
 *              same, with the error in its place
 *   CONNECTION no server at the first attempt, or its connection was lost before
 *              the commit, in the last attempt too; nothing was written
 *   PROTOCOL, INVALID, INTERRUPTED, NO_MEMORY, or what the body returned
 *
 * After a conflict it pauses, at random up to a limit that doubles from 2 to 64 ms. */
SNECK_API int sneck_transact(sneck_reply **out, sneck_client *client, size_t count,
                             const void *const *keys, const size_t *key_len,
                             const sneck_tx_options *options, sneck_tx_body *body,
                             void *data, char *error);

/* Inside of a body. Sends one command now and gives its reply; it is the caller's.
 * A key that decides what is written must be watched before it is read. Commands
 * that block, subscribe or belong to transactions are refused with INVALID. After
 * a failure return its status. An error reply is SERVER. It may be run twice, when
 * a connection is lost: what writes belongs to sneck_tx_queue(). */
SNECK_API int sneck_tx_read(sneck_reply **out, sneck_tx *tx, size_t argc,
                            const void *const *argv, const size_t *argv_len);

/* Watches one more key from the next read on, with which it is sent. No I/O: OK, INVALID
 * (NULL, a key of over 1 MiB, or no attempt is under way) or NO_MEMORY. */
SNECK_API int sneck_tx_watch(sneck_tx *tx, const void *key, size_t key_len);

/* Adds a write to the commit. No I/O: OK, INVALID (what sneck_tx_read() refuses, or no
 * attempt is under way) or NO_MEMORY. What the server says comes with the commit. */
SNECK_API int sneck_tx_queue(sneck_tx *tx, size_t argc, const void *const *argv,
                             const size_t *argv_len);

/* Adds the write of one key: its new string, which is copied, or NULL to delete it.
 * ttl_ms 0 keeps the key's expiry, if it has one; more sets it. As sneck_tx_queue(), with
 * one reply in the commit's; INVALID also for a key that is NULL or a ttl that is
 * negative or longer than SNECK_TTL_MAX_MS. */
SNECK_API int sneck_tx_put(sneck_tx *tx, const void *key, size_t key_len,
                           const void *value, size_t value_len, int64_t ttl_ms);

/* How often the body was run before this time; and the message of the last call on
 * the transaction that failed. */
SNECK_API int sneck_tx_conflicts(const sneck_tx *tx);
SNECK_API const char *sneck_tx_error(const sneck_tx *tx);
SNECK_API const char *sneck_tx_server_code(const sneck_tx *tx);

/* What to do with a value: leave it, replace it, delete its key. */
typedef struct sneck_change {
    enum { SNECK_KEEP, SNECK_SET, SNECK_DELETE } kind;
    const void *bytes; /* SET: the new value; must stand until the call returns */
    size_t len;
} sneck_change;

/* Decides by the old value, NULL when the key is absent and otherwise with a NUL
 * behind it, what to do: writes *change and returns SNECK_OK, or another value to
 * give up. Called again after a conflict. */
typedef int sneck_update_function(sneck_change *change, const void *old, size_t old_len,
                                  void *data);

/* Changes the string at one key by a function of it; as sneck_transact(), with the
 * same outcomes. ttl_ms 0 keeps the key's expiry, more sets it. */
SNECK_API int sneck_update(sneck_client *client, const void *key, size_t key_len,
                           int64_t ttl_ms, const sneck_tx_options *options,
                           sneck_update_function *function, void *data, char *error);

/* Writes `value` (NULL: deletes the key) if the string at the key is `expected`
 * (NULL: if the key is absent). *out tells whether it was. ttl_ms as above. */
SNECK_API int sneck_compare_and_set(bool *out, sneck_client *client, const void *key,
                                    size_t key_len, const void *expected,
                                    size_t expected_len, const void *value,
                                    size_t value_len, int64_t ttl_ms,
                                    const sneck_tx_options *options, char *error);

/* ------------------------------------------------- without blocking: links */

/* A link is one connection, and one more while something waits, or one for each server
 * of a quorum. Any number of ops share it; replies are matched in order. It connects
 * when it is first needed and again after a failure. Drive it from any event loop:
 *
 *     sneck_link *link;
 *     sneck_op *op;
 *     sneck_link_new(&link, client);
 *     sneck_lock_acquire_start(&op, lock, link, 30000);
 *     while (sneck_op_status(op) == SNECK_PENDING) {
 *         struct pollfd fds[SNECK_LINK_FDS];
 *         nfds_t n = (nfds_t)sneck_link_fds(link, fds);
 *         poll(fds, n, (int)sneck_link_timeout_ms(link));
 *         sneck_link_step(link);
 *     }
 *
 * Descriptors, events and timeout may change with every call on the link or on
 * one of its ops: ask again after each, which costs no system call. Only the
 * resolution of a host name, at a connection's start, may block. docs/loops.md has
 * the whole contract. */
typedef struct sneck_link sneck_link;
typedef struct sneck_op sneck_op; /* one call under way, see below */

#define SNECK_LINK_FDS 15            /* descriptors of a link, at most: 2, or those of a quorum */

/* Makes a link; nothing is sent, and it connects when an op needs it. Fails with NO_MEMORY
 * only. Release with sneck_link_free(). */
SNECK_API int sneck_link_new(sneck_link **out, sneck_client *client);

/* Writes the descriptors to wait for, with their events, and returns how many. They
 * are to be watched by level: a step does not read or write all that it could. */
SNECK_API size_t sneck_link_fds(const sneck_link *link,
                                struct pollfd fds[SNECK_LINK_FDS]);

/* Changes whenever a descriptor was opened or closed. A new one often has the number
 * of the one before: a loop that keeps what it watches, as epoll(7) does, can tell by
 * this alone that it must watch it anew. The events change without it. */
SNECK_API uint64_t sneck_link_generation(const sneck_link *link);

/* How long to wait before the next step at most; -1: until a descriptor is
 * ready. 60 s at most, so that it fits an int. 0 where an op has ended since the last
 * step, as by a cancel: to look for such after each step is enough. */
SNECK_API int64_t sneck_link_timeout_ms(const sneck_link *link);

/* Does what can be done without blocking: connects, writes, reads, fires timers,
 * ends ops. Harmless when there is nothing to do. */
SNECK_API void sneck_link_step(sneck_link *link);

/* An op of this link that has ended, each once, in the order in which they did; NULL:
 * no more for now. Spares whoever has many of them to look at each. Ops that were
 * cancelled or whose start failed come out as well; not those that were freed. */
SNECK_API sneck_op *sneck_link_ended(sneck_link *link);

/* Nothing is queued, and no reply is outstanding: also what cancelled ops have left
 * behind is done. Waiters that stand in a queue may well be quiet. A quorum's link on which
 * no op is pending is quiet 100 ms after its last request: a server may be stalled. */
SNECK_API bool sneck_link_quiet(const sneck_link *link);

/* Closes the connection. Ops still on the link end as if cancelled, and send nothing:
 * to leave no token behind, cancel them first, and step until the link is quiet. */
SNECK_API void sneck_link_free(sneck_link *link);

/* --------------------------------------------------- without blocking: ops */

/* An op is one call under way. The start functions never block; they fail with
 * NO_MEMORY only. An argument that is not valid gives an op that has ended with
 * INVALID; so does a link of another client than the lock's. `link` NULL means: a
 * connection of the client's own pool, borrowed until the op is freed. */
SNECK_API int sneck_lock_acquire_start(sneck_op **out, sneck_lock *lock,
                                       sneck_link *link, int64_t wait_ms);
SNECK_API int sneck_lock_release_start(sneck_op **out, sneck_lock *lock,
                                       sneck_link *link);
SNECK_API int sneck_lock_release_lease_start(sneck_op **out, sneck_lock *lock,
                                             sneck_link *link, uint64_t number);
SNECK_API int sneck_lock_extend_start(sneck_op **out, sneck_lock *lock,
                                      sneck_link *link, int64_t ttl_ms);
SNECK_API int sneck_lock_holder_start(sneck_op **out, sneck_lock *lock,
                                      sneck_link *link);
SNECK_API int sneck_lock_waiters_start(sneck_op **out, sneck_lock *lock,
                                       sneck_link *link);
SNECK_API int sneck_lock_force_release_start(sneck_op **out, sneck_lock *lock,
                                             sneck_link *link);
SNECK_API int sneck_execute_start(sneck_op **out, sneck_client *client,
                                  sneck_link *link, size_t argc,
                                  const void *const *argv,
                                  const size_t *argv_len);

/* SNECK_PENDING, or how it ended, as the blocking call would return it. */
SNECK_API int sneck_op_status(const sneck_op *op);

/* The message of an op that failed; "" before and otherwise. */
SNECK_API const char *sneck_op_error(const sneck_op *op);

/* After SERVER: the server's code word, such as "NOPERM", "OOM", "READONLY" or
 * "WRONGTYPE"; "" otherwise. */
SNECK_API const char *sneck_op_server_code(const sneck_op *op);

/* The link that the op runs on; borrowed. NULL once that link, or the op's
 * transaction, is freed. */
SNECK_API sneck_link *sneck_op_link(const sneck_op *op);

/* A pointer of the caller's that the op carries, NULL at first: how a loop finds what
 * an ended op belongs to. */
SNECK_API void sneck_op_set_data(sneck_op *op, void *data);
SNECK_API void *sneck_op_data(const sneck_op *op);

/* The number of the lease that an acquire got or an extend confirmed, when it has ended OK;
 * 0 for any other op. */
SNECK_API uint64_t sneck_op_lease_number(const sneck_op *op);

/* The result of a holder op that ended OK. INVALID for any other op. */
SNECK_API int sneck_op_holder(sneck_holder *out, const sneck_op *op);

/* The results of waiters and force_release ops that ended OK; the list is borrowed.
 * INVALID for any other op. */
SNECK_API int sneck_op_waiters(const sneck_waiter **out, size_t *count,
                               const sneck_op *op);
SNECK_API int sneck_op_was_held(bool *out, const sneck_op *op);

/* The reply of an execute op that ended OK, or of an op of a transaction, borrowed;
 * NULL for any other. */
SNECK_API const sneck_reply *sneck_op_reply(const sneck_op *op);

/* Blocks until the op ends and returns its status. `interrupt` may be NULL:
 * signals do not end the wait then. All blocking calls are start, wait, free. */
SNECK_API int sneck_op_wait(sneck_op *op, sneck_interrupt *interrupt,
                            void *data);

/* Ends a pending op with INTERRUPTED; or with UNKNOWN, where a request whose outcome
 * matters has left or, on a link that others share, may leave yet. A cancelled acquire
 * leaves no token: a cleanup goes out behind its request, as long as the link lives and
 * is stepped. */
SNECK_API void sneck_op_cancel(sneck_op *op);

/* Cancels if pending, and frees. Does not touch the lock. */
SNECK_API void sneck_op_free(sneck_op *op);

/* ----------------------------------- without blocking: compare-and-set */

/* The steps of sneck_transact(), each an op, on a link of the transaction's own
 * (sneck_op_link()): begin; read, watch, queue and put as in a body; commit; after
 * CONFLICT begin again. One op at a time: another one started meanwhile ends with
 * INVALID. A whole program is examples/transaction.c. */

/* Makes a transaction; nothing is sent. Arguments as for sneck_transact(): wait_ms
 * counts from now, the interrupt is for sneck_tx_read() only, and the report is
 * written when a begin or a commit ends, so it must stand as long. */
SNECK_API int sneck_tx_new(sneck_tx **out, sneck_client *client, size_t count,
                           const void *const *keys, const size_t *key_len,
                           const sneck_tx_options *options, char *error);

/* Begins the first attempt or, after a CONFLICT, the next; what an unfinished one
 * has queued is dropped. Pauses and takes its turn where it must; the first on a
 * quiet key ends at once, and sends nothing.
 *
 *   OK         read and queue now
 *   CONFLICT   attempts or time are used up; CONNECTION, where the last attempt
 *              lost its connection
 *   NOT_OWNER  the guard is not ours
 *   INVALID    the transaction has ended: by one of these, or by a commit other
 *              than CONFLICT and INTERRUPTED; or the client is closed
 *   INTERRUPTED, NO_MEMORY: it may be begun again */
SNECK_API int sneck_tx_begin_start(sneck_op **out, sneck_tx *tx);

/* As sneck_tx_read(); the reply is sneck_op_reply()'s. CONFLICT: the connection was
 * lost, so begin again. */
SNECK_API int sneck_tx_read_start(sneck_op **out, sneck_tx *tx, size_t argc,
                                  const void *const *argv, const size_t *argv_len);

/* Commits. CONFLICT: begin again. All other outcomes are those of sneck_transact(),
 * and leave nothing to give up. The writes' replies are sneck_op_reply()'s, after OK
 * and where a write failed inside of EXEC; NULL when none was queued. Cancelled when
 * EXEC has left it is UNKNOWN, and cancelled when the outcome was known, just that. */
SNECK_API int sneck_tx_commit_start(sneck_op **out, sneck_tx *tx);

/* Gives up: nothing is written, nothing is watched any more, and whoever waits for
 * the turn gets it. Ends OK, whatever came before. */
SNECK_API int sneck_tx_unwatch_start(sneck_op **out, sneck_tx *tx);

/* Frees it at any time but within sneck_transact(), and never blocks. A pending op is
 * cancelled; its ops lose their link. A connection that still watches, or is in
 * doubt, is closed: to keep it, commit or unwatch first. */
SNECK_API void sneck_tx_free(sneck_tx *tx);

#ifdef __cplusplus
}
#endif

#endif /* SNECK_H */
