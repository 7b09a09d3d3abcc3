/* run.c - one call of a transaction: the GIL on the way to the caller's function and
 * back, and what the call ends with.
 *
 * Invariant: no exception is set while the library runs. The function's waits in
 * `raised`; a signal handler's, which cancels the call, stays set until the end. */
#include "core.h"

static int attempts_arg(PyObject *value, int *out)
{
    long attempts;

    if (!value)
        return 0;
    if (!PyLong_Check(value) || PyBool_Check(value)) {
        PyErr_Format(PyExc_TypeError, "attempts must be int, not %R", value);
        return -1;
    }
    attempts = PyLong_AsLong(value);
    if (attempts < 1 || attempts > INT32_MAX) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "attempts must be from 1 to %d, not %R", INT32_MAX,
                     value);
        return -1;
    }
    *out = (int)attempts;
    return 0;
}

static int wait_arg(PyObject *value, int64_t *out)
{
    if (!value)
        return 0;
    if (value != Py_None)
        return core_seconds_arg(value, "wait", true, out);
    *out = SNECK_FOREVER;
    return 0;
}

int core_tx_options(sneck_tx_options *out, const core_state *state, PyObject *attempts,
                    PyObject *wait, PyObject *guard)
{
    if (attempts_arg(attempts, &out->attempts) < 0 || wait_arg(wait, &out->wait_ms) < 0)
        return -1;
    return core_lock_arg(state, guard, "guard", &out->guard);
}

int core_run_begin(core_run *run, const core_state *state, PyObject *attempts,
                   PyObject *wait, PyObject *guard)
{
    *run = (core_run){ .state = state, .options = SNECK_TX_OPTIONS };
    if (core_tx_options(&run->options, state, attempts, wait, guard) < 0)
        return -1;
    run->report.failed = SIZE_MAX;
    run->options.report = &run->report;
    run->options.interrupt = core_call_interrupt;
    run->options.interrupt_data = &run->call;
    core_call_begin(&run->call);
    return 0;
}

void core_run_enter(core_run *run)
{
    PyEval_RestoreThread(run->call.thread);
}

void core_run_leave(core_run *run, int status)
{
    if (status == CORE_RAISED)
        PyErr_Fetch(&run->raised[0], &run->raised[1], &run->raised[2]);
    run->call.thread = PyEval_SaveThread();
}

/* ----------------------------------------------------------------- the end */

static int set_attribute(PyObject *error, const char *name, PyObject *value)
{
    int result = value ? PyObject_SetAttrString(error, name, value) : -1;

    Py_XDECREF(value);
    return result;
}

int core_tx_describe(PyObject *error, int status, const sneck_tx_report *report,
                     PyObject *results, PyObject *keys)
{
    if (status == SNECK_CONFLICT)
        return set_attribute(error, "attempts", PyLong_FromLong(report->attempts)) < 0 ||
                       set_attribute(error, "waited", PyFloat_FromDouble(
                                         (double)report->elapsed_ms / 1000.0)) < 0 ||
                       PyObject_SetAttrString(error, "keys", keys) < 0
                   ? -1
                   : 0;
    if (status != SNECK_SERVER || report->failed == SIZE_MAX || results == Py_None)
        return 0;
    if (set_attribute(error, "index", PyLong_FromSize_t(report->failed)) < 0)
        return -1;
    return PyObject_SetAttrString(error, "results", results);
}

static void raise_failure(const core_run *run, PyObject *results, PyObject *keys)
{
    PyObject *error = core_new_error(run->state, run->call.status, run->error,
                                     run->report.server_code);

    if (error && core_tx_describe(error, run->call.status, &run->report,
                                  results ? results : Py_None, keys) == 0)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
}

PyObject *core_run_end(core_run *run, PyObject *results, PyObject *keys)
{
    if (!run->call.raised && run->raised[0]) {
        PyErr_Restore(run->raised[0], run->raised[1], run->raised[2]);
        run->raised[0] = run->raised[1] = run->raised[2] = NULL;
    } else if (!run->call.raised && run->call.status == CORE_ABORTED) {
        return Py_NewRef(Py_None);
    } else if (!PyErr_Occurred()) {
        if (run->call.status == SNECK_OK)
            return results;
        raise_failure(run, results, keys);
    }
    for (size_t i = 0; i < 3; i++)
        Py_XDECREF(run->raised[i]);
    Py_XDECREF(results);
    return NULL;
}
