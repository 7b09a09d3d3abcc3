/* transaction.c - the type `_core.Transaction`, and Client._transaction().
 *
 * A Transaction is what the function gets, one for each time that it is run. It
 * points to a transaction of the library's only while that run lasts: kept for
 * later, or used by another thread, it does nothing but raise.
 *
 * What unwinds the function, after abort() or when an attempt was lost, is no
 * Exception, so `except Exception` does not stop it. Nor does a bare `except`: what
 * counts is what is noted here and in the library. */
#include "core.h"

typedef struct core_tx {
    PyObject_HEAD core_run *run; /* NULL: the function has returned */
    sneck_tx *tx;                /* borrowed, as long as that */
    unsigned long thread;        /* the one that runs the function */
    bool busy;                   /* an exchange is under way */
    bool aborted, lost;          /* why its function is being unwound */
} core_tx;

/* ------------------------------------------------------------------ its use */

static PyObject *ended(const core_run *run, const char *why)
{
    PyErr_SetString(run->state->attempt_ended, why);
    return NULL;
}

static PyObject *misused(const char *why)
{
    PyErr_Format(PyExc_RuntimeError, "transaction: %s", why);
    return NULL;
}

/* NULL, with an exception set, where it must not be used. */
static core_tx *usable(PyObject *object)
{
    core_tx *self = (core_tx *)object;

    if (!self->run)
        misused("its function has ended; use it inside of that only");
    else if (self->thread != PyThread_get_thread_ident())
        misused("it belongs to the thread that runs its function");
    else if (self->busy)
        misused("a call on it is under way, which a signal handler has interrupted");
    else if (self->aborted)
        ended(self->run, "aborted");
    else
        return self;
    return NULL;
}

static PyObject *failed(core_tx *self, int status)
{
    const char *code = status == SNECK_SERVER ? sneck_tx_server_code(self->tx) : "";

    if (status == SNECK_CONFLICT) {
        self->lost = true;
        return ended(self->run, "the connection was lost");
    }
    return core_raise(self->run->state, status, sneck_tx_error(self->tx), code);
}

static PyObject *none_or_failed(core_tx *self, int status)
{
    return status == SNECK_OK ? Py_NewRef(Py_None) : failed(self, status);
}

static PyObject *read_now(core_tx *self, const core_words *words)
{
    core_run *run = self->run;
    sneck_reply *reply = NULL;
    PyObject *result = NULL;
    int status;
    bool raised;

    self->busy = true;
    run->call.thread = PyEval_SaveThread();
    status = sneck_tx_read(&reply, self->tx, words->count, words->words, words->lengths);
    PyEval_RestoreThread(run->call.thread);
    self->busy = false;
    raised = run->call.raised;
    run->call.raised = false; /* it is the function's now */
    if (!raised)
        result = status == SNECK_OK ? core_reply(run->state, reply) : failed(self, status);
    sneck_reply_free(reply);
    return result;
}

static PyObject *tx_get(PyObject *object, PyObject *key)
{
    core_tx *self = usable(object);
    PyObject *result = NULL;
    core_words words;

    if (!self)
        return NULL;
    if (core_words_init(&words, 2) == 0 && core_words_set_key(&words, 1, key) == 0) {
        words.words[0] = "GET";
        words.lengths[0] = 3;
        result = read_now(self, &words);
    }
    core_words_clear(&words);
    return result;
}

static PyObject *tx_execute(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    core_tx *self = usable(object);
    PyObject *result = NULL;
    core_words words;

    if (!self)
        return NULL;
    if (core_words_read(&words, args, nargs, &core_execute_words) == 0)
        result = read_now(self, &words);
    core_words_clear(&words);
    return result;
}

static PyObject *tx_queue(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    core_tx *self = usable(object);
    PyObject *result = NULL;
    core_words words;

    if (!self)
        return NULL;
    if (core_words_read(&words, args, nargs, &core_queue_words) == 0)
        result = none_or_failed(self, sneck_tx_queue(self->tx, words.count, words.words,
                                                     words.lengths));
    core_words_clear(&words);
    return result;
}

static PyObject *tx_watch(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    core_tx *self = usable(object);
    int status;

    if (!self)
        return NULL;
    if (core_watch_keys(&status, self->tx, args, nargs) < 0)
        return NULL;
    return none_or_failed(self, status);
}

static PyObject *tx_abort(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_tx *self = usable(object);

    if (!self)
        return NULL;
    self->aborted = true;
    return ended(self->run, "aborted");
}

static PyObject *tx_conflicts(PyObject *object, void *Py_UNUSED(closure))
{
    core_tx *self = usable(object);

    return self ? PyLong_FromLong(sneck_tx_conflicts(self->tx)) : NULL;
}

/* ----------------------------------------------------------------- its runs */

typedef struct transaction {
    core_run run;
    PyObject *function;
} transaction;

static core_tx *new_tx(core_run *run, sneck_tx *tx)
{
    core_tx *self = (core_tx *)core_alloc((PyObject *)run->state->tx_type,
                                          run->state->tx_type);

    if (!self)
        return NULL;
    self->run = run;
    self->tx = tx;
    self->thread = PyThread_get_thread_ident();
    return self;
}

/* How the function ended that returned `result`, NULL after an exception: another
 * transaction's end, around this one, is like any other exception. */
static int outcome_of(const core_tx *self, const PyObject *result)
{
    bool unwound = self->aborted || self->lost;

    if (!result &&
        !(unwound && PyErr_ExceptionMatches(self->run->state->attempt_ended)))
        return CORE_RAISED;
    PyErr_Clear();
    if (self->aborted)
        return CORE_ABORTED;
    return result ? SNECK_OK : SNECK_CONFLICT;
}

static int run_function(sneck_tx *tx, void *data)
{
    transaction *t = data;
    PyObject *result = NULL;
    int status = CORE_RAISED;
    core_tx *self;

    if (t->run.call.raised)
        return SNECK_INTERRUPTED;
    core_run_enter(&t->run);
    self = new_tx(&t->run, tx);
    if (self) {
        result = PyObject_CallFunctionObjArgs(t->function, (PyObject *)self, NULL);
        status = outcome_of(self, result);
        self->run = NULL;
        self->tx = NULL;
        Py_XDECREF(result);
        Py_DECREF(self);
    }
    core_run_leave(&t->run, status);
    return status;
}

static int run_transaction(transaction *t, sneck_reply **reply, const core_client *client,
                           const core_words *keys)
{
    t->run.call.status = sneck_transact(reply, client->client, keys->count, keys->words,
                                        keys->lengths, &t->run.options, run_function, t,
                                        t->run.error);
    core_run_enter(&t->run);
    return t->run.call.status;
}

/* What the writes gave; an empty list when there were none. */
static PyObject *results_of(const core_run *run, const sneck_reply *reply)
{
    if (run->call.raised || run->raised[0])
        return NULL;
    if (reply)
        return core_reply(run->state, reply);
    return run->call.status == SNECK_OK ? PyList_New(0) : NULL;
}

static PyObject *transact(core_client *self, PyObject *const *args, const core_words *keys)
{
    transaction t = { .function = args[0] };
    sneck_reply *reply = NULL;
    PyObject *results;

    if (core_run_begin(&t.run, self->state, args[2], args[3], args[4]) < 0)
        return NULL;
    run_transaction(&t, &reply, self, keys);
    results = results_of(&t.run, reply);
    sneck_reply_free(reply);
    return core_run_end(&t.run, results, args[1]);
}

PyObject *core_client_transaction(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *result = NULL;
    core_words keys = { 0 };

    if (nargs != 5)
        return PyErr_Format(PyExc_TypeError, "_transaction() takes 5 arguments");
    if (!PyCallable_Check(args[0]))
        return PyErr_Format(PyExc_TypeError, "transaction() needs a function, not %R", args[0]);
    if (core_words_read_keys(&keys, args[1]) == 0)
        result = transact((core_client *)self, args, &keys);
    core_words_clear(&keys);
    return result;
}

/* -------------------------------------------------------------------- type */

static PyMethodDef methods[] = {
    { "get", tx_get, METH_O,
      PyDoc_STR("get($self, key, /)\n--\n\n"
                "Read the string at a key; None when there is none.\n\n"
                "The key should be watched. Raises what execute() raises.") },
    { "execute", CORE_METHOD(tx_execute), METH_FASTCALL,
      PyDoc_STR("execute($self, /, *args)\n--\n\n"
                "Send one command now and give its reply.\n\n"
                "For reads: it may be sent again. As Client.execute(). Raises "
                "ServerError,\nConnectionError, ProtocolError, and ValueError "
                "for commands that block or belong to\ntransactions.") },
    { "queue", CORE_METHOD(tx_queue), METH_FASTCALL,
      PyDoc_STR("queue($self, /, *args)\n--\n\n"
                "Add a command to those that are run at the end, all together.\n\n"
                "Raises ValueError for commands that block or belong to "
                "transactions.") },
    { "watch", CORE_METHOD(tx_watch), METH_FASTCALL,
      PyDoc_STR("watch($self, /, *keys)\n--\n\n"
                "Watch more keys, from the next read on.") },
    { "abort", tx_abort, METH_NOARGS,
      PyDoc_STR("abort($self, /)\n--\n\n"
                "End the transaction with nothing written and the result None.\n\n"
                "Does not return: it raises what only transaction() should "
                "catch.") },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef attributes[] = {
    { "conflicts", tx_conflicts, NULL,
      PyDoc_STR("How often the function was run before this time."), NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
    CORE_SLOT(Py_tp_dealloc, core_dealloc),
    { Py_tp_methods, methods },
    { Py_tp_getset, attributes },
    { Py_tp_doc, (void *)PyDoc_STR(
                     "What a transaction's function reads and writes with.\n\n"
                     "Only inside of that function and in its thread; elsewhere "
                     "all raise RuntimeError.") },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "sneck.Transaction",
    .basicsize = sizeof(core_tx),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int core_add_transaction(PyObject *module)
{
    core_state *state = PyModule_GetState(module);

    state->attempt_ended = PyErr_NewExceptionWithDoc(
        "sneck._core._AttemptEnded", "Unwinds a transaction's function.", PyExc_BaseException,
        NULL);
    if (!state->attempt_ended ||
        PyModule_AddObjectRef(module, "_AttemptEnded", state->attempt_ended) < 0)
        return -1;
    return core_add_type(module, &spec, &state->tx_type);
}
