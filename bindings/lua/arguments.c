/* arguments.c - from Lua's values to the library's, or an error that names the
 * argument. Nothing here does I/O. */
#include "core.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What `seconds * 1000` may be off by: 0.07 seconds are 70 ms, not 71. */
#define ROUNDING_NOISE_MS 1e-4

int core_throw(lua_State *L, int level, const char *format, ...)
{
    char message[SNECK_ERROR_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    luaL_where(L, level);
    lua_pushstring(L, message);
    lua_concat(L, 2);
    return lua_error(L);
}

static void throw_type(lua_State *L, int level, int arg, const char *what, const char *wanted)
{
    core_throw(L, level, "%s must be %s, not %s", what, wanted, luaL_typename(L, arg));
}

static int64_t round_up(double ms)
{
    int64_t whole = (int64_t)ms;
    if (ms - (double)whole > ROUNDING_NOISE_MS)
        whole++;
    return whole;
}

int64_t core_check_seconds(lua_State *L, int level, int arg, const char *what,
                           bool zero_allowed)
{
    if (lua_type(L, arg) != LUA_TNUMBER)
        throw_type(L, level, arg, what, "a number of seconds");
    double seconds = (double)lua_tonumber(L, arg);
    if (zero_allowed && seconds == 0)
        return 0;
    if (!(seconds > 0))
        core_throw(L, level, "%s must be %s seconds, not %g", what,
                   zero_allowed ? "0 or more" : "more than 0", seconds);
    if (seconds > (double)SNECK_TTL_MAX_MS / 1000)
        core_throw(L, level, "%s must be at most 365 days, not %g seconds", what, seconds);
    int64_t ms = round_up(seconds * 1000);
    return ms > 0 ? ms : 1;
}

int64_t core_opt_seconds(lua_State *L, int level, int arg, const char *what,
                         bool zero_allowed, int64_t missing)
{
    if (lua_isnoneornil(L, arg))
        return missing;
    return core_check_seconds(L, level, arg, what, zero_allowed);
}

/* (seconds, what): in milliseconds; 0 for nil. */
int core_milliseconds(lua_State *L)
{
    const char *what = luaL_checkstring(L, 2);
    lua_pushinteger(L, (lua_Integer)core_opt_seconds(L, CORE_USER_LEVEL, 1, what, false, 0));
    return 1;
}

int64_t core_opt_ttl(lua_State *L, int level, int arg)
{
    int64_t ttl_ms = core_opt_seconds(L, level, arg, "ttl", false, 0);
    if (ttl_ms > 0 && ttl_ms < SNECK_TTL_MIN_MS)
        core_throw(L, level, "ttl must be at least %g seconds", (double)SNECK_TTL_MIN_MS / 1000);
    return ttl_ms;
}

bool core_opt_flag(lua_State *L, int level, int arg, const char *what)
{
    if (!lua_isnoneornil(L, arg) && !lua_isboolean(L, arg))
        throw_type(L, level, arg, what, "true or false");
    return lua_toboolean(L, arg);
}

const char *core_check_bytes(lua_State *L, int level, int arg, const char *what, size_t *len)
{
    if (lua_type(L, arg) != LUA_TSTRING)
        throw_type(L, level, arg, what, "a string");
    return lua_tolstring(L, arg, len);
}

void core_check_function(lua_State *L, int level, int arg)
{
    if (lua_type(L, arg) != LUA_TFUNCTION)
        throw_type(L, level, arg, "the function", "a function");
}

const char *core_opt_text(lua_State *L, int level, int arg, const char *what)
{
    size_t len;
    if (lua_isnoneornil(L, arg))
        return NULL;
    const char *text = core_check_bytes(L, level, arg, what, &len);
    if (strlen(text) != len)
        core_throw(L, level, "%s must not hold a NUL character", what);
    return text;
}

/* ------------------------------------------------------------------ commands */

#define EXACT_INTEGERS 9007199254740992.0 /* 2^53 */

static bool is_whole(double number)
{
    return number >= -EXACT_INTEGERS && number <= EXACT_INTEGERS &&
           number == (double)(int64_t)number;
}

/* Writes the shortest text that reads back as the same number. */
static void write_float(char *out, size_t size, double number)
{
    if (is_whole(number)) {
        snprintf(out, size, "%.0f", number);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, size, "%.*g", digits, number);
        double back = 0;
        if (sscanf(out, "%lf", &back) == 1 && back == number)
            break;
    }
    char *comma = strchr(out, ','); /* the decimal point of some locales */
    if (comma)
        *comma = '.';
}

static void number_to_text(lua_State *L, int arg)
{
    char text[64];
    if (lua_isinteger(L, arg))
        snprintf(text, sizeof text, "%lld", (long long)lua_tointeger(L, arg));
    else
        write_float(text, sizeof text, (double)lua_tonumber(L, arg));
    lua_pushstring(L, text);
    lua_replace(L, arg);
}

bool core_to_text(lua_State *L, int arg)
{
    if (lua_type(L, arg) == LUA_TNUMBER)
        number_to_text(L, arg);
    return lua_type(L, arg) == LUA_TSTRING;
}

static void check_words(lua_State *L, int level, int first, int last)
{
    if (last < first)
        core_throw(L, level, "there is no command: give its name, such as \"PING\"");
    for (int arg = first; arg <= last; arg++) {
        int type = lua_type(L, arg);
        if (type != LUA_TSTRING && type != LUA_TNUMBER)
            core_throw(L, level, "word %d of the command must be a string or a number, not %s",
                       arg - first + 1, luaL_typename(L, arg));
    }
}

/* (value): a string or number as what is sent; nil for anything else. */
int core_text(lua_State *L)
{
    lua_settop(L, 1);
    if (!core_to_text(L, 1))
        lua_pushnil(L);
    return 1;
}

core_command core_new_command(lua_State *L, size_t count)
{
    core_command command = {.count = count};
    command.words = lua_newuserdatauv(
        L, count * (sizeof *command.words + sizeof *command.lengths), 0);
    command.lengths = (size_t *)(command.words + count);
    return command;
}

core_command core_check_command(lua_State *L, int level, int first)
{
    int last = lua_gettop(L);
    check_words(L, level, first, last);
    luaL_checkstack(L, LUA_MINSTACK, "too many words");
    core_command command = core_new_command(L, (size_t)(last - first + 1));
    for (int arg = first; arg <= last; arg++) {
        core_to_text(L, arg);
        command.words[arg - first] = lua_tolstring(L, arg, &command.lengths[arg - first]);
    }
    return command;
}

size_t core_check_list(lua_State *L, int level, int arg, const char *what)
{
    if (!lua_istable(L, arg))
        core_throw(L, level, "%s must be a table, not %s", what, luaL_typename(L, arg));
    size_t count = lua_rawlen(L, arg);
    for (lua_pushnil(L); lua_next(L, arg); lua_pop(L, 1)) {
        double key = lua_type(L, -2) == LUA_TNUMBER ? (double)lua_tonumber(L, -2) : 0;
        if (key > (double)count)
            core_throw(L, level, "%s must be a list from 1 on without holes, but there is a %g",
                       what, key);
    }
    return count;
}

core_command core_keep_keys(lua_State *L, int arg)
{
    int count = (int)core_check_list(L, CORE_USER_LEVEL, arg, "keys");
    lua_createtable(L, count, 0);
    int kept = lua_gettop(L);
    core_command keys = core_new_command(L, (size_t)count);
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(L, arg, i);
        if (lua_type(L, -1) != LUA_TSTRING)
            core_throw(L, CORE_USER_LEVEL, "key %d must be a string, not %s", i,
                       luaL_typename(L, -1));
        keys.words[i - 1] = lua_tolstring(L, -1, &keys.lengths[i - 1]);
        lua_rawseti(L, kept, i);
    }
    return keys;
}
