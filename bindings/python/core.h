/* core.h - what the files of the extension `sneck._core` share.
 *
 * The extension converts values and errors and lets go of the GIL while the C
 * library waits; it decides nothing. It keeps to the limited API of Python 3.10
 * and has no globals: what it needs stands in the module's state. */
#ifndef SNECK_PYTHON_CORE_H
#define SNECK_PYTHON_CORE_H

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include <sneck.h>

/* A slot of a type or module. ISO C has no conversion from a function to a
 * `void *`; POSIX, whose systems these are, has. */
#define CORE_SLOT(id, function) { id, __extension__ (void *)(function) }

/* A method whose C type depends on its flags, as a PyMethodDef wants it. */
#define CORE_METHOD(function) ((PyCFunction)(void (*)(void))(function))

/* ------------------------------------------------------------------ errors */

/* The third column of status.def, and the class above them all. */
typedef enum core_error {
    CORE_Error,
    CORE_LockTimeout,
    CORE_NotOwned,
    CORE_OutcomeUnknown,
    CORE_ConnectionError,
    CORE_ServerError,
    CORE_ProtocolError,
    CORE_Interrupted,
    CORE_ValueError,
    CORE_MemoryError,
    CORE_ERRORS
} core_error;

typedef struct core_state {
    PyObject *errors[CORE_ERRORS]; /* owned */
    PyTypeObject *client_type;     /* owned */
    PyTypeObject *lock_type;       /* owned */
} core_state;

int core_add_errors(PyObject *module);

/* Sets the exception for a failed call and returns NULL. `code` is the server's
 * word, "" without one; an empty message means the status's own text. */
PyObject *core_raise(const core_state *state, int status, const char *message,
                     const char *code);

/* A new ServerError for an error reply inside of an array. */
PyObject *core_server_error(const core_state *state, const char *text,
                            size_t len);

/* ------------------------------------------------------------------- calls */

/* One call of the library under way without the GIL:
 *
 *     core_call call;
 *     core_call_begin(&call);
 *     call.status = sneck_lock_release_start(&call.op, lock, NULL);
 *     core_call_wait(&call);
 *     ...                          read call.status and the op's results
 *     core_call_end(&call);
 *
 * Between begin and wait no Python object may be touched. */
typedef struct core_call {
    sneck_op *op;
    int status;
    PyThreadState *thread; /* saved while the GIL is not held */
    bool raised;           /* a signal handler raised; its exception is set */
} core_call;

void core_call_begin(core_call *call);
void core_call_wait(core_call *call);
void core_call_end(core_call *call);

/* Sets the exception of a call that failed and returns NULL; a signal handler's
 * exception goes before the library's. */
PyObject *core_call_raise(const core_state *state, const core_call *call);

/* --------------------------------------------------------------- arguments */

/* Puts positional and keyword arguments into `out`, which has one place for each
 * of `count` names and holds the defaults. References are borrowed. */
int core_bind(const char *function, const char *const *names, Py_ssize_t count,
              PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
              PyObject **out);

/* The bytes of a str (as UTF-8) or bytes; borrowed from the object. */
int core_bytes_arg(PyObject *value, const char *what, const char **out,
                   size_t *len);

/* The text of a str without NUL, NULL for None; borrowed from the object. */
int core_text_arg(PyObject *value, const char *what, const char **out);

/* Seconds, int or float, to milliseconds, rounded up. Zero passes only where it
 * is allowed; bool, NaN, negative and endless values never do. */
int core_seconds_arg(PyObject *value, const char *what, bool zero_allowed,
                     int64_t *out_ms);

/* ------------------------------------------------------------------- types */

typedef struct core_client {
    PyObject_HEAD
    const core_state *state; /* of the module, which the type keeps alive */
    sneck_client *client;    /* owned */
} core_client;

int core_add_client(PyObject *module);

/* _core.connect(cls, url, timeout, connect_timeout, client_name, prefix, label) */
PyObject *core_connect(PyObject *module, PyObject *const *args,
                       Py_ssize_t nargs);

int core_add_lock(PyObject *module);

/* Client._lock(cls, name, ttl, wait, label, fair, poll) and
 * Client._adopt(cls, name, token, ttl, wait, label, fair, poll) */
PyObject *core_client_lock(PyObject *self, PyObject *const *args,
                           Py_ssize_t nargs);
PyObject *core_client_adopt(PyObject *self, PyObject *const *args,
                            Py_ssize_t nargs);

/* A new object for an instance of `cls`, which must derive from `base`. */
PyObject *core_alloc(PyObject *cls, PyTypeObject *base);

/* The end of every tp_dealloc: gives back the memory and the type. */
void core_dealloc(PyObject *self);

/* Client.execute(*args) and the conversion of its result. */
PyObject *core_client_execute(PyObject *self, PyObject *const *args,
                              Py_ssize_t nargs);
PyObject *core_reply(const core_state *state, const sneck_reply *reply);

#endif
