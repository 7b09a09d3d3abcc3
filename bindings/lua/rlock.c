/* rlock.c - a lock that counts: it belongs to a coroutine, which may acquire it again.
 *
 * The library keeps a lock for each coroutine that has it or waits for it. A coroutine is
 * known by a number, which, unlike its address, is never given again: a table with weak
 * keys has them, and the last one at 1. */
#include "core.h"

static const char owners[] = "sneck.owners";

void core_open_owners(lua_State *L)
{
    luaL_newmetatable(L, owners); /* its own metatable */
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_pushvalue(L, -1);
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

/* Gives the coroutine a number in the table on top of the stack. */
static lua_Integer add_owner(lua_State *L)
{
    lua_rawgeti(L, -1, 1);
    lua_Integer number = lua_tointeger(L, -1) + 1;
    lua_pop(L, 1);
    lua_pushinteger(L, number);
    lua_rawseti(L, -2, 1);
    lua_pushthread(L);
    lua_pushinteger(L, number);
    lua_rawset(L, -3);
    return number;
}

static uint64_t this_coroutine(lua_State *L)
{
    luaL_getmetatable(L, owners);
    lua_pushthread(L);
    lua_rawget(L, -2);
    lua_Integer number = lua_tointeger(L, -1);
    lua_pop(L, 1);
    if (number == 0)
        number = add_owner(L);
    lua_pop(L, 1);
    return (uint64_t)number;
}

static uint64_t owner_of(lua_State *L, const core_lock *self)
{
    return self->rlock ? this_coroutine(L) : 0;
}

sneck_lock *core_lock_mine(lua_State *L, const core_lock *self)
{
    sneck_lock *mine = self->rlock ? sneck_rlock_lock(self->rlock, this_coroutine(L)) : NULL;
    return mine ? mine : self->lock;
}

bool core_lock_is_outermost(lua_State *L, const core_lock *self)
{
    return !self->rlock || sneck_rlock_count(self->rlock, this_coroutine(L)) == 1;
}

/* Pushes the result of what was counted without an op. */
static int push_counted(lua_State *L, const core_lock *self, int status)
{
    if (status != SNECK_OK)
        return core_push_failure(L, status, sneck_rlock_error(self->rlock), "");
    lua_pushboolean(L, 1);
    return 1;
}

int core_lock_acquire(lua_State *L, core_lock *self, int64_t wait_ms)
{
    uint64_t owner = owner_of(L, self);
    sneck_lock *lock = self->lock;
    sneck_op *op = NULL;
    int status = SNECK_PENDING;
    self->adopted = false;
    if (self->rlock)
        status = sneck_rlock_acquire_begin(&lock, self->rlock, owner);
    if (status != SNECK_PENDING)
        return push_counted(L, self, status);
    int started = sneck_lock_acquire_start(&op, lock, NULL, wait_ms);
    status = started == SNECK_OK ? core_wait(L, op) : started;
    if (self->rlock)
        sneck_rlock_acquire_end(self->rlock, owner, status);
    return core_finish(L, started, op);
}

int core_lock_release(lua_State *L, core_lock *self)
{
    uint64_t owner = owner_of(L, self);
    sneck_lock *lock = self->lock;
    sneck_op *op = NULL;
    int status = SNECK_PENDING;
    if (self->rlock)
        status = sneck_rlock_release_begin(&lock, self->rlock, owner);
    if (status != SNECK_PENDING)
        return push_counted(L, self, status);
    int started = sneck_lock_release_start(&op, lock, NULL);
    status = started == SNECK_OK ? core_wait(L, op) : started;
    if (self->rlock)
        sneck_rlock_release_end(self->rlock, owner, status);
    return core_finish(L, started, op);
}
