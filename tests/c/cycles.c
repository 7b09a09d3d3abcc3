/* cycles.c - uses everything about leases once, 10,000 times; for valgrind.
 *
 *     cycles [COUNT]
 *
 * The address is SNECK_TEST_URL. tests/test_c.py looks for leaks, and counts them. */
#include <sneck.h>

#include <stdio.h>
#include <stdlib.h>

static void need(bool so, const char *what)
{
    if (so)
        return;
    fprintf(stderr, "failed: %s\n", what);
    exit(1);
}

static sneck_lock *make_lock(sneck_client *client, int cycle)
{
    sneck_lock *lock = NULL;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.renew = cycle % 2 == 0;
    options.fence = cycle % 3 == 0;
    options.fair = cycle % 5 == 0;
    options.label = "cycles";
    need(!sneck_lock_new(&lock, client, "door", 4, &options, NULL), "new");
    return lock;
}

static void use_lock(sneck_client *client, int cycle)
{
    sneck_lock *lock = make_lock(client, cycle), *clone = NULL;
    need(!sneck_lock_acquire(lock, 0), "acquire");
    if (cycle % 7 == 0)
        need(!sneck_lock_extend(lock, 1000), "extend");
    if (cycle % 11 == 0)
        need(!sneck_lock_clone(&clone, lock) && sneck_lock_acquire(clone, 0) == SNECK_BUSY, "clone");
    need(!sneck_lock_release(lock), "release");
    sneck_lock_free(clone);
    sneck_lock_free(lock);
}

static void use_rlock(sneck_client *client)
{
    sneck_rlock *rlock = NULL;
    need(!sneck_rlock_new(&rlock, client, "door", 4, NULL, NULL), "rlock");
    need(!sneck_rlock_acquire(rlock, 1, 0) && !sneck_rlock_acquire(rlock, 1, 0), "enter");
    need(!sneck_rlock_release(rlock, 1) && !sneck_rlock_release(rlock, 1), "leave");
    sneck_rlock_free(rlock);
}

int main(int argc, char **argv)
{
    sneck_client *client = NULL;
    int count = argc > 1 ? atoi(argv[1]) : 10000;
    for (int i = 0; i < count; i++) {
        if (i % 100 == 0) {
            sneck_client_free(client);
            need(!sneck_client_new(&client, getenv("SNECK_TEST_URL"), NULL, NULL), "client");
        }
        use_lock(client, i);
        if (i % 13 == 0)
            use_rlock(client);
    }
    sneck_client_free(client);
    return 0;
}
