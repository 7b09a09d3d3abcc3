#ifndef FIVE_H
#define FIVE_H

#include "own_server.h"

#include <sneck_quorum.h>

#define FIVE 5

/* Five servers of the program's own, each with a client of it alone, and a quorum of all. */
struct five {
    struct own_server servers[FIVE];
    sneck_client *each[FIVE];
    sneck_client *client;
};

/* Setup and teardown of the group, and of a test: all servers run, and are empty. The state
 * is a struct five. */
int start_five(void **state);
int stop_five(void **state);
int begin_five(void **state);
int end_five(void **state);
#define WITH_FIVE(test) cmocka_unit_test_setup_teardown(test, begin_five, end_five)

/* A client of the first `count` servers. */
sneck_client *new_quorum(const struct five *five, size_t count);

/* A lock, which may have fences. */
sneck_lock *quorum_lock(sneck_client *client, const char *name, int64_t ttl_ms, bool fence);

/* Signals, kills or revives the servers from `first` on, `count` of them. */
void signal_some(struct five *five, size_t first, size_t count, int signal);
void kill_some(struct five *five, size_t first, size_t count);
void revive(struct five *five);

/* On how many servers, of those that run, there is the key. */
size_t found_on(struct five *five, const char *key);

/* Others hold the key on so many servers from `first` on. */
void occupy(struct five *five, const char *key, size_t first, size_t count);

/* The op says so of so many servers. */
size_t errors_with(const sneck_op *op, const char *words);

#endif
