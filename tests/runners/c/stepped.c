/* stepped.c - runs calls as ops, on one link for each actor, from one poll loop.
 *
 * Only the part of the API that an event loop would use: start, status, descriptors,
 * timeout, step; what has no ops runs on a thread, as in blocking mode. Invariant:
 * whenever a call is given time, all links are stepped, those of the actors whose
 * turn it is not, too.
 */
#include "call.h"
#include "outcome.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LINKS_MAX 16
#define THREAD_STEP_MS 2     /* between two looks at what runs on a thread */

static sneck_link *links[LINKS_MAX + 1]; /* and one of a transaction */
static size_t link_count;

static void open_link(sneck_link **link, sneck_client *client)
{
    if (link_count == LINKS_MAX || sneck_link_new(link, client) != SNECK_OK)
        abort();
    links[link_count++] = *link;
}

static void close_link(sneck_link *link)
{
    for (size_t i = 0; i < link_count; i++)
        if (links[i] == link)
            links[i] = links[--link_count];
    sneck_link_free(link);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ------------------------------------------------------------------ starting */

static int start_execute(sneck_op **op, struct call *call)
{
    struct argv argv = argv_of(&call->command);
    int rc = sneck_execute_start(op, call->client, call->link, argv.count, argv.at, argv.len);
    argv_clear(&argv);
    return rc;
}

static int start_op(sneck_op **op, struct call *call)
{
    switch (call->kind) {
    case CALL_ACQUIRE:
        return sneck_lock_acquire_start(op, call->lock, call->link, call->ms);
    case CALL_RELEASE:
        return sneck_lock_release_start(op, call->lock, call->link);
    case CALL_EXTEND:
        return sneck_lock_extend_start(op, call->lock, call->link, call->ms);
    case CALL_HOLDER:
        return sneck_lock_holder_start(op, call->lock, call->link);
    case CALL_WAITERS:
        return sneck_lock_waiters_start(op, call->lock, call->link);
    case CALL_FORCE_RELEASE:
        return sneck_lock_force_release_start(op, call->lock, call->link);
    case CALL_TRY_LOCK:
    case CALL_RELEASE_LOCK:
        return start_try_lock(op, call);
    default:
        return start_execute(op, call);
    }
}

/* An owner's call begins and ends around an op on the lock that is told here. False: it
 * has ended already. */
static bool begin_owners(struct call *call)
{
    call->status = call->kind == CALL_ACQUIRE
        ? sneck_rlock_acquire_begin(&call->lock, call->rlock, call->owner)
        : sneck_rlock_release_begin(&call->lock, call->rlock, call->owner);
    return call->status == SNECK_PENDING;
}

static void end_owners(const struct call *call)
{
    if (call->kind == CALL_ACQUIRE)
        sneck_rlock_acquire_end(call->rlock, call->owner, call->status);
    else
        sneck_rlock_release_end(call->rlock, call->owner, call->status);
}

/* These have no ops. */
static bool on_thread(const struct call *call)
{
    return call->kind == CALL_UPDATE || call->kind == CALL_COMPARE;
}

static void start(struct call *call)
{
    sneck_op *op;
    if (on_thread(call)) {
        blocking_driver.start(call);
        return;
    }
    if (call->kind >= CALL_BEGIN) {
        session_steps_start(call);
        return;
    }
    if (call->rlock && !begin_owners(call))
        return;
    if (start_op(&op, call) != SNECK_OK)
        abort();
    call->under_way = op;
}

/* ------------------------------------------------------------------ stepping */

/* The time until the next step is due: the limit's or a link's. */
static int64_t poll_timeout(int64_t limit_ms)
{
    int64_t timeout = limit_ms - now_ms();
    for (size_t i = 0; i < link_count; i++) {
        int64_t ms = sneck_link_timeout_ms(links[i]);
        if (ms >= 0 && ms < timeout)
            timeout = ms;
    }
    return timeout > 0 ? timeout : 0;
}

static void step_all(int64_t limit_ms)
{
    struct pollfd fds[(LINKS_MAX + 1) * SNECK_LINK_FDS];
    size_t n = 0;
    for (size_t i = 0; i < link_count; i++)
        n += sneck_link_fds(links[i], fds + n);
    poll(fds, (nfds_t)n, (int)poll_timeout(limit_ms));
    for (size_t i = 0; i < link_count; i++)
        sneck_link_step(links[i]);
}

/* What an op that ended OK gives; aborts where it does not give it. */
static void take_result(struct call *call, const sneck_op *op)
{
    const sneck_waiter *list;
    int rc = SNECK_OK;
    if (call->kind == CALL_HOLDER)
        rc = sneck_op_holder(&call->holder, op);
    if (call->kind == CALL_FORCE_RELEASE)
        rc = sneck_op_was_held(&call->was_held, op);
    if (call->kind == CALL_WAITERS)
        rc = sneck_op_waiters(&list, &call->waiter_count, op);
    if (rc != SNECK_OK)
        abort();
    if (call->kind == CALL_WAITERS)
        outcome_labels(&call->reply, list, call->waiter_count);
    if (call->kind == CALL_EXECUTE)
        outcome_reply(&call->reply, sneck_op_reply(op));
}

static void finish(struct call *call)
{
    sneck_op *op = call->under_way;
    call->status = sneck_op_status(op);
    snprintf(call->error, sizeof call->error, "%s", sneck_op_error(op));
    snprintf(call->server_code, sizeof call->server_code, "%s", sneck_op_server_code(op));
    if (call->status == SNECK_OK)
        take_result(call, op);
    if (call->rlock)
        end_owners(call);
    sneck_op_free(op);
    call->under_way = NULL;
}

/* A transaction has a link of its own, which is there to be stepped while an op runs. */
static bool wait_for_session(struct call *call, int64_t limit_ms)
{
    while (!session_steps_advance(call)) {
        if (now_ms() >= limit_ms)
            return false;
        links[link_count++] = sneck_op_link(session_steps_op(call));
        step_all(limit_ms);
        link_count--;
    }
    return true;
}

/* The other actors' links are stepped meanwhile. */
static bool wait_for_thread(struct call *call, int64_t limit_ms)
{
    while (!blocking_driver.wait(call, 0)) {
        int64_t now = now_ms();
        if (now >= limit_ms)
            return false;
        step_all(now + THREAD_STEP_MS < limit_ms ? now + THREAD_STEP_MS : limit_ms);
    }
    return true;
}

static bool wait_call(struct call *call, int64_t ms)
{
    int64_t limit_ms = now_ms() + ms;
    if (on_thread(call))
        return wait_for_thread(call, limit_ms);
    if (call->kind >= CALL_BEGIN)
        return wait_for_session(call, limit_ms);
    if (!call->under_way)
        return true;
    while (sneck_op_status(call->under_way) == SNECK_PENDING) {
        if (now_ms() >= limit_ms)
            return false;
        step_all(limit_ms);
    }
    finish(call);
    return true;
}

const struct driver stepped_driver = {open_link, close_link, start, wait_call};
