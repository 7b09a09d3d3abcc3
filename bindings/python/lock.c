/* lock.c - the type `_core.Lock`: an owned sneck_lock and how long to wait.
 *
 * Instances are made by Client._lock() and Client._adopt() only. A lock keeps its
 * client open by holding it; neither refers back, so no cycle goes through them.
 * Messages come from ops, never from the lock: several threads may use it. */
#include "core.h"

#include <string.h>

typedef struct core_lock {
    PyObject_HEAD const core_state *state; /* of the module, which the type keeps alive */
    PyObject *client;                      /* owned; the core_client */
    PyObject *name;                        /* owned; str or bytes, as it was given */
    sneck_lock *lock;                      /* owned; NULL only while it is being made */
    int64_t wait_ms; /* of acquire() without a timeout and of `with` */
    bool adopted;    /* its token was not acquired here */
} core_lock;

/* ------------------------------------------------------------ construction */

typedef struct lock_arguments {
    const char *name;
    size_t name_len;
    const char *token; /* NULL: not adopted */
    size_t token_len;
    int64_t wait_ms;
    sneck_lock_options options;
} lock_arguments;

static int flag_arg(PyObject *value, bool *out)
{
    int truth = PyObject_IsTrue(value);

    *out = truth > 0;
    return truth;
}

/* The arguments ttl, wait, label, fair and poll. */
static int lock_options(PyObject *const *args, lock_arguments *out)
{
    PyObject *wait = args[1];

    if (core_seconds_arg(args[0], "ttl", false, &out->options.ttl_ms) < 0)
        return -1;
    out->wait_ms = SNECK_FOREVER;
    if (wait != Py_None && core_seconds_arg(wait, "wait", true, &out->wait_ms) < 0)
        return -1;
    if (core_text_arg(args[2], "label", &out->options.label) < 0 ||
        flag_arg(args[3], &out->options.fair) < 0)
        return -1;
    return core_seconds_arg(args[4], "poll", false, &out->options.poll_ms);
}

static int new_sneck_lock(core_lock *self, const lock_arguments *given, char *error)
{
    sneck_client *client = ((core_client *)self->client)->client;

    if (given->token)
        return sneck_lock_adopt(&self->lock, client, given->name, given->name_len,
                                given->token, given->token_len, &given->options, error);
    return sneck_lock_new(&self->lock, client, given->name, given->name_len,
                          &given->options, error);
}

static PyObject *new_lock(core_client *client, PyObject *cls, PyObject *name,
                          const lock_arguments *given)
{
    char error[SNECK_ERROR_SIZE];
    core_lock *self = (core_lock *)core_alloc(cls, client->state->lock_type);
    int status;

    if (!self)
        return NULL;
    self->state = client->state;
    self->client = Py_NewRef((PyObject *)client);
    self->name = Py_NewRef(name);
    self->wait_ms = given->wait_ms;
    self->adopted = given->token != NULL;
    status = new_sneck_lock(self, given, error);
    if (status != SNECK_OK) {
        Py_DECREF(self);
        return core_raise(client->state, status, error, "");
    }
    return (PyObject *)self;
}

PyObject *core_client_lock(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    lock_arguments given = { .options = SNECK_LOCK_OPTIONS };

    if (nargs != 7)
        return PyErr_Format(PyExc_TypeError, "_lock() takes 7 arguments");
    if (core_bytes_arg(args[1], "name", &given.name, &given.name_len) < 0 ||
        lock_options(args + 2, &given) < 0)
        return NULL;
    return new_lock((core_client *)self, args[0], args[1], &given);
}

PyObject *core_client_adopt(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    lock_arguments given = { .options = SNECK_LOCK_OPTIONS };

    if (nargs != 8)
        return PyErr_Format(PyExc_TypeError, "_adopt() takes 8 arguments");
    if (core_bytes_arg(args[1], "name", &given.name, &given.name_len) < 0 ||
        core_bytes_arg(args[2], "token", &given.token, &given.token_len) < 0 ||
        lock_options(args + 3, &given) < 0)
        return NULL;
    return new_lock((core_client *)self, args[0], args[1], &given);
}

static void lock_dealloc(PyObject *object)
{
    core_lock *self = (core_lock *)object;

    sneck_lock_free(self->lock);
    Py_CLEAR(self->client);
    Py_CLEAR(self->name);
    core_dealloc(object);
}

int core_lock_arg(const core_state *state, PyObject *value, const char *what,
                  sneck_lock **out)
{
    *out = NULL;
    if (value == Py_None)
        return 0;
    if (!PyObject_TypeCheck(value, state->lock_type)) {
        PyErr_Format(PyExc_TypeError, "%s must be a Lock or None, not %R", what, value);
        return -1;
    }
    *out = ((core_lock *)value)->lock;
    return 0;
}

/* ------------------------------------------------------------- acquisition */

static void acquire(core_lock *self, int64_t wait_ms, core_call *call)
{
    self->adopted = false;
    core_call_begin(call);
    call->status = sneck_lock_acquire_start(&call->op, self->lock, NULL, wait_ms);
    core_call_wait(call);
}

static void extend(core_lock *self, int64_t ttl_ms, core_call *call)
{
    core_call_begin(call);
    call->status = sneck_lock_extend_start(&call->op, self->lock, NULL, ttl_ms);
    core_call_wait(call);
}

static bool is_minus_one(PyObject *value)
{
    int overflow;

    if (PyFloat_Check(value))
        return PyFloat_AsDouble(value) == -1.0;
    return PyLong_Check(value) && PyLong_AsLongAndOverflow(value, &overflow) == -1 &&
           !overflow;
}

/* The checks are those of threading.Lock.acquire(). */
static int wait_of(const core_lock *self, PyObject *blocking, PyObject *timeout,
                   int64_t *out_ms)
{
    int blocks = blocking ? PyObject_IsTrue(blocking) : 1;
    bool limited = timeout && !is_minus_one(timeout);

    if (blocks < 0)
        return -1;
    if (!blocks && limited) {
        PyErr_SetString(PyExc_ValueError,
                        "can't specify a timeout for a non-blocking call");
        return -1;
    }
    *out_ms = blocks ? self->wait_ms : 0;
    return limited ? core_seconds_arg(timeout, "timeout", true, out_ms) : 0;
}

static PyObject *lock_acquire(PyObject *object, PyObject *const *args, Py_ssize_t nargs,
                              PyObject *kwnames)
{
    static const char *const names[] = { "blocking", "timeout" };
    core_lock *self = (core_lock *)object;
    PyObject *given[] = { NULL, NULL };
    PyObject *result = NULL;
    int64_t wait_ms;
    core_call call;

    if (core_bind("acquire", names, 2, args, nargs, kwnames, given) < 0 ||
        wait_of(self, given[0], given[1], &wait_ms) < 0)
        return NULL;
    acquire(self, wait_ms, &call);
    if (call.status == SNECK_OK)
        result = Py_NewRef(Py_True);
    else if (call.status == SNECK_BUSY || call.status == SNECK_TIMEOUT)
        result = Py_NewRef(Py_False);
    else
        core_call_raise(self->state, &call);
    core_call_end(&call);
    return result;
}

/* A token that was handed over is confirmed: acquiring would wait for it. */
static PyObject *lock_enter(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_lock *self = (core_lock *)object;
    PyObject *result = NULL;
    core_call call;

    if (self->adopted && sneck_lock_token(self->lock, NULL, 0) > 0)
        extend(self, 0, &call);
    else
        acquire(self, self->wait_ms, &call);
    if (call.status == SNECK_OK)
        result = Py_NewRef(object);
    else
        core_call_raise(self->state, &call);
    core_call_end(&call);
    return result;
}

/* -------------------------------------------------------- while it is held */

static PyObject *none_or_error(const core_lock *self, core_call *call)
{
    PyObject *result = NULL;

    if (call->status == SNECK_OK)
        result = Py_NewRef(Py_None);
    else
        core_call_raise(self->state, call);
    core_call_end(call);
    return result;
}

static PyObject *lock_release(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_lock *self = (core_lock *)object;
    core_call call;

    core_call_begin(&call);
    call.status = sneck_lock_release_start(&call.op, self->lock, NULL);
    core_call_wait(&call);
    return none_or_error(self, &call);
}

static PyObject *lock_extend(PyObject *object, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    static const char *const names[] = { "ttl" };
    core_lock *self = (core_lock *)object;
    PyObject *ttl = Py_None;
    int64_t ttl_ms = 0;
    core_call call;

    if (core_bind("extend", names, 1, args, nargs, kwnames, &ttl) < 0)
        return NULL;
    if (ttl != Py_None && core_seconds_arg(ttl, "ttl", false, &ttl_ms) < 0)
        return NULL;
    extend(self, ttl_ms, &call);
    return none_or_error(self, &call);
}

static PyObject *seconds(int64_t ms)
{
    return PyFloat_FromDouble((double)ms / 1000.0);
}

static PyObject *lock_remaining(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    return seconds(sneck_lock_remaining_ms(((core_lock *)object)->lock));
}

/* ------------------------------------------------------------------ holder */

static PyObject *decoded(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *holder_fields(const sneck_holder *holder)
{
    size_t len = holder->token_len < sizeof(holder->token) ? holder->token_len
                                                           : sizeof(holder->token);
    PyObject *ttl = holder->ttl_ms < 0 ? Py_NewRef(Py_None) : seconds(holder->ttl_ms);
    PyObject *fields[] = {
        PyBytes_FromStringAndSize(holder->token, (Py_ssize_t)len),
        decoded(holder->host),
        PyLong_FromLongLong(holder->pid),
        decoded(holder->label),
        ttl,
        PyBool_FromLong(holder->foreign),
    };
    PyObject *result = NULL;

    if (fields[0] && fields[1] && fields[2] && fields[3] && fields[4])
        result = PyTuple_Pack(6, fields[0], fields[1], fields[2], fields[3], fields[4],
                              fields[5]);
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        Py_XDECREF(fields[i]);
    return result;
}

static PyObject *lock_holder(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_lock *self = (core_lock *)object;
    PyObject *result = NULL;
    sneck_holder holder;
    core_call call;

    core_call_begin(&call);
    call.status = sneck_lock_holder_start(&call.op, self->lock, NULL);
    core_call_wait(&call);
    if (call.status == SNECK_OK)
        call.status = sneck_op_holder(&holder, call.op);
    if (call.status != SNECK_OK)
        core_call_raise(self->state, &call);
    else
        result = holder.held ? holder_fields(&holder) : Py_NewRef(Py_None);
    core_call_end(&call);
    return result;
}

/* --------------------------------------------------------------- the queue */

static PyObject *waiter_fields(const sneck_waiter *waiter)
{
    PyObject *fields[] = {
        decoded(waiter->host),
        PyLong_FromLongLong(waiter->pid),
        decoded(waiter->label),
        seconds(waiter->waited_ms),
    };
    PyObject *result = NULL;

    if (fields[0] && fields[1] && fields[2] && fields[3])
        result = PyTuple_Pack(4, fields[0], fields[1], fields[2], fields[3]);
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        Py_XDECREF(fields[i]);
    return result;
}

static PyObject *list_of(const sneck_waiter *waiters, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);

    if (!list)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        PyObject *item = waiter_fields(&waiters[i]);

        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *lock_waiters(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_lock *self = (core_lock *)object;
    const sneck_waiter *waiters;
    PyObject *result = NULL;
    size_t count;
    core_call call;

    core_call_begin(&call);
    call.status = sneck_lock_waiters_start(&call.op, self->lock, NULL);
    core_call_wait(&call);
    if (call.status == SNECK_OK)
        call.status = sneck_op_waiters(&waiters, &count, call.op);
    if (call.status != SNECK_OK)
        core_call_raise(self->state, &call);
    else
        result = list_of(waiters, count);
    core_call_end(&call);
    return result;
}

static PyObject *lock_force_release(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_lock *self = (core_lock *)object;
    PyObject *result = NULL;
    bool was_held;
    core_call call;

    core_call_begin(&call);
    call.status = sneck_lock_force_release_start(&call.op, self->lock, NULL);
    core_call_wait(&call);
    if (call.status == SNECK_OK)
        call.status = sneck_op_was_held(&was_held, call.op);
    if (call.status != SNECK_OK)
        core_call_raise(self->state, &call);
    else
        result = PyBool_FromLong(was_held);
    core_call_end(&call);
    return result;
}

/* -------------------------------------------------------------- attributes */

static PyObject *lock_name(PyObject *object, void *Py_UNUSED(closure))
{
    return Py_NewRef(((core_lock *)object)->name);
}

static PyObject *lock_ttl(PyObject *object, void *Py_UNUSED(closure))
{
    return seconds(sneck_lock_ttl_ms(((core_lock *)object)->lock));
}

static PyObject *lock_owned(PyObject *object, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(sneck_lock_remaining_ms(((core_lock *)object)->lock) > 0);
}

/* Another thread may change the token between asking for its length and for its
 * bytes: then ask again. */
static PyObject *long_token(const sneck_lock *lock, size_t len)
{
    for (;;) {
        PyObject *token = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)len);
        size_t now;

        if (!token)
            return NULL;
        now = sneck_lock_token(lock, PyBytes_AsString(token), len);
        if (now == len)
            return token;
        Py_DECREF(token);
        if (now == 0)
            Py_RETURN_NONE;
        len = now;
    }
}

static PyObject *lock_token(PyObject *object, void *Py_UNUSED(closure))
{
    const sneck_lock *lock = ((core_lock *)object)->lock;
    char token[256];
    size_t len = sneck_lock_token(lock, token, sizeof(token));

    if (len == 0)
        Py_RETURN_NONE;
    if (len > sizeof(token))
        return long_token(lock, len);
    return PyBytes_FromStringAndSize(token, (Py_ssize_t)len);
}

/* -------------------------------------------------------------------- type */

static PyMethodDef methods[] = {
    { "acquire", CORE_METHOD(lock_acquire), METH_FASTCALL | METH_KEYWORDS,
      PyDoc_STR("acquire($self, /, blocking=True, timeout=-1)\n--\n\n"
                "Acquire the lock and tell whether it is held now.\n\n"
                "Waits for `timeout` seconds at most; -1 means the lock's own "
                "`wait`, 0 and\n`blocking=False` mean one try. False: another "
                "owner had it to the end. Raises\nOutcomeUnknown when the "
                "reply was lost, ConnectionError, ServerError, and\nValueError "
                "for a timeout that is not valid.") },
    { "release", lock_release, METH_NOARGS,
      PyDoc_STR("release($self, /)\n--\n\n"
                "Release the lock.\n\n"
                "Raises NotOwned when it is not held, or was lost meanwhile, "
                "and OutcomeUnknown,\nConnectionError or ServerError, after "
                "which it can be called again.") },
    { "extend", CORE_METHOD(lock_extend), METH_FASTCALL | METH_KEYWORDS,
      PyDoc_STR("extend($self, /, ttl=None)\n--\n\n"
                "Set the time that the lease has left.\n\n"
                "`ttl` is in seconds, None for the lock's own. Raises NotOwned "
                "when the lock is not\nheld, or was lost, and OutcomeUnknown, "
                "ConnectionError, ServerError or ValueError.") },
    { "remaining", lock_remaining, METH_NOARGS,
      PyDoc_STR("remaining($self, /)\n--\n\n"
                "Tell for how many seconds the lock is surely ours.\n\n"
                "0.0 when it is not. Asks nobody.") },
    { "_holder", lock_holder, METH_NOARGS,
      PyDoc_STR("_holder($self, /)\n--\n\n"
                "Give the fields of a Holder, or None when the lock is "
                "free.") },
    { "_waiters", lock_waiters, METH_NOARGS,
      PyDoc_STR("_waiters($self, /)\n--\n\n"
                "Give the fields of a Waiter for each one who waits, the next "
                "one first.") },
    { "_force_release", lock_force_release, METH_NOARGS,
      PyDoc_STR("_force_release($self, /)\n--\n\n"
                "Take the lock from whoever has it and tell whether anybody "
                "had.") },
    { "__enter__", lock_enter, METH_NOARGS,
      PyDoc_STR("__enter__($self, /)\n--\n\n"
                "Acquire the lock, or confirm an adopted one.\n\n"
                "Raises LockTimeout when `wait` ends, and NotOwned when an "
                "adopted lock is not ours.") },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef attributes[] = {
    { "name", lock_name, NULL, PyDoc_STR("The name, as it was given."), NULL },
    { "ttl", lock_ttl, NULL, PyDoc_STR("For how many seconds the server keeps the lock."),
      NULL },
    { "owned", lock_owned, NULL,
      PyDoc_STR("Whether the lock is surely ours now. Asks nobody."), NULL },
    { "token", lock_token, NULL,
      PyDoc_STR("The proof of ownership, for adopt(); None without one."), NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
    CORE_SLOT(Py_tp_dealloc, lock_dealloc),
    { Py_tp_methods, methods },
    { Py_tp_getset, attributes },
    { Py_tp_doc, (void *)PyDoc_STR("A named lock on a server.") },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "sneck._core.Lock",
    .basicsize = sizeof(core_lock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int core_add_lock(PyObject *module)
{
    core_state *state = PyModule_GetState(module);

    state->lock_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    if (!state->lock_type)
        return -1;
    return PyModule_AddType(module, state->lock_type);
}
