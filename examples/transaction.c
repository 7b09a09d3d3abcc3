/* Take the first free seat by compare-and-set, without a lock and without blocking.
 *
 * Each step of a transaction is an op. Between two steps the program decides, and
 * while one is under way any event loop can stand in for poll(2). */
#include <errno.h>
#include <sneck.h>
#include <stdio.h>
#include <string.h>

#define KEY "seats:free"

/* Steps the op's link until the op has ended. A program's own descriptors would be
 * polled along with the link's. */
static int finish(sneck_op *op)
{
    sneck_link *link = sneck_op_link(op);

    while (sneck_op_status(op) == SNECK_PENDING) {
        struct pollfd fds[SNECK_LINK_FDS];
        nfds_t count = (nfds_t)sneck_link_fds(link, fds);

        if (poll(fds, count, (int)sneck_link_timeout_ms(link)) < 0 && errno != EINTR)
            perror("poll");
        sneck_link_step(link);
    }
    return sneck_op_status(op);
}

/* Starts an op, runs it to its end, and frees it. */
static int run(int (*start)(sneck_op **, sneck_tx *), sneck_tx *tx)
{
    sneck_op *op = NULL;
    int status = start(&op, tx);

    if (status == SNECK_OK)
        status = finish(op);
    sneck_op_free(op);
    return status;
}

/* Reads which seat is free, writes down the next one, and tries to commit. */
static int attempt(sneck_tx *tx, int *seat)
{
    sneck_op *op = NULL;
    char next[16];
    int status = sneck_tx_read_start(&op, tx, 2, (const void *const[]){"GET", KEY},
                                     (const size_t[]){3, sizeof KEY - 1});

    if (status == SNECK_OK)
        status = finish(op);
    if (status == SNECK_OK) {
        const char *text = sneck_reply_bytes(sneck_op_reply(op), NULL);

        *seat = 1;
        if (text)
            sscanf(text, "%d", seat);
        snprintf(next, sizeof next, "%d", *seat + 1);
        status = sneck_tx_queue(tx, 3, (const void *const[]){"SET", KEY, next},
                                (const size_t[]){3, sizeof KEY - 1, strlen(next)});
    }
    sneck_op_free(op);
    return status == SNECK_OK ? run(sneck_tx_commit_start, tx) : status;
}

int main(void)
{
    sneck_client *client = NULL;
    sneck_tx *tx = NULL;
    char error[SNECK_ERROR_SIZE];
    int status, seat = 0;

    status = sneck_client_new(&client, NULL, NULL, error);
    if (status == SNECK_OK)
        status = sneck_tx_new(&tx, client, 1, (const void *const[]){KEY},
                              (const size_t[]){sizeof KEY - 1}, NULL, error);
    if (status != SNECK_OK) {
        fprintf(stderr, "%s\n", error);
        goto out;
    }
    do { /* begin ends otherwise than OK when attempts or time are used up */
        status = run(sneck_tx_begin_start, tx);
        if (status != SNECK_OK)
            break;
        status = attempt(tx, &seat);
    } while (status == SNECK_CONFLICT);
    if (status == SNECK_OK)
        printf("seat %d is ours\n", seat);
    else
        fprintf(stderr, "%s\n", sneck_tx_error(tx));

out:
    sneck_tx_free(tx);
    sneck_client_free(client);
    return status != SNECK_OK;
}
