/* steps.c - the type of transactions whose steps are ops: begin, read, commit, unwatch.
 * The module sneck.async makes of them what transaction.c makes of the call that
 * blocks. */
#include "core.h"

static const char type_name[] = "sneck.steps";

typedef struct core_steps {
    sneck_tx *tx;           /* owned; NULL: freed */
    sneck_tx_report report; /* the library writes to it as long as `tx` lives */
} core_steps;

static core_steps *check_steps(lua_State *L)
{
    core_steps *self = luaL_checkudata(L, 1, type_name);
    if (!self->tx)
        core_throw(L, 1, "the transaction was freed");
    return self;
}

/* (client, keys, attempts, wait, guard) */
int core_steps_new(lua_State *L)
{
    enum { CLIENT = 1, KEYS, ATTEMPTS, WAIT, GUARD, STEPS };
    core_run run;
    char error[SNECK_ERROR_SIZE];
    lua_settop(L, GUARD);
    core_run_begin(L, &run);
    core_run_options(&run, ATTEMPTS);
    core_steps *self = lua_newuserdatauv(L, sizeof *self, 0);
    *self = (core_steps){NULL, {.failed = SIZE_MAX}};
    luaL_setmetatable(L, type_name);
    core_command keys = core_keep_keys(L, KEYS);
    run.options.report = &self->report;
    int status = sneck_tx_new(&self->tx, run.client->client, keys.count, keys.words,
                              keys.lengths, &run.options, error);
    lua_settop(L, STEPS);
    return status == SNECK_OK ? 1 : core_push_failure(L, status, error, "");
}

/* ------------------------------------------------------------------------ ops */

static int begin(lua_State *L, int start(sneck_op **out, sneck_tx *tx))
{
    core_steps *self = check_steps(L);
    core_op *op = core_new_op(L);
    return core_return_op(L, start(&op->op, self->tx));
}

static int steps_begin(lua_State *L)
{
    return begin(L, sneck_tx_begin_start);
}

static int steps_commit(lua_State *L)
{
    return begin(L, sneck_tx_commit_start);
}

static int steps_unwatch(lua_State *L)
{
    return begin(L, sneck_tx_unwatch_start);
}

static int steps_read(lua_State *L)
{
    core_steps *self = check_steps(L);
    core_command command = core_check_command(L, CORE_USER_LEVEL, 2);
    core_op *op = core_new_op(L);
    return core_return_op(L, sneck_tx_read_start(&op->op, self->tx, command.count,
                                                 command.words, command.lengths));
}

/* ------------------------------------------------------------- between two ops */

static int done(lua_State *L, const core_steps *self, int status)
{
    if (status != SNECK_OK)
        return core_push_failure(L, status, sneck_tx_error(self->tx),
                                 sneck_tx_server_code(self->tx));
    lua_pushboolean(L, 1);
    return 1;
}

static int steps_queue(lua_State *L)
{
    core_steps *self = check_steps(L);
    core_command command = core_check_command(L, CORE_USER_LEVEL, 2);
    return done(L, self, sneck_tx_queue(self->tx, command.count, command.words,
                                        command.lengths));
}

/* (key, value or nil, ttl_ms) */
static int steps_put(lua_State *L)
{
    core_steps *self = check_steps(L);
    size_t key_len, len = 0;
    const char *key = core_check_bytes(L, CORE_USER_LEVEL, 2, "the key", &key_len);
    const char *value = lua_isnil(L, 3)
        ? NULL : core_check_bytes(L, CORE_USER_LEVEL, 3, "the value", &len);
    return done(L, self, sneck_tx_put(self->tx, key, key_len, value, len,
                                      luaL_checkinteger(L, 4)));
}

static int steps_watch(lua_State *L)
{
    core_steps *self = check_steps(L);
    size_t len;
    const char *key = core_check_bytes(L, CORE_USER_LEVEL, 2, "a key", &len);
    return done(L, self, sneck_tx_watch(self->tx, key, len));
}

static int steps_conflicts(lua_State *L)
{
    lua_pushinteger(L, sneck_tx_conflicts(check_steps(L)->tx));
    return 1;
}

/* How often the function was run, seconds, and the first write that failed, or nil. */
static int steps_report(lua_State *L)
{
    const sneck_tx_report *report = &check_steps(L)->report;
    lua_pushinteger(L, report->attempts);
    lua_pushnumber(L, (lua_Number)report->elapsed_ms / 1000);
    if (report->failed == SIZE_MAX)
        lua_pushnil(L);
    else
        lua_pushinteger(L, (lua_Integer)report->failed + 1);
    return 3;
}

/* ----------------------------------------------------------------------- type */

static int steps_free(lua_State *L)
{
    core_steps *self = luaL_checkudata(L, 1, type_name);
    sneck_tx *tx = self->tx;
    self->tx = NULL;
    sneck_tx_free(tx);
    return 0;
}

static const luaL_Reg meta[] = {
    {"__gc", steps_free},
    {"__close", steps_free},
    {NULL, NULL},
};

static const luaL_Reg methods[] = {
    {"begin", steps_begin},
    {"read", steps_read},
    {"commit", steps_commit},
    {"unwatch", steps_unwatch},
    {"queue", steps_queue},
    {"put", steps_put},
    {"watch", steps_watch},
    {"conflicts", steps_conflicts},
    {"report", steps_report},
    {"free", steps_free},
    {NULL, NULL},
};

void core_open_steps(lua_State *L)
{
    core_new_type(L, type_name, meta, methods);
}
