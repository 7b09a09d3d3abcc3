/* try_lock.c - the lock that is a key and a value of the caller's, kept by no object:
 * Client._try_lock() and Client._release_lock(), and the same as ops on a Link. */
#include "core.h"

#include <sneck_legacy.h>

typedef struct core_value_lock {
    const char *key, *value; /* borrowed from the arguments */
    size_t key_len, value_len;
    int64_t expire_ms, timeout_ms;
} core_value_lock;

static int read_value_lock(core_value_lock *out, PyObject *const *args)
{
    if (core_bytes_arg(args[0], "the key", &out->key, &out->key_len) < 0)
        return -1;
    return core_bytes_arg(args[1], "the value", &out->value, &out->value_len);
}

/* The arguments of try_lock(); None as the timeout: no limit. */
static int read_try(core_value_lock *out, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 4) {
        PyErr_SetString(PyExc_TypeError, "try_lock() takes 4 arguments");
        return -1;
    }
    if (read_value_lock(out, args) < 0 ||
        core_ms_arg(args[2], "expire_ms", &out->expire_ms) < 0)
        return -1;
    out->timeout_ms = SNECK_FOREVER;
    return args[3] == Py_None ? 0 : core_ms_arg(args[3], "timeout_ms", &out->timeout_ms);
}

static int read_release(core_value_lock *out, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs == 2)
        return read_value_lock(out, args);
    PyErr_SetString(PyExc_TypeError, "release_lock() takes 2 arguments");
    return -1;
}

static int start_try(sneck_op **out, const core_client *client, sneck_link *link,
                     const core_value_lock *v)
{
    return sneck_try_lock_start(out, client->client, link, v->key, v->key_len, v->value,
                                v->value_len, v->expire_ms, v->timeout_ms);
}

static int start_release(sneck_op **out, const core_client *client, sneck_link *link,
                         const core_value_lock *v)
{
    return sneck_release_lock_start(out, client->client, link, v->key, v->key_len, v->value,
                                    v->value_len);
}

/* ----------------------------------------------------------------- blocking */

typedef int start_function(sneck_op **out, const core_client *client, sneck_link *link,
                           const core_value_lock *v);

/* True; False where another has the lock; or an exception. */
static PyObject *run(const core_client *self, const core_value_lock *v, start_function *start)
{
    PyObject *result = NULL;
    core_call call;

    core_call_begin(&call);
    call.status = start(&call.op, self, NULL, v);
    core_call_wait(&call);
    if (call.status == SNECK_OK)
        result = Py_NewRef(Py_True);
    else if (call.status == SNECK_BUSY || call.status == SNECK_TIMEOUT ||
             call.status == SNECK_NOT_OWNER)
        result = Py_NewRef(Py_False);
    else
        core_call_raise(self->state, &call);
    core_call_end(&call);
    return result;
}

PyObject *core_client_try_lock(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    core_value_lock v;

    return read_try(&v, args, nargs) < 0 ? NULL : run((core_client *)self, &v, start_try);
}

PyObject *core_client_release_lock(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    core_value_lock v;

    return read_release(&v, args, nargs) < 0 ? NULL
                                             : run((core_client *)self, &v, start_release);
}

/* ---------------------------------------------------------------------- ops */

static PyObject *begin(core_client *client, sneck_link *link, const core_value_lock *v,
                       start_function *start)
{
    core_op *op = (core_op *)core_op_new(client->state, CORE_OP_PLAIN, (PyObject *)client);

    return op ? core_op_started((PyObject *)op, start(&op->op, client, link, v)) : NULL;
}

PyObject *core_begin_try_lock(core_client *client, sneck_link *link, PyObject *const *args,
                              Py_ssize_t nargs)
{
    core_value_lock v;

    return read_try(&v, args, nargs) < 0 ? NULL : begin(client, link, &v, start_try);
}

PyObject *core_begin_release_lock(core_client *client, sneck_link *link, PyObject *const *args,
                                  Py_ssize_t nargs)
{
    core_value_lock v;

    return read_release(&v, args, nargs) < 0 ? NULL : begin(client, link, &v, start_release);
}
