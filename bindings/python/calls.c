/* calls.c - one call of the library, from letting go of the GIL to its result.
 *
 * Starting an op may resolve a host name, and waiting waits: both are done
 * without the GIL, in one stretch, so that a call costs one hand-over of it. */
#include "core.h"

/* The op is cancelled by a signal handler that raises, as Ctrl-C's does. */
int core_call_interrupt(void *data)
{
    core_call *call = data;

    PyEval_RestoreThread(call->thread);
    call->raised = PyErr_CheckSignals() != 0;
    call->thread = PyEval_SaveThread();
    return call->raised;
}

void core_call_begin(core_call *call)
{
    call->op = NULL;
    call->raised = false;
    call->thread = PyEval_SaveThread();
}

void core_call_run(core_call *call)
{
    if (call->status == SNECK_OK)
        call->status = sneck_op_wait(call->op, core_call_interrupt, call);
}

void core_call_wait(core_call *call)
{
    core_call_run(call);
    PyEval_RestoreThread(call->thread);
}

void core_call_end(core_call *call)
{
    sneck_op_free(call->op);
}

PyObject *core_call_raise(const core_state *state, const core_call *call)
{
    if (call->raised)
        return NULL;
    if (!call->op)
        return core_raise(state, call->status, "", "");
    return core_set_error(core_new_op_error(state, call->status, call->op));
}
