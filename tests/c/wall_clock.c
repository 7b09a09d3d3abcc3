/* wall_clock.c - holds, renews and waits while the wall clock is set to and fro.
 *
 *     wall_clock FILE
 *
 * FILE is what libfaketime, which is preloaded, reads the time's offset from. The address
 * is SNECK_TEST_URL. Says what is wrong, and ends with 1 then. */
#include <sneck.h>

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TTL_MS 3000
#define HOUR_S 3600

static const char *offset_file;

static void need(bool so, const char *what)
{
    if (so)
        return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

static int64_t clock_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Sets the wall clock, and makes sure that it is set and no other is. */
static void step_wall_clock(int seconds)
{
    int64_t wall = clock_ms(CLOCK_REALTIME), steady = clock_ms(CLOCK_MONOTONIC);
    int64_t boot = clock_ms(CLOCK_BOOTTIME);
    static int offset;
    offset += seconds;
    FILE *file = fopen(offset_file, "w");
    need(file && fprintf(file, "%+d\n", offset) > 0 && fclose(file) == 0, "the offset is written");
    int64_t stepped = clock_ms(CLOCK_REALTIME) - wall;
    need(llabs(stepped - seconds * INT64_C(1000)) < 600000, "the wall clock has stepped");
    need(clock_ms(CLOCK_MONOTONIC) - steady < 600000, "the steady clock has not");
    need(llabs(clock_ms(CLOCK_BOOTTIME) - boot) < 600000, "nor has the one that waits go by");
}

static sneck_lock *make_lock(sneck_client *client, const char *name, bool renew)
{
    sneck_lock *lock = NULL;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.ttl_ms = renew ? TTL_MS : 60000;
    options.renew = renew;
    need(!sneck_lock_new(&lock, client, name, strlen(name), &options, NULL), "a lock is made");
    return lock;
}

static void hold_through(sneck_client *client, int seconds)
{
    sneck_lock *bare = make_lock(client, "bare", false);
    need(!sneck_lock_acquire(bare, 0), "it is acquired");
    int64_t before = sneck_lock_remaining_ms(bare);
    step_wall_clock(seconds);
    int64_t after = sneck_lock_remaining_ms(bare);
    need(after <= before && after > 30000, "its validity does not step");
    need(!sneck_lock_release(bare), "it is released");
    sneck_lock_free(bare);
}

static void *wait_for_it(void *data)
{
    static int status;
    status = sneck_lock_acquire(data, 1500);
    return &status;
}

/* A wait that has begun neither ends at once nor lasts an hour longer. */
static void wait_through(sneck_client *client, int seconds)
{
    sneck_lock *holder = make_lock(client, "busy", false), *waiter = make_lock(client, "busy", false);
    pthread_t thread;
    void *status;
    sneck_stats stats = {0};
    sneck_waiter *waiters = NULL;
    size_t count = 0;
    need(!sneck_lock_acquire(holder, 0), "it is acquired");
    int64_t begun = clock_ms(CLOCK_MONOTONIC);
    pthread_create(&thread, NULL, wait_for_it, waiter);
    while (count == 0) {
        need(!sneck_lock_waiters(&waiters, &count, holder), "the queue is read");
        sneck_waiters_free(waiters);
    }
    step_wall_clock(seconds);
    pthread_join(thread, &status);
    need(*(int *)status == SNECK_TIMEOUT, "the wait ends by itself");
    need(clock_ms(CLOCK_MONOTONIC) - begun >= 1500, "and not too early");
    sneck_client_stats(&stats, client);
    need(stats.unknown == 0, "nothing is in doubt");
    need(!sneck_lock_release(holder), "it is released");
    sneck_lock_free(holder);
    sneck_lock_free(waiter);
}

static void renew_through(sneck_lock *renewed)
{
    int64_t until = clock_ms(CLOCK_MONOTONIC) + TTL_MS + TTL_MS / 2;
    while (clock_ms(CLOCK_MONOTONIC) < until)
        poll(NULL, 0, 50);
    need(sneck_lock_lease(renewed) == SNECK_LEASE_HELD, "it is renewed all the time");
}

int main(int argc, char **argv)
{
    sneck_client *client = NULL;
    offset_file = argc == 2 ? argv[1] : "";
    need(!sneck_client_new(&client, getenv("SNECK_TEST_URL"), NULL, NULL), "a client is made");
    sneck_lock *renewed = make_lock(client, "renewed", true);
    need(!sneck_lock_acquire(renewed, 0), "it is acquired");
    hold_through(client, HOUR_S);
    hold_through(client, -2 * HOUR_S);
    wait_through(client, HOUR_S);
    wait_through(client, -HOUR_S);
    renew_through(renewed);
    need(!sneck_lock_release(renewed), "it is still ours");
    sneck_lock_free(renewed);
    sneck_client_free(client);
    return 0;
}
