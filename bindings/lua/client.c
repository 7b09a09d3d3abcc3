/* client.c - the type of clients: an owned sneck_client, of one server or several. */
#include "core.h"

#include <stdio.h>

static const char type_name[] = "sneck.client";

core_client *core_check_client(lua_State *L, int arg)
{
    core_client *self = luaL_checkudata(L, arg, type_name);
    if (!self->client)
        core_throw(L, 1, "the client was freed");
    return self;
}

void core_check_refused(lua_State *L, int level, const core_client *client, sneck_op **op)
{
    char error[SNECK_ERROR_SIZE];
    if (!client->is_quorum || !*op || sneck_op_status(*op) != SNECK_INVALID)
        return;
    snprintf(error, sizeof error, "%s", sneck_op_error(*op));
    sneck_op_free(*op);
    *op = NULL;
    core_throw(L, level, "%s", error);
}

/* -------------------------------------------------------------- construction */

enum { URL = 1, URLS = 1, TIMEOUT, CONNECT_TIMEOUT, CLIENT_NAME, PREFIX, LABEL }; /* arguments */

static sneck_client_options check_options(lua_State *L)
{
    const int level = CORE_USER_LEVEL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS;
    options.io_timeout_ms =
        core_opt_seconds(L, level, TIMEOUT, "timeout", false, options.io_timeout_ms);
    options.connect_timeout_ms = core_opt_seconds(L, level, CONNECT_TIMEOUT, "connect_timeout",
                                                  false, options.io_timeout_ms);
    options.client_name = core_opt_text(L, level, CLIENT_NAME, "client_name");
    options.label = core_opt_text(L, level, LABEL, "label");
    if (!lua_isnoneornil(L, PREFIX))
        options.key_prefix =
            core_check_bytes(L, level, PREFIX, "prefix", &options.key_prefix_len);
    return options;
}

static core_client *new_client(lua_State *L)
{
    core_client *self = lua_newuserdatauv(L, sizeof *self, 0);
    *self = (core_client){.client = NULL};
    luaL_setmetatable(L, type_name);
    return self;
}

int core_connect(lua_State *L)
{
    char error[SNECK_ERROR_SIZE];
    const char *url = core_opt_text(L, CORE_USER_LEVEL, URL, "the url");
    sneck_client_options options = check_options(L);
    core_client *self = new_client(L);
    int status = sneck_client_new(&self->client, url, &options, error);
    return status == SNECK_OK ? 1 : core_push_failure(L, status, error, "");
}

/* Pushes so many texts of the table of urls; they are those of `out`, too. */
static void check_urls(lua_State *L, int count, const char **out)
{
    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, URLS, i + 1);
        if (lua_isnil(L, -1))
            core_throw(L, CORE_USER_LEVEL, "a url must be a string, not nil");
        out[i] = core_opt_text(L, CORE_USER_LEVEL, lua_gettop(L), "a url");
    }
}

/* One more than there may be are enough for the library to refuse them. */
int core_quorum(lua_State *L)
{
    char error[SNECK_ERROR_SIZE];
    const char *urls[SNECK_QUORUM_MAX + 1];
    sneck_client_options options = check_options(L);
    size_t count = core_check_list(L, CORE_USER_LEVEL, URLS, "the urls");
    if (count > SNECK_QUORUM_MAX + 1)
        count = SNECK_QUORUM_MAX + 1;
    luaL_checkstack(L, SNECK_QUORUM_MAX + LUA_MINSTACK, "too many urls");
    check_urls(L, (int)count, urls);
    core_client *self = new_client(L);
    self->is_quorum = true;
    int status = sneck_quorum_new(&self->client, count, urls, &options, error);
    return status == SNECK_OK ? 1 : core_push_failure(L, status, error, "");
}

/* ------------------------------------------------------------------- commands */

static int start_command(lua_State *L, core_op **out)
{
    core_client *self = core_check_client(L, 1);
    core_command command = core_check_command(L, 1, 2);
    *out = core_new_op(L);
    int status = sneck_execute_start(&(*out)->op, self->client, NULL, command.count,
                                     command.words, command.lengths);
    core_check_refused(L, 1, self, &(*out)->op);
    return status;
}

static int client_execute(lua_State *L)
{
    core_op *op;
    int status = start_command(L, &op);
    return core_return_result(L, status, op);
}

static int client_execute_start(lua_State *L)
{
    core_op *op;
    return core_return_op(L, start_command(L, &op));
}

/* ------------------------------------------------------ calls about any lock */

typedef int start_function(sneck_op **out, sneck_lock *lock, sneck_link *link);

/* Pushes an op about the lock of the name. The lock object is the op's alone. */
static int start_on_name(lua_State *L, start_function *start, core_op **out)
{
    char error[SNECK_ERROR_SIZE];
    size_t len;
    sneck_lock *lock = NULL;
    core_client *self = core_check_client(L, 1);
    const char *name = core_check_bytes(L, 1, 2, "the name", &len);
    *out = core_new_op(L);
    if (sneck_lock_new(&lock, self->client, name, len, NULL, error) != SNECK_OK)
        core_throw(L, 1, "%s", error);
    int status = start(&(*out)->op, lock, NULL);
    sneck_lock_free(lock);
    return status;
}

static int client_waiters(lua_State *L)
{
    core_op *op;
    int status = start_on_name(L, sneck_lock_waiters_start, &op);
    return core_return_result(L, status, op);
}

static int client_waiters_start(lua_State *L)
{
    core_op *op;
    return core_return_op(L, start_on_name(L, sneck_lock_waiters_start, &op));
}

static int client_force_release(lua_State *L)
{
    core_op *op;
    int status = start_on_name(L, sneck_lock_force_release_start, &op);
    return core_return_result(L, status, op);
}

static int client_force_release_start(lua_State *L)
{
    core_op *op;
    return core_return_op(L, start_on_name(L, sneck_lock_force_release_start, &op));
}

/* -------------------------------------------------------------------- counters */

static void set_count(lua_State *L, const char *name, uint64_t count)
{
    lua_pushinteger(L, (lua_Integer)count);
    lua_setfield(L, -2, name);
}

static const char *wakeups_text(sneck_wakeups wakeups)
{
    switch (wakeups) {
    case SNECK_WAKEUPS_USED: return "used";
    case SNECK_WAKEUPS_DENIED: return "denied";
    case SNECK_WAKEUPS_UNTRIED: break;
    }
    return "untried";
}

static int client_stats(lua_State *L)
{
    sneck_stats stats;
    sneck_client_stats(&stats, core_check_client(L, 1)->client);
    lua_createtable(L, 0, 8);
    set_count(L, "acquisitions", stats.acquisitions);
    set_count(L, "contended", stats.contended);
    set_count(L, "handoffs", stats.handoffs);
    set_count(L, "polls", stats.polls);
    lua_pushnumber(L, (lua_Number)stats.wait_ms / 1000);
    lua_setfield(L, -2, "wait");
    set_count(L, "losses", stats.losses);
    set_count(L, "unknown", stats.unknown);
    lua_pushstring(L, wakeups_text(stats.wakeups));
    lua_setfield(L, -2, "wakeups");
    return 1;
}

/* ---------------------------------------------------------------------- type */

static int client_close(lua_State *L)
{
    core_client *self = luaL_checkudata(L, 1, type_name);
    sneck_client_close(self->client);
    return 0;
}

static int client_free(lua_State *L)
{
    core_client *self = luaL_checkudata(L, 1, type_name);
    sneck_client *client = self->client;
    if (self->pins > 0)
        return 0;
    self->client = NULL;
    sneck_client_free(client);
    return 0;
}

static int client_tostring(lua_State *L)
{
    lua_pushfstring(L, "sneck.client: %p", luaL_checkudata(L, 1, type_name));
    return 1;
}

/* Gives the addresses of its servers. */
static int client_servers(lua_State *L)
{
    const sneck_client *client = core_check_client(L, 1)->client;
    int count = (int)sneck_client_servers(client);
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushstring(L, sneck_client_address(client, (size_t)i));
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static const luaL_Reg meta[] = {
    {"__gc", client_free},
    {"__close", client_close},
    {"__tostring", client_tostring},
    {NULL, NULL},
};

static const luaL_Reg methods[] = {
    {"execute", client_execute},
    {"execute_start", client_execute_start},
    {"waiters", client_waiters},
    {"waiters_start", client_waiters_start},
    {"force_release", client_force_release},
    {"force_release_start", client_force_release_start},
    {"servers", client_servers},
    {"try_lock", core_client_try_lock},
    {"try_lock_start", core_client_try_lock_start},
    {"release_lock", core_client_release_lock},
    {"release_lock_start", core_client_release_lock_start},
    {"stats", client_stats},
    {"close", client_close},
    {NULL, NULL},
};

void core_open_client(lua_State *L)
{
    core_new_type(L, type_name, meta, methods);
}
