/* page_lua.c - the shared page as a module for Lua. */
#include "page.h"

#include <lauxlib.h>
#include <lua.h>

int luaopen_page_lua(lua_State *L);

static int l_open(lua_State *L)
{
    lua_pushlightuserdata(L, page_open(luaL_checkstring(L, 1)));
    return 1;
}

static int l_now(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)page_now());
    return 1;
}

static int l_count(lua_State *L)
{
    struct page *page = lua_touserdata(L, 1);
    size_t index = (size_t)luaL_checkinteger(L, 2);
    uint64_t begun_ns = (uint64_t)luaL_checkinteger(L, 3);

    lua_pushboolean(L, page_count(page, index, begun_ns));
    return 1;
}

static int l_hold(lua_State *L)
{
    struct page *page = lua_touserdata(L, 1);
    size_t index = (size_t)luaL_checkinteger(L, 2);
    uint64_t asked_ns = (uint64_t)luaL_checkinteger(L, 3);

    lua_pushboolean(L, page_hold(page, index, asked_ns));
    return 1;
}

int luaopen_page_lua(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"open", l_open}, {"now", l_now}, {"count", l_count}, {"hold", l_hold}, {NULL, NULL},
    };

    luaL_newlib(L, functions);
    return 1;
}
