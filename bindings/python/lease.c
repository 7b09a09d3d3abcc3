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

int core_lock_renew(const core_lock *self, bool on, char error[SNECK_ERROR_SIZE])
{
    sneck_lock *lock = core_lock_mine(self);
    int status = sneck_lock_renew(lock, on);

    if (status != SNECK_OK)
        PyOS_snprintf(error, SNECK_ERROR_SIZE, "%s", sneck_lock_error(lock));
    return status;
}

PyObject *core_lock_keep_alive(PyObject *object, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames)
{
    static const char *const names[] = { "on" };
    const core_lock *self = (core_lock *)object;
    char error[SNECK_ERROR_SIZE];
    PyObject *on = Py_True;
    int truth, status;

    if (core_bind("keep_alive", names, 1, args, nargs, kwnames, &on) < 0)
        return NULL;
    truth = PyObject_IsTrue(on);
    if (truth < 0)
        return NULL;
    status = core_lock_renew(self, truth > 0, error);
    return status == SNECK_OK ? Py_NewRef(Py_None) : core_raise(self->state, status, error, "");
}
