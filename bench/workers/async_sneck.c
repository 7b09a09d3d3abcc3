/* async_sneck URL WAITERS PAGE: so many acquires wait for one lock, all of them on one
 * link of the C library, in one process, driven by poll(2).
 *
 * Whoever gets the lock is in the section, releases it, and waits anew behind the others;
 * the page notes hand-overs, each from the release's start to the next one's success. A
 * line with 1 is a round. 2 lets come in what has become due since the last one. Between
 * two lines the lock is held, and nothing runs. */
#include "page.h"

#include <sneck.h>

#define TTL_MS 3600000

enum { ROUND = 1, SETTLE = 2 };

struct waiter {
    sneck_lock *lock;
    bool releasing; /* its op is a release; else an acquire */
};

struct crowd {
    sneck_link *link;
    struct page *page;
    struct waiter *waiters;
    struct waiter *holder; /* NULL: the lock changes hands */
    uint64_t released_ns;
};

static void wait_anew(struct crowd *crowd, struct waiter *waiter)
{
    sneck_op *op;

    waiter->releasing = false;
    if (sneck_lock_acquire_start(&op, waiter->lock, crowd->link, SNECK_FOREVER))
        give_up("out of memory");
    sneck_op_set_data(op, waiter);
}

static void let_go(struct crowd *crowd)
{
    struct waiter *waiter = crowd->holder;
    sneck_op *op;

    waiter->releasing = true;
    crowd->holder = NULL;
    crowd->released_ns = page_now();
    if (sneck_lock_release_start(&op, waiter->lock, crowd->link))
        give_up("out of memory");
    sneck_op_set_data(op, waiter);
}

static void hold(struct crowd *crowd, struct waiter *waiter)
{
    size_t index = (size_t)(waiter - crowd->waiters);

    crowd->holder = waiter;
    if (page_hold(crowd->page, index, crowd->released_ns))
        let_go(crowd);
}

static void step(struct crowd *crowd)
{
    struct pollfd fds[SNECK_LINK_FDS];
    nfds_t count = (nfds_t)sneck_link_fds(crowd->link, fds);

    poll(fds, count, (int)sneck_link_timeout_ms(crowd->link));
    sneck_link_step(crowd->link);
    for (sneck_op *op; (op = sneck_link_ended(crowd->link));) {
        struct waiter *waiter = sneck_op_data(op);
        if (sneck_op_status(op))
            give_up(sneck_op_error(op));
        sneck_op_free(op);
        if (waiter->releasing)
            wait_anew(crowd, waiter);
        else
            hold(crowd, waiter);
    }
}

static void gather(struct crowd *crowd, sneck_client *client, size_t count)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    char name[32], error[SNECK_ERROR_SIZE];
    int length = snprintf(name, sizeof name, "bench:%ld", (long)getpid());

    options.ttl_ms = TTL_MS;
    crowd->waiters = calloc(count, sizeof *crowd->waiters);
    if (!crowd->waiters)
        give_up("out of memory");
    for (size_t i = 0; i < count; i++) {
        struct waiter *waiter = &crowd->waiters[i];
        if (sneck_lock_new(&waiter->lock, client, name, (size_t)length, &options, error))
            give_up(error);
        wait_anew(crowd, waiter);
    }
}

static void settle(struct crowd *crowd)
{
    do
        step(crowd);
    while (!crowd->holder || !sneck_link_quiet(crowd->link));
}

static void run_round(struct crowd *crowd)
{
    let_go(crowd);
    while (!crowd->holder)
        step(crowd);
}

int main(int argc, char **argv)
{
    struct crowd crowd = {0};
    sneck_client *client;
    char error[SNECK_ERROR_SIZE];

    if (argc != 4)
        give_up("usage: async_sneck URL WAITERS PAGE");
    crowd.page = page_open(argv[3]);
    if (sneck_client_new(&client, argv[1], NULL, error) || sneck_link_new(&crowd.link, client))
        give_up(error);
    gather(&crowd, client, strtoul(argv[2], NULL, 10) + 1); /* one of them holds it */
    for (long what; (what = round_begin()) > 0;) {
        if (what == SETTLE)
            settle(&crowd);
        else
            run_round(&crowd);
        round_end();
    }
    sneck_link_free(crowd.link);
    sneck_client_free(client);
    return 0;
}
