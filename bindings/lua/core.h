/* core.h - what the files of the C module `sneck.core` share.
 *
 * The module converts values and errors; it decides nothing. Invariant: any call
 * that may allocate in Lua may not return, for want of memory. So a userdata is
 * made first, empty and with its metatable, and only then is the C object put into
 * it; and an op that is waited for on the C stack is freed before anything is
 * pushed. */
#ifndef SNECK_LUA_CORE_H
#define SNECK_LUA_CORE_H

#include "compat.h"

#include <sneck.h>

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

/* Or false for nil and none. */
bool core_opt_flag(lua_State *L, int level, int arg, const char *what);

/* Any bytes; they belong to the stack. */
const char *core_check_bytes(lua_State *L, int level, int arg, const char *what,
                             size_t *len);

/* Text without NUL, or NULL for nil and none. */
const char *core_opt_text(lua_State *L, int level, int arg, const char *what);

/* Throws a message; never returns. */
int core_throw(lua_State *L, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A command's words. They belong to the stack. */
typedef struct core_command {
    size_t count;
    const void **words;
    size_t *lengths;
} core_command;

/* Takes the arguments from `first` on; numbers become their text. */
core_command core_check_command(lua_State *L, int first);

/* ----------------------------------------------------------------- results */

/* Pushes nil, message, code and, after SERVER, the server's word; returns how
 * many. An empty message means the status's own text. */
int core_push_failure(lua_State *L, int status, const char *message,
                      const char *server_code);

/* Pushes what an op that has ended gives; returns how many values. */
int core_push_result(lua_State *L, const sneck_op *op);

/* --------------------------------------------------------------------- ops */

/* Waits for an op. Ctrl-C of the program `lua` cancels it. */
int core_wait(lua_State *L, sneck_op *op);

/* Waits for an op that has no value to give, frees it and pushes its result.
 * `status` is what the start function returned. */
int core_finish(lua_State *L, int status, sneck_op *op);

/* An op that Lua owns. */
typedef struct core_op {
    sneck_op *op; /* owned; NULL: not started, or its result was taken */
    int results;  /* how many values the companion table has; 0 before */
} core_op;

/* Pushes an op that is not started. */
core_op *core_new_op(lua_State *L);

/* What a function returns that has started the op on top of the stack: the op,
 * or its failure. */
int core_return_op(lua_State *L, int status);

/* What a function returns that has started the op on top of the stack, and waits
 * for it: its result. Frees the op. */
int core_return_result(lua_State *L, int status, core_op *self);

/* ------------------------------------------------------------------- types */

typedef struct core_client {
    sneck_client *client; /* owned; NULL only while it is being made */
} core_client;

core_client *core_check_client(lua_State *L, int arg);

/* Each pushes the metatable of a type. */
void core_open_client(lua_State *L);
void core_open_lock(lua_State *L);
void core_open_op(lua_State *L);

/* Registers a type: its metatable, whose __index has the methods. */
void core_new_type(lua_State *L, const char *name, const luaL_Reg *meta,
                   const luaL_Reg *methods);

/* Functions of the module, called by the functions of sneck/init.lua.
 *
 *     core.connect(url, timeout, connect_timeout, client_name, prefix, label)
 *     core.lock(client, name, token, ttl, wait, label, fair, poll)
 *
 * A lock with a token is an adopted one. */
int core_connect(lua_State *L);
int core_lock_new(lua_State *L);

/* The level of their misuse: sneck/init.lua stands between the user and them. */
#define CORE_USER_LEVEL 2

#pragma GCC visibility pop

#endif
