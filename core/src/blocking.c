/* blocking.c - the calls that wait: start, wait, copy the message, free. */
#include "client.h"
#include "lock.h"
#include "op.h"

/* Waits for a lock's op, and frees it; a failure's message goes to the lock. */
static int finish(sneck_lock *lock, sneck_op *op)
{
    int status = sneck_op_wait(op, NULL, NULL);
    if (status != SNECK_OK)
        sneck__lock_report(lock, sneck_op_error(op), op->server_code);
    sneck_op_free(op);
    return status;
}

static int no_memory(sneck_lock *lock)
{
    sneck__lock_report(lock, "out of memory", "");
    return SNECK_NO_MEMORY;
}

int sneck_lock_acquire(sneck_lock *lock, int64_t wait_ms)
{
    sneck_op *op;
    if (sneck_lock_acquire_start(&op, lock, NULL, wait_ms) != SNECK_OK)
        return no_memory(lock);
    return finish(lock, op);
}

int sneck_lock_release(sneck_lock *lock)
{
    sneck_op *op;
    if (sneck_lock_release_start(&op, lock, NULL) != SNECK_OK)
        return no_memory(lock);
    return finish(lock, op);
}

int sneck_lock_release_lease(sneck_lock *lock, uint64_t number)
{
    sneck_op *op;
    if (sneck_lock_release_lease_start(&op, lock, NULL, number) != SNECK_OK)
        return no_memory(lock);
    return finish(lock, op);
}

int sneck_lock_extend(sneck_lock *lock, int64_t ttl_ms)
{
    sneck_op *op;
    if (sneck_lock_extend_start(&op, lock, NULL, ttl_ms) != SNECK_OK)
        return no_memory(lock);
    return finish(lock, op);
}

int sneck_lock_holder(sneck_holder *out, sneck_lock *lock)
{
    sneck_op *op;
    if (sneck_lock_holder_start(&op, lock, NULL) != SNECK_OK)
        return no_memory(lock);
    if (sneck_op_wait(op, NULL, NULL) == SNECK_OK)
        sneck_op_holder(out, op);
    return finish(lock, op);
}

int sneck_lock_waiters(sneck_waiter **out, size_t *count, sneck_lock *lock)
{
    sneck_op *op;
    if (sneck_lock_waiters_start(&op, lock, NULL) != SNECK_OK)
        return no_memory(lock);
    if (sneck_op_wait(op, NULL, NULL) == SNECK_OK)
        *out = sneck__waiters_take(op, count);
    return finish(lock, op);
}

int sneck_lock_force_release(bool *out, sneck_lock *lock)
{
    sneck_op *op;
    if (sneck_lock_force_release_start(&op, lock, NULL) != SNECK_OK)
        return no_memory(lock);
    if (sneck_op_wait(op, NULL, NULL) == SNECK_OK)
        sneck_op_was_held(out, op);
    return finish(lock, op);
}

int sneck_execute(sneck_reply **out, sneck_client *client, size_t argc,
                  const void *const *argv, const size_t *argv_len)
{
    sneck_op *op;
    int status = sneck_execute_start(&op, client, NULL, argc, argv, argv_len);
    if (status != SNECK_OK) {
        sneck__client_report(client, "out of memory", "");
        return status;
    }
    status = sneck_op_wait(op, NULL, NULL);
    if (status == SNECK_OK)
        *out = sneck__op_take_reply(op);
    else
        sneck__client_report(client, sneck_op_error(op), op->server_code);
    sneck_op_free(op);
    return status;
}
