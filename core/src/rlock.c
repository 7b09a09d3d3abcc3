/* rlock.c - a lock that its owner may acquire again, which only counts.
 *
 * Each owner that holds or acquires it has a lock object of its own, so that one's
 * loss, lease and message are not another's. To the server, and to each other, they
 * are strangers: who is not the holder waits in the queue.
 *
 *             begin: PENDING          end: OK
 *   no entry -----------------> busy ---------> counted --begin: OK, more
 *      ^                          |                |
 *      +------- end: not OK ------+---- release ---+
 *
 * Invariant: an entry whose lock owns a token, or may, is not removed before the
 * server has said that it is released.
 */
#include "fork.h"
#include "lock.h"

#include <stdio.h>
#include <stdlib.h>

/* One owner. */
struct entry {
    struct entry *next;
    uint64_t owner;
    sneck_lock *lock;       /* owned */
    size_t count;           /* acquires that are not released */
    size_t busy;            /* calls under way on the lock */
};

struct sneck_rlock {
    sneck_lock *model;      /* owned; never acquired: what the owners' locks are like */
    pthread_mutex_t mutex;  /* for what follows; never held across I/O */
    struct fork_hold hold;  /* of the mutex */
    unsigned fork_count;    /* whose entries they are */
    struct entry *entries;
    struct entry *spare;    /* one of whom the lock is free, or NULL. A transaction that it
                             * guarded may still look at it */
    char error[SNECK_ERROR_SIZE];
    char server_code[CODE_SIZE];
};

/* ------------------------------------------------------------------ lifetime */

int sneck_rlock_new(sneck_rlock **out, sneck_client *client, const void *name,
                    size_t name_len, const sneck_lock_options *options, char *error)
{
    sneck_rlock *rlock = calloc(1, sizeof *rlock);
    if (!rlock) {
        sneck__message(error, "out of memory");
        return SNECK_NO_MEMORY;
    }
    int status = sneck_lock_new(&rlock->model, client, name, name_len, options, error);
    if (status != SNECK_OK) {
        free(rlock);
        return status;
    }
    pthread_mutex_init(&rlock->mutex, NULL);
    rlock->fork_count = sneck__fork_count();
    sneck__fork_hold(&rlock->hold, &rlock->mutex);
    *out = rlock;
    return SNECK_OK;
}

static void free_entry(struct entry *entry)
{
    if (entry)
        sneck_lock_free(entry->lock);
    free(entry);
}

void sneck_rlock_free(sneck_rlock *rlock)
{
    if (!rlock)
        return;
    sneck__fork_let_go(&rlock->hold);
    for (struct entry *entry = rlock->entries, *next; entry; entry = next) {
        next = entry->next;
        free_entry(entry);
    }
    free_entry(rlock->spare);
    sneck_lock_free(rlock->model);
    pthread_mutex_destroy(&rlock->mutex);
    free(rlock);
}

/* Takes the mutex. A child owns nothing: there the counts begin anew. */
static void enter_rlock(sneck_rlock *rlock)
{
    pthread_mutex_lock(&rlock->mutex);
    if (rlock->fork_count == sneck__fork_count())
        return;
    rlock->fork_count = sneck__fork_count();
    for (struct entry *entry = rlock->entries; entry; entry = entry->next)
        entry->count = entry->busy = 0;
}

static void leave_rlock(sneck_rlock *rlock)
{
    pthread_mutex_unlock(&rlock->mutex);
}

/* ------------------------------------------------------------------- entries */

static struct entry *find_entry(const sneck_rlock *rlock, uint64_t owner)
{
    struct entry *entry = rlock->entries;
    while (entry && entry->owner != owner)
        entry = entry->next;
    return entry;
}

/* NULL: no memory. */
static struct entry *add_entry(sneck_rlock *rlock, uint64_t owner)
{
    struct entry *entry = rlock->spare;
    if (entry && !sneck__lock_is_shared(entry->lock))
        rlock->spare = NULL;
    else
        entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    if (!entry->lock && sneck_lock_clone(&entry->lock, rlock->model) != SNECK_OK) {
        free(entry);
        return NULL;
    }
    entry->owner = owner;
    entry->next = rlock->entries;
    rlock->entries = entry;
    return entry;
}

/* Takes the entry out if its lock is free; gives what is to be freed, or NULL. */
static struct entry *retire(sneck_rlock *rlock, struct entry *entry)
{
    if (entry->count > 0 || entry->busy > 0 || sneck_lock_token(entry->lock, NULL, 0) > 0)
        return NULL;
    struct entry **at = &rlock->entries;
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    if (rlock->spare)
        return entry;
    rlock->spare = entry;
    return NULL;
}

static int refuse_rlock(sneck_rlock *rlock, int status, const char *why)
{
    snprintf(rlock->error, sizeof rlock->error, "%s: %s", rlock->model->what, why);
    *rlock->server_code = '\0';
    return status;
}

/* ------------------------------------------------------------------ acquiring */

/* Its release is under way, or nobody knows what came of it: whoever wants the lock now has
 * to acquire it anew. */
static bool is_given_back(const struct entry *entry)
{
    return sneck_lock_token(entry->lock, NULL, 0) > 0 && !sneck__lock_lease(entry->lock).owned;
}

/* The owner has it already: once more, if it still has. */
static int reenter(sneck_rlock *rlock, struct entry *entry)
{
    if (sneck_lock_remaining_ms(entry->lock) == 0)
        return refuse_rlock(rlock, SNECK_NOT_OWNER, "lost, so its owner cannot acquire it again"
                            " before it has released it as often as it acquired it");
    entry->count++;
    return SNECK_OK;
}

int sneck_rlock_acquire_begin(sneck_lock **out, sneck_rlock *rlock, uint64_t owner)
{
    int status = SNECK_PENDING;
    enter_rlock(rlock);
    struct entry *entry = find_entry(rlock, owner);
    if (entry && entry->count > 0 && !is_given_back(entry)) {
        status = reenter(rlock, entry);
    } else if (!entry && !(entry = add_entry(rlock, owner))) {
        status = refuse_rlock(rlock, SNECK_NO_MEMORY, "out of memory");
    } else {
        entry->busy++;
        *out = entry->lock;
    }
    leave_rlock(rlock);
    return status;
}

static void keep_failure(sneck_rlock *rlock, const sneck_lock *lock)
{
    snprintf(rlock->error, sizeof rlock->error, "%s", sneck_lock_error(lock));
    snprintf(rlock->server_code, sizeof rlock->server_code, "%s", sneck_lock_server_code(lock));
}

/* Ends what began with PENDING. A release that ends after a later acquire says nothing of
 * what that has got. */
static void end_call(sneck_rlock *rlock, uint64_t owner, int status, bool acquires)
{
    enter_rlock(rlock);
    struct entry *entry = find_entry(rlock, owner), *retired = NULL;
    if (entry) {
        entry->busy -= entry->busy > 0;
        if (acquires)
            entry->count = status == SNECK_OK;
        else if (sneck_lock_token(entry->lock, NULL, 0) == 0)
            entry->count = 0;
        if (status != SNECK_OK)
            keep_failure(rlock, entry->lock);
        retired = retire(rlock, entry);
    }
    leave_rlock(rlock);
    free_entry(retired);
}

void sneck_rlock_acquire_end(sneck_rlock *rlock, uint64_t owner, int status)
{
    end_call(rlock, owner, status, true);
}

int sneck_rlock_acquire(sneck_rlock *rlock, uint64_t owner, int64_t wait_ms)
{
    sneck_lock *lock;
    int status = sneck_rlock_acquire_begin(&lock, rlock, owner);
    if (status != SNECK_PENDING)
        return status;
    status = sneck_lock_acquire(lock, wait_ms);
    sneck_rlock_acquire_end(rlock, owner, status);
    return status;
}

/* ------------------------------------------------------------------- releasing */

/* One of several. */
static int count_down(sneck_rlock *rlock, struct entry *entry)
{
    entry->count--;
    if (sneck_lock_remaining_ms(entry->lock) > 0)
        return SNECK_OK;
    return refuse_rlock(rlock, SNECK_NOT_OWNER, "lost before its release");
}

int sneck_rlock_release_begin(sneck_lock **out, sneck_rlock *rlock, uint64_t owner)
{
    int status = SNECK_PENDING;
    enter_rlock(rlock);
    struct entry *entry = find_entry(rlock, owner);
    if (entry && entry->count > 1) {
        status = count_down(rlock, entry);
    } else if (!entry || (entry->count == 0 && sneck_lock_token(entry->lock, NULL, 0) == 0)) {
        status = refuse_rlock(rlock, SNECK_NOT_OWNER, "not held by this owner: it was not"
                              " acquired, or released already");
    } else {
        entry->busy++;
        *out = entry->lock;
    }
    leave_rlock(rlock);
    return status;
}

void sneck_rlock_release_end(sneck_rlock *rlock, uint64_t owner, int status)
{
    end_call(rlock, owner, status, false);
}

int sneck_rlock_release(sneck_rlock *rlock, uint64_t owner)
{
    sneck_lock *lock;
    int status = sneck_rlock_release_begin(&lock, rlock, owner);
    if (status != SNECK_PENDING)
        return status;
    status = sneck_lock_release(lock);
    sneck_rlock_release_end(rlock, owner, status);
    return status;
}

/* --------------------------------------------------------------------- reading */

size_t sneck_rlock_count(sneck_rlock *rlock, uint64_t owner)
{
    enter_rlock(rlock);
    struct entry *entry = find_entry(rlock, owner);
    size_t count = entry ? entry->count : 0;
    leave_rlock(rlock);
    return count;
}

sneck_lock *sneck_rlock_lock(sneck_rlock *rlock, uint64_t owner)
{
    enter_rlock(rlock);
    struct entry *entry = find_entry(rlock, owner);
    leave_rlock(rlock);
    return entry ? entry->lock : NULL;
}

const char *sneck_rlock_error(const sneck_rlock *rlock)
{
    return rlock->error;
}

const char *sneck_rlock_server_code(const sneck_rlock *rlock)
{
    return rlock->server_code;
}
