/* execute.c - Client.execute(): Python values to one command, its reply back. */
#include "core.h"

static PyObject *run(core_client *self, const core_words *words)
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
    core_words words;

    if (core_words_read(&words, args, nargs, &core_execute_words) == 0)
        result = run((core_client *)self, &words);
    core_words_clear(&words);
    return result;
}
