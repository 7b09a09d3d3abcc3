/* module.c - the module `sneck._core`: its state, and how it comes and goes.
 *
 * Everything is made per module instance, so that subinterpreters do not meet. */
#include "core.h"

static PyObject *milliseconds(PyObject *Py_UNUSED(module), PyObject *seconds)
{
    int64_t ms = 0;

    return core_seconds_arg(seconds, "ttl", false, &ms) < 0 ? NULL : PyLong_FromLongLong(ms);
}

static PyObject *bytes_of(PyObject *Py_UNUSED(module), PyObject *value)
{
    return core_bytes_of_value(value, "a value must be str, bytes, int, float or None");
}

static PyMethodDef methods[] = {
    { "milliseconds", milliseconds, METH_O,
      PyDoc_STR("milliseconds($module, ttl, /)\n--\n\n"
                "Convert seconds, as every ttl is.") },
    { "bytes_of", bytes_of, METH_O,
      PyDoc_STR("bytes_of($module, value, /)\n--\n\n"
                "Convert a value to what is stored.") },
    { "connect", CORE_METHOD(core_connect), METH_FASTCALL,
      PyDoc_STR("connect($module, cls, url, timeout, connect_timeout, client_name, "
                "prefix, label, /)\n--\n\n"
                "Make a client of the class `cls`; nothing is sent.") },
    { "quorum", CORE_METHOD(core_quorum), METH_FASTCALL,
      PyDoc_STR("quorum($module, cls, urls, timeout, connect_timeout, client_name, "
                "prefix, label, /)\n--\n\n"
                "Make a client of several servers; nothing is sent.") },
    { NULL, NULL, 0, NULL },
};

static int add_version(PyObject *module)
{
    return PyModule_AddStringConstant(module, "__version__", sneck_version());
}

int core_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **out)
{
    *out = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *out ? PyModule_AddType(module, *out) : -1;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    core_state *state = PyModule_GetState(module);

    for (size_t i = 0; i < CORE_ERRORS; i++)
        Py_VISIT(state->errors[i]);
    Py_VISIT(state->client_type);
    Py_VISIT(state->lock_type);
    Py_VISIT(state->tx_type);
    Py_VISIT(state->op_type);
    Py_VISIT(state->link_type);
    Py_VISIT(state->attempts_type);
    Py_VISIT(state->attempt_ended);
    return 0;
}

static int module_clear(PyObject *module)
{
    core_state *state = PyModule_GetState(module);

    for (size_t i = 0; i < CORE_ERRORS; i++)
        Py_CLEAR(state->errors[i]);
    Py_CLEAR(state->client_type);
    Py_CLEAR(state->lock_type);
    Py_CLEAR(state->tx_type);
    Py_CLEAR(state->op_type);
    Py_CLEAR(state->link_type);
    Py_CLEAR(state->attempts_type);
    Py_CLEAR(state->attempt_ended);
    return 0;
}

static void module_free(void *module)
{
    core_state *state = PyModule_GetState(module);

    module_clear(module);
    core_gate_drop(state->gate);
}

/* Interpreters with a GIL of their own, and without any, ask whether a module can do
 * so. The limited API has no names for these slots, and a Python refuses those that it
 * does not know: the one that runs decides. Their numbers and values are fixed by the
 * stable ABI. */
#define MULTIPLE_INTERPRETERS { 3, (void *)2 } /* from 3.12: Py_MOD_PER_INTERPRETER_GIL_SUPPORTED */
#define WITHOUT_GIL { 4, (void *)1 }           /* from 3.13: Py_MOD_GIL_NOT_USED */

#define EXEC_SLOTS                                  \
    CORE_SLOT(Py_mod_exec, add_version),            \
        CORE_SLOT(Py_mod_exec, core_add_errors),    \
        CORE_SLOT(Py_mod_exec, core_add_gate),      \
        CORE_SLOT(Py_mod_exec, core_add_client),    \
        CORE_SLOT(Py_mod_exec, core_add_lock),      \
        CORE_SLOT(Py_mod_exec, core_add_transaction), \
        CORE_SLOT(Py_mod_exec, core_add_op),        \
        CORE_SLOT(Py_mod_exec, core_add_link),      \
        CORE_SLOT(Py_mod_exec, core_add_attempts)

static PyModuleDef_Slot slots_from_3_10[] = { EXEC_SLOTS, { 0, NULL } };
static PyModuleDef_Slot slots_from_3_12[] = { EXEC_SLOTS, MULTIPLE_INTERPRETERS, { 0, NULL } };
static PyModuleDef_Slot slots_from_3_13[] = { EXEC_SLOTS, MULTIPLE_INTERPRETERS, WITHOUT_GIL,
                                              { 0, NULL } };

#define DEFINITION(slots)                                             \
    {                                                                 \
        .m_base = PyModuleDef_HEAD_INIT, .m_name = "sneck._core",     \
        .m_doc = PyDoc_STR("The C library behind sneck; private."),   \
        .m_size = sizeof(core_state), .m_methods = methods,           \
        .m_slots = (slots), .m_traverse = module_traverse,            \
        .m_clear = module_clear, .m_free = module_free,               \
    }

static PyModuleDef from_3_10 = DEFINITION(slots_from_3_10);
static PyModuleDef from_3_12 = DEFINITION(slots_from_3_12);
static PyModuleDef from_3_13 = DEFINITION(slots_from_3_13);

static bool runs(int minor)
{
    int running = 0;

    return sscanf(Py_GetVersion(), "3.%d", &running) == 1 && running >= minor;
}

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(runs(13) ? &from_3_13 : runs(12) ? &from_3_12 : &from_3_10);
}
