/* contend_ring SOCKET WORKERS PAGE INDEX: a token goes round. Each worker has a list
 * and waits for the token there, then puts it into the next one's.
 *
 * This is no lock: who dies takes the token along. It is the limit for one that is
 * handed on, since no server wakes another client with less. */
#include "page.h"

#include <hiredis/hiredis.h>

struct place {
    char own[32], next[32]; /* names of lists */
};

static struct place place_of(size_t index, size_t workers)
{
    struct place place;

    snprintf(place.own, sizeof place.own, "bench:ring:%zu", index);
    snprintf(place.next, sizeof place.next, "bench:ring:%zu", (index + 1) % workers);
    return place;
}

static void ask(redisContext *server, const char **words, int type)
{
    redisReply *reply = redisCommandArgv(server, 3, words, NULL);

    if (!reply || reply->type != type)
        give_up("RPUSH or BLPOP did not answer as it should");
    freeReplyObject(reply);
}

static void give(redisContext *server, const char *list)
{
    ask(server, (const char *[]){"RPUSH", list, "token"}, REDIS_REPLY_INTEGER);
}

static void take(redisContext *server, const char *list)
{
    ask(server, (const char *[]){"BLPOP", list, "0"}, REDIS_REPLY_ARRAY);
}

int main(int argc, char **argv)
{
    redisContext *server = argc == 5 ? redisConnectUnix(argv[1]) : NULL;

    if (!server || server->err)
        give_up("usage: contend_ring SOCKET WORKERS PAGE INDEX, of a server that runs");
    struct page *page = page_open(argv[3]);
    size_t index = strtoul(argv[4], NULL, 10);
    struct place place = place_of(index, strtoul(argv[2], NULL, 10));
    while (round_begin() > 0) {
        bool in_time;
        if (index == 0)
            give(server, place.own);
        do {
            uint64_t asked_ns = page_now();
            take(server, place.own);
            in_time = page_hold(page, index, asked_ns);
            give(server, place.next);
        } while (in_time);
        round_end();
    }
    redisFree(server);
    return 0;
}
