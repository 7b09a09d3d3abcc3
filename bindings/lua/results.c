/* results.c - from the library's outcomes to Lua's values.
 *
 * The op or reply belongs to a userdata, since each push may fail. */
#include "core.h"

#include <string.h>

int core_push_failure(lua_State *L, int status, const char *message, const char *server_code)
{
    lua_pushnil(L);
    lua_pushstring(L, *message ? message : sneck_status_text(status));
    lua_pushstring(L, sneck_status_name(status));
    if (status != SNECK_SERVER)
        return 3;
    lua_pushstring(L, server_code);
    return 4;
}

/* --------------------------------------------------------------- ops that failed */

static void copy_text(char *out, size_t size, const char *text)
{
    size_t len = strlen(text);
    if (len >= size)
        len = size - 1;
    memcpy(out, text, len);
    out[len] = '\0';
}

void core_take_failure(core_failure *out, int status, const sneck_op *op)
{
    out->status = status;
    copy_text(out->message, sizeof out->message, sneck_op_error(op));
    copy_text(out->server_code, sizeof out->server_code, sneck_op_server_code(op));
    out->client = sneck_op_client(op);
    size_t count = out->client ? sneck_client_servers(out->client) : 0;
    for (size_t i = 0; i < count; i++)
        copy_text(out->said[i], sizeof out->said[i], sneck_op_member_error(op, i));
}

static bool servers_failed(const core_failure *failure)
{
    for (size_t i = 0; failure->client && i < sneck_client_servers(failure->client); i++)
        if (*failure->said[i])
            return true;
    return false;
}

/* Pushes a table of what the servers said, by their addresses. */
static void push_servers(lua_State *L, const core_failure *failure)
{
    size_t count = sneck_client_servers(failure->client);
    lua_createtable(L, 0, (int)count);
    for (size_t i = 0; i < count; i++) {
        if (!*failure->said[i])
            continue;
        lua_pushstring(L, failure->said[i]);
        lua_setfield(L, -2, sneck_client_address(failure->client, i));
    }
}

int core_push_op_failure(lua_State *L, const core_failure *failure)
{
    int count = core_push_failure(L, failure->status, failure->message, failure->server_code);
    if (!servers_failed(failure))
        return count;
    if (count == 3)
        lua_pushnil(L); /* no word of the server's */
    lua_createtable(L, 0, 1);
    push_servers(L, failure);
    lua_setfield(L, -2, "servers");
    return 5;
}

/* ------------------------------------------------------------------- replies */

static const char reply_type[] = "sneck.reply";

core_reply *core_new_reply(lua_State *L)
{
    core_reply *self = lua_newuserdatauv(L, sizeof *self, 0);
    self->reply = NULL;
    luaL_setmetatable(L, reply_type);
    return self;
}

void core_clear_reply(core_reply *self)
{
    sneck_reply *reply = self->reply;
    self->reply = NULL;
    sneck_reply_free(reply);
}

static int reply_gc(lua_State *L)
{
    core_clear_reply(luaL_checkudata(L, 1, reply_type));
    return 0;
}

void core_open_reply(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", reply_gc}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{NULL, NULL}};
    core_new_type(L, reply_type, meta, methods);
}

static void push_bytes(lua_State *L, const sneck_reply *reply)
{
    size_t len;
    const char *bytes = sneck_reply_bytes(reply, &len);
    lua_pushlstring(L, bytes ? bytes : "", len);
}

static void push_error(lua_State *L, const sneck_reply *reply)
{
    lua_createtable(L, 0, 1);
    push_bytes(L, reply);
    lua_setfield(L, -2, "err");
}

/* Items may be nil, so their number stands in `n`. */
static void push_array(lua_State *L, const sneck_reply *reply)
{
    int count = (int)sneck_reply_count(reply);
    lua_createtable(L, count, 1);
    lua_pushinteger(L, count);
    lua_setfield(L, -2, "n");
    for (int i = 1; i <= count; i++) {
        core_push_reply(L, sneck_reply_item(reply, (size_t)i - 1));
        lua_rawseti(L, -2, i);
    }
}

void core_push_reply(lua_State *L, const sneck_reply *reply)
{
    luaL_checkstack(L, LUA_MINSTACK, "a reply is nested too deeply");
    switch (sneck_reply_kind(reply)) {
    case SNECK_REPLY_NIL: lua_pushnil(L); break;
    case SNECK_REPLY_BYTES: push_bytes(L, reply); break;
    case SNECK_REPLY_INTEGER: lua_pushinteger(L, (lua_Integer)sneck_reply_integer(reply)); break;
    case SNECK_REPLY_ARRAY: push_array(L, reply); break;
    case SNECK_REPLY_ERROR: push_error(L, reply); break;
    }
}

/* -------------------------------------------------------------------- holders */

static void push_holder(lua_State *L, const sneck_holder *holder)
{
    if (!holder->held) {
        lua_pushnil(L);
        return;
    }
    size_t len = holder->token_len;
    lua_createtable(L, 0, 6);
    lua_pushlstring(L, holder->token, len < sizeof holder->token ? len : sizeof holder->token);
    lua_setfield(L, -2, "token");
    lua_pushstring(L, holder->host);
    lua_setfield(L, -2, "host");
    lua_pushinteger(L, (lua_Integer)holder->pid);
    lua_setfield(L, -2, "pid");
    lua_pushstring(L, holder->label);
    lua_setfield(L, -2, "label");
    lua_pushboolean(L, holder->foreign);
    lua_setfield(L, -2, "foreign");
    if (holder->ttl_ms >= 0) {
        lua_pushnumber(L, (lua_Number)holder->ttl_ms / 1000);
        lua_setfield(L, -2, "ttl");
    }
}

/* -------------------------------------------------------------------- waiters */

static void push_waiter(lua_State *L, const sneck_waiter *waiter)
{
    lua_createtable(L, 0, 4);
    lua_pushstring(L, waiter->host);
    lua_setfield(L, -2, "host");
    lua_pushinteger(L, (lua_Integer)waiter->pid);
    lua_setfield(L, -2, "pid");
    lua_pushstring(L, waiter->label);
    lua_setfield(L, -2, "label");
    lua_pushnumber(L, (lua_Number)waiter->waited_ms / 1000);
    lua_setfield(L, -2, "waited");
}

static void push_waiters(lua_State *L, const sneck_waiter *list, size_t count)
{
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        push_waiter(L, &list[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
}

int core_push_result(lua_State *L, const sneck_op *op)
{
    sneck_holder holder;
    const sneck_waiter *waiters;
    size_t count;
    bool was_held;
    int status = sneck_op_status(op);
    const sneck_reply *reply = sneck_op_reply(op);
    if (status != SNECK_OK) {
        core_failure failure;
        core_take_failure(&failure, status, op);
        int values = core_push_op_failure(L, &failure);
        if (status != SNECK_SERVER || !reply)
            return values;
        core_push_reply(L, reply); /* of writes that failed when they were run */
        return values + 1;
    }
    if (reply)
        core_push_reply(L, reply);
    else if (sneck_op_holder(&holder, op) == SNECK_OK)
        push_holder(L, &holder);
    else if (sneck_op_waiters(&waiters, &count, op) == SNECK_OK)
        push_waiters(L, waiters, count);
    else if (sneck_op_was_held(&was_held, op) == SNECK_OK)
        lua_pushboolean(L, was_held);
    else
        lua_pushboolean(L, 1);
    return 1;
}
