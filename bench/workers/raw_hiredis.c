/* raw_hiredis SOCKET: what a lock costs without a library.
 *
 * The same two commands over blocking hiredis, with a fixed token: this is the
 * floor that the others are measured against. */
#include "rounds.h"

#include <hiredis/hiredis.h>

static const char name[] = "bench:lock";
static const char token[] = "raw:benchmark:0123456789abcdef0123456789abcdef";
static const char script[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then "
                             "return redis.call('DEL', KEYS[1]) end return 0";

/* Its text is the script's digest. */
static redisReply *load_script(redisContext *server)
{
    redisReply *reply = redisCommand(server, "SCRIPT LOAD %s", script);

    if (!reply || reply->type != REDIS_REPLY_STRING)
        give_up("SCRIPT LOAD did not answer a digest");
    return reply;
}

static void acquire(redisContext *server)
{
    const char *argv[] = {"SET", name, token, "NX", "PX", "10000"};
    redisReply *reply = redisCommandArgv(server, 6, argv, NULL);

    if (!reply || reply->type != REDIS_REPLY_STATUS)
        give_up("SET did not answer OK");
    freeReplyObject(reply);
}

static void release(redisContext *server, const char *sha)
{
    const char *argv[] = {"EVALSHA", sha, "1", name, token};
    redisReply *reply = redisCommandArgv(server, 5, argv, NULL);

    if (!reply || reply->type != REDIS_REPLY_INTEGER || reply->integer != 1)
        give_up("EVALSHA did not answer 1");
    freeReplyObject(reply);
}

int main(int argc, char **argv)
{
    redisContext *server = argc == 2 ? redisConnectUnix(argv[1]) : NULL;
    redisReply *digest;
    long cycles;

    if (!server || server->err)
        give_up("usage: raw_hiredis SOCKET, of a server that runs");
    digest = load_script(server);
    while ((cycles = round_begin()) > 0) {
        for (long i = 0; i < cycles; i++) {
            acquire(server);
            release(server, digest->str);
        }
        round_end();
    }
    freeReplyObject(digest);
    redisFree(server);
    return 0;
}
