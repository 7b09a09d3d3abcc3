/* lease.c - what a Lock tells of its lease, and the renewal that keeps it alive. */
#include "core.h"

static sneck_lease lease_of(PyObject *object)
{
    return sneck_lock_lease(core_lock_mine((core_lock *)object));
}

PyObject *core_lock_lost(PyObject *object, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(lease_of(object) == SNECK_LEASE_LOST);
}

static const char *name_of(sneck_lease lease)
{
    switch (lease) {
    case SNECK_LEASE_NONE:
        return "none";
    case SNECK_LEASE_HELD:
        return "held";
    case SNECK_LEASE_UNCERTAIN:
        return "uncertain";
    case SNECK_LEASE_LOST:
        return "lost";
    }
    return "";
}

PyObject *core_lock_lease(PyObject *object, void *Py_UNUSED(closure))
{
    return PyUnicode_InternFromString(name_of(lease_of(object)));
}

PyObject *core_lock_fence(PyObject *object, void *Py_UNUSED(closure))
{
    int64_t fence = sneck_lock_fence(core_lock_mine((core_lock *)object));

    return fence > 0 ? PyLong_FromLongLong(fence) : Py_NewRef(Py_None);
}

PyObject *core_lock_not_renewed(const core_lock *self, int status)
{
    const char *why = status == SNECK_NOT_OWNER
                          ? "not held, so it cannot be renewed; acquire it first"
                      : status == SNECK_INVALID ? "its client is closed; connect again"
                                                : "the system gives no memory or thread to renew it";
    PyObject *message = PyUnicode_FromFormat("lock %R: %s", self->name, why);
    const char *text = message ? PyUnicode_AsUTF8AndSize(message, NULL) : NULL;

    if (text)
        core_raise(self->state, status, text, "");
    Py_XDECREF(message);
    return NULL;
}

PyObject *core_lock_keep_alive(PyObject *object, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames)
{
    static const char *const names[] = { "on" };
    core_lock *self = (core_lock *)object;
    PyObject *on = Py_True;
    int truth, status;

    if (core_bind("keep_alive", names, 1, args, nargs, kwnames, &on) < 0)
        return NULL;
    truth = PyObject_IsTrue(on);
    if (truth < 0)
        return NULL;
    status = sneck_lock_renew(core_lock_mine(self), truth > 0);
    return status == SNECK_OK ? Py_NewRef(Py_None) : core_lock_not_renewed(self, status);
}
