/* renewal.c - keeps held leases alive, from one thread for each client.
 *
 * The thread has a link of its own, and an extend.lua for each lock when a third of
 * its lease is gone; what is due together leaves in one write. It needs nothing of
 * the program: no signal is delivered to it, and a Python thread that computes
 * without end does not hold it up.
 *
 *              due            answered well
 *   HELD ------------> renewing ---------> HELD, due when a third is gone
 *    ^                    | \-- not ours --> lost: told, and out of the heap
 *    |     pause          v
 *    +---------------- failed, or no answer within a third of the ttl
 *
 * It goes on after failures until the validity deadline has passed: then the lock
 * is lost as well, whatever the server would say.
 *
 * Only one thing that it does can take long: to look up a server's name. Nobody waits for the
 * thread meanwhile, not even who closes the client. Its link has a reference to the client, so
 * the thread finds it whole whenever it comes back, and ends.
 *
 * Who releases takes the lock out of the heap first. A renewal under way at that
 * moment finds the key without its token and does nothing, or comes before the release
 * and is not believed.
 */
#include "renewal.h"

#include "fork.h"
#include "lock_op.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GRAIN_MAX_MS 32     /* what is due within that is renewed together */
#define RETRY_MAX_MS 500

static sneck_client *client_of(struct renewal *r)
{
    return (sneck_client *)((char *)r - offsetof(sneck_client, renewal));
}

/* ------------------------------------------------------------------ the heap */

static sneck_lock *lock_of(struct heap_item *item)
{
    return (sneck_lock *)((char *)item - offsetof(sneck_lock, renewal.item));
}

/* Takes the lock out of the heap; the heap's reference is the caller's now. */
static void take_out(struct renewal *r, sneck_lock *lock)
{
    sneck__heap_take(&r->heap, &lock->renewal.item);
    lock->renewal.op = NULL;
}

static void drop_from_heap(struct renewal *r, sneck_lock *lock)
{
    take_out(r, lock);
    sneck__lock_drop(lock);
}

static void set_due(struct renewal *r, sneck_lock *lock, int64_t due_ms)
{
    sneck__heap_put(&r->heap, &lock->renewal.item, due_ms);
}

/* -------------------------------------------------------------------- the times */

static int64_t third(const sneck_lock *lock)
{
    return sneck__most_ms(lock->ttl_ms / 3, 1);
}

/* When a third of the lease is gone, rounded so that others are due then as well. */
static int64_t renewal_due_ms(const sneck_lock *lock, int64_t deadline_ms)
{
    int64_t due = deadline_ms - 2 * third(lock), grain = 1;
    while (2 * grain <= GRAIN_MAX_MS && 2 * grain <= lock->ttl_ms / 64)
        grain *= 2;
    return due - due % grain;
}

static int64_t retry_due_ms(const sneck_lock *lock, int64_t now)
{
    int64_t pause = lock->ttl_ms / 20;
    return now + sneck__least_ms(sneck__most_ms(pause, 1), RETRY_MAX_MS);
}

/* ---------------------------------------------------------------- after a fork */

static void free_own_link(sneck_link *link)
{
    for (sneck_op *op; (op = sneck__link_any_op(link));)
        sneck_op_free(op);
    sneck_link_free(link); /* with it, maybe, the client */
}

/* In a child there is no such thread, and the locks in the heap are the parent's.
 * The mutex was held while the process forked, and is now, so the heap is whole; the
 * link is so only if the thread was asleep. */
static void leave_to_parent(struct renewal *r)
{
    pthread_cond_init(&r->told_over, NULL);
    r->fork_count = sneck__fork_count();
    r->running = false;
    r->told = NULL;
    r->wake[0] = r->wake[1] = -1; /* closed in this child already */
    while (r->heap.count > 0)
        drop_from_heap(r, lock_of(r->heap.items[r->heap.count - 1]));
    sneck_link *link = r->asleep ? r->link : NULL;
    r->asleep = r->looking = false;
    r->link = NULL;
    if (link)
        free_own_link(link);
}

/* Takes the mutex. */
static void enter_renewal(struct renewal *r)
{
    pthread_mutex_lock(&r->mutex);
    if (r->fork_count != sneck__fork_count())
        leave_to_parent(r);
}

static void leave_renewal(struct renewal *r)
{
    pthread_mutex_unlock(&r->mutex);
}

/* --------------------------------------------------------------------- losses */

static bool is_own_thread(const struct renewal *r)
{
    return r->running && pthread_equal(pthread_self(), r->thread);
}

/* Takes a lost lock out and calls back. The mutex is held, but not meanwhile. An answer
 * to its last renewal would come too late to be told. */
static void tell_lost(struct renewal *r, sneck_lock *lock)
{
    if (lock->renewal.op)
        sneck_op_cancel(lock->renewal.op);
    take_out(r, lock);
    if (lock->on_lost) {
        r->told = lock;
        leave_renewal(r);
        lock->on_lost(lock, lock->on_lost_data);
        enter_renewal(r);
        r->told = NULL;
        pthread_cond_broadcast(&r->told_over);
    }
    leave_renewal(r);
    sneck__lock_drop(lock);
    enter_renewal(r);
}

/* --------------------------------------------------------------- what is due */

static void renew(struct renewal *r, sneck_lock *lock, const struct lock_lease *lease,
                  int64_t now)
{
    sneck_op *op;
    if (sneck_lock_extend_start(&op, lock, r->link, 0) != SNECK_OK) {
        set_due(r, lock, sneck__least_ms(lease->deadline_ms, retry_due_ms(lock, now)));
        return;
    }
    lock->renewal.op = op;
    set_due(r, lock, sneck__least_ms(lease->deadline_ms, now + third(lock)));
}

/* Does what is due about one lock. True: the link is to be stepped. */
static bool act(struct renewal *r, sneck_lock *lock, int64_t now)
{
    struct lock_lease lease = sneck__lock_lease(lock);
    int64_t left = lease.deadline_ms - now;
    if (!lease.owned && !lease.lost) {
        drop_from_heap(r, lock);
    } else if (lease.lost || left <= 0) {
        tell_lost(r, lock);
    } else if (lock->renewal.op) {
        set_due(r, lock, sneck__least_ms(lease.deadline_ms, now + third(lock)));
        sneck__link_fail(r->link, "no answer to a renewal in time");
        return true;
    } else if (now >= lock->renewal.hold_end_ms) {
        set_due(r, lock, lease.deadline_ms);
    } else if (lock->renewal.paused && left > third(lock)) {
        set_due(r, lock, lease.deadline_ms - third(lock));
    } else {
        renew(r, lock, &lease, now);
        return true;
    }
    return false; /* the lock may be gone */
}

static bool is_due(const struct renewal *r, int64_t now)
{
    return !r->stopping && sneck__heap_due_ms(&r->heap) <= now;
}

/* True: the link is to be stepped. */
static bool do_due(struct renewal *r)
{
    bool queued = false;
    enter_renewal(r);
    for (int64_t now; is_due(r, now = sneck__now_ms());)
        queued = act(r, lock_of(r->heap.items[0]), now) || queued;
    leave_renewal(r);
    return queued;
}

/* A renewal has ended. */
static void finish_renewal(struct renewal *r, sneck_op *op)
{
    sneck_lock *lock = ((struct lock_op *)op)->lock;
    enter_renewal(r);
    if (lock->renewal.item.place && lock->renewal.op == op) {
        struct lock_lease lease = sneck__lock_lease(lock);
        int64_t now = sneck__now_ms();
        lock->renewal.op = NULL;
        if (op->status == SNECK_OK)
            set_due(r, lock, renewal_due_ms(lock, lease.deadline_ms));
        else if (op->status == SNECK_NOT_OWNER)
            set_due(r, lock, now); /* lost, or released meanwhile */
        else
            set_due(r, lock, sneck__least_ms(lease.deadline_ms, retry_due_ms(lock, now)));
        sneck__lock_note_renewal(lock, op->status == SNECK_OK);
    }
    leave_renewal(r);
    sneck_op_free(op);
}

/* ------------------------------------------------------------------ the thread */

/* False: stop. */
static bool step(struct renewal *r, struct readable readable)
{
    enter_renewal(r);
    bool goes_on = !r->stopping;
    r->looking = goes_on && sneck__client_has_name(client_of(r));
    leave_renewal(r);
    if (!goes_on)
        return false;
    sneck__link_step(r->link, readable);
    enter_renewal(r);
    r->looking = false;
    leave_renewal(r);
    return true;
}

/* False: stop. */
static bool fall_asleep(struct renewal *r, int64_t *timeout_ms)
{
    *timeout_ms = sneck__link_timeout_ms(r->link);
    enter_renewal(r);
    bool stopping = r->stopping;
    int64_t due_ms = sneck__heap_due_ms(&r->heap);
    r->asleep = !stopping;
    r->sleeps_until_ms = due_ms;
    bool errands = atomic_load(&r->link->has_errands); /* from now on their bringer wakes us */
    leave_renewal(r);
    if (errands)
        *timeout_ms = 0;
    if (!errands && due_ms != NEVER_MS) {
        int64_t left = sneck__most_ms(due_ms - sneck__now_ms(), 0);
        if (*timeout_ms < 0 || left < *timeout_ms)
            *timeout_ms = sneck__least_ms(left, 60000);
    }
    return !stopping;
}

static void wake_up(struct renewal *r)
{
    char bytes[64];
    enter_renewal(r);
    r->asleep = false;
    leave_renewal(r);
    while (read(r->wake[0], bytes, sizeof bytes) > 0)
        ;
}

static void drop_all(struct renewal *r)
{
    enter_renewal(r);
    r->running = false;
    while (r->heap.count > 0) {
        sneck_lock *lock = lock_of(r->heap.items[r->heap.count - 1]);
        take_out(r, lock);
        leave_renewal(r);
        sneck__lock_drop(lock);
        enter_renewal(r);
    }
    leave_renewal(r);
}

static void *run_renewal(void *data)
{
    struct renewal *r = data;
    sneck_link *link = r->link;
    unsigned fork_count = sneck__fork_count();
    struct readable readable = {0, 0};
    int64_t timeout_ms;
    while (step(r, readable)) {
        readable = (struct readable){0, 0};
        for (sneck_op *op; (op = sneck_link_ended(link));)
            finish_renewal(r, op);
        bool queued = do_due(r);
        if (fork_count != sneck__fork_count()) {
            free_own_link(link); /* on_lost forked, and came back in the child */
            return NULL;
        }
        if (queued)
            continue;
        if (!fall_asleep(r, &timeout_ms))
            break;
        sneck__wait(link, r->wake[0], timeout_ms, &readable);
        wake_up(r);
    }
    drop_all(r);
    sneck__link_run_errands(link);
    sneck__link_flush_all(link);
    free_own_link(link);
    return NULL; /* the client may be gone */
}

static void wake_thread(struct renewal *r, int64_t due_ms)
{
    if (due_ms >= r->sleeps_until_ms)
        return;
    r->sleeps_until_ms = due_ms;
    while (write(r->wake[1], "", 1) < 0 && errno == EINTR)
        ;
}

/* ------------------------------------------------------- the thread's beginning, end */

/* 0, or why not. */
static int open_pipe(int ends[2])
{
    if (pipe(ends) != 0)
        return errno;
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
        sneck__fork_note(ends[i]);
    }
    return 0;
}

static void close_pipe(int ends[2])
{
    for (int i = 0; i < 2; i++) {
        sneck__fork_forget(ends[i]);
        close(ends[i]);
        ends[i] = -1;
    }
}

/* The new thread takes none of the program's signals. What a fault in on_lost raises
 * is not one of those. 0, or why there is none. */
static int create_thread(struct renewal *r)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t masked, before;
    sigfillset(&masked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&masked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &masked, &before);
    int error = pthread_create(&r->thread, NULL, run_renewal, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static int refused(struct renewal *r, const char *what, int error)
{
    sneck_link_free(r->link);
    r->link = NULL;
    r->lacks = what;
    r->error = error;
    return error == EMFILE || error == ENFILE ? SNECK_CONNECTION : SNECK_NO_MEMORY;
}

/* The mutex is held, so the thread begins to look when everything is there. */
static int begin_thread(struct renewal *r)
{
    r->lacks = NULL;
    int status = sneck_link_new(&r->link, client_of(r));
    if (status != SNECK_OK)
        return status;
    int error = open_pipe(r->wake);
    if (error)
        return refused(r, "pipe", error);
    r->sleeps_until_ms = 0;
    r->asleep = r->looking = false;
    error = create_thread(r);
    if (error) {
        close_pipe(r->wake);
        return refused(r, "thread", error);
    }
    r->running = true;
    return SNECK_OK;
}

/* OK: there is a thread. The mutex is held. */
static int make_run(struct renewal *r)
{
    if (r->stopping)
        return SNECK_INVALID;
    return r->running ? SNECK_OK : begin_thread(r);
}

int sneck__renewal_start(sneck_client *client)
{
    struct renewal *r = &client->renewal;
    enter_renewal(r);
    int status = make_run(r);
    leave_renewal(r);
    return status;
}

void sneck__renewal_stop(sneck_client *client)
{
    struct renewal *r = &client->renewal;
    enter_renewal(r);
    bool ends = r->running && !r->stopping;
    bool own = is_own_thread(r);
    bool alone = own || r->looking; /* it comes to its end by itself */
    r->stopping = true;
    if (ends)
        wake_thread(r, INT64_MIN);
    while (r->told && !own) /* another one may be joining the thread */
        pthread_cond_wait(&r->told_over, &r->mutex);
    leave_renewal(r);
    if (ends && alone)
        pthread_detach(r->thread);
    else if (ends)
        pthread_join(r->thread, NULL);
}

void sneck__renewal_init(struct renewal *r)
{
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->told_over, NULL);
    r->fork_count = sneck__fork_count();
    r->wake[0] = r->wake[1] = -1;
    sneck__fork_hold(&r->hold, &r->mutex);
}

void sneck__renewal_clear(struct renewal *r)
{
    sneck__fork_let_go(&r->hold);
    if (r->wake[0] >= 0)
        close_pipe(r->wake);
    free(r->heap.items);
    pthread_cond_destroy(&r->told_over);
    pthread_mutex_destroy(&r->mutex);
}

/* ------------------------------------------------------------ what locks call */

static struct renewal *renewal_of(sneck_lock *lock)
{
    return &lock->client->renewal;
}

/* Takes the mutex; in a child the lock's place was in the parent's heap. */
static struct renewal *enter_for(sneck_lock *lock)
{
    struct renewal *r = renewal_of(lock);
    enter_renewal(r);
    if (lock->renewal.fork_count != r->fork_count) {
        lock->renewal.fork_count = r->fork_count;
        lock->renewal.op = NULL;
        lock->renewal.paused = 0;
    }
    return r;
}

int sneck__renewal_add(sneck_lock *lock)
{
    struct lock_lease lease = sneck__lock_lease(lock);
    int64_t now = sneck__now_ms();
    atomic_store(&lock->renewal.used, true);
    struct renewal *r = enter_for(lock);
    int status = lock->renewal.freed ? SNECK_INTERRUPTED : make_run(r);
    if (status == SNECK_OK && !sneck__heap_reserve(&r->heap, r->heap.count + 1))
        status = SNECK_NO_MEMORY;
    if (status == SNECK_OK) {
        lock->renewal.op = NULL;
        bool known = lease.deadline_ms != NEVER_MS;
        lock->renewal.hold_end_ms = sneck__end_ms(now, lock->max_hold_ms);
        if (!lock->renewal.item.place)
            sneck__lock_share(lock);
        set_due(r, lock, known ? renewal_due_ms(lock, lease.deadline_ms) : now);
        wake_thread(r, lock->renewal.item.due_ms);
    }
    leave_renewal(r);
    return status;
}

static void remove_from(struct renewal *r, sneck_lock *lock)
{
    bool was_there = lock->renewal.item.place != 0;
    if (was_there)
        take_out(r, lock);
    leave_renewal(r);
    if (was_there)
        sneck__lock_drop(lock);
}

void sneck__renewal_remove(sneck_lock *lock)
{
    if (atomic_load(&lock->renewal.used))
        remove_from(enter_for(lock), lock);
}

void sneck__renewal_end(sneck_lock *lock, uint64_t number)
{
    if (!atomic_load(&lock->renewal.used))
        return;
    struct renewal *r = enter_for(lock);
    if (sneck_lock_lease_number(lock) == number)
        remove_from(r, lock);
    else
        leave_renewal(r);
}

void sneck__renewal_forget(sneck_lock *lock)
{
    if (!lock->renew && !atomic_load(&lock->renewal.used))
        return;
    struct renewal *r = enter_for(lock);
    lock->renewal.freed = true;
    while (r->told == lock && !is_own_thread(r))
        pthread_cond_wait(&r->told_over, &r->mutex);
    remove_from(r, lock);
}

/* The lease has changed. */
static void look_again(struct renewal *r, sneck_lock *lock)
{
    if (!lock->renewal.item.place || lock->renewal.op)
        return;
    struct lock_lease lease = sneck__lock_lease(lock);
    if (!lease.lost && lease.deadline_ms == NEVER_MS)
        return;
    set_due(r, lock, lease.lost ? sneck__now_ms() : renewal_due_ms(lock, lease.deadline_ms));
    wake_thread(r, lock->renewal.item.due_ms);
}

void sneck__renewal_reset(sneck_lock *lock)
{
    if (!atomic_load(&lock->renewal.used))
        return;
    struct renewal *r = enter_for(lock);
    look_again(r, lock);
    leave_renewal(r);
}

void sneck__renewal_wake(sneck_lock *lock)
{
    if (!atomic_load(&lock->renewal.used))
        return;
    struct renewal *r = enter_for(lock);
    if (r->running)
        wake_thread(r, 0);
    leave_renewal(r);
}

void sneck__renewal_pause(sneck_lock *lock, bool paused)
{
    if (!atomic_load(&lock->renewal.used))
        return;
    struct renewal *r = enter_for(lock);
    if (paused)
        lock->renewal.paused++;
    else if (lock->renewal.paused > 0 && --lock->renewal.paused == 0)
        look_again(r, lock);
    leave_renewal(r);
}

void sneck__renewal_tell_lack(sneck_client *client, char out[RENEWAL_WHY_SIZE])
{
    struct renewal *r = &client->renewal;
    enter_renewal(r);
    if (r->lacks)
        snprintf(out, RENEWAL_WHY_SIZE, "the system gives no %s for its renewal: %s", r->lacks,
                 strerror(r->error));
    else
        snprintf(out, RENEWAL_WHY_SIZE, "out of memory for its renewal");
    leave_renewal(r);
}
