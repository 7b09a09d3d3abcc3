/* op.c - the type `_core.Op`: one call of the library under way on a Link.
 *
 * As soon as it is known how a call ended, by _core.Link.ended() or by cancel(), the
 * outcome becomes Python objects and the library's op is freed: in the thread of the
 * loop, as the library wants it, and not wherever the last reference goes. A Link
 * finds the object by the op's data, which borrows it: freed objects free their op. */
#include "core.h"

PyObject *core_op_new(const core_state *state, core_op_kind kind, PyObject *owner)
{
    core_op *self = (core_op *)core_alloc((PyObject *)state->op_type, state->op_type);

    if (!self)
        return NULL;
    self->state = state;
    self->kind = kind;
    self->owner = Py_NewRef(owner);
    self->status = SNECK_PENDING;
    return (PyObject *)self;
}

PyObject *core_op_started(PyObject *object, int status)
{
    core_op *self = (core_op *)object;

    if (status != SNECK_OK) {
        self->status = status;
        Py_DECREF(object);
        return PyErr_NoMemory();
    }
    sneck_op_set_data(self->op, self);
    return object;
}

/* ----------------------------------------------------------------- outcomes */

static PyObject *reply_of(const core_op *self)
{
    const sneck_reply *reply = sneck_op_reply(self->op);

    if (reply)
        return core_reply(self->state, reply);
    if (self->kind == CORE_OP_COMMIT && self->status == SNECK_OK)
        return PyList_New(0);
    Py_RETURN_NONE;
}

static PyObject *value_of(const core_op *self)
{
    switch (self->kind) {
    case CORE_OP_HOLDER:
        return core_op_holder(self->op);
    case CORE_OP_WAITERS:
        return core_op_waiters(self->op);
    case CORE_OP_FORCE_RELEASE:
        return core_op_was_held(self->op);
    case CORE_OP_REPLY:
    case CORE_OP_COMMIT:
        return reply_of(self);
    case CORE_OP_PLAIN:
        break;
    }
    Py_RETURN_NONE;
}

static PyObject *error_of(const core_op *self)
{
    PyObject *error = core_new_op_error(self->state, self->status, self->op);
    PyObject *results;

    if (!error || !core_is_attempt(self->state, self->owner))
        return error;
    results = self->kind == CORE_OP_COMMIT ? reply_of(self) : Py_NewRef(Py_None);
    if (!results || core_attempt_describe(self->owner, error, self->status, results) < 0)
        Py_CLEAR(error);
    Py_XDECREF(results);
    return error;
}

/* What cannot be converted for want of memory is that error. */
static PyObject *fetched_error(void)
{
    PyObject *kind, *error, *traceback;

    PyErr_Fetch(&kind, &error, &traceback);
    PyErr_NormalizeException(&kind, &error, &traceback);
    Py_XDECREF(kind);
    Py_XDECREF(traceback);
    return error;
}

/* This may free a lock, and wait for a listener that wants the GIL. */
static void end_counting(core_op *self)
{
    core_count_end *end = self->count_end;
    sneck_rlock *rlock = end ? ((core_lock *)self->owner)->rlock : NULL;
    PyThreadState *thread;

    if (!end)
        return;
    self->count_end = NULL;
    thread = PyEval_SaveThread();
    end(rlock, self->counts_for, self->status);
    PyEval_RestoreThread(thread);
}

void core_op_settle(core_op *self)
{
    int status = self->op ? sneck_op_status(self->op) : SNECK_PENDING;

    if (status == SNECK_PENDING)
        return;
    self->status = status;
    if (status == SNECK_OK)
        self->value = value_of(self);
    else
        self->error = error_of(self);
    if (!self->value && !self->error)
        self->error = fetched_error();
    self->lease = sneck_op_lease_number(self->op);
    sneck_op_free(self->op);
    self->op = NULL;
    end_counting(self);
}

/* ------------------------------------------------------------------ methods */

static PyObject *op_cancel(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_op *self = (core_op *)object;

    if (self->op)
        sneck_op_cancel(self->op);
    core_op_settle(self);
    Py_RETURN_NONE;
}

/* Once: an exception that is raised twice would gather tracebacks. */
static PyObject *op_result(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    core_op *self = (core_op *)object;
    PyObject *error = self->error;

    if (self->value)
        return Py_NewRef(self->value);
    if (!error)
        return PyErr_Format(PyExc_RuntimeError, "an op has one result, when it has ended");
    self->error = NULL;
    return core_set_error(error);
}

static PyObject *op_status(PyObject *object, void *Py_UNUSED(closure))
{
    core_op *self = (core_op *)object;

    core_op_settle(self);
    return PyUnicode_FromString(sneck_status_name(self->status));
}

static PyObject *op_lease(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(((core_op *)object)->lease);
}

static void op_dealloc(PyObject *object)
{
    core_op *self = (core_op *)object;

    if (self->op && self->count_end) {
        sneck_op_cancel(self->op);
        self->status = sneck_op_status(self->op);
    }
    sneck_op_free(self->op);
    end_counting(self);
    Py_XDECREF(self->value);
    Py_XDECREF(self->error);
    Py_XDECREF(self->owner);
    core_dealloc(object);
}

/* -------------------------------------------------------------------- type */

static PyMethodDef methods[] = {
    { "cancel", op_cancel, METH_NOARGS,
      PyDoc_STR("cancel($self, /)\n--\n\n"
                "End it now, if it has not ended.") },
    { "result", op_result, METH_NOARGS,
      PyDoc_STR("result($self, /)\n--\n\n"
                "Give what it ended with, or raise it, once.") },
    { "link", core_op_link, METH_NOARGS,
      PyDoc_STR("link($self, /)\n--\n\n"
                "Give the Link to step for it, as long as it has not ended.") },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef attributes[] = {
    { "status", op_status, NULL, PyDoc_STR("'PENDING', or the name of how it ended."), NULL },
    { "lease", op_lease, NULL,
      PyDoc_STR("The number of the lease that it got or confirmed; 0 without one."), NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
    CORE_SLOT(Py_tp_dealloc, op_dealloc),
    { Py_tp_methods, methods },
    { Py_tp_getset, attributes },
    { Py_tp_doc, (void *)PyDoc_STR("One call under way.") },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "sneck._core.Op",
    .basicsize = sizeof(core_op),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int core_add_op(PyObject *module)
{
    core_state *state = PyModule_GetState(module);

    return core_add_type(module, &spec, &state->op_type);
}
