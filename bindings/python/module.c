/* module.c - the module `sneck._core`: its state, and how it comes and goes.
 *
 * Everything is made per module instance, so that subinterpreters do not meet. */
#include "core.h"

static PyMethodDef methods[] = {
    { "connect", CORE_METHOD(core_connect), METH_FASTCALL,
      PyDoc_STR("connect($module, cls, url, timeout, connect_timeout, client_name, "
                "prefix, label, /)\n--\n\n"
                "Make a client of the class `cls`; nothing is sent.") },
    { NULL, NULL, 0, NULL },
};

static int add_version(PyObject *module)
{
    return PyModule_AddStringConstant(module, "__version__", sneck_version());
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    core_state *state = PyModule_GetState(module);

    for (size_t i = 0; i < CORE_ERRORS; i++)
        Py_VISIT(state->errors[i]);
    Py_VISIT(state->client_type);
    Py_VISIT(state->lock_type);
    Py_VISIT(state->tx_type);
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
    Py_CLEAR(state->attempt_ended);
    return 0;
}

static void module_free(void *module)
{
    module_clear(module);
}

static PyModuleDef_Slot slots[] = {
    CORE_SLOT(Py_mod_exec, add_version),
    CORE_SLOT(Py_mod_exec, core_add_errors),
    CORE_SLOT(Py_mod_exec, core_add_client),
    CORE_SLOT(Py_mod_exec, core_add_lock),
    CORE_SLOT(Py_mod_exec, core_add_transaction),
    { 0, NULL },
};

static PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "sneck._core",
    .m_doc = PyDoc_STR("The C library behind sneck; private."),
    .m_size = sizeof(core_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
