/* execute.c - Client.execute(): Python values to one command, its reply back.
 *
 * The words borrow their bytes from the arguments, or from texts made of numbers,
 * which live until the call has ended. */
#include "core.h"

#define FEW_WORDS 8 /* commands of so many words need no allocation */

typedef struct command {
    size_t count;
    const void **words;
    size_t *lengths;
    PyObject **texts; /* owned; NULL where the argument itself is borrowed */
    const void *few_words[FEW_WORDS];
    size_t few_lengths[FEW_WORDS];
    PyObject *few_texts[FEW_WORDS];
} command;

static int command_init(command *self, size_t count)
{
    self->count = count;
    self->words = self->few_words;
    self->lengths = self->few_lengths;
    self->texts = self->few_texts;
    if (count > FEW_WORDS) {
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

static void command_clear(command *self)
{
    for (size_t i = 0; self->texts && i < self->count; i++)
        Py_XDECREF(self->texts[i]);
    if (self->count <= FEW_WORDS)
        return;
    PyMem_Free(self->words);
    PyMem_Free(self->lengths);
    PyMem_Free(self->texts);
}

/* Numbers are sent as Python writes them: a float loses no digit. */
static PyObject *text_of_number(PyObject *value)
{
    if (PyLong_Check(value) && !PyBool_Check(value))
        return PyNumber_ToBase(value, 10);
    if (PyFloat_Check(value))
        return PyObject_Repr(value);
    return NULL;
}

static int command_set(command *self, size_t index, PyObject *value)
{
    const char *bytes;
    PyObject *text = text_of_number(value);

    if (!text && PyErr_Occurred())
        return -1;
    self->texts[index] = text;
    if (core_bytes_arg(text ? text : value, "an argument of execute()", &bytes,
                       &self->lengths[index]) < 0)
        return -1;
    self->words[index] = bytes;
    return 0;
}

static PyObject *run(core_client *self, const command *words)
{
    PyObject *result = NULL;
    core_call call;

    core_call_begin(&call);
    call.status = sneck_execute_start(&call.op, self->client, NULL, words->count,
                                      words->words, words->lengths);
    core_call_wait(&call);
    if (call.status == SNECK_OK)
        result = core_reply(self->state, sneck_op_reply(call.op));
    else
        core_call_raise(self->state, &call);
    core_call_end(&call);
    return result;
}

PyObject *core_client_execute(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *result = NULL;
    command words;

    if (nargs == 0)
        return PyErr_Format(PyExc_TypeError,
                            "execute() needs a command, such as \"PING\"");
    if (command_init(&words, (size_t)nargs) < 0)
        goto out;
    for (size_t i = 0; i < words.count; i++) {
        if (command_set(&words, i, args[i]) < 0)
            goto out;
    }
    result = run((core_client *)self, &words);
out:
    command_clear(&words);
    return result;
}
