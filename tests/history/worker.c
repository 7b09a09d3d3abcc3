/* worker.c - a process of the history check: takes the lock again and again, and
 * writes down what it claims.
 *
 *     worker URL FILE SEED
 *
 * Runs until it is ended. See README.md. */
#include "sneck.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const int64_t ttls[] = {400, 1000, 2500};
static const int64_t waits[] = {0, 300, 6000, 20000};

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Until when the lock is surely ours. */
static double end_ms(const sneck_lock *lock)
{
    double before = now_ms();
    return before + (double)sneck_lock_remaining_ms(lock);
}

/* One in four of those that are renewed outlives its ttl. */
static long hold_ms(bool renewed)
{
    return renewed && rand() % 4 == 0 ? rand() % 900 : rand() % 120;
}

static void use_lock(sneck_lock *lock, bool renewed, FILE *out)
{
    double until = end_ms(lock);
    fprintf(out, "held %.3f %.3f %lld\n", now_ms(), until, (long long)sneck_lock_fence(lock));
    for (long left = hold_ms(renewed); left > 0; left -= 50) {
        sleep_ms(left < 50 ? left : 50);
        until = end_ms(lock);
        fprintf(out, "still %.3f %.3f\n", now_ms(), until);
    }
    fprintf(out, "releasing %.3f\n", now_ms());
    int status = sneck_lock_release(lock);
    fprintf(out, "released %.3f %s\n", now_ms(), sneck_status_name(status));
}

static void take_lock(sneck_client *client, FILE *out)
{
    sneck_lock *lock;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.renew = rand() % 2;
    options.ttl_ms = options.renew ? ttls[0] : ttls[rand() % 3];
    options.fence = true;
    options.fair = true;
    if (sneck_lock_new(&lock, client, "history", 7, &options, NULL))
        abort();
    fprintf(out, "asked %.3f\n", now_ms());
    int status = sneck_lock_acquire(lock, waits[rand() % 4]);
    if (status == SNECK_OK) {
        use_lock(lock, options.renew, out);
    } else {
        fprintf(out, "missed %.3f %s\n", now_ms(), sneck_status_name(status));
        sleep_ms(20);
    }
    sneck_lock_free(lock);
}

int main(int argc, char **argv)
{
    sneck_client *client;
    sneck_client_options options = SNECK_CLIENT_OPTIONS;
    FILE *out = argc == 4 ? fopen(argv[2], "w") : NULL;
    if (!out)
        return 2;
    setvbuf(out, NULL, _IOLBF, 4096);
    srand((unsigned)strtoul(argv[3], NULL, 10));
    options.io_timeout_ms = 1000;
    if (sneck_client_new(&client, argv[1], &options, NULL))
        return 2;
    for (;;)
        take_lock(client, out);
}
