/* op.c - the type of ops: one call under way, driven by any event loop.
 *
 * An op borrows a connection until it is freed. So its result is converted once,
 * kept in the companion table, and the op is freed then, not by the collector. */
#include "core.h"

#include <poll.h>

static const char type_name[] = "sneck.op";

static core_op *check_op(lua_State *L)
{
    return luaL_checkudata(L, 1, type_name);
}

static bool is_pending(const core_op *self)
{
    return self->op && sneck_op_status(self->op) == SNECK_PENDING;
}

static void close_op(core_op *self)
{
    sneck_op *op = self->op;
    self->op = NULL;
    if (op) {
        sneck_op_cancel(op);
        core_count_end(&self->count, sneck_op_status(op), op);
    }
    sneck_op_free(op);
}

core_op *core_new_op(lua_State *L)
{
    core_op *self = lua_newuserdatauv(L, sizeof *self, 1);
    *self = (core_op){.op = NULL};
    luaL_setmetatable(L, type_name);
    return self;
}

int core_return_op(lua_State *L, int status)
{
    return status == SNECK_OK ? 1 : core_push_failure(L, status, "", "");
}

int core_return_result(lua_State *L, int status, core_op *self)
{
    if (status != SNECK_OK)
        return core_push_failure(L, status, "", "");
    core_wait(L, self->op);
    int count = core_push_result(L, self->op);
    close_op(self);
    return count;
}

/* ------------------------------------------------------------------- results */

/* Pushes the result again from the companion table. */
static int push_kept(lua_State *L, const core_op *self)
{
    lua_getiuservalue(L, 1, 1);
    int table = lua_gettop(L);
    for (int i = 1; i <= self->results; i++)
        lua_rawgeti(L, table, i);
    return self->results;
}

static void keep_result(lua_State *L, core_op *self)
{
    int base = lua_gettop(L);
    int count = core_push_result(L, self->op);
    lua_createtable(L, count, 0);
    for (int i = 1; i <= count; i++) {
        lua_pushvalue(L, base + i);
        lua_rawseti(L, -2, i);
    }
    lua_setiuservalue(L, 1, 1);
    self->results = count;
    close_op(self);
}

static int op_result(lua_State *L)
{
    core_op *self = check_op(L);
    if (is_pending(self))
        core_throw(L, 1, "the op has not ended: step it until it has, or wait for it");
    if (self->op)
        keep_result(L, self);
    if (self->results == 0)
        core_throw(L, 1, "the op was closed before its result was taken");
    return push_kept(L, self);
}

static int op_wait(lua_State *L)
{
    core_op *self = check_op(L);
    if (self->op)
        core_wait(L, self->op);
    return op_result(L);
}

/* ------------------------------------------------------------------- driving */

static int op_step(lua_State *L)
{
    core_op *self = check_op(L);
    if (is_pending(self))
        sneck_link_step(sneck_op_link(self->op));
    lua_pushboolean(L, !is_pending(self));
    return 1;
}

static const char *events_text(short events)
{
    if ((events & POLLIN) && (events & POLLOUT))
        return "rw";
    return events & POLLOUT ? "w" : "r";
}

void core_push_fds(lua_State *L, const sneck_link *link)
{
    struct pollfd fds[SNECK_LINK_FDS];
    int count = link ? (int)sneck_link_fds(link, fds) : 0;
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_createtable(L, 0, 2);
        lua_pushinteger(L, fds[i].fd);
        lua_setfield(L, -2, "fd");
        lua_pushstring(L, events_text(fds[i].events));
        lua_setfield(L, -2, "events");
        lua_rawseti(L, -2, i + 1);
    }
}

void core_push_timeout(lua_State *L, const sneck_link *link)
{
    int64_t ms = link ? sneck_link_timeout_ms(link) : 0;
    if (ms < 0)
        lua_pushnil(L);
    else
        lua_pushnumber(L, (lua_Number)ms / 1000);
}

/* NULL when the op has ended. */
static const sneck_link *link_of(lua_State *L)
{
    const core_op *self = check_op(L);
    return is_pending(self) ? sneck_op_link(self->op) : NULL;
}

static int op_fds(lua_State *L)
{
    core_push_fds(L, link_of(L));
    return 1;
}

static int op_timeout(lua_State *L)
{
    core_push_timeout(L, link_of(L));
    return 1;
}

/* For loops that keep what they watch. */
static int op_generation(lua_State *L)
{
    const sneck_link *link = link_of(L);
    lua_pushinteger(L, link ? (lua_Integer)sneck_link_generation(link) : -1);
    return 1;
}

/* The op is freed at once, so that what cleans up behind it leaves. */
static int op_cancel(lua_State *L)
{
    core_op *self = check_op(L);
    if (is_pending(self)) {
        sneck_op_cancel(self->op);
        keep_result(L, self);
    }
    return 0;
}

/* ---------------------------------------------------------------------- type */

static int op_close(lua_State *L)
{
    close_op(check_op(L));
    return 0;
}

static int op_tostring(lua_State *L)
{
    core_op *self = check_op(L);
    lua_pushfstring(L, "sneck.op (%s): %p", is_pending(self) ? "pending" : "ended",
                    (const void *)self);
    return 1;
}

static const luaL_Reg meta[] = {
    {"__gc", op_close},
    {"__close", op_close},
    {"__tostring", op_tostring},
    {NULL, NULL},
};

static const luaL_Reg methods[] = {
    {"step", op_step},
    {"fds", op_fds},
    {"timeout", op_timeout},
    {"generation", op_generation},
    {"result", op_result},
    {"wait", op_wait},
    {"cancel", op_cancel},
    {NULL, NULL},
};

void core_open_op(lua_State *L)
{
    core_new_type(L, type_name, meta, methods);
}
