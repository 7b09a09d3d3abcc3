/* command_guard.c - which of the user's commands may go onto a connection of ours.
 *
 * A pooled connection is shared: a command that would change what the connection
 * is (its user, database, protocol, subscriptions, an open transaction), or that
 * would be answered out of turn, is refused before it is sent. In a transaction
 * what blocks is refused as well: the keys stay watched, but nothing moves.
 */
#include "command_guard.h"

#include "reply_guard.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define ARGS_MAX 1048576

static bool is_word(const void *bytes, size_t len, const char *word)
{
    return len == strlen(word) && strncasecmp(bytes, word, len) == 0;
}

static bool among(const char *const *words, const void *name, size_t len)
{
    for (; *words; words++)
        if (is_word(name, len, *words))
            return true;
    return false;
}

static bool changes_connection(size_t argc, const void *const *argv, const size_t *len)
{
    static const char *const words[] = {
        "AUTH", "HELLO", "SELECT", "RESET", "QUIT", "MULTI", "EXEC", "DISCARD", "WATCH",
        "UNWATCH", "SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE",
        "SUNSUBSCRIBE", "MONITOR", "SYNC", "PSYNC", "REPLCONF", "ASKING", "READONLY",
        "READWRITE", NULL,
    };
    static const char *const of_client[] = {
        "REPLY", "TRACKING", "CACHING", "CAPA", "IMPORT-SOURCE", NULL,
    };
    static const char *const of_script[] = {"DEBUG", NULL};
    return among(words, argv[0], len[0]) ||
           (argc > 1 && is_word(argv[0], len[0], "CLIENT") && among(of_client, argv[1], len[1])) ||
           (argc > 1 && is_word(argv[0], len[0], "SCRIPT") && among(of_script, argv[1], len[1]));
}

/* Among the options that end with STREAMS, after which names follow. */
static bool has_block(size_t argc, const void *const *argv, const size_t *len, size_t first)
{
    for (size_t i = first; i < argc && !is_word(argv[i], len[i], "STREAMS"); i++)
        if (is_word(argv[i], len[i], "BLOCK"))
            return true;
    return false;
}

static bool may_block(size_t argc, const void *const *argv, const size_t *len)
{
    static const char *const words[] = {
        "BLPOP", "BRPOP", "BRPOPLPUSH", "BLMOVE", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP",
        "WAIT", "WAITAOF", NULL,
    };
    if (is_word(argv[0], len[0], "XREAD"))
        return has_block(argc, argv, len, 1);
    if (is_word(argv[0], len[0], "XREADGROUP")) /* GROUP group consumer */
        return has_block(argc, argv, len, 4);
    return among(words, argv[0], len[0]);
}

const char *sneck__command_refused(enum command_place place, size_t argc,
                                   const void *const *argv, const size_t *len)
{
    if (argc == 0)
        return "there is no command";
    if (argc > ARGS_MAX)
        return "it has more than 1048576 arguments";
    size_t total = 0;
    for (size_t i = 0; i < argc; i++) {
        if (!argv[i])
            return "an argument is NULL";
        total += len[i] < (size_t)REPLY_BYTES_MAX ? len[i] : (size_t)REPLY_BYTES_MAX;
        if (total >= (size_t)REPLY_BYTES_MAX)
            return "its arguments have more than 512 MiB";
    }
    if (changes_connection(argc, argv, len))
        return "it would change the state of a connection that is shared; use one of your own";
    if (place == IN_TRANSACTION && may_block(argc, argv, len))
        return "it would block inside of a transaction; read before, or without blocking";
    return NULL;
}
