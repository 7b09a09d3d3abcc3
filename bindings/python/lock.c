/* lock.c - the type `_core.Lock`: an owned sneck_lock and how long to wait.
 *
 * Instances are made by Client._lock() and Client._adopt() only. A lock keeps its
 * client open by holding it; neither refers back, so no cycle goes through them.
 * Messages come from ops, never from the lock: several threads may use it. */
#include "core.h"

/* ------------------------------------------------------------ construction */

typedef struct lock_arguments {
    const char *name;
    size_t name_len;
    const char *token; /* NULL: not adopted */
    size_t token_len;
    int64_t wait_ms;
    bool renews_in_with;
    bool listens; /* it is to be told of its loss */
    bool counts;  /* its owner may acquire it again */
    PyObject *owner; /* who that is; NULL: the thread */
    bool legacy;  /* a timestamp lock */
    bool milliseconds; /* it writes these */
    sneck_lock_options options;
} lock_arguments;

/* None means for ever. */
static int limit_arg(PyObject *value, const char *what, bool zero_allowed, int64_t *out_ms)
{
    *out_ms = SNECK_FOREVER;
    return value == Py_None ? 0 : core_seconds_arg(value, what, zero_allowed, out_ms);
}

/* None: in `with`, and not otherwise. */
static int renew_arg(PyObject *value, lock_arguments *out)
{
    if (value != Py_None && core_flag_arg(value, "renew", &out->options.renew) < 0)
        return -1;
    out->renews_in_with = value == Py_None || out->options.renew;
    return 0;
}

/* A tuple, `_LockOptions` in _core.pyi; the texts in `out` are borrowed from it. */
static int lock_options(PyObject *values, lock_arguments *out)
{
    enum { TTL, WAIT, LABEL, FAIR, POLL, RENEW, MAX_HOLD, FENCE, LISTENS, COUNT };
    sneck_lock_options *options = &out->options;
    PyObject *given[COUNT];
    const char *ttl = out->legacy ? "timeout" : "ttl";

    if (!PyTuple_Check(values) || PyTuple_Size(values) != COUNT) {
        PyErr_Format(PyExc_TypeError, "options must be a tuple of %d, not %R", COUNT, values);
        return -1;
    }
    for (Py_ssize_t i = 0; i < COUNT; i++)
        given[i] = PyTuple_GetItem(values, i);
    if (core_seconds_arg(given[TTL], ttl, false, &options->ttl_ms) < 0 ||
        limit_arg(given[WAIT], "wait", true, &out->wait_ms) < 0 ||
        core_text_arg(given[LABEL], "label", &options->label) < 0 ||
        core_flag_arg(given[FAIR], "fair", &options->fair) < 0 ||
        core_seconds_arg(given[POLL], "poll", false, &options->poll_ms) < 0 ||
        renew_arg(given[RENEW], out) < 0 ||
        limit_arg(given[MAX_HOLD], "max_hold", false, &options->max_hold_ms) < 0 ||
        core_flag_arg(given[FENCE], "fence", &options->fence) < 0)
        return -1;
    return core_flag_arg(given[LISTENS], "listens", &out->listens);
}

static int new_sneck_lock(core_lock *self, const lock_arguments *given, char *error)
{
    sneck_client *client = ((core_client *)self->client)->client;
    int status;

    if (given->token)
        return sneck_lock_adopt(&self->lock, client, given->name, given->name_len,
                                given->token, given->token_len, &given->options, error);
    if (given->legacy)
        return sneck_legacy_lock_new(&self->lock, client, given->name, given->name_len,
                                     &given->options,
                                     given->milliseconds ? SNECK_LEGACY_MILLISECONDS
                                                         : SNECK_LEGACY_SECONDS,
                                     error);
    status = sneck_lock_new(&self->lock, client, given->name, given->name_len,
                            &given->options, error);
    if (status != SNECK_OK || !given->counts)
        return status;
    return sneck_rlock_new(&self->rlock, client, given->name, given->name_len,
                           &given->options, error);
}

static int listen(core_lock *self, lock_arguments *given)
{
    if (!given->listens)
        return 0;
    self->listener = core_listener_new(self->state, (PyObject *)self);
    given->options.on_lost = core_listener_told;
    given->options.on_lost_data = self->listener;
    return self->listener ? 0 : -1;
}

static int fill(core_lock *self, core_client *client, PyObject *name,
                lock_arguments *given)
{
    char error[SNECK_ERROR_SIZE];
    int status;

    self->state = client->state;
    self->client = Py_NewRef((PyObject *)client);
    self->name = Py_NewRef(name);
    self->owner = Py_XNewRef(given->owner);
    self->wait_ms = given->wait_ms;
    self->renews_in_with = given->renews_in_with;
    self->adopted = given->token != NULL;
    if (listen(self, given) < 0)
        return -1;
    status = new_sneck_lock(self, given, error);
    if (status == SNECK_OK)
        return 0;
    core_raise(client->state, status, error, "");
    return -1;
}

static PyObject *new_lock(core_client *client, PyObject *cls, PyObject *name,
                          lock_arguments *given)
{
    PyObject *self = core_alloc(cls, client->state->lock_type);

    if (self && fill((core_lock *)self, client, name, given) < 0)
        Py_CLEAR(self);
    return self;
}

static PyObject *wrong_count(const char *name, int count)
{
    return PyErr_Format(PyExc_TypeError, "%s() takes %d arguments", name, count);
}

/* By the class, the name and the options. */
static PyObject *lock_of(PyObject *self, PyObject *const *args, lock_arguments given)
{
    given.options = (sneck_lock_options)SNECK_LOCK_OPTIONS;
    if (core_bytes_arg(args[1], "name", &given.name, &given.name_len) < 0 ||
        lock_options(args[2], &given) < 0)
        return NULL;
    return new_lock((core_client *)self, args[0], args[1], &given);
}

PyObject *core_client_lock(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 3)
        return wrong_count("_lock", 3);
    return lock_of(self, args, (lock_arguments){ .counts = false });
}

PyObject *core_client_rlock(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *owner = nargs == 4 && args[3] != Py_None ? args[3] : NULL;

    if (nargs != 3 && nargs != 4)
        return wrong_count("_rlock", 4);
    return lock_of(self, args, (lock_arguments){ .counts = true, .owner = owner });
}

PyObject *core_client_legacy_lock(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    lock_arguments given = { .legacy = true };

    if (nargs != 4)
        return wrong_count("_legacy_lock", 4);
    if (core_flag_arg(args[3], "milliseconds", &given.milliseconds) < 0)
        return NULL;
    return lock_of(self, args, given);
}

PyObject *core_client_adopt(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    lock_arguments given = { .counts = false };

    if (nargs != 4)
        return wrong_count("_adopt", 4);
    if (core_bytes_arg(args[3], "token", &given.token, &given.token_len) < 0)
        return NULL;
    return lock_of(self, args, given);
}

static void free_locks(core_lock *self)
{
    sneck_rlock_free(self->rlock);
    sneck_lock_free(self->lock);
}

/* This waits for a listener that is on its way to the GIL. */
static void free_listened(core_lock *self)
{
    PyThreadState *thread = PyEval_SaveThread();

    free_locks(self);
    PyEval_RestoreThread(thread);
    core_listener_free(self->listener);
}

static void lock_dealloc(PyObject *object)
{
    core_lock *self = (core_lock *)object;

    if (self->listener)
        free_listened(self);
    else
        free_locks(self);
    Py_CLEAR(self->client);
    Py_CLEAR(self->name);
    Py_CLEAR(self->owner);
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
    *out = core_lock_mine((core_lock *)value);
    return 0;
}

/* ------------------------------------------------------------- acquisition */

static void extend(core_lock *self, int64_t ttl_ms, core_call *call)
{
    sneck_lock *lock = core_lock_mine(self);

    core_call_begin(call);
    call->status = sneck_lock_extend_start(&call->op, lock, NULL, ttl_ms);
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
int core_lock_wait(const core_lock *self, PyObject *blocking, PyObject *timeout,
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
        core_lock_wait(self, given[0], given[1], &wait_ms) < 0)
        return NULL;
    core_lock_acquire(self, wait_ms, &call);
    if (call.status == SNECK_OK)
        result = Py_NewRef(Py_True);
    else if (call.status == SNECK_BUSY || call.status == SNECK_TIMEOUT)
        result = Py_NewRef(Py_False);
    else
        core_lock_raise(self, &call);
    core_call_end(&call);
    return result;
}

/* A body that cannot be kept safe does not begin. */
static int renew_or_release(core_lock *self)
{
    char error[SNECK_ERROR_SIZE];
    int status = core_lock_is_outermost(self) ? core_lock_renew(self, true, error) : SNECK_OK;
    core_call call;

    if (status == SNECK_OK)
        return 0;
    core_lock_leave(self, &call);
    if (!call.raised)
        core_raise(self->state, status, error, "");
    core_call_end(&call);
    return -1;
}

/* A token that was handed over is confirmed: acquiring would wait for it. */
static PyObject *lock_enter(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_lock *self = (core_lock *)object;
    uint64_t owner = core_lock_owner(self), none;
    PyObject *result = NULL;
    core_call call;

    if (core_lock_begin_body(self, owner) < 0)
        return NULL;
    if (self->adopted && sneck_lock_token(self->lock, NULL, 0) > 0)
        core_lock_confirm(self, &call);
    else
        core_lock_acquire(self, self->wait_ms, &call);
    if (call.status != SNECK_OK) {
        core_lock_end_body(self, owner, &none);
        core_lock_raise(self, &call);
    } else if (!self->renews_in_with || renew_or_release(self) == 0)
        result = Py_NewRef(object);
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
        core_lock_raise(self, call);
    core_call_end(call);
    return result;
}

static PyObject *lock_release(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_lock *self = (core_lock *)object;
    core_call call;

    core_lock_release(self, &call);
    return none_or_error(self, &call);
}

static PyObject *lock_leave(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_lock *self = (core_lock *)object;
    core_call call;

    core_lock_leave(self, &call);
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

PyObject *core_seconds(int64_t ms)
{
    return PyFloat_FromDouble((double)ms / 1000.0);
}

static PyObject *lock_remaining(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    return core_seconds(sneck_lock_remaining_ms(core_lock_mine((core_lock *)object)));
}

/* -------------------------------------------------------------- attributes */

static PyObject *lock_name(PyObject *object, void *Py_UNUSED(closure))
{
    return Py_NewRef(((core_lock *)object)->name);
}

static PyObject *lock_client(PyObject *object, void *Py_UNUSED(closure))
{
    return Py_NewRef(((core_lock *)object)->client);
}

static PyObject *lock_ttl(PyObject *object, void *Py_UNUSED(closure))
{
    return core_seconds(sneck_lock_ttl_ms(((core_lock *)object)->lock));
}

static PyObject *lock_owned(PyObject *object, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(sneck_lock_remaining_ms(core_lock_mine((core_lock *)object)) > 0);
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
    const sneck_lock *lock = core_lock_mine((core_lock *)object);
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
    { "keep_alive", CORE_METHOD(core_lock_keep_alive), METH_FASTCALL | METH_KEYWORDS,
      PyDoc_STR("keep_alive($self, /, on=True)\n--\n\n"
                "Begin to renew a lock that is held, or end it.\n\n"
                "It is renewed whenever a third of its ttl is gone, until it is "
                "released, lost or\nforgotten, or its `max_hold` is over. Asks "
                "nobody. Raises NotOwned when it is not held.") },
    { "_holder", core_lock_holder, METH_NOARGS,
      PyDoc_STR("_holder($self, /)\n--\n\n"
                "Give the fields of a Holder, or None when the lock is "
                "free.") },
    { "_waiters", core_lock_waiters, METH_NOARGS,
      PyDoc_STR("_waiters($self, /)\n--\n\n"
                "Give the fields of a Waiter for each one who waits, the next "
                "one first.") },
    { "_force_release", core_lock_force_release, METH_NOARGS,
      PyDoc_STR("_force_release($self, /)\n--\n\n"
                "Take the lock from whoever has it and tell whether anybody "
                "had.") },
    { "_leave", lock_leave, METH_NOARGS,
      PyDoc_STR("_leave($self, /)\n--\n\n"
                "Release what __enter__ acquired, and nothing that was acquired since.") },
    { "_begin_body", core_lock_begin_body_of, METH_O,
      PyDoc_STR("_begin_body($self, owner, /)\n--\n\n"
                "Note that a body of that owner begins, before its acquire.") },
    { "_set_body", CORE_METHOD(core_lock_set_body_of), METH_FASTCALL,
      PyDoc_STR("_set_body($self, owner, lease, /)\n--\n\n"
                "Note the number of the lease that the owner's body has.") },
    { "_end_body", core_lock_end_body_of, METH_O,
      PyDoc_STR("_end_body($self, owner, /)\n--\n\n"
                "Forget the owner's body, and give the number of its lease; None without one.") },
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
    { "lost", core_lock_lost, NULL,
      PyDoc_STR("Whether the lock was lost since it was acquired. Asks nobody."), NULL },
    { "lease", core_lock_lease, NULL,
      PyDoc_STR("What is known of the lease: 'none', 'held', 'uncertain' or 'lost'. "
                "Asks nobody."),
      NULL },
    { "fence", core_lock_fence, NULL,
      PyDoc_STR("A number greater than that of every acquire before; None without one."),
      NULL },
    { "_outermost", core_lock_outermost, NULL,
      PyDoc_STR("Whether one more release really releases it."), NULL },
    { "_client", lock_client, NULL, PyDoc_STR("The client that made it."), NULL },
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

    return core_add_type(module, &spec, &state->lock_type);
}
