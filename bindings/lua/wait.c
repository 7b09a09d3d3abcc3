/* wait.c - blocking calls: start, wait, free.
 *
 * Ctrl-C in the program `lua` runs a signal handler that cannot do more than
 * install a debug hook in the main thread, which throws once Lua runs again. A
 * wait ends when it sees that hook appear; Lua then throws by itself. */
#include "core.h"

static lua_State *main_thread(lua_State *L)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    lua_State *main = lua_tothread(L, -1);
    lua_pop(L, 1);
    return main;
}

core_hook core_hook_now(lua_State *L)
{
    core_hook hook = {.main = main_thread(L)};
    hook.before = lua_gethook(hook.main);
    return hook;
}

void core_hook_renew(core_hook *hook)
{
    lua_State *main = hook->main;
    bool is_for_each = (lua_gethookmask(main) & LUA_MASKCOUNT) && lua_gethookcount(main) == 1;
    if (!is_for_each)
        hook->before = lua_gethook(main);
}

int core_hook_changed(void *data)
{
    const core_hook *hook = data;
    return lua_gethook(hook->main) != hook->before;
}

int core_wait(lua_State *L, sneck_op *op)
{
    core_hook hook = core_hook_now(L);
    return sneck_op_wait(op, core_hook_changed, &hook);
}

static int finish_failed(lua_State *L, int status, sneck_op *op)
{
    core_failure failure;
    core_take_failure(&failure, status, op);
    sneck_op_free(op);
    return core_push_op_failure(L, &failure);
}

int core_finish(lua_State *L, int status, sneck_op *op)
{
    if (status != SNECK_OK) /* not even started */
        return core_push_failure(L, status, "", "");
    status = core_wait(L, op);
    if (status != SNECK_OK)
        return finish_failed(L, status, op);
    sneck_op_free(op);
    lua_pushboolean(L, 1);
    return 1;
}
