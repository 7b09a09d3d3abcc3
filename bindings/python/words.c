/* words.c - the words of a command: str, bytes and numbers as pointers and lengths.
 *
 * The words borrow their bytes from the arguments, or from texts made of numbers,
 * which live until the words are cleared. */
#include "core.h"

int core_words_init(core_words *self, size_t count)
{
    self->count = count;
    self->words = self->few_words;
    self->lengths = self->few_lengths;
    self->texts = self->few_texts;
    if (count > CORE_FEW_WORDS) {
        self->words = PyMem_Calloc(count, sizeof(*self->words));
        self->lengths = PyMem_Calloc(count, sizeof(*self->lengths));
        self->texts = PyMem_Calloc(count, sizeof(*self->texts));
    }
    if (!self->words || !self->lengths || !self->texts) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        self->texts[i] = NULL;
    return 0;
}

void core_words_clear(core_words *self)
{
    for (size_t i = 0; self->texts && i < self->count; i++)
        Py_XDECREF(self->texts[i]);
    if (self->count <= CORE_FEW_WORDS)
        return;
    PyMem_Free(self->words);
    PyMem_Free(self->lengths);
    PyMem_Free(self->texts);
}

/* That of its value: a subclass may call itself by a name. */
static PyObject *text_of_float(PyObject *value)
{
    PyObject *number = PyFloat_FromDouble(PyFloat_AsDouble(value));
    PyObject *text = number ? PyObject_Repr(number) : NULL;

    Py_XDECREF(number);
    return text;
}

PyObject *core_text_of_number(PyObject *value)
{
    if (PyLong_Check(value) && !PyBool_Check(value))
        return PyNumber_ToBase(value, 10);
    if (PyFloat_Check(value))
        return text_of_float(value);
    return NULL;
}

PyObject *core_bytes_of_value(PyObject *value, const char *what)
{
    PyObject *text = core_text_of_number(value);
    PyObject *bytes;

    if (text) {
        bytes = PyUnicode_AsUTF8String(text);
        Py_DECREF(text);
        return bytes;
    }
    if (PyErr_Occurred())
        return NULL;
    if (PyUnicode_Check(value))
        return PyUnicode_AsUTF8String(value);
    if (PyBytes_Check(value))
        return Py_NewRef(value);
    return PyErr_Format(PyExc_TypeError, "%s, not %R", what, value);
}

int core_words_set_key(core_words *self, size_t index, PyObject *key)
{
    const char *bytes;

    if (core_bytes_arg(key, "a key", &bytes, &self->lengths[index]) < 0)
        return -1;
    self->words[index] = bytes;
    return 0;
}

int core_words_read_keys(core_words *words, PyObject *keys)
{
    Py_ssize_t count = PyTuple_Size(keys);

    if (count < 0 || core_words_init(words, (size_t)count) < 0)
        return -1;
    for (size_t i = 0; i < words->count; i++) {
        if (core_words_set_key(words, i, PyTuple_GetItem(keys, (Py_ssize_t)i)) < 0)
            return -1;
    }
    return 0;
}

int core_words_set(core_words *self, size_t index, PyObject *value, const char *what)
{
    const char *bytes;
    PyObject *text = core_text_of_number(value);

    if (!text && PyErr_Occurred())
        return -1;
    self->texts[index] = text;
    if (core_bytes_arg(text ? text : value, what, &bytes, &self->lengths[index]) < 0)
        return -1;
    self->words[index] = bytes;
    return 0;
}

const core_call_words core_execute_words = {
    "execute() needs a command, such as \"PING\"",
    "an argument of execute()",
};
const core_call_words core_queue_words = {
    "queue() needs a command, such as \"INCR\", \"key\"",
    "an argument of queue()",
};

int core_words_read(core_words *self, PyObject *const *args, Py_ssize_t nargs,
                    const core_call_words *call)
{
    if (core_words_init(self, (size_t)nargs) < 0)
        return -1;
    if (nargs == 0) {
        PyErr_SetString(PyExc_TypeError, call->needs);
        return -1;
    }
    for (size_t i = 0; i < self->count; i++) {
        if (core_words_set(self, i, args[i], call->what) < 0)
            return -1;
    }
    return 0;
}

int core_watch_keys(int *status, sneck_tx *tx, PyObject *const *keys, Py_ssize_t count)
{
    *status = SNECK_OK;
    for (Py_ssize_t i = 0; i < count && *status == SNECK_OK; i++) {
        const char *key;
        size_t len;

        if (core_bytes_arg(keys[i], "a key", &key, &len) < 0)
            return -1;
        *status = sneck_tx_watch(tx, key, len);
    }
    return 0;
}
