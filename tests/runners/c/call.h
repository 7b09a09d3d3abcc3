#ifndef RUNNER_CALL_H
#define RUNNER_CALL_H

#include "words.h"

#include <sneck.h>

enum call_kind {
    CALL_ACQUIRE, CALL_RELEASE, CALL_EXTEND, CALL_HOLDER, CALL_WAITERS, CALL_FORCE_RELEASE,
    CALL_EXECUTE,
};

/* One call that goes to the server. The caller fills in the first part and keeps
 * it until the call has ended; a driver fills in the second. */
struct call {
    enum call_kind kind;
    sneck_client *client;
    sneck_link *link;            /* the actor's; NULL in blocking mode */
    sneck_lock *lock;            /* NULL for CALL_EXECUTE */
    int64_t ms;                  /* the wait of an acquire, the ttl of an extend */
    struct words command;        /* of CALL_EXECUTE */

    int status;
    char error[SNECK_ERROR_SIZE];
    char server_code[32];
    sneck_holder holder;
    size_t waiter_count;         /* of CALL_WAITERS */
    bool was_held;               /* of CALL_FORCE_RELEASE */
    struct words reply;          /* of CALL_EXECUTE and CALL_WAITERS, as an outcome */

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

/* The words of a command as the library wants them; free() both. */
void call_argv(const struct words *command, const void ***argv, size_t **len);

#endif
