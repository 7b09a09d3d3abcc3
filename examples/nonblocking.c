/* Acquire two locks at once over one connection, and keep the loop free.
 *
 * A link tells which descriptors to wait for and for how long; one step does
 * what can be done without blocking. Any event loop can stand in for poll(2). */
#include <errno.h>
#include <sneck.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 2 };

static const char *const names[COUNT] = {"stock:7", "stock:8"};

static bool pending(sneck_op *const ops[COUNT])
{
    for (int i = 0; i < COUNT; i++) {
        if (sneck_op_status(ops[i]) == SNECK_PENDING)
            return true;
    }
    return false;
}

/* Steps the link until every op has ended. A program's own descriptors would
 * be polled along with the link's. */
static void loop(sneck_link *link, sneck_op *const ops[COUNT])
{
    while (pending(ops)) {
        struct pollfd fds[SNECK_LINK_FDS];
        nfds_t count = (nfds_t)sneck_link_fds(link, fds);

        if (poll(fds, count, (int)sneck_link_timeout_ms(link)) < 0 && errno != EINTR)
            perror("poll");
        sneck_link_step(link);
    }
}

/* Starts an op on each lock, runs them all, and says how each ended. */
static int acquire_all(sneck_link *link, sneck_lock *const locks[COUNT])
{
    sneck_op *ops[COUNT] = {NULL};
    int failed = 0;

    for (int i = 0; i < COUNT; i++) {
        if (sneck_lock_acquire_start(&ops[i], locks[i], link, 5000)) {
            failed = 1;
            goto out;
        }
    }
    loop(link, ops);
    for (int i = 0; i < COUNT; i++) {
        if (sneck_op_status(ops[i])) {
            fprintf(stderr, "%s: %s\n", names[i], sneck_op_error(ops[i]));
            failed = 1;
        } else {
            printf("%s is ours\n", names[i]);
        }
    }

out:
    for (int i = 0; i < COUNT; i++)
        sneck_op_free(ops[i]);
    return failed;
}

int main(void)
{
    sneck_client *client = NULL;
    sneck_link *link = NULL;
    sneck_lock *locks[COUNT] = {NULL};
    char error[SNECK_ERROR_SIZE];
    int failed = 1;

    if (sneck_client_new(&client, NULL, NULL, error)) {
        fprintf(stderr, "%s\n", error);
        goto out;
    }
    for (int i = 0; i < COUNT; i++) {
        if (sneck_lock_new(&locks[i], client, names[i], strlen(names[i]), NULL, error)) {
            fprintf(stderr, "%s\n", error);
            goto out;
        }
    }
    if (sneck_link_new(&link, client))
        goto out;
    failed = acquire_all(link, locks);
    for (int i = 0; i < COUNT; i++) {
        /* what was not acquired is not ours, and the release says just that */
        if (sneck_lock_release(locks[i]) && !failed)
            failed = 1;
    }

out:
    for (int i = 0; i < COUNT; i++)
        sneck_lock_free(locks[i]);
    sneck_link_free(link);
    sneck_client_free(client);
    return failed;
}
