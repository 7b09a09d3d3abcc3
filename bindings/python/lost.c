/* lost.c - the way from a renewal thread, which Python does not know, to a Lock that
 * is told of its loss.
 *
 * A listener is what the library gets as `on_lost_data`. It refers to its Lock weakly,
 * so a lock that nobody has any more is freed, and nobody is told. While a Lock is
 * told it is held; so whoever frees one waits, without the GIL, for nothing longer
 * than a listener that is about to find its Lock gone.
 *
 * A thread that wants the GIL of an interpreter that ends would be stopped where it
 * stands. So there is a gate before each interpreter, which is closed as soon as its
 * atexit functions run, and after whoever is inside has left:
 *
 *   open, n inside ---> closed, n inside ---> closed, nobody inside: it may end
 *
 * Gates and listeners are no memory of the interpreter's: renewal may outlive it. */
#include "core.h"

#include <stdlib.h>
#include <time.h>

struct core_gate {
    atomic_size_t references; /* the module's state and the listeners */
    atomic_size_t inside;     /* threads that have entered and not left */
    atomic_bool closed;       /* for good */
};

struct core_listener {
    core_gate *gate; /* a reference */
    PyInterpreterState *interpreter;
    PyObject *lock; /* owned; a weak reference */
};

/* ----------------------------------------------------------------- the gate */

static core_gate *share_gate(core_gate *gate)
{
    atomic_fetch_add(&gate->references, 1);
    return gate;
}

void core_gate_drop(core_gate *gate)
{
    if (gate && atomic_fetch_sub(&gate->references, 1) == 1)
        free(gate);
}

/* Whoever closes it reads `inside` after that: one of both sees the other. */
static bool enter_gate(core_gate *gate)
{
    atomic_fetch_add(&gate->inside, 1);
    if (!atomic_load(&gate->closed))
        return true;
    atomic_fetch_sub(&gate->inside, 1);
    return false;
}

static void leave_gate(core_gate *gate)
{
    atomic_fetch_sub(&gate->inside, 1);
}

static void pause_without_gil(void)
{
    const struct timespec pause = { 0, 1000000 };
    PyThreadState *thread = PyEval_SaveThread();

    nanosleep(&pause, NULL);
    PyEval_RestoreThread(thread);
}

/* For atexit. Ctrl-C ends the wait. */
static PyObject *close_gate(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    core_gate *gate = ((core_state *)PyModule_GetState(module))->gate;

    atomic_store(&gate->closed, true);
    while (atomic_load(&gate->inside) > 0) {
        pause_without_gil();
        if (PyErr_CheckSignals() < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

/* For os.register_at_fork: the threads inside are the parent's. */
static PyObject *empty_gate(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    atomic_store(&((core_state *)PyModule_GetState(module))->gate->inside, 0);
    Py_RETURN_NONE;
}

/* ----------------------------------------------------------------- listeners */

/* What a weak reference refers to, as a new reference; NULL, and no exception: it is
 * gone. By a call, since that is the one way in all versions of the limited API. */
static PyObject *referent(PyObject *reference)
{
    PyObject *lock = PyObject_CallNoArgs(reference);

    if (!lock)
        PyErr_Clear();
    if (lock != Py_None)
        return lock;
    Py_DECREF(lock);
    return NULL;
}

/* Frees the Lock, and with it the listener, if nobody else has it. */
static void tell(PyObject *lock)
{
    PyObject *result = PyObject_CallMethod(lock, "_tell_lost", NULL);

    if (!result)
        PyErr_WriteUnraisable(lock);
    Py_XDECREF(result);
    Py_DECREF(lock);
}

/* With a thread state of its own, for PyGILState_Ensure() knows but one interpreter. */
static void call_in(PyInterpreterState *interpreter, PyObject *reference)
{
    PyThreadState *thread = PyThreadState_New(interpreter);
    PyObject *lock;

    if (!thread)
        return;
    PyEval_RestoreThread(thread);
    lock = referent(reference);
    if (lock)
        tell(lock);
    PyThreadState_Clear(thread);
    PyEval_SaveThread();
    PyThreadState_Delete(thread);
}

void core_listener_told(sneck_lock *Py_UNUSED(lock), void *data)
{
    const core_listener *self = data;
    core_gate *gate = share_gate(self->gate);

    if (enter_gate(gate)) {
        call_in(self->interpreter, self->lock);
        leave_gate(gate);
    }
    core_gate_drop(gate);
}

core_listener *core_listener_new(const core_state *state, PyObject *lock)
{
    core_listener *self = malloc(sizeof(*self));

    if (!self) {
        PyErr_NoMemory();
        return NULL;
    }
    self->lock = PyWeakref_NewRef(lock, NULL);
    if (!self->lock) {
        free(self);
        return NULL;
    }
    self->interpreter = PyInterpreterState_Get();
    self->gate = share_gate(state->gate);
    return self;
}

void core_listener_free(core_listener *self)
{
    Py_DECREF(self->lock);
    core_gate_drop(self->gate);
    free(self);
}

/* -------------------------------------------------------------------- module */

static int call_with(const char *module, const char *function, const char *keyword,
                     PyObject *value)
{
    PyObject *imported = PyImport_ImportModule(module);
    PyObject *callable = imported ? PyObject_GetAttrString(imported, function) : NULL;
    PyObject *args = keyword ? PyTuple_New(0) : PyTuple_Pack(1, value);
    PyObject *keywords = keyword ? Py_BuildValue("{s:O}", keyword, value) : PyDict_New();
    PyObject *result = NULL;

    if (callable && args && keywords)
        result = PyObject_Call(callable, args, keywords);
    Py_XDECREF(keywords);
    Py_XDECREF(args);
    Py_XDECREF(callable);
    Py_XDECREF(imported);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static int call_at(PyObject *module, PyMethodDef *method, const char *where,
                   const char *function, const char *keyword)
{
    PyObject *callable = PyCFunction_NewEx(method, module, NULL);
    int result = callable ? call_with(where, function, keyword, callable) : -1;

    Py_XDECREF(callable);
    return result;
}

int core_add_gate(PyObject *module)
{
    static PyMethodDef at_exit = { "_close_gate", close_gate, METH_NOARGS, NULL };
    static PyMethodDef at_fork = { "_empty_gate", empty_gate, METH_NOARGS, NULL };
    core_state *state = PyModule_GetState(module);

    state->gate = calloc(1, sizeof(*state->gate));
    if (!state->gate) {
        PyErr_NoMemory();
        return -1;
    }
    atomic_store(&state->gate->references, 1);
    if (call_at(module, &at_exit, "atexit", "register", NULL) < 0)
        return -1;
    return call_at(module, &at_fork, "os", "register_at_fork", "after_in_child");
}
