/* update.c - one key, changed by a function of its value, or if its value is what was
 * expected. */
#include "core.h"

/* -------------------------------------------------------------------- update */

enum { CLIENT = 1, KEY, FUNCTION, KEEP, TTL, ATTEMPTS, WAIT, GUARD, /* arguments */
       TRAMPOLINE, VALUE };

typedef struct update {
    core_run run;
    const void *old;     /* borrowed, while the function runs; NULL: absent */
    size_t old_len;
    sneck_change *change; /* likewise */
} update;

/* (update, function, keep): calls the function with the old value, and returns what
 * the value will be. A function of its own, for it may throw. */
static int call_function(lua_State *L)
{
    enum { SELF = 1, FUNCTION_ARG, KEEP_ARG, OLD, NEW };
    const update *u = lua_touserdata(L, SELF);
    if (u->old)
        lua_pushlstring(L, u->old, u->old_len);
    else
        lua_pushnil(L);
    lua_pushvalue(L, FUNCTION_ARG);
    lua_pushvalue(L, OLD);
    lua_call(L, 1, 1);
    if (lua_rawequal(L, NEW, KEEP_ARG)) {
        lua_pushvalue(L, OLD);
        return 1;
    }
    if (!lua_isnil(L, NEW) && !core_to_text(L, NEW))
        core_throw(L, CORE_USER_LEVEL + 1, "the function of update() must return a string, a"
                   " number, nil or sneck.KEEP, not %s", luaL_typename(L, NEW));
    u->change->kind = lua_isnil(L, NEW) ? SNECK_DELETE : SNECK_SET;
    return 1;
}

static int run_function(sneck_change *change, const void *old, size_t old_len, void *data)
{
    update *u = data;
    lua_State *L = u->run.L;
    u->old = old;
    u->old_len = old_len;
    u->change = change;
    lua_pushvalue(L, TRAMPOLINE);
    lua_pushlightuserdata(L, u);
    lua_pushvalue(L, FUNCTION);
    lua_pushvalue(L, KEEP);
    if (!core_run_call(&u->run, 3, 1))
        return CORE_RAISED;
    if (change->kind == SNECK_SET)
        change->bytes = lua_tolstring(L, VALUE, &change->len); /* it stays on the stack */
    return SNECK_OK;
}

static int64_t ttl_argument(lua_State *L, int arg)
{
    return core_opt_seconds(L, CORE_USER_LEVEL, arg, "ttl", false, 0);
}

int core_update(lua_State *L)
{
    update u;
    size_t key_len;
    lua_settop(L, GUARD);
    core_run_begin(L, &u.run);
    const char *key = core_check_bytes(L, CORE_USER_LEVEL, KEY, "the key", &key_len);
    core_check_function(L, CORE_USER_LEVEL, FUNCTION);
    int64_t ttl_ms = ttl_argument(L, TTL);
    core_run_options(&u.run, ATTEMPTS);
    u.run.keys = KEY;
    u.run.value = VALUE;
    lua_pushcfunction(L, call_function);
    lua_pushnil(L);
    core_run_start(&u.run);
    int status = sneck_update(u.run.client->client, key, key_len, ttl_ms, &u.run.options,
                              run_function, &u, u.run.error);
    core_run_stop(&u.run);
    if (status != SNECK_OK)
        return core_run_fail(&u.run, status, NULL);
    lua_pushvalue(L, VALUE);
    return 1;
}

/* -------------------------------------------------------------- compare, set */

/* The bytes of a string or a number; NULL for nil. They belong to the stack. */
static const char *opt_value(lua_State *L, int arg, const char *what, size_t *len)
{
    *len = 0;
    if (lua_isnil(L, arg))
        return NULL;
    if (!core_to_text(L, arg))
        core_throw(L, CORE_USER_LEVEL, "%s must be a string, a number or nil, not %s", what,
                   luaL_typename(L, arg));
    return lua_tolstring(L, arg, len);
}

int core_compare_and_set(lua_State *L)
{
    enum { EXPECTED = KEY + 1, NEW, COMPARE_TTL };
    core_run run;
    size_t key_len, expected_len, new_len;
    bool matched = false;
    lua_settop(L, COMPARE_TTL);
    core_run_begin(L, &run);
    const char *key = core_check_bytes(L, CORE_USER_LEVEL, KEY, "the key", &key_len);
    const char *expected = opt_value(L, EXPECTED, "the expected value", &expected_len);
    const char *new = opt_value(L, NEW, "the new value", &new_len);
    int64_t ttl_ms = ttl_argument(L, COMPARE_TTL);
    run.keys = KEY;
    core_run_start(&run);
    int status = sneck_compare_and_set(&matched, run.client->client, key, key_len, expected,
                                       expected_len, new, new_len, ttl_ms, &run.options,
                                       run.error);
    core_run_stop(&run);
    if (status != SNECK_OK)
        return core_run_fail(&run, status, NULL);
    lua_pushboolean(L, matched);
    return 1;
}
