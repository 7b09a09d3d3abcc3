/* out_of_memory.c - runs a script as often as it allocates, and lets another
 * allocation fail each time.
 *
 *     lua_out_of_memory SCRIPT URL
 *
 * The modules in Lua are those of LUA_PATH. SCRIPT gets the url and a name that no other run
 * uses. Each allocation fails in two ways: once, so that Lua collects garbage and
 * tries again, and together with all that follow, so that the script ends. Invariant: a
 * state is opened and closed with memory to spare, so whatever is left after that is
 * a leak, which the sanitizers find. Prints how many allocations failed.
 *
 * While all fail Lua may not collect by itself: it needs memory to call a finalizer, and
 * without any it drops the object, with what that owns. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int luaopen_sneck_core(lua_State *L);

struct memory {
    long until_failure; /* allocations that go well; negative: all do */
    bool for_good;      /* every later one fails, too */
    bool failed;
    size_t in_use;      /* bytes */
};

struct run {
    const char *script, *url;
    long number;
};

static bool fails(struct memory *memory)
{
    if (memory->until_failure < 0)
        return false;
    if (memory->until_failure > 0) {
        memory->until_failure--;
        return false;
    }
    memory->failed = true;
    if (!memory->for_good)
        memory->until_failure = -1;
    return true;
}

static void *allocate(void *data, void *block, size_t old_size, size_t size)
{
    struct memory *memory = data;
    if (!block)
        old_size = 0;
    if (size == 0) {
        free(block);
        memory->in_use -= old_size;
        return NULL;
    }
    if (size > old_size && fails(memory)) /* Lua counts on being able to shrink */
        return NULL;
    void *moved = realloc(block, size);
    if (moved)
        memory->in_use += size - old_size;
    return moved;
}

/* --------------------------------------------------------------------- a run */

static int run_script(lua_State *L)
{
    const struct run *run = lua_touserdata(L, 1);
    luaL_requiref(L, "sneck.core", luaopen_sneck_core, 0); /* not the rock's */
    if (luaL_loadfile(L, run->script) != LUA_OK)
        return lua_error(L);
    lua_pushstring(L, run->url);
    lua_pushfstring(L, "oom:%I", (LUAI_UACINT)run->number);
    lua_call(L, 2, 0);
    return 0;
}

static void fail(const struct run *run, const char *what, const char *detail)
{
    fprintf(stderr, "run %ld: %s: %s\n", run->number, what, detail);
    exit(1);
}

/* What a coroutine throws is thrown again by the loop, as any other error. And
 * luaL_checkstack() says of any reason that the stack overflows. */
static bool is_for_memory(lua_State *L, int rc)
{
    const char *message = rc == LUA_ERRRUN ? lua_tostring(L, -1) : NULL;
    return rc == LUA_ERRMEM || (message && (strcmp(message, "not enough memory") == 0 ||
                                            strstr(message, "stack overflow (")));
}

/* Returns whether an allocation failed; none does for a negative index. */
static bool run_once(const struct run *run, long index, bool for_good)
{
    struct memory memory = {.until_failure = -1, .for_good = for_good};
    lua_State *L = lua_newstate(allocate, &memory);
    if (!L)
        fail(run, "cannot make a state", "out of memory");
    luaL_openlibs(L);
    if (for_good)
        lua_gc(L, LUA_GCSTOP);
    lua_pushcfunction(L, run_script);
    lua_pushlightuserdata(L, (void *)run);
    memory.until_failure = index;
    int rc = lua_pcall(L, 1, 0, 0);
    memory.until_failure = -1;
    if (rc != LUA_OK && !is_for_memory(L, rc))
        fail(run, "the script failed otherwise than for memory", lua_tostring(L, -1));
    if (rc != LUA_OK && !memory.failed)
        fail(run, "the script ran out of memory by itself", "no allocation had failed");
    lua_close(L);
    if (memory.in_use != 0)
        fail(run, "Lua's own memory leaks", "the allocator counted it");
    return memory.failed;
}

/* ------------------------------------------------------------------ all runs */

static long count_descriptors(void)
{
    long count = 0;
    DIR *directory = opendir("/dev/fd");
    if (!directory)
        return 0;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static long fail_each(struct run *run, bool for_good)
{
    long index = 0;
    while (run_once(run, index, for_good)) {
        index++;
        run->number++;
    }
    return index;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s SCRIPT URL\n", argv[0]);
        return 2;
    }
    struct run run = {.script = argv[1], .url = argv[2]};
    run_once(&run, -1, false);
    long descriptors = count_descriptors();
    long once = fail_each(&run, false);
    long for_good = fail_each(&run, true);
    if (count_descriptors() != descriptors)
        fail(&run, "descriptors leak", "more are open than after the first run");
    printf("%ld allocations failed once, %ld for good\n", once, for_good);
    return 0;
}
