/* try_lock.c - the lock that is a key and a value of the caller's, kept by no object. */
#include "core.h"

#include <sneck_legacy.h>

#include <math.h>

/* Arguments, from the client on. */
enum { CLIENT, KEY, VALUE, EXPIRE_MS, TIMEOUT_MS };

static const char *check_some(lua_State *L, int level, int arg, const char *what, size_t *len)
{
    const char *bytes = core_check_bytes(L, level, arg, what, len);
    if (*len == 0)
        core_throw(L, level, "%s must not be empty", what);
    return bytes;
}

/* Milliseconds, a whole number. */
static int64_t check_ms(lua_State *L, int level, int arg, const char *what, int64_t least)
{
    lua_Number ms = lua_tonumber(L, arg);
    if (lua_type(L, arg) != LUA_TNUMBER)
        core_throw(L, level, "%s must be a number of milliseconds, not %s", what,
                   luaL_typename(L, arg));
    if (!(ms >= (lua_Number)least && ms <= (lua_Number)SNECK_TTL_MAX_MS) ||
        ms != (lua_Number)(int64_t)ms)
        core_throw(L, level, "%s must be a whole number of milliseconds, from %d to 365 days",
                   what, (int)least);
    return (int64_t)ms;
}

/* math.huge: no limit; none: one try. */
static int64_t check_timeout(lua_State *L, int level, int arg)
{
    if (lua_isnoneornil(L, arg))
        return 0;
    if (lua_type(L, arg) == LUA_TNUMBER && lua_tonumber(L, arg) == HUGE_VAL)
        return SNECK_FOREVER;
    return check_ms(L, level, arg, "timeout_ms", 0);
}

int core_start_try_lock(lua_State *L, int level, int first, sneck_link *link, sneck_op **out)
{
    size_t key_len, value_len;
    const core_client *client = core_check_client(L, first);
    const char *key = check_some(L, level, first + KEY, "the key", &key_len);
    const char *value = check_some(L, level, first + VALUE, "the value", &value_len);
    int64_t expire_ms = check_ms(L, level, first + EXPIRE_MS, "expire_ms", SNECK_TTL_MIN_MS);
    int64_t timeout_ms = check_timeout(L, level, first + TIMEOUT_MS);
    int status = sneck_try_lock_start(out, client->client, link, key, key_len, value, value_len,
                                      expire_ms, timeout_ms);
    core_check_refused(L, level, client, out);
    return status;
}

int core_start_release_lock(lua_State *L, int level, int first, sneck_link *link,
                            sneck_op **out)
{
    size_t key_len, value_len;
    const core_client *client = core_check_client(L, first);
    const char *key = check_some(L, level, first + KEY, "the key", &key_len);
    const char *value = check_some(L, level, first + VALUE, "the value", &value_len);
    int status = sneck_release_lock_start(out, client->client, link, key, key_len, value,
                                          value_len);
    core_check_refused(L, level, client, out);
    return status;
}

/* ------------------------------------------------------- methods of clients */

typedef int start_function(lua_State *L, int level, int first, sneck_link *link, sneck_op **out);

static int run(lua_State *L, start_function *start, int last)
{
    lua_settop(L, 1 + last);
    core_op *op = core_new_op(L);
    return core_return_result(L, start(L, 1, 1, NULL, &op->op), op);
}

static int begin(lua_State *L, start_function *start, int last)
{
    lua_settop(L, 1 + last);
    core_op *op = core_new_op(L);
    return core_return_op(L, start(L, 1, 1, NULL, &op->op));
}

int core_client_try_lock(lua_State *L)
{
    return run(L, core_start_try_lock, TIMEOUT_MS);
}

int core_client_try_lock_start(lua_State *L)
{
    return begin(L, core_start_try_lock, TIMEOUT_MS);
}

int core_client_release_lock(lua_State *L)
{
    return run(L, core_start_release_lock, VALUE);
}

int core_client_release_lock_start(lua_State *L)
{
    return begin(L, core_start_release_lock, VALUE);
}
