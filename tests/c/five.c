/* five.c - five servers and a quorum of them, for tests that may break some. */
#include "five.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

int start_five(void **state)
{
    struct five *five = calloc(1, sizeof *five);
    assert_non_null(five);
    for (size_t i = 0; i < FIVE; i++)
        start_server(&five->servers[i]);
    *state = five;
    return 0;
}

int stop_five(void **state)
{
    struct five *five = *state;
    for (size_t i = 0; i < FIVE; i++)
        remove_server(&five->servers[i]);
    free(five);
    return 0;
}

static sneck_client *client_of(const struct five *five, size_t i)
{
    sneck_client *client = NULL;
    assert_int_equal(sneck_client_new(&client, five->servers[i].url, NULL, NULL), SNECK_OK);
    return client;
}

void revive(struct five *five)
{
    for (size_t i = 0; i < FIVE; i++) {
        if (five->servers[i].pid == 0)
            start_server(&five->servers[i]);
        signal_server(&five->servers[i], SIGCONT);
    }
}

int begin_five(void **state)
{
    struct five *five = *state;
    revive(five);
    for (size_t i = 0; i < FIVE; i++) {
        five->each[i] = client_of(five, i);
        DO(five->each[i], "FLUSHALL");
        DO(five->each[i], "CONFIG", "RESETSTAT");
    }
    five->client = new_quorum(five, FIVE);
    return 0;
}

int end_five(void **state)
{
    struct five *five = *state;
    sneck_client_free(five->client);
    for (size_t i = 0; i < FIVE; i++)
        sneck_client_free(five->each[i]);
    return 0;
}

sneck_client *new_quorum(const struct five *five, size_t count)
{
    const char *urls[FIVE];
    sneck_client *client = NULL;
    for (size_t i = 0; i < count; i++)
        urls[i] = five->servers[i].url;
    assert_int_equal(sneck_quorum_new(&client, count, urls, NULL, NULL), SNECK_OK);
    return client;
}

sneck_lock *quorum_lock(sneck_client *client, const char *name, int64_t ttl_ms, bool fence)
{
    sneck_lock *lock = NULL;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.ttl_ms = ttl_ms;
    options.fence = fence;
    options.poll_ms = 5;
    assert_int_equal(sneck_lock_new(&lock, client, name, strlen(name), &options, NULL), SNECK_OK);
    return lock;
}

void signal_some(struct five *five, size_t first, size_t count, int signal)
{
    for (size_t i = first; i < first + count; i++)
        signal_server(&five->servers[i % FIVE], signal);
}

void kill_some(struct five *five, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        kill_server(&five->servers[i % FIVE]);
}

size_t found_on(struct five *five, const char *key)
{
    size_t count = 0;
    for (size_t i = 0; i < FIVE; i++)
        count += five->servers[i].pid != 0 && key_exists(five->each[i], key);
    return count;
}

void occupy(struct five *five, const char *key, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        DO(five->each[i % FIVE], "SET", key, "another's", "PX", "600000");
}

size_t errors_with(const sneck_op *op, const char *words)
{
    size_t count = 0;
    for (size_t i = 0; i < FIVE; i++)
        count += strstr(sneck_op_member_error(op, i), words) != NULL;
    return count;
}
