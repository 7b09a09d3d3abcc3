#ifndef RUNNER_CALL_H
#define RUNNER_CALL_H

#include "words.h"

#include <sneck.h>

enum call_kind {
    CALL_NONE,
    CALL_ACQUIRE, CALL_RELEASE, CALL_EXTEND, CALL_HOLDER, CALL_WAITERS, CALL_FORCE_RELEASE,
    CALL_EXECUTE, CALL_UPDATE, CALL_COMPARE, CALL_TRY_LOCK, CALL_RELEASE_LOCK,
    /* those of an open transaction: */
    CALL_BEGIN, CALL_READ, CALL_WATCH, CALL_QUEUE, CALL_CONFLICTS, CALL_COMMIT, CALL_GIVE_UP,
};

/* A transaction that stays open from call to call. A driver makes it at CALL_BEGIN. */
struct session {
    bool open;                   /* its body is being run */
    void *under_way;             /* the driver's own; gone once it is not open */
};

/* What an update makes of the old value. */
enum change { CHANGE_ADD, CHANGE_APPEND, CHANGE_DELETE, CHANGE_KEEP };

/* One call that goes to the server. The caller fills in the first part and keeps
 * it until the call has ended; a driver fills in the second. */
struct call {
    enum call_kind kind;
    sneck_client *client;
    sneck_link *link;            /* the actor's; NULL in blocking mode */
    sneck_lock *lock;            /* NULL from CALL_EXECUTE on */
    sneck_rlock *rlock;          /* in its place, for one of its owners; or NULL */
    uint64_t owner;
    int64_t ms;                  /* the wait of an acquire or a try, the ttl of an extend or a
                                  * write */
    int64_t expire_ms;           /* of CALL_TRY_LOCK */
    struct words command;        /* of CALL_EXECUTE, CALL_READ and CALL_QUEUE; or all keys;
                                  * or the key, the expected and the new value; or the key
                                  * and the value of a lock */
    enum change change;          /* of CALL_UPDATE, with its argument */
    struct bytes argument;
    sneck_tx_options options;    /* of CALL_BEGIN and CALL_UPDATE */
    struct session *session;     /* the actor's; from CALL_BEGIN on */

    int status;
    char error[SNECK_ERROR_SIZE];
    char server_code[32];
    sneck_holder holder;
    size_t waiter_count;         /* of CALL_WAITERS */
    bool was_held;               /* of CALL_FORCE_RELEASE */
    bool again;                  /* it ended an attempt, and the body is run again */
    sneck_tx_report report;      /* of CALL_UPDATE, and of what ends a transaction */
    struct words reply;          /* what came of it as an outcome, where that is more than
                                  * `ok`; a commit's also when single commands failed */

    void *under_way;             /* the driver's own */
};

/* A way to run calls: the blocking functions in threads, or ops stepped by hand. */
struct driver {
    /* Makes the link that an actor's calls run on; may leave it NULL. */
    void (*open)(sneck_link **link, sneck_client *client);
    void (*close)(sneck_link *link);
    void (*start)(struct call *call);
    /* Gives the call `ms` to end. True: it has, and all that `start` made is gone. */
    bool (*wait)(struct call *call, int64_t ms);
};

extern const struct driver blocking_driver, stepped_driver;

void call_free(struct call *call);

/* Appends words to its command: their bytes are all that counts, but a bare `nil` stays one. */
void call_add_words(struct call *call, const struct word *const *from, size_t count);

/* Puts down a reply, if there is one, and frees it. */
void call_take_reply(struct call *call, sneck_reply *reply);

/* The words of a command as the library wants them; they borrow its bytes. */
struct argv {
    const void **at;
    size_t *len;
    size_t count;
};

struct argv argv_of(const struct words *command);
void argv_clear(struct argv *argv);

/* CALL_UPDATE and CALL_COMPARE, which have blocking functions only. Return the status. */
int run_update(struct call *call);
int run_compare(struct call *call);

/* CALL_TRY_LOCK and CALL_RELEASE_LOCK: by blocking functions, whose status this is, and
 * started as ops. */
int run_try_lock(struct call *call);
int start_try_lock(sneck_op **op, struct call *call);

/* CALL_WATCH, CALL_QUEUE and CALL_CONFLICTS, which end at once. Returns the status. */
int run_on_tx(sneck_tx *tx, struct call *call);

/* The calls of an open transaction by sneck_transact(), on a thread of its own. As a
 * driver's functions. */
void session_start(struct call *call);
bool session_wait(struct call *call, int64_t ms);

/* The same calls by ops. The op that is under way, NULL when the call has ended; and
 * what follows when it has ended, true: so has the call. */
void session_steps_start(struct call *call);
sneck_op *session_steps_op(const struct call *call);
bool session_steps_advance(struct call *call);

#endif
