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
    *count = (core_count){.owner = this_coroutine(L)};
    *out = self->lock;
    if (!self->rlock) {
        count->plain = self->lock;
        return SNECK_PENDING;
    }
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

void core_count_confirm(lua_State *L, core_count *count, core_lock *self)
{
    *count = (core_count){.owner = this_coroutine(L), .plain = self->lock};
}

/* The block that the coroutine is in has what it acquired itself. */
static void note_lease(const core_count *count, int status, const sneck_op *op)
{
    if (op && status == SNECK_OK)
        sneck_lock_set_body(count->plain, count->owner,
                            count->releases ? 0 : sneck_op_lease_number(op));
}

void core_count_end(core_count *count, int status, const sneck_op *op)
{
    sneck_rlock *rlock = count->lock ? count->lock->rlock : NULL;
    if (count->plain)
        note_lease(count, status, op);
    count->lock = NULL;
    count->plain = NULL;
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

/* --------------------------------------------------------------------- blocks */

/* Whoever has a re-entrant lock is its owner, whose leases are nobody else's. */

bool core_lock_begin_body(lua_State *L, core_lock *self)
{
    return self->rlock || sneck_lock_begin_body(self->lock, this_coroutine(L)) == SNECK_OK;
}

static bool has_nothing(const sneck_lock *lock)
{
    return sneck_lock_token(lock, NULL, 0) == 0 && sneck_lock_lease(lock) != SNECK_LEASE_LOST;
}

enum core_leaving core_lock_end_body(lua_State *L, core_lock *self, uint64_t *number)
{
    if (self->rlock)
        return CORE_LEAVE_LOCK;
    bool held = sneck_lock_end_body(number, self->lock, this_coroutine(L));
    bool is_present = !held || *number == sneck_lock_lease_number(self->lock);
    if ((held && *number == 0) || (is_present && has_nothing(self->lock)))
        return CORE_LEAVE_NOTHING;
    return held ? CORE_LEAVE_LEASE : CORE_LEAVE_LOCK;
}

int core_begin_body(lua_State *L)
{
    if (!core_lock_begin_body(L, core_check_lock(L)))
        core_throw(L, 1, "out of memory");
    return 0;
}

int core_end_body(lua_State *L)
{
    uint64_t number;
    core_lock_end_body(L, core_check_lock(L), &number);
    return 0;
}

/* -------------------------------------------------------- the calls that block */

int core_count_finish(lua_State *L, core_count *count, int started, sneck_op *op)
{
    core_count_end(count, started == SNECK_OK ? core_wait(L, op) : started, op);
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
    return core_count_finish(L, &count, status, op);
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
    return core_count_finish(L, &count, status, op);
}
