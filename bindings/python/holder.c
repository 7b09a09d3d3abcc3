/* holder.c - what a Lock tells of others: who has it, who waits for it; and taking it
 * away from them. The values that such ops end with, too. */
#include "core.h"

#include <string.h>

static PyObject *decoded(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *holder_fields(const sneck_holder *holder)
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

static PyObject *waiters_list(const sneck_waiter *waiters, size_t count)
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

/* ------------------------------------------------------------ ops that ended */

PyObject *core_op_holder(const sneck_op *op)
{
    sneck_holder holder;

    if (sneck_op_holder(&holder, op) != SNECK_OK || !holder.held)
        Py_RETURN_NONE;
    return holder_fields(&holder);
}

PyObject *core_op_waiters(const sneck_op *op)
{
    const sneck_waiter *waiters = NULL;
    size_t count = 0;

    sneck_op_waiters(&waiters, &count, op);
    return waiters_list(waiters, count);
}

PyObject *core_op_was_held(const sneck_op *op)
{
    bool held = false;

    sneck_op_was_held(&held, op);
    return PyBool_FromLong(held);
}

/* --------------------------------------------------------------- whole calls */

/* Starts an op, waits for it, and gives the value that it ended with. */
static PyObject *ask(PyObject *object,
                     int (*start)(sneck_op **out, sneck_lock *lock, sneck_link *link),
                     PyObject *(*value)(const sneck_op *op))
{
    core_lock *self = (core_lock *)object;
    PyObject *result;
    core_call call;

    core_call_begin(&call);
    call.status = start(&call.op, self->lock, NULL);
    core_call_wait(&call);
    result = call.status == SNECK_OK ? value(call.op) : core_call_raise(self->state, &call);
    core_call_end(&call);
    return result;
}

PyObject *core_lock_holder(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    return ask(object, sneck_lock_holder_start, core_op_holder);
}

PyObject *core_lock_waiters(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    return ask(object, sneck_lock_waiters_start, core_op_waiters);
}

PyObject *core_lock_force_release(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    return ask(object, sneck_lock_force_release_start, core_op_was_held);
}
