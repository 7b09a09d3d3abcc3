/* lock.c - the type of locks: an owned sneck_lock and how long to wait for it.
 *
 * A lock's companion table has the arguments that it was made with, but for the token: its
 * client, which it keeps open, its name, and its options, for a clone. */
#include "core.h"

static const char type_name[] = "sneck.lock";

core_lock *core_check_lock(lua_State *L)
{
    core_lock *self = luaL_checkudata(L, 1, type_name);
    if (!self->lock)
        core_throw(L, 1, "the lock was freed");
    return self;
}

/* The lock that answers what is asked. */
static sneck_lock *check_mine(lua_State *L)
{
    return core_lock_mine(L, core_check_lock(L));
}

static bool is_lock(lua_State *L, int arg)
{
    if (lua_type(L, arg) != LUA_TUSERDATA || !lua_getmetatable(L, arg))
        return false;
    luaL_getmetatable(L, type_name);
    bool same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return same;
}

core_lock *core_opt_lock(lua_State *L, int level, int arg, const char *what)
{
    if (lua_isnoneornil(L, arg))
        return NULL;
    if (!is_lock(L, arg))
        core_throw(L, level, "%s must be a lock, not %s", what, luaL_typename(L, arg));
    core_lock *self = lua_touserdata(L, arg);
    if (!self->lock)
        core_throw(L, level, "%s was freed", what);
    return self;
}

/* -------------------------------------------------------------- construction */

/* arguments */
enum { CLIENT = 1, NAME, TOKEN, TTL, WAIT, LABEL, FAIR, POLL, RENEW, MAX_HOLD, FENCE,
       MILLISECONDS };
#define ARGUMENTS MILLISECONDS

static core_lock *new_lock(lua_State *L)
{
    core_lock *self = lua_newuserdatauv(L, sizeof *self, 1);
    *self = (core_lock){.lock = NULL};
    luaL_setmetatable(L, type_name);
    lua_createtable(L, ARGUMENTS, 0);
    for (int arg = 1; arg <= ARGUMENTS; arg++) {
        if (arg == TOKEN)
            continue;
        lua_pushvalue(L, arg);
        lua_rawseti(L, -2, arg);
    }
    lua_setiuservalue(L, -2, 1);
    return self;
}

static sneck_lock_options check_options(lua_State *L, enum core_lock_kind kind)
{
    const int level = CORE_USER_LEVEL;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    const char *ttl = kind == CORE_LOCK_LEGACY ? "timeout" : "ttl";
    options.ttl_ms = core_opt_seconds(L, level, TTL, ttl, false, options.ttl_ms);
    options.label = core_opt_text(L, level, LABEL, "label");
    options.fair = core_opt_flag(L, level, FAIR, "fair");
    options.poll_ms = core_opt_seconds(L, level, POLL, "poll", false, options.poll_ms);
    options.renew = core_opt_flag(L, level, RENEW, "renew");
    options.max_hold_ms =
        core_opt_seconds(L, level, MAX_HOLD, "max_hold", false, options.max_hold_ms);
    options.fence = core_opt_flag(L, level, FENCE, "fence");
    return options;
}

static int make_lock(lua_State *L, enum core_lock_kind kind)
{
    const int level = CORE_USER_LEVEL;
    char error[SNECK_ERROR_SIZE];
    size_t name_len, token_len = 0;
    const char *token = NULL;
    lua_settop(L, ARGUMENTS);
    sneck_client *client = core_check_client(L, CLIENT)->client;
    const char *name = core_check_bytes(L, level, NAME, "the name", &name_len);
    if (!lua_isnil(L, TOKEN))
        token = core_check_bytes(L, level, TOKEN, "the token", &token_len);
    sneck_lock_options options = check_options(L, kind);
    int64_t wait_ms = core_opt_seconds(L, level, WAIT, "wait", true, SNECK_FOREVER);
    sneck_legacy_unit unit = core_opt_flag(L, level, MILLISECONDS, "milliseconds")
                                 ? SNECK_LEGACY_MILLISECONDS : SNECK_LEGACY_SECONDS;
    core_lock *self = new_lock(L);
    self->wait_ms = wait_ms;
    self->adopted = token != NULL;
    self->renews_in_hold = lua_isnil(L, RENEW) || options.renew;
    int status = token ? sneck_lock_adopt(&self->lock, client, name, name_len, token, token_len,
                                          &options, error)
               : kind == CORE_LOCK_LEGACY
                       ? sneck_legacy_lock_new(&self->lock, client, name, name_len, &options, unit,
                                               error)
                       : sneck_lock_new(&self->lock, client, name, name_len, &options, error);
    self->kind = kind;
    if (status == SNECK_OK && kind == CORE_LOCK_COUNTED)
        status = sneck_rlock_new(&self->rlock, client, name, name_len, &options, error);
    return status == SNECK_OK ? 1 : core_throw(L, level, "%s", error);
}

int core_lock_new(lua_State *L)
{
    return make_lock(L, CORE_LOCK_PLAIN);
}

int core_rlock_new(lua_State *L)
{
    return make_lock(L, CORE_LOCK_COUNTED);
}

int core_legacy_lock_new(lua_State *L)
{
    return make_lock(L, CORE_LOCK_LEGACY);
}

static int lock_clone(lua_State *L)
{
    static const lua_CFunction makers[] = {
        [CORE_LOCK_PLAIN] = core_lock_new,
        [CORE_LOCK_COUNTED] = core_rlock_new,
        [CORE_LOCK_LEGACY] = core_legacy_lock_new,
    };
    const core_lock *self = core_check_lock(L);
    lua_getiuservalue(L, 1, 1);
    int arguments = lua_gettop(L);
    lua_pushcfunction(L, makers[self->kind]);
    for (int arg = 1; arg <= ARGUMENTS; arg++)
        lua_rawgeti(L, arguments, arg);
    lua_call(L, ARGUMENTS, 1);
    return 1;
}

/* -------------------------------------------------- calls that ask the server */

static int64_t wait_argument(lua_State *L, const core_lock *self)
{
    return core_opt_seconds(L, 1, 2, "wait", true, self->wait_ms);
}

/* The count of a re-entrant lock follows calls, not ops. */
static core_lock *check_uncounted(lua_State *L)
{
    core_lock *self = core_check_lock(L);
    if (self->rlock)
        core_throw(L, 1, "a re-entrant lock is acquired and released without ops: call"
                         " acquire() and release(), or use another kind of lock");
    return self;
}

static int start_acquire(lua_State *L, sneck_op **out)
{
    core_lock *self = check_uncounted(L);
    int64_t wait_ms = wait_argument(L, self);
    self->adopted = false;
    return sneck_lock_acquire_start(out, self->lock, NULL, wait_ms);
}

static int start_release(lua_State *L, sneck_op **out)
{
    return sneck_lock_release_start(out, check_uncounted(L)->lock, NULL);
}

static int start_extend(lua_State *L, sneck_op **out)
{
    sneck_lock *lock = check_mine(L);
    return sneck_lock_extend_start(out, lock, NULL, core_opt_ttl(L, 1, 2));
}

static int start_holder(lua_State *L, sneck_op **out)
{
    return sneck_lock_holder_start(out, core_check_lock(L)->lock, NULL);
}

typedef int start_function(lua_State *L, sneck_op **out);

static int begin(lua_State *L, start_function *start)
{
    core_op *op = core_new_op(L);
    return core_return_op(L, start(L, &op->op));
}

static int lock_acquire(lua_State *L)
{
    core_lock *self = core_check_lock(L);
    return core_lock_acquire(L, self, wait_argument(L, self));
}

static int lock_acquire_start(lua_State *L)
{
    lua_settop(L, 2);
    return begin(L, start_acquire);
}

static int lock_release(lua_State *L)
{
    return core_lock_release(L, core_check_lock(L));
}

static int lock_release_start(lua_State *L)
{
    return begin(L, start_release);
}

static int lock_extend(lua_State *L)
{
    sneck_op *op = NULL;
    int status = start_extend(L, &op);
    return core_finish(L, status, op);
}

static int lock_extend_start(lua_State *L)
{
    lua_settop(L, 2);
    return begin(L, start_extend);
}

static int lock_holder(lua_State *L)
{
    core_op *op = core_new_op(L);
    int status = start_holder(L, &op->op);
    return core_return_result(L, status, op);
}

static int lock_holder_start(lua_State *L)
{
    return begin(L, start_holder);
}

static int lock_locked(lua_State *L)
{
    int count = lock_holder(L);
    if (count == 1)
        lua_pushboolean(L, !lua_isnil(L, -1));
    return count;
}

static int start_force_release(lua_State *L, sneck_op **out)
{
    return sneck_lock_force_release_start(out, core_check_lock(L)->lock, NULL);
}

static int lock_force_release(lua_State *L)
{
    core_op *op = core_new_op(L);
    int status = start_force_release(L, &op->op);
    return core_return_result(L, status, op);
}

static int lock_force_release_start(lua_State *L)
{
    return begin(L, start_force_release);
}

/* --------------------------------------------------- what the lock itself knows */

static int lock_remaining(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)sneck_lock_remaining_ms(check_mine(L)) / 1000);
    return 1;
}

static int lock_owned(lua_State *L)
{
    lua_pushboolean(L, sneck_lock_remaining_ms(check_mine(L)) > 0);
    return 1;
}

static int lock_ttl(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)sneck_lock_ttl_ms(check_mine(L)) / 1000);
    return 1;
}

static int lock_token(lua_State *L)
{
    const sneck_lock *lock = check_mine(L);
    char few[256];
    char *token = few;
    size_t len = sneck_lock_token(lock, few, sizeof few);
    if (len > sizeof few) {
        token = lua_newuserdatauv(L, len, 0);
        sneck_lock_token(lock, token, len);
    }
    if (len > 0)
        lua_pushlstring(L, token, len);
    else
        lua_pushnil(L);
    return 1;
}

static int lock_name(lua_State *L)
{
    core_check_lock(L);
    lua_getiuservalue(L, 1, 1);
    lua_rawgeti(L, -1, NAME);
    return 1;
}

/* ---------------------------------------------------------------------- type */

static int lock_free(lua_State *L)
{
    core_lock *self = luaL_checkudata(L, 1, type_name);
    sneck_lock *lock = self->lock;
    sneck_rlock *rlock = self->rlock;
    if (self->pins > 0)
        return 0;
    self->lock = NULL;
    self->rlock = NULL;
    sneck_rlock_free(rlock);
    sneck_lock_free(lock);
    return 0;
}

static int lock_tostring(lua_State *L)
{
    const core_lock *self = core_check_lock(L);
    bool owned = sneck_lock_remaining_ms(core_lock_mine(L, self)) > 0;
    lua_pushstring(L, self->rlock ? "sneck.rlock " : "sneck.lock ");
    lock_name(L);
    lua_replace(L, -2); /* the companion table */
    lua_pushstring(L, owned ? " (owned)" : " (not owned)");
    lua_concat(L, 3);
    return 1;
}

static const luaL_Reg meta[] = {
    {"__gc", lock_free},
    {"__tostring", lock_tostring},
    {NULL, NULL},
};

static const luaL_Reg methods[] = {
    {"acquire", lock_acquire},
    {"acquire_start", lock_acquire_start},
    {"release", lock_release},
    {"release_start", lock_release_start},
    {"hold", core_lock_hold},
    {"extend", lock_extend},
    {"extend_start", lock_extend_start},
    {"holder", lock_holder},
    {"holder_start", lock_holder_start},
    {"locked", lock_locked},
    {"force_release", lock_force_release},
    {"force_release_start", lock_force_release_start},
    {"remaining", lock_remaining},
    {"owned", lock_owned},
    {"ttl", lock_ttl},
    {"token", lock_token},
    {"name", lock_name},
    {"lost", core_lock_lost},
    {"lease", core_lock_lease},
    {"fence", core_lock_fence},
    {"keep_alive", core_lock_keep_alive},
    {"clone", lock_clone},
    {NULL, NULL},
};

void core_open_lock(lua_State *L)
{
    core_open_owners(L);
    core_new_type(L, type_name, meta, methods);
}
