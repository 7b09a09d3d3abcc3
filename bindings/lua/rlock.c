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

sneck_lock *core_lock_mine(lua_State *L, const core_lock *self)
{
    sneck_lock *mine = self->rlock ? sneck_rlock_lock(self->rlock, this_coroutine(L)) : NULL;
    return mine ? mine : self->lock;
}

bool core_lock_is_outermost(lua_State *L, const core_lock *self)
{
    return !self->rlock || sneck_rlock_count(self->rlock, this_coroutine(L)) == 1;
}

/* ------------------------------------------------------------------- counting */

static int begin(lua_State *L, core_count *count, core_lock *self, sneck_lock **out,
                 int begin_rlock(sneck_lock **out, sneck_rlock *rlock, uint64_t owner))
{
    *count = (core_count){.lock = NULL};
    *out = self->lock;
    if (!self->rlock)
        return SNECK_PENDING;
    count->owner = this_coroutine(L);
    int status = begin_rlock(out, self->rlock, count->owner);
    if (status == SNECK_PENDING)
        count->lock = self;
    return status;
}

int core_count_acquire(lua_State *L, core_count *count, core_lock *self, sneck_lock **out)
{
    return begin(L, count, self, out, sneck_rlock_acquire_begin);
}

int core_count_release(lua_State *L, core_count *count, core_lock *self, sneck_lock **out)
{
    int status = begin(L, count, self, out, sneck_rlock_release_begin);
    count->releases = true;
    return status;
}

void core_count_end(core_count *count, int status)
{
    sneck_rlock *rlock = count->lock ? count->lock->rlock : NULL;
    count->lock = NULL;
    if (rlock && count->releases)
        sneck_rlock_release_end(rlock, count->owner, status);
    else if (rlock)
        sneck_rlock_acquire_end(rlock, count->owner, status);
}

int core_push_counted(lua_State *L, const core_lock *self, int status)
{
    if (status != SNECK_OK)
        return core_push_failure(L, status, sneck_rlock_error(self->rlock), "");
    lua_pushboolean(L, 1);
    return 1;
}

/* -------------------------------------------------------- the calls that block */

/* Waits for the op that was started, or not. */
static int finish(lua_State *L, core_count *count, int started, sneck_op *op)
{
    core_count_end(count, started == SNECK_OK ? core_wait(L, op) : started);
    return core_finish(L, started, op);
}

int core_lock_acquire(lua_State *L, core_lock *self, int64_t wait_ms)
{
    core_count count;
    sneck_lock *lock;
    sneck_op *op = NULL;
    self->adopted = false;
    int status = core_count_acquire(L, &count, self, &lock);
    if (status != SNECK_PENDING)
        return core_push_counted(L, self, status);
    status = sneck_lock_acquire_start(&op, lock, NULL, wait_ms);
    return finish(L, &count, status, op);
}

int core_lock_release(lua_State *L, core_lock *self)
{
    core_count count;
    sneck_lock *lock;
    sneck_op *op = NULL;
    int status = core_count_release(L, &count, self, &lock);
    if (status != SNECK_PENDING)
        return core_push_counted(L, self, status);
    status = sneck_lock_release_start(&op, lock, NULL);
    return finish(L, &count, status, op);
}
