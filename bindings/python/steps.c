/* steps.c - the type `_core.Attempts`: a transaction step by step, each an Op on a
 * link of the transaction's own. Made by Client._attempts(). */
#include "core.h"

typedef struct core_attempts {
    PyObject_HEAD
    const core_state *state;
    sneck_tx *tx;    /* owned; NULL: closed */
    PyObject *keys;  /* owned; a tuple, as it was given */
    PyObject *guard; /* owned; a core_lock or None */
    sneck_tx_report report;
} core_attempts;

bool core_is_attempt(const core_state *state, const PyObject *object)
{
    return Py_TYPE(object) == state->attempts_type;
}

int core_attempt_describe(PyObject *object, PyObject *error, int status, PyObject *results)
{
    core_attempts *self = (core_attempts *)object;

    return core_tx_describe(error, status, &self->report, results, self->keys);
}

/* ----------------------------------------------------------------- its making */

static int fill(core_attempts *self, const core_client *client, PyObject *const *args,
                const core_words *keys)
{
    sneck_tx_options options = SNECK_TX_OPTIONS;
    char error[SNECK_ERROR_SIZE];
    int status;

    if (core_tx_options(&options, self->state, args[1], args[2], args[3]) < 0)
        return -1;
    self->report.failed = SIZE_MAX;
    options.report = &self->report;
    status = sneck_tx_new(&self->tx, client->client, keys->count, keys->words, keys->lengths,
                          &options, error);
    if (status == SNECK_OK)
        return 0;
    core_raise(self->state, status, error, "");
    return -1;
}

static PyObject *new_attempts(const core_client *client, PyObject *const *args,
                              const core_words *keys)
{
    const core_state *state = client->state;
    core_attempts *self =
        (core_attempts *)core_alloc((PyObject *)state->attempts_type, state->attempts_type);

    if (!self)
        return NULL;
    self->state = state;
    self->keys = Py_NewRef(args[0]);
    self->guard = Py_NewRef(args[3]);
    if (fill(self, client, args, keys) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

PyObject *core_client_attempts(PyObject *client, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *result = NULL;
    core_words keys = { 0 };

    if (nargs != 4)
        return PyErr_Format(PyExc_TypeError, "_attempts() takes 4 arguments");
    if (core_words_read_keys(&keys, args[0]) == 0)
        result = new_attempts((core_client *)client, args, &keys);
    core_words_clear(&keys);
    return result;
}

/* ------------------------------------------------------------------ its steps */

static sneck_tx *open_tx(PyObject *object)
{
    sneck_tx *tx = ((core_attempts *)object)->tx;

    if (!tx)
        PyErr_SetString(PyExc_RuntimeError,
                        "transaction: its function has ended; use it inside of that only");
    return tx;
}

static core_op *new_op(PyObject *object, core_op_kind kind)
{
    if (!open_tx(object))
        return NULL;
    return (core_op *)core_op_new(((core_attempts *)object)->state, kind, object);
}

typedef int start_function(sneck_op **out, sneck_tx *tx);

static PyObject *start_step(PyObject *object, core_op_kind kind, start_function *start)
{
    core_op *op = new_op(object, kind);

    return op ? core_op_started((PyObject *)op, start(&op->op, open_tx(object))) : NULL;
}

static PyObject *attempts_begin(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    return start_step(object, CORE_OP_PLAIN, sneck_tx_begin_start);
}

static PyObject *attempts_commit(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    return start_step(object, CORE_OP_COMMIT, sneck_tx_commit_start);
}

static PyObject *attempts_unwatch(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    return start_step(object, CORE_OP_PLAIN, sneck_tx_unwatch_start);
}

static PyObject *attempts_read(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *result = NULL;
    core_words words;
    core_op *op;

    if (core_words_read(&words, args, nargs, &core_execute_words) == 0) {
        op = new_op(object, CORE_OP_REPLY);
        if (op)
            result = core_op_started((PyObject *)op,
                                     sneck_tx_read_start(&op->op, open_tx(object), words.count,
                                                         words.words, words.lengths));
    }
    core_words_clear(&words);
    return result;
}

static PyObject *none_or_failed(PyObject *object, int status)
{
    core_attempts *self = (core_attempts *)object;

    if (status == SNECK_OK)
        Py_RETURN_NONE;
    return core_raise(self->state, status, sneck_tx_error(self->tx), "");
}

static PyObject *attempts_queue(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    sneck_tx *tx = open_tx(object);
    PyObject *result = NULL;
    core_words words;

    if (!tx)
        return NULL;
    if (core_words_read(&words, args, nargs, &core_queue_words) == 0)
        result = none_or_failed(object, sneck_tx_queue(tx, words.count, words.words,
                                                       words.lengths));
    core_words_clear(&words);
    return result;
}

static PyObject *attempts_put(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    sneck_tx *tx = open_tx(object);
    const char *key, *value = NULL;
    size_t key_len, len = 0;
    int64_t ttl_ms;

    if (!tx)
        return NULL;
    if (nargs != 3)
        return PyErr_Format(PyExc_TypeError, "put() takes 3 arguments");
    if (core_bytes_arg(args[0], "a key", &key, &key_len) < 0 ||
        (args[1] != Py_None && core_bytes_arg(args[1], "a value", &value, &len) < 0) ||
        core_ms_arg(args[2], "ttl_ms", &ttl_ms) < 0)
        return NULL;
    return none_or_failed(object, sneck_tx_put(tx, key, key_len, value, len, ttl_ms));
}

static PyObject *attempts_watch(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    sneck_tx *tx = open_tx(object);
    int status;

    if (!tx)
        return NULL;
    if (core_watch_keys(&status, tx, args, nargs) < 0)
        return NULL;
    return none_or_failed(object, status);
}

static PyObject *attempts_close(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_attempts *self = (core_attempts *)object;

    sneck_tx_free(self->tx);
    self->tx = NULL;
    Py_RETURN_NONE;
}

static PyObject *attempts_conflicts(PyObject *object, void *Py_UNUSED(closure))
{
    sneck_tx *tx = open_tx(object);

    return tx ? PyLong_FromLong(sneck_tx_conflicts(tx)) : NULL;
}

/* -------------------------------------------------------------------- type */

static void attempts_dealloc(PyObject *object)
{
    core_attempts *self = (core_attempts *)object;

    sneck_tx_free(self->tx);
    Py_XDECREF(self->keys);
    Py_XDECREF(self->guard);
    core_dealloc(object);
}

static PyMethodDef methods[] = {
    { "begin", attempts_begin, METH_NOARGS,
      PyDoc_STR("begin($self, /)\n--\n\n"
                "Start the first attempt or, after a conflict, the next.") },
    { "read", CORE_METHOD(attempts_read), METH_FASTCALL,
      PyDoc_STR("read($self, /, *args)\n--\n\n"
                "Start a command that is run now.") },
    { "queue", CORE_METHOD(attempts_queue), METH_FASTCALL,
      PyDoc_STR("queue($self, /, *args)\n--\n\n"
                "Add a command to the commit.") },
    { "put", CORE_METHOD(attempts_put), METH_FASTCALL,
      PyDoc_STR("put($self, key, value, ttl_ms, /)\n--\n\n"
                "Add a key's new value to the commit; None deletes the key.\n\n"
                "With a ttl_ms of 0 it keeps its expiry.") },
    { "watch", CORE_METHOD(attempts_watch), METH_FASTCALL,
      PyDoc_STR("watch($self, /, *keys)\n--\n\n"
                "Watch more keys, from the next read on.") },
    { "commit", attempts_commit, METH_NOARGS,
      PyDoc_STR("commit($self, /)\n--\n\n"
                "Start to commit.") },
    { "unwatch", attempts_unwatch, METH_NOARGS,
      PyDoc_STR("unwatch($self, /)\n--\n\n"
                "Start to give up.") },
    { "close", attempts_close, METH_NOARGS,
      PyDoc_STR("close($self, /)\n--\n\n"
                "Free it. A connection that still watches is closed.") },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef attributes[] = {
    { "conflicts", attempts_conflicts, NULL,
      PyDoc_STR("How often the function was run before this time."), NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
    CORE_SLOT(Py_tp_dealloc, attempts_dealloc),
    { Py_tp_methods, methods },
    { Py_tp_getset, attributes },
    { Py_tp_doc, (void *)PyDoc_STR("A transaction, step by step.") },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "sneck._core.Attempts",
    .basicsize = sizeof(core_attempts),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int core_add_attempts(PyObject *module)
{
    core_state *state = PyModule_GetState(module);

    return core_add_type(module, &spec, &state->attempts_type);
}
