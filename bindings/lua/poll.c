/* poll.c - what the loop of sneck.async has beside its links: a wait for the
 * descriptors of several, and a clock. */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "core.h"

#include <poll.h>
#include <string.h>
#include <time.h>

#define SLICE_MS 100 /* between two looks for Ctrl-C */

static short events_of(lua_State *L, int entry)
{
    lua_getfield(L, entry, "events");
    const char *text = luaL_checkstring(L, -1);
    short events = (short)((strchr(text, 'r') ? POLLIN : 0) | (strchr(text, 'w') ? POLLOUT : 0));
    lua_pop(L, 1);
    return events;
}

static struct pollfd read_entry(lua_State *L, int index)
{
    struct pollfd fd = {0};
    lua_rawgeti(L, 1, index);
    luaL_checktype(L, -1, LUA_TTABLE);
    lua_getfield(L, -1, "fd");
    fd.fd = (int)luaL_checkinteger(L, -1);
    lua_pop(L, 1);
    fd.events = events_of(L, lua_gettop(L));
    lua_pop(L, 1);
    return fd;
}

/* (entries, seconds): waits until one of them is ready, a signal came or the time is
 * over; nil: there is no limit. */
int core_poll(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    bool forever = lua_isnoneornil(L, 2);
    int64_t left_ms = core_opt_seconds(L, 1, 2, "the timeout", true, 0);
    size_t count = lua_rawlen(L, 1);
    struct pollfd *fds = lua_newuserdatauv(L, (count + 1) * sizeof *fds, 0);
    for (size_t i = 0; i < count; i++)
        fds[i] = read_entry(L, (int)i + 1);
    core_hook hook = core_hook_now(L);
    for (;;) {
        int slice = forever || left_ms > SLICE_MS ? SLICE_MS : (int)left_ms;
        int ready = poll(fds, (nfds_t)count, slice);
        left_ms -= slice;
        if (ready != 0 || (!forever && left_ms <= 0) || core_hook_changed(&hook))
            return 0;
    }
}

/* Seconds that never go back. */
int core_clock(lua_State *L)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    lua_pushnumber(L, (lua_Number)now.tv_sec + (lua_Number)now.tv_nsec / 1e9);
    return 1;
}
