/* transaction.c - the type of transactions: what the user's function reads and writes
 * with. There is one for each call, and it points to the library's only while the
 * function runs: kept for later, it does nothing but throw.
 *
 * What unwinds the function, after an abort or a failure, is the object itself, thrown.
 * A pcall inside of the function may catch it; so what counts is what is noted here and
 * in the library. */
#include "core.h"

static const char type_name[] = "sneck.transaction";

typedef struct core_tx {
    core_run *run; /* NULL: the function does not run */
    sneck_tx *tx;  /* borrowed, as long as that */
    bool aborted;
    int failure;   /* of the last call on it that failed; SNECK_OK: none did */
} core_tx;

/* ------------------------------------------------------------------- its use */

static core_tx *check_tx(lua_State *L)
{
    return luaL_checkudata(L, 1, type_name);
}

static int unwind(lua_State *L)
{
    lua_pushvalue(L, 1);
    return lua_error(L);
}

static core_tx *usable(lua_State *L)
{
    core_tx *self = check_tx(L);
    if (!self->run)
        core_throw(L, 1, "the transaction has ended: use it inside of its function only");
    if (self->aborted)
        unwind(L);
    return self;
}

/* What a method returns that has no value to give. */
static int done(lua_State *L, core_tx *self, int status)
{
    if (status != SNECK_OK) {
        self->failure = status;
        return unwind(L);
    }
    lua_pushboolean(L, 1);
    return 1;
}

static int read_now(lua_State *L, core_tx *self, core_command command)
{
    core_reply *reply = core_new_reply(L);
    core_hook_renew(&self->run->hook);
    int status = sneck_tx_read(&reply->reply, self->tx, command.count, command.words,
                               command.lengths);
    if (status != SNECK_OK)
        return done(L, self, status);
    core_push_reply(L, reply->reply);
    core_clear_reply(reply);
    return 1;
}

static int tx_get(lua_State *L)
{
    core_tx *self = usable(L);
    size_t len;
    const char *key = core_check_bytes(L, 1, 2, "the key", &len);
    return read_now(L, self, (core_command){
        2, (const void *[]){"GET", key}, (size_t[]){3, len},
    });
}

static int tx_execute(lua_State *L)
{
    core_tx *self = usable(L);
    return read_now(L, self, core_check_command(L, 1, 2));
}

static int tx_queue(lua_State *L)
{
    core_tx *self = usable(L);
    core_command command = core_check_command(L, 1, 2);
    return done(L, self, sneck_tx_queue(self->tx, command.count, command.words,
                                        command.lengths));
}

static int tx_watch(lua_State *L)
{
    core_tx *self = usable(L);
    int status = SNECK_OK;
    for (int arg = 2; arg <= lua_gettop(L) && status == SNECK_OK; arg++) {
        size_t len;
        const char *key = core_check_bytes(L, 1, arg, "a key", &len);
        status = sneck_tx_watch(self->tx, key, len);
    }
    return done(L, self, status);
}

static int tx_abort(lua_State *L)
{
    usable(L)->aborted = true;
    return unwind(L);
}

static int tx_conflicts(lua_State *L)
{
    lua_pushinteger(L, sneck_tx_conflicts(usable(L)->tx));
    return 1;
}

/* ------------------------------------------------------------------ its runs */

enum { CLIENT = 1, KEYS, FUNCTION, ATTEMPTS, WAIT, GUARD, /* arguments */
       VALUE, TX, REPLY, KEPT_KEYS };

typedef struct transaction {
    core_run run;
    core_tx *tx;
} transaction;

/* How the function ended; what it threw lies in its place. The end of another
 * transaction, around this one, is like any other error. */
static int outcome_of(lua_State *L, const core_tx *self, bool returned)
{
    if (!returned && !((self->aborted || self->failure != SNECK_OK) &&
                       lua_rawequal(L, VALUE, TX)))
        return CORE_RAISED;
    if (self->aborted)
        return CORE_ABORTED;
    return returned ? SNECK_OK : self->failure;
}

static int run_function(sneck_tx *tx, void *data)
{
    transaction *t = data;
    lua_State *L = t->run.L;
    *t->tx = (core_tx){.run = &t->run, .tx = tx};
    lua_pushvalue(L, FUNCTION);
    lua_pushvalue(L, TX);
    int status = outcome_of(L, t->tx, core_run_call(&t->run, 1, 0));
    t->tx->run = NULL;
    t->tx->tx = NULL;
    return status;
}

static core_tx *new_tx(lua_State *L)
{
    core_tx *self = lua_newuserdatauv(L, sizeof *self, 0);
    *self = (core_tx){0};
    luaL_setmetatable(L, type_name);
    return self;
}

static void push_no_results(lua_State *L)
{
    lua_createtable(L, 0, 1);
    lua_pushinteger(L, 0);
    lua_setfield(L, -2, "n");
}

static int finish(transaction *t, int status, const sneck_reply *results)
{
    lua_State *L = t->run.L;
    if (status == CORE_ABORTED)
        lua_pushnil(L);
    else if (status != SNECK_OK)
        return core_run_fail(&t->run, status, results);
    else if (results)
        core_push_reply(L, results);
    else
        push_no_results(L);
    return 1;
}

int core_transaction(lua_State *L)
{
    transaction t;
    lua_settop(L, VALUE);
    core_run_begin(L, &t.run);
    core_check_function(L, CORE_USER_LEVEL, FUNCTION);
    core_run_options(&t.run, ATTEMPTS);
    t.tx = new_tx(L);
    core_reply *reply = core_new_reply(L);
    core_command keys = core_keep_keys(L, KEYS);
    t.run.keys = KEPT_KEYS;
    t.run.value = VALUE;
    core_run_start(&t.run);
    int status = sneck_transact(&reply->reply, t.run.client->client, keys.count, keys.words,
                                keys.lengths, &t.run.options, run_function, &t, t.run.error);
    core_run_stop(&t.run);
    int count = finish(&t, status, reply->reply);
    core_clear_reply(reply);
    return count;
}

/* ---------------------------------------------------------------------- type */

static const char *state_text(const core_tx *self)
{
    if (!self->run)
        return "ended";
    if (self->aborted)
        return "aborted";
    return self->failure == SNECK_OK ? "running" : sneck_tx_error(self->tx);
}

static int tx_tostring(lua_State *L)
{
    lua_pushfstring(L, "sneck.transaction (%s)", state_text(check_tx(L)));
    return 1;
}

static const luaL_Reg meta[] = {
    {"__tostring", tx_tostring},
    {NULL, NULL},
};

static const luaL_Reg methods[] = {
    {"get", tx_get},
    {"execute", tx_execute},
    {"queue", tx_queue},
    {"watch", tx_watch},
    {"abort", tx_abort},
    {"conflicts", tx_conflicts},
    {NULL, NULL},
};

void core_open_transaction(lua_State *L)
{
    core_new_type(L, type_name, meta, methods);
}
