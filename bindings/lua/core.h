/* core.h - what the files of the C module `sneck.core` share.
 *
 * The module converts values and errors; it decides nothing. Invariant: any call
 * that may allocate in Lua may not return, for want of memory. So a userdata is
 * made first, empty and with its metatable, and only then is the C object put into
 * it; and an op that is waited for on the C stack is freed before anything is
 * pushed. */
#ifndef SNECK_LUA_CORE_H
#define SNECK_LUA_CORE_H

#include <lauxlib.h>
#include <lua.h>
#include <sneck.h>
#include <sneck_legacy.h>
#include <sneck_quorum.h>

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* --------------------------------------------------------------- arguments */

/* Each throws when the argument is not valid, with the position of the function
 * at `level`: 1 called this one, 2 called that. */

/* Seconds to milliseconds, rounded up. */
int64_t core_check_seconds(lua_State *L, int level, int arg, const char *what,
                           bool zero_allowed);

/* As above, or `missing` for nil and none. */
int64_t core_opt_seconds(lua_State *L, int level, int arg, const char *what,
                         bool zero_allowed, int64_t missing);

/* Of a lease; 0 for nil and none. */
int64_t core_opt_ttl(lua_State *L, int level, int arg);

/* Or false for nil and none. */
bool core_opt_flag(lua_State *L, int level, int arg, const char *what);

/* Any bytes; they belong to the stack. */
const char *core_check_bytes(lua_State *L, int level, int arg, const char *what,
                             size_t *len);

void core_check_function(lua_State *L, int level, int arg);

/* Text without NUL, or NULL for nil and none. */
const char *core_opt_text(lua_State *L, int level, int arg, const char *what);

/* Makes a number its text, in its place. False: it is neither that nor a string. */
bool core_to_text(lua_State *L, int arg);

/* Throws a message; never returns. */
int core_throw(lua_State *L, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A command's words. They belong to the stack. */
typedef struct core_command {
    size_t count;
    const void **words;
    size_t *lengths;
} core_command;

/* Pushes room for so many words. */
core_command core_new_command(lua_State *L, size_t count);

/* Takes the arguments from `first` on; numbers become their text. */
core_command core_check_command(lua_State *L, int level, int first);

/* The length of a table; throws if it has holes, which Lua's own length may end at. */
size_t core_check_list(lua_State *L, int level, int arg, const char *what);

/* Pushes a copy of a table of keys, and room for them: the user may change the table. */
core_command core_keep_keys(lua_State *L, int arg);

/* ----------------------------------------------------------------- results */

/* Pushes nil, message, code and, after SERVER, the server's word; returns how
 * many. An empty message means the status's own text. */
int core_push_failure(lua_State *L, int status, const char *message,
                      const char *server_code);

#define CORE_CODE_SIZE 32 /* of a server's word */

/* How an op failed, when the op is gone. The client is borrowed from whatever keeps it. */
typedef struct core_failure {
    int status;
    char message[SNECK_ERROR_SIZE];
    char server_code[CORE_CODE_SIZE];
    const sneck_client *client;
    char said[SNECK_QUORUM_MAX][SNECK_ERROR_SIZE]; /* by its servers; "": nothing was wrong */
} core_failure;

void core_take_failure(core_failure *out, int status, const sneck_op *op);

/* Pushes nil, message, code and, where servers of a quorum had errors of their own, the
 * server's word or nil, and a table with `servers`; returns how many. */
int core_push_op_failure(lua_State *L, const core_failure *failure);

/* Pushes what an op that has ended gives; returns how many values. */
int core_push_result(lua_State *L, const sneck_op *op);

/* Its owner is on the stack, as each push may fail. */
void core_push_reply(lua_State *L, const sneck_reply *reply);

/* A reply that Lua owns, while it is converted. */
typedef struct core_reply {
    sneck_reply *reply; /* owned; NULL: none */
} core_reply;

/* Pushes an owner without a reply. */
core_reply *core_new_reply(lua_State *L);

void core_clear_reply(core_reply *self);

/* --------------------------------------------------------------------- ops */

/* The debug hook of the main thread: Ctrl-C of the program `lua` changes it. */
typedef struct core_hook {
    lua_State *main;
    lua_Hook before;
} core_hook;

core_hook core_hook_now(lua_State *L);

/* Takes note of a hook that the user has set meanwhile. Ctrl-C's, which asks for a call
 * at each instruction, stays a change: it may be there already, and did not run yet. */
void core_hook_renew(core_hook *hook);

/* A sneck_interrupt, whose data is a core_hook. */
int core_hook_changed(void *hook);

/* Waits for an op. Ctrl-C of the program `lua` cancels it. */
int core_wait(lua_State *L, sneck_op *op);

/* Waits for an op that has no value to give, frees it and pushes its result.
 * `status` is what the start function returned. */
int core_finish(lua_State *L, int status, sneck_op *op);

/* An acquire or release of a coroutine, from its begin to its end. */
typedef struct core_count {
    struct core_lock *lock; /* a re-entrant one; NULL: another kind, or it has ended */
    sneck_lock *plain;      /* one of another kind, which the op keeps; or NULL */
    uint64_t owner;
    bool releases; /* or acquires */
} core_count;

/* An op that Lua owns. */
typedef struct core_op {
    sneck_op *op;     /* owned; NULL: not started, or its result was taken */
    int results;      /* how many values the companion table has; 0 before */
    core_count count; /* the companion table keeps its lock */
} core_op;

/* Pushes an op that is not started. */
core_op *core_new_op(lua_State *L);

/* What a function returns that has started the op on top of the stack: the op,
 * or its failure. */
int core_return_op(lua_State *L, int status);

/* What a function returns that has started the op on top of the stack, and waits
 * for it: its result. Frees the op. */
int core_return_result(lua_State *L, int status, core_op *self);

/* Pushes what to wait for: a list of {fd, events}, and seconds or nil. The link may be
 * NULL. */
void core_push_fds(lua_State *L, const sneck_link *link);
void core_push_timeout(lua_State *L, const sneck_link *link);

/* ------------------------------------------------------------------- types */

/* While a call is under way that runs a function of the user's, what it uses is
 * pinned: that function may do anything, also call a finalizer. */
typedef struct core_client {
    sneck_client *client; /* owned; NULL only while it is being made */
    int pins;             /* not freed unless 0 */
    bool is_quorum;
} core_client;

core_client *core_check_client(lua_State *L, int arg);

/* Frees the op and throws, where the client is a quorum's and has refused it, as it does each
 * time: that is misuse, which the nil of a failure would pass off as a reply, or as a lock that
 * is busy. */
void core_check_refused(lua_State *L, int level, const core_client *client, sneck_op **op);

/* Methods of clients. */
int core_client_try_lock(lua_State *L);
int core_client_try_lock_start(lua_State *L);
int core_client_release_lock(lua_State *L);
int core_client_release_lock_start(lua_State *L);

/* Start these on a link, NULL: on one of the client's own. The arguments are from `first`
 * on, the client being the first. */
int core_start_try_lock(lua_State *L, int level, int first, sneck_link *link, sneck_op **out);
int core_start_release_lock(lua_State *L, int level, int first, sneck_link *link,
                            sneck_op **out);

enum core_lock_kind {
    CORE_LOCK_PLAIN,
    CORE_LOCK_COUNTED, /* its coroutine may acquire it again */
    CORE_LOCK_LEGACY,  /* a timestamp lock */
};

typedef struct core_lock {
    enum core_lock_kind kind;
    sneck_lock *lock;    /* owned; NULL only while it is being made */
    sneck_rlock *rlock;  /* owned; NULL: it is not re-entrant. `lock` is never acquired then:
                          * it answers for coroutines that hold none */
    int64_t wait_ms;     /* of an acquire that is not told */
    bool adopted;        /* it was made with a token, and not acquired since */
    bool renews_in_hold; /* hold() begins its renewal */
    int pins;            /* not freed unless 0 */
} core_lock;

/* The first argument. */
core_lock *core_check_lock(lua_State *L);

/* NULL for nil and none. */
core_lock *core_opt_lock(lua_State *L, int level, int arg, const char *what);

/* ----------------------------------------------------------- re-entrant locks */

/* Makes the table of the coroutines' numbers. */
void core_open_owners(lua_State *L);

/* The lock of the running coroutine. It may be gone after its release. */
sneck_lock *core_lock_mine(lua_State *L, const core_lock *self);

/* The running coroutine has acquired it once, not within itself. */
bool core_lock_is_outermost(lua_State *L, const core_lock *self);

/* Acquire and release, counted where the lock is re-entrant; push the result and return how
 * many values it has. Nothing is allocated between a success and the return. */
int core_lock_acquire(lua_State *L, core_lock *self, int64_t wait_ms);
int core_lock_release(lua_State *L, core_lock *self);

/* The same around any op. After PENDING, which is all that other kinds of locks give, *out is
 * the lock for the op, whose end is to be told before it is freed; NULL: it was not started.
 * Anything else is the result. */
int core_count_acquire(lua_State *L, core_count *count, core_lock *self, sneck_lock **out);
int core_count_release(lua_State *L, core_count *count, core_lock *self, sneck_lock **out);
void core_count_end(core_count *count, int status, const sneck_op *op);

/* The beginning of an op that confirms an adopted lock, as for one that acquires it. */
void core_count_confirm(lua_State *L, core_count *count, core_lock *self);

/* Waits for an op that was started, or not, tells its end and pushes its result. */
int core_count_finish(lua_State *L, core_count *count, int started, sneck_op *op);

/* Pushes that result. */
int core_push_counted(lua_State *L, const core_lock *self, int status);

/* --------------------------------------------------------------------- leases */

/* Methods of locks. */
int core_lock_lost(lua_State *L);
int core_lock_lease(lua_State *L);
int core_lock_fence(lua_State *L);
int core_lock_keep_alive(lua_State *L);
int core_lock_hold(lua_State *L);

/* The block of a coroutine that needs a lock begins, before its acquire. False: no memory. */
bool core_lock_begin_body(lua_State *L, core_lock *self);

/* It ends. What is to be done then: */
enum core_leaving {
    CORE_LEAVE_NOTHING, /* nothing to release, nor a loss to tell */
    CORE_LEAVE_LEASE,   /* release the lease with this number, and no other */
    CORE_LEAVE_LOCK,    /* release whatever it has: there was no hold() */
};
enum core_leaving core_lock_end_body(lua_State *L, core_lock *self, uint64_t *number);

/* -------------------------------------------------------------------- opening */

/* Whatever thread may run it. */
void core_stay_loaded(void);

/* Each pushes the metatable of a type. */
void core_open_client(lua_State *L);
void core_open_descriptor(lua_State *L);
void core_open_link(lua_State *L);
void core_open_lock(lua_State *L);
void core_open_op(lua_State *L);
void core_open_reply(lua_State *L);
void core_open_steps(lua_State *L);
void core_open_transaction(lua_State *L);

/* Registers a type: its metatable, whose __index has the methods. */
void core_new_type(lua_State *L, const char *name, const luaL_Reg *meta,
                   const luaL_Reg *methods);

/* Functions of the module, called by the functions of sneck/init.lua.
 *
 *     core.connect(url, timeout, connect_timeout, client_name, prefix, label)
 *     core.quorum(urls, the same)
 *     core.lock(client, name, token, ttl, wait, label, fair, poll, renew, max_hold, fence)
 *     core.rlock(the same), core.legacy_lock(the same, milliseconds)
 *     core.settle(lock)
 *     core.update(client, key, function, keep, ttl, attempts, wait, guard)
 *     core.compare_and_set(client, key, expected, new, ttl)
 *     core.transaction(client, keys, function, attempts, wait, guard)
 *
 * A lock with a token is an adopted one. settle() releases the lock at the end of a block;
 * one that is not there to release, and was not lost, is fine. `keep` is what an update's function returns
 * to leave the value. */
int core_connect(lua_State *L);
int core_quorum(lua_State *L);
int core_lock_new(lua_State *L);
int core_rlock_new(lua_State *L);
int core_legacy_lock_new(lua_State *L);
int core_lock_settle(lua_State *L);
int core_update(lua_State *L);
int core_compare_and_set(lua_State *L);
int core_transaction(lua_State *L);

/* And by those of sneck/async.lua.
 *
 *     core.begin_body(lock), core.end_body(lock)
 *     core.is_adopted(lock)
 *     core.keep(lock)
 *     core.link(client)
 *     core.steps(client, keys, attempts, wait, guard)
 *     core.text(value)
 *     core.milliseconds(seconds, what)
 *     core.poll(entries, timeout)
 *     core.clock()
 *     core.duplicate(descriptor)
 *
 * begin_body() is to come before the acquire of hold(); where that fails, end_body().
 * is_adopted() tells whether hold() has to confirm the lock, and not to acquire it. keep()
 * begins the renewal that hold() promises; where it fails, the lock is to be released. */
int core_begin_body(lua_State *L);
int core_end_body(lua_State *L);
int core_lock_is_adopted(lua_State *L);
int core_lock_keep(lua_State *L);
int core_link_new(lua_State *L);
int core_steps_new(lua_State *L);
int core_text(lua_State *L);
int core_milliseconds(lua_State *L);
int core_poll(lua_State *L);
int core_clock(lua_State *L);
int core_duplicate(lua_State *L);

/* The level of their misuse: sneck/init.lua stands between the user and them. */
#define CORE_USER_LEVEL 2

/* ------------------------------------------------------------ transactions */

/* One call of a transaction. It stands on the C stack, so nothing may throw while the
 * library runs, between core_run_start() and core_run_stop(). */
typedef struct core_run {
    lua_State *L;
    core_client *client;
    core_lock *guard;   /* NULL: none */
    int keys;           /* where on the stack the key or the table of keys is */
    int value;          /* where there is room for what the function returns or throws */
    core_hook hook;
    sneck_tx_options options;
    sneck_tx_report report;
    char error[SNECK_ERROR_SIZE];
} core_run;

/* What the user's function ended with, beside the library's own outcomes. */
enum { CORE_RAISED = 100, CORE_ABORTED };

/* Begins a call whose first argument is the client. */
void core_run_begin(lua_State *L, core_run *run);

/* Takes the arguments attempts, wait and guard, from `first` on. */
void core_run_options(core_run *run, int first);

void core_run_start(core_run *run);
void core_run_stop(core_run *run);

/* Calls the function that lies on the stack below its arguments; true if it returned.
 * Its result, if one is wanted, or what it threw goes to its place. Never throws. */
bool core_run_call(core_run *run, int arguments, int results);

/* Pushes why the call failed; returns how many values. `results` are what the writes
 * gave, or NULL. Throws what the function threw, and misuse. */
int core_run_fail(core_run *run, int status, const sneck_reply *results);

#pragma GCC visibility pop

#endif
