/* client.c - the type `_core.Client`: an owned sneck_client, of one server or a quorum.
 *
 * Instances are made by _core.connect() and _core.quorum() only, so `client` is never
 * NULL. They hold no Python objects, so no cycle can go through them. To close one waits
 * for its renewal thread, which may need the GIL for what it is doing: it is let go of. */
#include "core.h"

#include <string.h>

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

/* timeout, connect_timeout, client_name, prefix, label */
#define CLIENT_OPTIONS 5

static int client_options(PyObject *const *args, sneck_client_options *options)
{
    const char *prefix;

    if (core_seconds_arg(args[0], "timeout", false, &options->io_timeout_ms) < 0 ||
        core_text_arg(args[2], "client_name", &options->client_name) < 0 ||
        core_text_arg(args[4], "label", &options->label) < 0)
        return -1;
    if (args[1] == Py_None)
        options->connect_timeout_ms = options->io_timeout_ms;
    else if (core_seconds_arg(args[1], "connect_timeout", false,
                              &options->connect_timeout_ms) < 0)
        return -1;
    if (args[3] == Py_None)
        return 0;
    if (core_bytes_arg(args[3], "prefix", &prefix, &options->key_prefix_len) < 0)
        return -1;
    options->key_prefix = prefix;
    return 0;
}

static int made(const core_client *self, int status, const char *error)
{
    if (status == SNECK_OK)
        return 0;
    core_raise(self->state, status, error, "");
    return -1;
}

static int make_client(core_client *self, PyObject *url, const sneck_client_options *options)
{
    char error[SNECK_ERROR_SIZE];
    const char *text;

    if (core_text_arg(url, "url", &text) < 0)
        return -1;
    return made(self, sneck_client_new(&self->client, text, options, error), error);
}

static int url_args(PyObject *urls, const char **out)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(urls); i++) {
        if (core_text_arg(PyTuple_GetItem(urls, i), "url", &out[i]) < 0)
            return -1;
        if (!out[i]) {
            PyErr_SetString(PyExc_TypeError, "url must be str, not NoneType");
            return -1;
        }
    }
    return 0;
}

static int make_quorum(core_client *self, PyObject *urls, const sneck_client_options *options)
{
    Py_ssize_t count = PyTuple_Size(urls);
    const char **texts = count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof(*texts));
    char error[SNECK_ERROR_SIZE];
    int result = -1;

    if (count < 0)
        return -1;
    if (!texts)
        PyErr_NoMemory();
    else if (url_args(urls, texts) == 0)
        result = made(self, sneck_quorum_new(&self->client, (size_t)count, texts, options,
                                              error), error);
    PyMem_Free(texts);
    return result;
}

typedef int make_function(core_client *self, PyObject *urls,
                          const sneck_client_options *options);

static PyObject *new_client(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                            make_function *make)
{
    const core_state *state = PyModule_GetState(module);
    sneck_client_options options = SNECK_CLIENT_OPTIONS;
    core_client *self;

    if (nargs != 2 + CLIENT_OPTIONS)
        return PyErr_Format(PyExc_TypeError, "connect() takes %d arguments",
                            2 + CLIENT_OPTIONS);
    if (client_options(args + 2, &options) < 0)
        return NULL;
    self = (core_client *)core_alloc(args[0], state->client_type);
    if (!self)
        return NULL;
    self->state = state;
    if (make(self, args[1], &options) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

PyObject *core_connect(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    return new_client(module, args, nargs, make_client);
}

PyObject *core_quorum(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    return new_client(module, args, nargs, make_quorum);
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

PyObject *core_address(const sneck_client *client, size_t server)
{
    const char *address = sneck_client_address(client, server);

    return PyUnicode_DecodeUTF8(address, (Py_ssize_t)strlen(address), "backslashreplace");
}

static PyObject *client_servers(PyObject *self, void *Py_UNUSED(closure))
{
    const sneck_client *client = ((core_client *)self)->client;
    size_t count = sneck_client_servers(client);
    PyObject *servers = PyTuple_New((Py_ssize_t)count);

    for (size_t i = 0; servers && i < count; i++) {
        PyObject *address = core_address(client, i);

        if (!address || PyTuple_SetItem(servers, (Py_ssize_t)i, address) < 0)
            Py_CLEAR(servers);
    }
    return servers;
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
      PyDoc_STR("_lock($self, cls, name, options, /)\n--\n\n"
                "Make a lock of the class `cls`; nothing is sent.") },
    { "_rlock", CORE_METHOD(core_client_rlock), METH_FASTCALL,
      PyDoc_STR("_rlock($self, cls, name, options, owner=None, /)\n--\n\n"
                "Make a re-entrant lock of the class `cls`; nothing is sent. `owner` gives "
                "the\nnumber of who calls, None: it is the thread.") },
    { "_legacy_lock", CORE_METHOD(core_client_legacy_lock), METH_FASTCALL,
      PyDoc_STR("_legacy_lock($self, cls, name, options, milliseconds, /)\n--\n\n"
                "Make a timestamp lock of the class `cls`; nothing is sent.") },
    { "_adopt", CORE_METHOD(core_client_adopt), METH_FASTCALL,
      PyDoc_STR("_adopt($self, cls, name, options, token, /)\n--\n\n"
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

static PyGetSetDef attributes[] = {
    { "servers", client_servers, NULL,
      PyDoc_STR("The addresses of its servers, without what is secret in them."), NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
    CORE_SLOT(Py_tp_dealloc, client_dealloc),
    { Py_tp_methods, methods },
    { Py_tp_getset, attributes },
    { Py_tp_doc, (void *)PyDoc_STR("The connections to one server, or to each of a quorum.") },
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

    return core_add_type(module, &spec, &state->client_type);
}
