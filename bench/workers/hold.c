/* hold URL LOCKS TTL_MS SECONDS: holds many locks that are renewed, does nothing else, and
 * prints {"locks": ..., "held": ..., "core_percent": ...}: how many are held at the end, and
 * the CPU time of the process in that time. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* clock_gettime */
#endif
#include <sneck.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void give_up(const char *why)
{
    fprintf(stderr, "hold: %s\n", why);
    exit(1);
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static sneck_lock *take(sneck_client *client, long number, int64_t ttl_ms)
{
    sneck_lock *lock;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    char name[32], error[SNECK_ERROR_SIZE];
    snprintf(name, sizeof name, "bench:%ld", number);
    options.ttl_ms = ttl_ms;
    options.renew = true;
    if (sneck_lock_new(&lock, client, name, strlen(name), &options, error))
        give_up(error);
    if (sneck_lock_acquire(lock, 0))
        give_up(sneck_lock_error(lock));
    return lock;
}

int main(int argc, char **argv)
{
    sneck_client *client;
    char error[SNECK_ERROR_SIZE];
    if (argc != 5)
        give_up("usage: hold URL LOCKS TTL_MS SECONDS");
    long count = atol(argv[2]), held = 0;
    double length = atof(argv[4]);
    sneck_lock **locks = malloc((size_t)count * sizeof *locks);
    if (!locks || sneck_client_new(&client, argv[1], NULL, error))
        give_up("no client");
    for (long i = 0; i < count; i++)
        locks[i] = take(client, i, atol(argv[3]));
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), begun = seconds(CLOCK_MONOTONIC);
    nanosleep(&(struct timespec){(time_t)length, (long)((length - (double)(time_t)length) * 1e9)},
              NULL);
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    double took = seconds(CLOCK_MONOTONIC) - begun;
    for (long i = 0; i < count; i++)
        held += sneck_lock_lease(locks[i]) == SNECK_LEASE_HELD;
    printf("{\"locks\": %ld, \"held\": %ld, \"core_percent\": %.2f}\n", count, held,
           100 * cpu / took);
    for (long i = 0; i < count; i++)
        sneck_lock_free(locks[i]);
    sneck_client_free(client);
    free(locks);
    return 0;
}
