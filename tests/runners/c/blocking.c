/* blocking.c - runs calls by the blocking functions, each in a thread of its own.
 *
 * Invariant: a call belongs to its thread from start until wait() says that it has
 * ended. The blocking functions tell a server's code word in the message only, so
 * it is read from there, as a user of theirs would.
 */
#include "call.h"
#include "latch.h"
#include "outcome.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct worker {
    pthread_t thread;
    struct latch ended;
    struct call *call;
};

/* The word of capitals that follows a ": " in a message. */
static void find_server_code(char *out, size_t size, const char *message)
{
    for (const char *at = message; (at = strstr(at, ": ")) != NULL;) {
        at += 2;
        size_t len = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (len > 1 && len < size && (at[len] == ' ' || at[len] == '\0')) {
            memcpy(out, at, len);
            out[len] = '\0';
            return;
        }
    }
}

static int run_execute(struct call *call)
{
    sneck_reply *reply = NULL;
    struct argv argv = argv_of(&call->command);
    int status = sneck_execute(&reply, call->client, argv.count, argv.at, argv.len);
    argv_clear(&argv);
    call_take_reply(call, reply);
    return status;
}

static int run_waiters(struct call *call)
{
    sneck_waiter *list = NULL;
    int status = sneck_lock_waiters(&list, &call->waiter_count, call->lock);
    if (status == SNECK_OK)
        outcome_labels(&call->reply, list, call->waiter_count);
    sneck_waiters_free(list);
    return status;
}

static int run_owners(const struct call *call)
{
    if (call->kind == CALL_RELEASE)
        return sneck_rlock_release(call->rlock, call->owner);
    return sneck_rlock_acquire(call->rlock, call->owner, call->ms);
}

static int run_function(struct call *call)
{
    if (call->rlock)
        return run_owners(call);
    switch (call->kind) {
    case CALL_ACQUIRE:
        return sneck_lock_acquire(call->lock, call->ms);
    case CALL_RELEASE:
        return sneck_lock_release(call->lock);
    case CALL_EXTEND:
        return sneck_lock_extend(call->lock, call->ms);
    case CALL_HOLDER:
        return sneck_lock_holder(&call->holder, call->lock);
    case CALL_WAITERS:
        return run_waiters(call);
    case CALL_FORCE_RELEASE:
        return sneck_lock_force_release(&call->was_held, call->lock);
    case CALL_UPDATE:
        return run_update(call);
    case CALL_COMPARE:
        return run_compare(call);
    case CALL_TRY_LOCK:
    case CALL_RELEASE_LOCK:
        return run_try_lock(call);
    default:
        return run_execute(call);
    }
}

static void *run(void *data)
{
    struct worker *worker = data;
    struct call *call = worker->call;
    call->status = run_function(call);
    latch_set(&worker->ended);
    return NULL;
}

static void finish(struct call *call)
{
    if (call->kind == CALL_UPDATE || call->kind == CALL_COMPARE)
        return; /* it has its own message and code word */
    bool has_message = call->kind == CALL_TRY_LOCK || call->kind == CALL_RELEASE_LOCK;
    const char *message = has_message  ? call->error
                          : call->rlock  ? sneck_rlock_error(call->rlock)
                          : call->lock ? sneck_lock_error(call->lock)
                                       : sneck_client_error(call->client);
    if (!has_message)
        snprintf(call->error, sizeof call->error, "%s", call->status ? message : "");
    if (call->status == SNECK_SERVER)
        find_server_code(call->server_code, sizeof call->server_code, message);
}

static void start(struct call *call)
{
    if (call->kind >= CALL_BEGIN) {
        session_start(call);
        return;
    }
    struct worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        abort();
    worker->call = call;
    call->under_way = worker;
    latch_init(&worker->ended);
    if (pthread_create(&worker->thread, NULL, run, worker) != 0)
        abort();
}

static bool wait_call(struct call *call, int64_t ms)
{
    struct worker *worker = call->under_way;
    if (call->kind >= CALL_BEGIN)
        return session_wait(call, ms);
    if (!latch_wait(&worker->ended, ms))
        return false;
    pthread_join(worker->thread, NULL);
    latch_destroy(&worker->ended);
    free(worker);
    call->under_way = NULL;
    finish(call);
    return true;
}

static void open_link(sneck_link **link, sneck_client *client)
{
    (void)client;
    *link = NULL;
}

static void close_link(sneck_link *link)
{
    (void)link;
}

const struct driver blocking_driver = {open_link, close_link, start, wait_call};
