/* link.c - the type `_core.Link`: what an event loop watches and steps, and the calls
 * that it carries.
 *
 * A Link is a client's, and owned, or that of an op which has one of its own; that
 * one is gone when the op has ended, and then there is nothing to watch. All but the
 * making belongs to the loop's thread. A step lets go of the GIL, for it may resolve
 * a host name. */
#include "core.h"

typedef struct core_link {
    PyObject_HEAD
    const core_state *state;
    PyObject *owner;   /* owned; a core_client or a core_op */
    sneck_link *owned; /* NULL: the op's, or closed */
} core_link;

static sneck_link *link_of(const core_link *self)
{
    const core_op *op = (const core_op *)self->owner;

    if (self->owned || Py_TYPE(self->owner) != self->state->op_type)
        return self->owned;
    return op->op ? sneck_op_link(op->op) : NULL;
}

static core_link *new_link(const core_state *state, PyObject *owner)
{
    core_link *self = (core_link *)core_alloc((PyObject *)state->link_type, state->link_type);

    if (self) {
        self->state = state;
        self->owner = Py_NewRef(owner);
    }
    return self;
}

PyObject *core_op_link(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return (PyObject *)new_link(((core_op *)op)->state, op);
}

PyObject *core_client_link(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_client *client = (core_client *)object;
    core_link *self = new_link(client->state, object);

    if (self && sneck_link_new(&self->owned, client->client) != SNECK_OK) {
        Py_DECREF((PyObject *)self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

/* ----------------------------------------------------------------- the loop's */

static PyObject *link_fds(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    const sneck_link *link = link_of((core_link *)object);
    struct pollfd fds[SNECK_LINK_FDS];
    size_t count = link ? sneck_link_fds(link, fds) : 0;
    PyObject *list = PyList_New((Py_ssize_t)count);

    for (size_t i = 0; list && i < count; i++) {
        PyObject *item = Py_BuildValue("(iOO)", fds[i].fd,
                                       fds[i].events & POLLIN ? Py_True : Py_False,
                                       fds[i].events & POLLOUT ? Py_True : Py_False);

        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *link_timeout(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    const sneck_link *link = link_of((core_link *)object);
    int64_t ms = link ? sneck_link_timeout_ms(link) : -1;

    return ms < 0 ? Py_NewRef(Py_None) : core_seconds(ms);
}

static PyObject *link_step(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    sneck_link *link = link_of((core_link *)object);

    if (link) {
        PyThreadState *thread = PyEval_SaveThread();

        sneck_link_step(link);
        PyEval_RestoreThread(thread);
    }
    Py_RETURN_NONE;
}

static PyObject *link_ended(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    sneck_link *link = link_of((core_link *)object);
    sneck_op *op = link ? sneck_link_ended(link) : NULL;
    core_op *ended = op ? sneck_op_data(op) : NULL;

    if (!ended)
        Py_RETURN_NONE;
    Py_INCREF((PyObject *)ended);
    core_op_settle(ended);
    return (PyObject *)ended;
}

static PyObject *link_close(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_link *self = (core_link *)object;

    sneck_link_free(self->owned);
    self->owned = NULL;
    Py_RETURN_NONE;
}

static PyObject *link_generation(PyObject *object, void *Py_UNUSED(closure))
{
    const sneck_link *link = link_of((core_link *)object);

    return PyLong_FromUnsignedLongLong(link ? sneck_link_generation(link) : 0);
}

static PyObject *link_quiet(PyObject *object, void *Py_UNUSED(closure))
{
    const sneck_link *link = link_of((core_link *)object);

    return PyBool_FromLong(!link || sneck_link_quiet(link));
}

/* ------------------------------------------------------------------ its calls */

static sneck_link *open_link(PyObject *object)
{
    sneck_link *link = ((core_link *)object)->owned;

    if (!link)
        PyErr_SetString(PyExc_ValueError, "the client is closed; connect again");
    return link;
}

static core_lock *lock_arg(PyObject *object, PyObject *lock)
{
    const core_state *state = ((core_link *)object)->state;

    if (PyObject_TypeCheck(lock, state->lock_type))
        return (core_lock *)lock;
    PyErr_Format(PyExc_TypeError, "a lock must be a Lock, not %R", lock);
    return NULL;
}

/* A new op for a call on a lock; NULL with an exception. */
static core_op *lock_op(PyObject *object, PyObject *lock, core_op_kind kind)
{
    if (!open_link(object) || !lock_arg(object, lock))
        return NULL;
    return (core_op *)core_op_new(((core_link *)object)->state, kind, lock);
}

/* -------------------------------------------------------- those that count */

typedef int count_begin(sneck_lock **out, sneck_rlock *rlock, uint64_t owner);

/* Begins to count. True: *out is the owner's lock, on which to start the op; else the
 * op has ended, or there is an exception. */
static bool begin_counting(core_op *op, sneck_lock **out, count_begin *begin, core_count_end *end)
{
    core_lock *lock = (core_lock *)op->owner;

    *out = lock->lock;
    if (!lock->rlock)
        return true;
    op->counts_for = core_lock_owner(lock);
    op->status = begin(out, lock->rlock, op->counts_for);
    if (op->status == SNECK_PENDING) {
        op->count_end = end;
        return true;
    }
    if (op->status == SNECK_OK)
        op->value = Py_NewRef(Py_None);
    else if (op->status == SNECK_NOT_OWNER)
        op->error = core_lock_not_held(lock);
    else
        PyErr_NoMemory();
    return false;
}

/* Gives an op that has ended without any I/O; steals it. */
static PyObject *counted(core_op *op)
{
    if (!op->value && !op->error)
        Py_CLEAR(op);
    return (PyObject *)op;
}

static PyObject *link_acquire(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    core_lock *lock = nargs == 3 ? lock_arg(object, args[0]) : NULL;
    sneck_lock *mine;
    int64_t wait_ms;
    core_op *op;

    if (nargs != 3)
        return PyErr_Format(PyExc_TypeError, "acquire() takes 3 arguments");
    if (!lock || core_lock_wait(lock, args[1], args[2], &wait_ms) < 0)
        return NULL;
    op = lock_op(object, args[0], CORE_OP_PLAIN);
    if (!op)
        return NULL;
    if (!begin_counting(op, &mine, sneck_rlock_acquire_begin, sneck_rlock_acquire_end))
        return counted(op);
    return core_op_started((PyObject *)op, sneck_lock_acquire_start(&op->op, mine,
                                                                    open_link(object), wait_ms));
}

static PyObject *link_extend(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    int64_t ttl_ms = 0;
    core_op *op;

    if (nargs != 2)
        return PyErr_Format(PyExc_TypeError, "extend() takes 2 arguments");
    if (args[1] != Py_None && core_seconds_arg(args[1], "ttl", false, &ttl_ms) < 0)
        return NULL;
    op = lock_op(object, args[0], CORE_OP_PLAIN);
    return op ? core_op_started((PyObject *)op,
                                sneck_lock_extend_start(&op->op,
                                                        core_lock_mine((core_lock *)args[0]),
                                                        open_link(object), ttl_ms))
              : NULL;
}

typedef int start_function(sneck_op **out, sneck_lock *lock, sneck_link *link);

static PyObject *start_on_lock(PyObject *object, PyObject *lock, core_op_kind kind,
                               start_function *start)
{
    core_op *op = lock_op(object, lock, kind);

    return op ? core_op_started((PyObject *)op, start(&op->op, ((core_lock *)lock)->lock,
                                                      open_link(object)))
              : NULL;
}

static PyObject *link_release(PyObject *object, PyObject *lock)
{
    core_op *op = lock_op(object, lock, CORE_OP_PLAIN);
    sneck_lock *mine;

    if (!op)
        return NULL;
    if (!begin_counting(op, &mine, sneck_rlock_release_begin, sneck_rlock_release_end))
        return counted(op);
    return core_op_started((PyObject *)op,
                           sneck_lock_release_start(&op->op, mine, open_link(object)));
}

static PyObject *link_release_lease(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    core_lock *lock = nargs == 2 ? lock_arg(object, args[0]) : NULL;
    uint64_t number = lock ? PyLong_AsUnsignedLongLong(args[1]) : 0;
    core_op *op;

    if (nargs != 2)
        return PyErr_Format(PyExc_TypeError, "release_lease() takes 2 arguments");
    if (PyErr_Occurred())
        return NULL;
    if (lock->rlock) /* its owner's leases are nobody else's */
        return link_release(object, args[0]);
    op = lock_op(object, args[0], CORE_OP_PLAIN);
    return op ? core_op_started((PyObject *)op,
                                sneck_lock_release_lease_start(&op->op, lock->lock,
                                                               open_link(object), number))
              : NULL;
}

static PyObject *link_holder(PyObject *object, PyObject *lock)
{
    return start_on_lock(object, lock, CORE_OP_HOLDER, sneck_lock_holder_start);
}

static PyObject *link_waiters(PyObject *object, PyObject *lock)
{
    return start_on_lock(object, lock, CORE_OP_WAITERS, sneck_lock_waiters_start);
}

static PyObject *link_force_release(PyObject *object, PyObject *lock)
{
    return start_on_lock(object, lock, CORE_OP_FORCE_RELEASE, sneck_lock_force_release_start);
}

static PyObject *start_execute(core_link *self, const core_words *words)
{
    core_client *client = (core_client *)self->owner;
    core_op *op = (core_op *)core_op_new(self->state, CORE_OP_REPLY, self->owner);

    return op ? core_op_started((PyObject *)op,
                                sneck_execute_start(&op->op, client->client, self->owned,
                                                    words->count, words->words,
                                                    words->lengths))
              : NULL;
}

static PyObject *link_execute(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *result = NULL;
    core_words words;

    if (!open_link(object))
        return NULL;
    if (core_words_read(&words, args, nargs, &core_execute_words) == 0)
        result = start_execute((core_link *)object, &words);
    core_words_clear(&words);
    return result;
}

static PyObject *link_try_lock(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    sneck_link *link = open_link(object);
    core_client *client = (core_client *)((core_link *)object)->owner;

    return link ? core_begin_try_lock(client, link, args, nargs) : NULL;
}

static PyObject *link_release_lock(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    sneck_link *link = open_link(object);
    core_client *client = (core_client *)((core_link *)object)->owner;

    return link ? core_begin_release_lock(client, link, args, nargs) : NULL;
}

/* -------------------------------------------------------------------- type */

static void link_dealloc(PyObject *object)
{
    core_link *self = (core_link *)object;

    sneck_link_free(self->owned);
    Py_XDECREF(self->owner);
    core_dealloc(object);
}

static PyMethodDef methods[] = {
    { "fds", link_fds, METH_NOARGS,
      PyDoc_STR("fds($self, /)\n--\n\n"
                "List (fd, to read, to write) of what to wait for.") },
    { "timeout", link_timeout, METH_NOARGS,
      PyDoc_STR("timeout($self, /)\n--\n\n"
                "Give the seconds until the next step at most; None: no limit.") },
    { "step", link_step, METH_NOARGS,
      PyDoc_STR("step($self, /)\n--\n\n"
                "Do what can be done without blocking.") },
    { "ended", link_ended, METH_NOARGS,
      PyDoc_STR("ended($self, /)\n--\n\n"
                "Give the next Op that has ended; None: no more for now.") },
    { "close", link_close, METH_NOARGS,
      PyDoc_STR("close($self, /)\n--\n\n"
                "Close the connections. Sends nothing.") },
    { "acquire", CORE_METHOD(link_acquire), METH_FASTCALL,
      PyDoc_STR("acquire($self, lock, blocking, timeout, /)\n--\n\n"
                "Start to acquire.") },
    { "release", link_release, METH_O,
      PyDoc_STR("release($self, lock, /)\n--\n\n"
                "Start to release.") },
    { "extend", CORE_METHOD(link_extend), METH_FASTCALL,
      PyDoc_STR("extend($self, lock, ttl, /)\n--\n\n"
                "Start to extend.") },
    { "holder", link_holder, METH_O,
      PyDoc_STR("holder($self, lock, /)\n--\n\n"
                "Start to ask who holds it.") },
    { "waiters", link_waiters, METH_O,
      PyDoc_STR("waiters($self, lock, /)\n--\n\n"
                "Start to ask who waits.") },
    { "release_lease", CORE_METHOD(link_release_lease), METH_FASTCALL,
      PyDoc_STR("release_lease($self, lock, number, /)\n--\n\n"
                "Start to release one lease, and nothing that was acquired since.") },
    { "force_release", link_force_release, METH_O,
      PyDoc_STR("force_release($self, lock, /)\n--\n\n"
                "Start to take it away.") },
    { "try_lock", CORE_METHOD(link_try_lock), METH_FASTCALL,
      PyDoc_STR("try_lock($self, key, value, expire_ms, timeout_ms, /)\n--\n\n"
                "Start to take a lock by a value of the caller's.") },
    { "release_lock", CORE_METHOD(link_release_lock), METH_FASTCALL,
      PyDoc_STR("release_lock($self, key, value, /)\n--\n\n"
                "Start to release a lock that has this value.") },
    { "execute", CORE_METHOD(link_execute), METH_FASTCALL,
      PyDoc_STR("execute($self, /, *args)\n--\n\n"
                "Start a command.") },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef attributes[] = {
    { "generation", link_generation, NULL,
      PyDoc_STR("Changes whenever a descriptor was opened or closed."), NULL },
    { "quiet", link_quiet, NULL, PyDoc_STR("Whether nothing is left to be answered."), NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
    CORE_SLOT(Py_tp_dealloc, link_dealloc),
    { Py_tp_methods, methods },
    { Py_tp_getset, attributes },
    { Py_tp_doc, (void *)PyDoc_STR("What an event loop watches and steps.") },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "sneck._core.Link",
    .basicsize = sizeof(core_link),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int core_add_link(PyObject *module)
{
    core_state *state = PyModule_GetState(module);

    return core_add_type(module, &spec, &state->link_type);
}
