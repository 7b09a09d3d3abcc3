/* descriptor.c - the type of descriptors that Lua owns: a duplicate of a link's, for a
 * loop that must be told before a descriptor is closed. */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "core.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char type_name[] = "sneck.descriptor";

typedef struct core_descriptor {
    int fd; /* owned; -1: closed */
} core_descriptor;

int core_duplicate(lua_State *L)
{
    int fd = (int)luaL_checkinteger(L, 1);
    core_descriptor *self = lua_newuserdatauv(L, sizeof *self, 0);
    self->fd = -1;
    luaL_setmetatable(L, type_name);
    self->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (self->fd < 0)
        return core_throw(L, 1, "a connection cannot be watched: %s", strerror(errno));
    return 1;
}

static int descriptor_fd(lua_State *L)
{
    const core_descriptor *self = luaL_checkudata(L, 1, type_name);
    lua_pushinteger(L, self->fd);
    return 1;
}

static int descriptor_close(lua_State *L)
{
    core_descriptor *self = luaL_checkudata(L, 1, type_name);
    int fd = self->fd;
    self->fd = -1;
    if (fd >= 0)
        close(fd);
    return 0;
}

static const luaL_Reg meta[] = {
    {"__gc", descriptor_close},
    {NULL, NULL},
};

static const luaL_Reg methods[] = {
    {"fd", descriptor_fd},
    {"close", descriptor_close},
    {NULL, NULL},
};

void core_open_descriptor(lua_State *L)
{
    core_new_type(L, type_name, meta, methods);
}
