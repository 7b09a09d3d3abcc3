/* client.c - the type `_core.Client`: an owned sneck_client.
 *
 * Instances are made by _core.connect() only, so `client` is never NULL. They
 * hold no Python objects, so no cycle can go through them. To close one waits for its
 * renewal thread, which may need the GIL for what it is doing: it is let go of. */
#include "core.h"

PyObject *core_alloc(PyObject *cls, PyTypeObject *base)
{
    if (!PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, base)) {
        PyErr_Format(PyExc_TypeError, "%R does not derive from %R", cls, base);
        return NULL;
    }
    return PyType_GenericAlloc((PyTypeObject *)cls, 0);
}

void core_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = __extension__(freefunc) PyType_GetSlot(type, Py_tp_free);

    release(self);
    Py_DECREF(type);
}

static int connect_options(PyObject *const *args, const char **url,
                           sneck_client_options *options)
{
    const char *prefix;

    if (core_text_arg(args[0], "url", url) < 0 ||
        core_seconds_arg(args[1], "timeout", false, &options->io_timeout_ms) < 0 ||
        core_text_arg(args[3], "client_name", &options->client_name) < 0 ||
        core_text_arg(args[5], "label", &options->label) < 0)
        return -1;
    if (args[2] == Py_None)
        options->connect_timeout_ms = options->io_timeout_ms;
    else if (core_seconds_arg(args[2], "connect_timeout", false,
                              &options->connect_timeout_ms) < 0)
        return -1;
    if (args[4] == Py_None)
        return 0;
    if (core_bytes_arg(args[4], "prefix", &prefix, &options->key_prefix_len) < 0)
        return -1;
    options->key_prefix = prefix;
    return 0;
}

PyObject *core_connect(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    const core_state *state = PyModule_GetState(module);
    sneck_client_options options = SNECK_CLIENT_OPTIONS;
    char error[SNECK_ERROR_SIZE];
    const char *url;
    core_client *self;
    int status;

    if (nargs != 7)
        return PyErr_Format(PyExc_TypeError, "connect() takes 7 arguments");
    if (connect_options(args + 1, &url, &options) < 0)
        return NULL;
    self = (core_client *)core_alloc(args[0], state->client_type);
    if (!self)
        return NULL;
    self->state = state;
    status = sneck_client_new(&self->client, url, &options, error);
    if (status != SNECK_OK) {
        Py_DECREF(self);
        return core_raise(state, status, error, "");
    }
    return (PyObject *)self;
}

static void client_dealloc(PyObject *self)
{
    PyThreadState *thread = PyEval_SaveThread();

    sneck_client_free(((core_client *)self)->client);
    PyEval_RestoreThread(thread);
    core_dealloc(self);
}

static PyObject *client_close(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    Py_BEGIN_ALLOW_THREADS
    sneck_client_close(((core_client *)self)->client);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------- stats */

static const char *name_of(sneck_wakeups wakeups)
{
    switch (wakeups) {
    case SNECK_WAKEUPS_UNTRIED:
        return "untried";
    case SNECK_WAKEUPS_USED:
        return "used";
    case SNECK_WAKEUPS_DENIED:
        return "denied";
    }
    return "";
}

static PyObject *client_stats(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    sneck_stats stats;

    sneck_client_stats(&stats, ((core_client *)self)->client);
    return Py_BuildValue("KKKKdKKs", (unsigned long long)stats.acquisitions,
                         (unsigned long long)stats.contended,
                         (unsigned long long)stats.handoffs,
                         (unsigned long long)stats.polls, (double)stats.wait_ms / 1000.0,
                         (unsigned long long)stats.losses,
                         (unsigned long long)stats.unknown, name_of(stats.wakeups));
}

/* -------------------------------------------------------------------- type */

static PyMethodDef methods[] = {
    { "close", client_close, METH_NOARGS,
      PyDoc_STR("close($self, /)\n--\n\n"
                "Close the connections, and end the renewal of the client's locks.\n\n"
                "Later calls on the client and its locks raise ValueError. "
                "Calls under way\nin other threads end as they would have. Waits for "
                "an on_lost that is running,\nunless called from it.") },
    { "execute", CORE_METHOD(core_client_execute), METH_FASTCALL,
      PyDoc_STR("execute($self, /, *args)\n--\n\n"
                "Send one command and give its reply.\n\n"
                "Arguments are str, bytes, int or float. A reply is None, int, "
                "bytes or a list;\nan error inside of a list is a ServerError "
                "in its place. Raises ServerError,\nOutcomeUnknown when the "
                "reply was lost, ConnectionError, ProtocolError, and\n"
                "ValueError for commands that would change the connection.") },
    { "_stats", client_stats, METH_NOARGS,
      PyDoc_STR("_stats($self, /)\n--\n\n"
                "Give the fields of Stats. Asks nobody.") },
    { "_lock", CORE_METHOD(core_client_lock), METH_FASTCALL,
      PyDoc_STR("_lock($self, cls, name, ttl, wait, label, fair, poll, renew, max_hold, "
                "fence,\n      listens, /)\n--\n\n"
                "Make a lock of the class `cls`; nothing is sent.") },
    { "_rlock", CORE_METHOD(core_client_rlock), METH_FASTCALL,
      PyDoc_STR("_rlock($self, cls, name, ttl, wait, label, fair, poll, renew, max_hold, "
                "fence,\n       listens, /)\n--\n\n"
                "Make a re-entrant lock of the class `cls`; nothing is sent.") },
    { "_adopt", CORE_METHOD(core_client_adopt), METH_FASTCALL,
      PyDoc_STR("_adopt($self, cls, name, token, ttl, wait, label, fair, poll, renew, "
                "max_hold,\n       fence, listens, /)\n--\n\n"
                "Make a lock of the class `cls` that owns `token`.") },
    { "_try_lock", CORE_METHOD(core_client_try_lock), METH_FASTCALL,
      PyDoc_STR("_try_lock($self, key, value, expire_ms, timeout_ms, /)\n--\n\n"
                "Take a lock by a value of the caller's, and tell whether it was free.") },
    { "_release_lock", CORE_METHOD(core_client_release_lock), METH_FASTCALL,
      PyDoc_STR("_release_lock($self, key, value, /)\n--\n\n"
                "Release a lock if it has this value, and tell whether it had.") },
    { "_transaction", CORE_METHOD(core_client_transaction), METH_FASTCALL,
      PyDoc_STR("_transaction($self, function, keys, attempts, wait, guard, /)\n--\n\n"
                "Run a function of a Transaction until its writes are "
                "committed.") },
    { "_update", CORE_METHOD(core_client_update), METH_FASTCALL,
      PyDoc_STR("_update($self, key, function, ttl, attempts, wait, guard, keep, /)\n"
                "--\n\n"
                "Change a value by a function of it.") },
    { "_compare_and_set", CORE_METHOD(core_client_compare_and_set), METH_FASTCALL,
      PyDoc_STR("_compare_and_set($self, key, expected, new, ttl, /)\n--\n\n"
                "Change a value if it is what was expected, and tell whether it "
                "was.") },
    { "_link", core_client_link, METH_NOARGS,
      PyDoc_STR("_link($self, /)\n--\n\n"
                "Make a connection for an event loop; nothing is sent.") },
    { "_attempts", CORE_METHOD(core_client_attempts), METH_FASTCALL,
      PyDoc_STR("_attempts($self, keys, attempts, wait, guard, /)\n--\n\n"
                "Make a transaction for an event loop; nothing is sent.") },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
    CORE_SLOT(Py_tp_dealloc, client_dealloc),
    { Py_tp_methods, methods },
    { Py_tp_doc, (void *)PyDoc_STR("The connections to one server.") },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "sneck._core.Client",
    .basicsize = sizeof(core_client),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int core_add_client(PyObject *module)
{
    core_state *state = PyModule_GetState(module);

    state->client_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    if (!state->client_type)
        return -1;
    return PyModule_AddType(module, state->client_type);
}
