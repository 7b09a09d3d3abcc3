/* module.c - `require "sneck.core"`: its functions and the types' metatables, to
 * which sneck/init.lua adds what can be said in Lua. */
#include "core.h"

void core_new_type(lua_State *L, const char *name, const luaL_Reg *meta,
                   const luaL_Reg *methods)
{
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, meta, 0);
    lua_createtable(L, 0, 16);
    luaL_setfuncs(L, methods, 0);
    lua_setfield(L, -2, "__index");
}

static const luaL_Reg functions[] = {
    {"connect", core_connect},
    {"quorum", core_quorum},
    {"lock", core_lock_new},
    {"rlock", core_rlock_new},
    {"legacy_lock", core_legacy_lock_new},
    {"settle", core_lock_settle},
    {"update", core_update},
    {"compare_and_set", core_compare_and_set},
    {"transaction", core_transaction},
    {"begin_body", core_begin_body},
    {"end_body", core_end_body},
    {"is_adopted", core_lock_is_adopted},
    {"keep", core_lock_keep},
    {"link", core_link_new},
    {"steps", core_steps_new},
    {"text", core_text},
    {"milliseconds", core_milliseconds},
    {"poll", core_poll},
    {"clock", core_clock},
    {"duplicate", core_duplicate},
    {NULL, NULL},
};

LUALIB_API int luaopen_sneck_core(lua_State *L);

LUALIB_API int luaopen_sneck_core(lua_State *L)
{
    core_stay_loaded();
    lua_createtable(L, 0, 8);
    luaL_setfuncs(L, functions, 0);
    lua_pushstring(L, sneck_version());
    lua_setfield(L, -2, "version");
    core_open_client(L);
    lua_setfield(L, -2, "client_type");
    core_open_lock(L);
    lua_setfield(L, -2, "lock_type");
    core_open_op(L);
    lua_setfield(L, -2, "op_type");
    core_open_reply(L);
    core_open_transaction(L);
    core_open_link(L);
    core_open_steps(L);
    core_open_descriptor(L);
    lua_pop(L, 5);
    return 1;
}
