/* compat.h - what Lua 5.4 has and its elders lack, so that the other files are
 * written for 5.4 only. Lua 5.1 to 5.3 and LuaJIT compile with it. */
#ifndef SNECK_LUA_COMPAT_H
#define SNECK_LUA_COMPAT_H

#include <lauxlib.h>
#include <lua.h>

#if LUA_VERSION_NUM < 504
#define lua_newuserdatauv(L, size, values) lua_newuserdata(L, size)
#endif

#if LUA_VERSION_NUM < 503
#define lua_isinteger(L, index) 0
#endif

#if LUA_VERSION_NUM < 502
#define luaL_setfuncs(L, functions, upvalues) luaL_register(L, NULL, functions)
#define luaL_setmetatable(L, name) (luaL_getmetatable(L, name), lua_setmetatable(L, -2))
#define lua_rawlen(L, index) lua_objlen(L, index)
#endif

/* The one value that a userdata keeps alive has to be a table in Lua 5.1. */
#if LUA_VERSION_NUM >= 504
#define core_set_companion(L, index) lua_setiuservalue(L, index, 1)
#define core_get_companion(L, index) lua_getiuservalue(L, index, 1)
#elif LUA_VERSION_NUM >= 502
#define core_set_companion(L, index) lua_setuservalue(L, index)
#define core_get_companion(L, index) lua_getuservalue(L, index)
#else
#define core_set_companion(L, index) lua_setfenv(L, index)
#define core_get_companion(L, index) lua_getfenv(L, index)
#endif

#endif
