#ifndef SNECK_RENEWAL_H
#define SNECK_RENEWAL_H

#include "fork.h"
#include "heap.h"
#include "sneck.h"

#include <pthread.h>
#include <stdatomic.h>

/* A client's thread that renews, and the locks that it keeps alive. */
struct renewal {
    pthread_mutex_t mutex;      /* for what follows; never held across I/O or a callback */
    struct fork_hold hold;      /* of the mutex */
    unsigned fork_count;        /* whose thread it is */
    struct heap heap;           /* of locks; a reference to each */
    bool running;               /* there is a thread, to be joined */
    bool stopping;              /* for good */
    bool asleep;                /* it waits, and touches neither link nor locks */
    bool looking;               /* it may be looking up a name: nobody waits for its end */
    pthread_t thread;
    int wake[2];                /* a pipe: what is written there ends its sleep */
    int64_t sleeps_until_ms;    /* when it looks again by itself */
    sneck_lock *told;           /* whose on_lost is running; NULL: none */
    pthread_cond_t told_over;
    sneck_link *link;           /* the thread's own */
    const char *lacks;          /* what the system refused, when there was to be a thread */
    int error;                  /* and why, in errno's numbers */
};

/* A lock's part in it, under the same mutex. */
struct lock_renewal {
    atomic_bool used;           /* was ever renewed; read without the mutex */
    unsigned fork_count;        /* in whose heap it is */
    struct heap_item item;      /* when something is to be done about it */
    int64_t hold_end_ms;        /* no renewal after that */
    sneck_op *op;               /* the renewal under way; NULL: none */
    unsigned paused;            /* how many ask not to renew it right now */
    bool freed;                 /* the handle was given up: nobody could release it */
};

void sneck__renewal_init(struct renewal *renewal);
void sneck__renewal_clear(struct renewal *renewal);

/* Makes sure that there is a thread; OK, INVALID, NO_MEMORY, or CONNECTION: there are no
 * descriptors left, for connections neither. */
int sneck__renewal_start(sneck_client *client);

/* What there was not enough of when it failed. */
#define RENEWAL_WHY_SIZE 160
void sneck__renewal_tell_lack(sneck_client *client, char out[RENEWAL_WHY_SIZE]);

/* Its link has something to send that another thread has left there. */
void sneck__renewal_wake(sneck_lock *lock);

/* Ends the thread, after the callback that it may be in. If it looks up a name, it ends by
 * itself, later: it renews nothing and calls nobody any more, and the client's memory stays
 * until then. */
void sneck__renewal_stop(sneck_client *client);

/* Renews the lock, whose token is held, from now on, or not any more. INTERRUPTED: its
 * handle is freed. */
int sneck__renewal_add(sneck_lock *lock);
void sneck__renewal_remove(sneck_lock *lock);

/* The same, if the lock's lease is still the one with this number. */
void sneck__renewal_end(sneck_lock *lock, uint64_t number);

/* The handle is given up: removes the lock, and waits for its callback to end. */
void sneck__renewal_forget(sneck_lock *lock);

/* The lease was changed by an extend: it is renewed when that is due. */
void sneck__renewal_reset(sneck_lock *lock);

/* For a moment the key must not change, unless less than a third of the ttl is left. One
 * that is under way already may still change it. */
void sneck__renewal_pause(sneck_lock *lock, bool paused);

#endif
