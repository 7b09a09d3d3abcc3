/* core.h - what the files of the extension `sneck._core` share.
 *
 * The extension converts values and errors and lets go of the GIL while the C
 * library waits; it decides nothing. It keeps to the limited API of Python 3.10
 * and has no globals: what it needs stands in the module's state. */
#ifndef SNECK_PYTHON_CORE_H
#define SNECK_PYTHON_CORE_H

#include <Python.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sneck.h>
#include <sneck_legacy.h>
#include <sneck_quorum.h>

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
    CORE_Conflict,
    CORE_QuorumImpossible,
    CORE_ERRORS
} core_error;

/* What a renewal thread passes on its way into the interpreter; see lost.c. */
typedef struct core_gate core_gate;

typedef struct core_state {
    PyObject *errors[CORE_ERRORS]; /* owned */
    PyTypeObject *client_type;     /* owned */
    PyTypeObject *lock_type;       /* owned */
    PyTypeObject *tx_type;         /* owned */
    PyTypeObject *op_type;         /* owned */
    PyTypeObject *link_type;       /* owned */
    PyTypeObject *attempts_type;   /* owned */
    PyObject *attempt_ended;       /* owned; unwinds a transaction's function */
    core_gate *gate;               /* a reference */
} core_state;

/* Makes the type, which is the state's at `*out`, and adds it to the module. */
int core_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **out);

int core_add_errors(PyObject *module);

/* Sets the exception for a failed call and returns NULL. `code` is the server's
 * word, "" without one; an empty message means the status's own text. */
PyObject *core_raise(const core_state *state, int status, const char *message,
                     const char *code);

/* Sets an exception, which it takes, and returns NULL. NULL: another one is set already. */
PyObject *core_set_error(PyObject *error);

/* The same exception as core_raise()'s, new and not set. */
PyObject *core_new_error(const core_state *state, int status, const char *message,
                         const char *code);

/* The exception for an op that failed, new and not set. */
PyObject *core_new_op_error(const core_state *state, int status, const sneck_op *op);

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
void core_call_run(core_call *call); /* wait, but without taking the GIL back */
void core_call_end(core_call *call);

/* A sneck_interrupt; `call` is a core_call whose `thread` is saved: lets signal
 * handlers run, and cancels when one of them raises. */
int core_call_interrupt(void *call);

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

/* True or False, and nothing else. */
int core_flag_arg(PyObject *value, const char *what, bool *out);

/* Seconds, int or float, to milliseconds, rounded up. Zero passes only where it
 * is allowed; bool, NaN, negative and endless values never do. */
int core_seconds_arg(PyObject *value, const char *what, bool zero_allowed,
                     int64_t *out_ms);

/* An int of milliseconds; the library refuses what is out of its range. */
int core_ms_arg(PyObject *value, const char *what, int64_t *out_ms);

/* ------------------------------------------------------------------- words */

#define CORE_FEW_WORDS 8 /* commands of so many words need no allocation */

typedef struct core_words {
    size_t count;
    const void **words;
    size_t *lengths;
    PyObject **texts; /* owned; NULL where the argument itself is borrowed */
    const void *few_words[CORE_FEW_WORDS];
    size_t few_lengths[CORE_FEW_WORDS];
    PyObject *few_texts[CORE_FEW_WORDS];
} core_words;

/* What is said of the arguments of a call that takes a command. */
typedef struct core_call_words {
    const char *needs; /* when there is none */
    const char *what;  /* each of them is */
} core_call_words;
extern const core_call_words core_execute_words, core_queue_words;

/* Takes str, bytes and numbers, one at least; to be cleared also after a failure. */
int core_words_read(core_words *words, PyObject *const *args, Py_ssize_t nargs,
                    const core_call_words *call);
void core_words_clear(core_words *words);

/* The same in steps: room for `count` words, and one of them. */
int core_words_init(core_words *words, size_t count);
int core_words_set(core_words *words, size_t index, PyObject *value,
                   const char *what);
int core_words_set_key(core_words *words, size_t index, PyObject *key);

/* Watches keys of a transaction of the library's, whose status goes to *status. -1, with
 * an exception set: one is no key. */
int core_watch_keys(int *status, sneck_tx *tx, PyObject *const *keys, Py_ssize_t count);

/* The keys of a tuple. */
int core_words_read_keys(core_words *words, PyObject *keys);

/* Numbers are sent as Python writes them: a float loses no digit. NULL without an
 * exception: not a number. */
PyObject *core_text_of_number(PyObject *value);

/* A value as it is stored. The TypeError for any other begins with `what`. */
PyObject *core_bytes_of_value(PyObject *value, const char *what);

/* ------------------------------------------------------------------- types */

typedef struct core_client {
    PyObject_HEAD
    const core_state *state; /* of the module, which the type keeps alive */
    sneck_client *client;    /* owned */
} core_client;

int core_add_client(PyObject *module);

/* _core.connect(cls, url, timeout, connect_timeout, client_name, prefix, label), and
 * _core.quorum() of the same with a tuple of urls */
PyObject *core_connect(PyObject *module, PyObject *const *args,
                       Py_ssize_t nargs);
PyObject *core_quorum(PyObject *module, PyObject *const *args,
                      Py_ssize_t nargs);

/* The address of one of its servers. */
PyObject *core_address(const sneck_client *client, size_t server);

typedef struct core_listener core_listener;

typedef struct core_lock {
    PyObject_HEAD
    const core_state *state; /* of the module, which the type keeps alive */
    PyObject *client;        /* owned; the core_client */
    PyObject *name;          /* owned; str or bytes, as it was given */
    sneck_lock *lock;        /* owned; NULL only while it is being made */
    sneck_rlock *rlock;      /* owned; NULL: it does not count */
    PyObject *owner;         /* owned; gives the number of who calls; NULL: the thread's */
    core_listener *listener; /* owned; NULL: nobody is told of its loss */
    int64_t wait_ms;         /* of acquire() without a timeout and of `with` */
    bool renews_in_with;
    atomic_bool adopted; /* its token was not acquired here */
} core_lock;

int core_add_lock(PyObject *module);

/* Client._lock(cls, name, ttl, wait, label, fair, poll, renew, max_hold, fence,
 * listens), Client._rlock() of the same and an owner, and
 * Client._adopt(cls, name, token, ttl, ...) */
PyObject *core_client_lock(PyObject *self, PyObject *const *args,
                           Py_ssize_t nargs);
PyObject *core_client_rlock(PyObject *self, PyObject *const *args,
                            Py_ssize_t nargs);
PyObject *core_client_legacy_lock(PyObject *self, PyObject *const *args,
                            Py_ssize_t nargs);
PyObject *core_client_adopt(PyObject *self, PyObject *const *args,
                            Py_ssize_t nargs);

/* The number of the calling thread or, where Python tells, of the calling task. */
uint64_t core_lock_owner(const core_lock *lock);

/* The library's lock of this owner; borrowed until the owner releases it. */
sneck_lock *core_lock_mine(const core_lock *lock);

/* How long an acquire waits, by the arguments of threading.Lock.acquire(). NULL:
 * not given. */
int core_lock_wait(const core_lock *lock, PyObject *blocking, PyObject *timeout,
                   int64_t *out_ms);

/* Whether this owner holds it once, or not at all. */
bool core_lock_is_outermost(const core_lock *lock);
PyObject *core_lock_outermost(PyObject *lock, void *closure);

/* The exception of who does not hold it, new; an op's counterpart has its message. */
PyObject *core_lock_not_held(const core_lock *lock);

/* Whole calls, which end with core_call_end(). */
void core_lock_acquire(core_lock *lock, int64_t wait_ms, core_call *call);
void core_lock_release(core_lock *lock, core_call *call);
void core_lock_confirm(core_lock *lock, core_call *call); /* an adopted one */
PyObject *core_lock_raise(const core_lock *lock, const core_call *call);

/* The body of a `with`: begun before its acquire, by this owner. core_lock_leave() ends it
 * and is the whole call that releases its lease. False: there is none. */
int core_lock_begin_body(core_lock *lock, uint64_t owner);
bool core_lock_end_body(core_lock *lock, uint64_t owner, uint64_t *out);
void core_lock_leave(core_lock *lock, core_call *call);

/* Methods with the owner as argument, for asyncio. */
PyObject *core_lock_begin_body_of(PyObject *lock, PyObject *owner);
PyObject *core_lock_set_body_of(PyObject *lock, PyObject *const *args, Py_ssize_t nargs);
PyObject *core_lock_end_body_of(PyObject *lock, PyObject *owner);

/* Of a Lock: what others do. */
PyObject *core_lock_holder(PyObject *lock, PyObject *ignored);
PyObject *core_lock_waiters(PyObject *lock, PyObject *ignored);
PyObject *core_lock_force_release(PyObject *lock, PyObject *ignored);

/* What such an op, that ended OK, tells. */
PyObject *core_op_holder(const sneck_op *op);
PyObject *core_op_waiters(const sneck_op *op);
PyObject *core_op_was_held(const sneck_op *op);

/* Of a Lock: its lease. */
PyObject *core_lock_lost(PyObject *lock, void *closure);
PyObject *core_lock_lease(PyObject *lock, void *closure);
PyObject *core_lock_fence(PyObject *lock, void *closure);
PyObject *core_lock_keep_alive(PyObject *lock, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames);

/* Begins or ends the renewal; where it fails, the message goes to `error`. */
int core_lock_renew(const core_lock *lock, bool on, char error[SNECK_ERROR_SIZE]);

PyObject *core_seconds(int64_t ms);

/* The sneck_lock of a Lock; NULL for None. */
int core_lock_arg(const core_state *state, PyObject *value, const char *what,
                  sneck_lock **out);

/* Tells a Lock of its loss by calling its _tell_lost(). The library's on_lost and its
 * data; to be freed after the sneck_lock. */
core_listener *core_listener_new(const core_state *state, PyObject *lock);
void core_listener_free(core_listener *listener);
void core_listener_told(sneck_lock *lock, void *listener);

int core_add_gate(PyObject *module);
void core_gate_drop(core_gate *gate);

/* A new object for an instance of `cls`, which must derive from `base`. */
PyObject *core_alloc(PyObject *cls, PyTypeObject *base);

/* The end of every tp_dealloc: gives back the memory and the type. */
void core_dealloc(PyObject *self);

/* Client._try_lock(key, value, expire_ms, timeout_ms) and Client._release_lock(key, value);
 * and ops on a link that do the same. */
PyObject *core_client_try_lock(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
PyObject *core_client_release_lock(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
PyObject *core_begin_try_lock(core_client *client, sneck_link *link, PyObject *const *args,
                              Py_ssize_t nargs);
PyObject *core_begin_release_lock(core_client *client, sneck_link *link, PyObject *const *args,
                                  Py_ssize_t nargs);

/* Client.execute(*args) and the conversion of its result. */
PyObject *core_client_execute(PyObject *self, PyObject *const *args,
                              Py_ssize_t nargs);
PyObject *core_reply(const core_state *state, const sneck_reply *reply);

/* ------------------------------------------------------------ transactions */

/* One call of a transaction: the GIL is let go of while the library waits, and taken
 * back for the caller's function.
 *
 *     core_run run;                (to be found from `data`)
 *     if (core_run_begin(&run, state, attempts, wait, guard) < 0) return NULL;
 *     run.call.status = sneck_update(..., &run.options, ..., run.error);
 *     core_run_enter(&run);
 *     ...                          if run.call.status is OK, the results
 *     return core_run_end(&run, results, keys);
 */
typedef struct core_run {
    core_call call;
    const core_state *state;
    sneck_tx_options options;
    sneck_tx_report report;
    PyObject *raised[3]; /* owned; the function's exception, as PyErr_Fetch() has it */
    char error[SNECK_ERROR_SIZE];
} core_run;

/* What the caller's function may end with, apart from a status. */
enum { CORE_RAISED = 100, CORE_ABORTED };

/* Lets go of the GIL. NULL for attempts or wait: the library's default; None for
 * wait: for ever. Nothing is begun after a failure. */
int core_run_begin(core_run *run, const core_state *state, PyObject *attempts,
                   PyObject *wait, PyObject *guard);

/* `enter` takes the GIL, for the caller's function and behind the library's; `leave` lets
 * go of it after the caller's, whose exception it keeps. */
void core_run_enter(core_run *run);
void core_run_leave(core_run *run, int status);

/* Gives `results`, None after an abort, or sets the exception; steals `results`,
 * which may be NULL with an exception set. */
PyObject *core_run_end(core_run *run, PyObject *results, PyObject *keys);

/* The options of a transaction from Python's arguments, as core_run_begin() has them. */
int core_tx_options(sneck_tx_options *out, const core_state *state, PyObject *attempts,
                    PyObject *wait, PyObject *guard);

/* Gives a transaction's exception its attributes. `results` may be None. */
int core_tx_describe(PyObject *error, int status, const sneck_tx_report *report,
                     PyObject *results, PyObject *keys);

int core_add_transaction(PyObject *module);

/* Client._transaction(function, keys, attempts, wait, guard),
 * Client._update(key, function, ttl, attempts, wait, guard, keep) and
 * Client._compare_and_set(key, expected, new, ttl) */
PyObject *core_client_transaction(PyObject *self, PyObject *const *args,
                                  Py_ssize_t nargs);
PyObject *core_client_update(PyObject *self, PyObject *const *args,
                             Py_ssize_t nargs);
PyObject *core_client_compare_and_set(PyObject *self, PyObject *const *args,
                                      Py_ssize_t nargs);

/* ------------------------------------------------------------- event loops */

/* What an op gives when it has ended OK. */
typedef enum core_op_kind {
    CORE_OP_PLAIN, /* nothing */
    CORE_OP_HOLDER,
    CORE_OP_WAITERS,
    CORE_OP_FORCE_RELEASE,
    CORE_OP_REPLY,
    CORE_OP_COMMIT
} core_op_kind;

/* Says how what began with PENDING has ended: sneck_rlock_acquire_end() and its like. */
typedef void core_count_end(sneck_rlock *rlock, uint64_t owner, int status);

typedef struct core_op {
    PyObject_HEAD
    const core_state *state; /* of the module, which the type keeps alive */
    core_op_kind kind;
    core_count_end *count_end; /* NULL: nobody counts */
    uint64_t counts_for;       /* the owner, of the core_lock below */
    uint64_t lease;            /* the number of the one that it got, or confirmed; 0: none */
    PyObject *owner;         /* owned; whatever the op is about */
    sneck_op *op;            /* owned; NULL when it has ended */
    int status;
    PyObject *value, *error; /* owned; one of both when it has ended */
} core_op;

/* Makes an op, to be started at once:
 *
 *     core_op *op = (core_op *)core_op_new(state, kind, owner);
 *     return core_op_started((PyObject *)op, sneck_..._start(&op->op, ...));
 */
PyObject *core_op_new(const core_state *state, core_op_kind kind, PyObject *owner);
PyObject *core_op_started(PyObject *op, int status);

/* Takes the outcome and frees the library's op, if it has ended. */
void core_op_settle(core_op *op);

int core_add_op(PyObject *module);
int core_add_link(PyObject *module);
int core_add_attempts(PyObject *module);

/* Op.link(), Client._link() and Client._attempts(keys, attempts, wait, guard) */
PyObject *core_op_link(PyObject *op, PyObject *ignored);
PyObject *core_client_link(PyObject *client, PyObject *ignored);
PyObject *core_client_attempts(PyObject *client, PyObject *const *args, Py_ssize_t nargs);

bool core_is_attempt(const core_state *state, const PyObject *object);
int core_attempt_describe(PyObject *attempts, PyObject *error, int status, PyObject *results);

#endif
