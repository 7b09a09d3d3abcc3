/* raw_quorum SOCKET...: what a lock on several servers costs without a library.
 *
 * The same two commands as in raw_hiredis, each written to all servers before the first
 * reply is read: the floor for whoever asks all of them at once and waits for all. */
#include "rounds.h"

#include <hiredis/hiredis.h>

static const char name[] = "bench:lock";
static const char token[] = "raw:benchmark:0123456789abcdef0123456789abcdef";
static const char script[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then "
                             "return redis.call('DEL', KEYS[1]) end return 0";

enum { SERVERS_MAX = 15 };

static redisContext *servers[SERVERS_MAX];
static int server_count;

static void connect_all(char **sockets, int count)
{
    if (count < 1 || count > SERVERS_MAX)
        give_up("usage: raw_quorum SOCKET..., of 1 to 15 servers that run");
    for (server_count = 0; server_count < count; server_count++) {
        redisContext *server = redisConnectUnix(sockets[server_count]);

        if (!server || server->err)
            give_up("a server cannot be reached");
        servers[server_count] = server;
    }
}

/* The last reply's text is the script's digest. */
static redisReply *load_script(void)
{
    redisReply *reply = NULL;

    for (int i = 0; i < server_count; i++) {
        if (reply)
            freeReplyObject(reply);
        reply = redisCommand(servers[i], "SCRIPT LOAD %s", script);
        if (!reply || reply->type != REDIS_REPLY_STRING)
            give_up("SCRIPT LOAD did not answer a digest");
    }
    return reply;
}

static void write_to(redisContext *server, int argc, const char **argv)
{
    int done = 0;

    if (redisAppendCommandArgv(server, argc, argv, NULL))
        give_up("out of memory");
    while (!done) {
        if (redisBufferWrite(server, &done))
            give_up(server->errstr);
    }
}

static void read_from(redisContext *server, int type, long long integer)
{
    redisReply *reply = NULL;

    if (redisGetReply(server, (void **)&reply))
        give_up(server->errstr);
    if (reply->type != type || reply->integer != integer)
        give_up("a server did not do it");
    freeReplyObject(reply);
}

static void ask_all(int argc, const char **argv, int type, long long integer)
{
    for (int i = 0; i < server_count; i++)
        write_to(servers[i], argc, argv);
    for (int i = 0; i < server_count; i++)
        read_from(servers[i], type, integer);
}

static void acquire(void)
{
    const char *argv[] = {"SET", name, token, "NX", "PX", "10000"};

    ask_all(6, argv, REDIS_REPLY_STATUS, 0);
}

static void release(const char *sha)
{
    const char *argv[] = {"EVALSHA", sha, "1", name, token};

    ask_all(5, argv, REDIS_REPLY_INTEGER, 1);
}

int main(int argc, char **argv)
{
    redisReply *digest;
    long cycles;

    connect_all(argv + 1, argc - 1);
    digest = load_script();
    while ((cycles = round_begin()) > 0) {
        for (long i = 0; i < cycles; i++) {
            acquire();
            release(digest->str);
        }
        round_end();
    }
    freeReplyObject(digest);
    for (int i = 0; i < server_count; i++)
        redisFree(servers[i]);
    return 0;
}
