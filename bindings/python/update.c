/* update.c - Client._update() and Client._compare_and_set(): one key, changed by a
 * function of its value, or if its value is what was expected. */
#include "core.h"

/* -------------------------------------------------------------------- update */

typedef struct update {
    core_run run;
    PyObject *function, *keep;
    PyObject *value; /* owned; the key's value after the change: bytes or None */
} update;

/* Writes what to do, and keeps what the value will be; steals `old` and `new`. */
static int decide(update *u, sneck_change *change, PyObject *old, PyObject *new)
{
    Py_CLEAR(u->value);
    if (new == u->keep) {
        u->value = Py_NewRef(old);
    } else if (new == Py_None) {
        change->kind = SNECK_DELETE;
        u->value = Py_NewRef(Py_None);
    } else if (new) {
        change->kind = SNECK_SET;
        u->value = core_bytes_of_value(new, "the function of update() must return str, bytes,"
                                            " int, float, None or KEEP");
        if (u->value) {
            change->bytes = PyBytes_AsString(u->value);
            change->len = (size_t)PyBytes_Size(u->value);
        }
    }
    Py_XDECREF(old);
    Py_XDECREF(new);
    return u->value ? SNECK_OK : CORE_RAISED;
}

static int run_function(sneck_change *change, const void *old, size_t len, void *data)
{
    update *u = data;
    PyObject *given, *new;
    int status;

    if (u->run.call.raised)
        return SNECK_INTERRUPTED;
    core_run_enter(&u->run);
    given = old ? PyBytes_FromStringAndSize(old, (Py_ssize_t)len) : Py_NewRef(Py_None);
    new = given ? PyObject_CallFunctionObjArgs(u->function, given, NULL) : NULL;
    status = decide(u, change, given, new);
    core_run_leave(&u->run, status);
    return status;
}

static PyObject *run_update(const core_client *self, PyObject *const *args, const char *key,
                            size_t key_len, int64_t ttl_ms)
{
    update u = { .function = args[1], .keep = args[6] };
    PyObject *keys = PyTuple_Pack(1, args[0]);
    PyObject *result = NULL;

    if (!keys)
        return NULL;
    if (core_run_begin(&u.run, self->state, args[3], args[4], args[5]) == 0) {
        u.run.call.status = sneck_update(self->client, key, key_len, ttl_ms, &u.run.options,
                                         run_function, &u, u.run.error);
        core_run_enter(&u.run);
        result = core_run_end(&u.run, Py_XNewRef(u.value), keys);
    }
    Py_XDECREF(u.value);
    Py_DECREF(keys);
    return result;
}

PyObject *core_client_update(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    const char *key;
    size_t key_len;
    int64_t ttl_ms = 0;

    if (nargs != 7)
        return PyErr_Format(PyExc_TypeError, "_update() takes 7 arguments");
    if (!PyCallable_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "update() needs a function, not %R", args[1]);
    if (core_bytes_arg(args[0], "key", &key, &key_len) < 0)
        return NULL;
    if (args[2] != Py_None && core_seconds_arg(args[2], "ttl", false, &ttl_ms) < 0)
        return NULL;
    return run_update((core_client *)self, args, key, key_len, ttl_ms);
}

/* -------------------------------------------------------------- compare, set */

static int read_values(core_words *words, PyObject *const *args)
{
    static const char *const names[] = { "key", "expected", "new" };

    if (core_words_init(words, 3) < 0)
        return -1;
    for (size_t i = 1; i < 3; i++) {
        words->words[i] = NULL;
        words->lengths[i] = 0;
        if (args[i] != Py_None && core_words_set(words, i, args[i], names[i]) < 0)
            return -1;
    }
    return core_words_set_key(words, 0, args[0]);
}

static PyObject *compare_and_set(const core_client *self, const core_words *words, int64_t ttl_ms,
                                 PyObject *keys)
{
    PyObject *result = NULL;
    bool matched = false;
    core_run run;

    if (core_run_begin(&run, self->state, NULL, NULL, Py_None) < 0)
        return NULL;
    run.call.status = sneck_compare_and_set(
        &matched, self->client, words->words[0], words->lengths[0], words->words[1],
        words->lengths[1], words->words[2], words->lengths[2], ttl_ms, &run.options, run.error);
    core_run_enter(&run);
    if (run.call.status == SNECK_OK)
        result = Py_NewRef(matched ? Py_True : Py_False);
    return core_run_end(&run, result, keys);
}

PyObject *core_client_compare_and_set(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *result = NULL;
    PyObject *keys;
    core_words words;
    int64_t ttl_ms = 0;

    if (nargs != 4)
        return PyErr_Format(PyExc_TypeError, "_compare_and_set() takes 4 arguments");
    if (args[3] != Py_None && core_seconds_arg(args[3], "ttl", false, &ttl_ms) < 0)
        return NULL;
    keys = PyTuple_Pack(1, args[0]);
    if (keys && read_values(&words, args) == 0)
        result = compare_and_set((core_client *)self, &words, ttl_ms, keys);
    if (keys)
        core_words_clear(&words);
    Py_XDECREF(keys);
    return result;
}
