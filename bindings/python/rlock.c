/* rlock.c - a Lock that counts: it belongs to a thread, which may acquire it again.
 *
 * The library keeps a lock for each thread that has the RLock or waits for it. The
 * Lock's own one is never acquired: it answers for threads that have none. A thread is
 * known by the number of its state, which, unlike an ident, is never given again. */
#include "core.h"

static uint64_t this_thread(void)
{
    return PyThreadState_GetID(PyThreadState_Get());
}

sneck_lock *core_lock_mine(const core_lock *self)
{
    sneck_lock *mine = self->rlock ? sneck_rlock_lock(self->rlock, this_thread()) : NULL;

    return mine ? mine : self->lock;
}

bool core_lock_is_outermost(const core_lock *self)
{
    return !self->rlock || sneck_rlock_count(self->rlock, this_thread()) == 1;
}

/* The ends of calls may free a lock, and wait for a listener that wants the GIL. */

void core_lock_acquire(core_lock *self, int64_t wait_ms, core_call *call)
{
    uint64_t owner = this_thread();
    sneck_lock *lock = self->lock;

    self->adopted = false;
    core_call_begin(call);
    call->status = SNECK_PENDING;
    if (self->rlock)
        call->status = sneck_rlock_acquire_begin(&lock, self->rlock, owner);
    if (call->status == SNECK_PENDING) {
        call->status = sneck_lock_acquire_start(&call->op, lock, NULL, wait_ms);
        core_call_run(call);
        if (self->rlock)
            sneck_rlock_acquire_end(self->rlock, owner, call->status);
    }
    PyEval_RestoreThread(call->thread);
}

void core_lock_release(core_lock *self, core_call *call)
{
    uint64_t owner = this_thread();
    sneck_lock *lock = self->lock;

    core_call_begin(call);
    call->status = SNECK_PENDING;
    if (self->rlock)
        call->status = sneck_rlock_release_begin(&lock, self->rlock, owner);
    if (call->status == SNECK_PENDING) {
        call->status = sneck_lock_release_start(&call->op, lock, NULL);
        core_call_run(call);
        if (self->rlock)
            sneck_rlock_release_end(self->rlock, owner, call->status);
    }
    PyEval_RestoreThread(call->thread);
}

/* Its counting has no op, and its message is any thread's. */
PyObject *core_lock_raise(const core_lock *self, const core_call *call)
{
    if (call->op || call->status != SNECK_NOT_OWNER)
        return core_call_raise(self->state, call);
    return PyErr_Format(self->state->errors[CORE_NotOwned],
                        "lock %R: lost, or not held by this thread; release it as often as "
                        "it was acquired, then acquire it anew",
                        self->name);
}
