/* arguments.c - from Python's values to the library's, or a TypeError or
 * ValueError that names the argument. Nothing here does I/O. */
#include "core.h"

#include <math.h>
#include <string.h>

/* A tenth of a microsecond: what `seconds * 1000` may be off by. Without it 0.07
 * seconds would be 71 milliseconds. */
#define ROUNDING_NOISE_MS 1e-4

static Py_ssize_t position_of(const char *const *names, Py_ssize_t count, PyObject *name)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0)
            return i;
    }
    return -1;
}

static int bind_keyword(const char *function, const char *const *names, Py_ssize_t count,
                        Py_ssize_t nargs, PyObject *name, PyObject *value, PyObject **out)
{
    Py_ssize_t place = position_of(names, count, name);

    if (place < 0) {
        PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'",
                     function, name);
        return -1;
    }
    if (place < nargs) {
        PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'",
                     function, name);
        return -1;
    }
    out[place] = value;
    return 0;
}

int core_bind(const char *function, const char *const *names, Py_ssize_t count,
              PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out)
{
    Py_ssize_t keywords = kwnames ? PyTuple_Size(kwnames) : 0;

    if (nargs > count) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %zd arguments (%zd given)",
                     function, count, nargs);
        return -1;
    }
    for (Py_ssize_t i = 0; i < nargs; i++)
        out[i] = args[i];
    for (Py_ssize_t i = 0; i < keywords; i++) {
        if (bind_keyword(function, names, count, nargs, PyTuple_GetItem(kwnames, i),
                         args[nargs + i], out) < 0)
            return -1;
    }
    return 0;
}

static int wrong_type(PyObject *value, const char *what, const char *wanted)
{
    PyObject *attribute = PyUnicode_InternFromString("__name__");
    PyObject *type = NULL;

    if (attribute)
        type = PyObject_GetAttr((PyObject *)Py_TYPE(value), attribute);
    if (type)
        PyErr_Format(PyExc_TypeError, "%s must be %s, not %S", what, wanted, type);
    Py_XDECREF(type);
    Py_XDECREF(attribute);
    return -1;
}

int core_bytes_arg(PyObject *value, const char *what, const char **out, size_t *len)
{
    Py_ssize_t size = 0;

    if (PyUnicode_Check(value)) {
        *out = PyUnicode_AsUTF8AndSize(value, &size);
        if (!*out)
            return -1;
    } else if (PyBytes_Check(value)) {
        *out = PyBytes_AsString(value);
        size = PyBytes_Size(value);
    } else {
        return wrong_type(value, what, "str or bytes");
    }
    *len = (size_t)size;
    return 0;
}

int core_text_arg(PyObject *value, const char *what, const char **out)
{
    Py_ssize_t size = 0;

    if (value == Py_None) {
        *out = NULL;
        return 0;
    }
    if (!PyUnicode_Check(value))
        return wrong_type(value, what, "str or None");
    *out = PyUnicode_AsUTF8AndSize(value, &size);
    if (!*out)
        return -1;
    if (strlen(*out) != (size_t)size) {
        PyErr_Format(PyExc_ValueError, "%s must not hold a NUL character", what);
        return -1;
    }
    return 0;
}

/* Nothing else is a flag: a text such as "no" would be true. */
int core_flag_arg(PyObject *value, const char *what, bool *out)
{
    if (!PyBool_Check(value))
        return wrong_type(value, what, "True or False");
    *out = value == Py_True;
    return 0;
}

static int wrong_seconds(PyObject *value, const char *what, const char *wanted)
{
    PyErr_Format(PyExc_ValueError, "%s must be %s, not %R", what, wanted, value);
    return -1;
}

/* An int too large for a double is as good as endless. */
static int as_double(PyObject *value, const char *what, double *out)
{
    if (PyBool_Check(value))
        return wrong_seconds(value, what, "a number of seconds");
    if (!PyLong_Check(value) && !PyFloat_Check(value))
        return wrong_type(value, what, "a number of seconds");
    *out = PyLong_Check(value) ? PyLong_AsDouble(value) : PyFloat_AsDouble(value);
    if (*out != -1.0 || !PyErr_Occurred())
        return 0;
    if (!PyErr_ExceptionMatches(PyExc_OverflowError))
        return -1;
    PyErr_Clear();
    *out = HUGE_VAL;
    return 0;
}

int core_seconds_arg(PyObject *value, const char *what, bool zero_allowed,
                     int64_t *out_ms)
{
    double seconds = 0.0;
    double ms;

    if (as_double(value, what, &seconds) < 0)
        return -1;
    if (zero_allowed && seconds == 0.0) {
        *out_ms = 0;
        return 0;
    }
    if (!(seconds > 0.0))
        return wrong_seconds(value, what,
                             zero_allowed ? "0 or more seconds" : "more than 0 seconds");
    ms = ceil(seconds * 1000.0 - ROUNDING_NOISE_MS);
    if (ms > (double)SNECK_TTL_MAX_MS) {
        PyErr_Format(PyExc_ValueError, "%s must be at most 365 days", what);
        return -1;
    }
    *out_ms = ms < 1.0 ? 1 : (int64_t)ms;
    return 0;
}

/* Too large an int is as good as endless, and no negative one has a meaning of its own. */
int core_ms_arg(PyObject *value, const char *what, int64_t *out_ms)
{
    int overflow = 0;
    long long ms;

    if (PyBool_Check(value) || !PyLong_Check(value))
        return wrong_type(value, what, "int");
    ms = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (ms == -1 && PyErr_Occurred())
        return -1;
    if (overflow != 0 || ms < 0)
        ms = overflow > 0 ? INT64_MAX : INT64_MIN;
    *out_ms = ms;
    return 0;
}
