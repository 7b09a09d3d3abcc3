/* run.c - one call of a transaction: its options, the way to the user's function and
 * back, and what a call that failed gives.
 *
 * Between start and stop frames of the library lie below the function's, and no error
 * may unwind them: the function is called by pcall, what it threw waits on the stack, and
 * is thrown on after the library has returned. Whatever else is done there must not
 * allocate. */
#include "core.h"

#include <math.h>

#define SLOTS 8 /* more than the stack needs in there */

static int attempts_argument(lua_State *L, int arg, int missing)
{
    if (lua_isnoneornil(L, arg))
        return missing;
    double number = lua_type(L, arg) == LUA_TNUMBER ? (double)lua_tonumber(L, arg) : 0;
    if (!(number >= 1 && number <= INT32_MAX) || number != (double)(int)number)
        core_throw(L, CORE_USER_LEVEL, "attempts must be a whole number from 1 to %d",
                   INT32_MAX);
    return (int)number;
}

static int64_t wait_argument(lua_State *L, int arg, int64_t missing)
{
    if (lua_type(L, arg) == LUA_TNUMBER && (double)lua_tonumber(L, arg) == HUGE_VAL)
        return SNECK_FOREVER;
    return core_opt_seconds(L, CORE_USER_LEVEL, arg, "wait", true, missing);
}

void core_run_begin(lua_State *L, core_run *run)
{
    *run = (core_run){
        .L = L,
        .client = core_check_client(L, 1),
        .options = SNECK_TX_OPTIONS,
        .report = {.attempts = -1, .failed = SIZE_MAX},
    };
}

void core_run_options(core_run *run, int first)
{
    sneck_tx_options *options = &run->options;
    options->attempts = attempts_argument(run->L, first, options->attempts);
    options->wait_ms = wait_argument(run->L, first + 1, options->wait_ms);
    run->guard = core_opt_lock(run->L, CORE_USER_LEVEL, first + 2, "guard");
    options->guard = run->guard ? core_lock_mine(run->L, run->guard) : NULL;
}

static void pin(core_run *run, int by)
{
    run->client->pins += by;
    if (run->guard)
        run->guard->pins += by;
}

void core_run_start(core_run *run)
{
    luaL_checkstack(run->L, SLOTS, "too many calls within each other");
    run->hook = core_hook_now(run->L);
    run->options.interrupt = core_hook_changed;
    run->options.interrupt_data = &run->hook;
    run->options.report = &run->report;
    pin(run, 1);
}

void core_run_stop(core_run *run)
{
    pin(run, -1);
}

bool core_run_call(core_run *run, int arguments, int results)
{
    lua_State *L = run->L;
    bool returned = lua_pcall(L, arguments, results, 0) == 0;
    if (!returned || results > 0)
        lua_replace(L, run->value);
    core_hook_renew(&run->hook); /* what the function has set is no Ctrl-C */
    return returned;
}

/* ------------------------------------------------------------------- the end */

/* Pushes a table for the last conflict. */
static void push_conflict(const core_run *run)
{
    lua_State *L = run->L;
    lua_createtable(L, 0, 3);
    lua_pushinteger(L, run->report.attempts);
    lua_setfield(L, -2, "attempts");
    lua_pushnumber(L, (lua_Number)run->report.elapsed_ms / 1000);
    lua_setfield(L, -2, "waited");
    lua_pushvalue(L, run->keys);
    if (!lua_istable(L, -1)) {
        lua_createtable(L, 1, 0);
        lua_pushvalue(L, run->keys);
        lua_rawseti(L, -2, 1);
        lua_replace(L, -2);
    }
    lua_setfield(L, -2, "keys");
}

/* Pushes a table for writes that failed when they were run. */
static void push_results(const core_run *run, const sneck_reply *results)
{
    lua_State *L = run->L;
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, (lua_Integer)run->report.failed + 1);
    lua_setfield(L, -2, "index");
    core_push_reply(L, results);
    lua_setfield(L, -2, "results");
}

int core_run_fail(core_run *run, int status, const sneck_reply *results)
{
    lua_State *L = run->L;
    if (status == CORE_RAISED) {
        lua_pushvalue(L, run->value);
        return lua_error(L);
    }
    if (status == SNECK_INVALID && run->report.attempts < 0) /* it did not begin */
        return core_throw(L, CORE_USER_LEVEL, "%s", run->error);
    int count = core_push_failure(L, status, run->error, run->report.server_code);
    if (status == SNECK_CONFLICT) {
        lua_pushnil(L); /* no word of the server's */
        push_conflict(run);
        return count + 2;
    }
    if (status == SNECK_SERVER && results && run->report.failed != SIZE_MAX) {
        push_results(run, results);
        return count + 1;
    }
    return count;
}
