/* waiters.c - measures the memory of an acquire that waits, its lock object included.
 *
 *     waiters BYTES
 *
 * Fails when one takes more: 200 of them wait on one link, then 2,200. And when these, all of
 * them late to look again, take much more at once. The address is SNECK_TEST_URL. Not for a
 * build with sanitizers, which have an allocator of their own.
 */
#include <sneck.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
#include <malloc.h>
#define SLACK 1
#else
#include <sys/resource.h>
#define SLACK 2 /* for buffers that are freed meanwhile */
#endif

#define FEW 200
#define MANY 2200
#define TTL_MS 3600000
#define LATE_US 2100000   /* whoever waits looks again after 2 s at the latest */
#define BURST_MAX 262144

struct crowd {
    sneck_client *client;
    sneck_link *link;
    sneck_lock *locks[MANY + 1];   /* the first one is held */
    sneck_op *ops[MANY + 1];
    size_t count;
};

static void need(int status, const char *what)
{
    if (status == SNECK_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, sneck_status_name(status));
    exit(1);
}

/* What is allocated; where there is no mallinfo2(), the most that was ever resident. */
static long used(void)
{
#if SLACK == 1
    struct mallinfo2 info = mallinfo2();
    return (long)(info.uordblks + info.hblkhd);
#else
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
#if defined(__APPLE__)
    return usage.ru_maxrss;
#else
    return usage.ru_maxrss * 1024;
#endif
#endif
}

static void wait_one_more(struct crowd *crowd)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    size_t i = crowd->count++;
    char name[32];
    options.ttl_ms = TTL_MS;
    snprintf(name, sizeof name, "bench:%ld", (long)getpid());
    need(sneck_lock_new(&crowd->locks[i], crowd->client, name, strlen(name), &options, NULL),
         "new");
    need(sneck_lock_acquire_start(&crowd->ops[i], crowd->locks[i], crowd->link, SNECK_FOREVER),
         "start");
}

static void step(sneck_link *link)
{
    struct pollfd fds[SNECK_LINK_FDS];
    nfds_t count = (nfds_t)sneck_link_fds(link, fds);
    poll(fds, count, (int)sneck_link_timeout_ms(link));
    sneck_link_step(link);
}

static void gather(struct crowd *crowd, size_t waiting)
{
    while (crowd->count < waiting + 1)
        wait_one_more(crowd);
    do
        step(crowd->link);
    while (!sneck_link_quiet(crowd->link));
    need(sneck_op_status(crowd->ops[0]), "acquire");
    for (size_t i = 1; i < crowd->count; i++)
        if (sneck_op_status(crowd->ops[i]) != SNECK_PENDING)
            need(SNECK_INVALID, "one does not wait");
}

/* What a step takes in which all that wait are late; to the server go 700 KB. */
static long burst(sneck_link *link)
{
    long before = used();
    usleep(LATE_US);
    step(link);
    return used() - before;
}

static void clear(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++) {
        sneck_op_free(crowd->ops[i]);
        sneck_lock_free(crowd->locks[i]);
    }
    sneck_link_free(crowd->link);
    sneck_client_free(crowd->client);
}

int main(int argc, char **argv)
{
    static struct crowd crowd;
    long most = argc > 1 ? atol(argv[1]) : 0;
    need(sneck_client_new(&crowd.client, getenv("SNECK_TEST_URL"), NULL, NULL), "client");
    need(sneck_link_new(&crowd.link, crowd.client), "link");
    gather(&crowd, FEW);
    long before = used();
    gather(&crowd, MANY);
    long each = (used() - before) / (MANY - FEW), more = burst(crowd.link);
    clear(&crowd);
    printf("%ld bytes for each that waits, %ld when all are late\n", each, more);
    return each > 0 && each <= most * SLACK && more <= BURST_MAX * SLACK ? 0 : 1;
}
