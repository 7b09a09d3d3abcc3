/* link.c - the type of links: one connection that the ops of many coroutines share,
 * and the calls that start them. The module sneck.async drives it.
 *
 * A link's companion table has its client, which it keeps open, and its ops by their
 * addresses, for as long as somebody else has them: a freed op never comes out. */
#include "core.h"

static const char type_name[] = "sneck.link";

enum { COMPANION_CLIENT = 1, COMPANION_OPS };

typedef struct core_link {
    sneck_link *link; /* owned; NULL: closed */
} core_link;

static core_link *check_link(lua_State *L)
{
    core_link *self = luaL_checkudata(L, 1, type_name);
    if (!self->link)
        core_throw(L, 1, "the link was closed");
    return self;
}

/* -------------------------------------------------------------- construction */

static void push_weak_table(lua_State *L)
{
    lua_createtable(L, 0, 0);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "v");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
}

int core_link_new(lua_State *L)
{
    enum { CLIENT = 1, LINK };
    core_client *client = core_check_client(L, CLIENT);
    lua_settop(L, CLIENT);
    core_link *self = lua_newuserdatauv(L, sizeof *self, 1);
    self->link = NULL;
    luaL_setmetatable(L, type_name);
    lua_createtable(L, 2, 0);
    lua_pushvalue(L, CLIENT);
    lua_rawseti(L, -2, COMPANION_CLIENT);
    push_weak_table(L);
    lua_rawseti(L, -2, COMPANION_OPS);
    lua_setiuservalue(L, LINK, 1);
    int status = sneck_link_new(&self->link, client->client);
    return status == SNECK_OK ? 1 : core_push_failure(L, status, "", "");
}

/* ------------------------------------------------------------------- starting */

/* Pushes an op that is not started, by which the link will know it. */
static core_op *new_op(lua_State *L)
{
    core_op *op = core_new_op(L);
    lua_getiuservalue(L, 1, 1);
    lua_rawgeti(L, -1, COMPANION_OPS);
    lua_pushlightuserdata(L, op);
    lua_pushvalue(L, -4);
    lua_rawset(L, -3);
    lua_pop(L, 2);
    return op;
}

static int started(lua_State *L, int status, core_op *op)
{
    if (status == SNECK_OK)
        sneck_op_set_data(op->op, op);
    else
        core_count_end(&op->count, status, NULL);
    return core_return_op(L, status);
}

static core_lock *check_lock(lua_State *L)
{
    core_lock *lock = core_opt_lock(L, 1, 2, "the lock");
    if (!lock)
        core_throw(L, 1, "the lock must be a lock, not nil");
    return lock;
}

/* As new_op(), for the lock at 2. */
static core_op *new_count_op(lua_State *L, const core_lock *lock)
{
    core_op *op = new_op(L);
    if (lock->rlock) {
        lua_createtable(L, 1, 0);
        lua_pushvalue(L, 2);
        lua_rawseti(L, -2, 1);
        lua_setiuservalue(L, -2, 1);
    }
    return op;
}

/* (link, lock, wait): an op, or true where a re-entrant lock did no more than count */
static int link_acquire(lua_State *L)
{
    core_link *self = check_link(L);
    core_lock *lock = check_lock(L);
    sneck_lock *mine;
    int64_t wait_ms = core_opt_seconds(L, CORE_USER_LEVEL, 3, "wait", true, lock->wait_ms);
    core_op *op = new_count_op(L, lock);
    lock->adopted = false;
    int status = core_count_acquire(L, &op->count, lock, &mine);
    if (status != SNECK_PENDING)
        return core_push_counted(L, lock, status);
    return started(L, sneck_lock_acquire_start(&op->op, mine, self->link, wait_ms), op);
}

/* (link, lock): the same */
static int link_release(lua_State *L)
{
    core_link *self = check_link(L);
    core_lock *lock = check_lock(L);
    sneck_lock *mine;
    core_op *op = new_count_op(L, lock);
    int status = core_count_release(L, &op->count, lock, &mine);
    if (status != SNECK_PENDING)
        return core_push_counted(L, lock, status);
    return started(L, sneck_lock_release_start(&op->op, mine, self->link), op);
}

/* (link, lock): the release at the end of a block; also true where there is nothing to do */
static int link_settle(lua_State *L)
{
    core_link *self = check_link(L);
    core_lock *lock = check_lock(L);
    core_op *op = new_op(L);
    uint64_t number = 0;
    switch (core_lock_end_body(L, lock, &number)) {
    case CORE_LEAVE_LEASE:
        return started(L, sneck_lock_release_lease_start(&op->op, lock->lock, self->link, number),
                       op);
    case CORE_LEAVE_LOCK:
        return link_release(L);
    case CORE_LEAVE_NOTHING:
        break;
    }
    lua_pushboolean(L, 1);
    return 1;
}

/* (link, lock): confirms an adopted one for a block */
static int link_confirm(lua_State *L)
{
    core_link *self = check_link(L);
    core_lock *lock = check_lock(L);
    core_op *op = new_op(L);
    core_count_confirm(L, &op->count, lock);
    return started(L, sneck_lock_extend_start(&op->op, lock->lock, self->link, 0), op);
}

/* (link, lock, ttl) */
static int link_extend(lua_State *L)
{
    core_link *self = check_link(L);
    core_lock *lock = check_lock(L);
    int64_t ttl_ms = core_opt_ttl(L, CORE_USER_LEVEL, 3);
    core_op *op = new_op(L);
    sneck_lock *mine = core_lock_mine(L, lock);
    return started(L, sneck_lock_extend_start(&op->op, mine, self->link, ttl_ms), op);
}

typedef int start_function(sneck_op **out, sneck_lock *lock, sneck_link *link);

/* (link, lock): what is the same for whoever asks */
static int ask(lua_State *L, start_function *start)
{
    core_link *self = check_link(L);
    core_lock *lock = check_lock(L);
    core_op *op = new_op(L);
    return started(L, start(&op->op, lock->lock, self->link), op);
}

static int link_holder(lua_State *L)
{
    return ask(L, sneck_lock_holder_start);
}

static int link_waiters(lua_State *L)
{
    return ask(L, sneck_lock_waiters_start);
}

static int link_force_release(lua_State *L)
{
    return ask(L, sneck_lock_force_release_start);
}

/* (link, client, words...) */
static int link_execute(lua_State *L)
{
    core_link *self = check_link(L);
    core_client *client = core_check_client(L, 2);
    core_command command = core_check_command(L, CORE_USER_LEVEL, 3);
    core_op *op = new_op(L);
    int status = sneck_execute_start(&op->op, client->client, self->link, command.count,
                                     command.words, command.lengths);
    core_check_refused(L, CORE_USER_LEVEL, client, &op->op);
    return started(L, status, op);
}

/* (link, client, key, value, expire_ms, timeout_ms) */
static int link_try_lock(lua_State *L)
{
    core_link *self = check_link(L);
    lua_settop(L, 6);
    core_op *op = new_op(L);
    int status = core_start_try_lock(L, CORE_USER_LEVEL, 2, self->link, &op->op);
    return started(L, status, op);
}

/* (link, client, key, value) */
static int link_release_lock(lua_State *L)
{
    core_link *self = check_link(L);
    lua_settop(L, 4);
    core_op *op = new_op(L);
    int status = core_start_release_lock(L, CORE_USER_LEVEL, 2, self->link, &op->op);
    return started(L, status, op);
}

/* -------------------------------------------------------------------- driving */

static int link_step(lua_State *L)
{
    sneck_link_step(check_link(L)->link);
    return 0;
}

/* Gives the next op that has ended, or nil. From now on it counts, whoever waits for it. */
static int link_ended(lua_State *L)
{
    core_link *self = check_link(L);
    lua_getiuservalue(L, 1, 1);
    lua_rawgeti(L, -1, COMPANION_OPS);
    sneck_op *op = sneck_link_ended(self->link);
    if (!op) {
        lua_pushnil(L);
        return 1;
    }
    core_op *ended = sneck_op_data(op);
    core_count_end(&ended->count, sneck_op_status(op), op);
    lua_pushlightuserdata(L, ended);
    lua_rawget(L, -2);
    return 1;
}

static int link_fds(lua_State *L)
{
    core_push_fds(L, check_link(L)->link);
    return 1;
}

static int link_timeout(lua_State *L)
{
    core_push_timeout(L, check_link(L)->link);
    return 1;
}

static int link_generation(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)sneck_link_generation(check_link(L)->link));
    return 1;
}

static int link_quiet(lua_State *L)
{
    lua_pushboolean(L, sneck_link_quiet(check_link(L)->link));
    return 1;
}

/* ---------------------------------------------------------------------- type */

static int link_close(lua_State *L)
{
    core_link *self = luaL_checkudata(L, 1, type_name);
    sneck_link *link = self->link;
    self->link = NULL;
    sneck_link_free(link);
    return 0;
}

static const luaL_Reg meta[] = {
    {"__gc", link_close},
    {NULL, NULL},
};

static const luaL_Reg methods[] = {
    {"acquire", link_acquire},
    {"release", link_release},
    {"settle", link_settle},
    {"confirm", link_confirm},
    {"extend", link_extend},
    {"holder", link_holder},
    {"waiters", link_waiters},
    {"force_release", link_force_release},
    {"execute", link_execute},
    {"try_lock", link_try_lock},
    {"release_lock", link_release_lock},
    {"step", link_step},
    {"ended", link_ended},
    {"fds", link_fds},
    {"timeout", link_timeout},
    {"generation", link_generation},
    {"quiet", link_quiet},
    {"close", link_close},
    {NULL, NULL},
};

void core_open_link(lua_State *L)
{
    core_new_type(L, type_name, meta, methods);
}
