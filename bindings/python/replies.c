/* replies.c - the server's replies as Python values. */
#include "core.h"

static PyObject *new_list(const core_state *state, const sneck_reply *reply)
{
    size_t count = sneck_reply_count(reply);
    PyObject *list = PyList_New((Py_ssize_t)count);

    if (!list)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        PyObject *item = core_reply(state, sneck_reply_item(reply, i));

        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *new_nested_list(const core_state *state, const sneck_reply *reply)
{
    PyObject *list;

    if (Py_EnterRecursiveCall(" while converting a nested reply"))
        return NULL;
    list = new_list(state, reply);
    Py_LeaveRecursiveCall();
    return list;
}

PyObject *core_reply(const core_state *state, const sneck_reply *reply)
{
    size_t len = 0;
    const char *bytes = sneck_reply_bytes(reply, &len);

    switch (sneck_reply_kind(reply)) {
    case SNECK_REPLY_NIL:
        Py_RETURN_NONE;
    case SNECK_REPLY_INTEGER:
        return PyLong_FromLongLong(sneck_reply_integer(reply));
    case SNECK_REPLY_BYTES:
        return PyBytes_FromStringAndSize(bytes, (Py_ssize_t)len);
    case SNECK_REPLY_ERROR:
        return core_server_error(state, bytes, len);
    case SNECK_REPLY_ARRAY:
        return new_nested_list(state, reply);
    }
    return PyErr_Format(PyExc_SystemError, "a reply of an unknown kind");
}
