/* client.c - the type of clients: an owned sneck_client. */
#include "core.h"

static const char type_name[] = "sneck.client";

core_client *core_check_client(lua_State *L, int arg)
{
    core_client *self = luaL_checkudata(L, arg, type_name);
    if (!self->client)
        core_throw(L, 1, "the client was freed");
    return self;
}

/* -------------------------------------------------------------- construction */

enum { URL = 1, TIMEOUT, CONNECT_TIMEOUT, CLIENT_NAME, PREFIX, LABEL }; /* arguments */

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

int core_connect(lua_State *L)
{
    char error[SNECK_ERROR_SIZE];
    const char *url = core_opt_text(L, CORE_USER_LEVEL, URL, "the url");
    sneck_client_options options = check_options(L);
    core_client *self = lua_newuserdatauv(L, sizeof *self, 0);
    self->client = NULL;
    luaL_setmetatable(L, type_name);
    int status = sneck_client_new(&self->client, url, &options, error);
    return status == SNECK_OK ? 1 : core_push_failure(L, status, error, "");
}

/* ------------------------------------------------------------------- commands */

static int start_command(lua_State *L, core_op **out)
{
    core_client *self = core_check_client(L, 1);
    core_command command = core_check_command(L, 2);
    *out = core_new_op(L);
    return sneck_execute_start(&(*out)->op, self->client, NULL, command.count, command.words,
                               command.lengths);
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
    self->client = NULL;
    sneck_client_free(client);
    return 0;
}

static int client_tostring(lua_State *L)
{
    lua_pushfstring(L, "sneck.client: %p", luaL_checkudata(L, 1, type_name));
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
    {"close", client_close},
    {NULL, NULL},
};

void core_open_client(lua_State *L)
{
    core_new_type(L, type_name, meta, methods);
}
