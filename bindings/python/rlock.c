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
        else if (call->status == SNECK_OK)
            sneck_lock_set_body(lock, owner, sneck_op_lease_number(call->op));
    }
    PyEval_RestoreThread(call->thread);
}

void core_lock_confirm(core_lock *self, core_call *call)
{
    core_call_begin(call);
    call->status = sneck_lock_extend_start(&call->op, self->lock, NULL, 0);
    core_call_run(call);
    PyEval_RestoreThread(call->thread);
    if (call->status == SNECK_OK)
        sneck_lock_set_body(self->lock, core_lock_owner(self), sneck_op_lease_number(call->op));
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

static void release_lease(core_lock *self, uint64_t number, core_call *call)
{
    core_call_begin(call);
    call->status = sneck_lock_release_lease_start(&call->op, self->lock, NULL, number);
    core_call_wait(call);
}

void core_lock_leave(core_lock *self, core_call *call)
{
    uint64_t number;

    if (core_lock_end_body(self, core_lock_owner(self), &number))
        release_lease(self, number, call);
    else
        core_lock_release(self, call);
}

/* ------------------------------------------------------------------- bodies */

/* Whoever enters one that counts is its owner, whose leases are nobody else's. */

int core_lock_begin_body(core_lock *self, uint64_t owner)
{
    if (self->rlock || sneck_lock_begin_body(self->lock, owner) == SNECK_OK)
        return 0;
    PyErr_NoMemory();
    return -1;
}

bool core_lock_end_body(core_lock *self, uint64_t owner, uint64_t *out)
{
    return !self->rlock && sneck_lock_end_body(out, self->lock, owner);
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

/* --------------------------------------------------- the same, for asyncio */

static int owner_arg(PyObject *value, uint64_t *out)
{
    *out = PyLong_AsUnsignedLongLong(value);
    return PyErr_Occurred() ? -1 : 0;
}

PyObject *core_lock_begin_body_of(PyObject *object, PyObject *value)
{
    uint64_t owner;

    if (owner_arg(value, &owner) < 0 || core_lock_begin_body((core_lock *)object, owner) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *core_lock_set_body_of(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    uint64_t owner, number;

    if (nargs != 2)
        return PyErr_Format(PyExc_TypeError, "_set_body() takes 2 arguments");
    if (owner_arg(args[0], &owner) < 0 || owner_arg(args[1], &number) < 0)
        return NULL;
    sneck_lock_set_body(((core_lock *)object)->lock, owner, number);
    Py_RETURN_NONE;
}

PyObject *core_lock_end_body_of(PyObject *object, PyObject *value)
{
    uint64_t owner, number;

    if (owner_arg(value, &owner) < 0)
        return NULL;
    if (!core_lock_end_body((core_lock *)object, owner, &number))
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(number);
}
