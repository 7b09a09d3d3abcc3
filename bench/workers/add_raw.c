/* add_raw WAY SOCKET PAGE INDEX: adds 1 to the number at a key that others add to, too,
 * over blocking hiredis without any library; without a pause after a conflict.
 *
 *   three   WATCH; GET; MULTI, SET, EXEC at once: three round trips, as it is usually
 *           written. The others are measured against this
 *   two     WATCH and GET at once
 *   ifeq    SET ... IFEQ with the value of the last time, where the server has that; a
 *           GET when it was another
 *   script  GET and SET in a script. The server decides: no compare-and-set
 *   incr    INCR. So does this; it is the limit */
#include "page.h"

#include <hiredis/hiredis.h>
#include <string.h>

#define KEY "bench:number"

struct adder {
    redisContext *server;
    redisReply *digest; /* its text is the script's */
    char known[24];     /* ifeq: the value of the last time; "": none */
};

static const char add_script[] = "local old = redis.call('GET', KEYS[1]) or '0' "
                                 "return redis.call('SET', KEYS[1], string.format('%d', old + 1))";

static void append(redisContext *server, size_t count, const char **words)
{
    if (redisAppendCommandArgv(server, (int)count, words, NULL))
        give_up("a command could not be written");
}

static redisReply *next_reply(redisContext *server)
{
    void *reply;

    if (redisGetReply(server, &reply) || ((redisReply *)reply)->type == REDIS_REPLY_ERROR)
        give_up("a command failed");
    return reply;
}

#define WORDS(...) \
    sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *[]){__VA_ARGS__}

static redisReply *ask(redisContext *server, size_t count, const char **words)
{
    append(server, count, words);
    return next_reply(server);
}

static void skip_reply(redisContext *server)
{
    freeReplyObject(next_reply(server));
}

/* The number that follows the one in the reply, which may be nil; frees it. */
static void next_number(char next[24], redisReply *old)
{
    snprintf(next, 24, "%ld", old->str ? strtol(old->str, NULL, 10) + 1 : 1);
    freeReplyObject(old);
}

/* False: another client has changed the key. */
static bool commit(redisContext *server, const char *number)
{
    append(server, WORDS("MULTI"));
    append(server, WORDS("SET", KEY, number));
    append(server, WORDS("EXEC"));
    skip_reply(server);
    skip_reply(server);
    redisReply *results = next_reply(server);
    bool done = results->type == REDIS_REPLY_ARRAY;
    freeReplyObject(results);
    return done;
}

static bool add_by_three(struct adder *adder)
{
    char next[24];

    freeReplyObject(ask(adder->server, WORDS("WATCH", KEY)));
    next_number(next, ask(adder->server, WORDS("GET", KEY)));
    return commit(adder->server, next);
}

static bool add_by_two(struct adder *adder)
{
    char next[24];

    append(adder->server, WORDS("WATCH", KEY));
    append(adder->server, WORDS("GET", KEY));
    skip_reply(adder->server);
    next_number(next, next_reply(adder->server));
    return commit(adder->server, next);
}

static void look(struct adder *adder)
{
    redisReply *old = ask(adder->server, WORDS("GET", KEY));

    snprintf(adder->known, sizeof adder->known, "%s", old->str ? old->str : "");
    freeReplyObject(old);
}

static bool add_by_ifeq(struct adder *adder)
{
    char next[24];

    if (!adder->known[0])
        look(adder);
    snprintf(next, sizeof next, "%ld", strtol(adder->known, NULL, 10) + 1);
    redisReply *set = adder->known[0]
        ? ask(adder->server, WORDS("SET", KEY, next, "IFEQ", adder->known))
        : ask(adder->server, WORDS("SET", KEY, next, "NX"));
    bool done = set->type == REDIS_REPLY_STATUS;
    strcpy(adder->known, done ? next : "");
    freeReplyObject(set);
    return done;
}

static bool add_by_script(struct adder *adder)
{
    if (!adder->digest)
        adder->digest = ask(adder->server, WORDS("SCRIPT", "LOAD", add_script));
    freeReplyObject(ask(adder->server, WORDS("EVALSHA", adder->digest->str, "1", KEY)));
    return true;
}

static bool add_by_incr(struct adder *adder)
{
    freeReplyObject(ask(adder->server, WORDS("INCR", KEY)));
    return true;
}

typedef bool add_function(struct adder *adder);

static add_function *find_way(const char *name)
{
    static const struct {
        const char *name;
        add_function *add;
    } ways[] = {
        {"three", add_by_three}, {"two", add_by_two}, {"ifeq", add_by_ifeq},
        {"script", add_by_script}, {"incr", add_by_incr},
    };

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(name, ways[i].name) == 0)
            return ways[i].add;
    give_up("there is no such way to add");
}

int main(int argc, char **argv)
{
    struct adder adder = {.server = argc == 5 ? redisConnectUnix(argv[2]) : NULL};

    if (!adder.server || adder.server->err)
        give_up("usage: add_raw WAY SOCKET PAGE INDEX, of a server that runs");
    add_function *add = find_way(argv[1]);
    struct page *page = page_open(argv[3]);
    size_t index = strtoul(argv[4], NULL, 10);
    while (round_begin() > 0) {
        uint64_t begun_ns;
        do {
            begun_ns = page_now();
            while (!add(&adder))
                ;
        } while (page_count(page, index, begun_ns));
        round_end();
    }
    if (adder.digest)
        freeReplyObject(adder.digest);
    redisFree(adder.server);
    return 0;
}
