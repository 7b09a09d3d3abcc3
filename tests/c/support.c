/* support.c - what the C tests share: clients, commands, and a loop that steps.
 *
 * Nothing here waits for a fixed time; a link is stepped until something has
 * happened, with a limit that only a broken library reaches.
 */
#include "support.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>


const char *server_url(void)
{
    const char *url = getenv("SNECK_TEST_URL");
    if (!url)
        fail_msg("SNECK_TEST_URL is not set: run the C tests by pytest");
    return url;
}

sneck_client *new_client_within(int64_t io_timeout_ms)
{
    sneck_client *client = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS;
    options.io_timeout_ms = io_timeout_ms;
    assert_int_equal(sneck_client_new(&client, server_url(), &options, NULL), SNECK_OK);
    return client;
}

sneck_client *new_client(void)
{
    return new_client_within(LIMIT_S * 1000);
}

sneck_lock *new_lock(sneck_client *client, const char *name, int64_t ttl_ms)
{
    sneck_lock *lock = NULL;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.ttl_ms = ttl_ms;
    assert_int_equal(sneck_lock_new(&lock, client, name, strlen(name), &options, NULL),
                     SNECK_OK);
    return lock;
}

sneck_link *new_link(sneck_client *client)
{
    sneck_link *link = NULL;
    assert_int_equal(sneck_link_new(&link, client), SNECK_OK);
    return link;
}

/* ------------------------------------------------------------------ commands */

#define WORDS_MAX 8

static size_t measure(const char *const *words, const void **argv, size_t *len)
{
    size_t n = 0;
    for (; words[n]; n++) {
        assert_true(n < WORDS_MAX);
        argv[n] = words[n];
        len[n] = strlen(words[n]);
    }
    return n;
}

sneck_reply *command(sneck_client *client, const char *const *words)
{
    const void *argv[WORDS_MAX];
    size_t len[WORDS_MAX];
    sneck_reply *reply = NULL;
    size_t n = measure(words, argv, len);
    if (sneck_execute(&reply, client, n, argv, len) != SNECK_OK)
        fail_msg("%s", sneck_client_error(client));
    return reply;
}

int64_t command_integer(sneck_client *client, const char *const *words)
{
    sneck_reply *reply = command(client, words);
    assert_int_equal(sneck_reply_kind(reply), SNECK_REPLY_INTEGER);
    int64_t integer = sneck_reply_integer(reply);
    sneck_reply_free(reply);
    return integer;
}

const char *text_of(const sneck_reply *reply)
{
    size_t len;
    const char *text = sneck_reply_bytes(reply, &len);
    return text ? text : "(no text)";
}

bool key_exists(sneck_client *client, const char *key)
{
    return COMMAND_INTEGER(client, "EXISTS", key) == 1;
}

void assert_value(sneck_client *client, const char *key, const char *value)
{
    sneck_reply *reply = COMMAND(client, "GET", key);
    assert_string_equal(text_of(reply), value);
    sneck_reply_free(reply);
}

int tx_read(sneck_reply **out, sneck_tx *tx, const char *const *words)
{
    const void *argv[WORDS_MAX];
    size_t len[WORDS_MAX];
    size_t n = measure(words, argv, len);
    return sneck_tx_read(out, tx, n, argv, len);
}

int tx_queue(sneck_tx *tx, const char *const *words)
{
    const void *argv[WORDS_MAX];
    size_t len[WORDS_MAX];
    size_t n = measure(words, argv, len);
    return sneck_tx_queue(tx, n, argv, len);
}

sneck_op *tx_read_start(sneck_tx *tx, const char *const *words)
{
    const void *argv[WORDS_MAX];
    size_t len[WORDS_MAX];
    sneck_op *op = NULL;
    size_t n = measure(words, argv, len);
    assert_int_equal(sneck_tx_read_start(&op, tx, n, argv, len), SNECK_OK);
    return op;
}

sneck_op *start_command(sneck_client *client, sneck_link *link, const char *const *words)
{
    const void *argv[WORDS_MAX];
    size_t len[WORDS_MAX];
    sneck_op *op = NULL;
    size_t n = measure(words, argv, len);
    assert_int_equal(sneck_execute_start(&op, client, link, n, argv, len), SNECK_OK);
    return op;
}

/* ------------------------------------------------------------------ stepping */

void step_once(sneck_link *link, int64_t at_most_ms)
{
    struct pollfd fds[SNECK_LINK_FDS];
    nfds_t n = (nfds_t)sneck_link_fds(link, fds);
    int64_t timeout = sneck_link_timeout_ms(link);
    if (timeout < 0 || timeout > at_most_ms)
        timeout = at_most_ms;
    poll(fds, n, (int)timeout);
    sneck_link_step(link);
}

int finish(sneck_link *link, sneck_op *op)
{
    time_t limit = time(NULL) + LIMIT_S;
    while (sneck_op_status(op) == SNECK_PENDING) {
        if (time(NULL) > limit)
            fail_msg("the op does not end");
        step_once(link, 1000);
    }
    return sneck_op_status(op);
}

int end_op(sneck_op *op)
{
    int status = finish(sneck_op_link(op), op);
    sneck_op_free(op);
    return status;
}

void settle(sneck_client *client, sneck_link *link)
{
    sneck_op *op = START(client, link, "PING");
    assert_int_equal(finish(link, op), SNECK_OK);
    sneck_op_free(op);
}

sneck_op *block(sneck_client *client, sneck_link *link)
{
    return START(client, link, "BLPOP", "gate", "0");
}

void unblock(sneck_client *other)
{
    sneck_reply_free(COMMAND(other, "RPUSH", "gate", "open"));
}

static bool is_blocked(sneck_client *other)
{
    sneck_reply *reply = COMMAND(other, "INFO", "clients");
    bool blocked = strstr(text_of(reply), "blocked_clients:0") == NULL;
    sneck_reply_free(reply);
    return blocked;
}

void step_until_blocked(sneck_link *link, sneck_client *other)
{
    STEP_UNTIL(link, is_blocked(other));
    /* what was started before this call is written by now, or with these */
    step_once(link, 0);
    step_once(link, 0);
}

/* ------------------------------------------------------------------- waiting */

int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void pause_ms(int64_t ms)
{
    poll(NULL, 0, (int)ms);
}

/* ---------------------------------------------------------------- statistics */

/* The number behind `mark` in INFO; 0 when it is not there. */
static int64_t number_behind(sneck_client *client, const char *section, const char *mark)
{
    sneck_reply *reply = COMMAND(client, "INFO", section);
    const char *found = strstr(text_of(reply), mark);
    int64_t number = found ? strtoll(found + strlen(mark), NULL, 10) : 0;
    sneck_reply_free(reply);
    return number;
}

int64_t server_number(sneck_client *client, const char *section, const char *field)
{
    char mark[64];
    snprintf(mark, sizeof mark, "\n%s:", field);
    return number_behind(client, section, mark);
}

int64_t calls_of(sneck_client *client, const char *name)
{
    char mark[64];
    snprintf(mark, sizeof mark, "cmdstat_%s:calls=", name);
    return number_behind(client, "commandstats", mark);
}

/* ------------------------------------------------------------------- connections */

int64_t connections_of(sneck_client *client)
{
    return server_number(client, "clients", "connected_clients");
}

size_t count_fds(void)
{
    DIR *folder = opendir("/dev/fd");
    size_t count = 0;
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

void kill_others(sneck_client *client)
{
    DO(client, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
}

int empty_server(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_reply_free(COMMAND(client, "FLUSHALL"));
    sneck_reply_free(COMMAND(client, "CONFIG", "RESETSTAT"));
    sneck_client_free(client);
    return 0;
}
