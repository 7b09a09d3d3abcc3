/* lease.c - what a lock tells of its lease, the renewal that keeps it alive, and the
 * beginning and end of a block that needs it.
 *
 * The library renews in a thread of its own, which never enters Lua: a loss is asked for,
 * not told. */
#include "core.h"

#include <stdio.h>

static sneck_lock *check_mine(lua_State *L)
{
    return core_lock_mine(L, core_check_lock(L));
}

int core_lock_lost(lua_State *L)
{
    lua_pushboolean(L, sneck_lock_lease(check_mine(L)) == SNECK_LEASE_LOST);
    return 1;
}

static const char *name_of(sneck_lease lease)
{
    switch (lease) {
    case SNECK_LEASE_NONE: break;
    case SNECK_LEASE_HELD: return "held";
    case SNECK_LEASE_UNCERTAIN: return "uncertain";
    case SNECK_LEASE_LOST: return "lost";
    }
    return "none";
}

int core_lock_lease(lua_State *L)
{
    lua_pushstring(L, name_of(sneck_lock_lease(check_mine(L))));
    return 1;
}

int core_lock_fence(lua_State *L)
{
    int64_t fence = sneck_lock_fence(check_mine(L));
    if (fence > 0)
        lua_pushinteger(L, (lua_Integer)fence);
    else
        lua_pushnil(L);
    return 1;
}

static int push_renewal(lua_State *L, int status, const sneck_lock *lock)
{
    if (status != SNECK_OK)
        return core_push_failure(L, status, sneck_lock_error(lock), "");
    lua_pushboolean(L, 1);
    return 1;
}

int core_lock_keep_alive(lua_State *L)
{
    sneck_lock *lock = check_mine(L);
    bool on = lua_isnoneornil(L, 2) || core_opt_flag(L, 1, 2, "on");
    return push_renewal(L, sneck_lock_renew(lock, on), lock);
}

/* ---------------------------------------------------------------------- blocks */

static bool is_adopted(const core_lock *self)
{
    return self->adopted && sneck_lock_token(self->lock, NULL, 0) > 0;
}

int core_lock_is_adopted(lua_State *L)
{
    lua_pushboolean(L, is_adopted(core_check_lock(L)));
    return 1;
}

/* Acquires the lock, or confirms an adopted one. */
static int take(lua_State *L, core_lock *self, int64_t wait_ms)
{
    sneck_op *op = NULL;
    core_count count;
    if (!is_adopted(self))
        return core_lock_acquire(L, self, wait_ms);
    core_count_confirm(L, &count, self);
    int status = sneck_lock_extend_start(&op, self->lock, NULL, 0);
    return core_count_finish(L, &count, status, op);
}

/* Begins the renewal of what was just acquired, which is `lock`. */
static int keep(lua_State *L, const core_lock *self, sneck_lock *lock)
{
    if (!self->renews_in_hold || !core_lock_is_outermost(L, self))
        return SNECK_OK;
    return sneck_lock_renew(lock, true);
}

int core_lock_keep(lua_State *L)
{
    const core_lock *self = core_check_lock(L);
    sneck_lock *lock = core_lock_mine(L, self);
    return push_renewal(L, keep(L, self, lock), lock);
}

static int release_lease(lua_State *L, const core_lock *self, uint64_t number)
{
    sneck_op *op = NULL;
    int status = sneck_lock_release_lease_start(&op, self->lock, NULL, number);
    return core_finish(L, status, op);
}

int core_lock_settle(lua_State *L)
{
    core_lock *self = core_check_lock(L);
    uint64_t number = 0;
    switch (core_lock_end_body(L, self, &number)) {
    case CORE_LEAVE_LEASE:
        return release_lease(L, self, number);
    case CORE_LEAVE_LOCK:
        return core_lock_release(L, self);
    case CORE_LEAVE_NOTHING:
        break;
    }
    lua_pushboolean(L, 1);
    return 1;
}

/* Gives back what cannot be renewed. */
static int give_back(lua_State *L, int status, const sneck_lock *lock)
{
    char why[SNECK_ERROR_SIZE];
    snprintf(why, sizeof why, "%s", sneck_lock_error(lock));
    core_lock_settle(L);
    return core_push_failure(L, status, why, "");
}

int core_lock_hold(lua_State *L)
{
    core_lock *self = core_check_lock(L);
    int64_t wait_ms = core_opt_seconds(L, 1, 2, "wait", true, self->wait_ms);
    uint64_t none;
    lua_settop(L, 1);
    if (!core_lock_begin_body(L, self))
        return core_push_failure(L, SNECK_NO_MEMORY, "", "");
    int count = take(L, self, wait_ms);
    if (count > 1) {
        core_lock_end_body(L, self, &none);
        return count;
    }
    sneck_lock *lock = core_lock_mine(L, self);
    int status = keep(L, self, lock);
    if (status != SNECK_OK)
        return give_back(L, status, lock);
    lua_pushvalue(L, 1);
    return 1;
}
