/* holder.c - what a Lock tells of others: who has it, who waits for it; and taking it
 * away from them. */
#include "core.h"

#include <string.h>

static PyObject *decoded(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *core_holder_fields(const sneck_holder *holder)
{
    size_t len = holder->token_len < sizeof(holder->token) ? holder->token_len
                                                           : sizeof(holder->token);
    PyObject *ttl = holder->ttl_ms < 0 ? Py_NewRef(Py_None) : core_seconds(holder->ttl_ms);
    PyObject *fields[] = {
        PyBytes_FromStringAndSize(holder->token, (Py_ssize_t)len),
        decoded(holder->host),
        PyLong_FromLongLong(holder->pid),
        decoded(holder->label),
        ttl,
        PyBool_FromLong(holder->foreign),
    };
    PyObject *result = NULL;

    if (fields[0] && fields[1] && fields[2] && fields[3] && fields[4])
        result = PyTuple_Pack(6, fields[0], fields[1], fields[2], fields[3], fields[4],
                              fields[5]);
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        Py_XDECREF(fields[i]);
    return result;
}

PyObject *core_lock_holder(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_lock *self = (core_lock *)object;
    PyObject *result = NULL;
    sneck_holder holder;
    core_call call;

    core_call_begin(&call);
    call.status = sneck_lock_holder_start(&call.op, self->lock, NULL);
    core_call_wait(&call);
    if (call.status == SNECK_OK)
        call.status = sneck_op_holder(&holder, call.op);
    if (call.status != SNECK_OK)
        core_call_raise(self->state, &call);
    else
        result = holder.held ? core_holder_fields(&holder) : Py_NewRef(Py_None);
    core_call_end(&call);
    return result;
}

/* --------------------------------------------------------------- the queue */

static PyObject *waiter_fields(const sneck_waiter *waiter)
{
    PyObject *fields[] = {
        decoded(waiter->host),
        PyLong_FromLongLong(waiter->pid),
        decoded(waiter->label),
        core_seconds(waiter->waited_ms),
    };
    PyObject *result = NULL;

    if (fields[0] && fields[1] && fields[2] && fields[3])
        result = PyTuple_Pack(4, fields[0], fields[1], fields[2], fields[3]);
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        Py_XDECREF(fields[i]);
    return result;
}

PyObject *core_waiters_list(const sneck_waiter *waiters, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);

    if (!list)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        PyObject *item = waiter_fields(&waiters[i]);

        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

PyObject *core_lock_waiters(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_lock *self = (core_lock *)object;
    const sneck_waiter *waiters;
    PyObject *result = NULL;
    size_t count;
    core_call call;

    core_call_begin(&call);
    call.status = sneck_lock_waiters_start(&call.op, self->lock, NULL);
    core_call_wait(&call);
    if (call.status == SNECK_OK)
        call.status = sneck_op_waiters(&waiters, &count, call.op);
    if (call.status != SNECK_OK)
        core_call_raise(self->state, &call);
    else
        result = core_waiters_list(waiters, count);
    core_call_end(&call);
    return result;
}

PyObject *core_lock_force_release(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_lock *self = (core_lock *)object;
    PyObject *result = NULL;
    bool was_held;
    core_call call;

    core_call_begin(&call);
    call.status = sneck_lock_force_release_start(&call.op, self->lock, NULL);
    core_call_wait(&call);
    if (call.status == SNECK_OK)
        call.status = sneck_op_was_held(&was_held, call.op);
    if (call.status != SNECK_OK)
        core_call_raise(self->state, &call);
    else
        result = PyBool_FromLong(was_held);
    core_call_end(&call);
    return result;
}
