/* errors.c - the exceptions, and the one place that raises them.
 *
 * Which status raises which class stands in core/src/status.def and nowhere
 * else; here stands what the classes are. */
#include "core.h"

#include <string.h>

typedef struct error_row {
    const char *name;
    PyObject **builtin; /* the built-in class that it is, too; may be NULL */
    const char *doc;    /* NULL: it is the built-in class and nothing else */
} error_row;

static const error_row rows[CORE_ERRORS] = {
    [CORE_Error] = { "sneck.Error", &PyExc_Exception,
                     "Something that sneck could not do.\n\n"
                     "`servers` tells for a lock on several servers what "
                     "each of those that failed said,\nby their addresses; "
                     "it is empty otherwise." },
    [CORE_LockTimeout] = { "sneck.LockTimeout", &PyExc_TimeoutError,
                           "The wait ended before the lock was free." },
    [CORE_NotOwned] = { "sneck.NotOwned", NULL,
                        "The lock is not ours, or not any more." },
    [CORE_OutcomeUnknown] = { "sneck.OutcomeUnknown", NULL,
                              "The reply was lost: the server may or may not "
                              "have done it." },
    [CORE_ConnectionError] = { "sneck.ConnectionError", &PyExc_ConnectionError,
                               "The server cannot be reached; nothing was "
                               "done." },
    [CORE_ServerError] = { "sneck.ServerError", NULL,
                           "The server answered with an error.\n\n"
                           "`code` is the server's word for it, such as "
                           "'NOPERM', 'OOM' or 'WRONGTYPE'.\n"
                           "If writes of a transaction failed when they were "
                           "run, `results` holds what each\none gave, these "
                           "errors too, and `index` is the first one's place; "
                           "else both are None." },
    [CORE_ProtocolError] = { "sneck.ProtocolError", NULL,
                             "The server's answer is not understood." },
    [CORE_Interrupted] = { "sneck.Interrupted", &PyExc_InterruptedError,
                           "The call was interrupted before it was done." },
    [CORE_ValueError] = { "ValueError", &PyExc_ValueError, NULL },
    [CORE_MemoryError] = { "MemoryError", &PyExc_MemoryError, NULL },
    [CORE_Conflict] = { "sneck.Conflict", NULL,
                        "Others changed the keys in every attempt; nothing was "
                        "written.\n\n"
                        "`attempts` tells how often the function was run, "
                        "`waited` for how many seconds in\nall, and `keys` "
                        "which keys were watched from the start." },
    [CORE_QuorumImpossible] = { "sneck.QuorumImpossible", NULL,
                                "Fewer servers of a quorum than a majority "
                                "could be used." },
};

static core_error class_of(int status)
{
    switch (status) {
#define SNECK_STATUS(name, value, class, text) \
    case value:                                \
        return CORE_##class;
#include "status.def"
#undef SNECK_STATUS
    default:
        return CORE_Error;
    }
}

static PyObject *bases_of(const core_state *state, core_error error)
{
    PyObject *builtin = rows[error].builtin ? *rows[error].builtin : NULL;

    if (error == CORE_Error)
        return PyTuple_Pack(1, builtin);
    if (!builtin)
        return PyTuple_Pack(1, state->errors[CORE_Error]);
    return PyTuple_Pack(2, state->errors[CORE_Error], builtin);
}

/* The class's own, so nobody may change it. */
static PyObject *no_servers(void)
{
    PyObject *none = PyDict_New();
    PyObject *view = none ? PyDictProxy_New(none) : NULL;

    Py_XDECREF(none);
    return view;
}

static PyObject *attributes_of(core_error error)
{
    switch (error) {
    case CORE_Error:
        return Py_BuildValue("{s:N}", "servers", no_servers());
    case CORE_ServerError:
        return Py_BuildValue("{s:s, s:O, s:O}", "code", "", "index", Py_None, "results",
                             Py_None);
    case CORE_Conflict:
        return Py_BuildValue("{s:i, s:d, s:()}", "attempts", 0, "waited", 0.0, "keys");
    default:
        return PyDict_New();
    }
}

static PyObject *new_class(const core_state *state, core_error error)
{
    PyObject *bases = bases_of(state, error);
    PyObject *attributes = attributes_of(error);
    PyObject *result = NULL;

    if (bases && attributes)
        result = PyErr_NewExceptionWithDoc(rows[error].name, rows[error].doc, bases,
                                           attributes);
    Py_XDECREF(attributes);
    Py_XDECREF(bases);
    return result;
}

int core_add_errors(PyObject *module)
{
    core_state *state = PyModule_GetState(module);

    for (core_error error = 0; error < CORE_ERRORS; error++) {
        if (!rows[error].doc) {
            state->errors[error] = Py_NewRef(*rows[error].builtin);
            continue;
        }
        state->errors[error] = new_class(state, error);
        if (!state->errors[error])
            return -1;
        if (PyModule_AddObjectRef(module, strchr(rows[error].name, '.') + 1,
                                  state->errors[error]) < 0)
            return -1;
    }
    return 0;
}

/* Keys and server texts may hold any bytes, and a message must be printable. */
static PyObject *decode(const char *text, size_t len)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)len, "backslashreplace");
}

static PyObject *new_error(PyObject *class, const char *message, size_t message_len,
                           const char *code, size_t code_len)
{
    PyObject *error = NULL;
    PyObject *word = NULL;
    PyObject *text = decode(message, message_len);

    if (!text)
        goto out;
    error = PyObject_CallFunctionObjArgs(class, text, NULL);
    if (!error || code_len == 0)
        goto out;
    word = decode(code, code_len);
    if (!word || PyObject_SetAttrString(error, "code", word) < 0)
        Py_CLEAR(error);
out:
    Py_XDECREF(word);
    Py_XDECREF(text);
    return error;
}

PyObject *core_new_error(const core_state *state, int status, const char *message,
                         const char *code)
{
    const char *text = *message ? message : sneck_status_text(status);

    return new_error(state->errors[class_of(status)], text, strlen(text), code, strlen(code));
}

PyObject *core_set_error(PyObject *error)
{
    if (error) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

PyObject *core_raise(const core_state *state, int status, const char *message,
                     const char *code)
{
    return core_set_error(core_new_error(state, status, message, code));
}

static int add_server(PyObject *servers, PyObject *key, const char *message)
{
    PyObject *value = decode(message, strlen(message));
    int result = key && value ? PyDict_SetItem(servers, key, value) : -1;

    Py_XDECREF(value);
    Py_XDECREF(key);
    return result;
}

/* What those servers said that have failed, by their addresses. */
static PyObject *servers_of(const sneck_op *op)
{
    const sneck_client *client = sneck_op_client(op);
    size_t count = client ? sneck_client_servers(client) : 0;
    PyObject *servers = PyDict_New();

    for (size_t i = 0; servers && i < count; i++) {
        const char *message = sneck_op_member_error(op, i);

        if (*message && add_server(servers, core_address(client, i), message) < 0)
            Py_CLEAR(servers);
    }
    return servers;
}

PyObject *core_new_op_error(const core_state *state, int status, const sneck_op *op)
{
    PyObject *error = core_new_error(state, status, sneck_op_error(op), sneck_op_server_code(op));
    PyObject *servers;

    if (!error || !PyObject_TypeCheck(error, (PyTypeObject *)state->errors[CORE_Error]))
        return error;
    servers = servers_of(op);
    if (!servers || (PyDict_Size(servers) > 0 &&
                     PyObject_SetAttrString(error, "servers", servers) < 0))
        Py_CLEAR(error);
    Py_XDECREF(servers);
    return error;
}

PyObject *core_server_error(const core_state *state, const char *text, size_t len)
{
    const char *space = memchr(text, ' ', len);
    size_t code_len = space ? (size_t)(space - text) : len;

    return new_error(state->errors[CORE_ServerError], text, len, text, code_len);
}
