/* rlock.c - a Lock that counts: it belongs to a thread or a task, which may acquire it
 * again.
 *
 * The library keeps a lock for each owner that has the RLock or waits for it. The
 * Lock's own one is never acquired: it answers for owners that have none. A thread is
 * known by the number of its state, which, unlike an ident, is never given again; a task
 * by what the Lock's `owner` says. */
#include "core.h"

static uint64_t told_owner(const core_lock *self)
{
    PyObject *number = PyObject_CallNoArgs(self->owner);
    uint64_t owner = number ? PyLong_AsUnsignedLongLong(number) : 0;

    if (PyErr_Occurred())
        PyErr_WriteUnraisable(self->owner);
    Py_XDECREF(number);
    return owner;
}

uint64_t core_lock_owner(const core_lock *self)
{
    return self->owner ? told_owner(self) : PyThreadState_GetID(PyThreadState_Get());
}

sneck_lock *core_lock_mine(const core_lock *self)
{
    sneck_lock *mine = self->rlock ? sneck_rlock_lock(self->rlock, core_lock_owner(self)) : NULL;

    return mine ? mine : self->lock;
}

bool core_lock_is_outermost(const core_lock *self)
{
    return !self->rlock || sneck_rlock_count(self->rlock, core_lock_owner(self)) <= 1;
}

PyObject *core_lock_outermost(PyObject *object, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(core_lock_is_outermost((core_lock *)object));
}

/* The ends of calls may free a lock, and wait for a listener that wants the GIL. */

void core_lock_acquire(core_lock *self, int64_t wait_ms, core_call *call)
{
    uint64_t owner = core_lock_owner(self);
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
    uint64_t owner = core_lock_owner(self);
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

/* The counting's own message is any owner's. */
PyObject *core_lock_not_held(const core_lock *self)
{
    return PyObject_CallFunction(
        self->state->errors[CORE_NotOwned], "N",
        PyUnicode_FromFormat("lock %R: lost, or not held by this %s; release it as often as "
                             "it was acquired, then acquire it anew",
                             self->name, self->owner ? "task" : "thread"));
}

/* Its counting has no op. */
PyObject *core_lock_raise(const core_lock *self, const core_call *call)
{
    if (call->op || call->status != SNECK_NOT_OWNER)
        return core_call_raise(self->state, call);
    return core_set_error(core_lock_not_held(self));
}
