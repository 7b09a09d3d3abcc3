/* Acquire many locks at once over one connection, by poll(2), and give one up.
 *
 * Each job acquires its lock, works, releases. A link tells which descriptors to wait
 * for and for how long; a step does what can be done without blocking. docs/loops.md
 * has the contract; epoll.c and libuv.c do the same in loops of that kind. */
#include <errno.h>
#include <sneck.h>
#include <stdio.h>
#include <string.h>

enum { JOBS = 5, BUSY = 2 }; /* somebody else has the lock of job 2 */

struct job {
    char name[16];
    sneck_lock *lock;
    sneck_op *op; /* under way, or NULL */
    bool holds;
};

static struct job jobs[JOBS];
static int running, failed;

static void fail(const char *name, const char *why)
{
    fprintf(stderr, "%s: %s\n", name, why);
    failed = 1;
}

/* Starts the job's next op. The op carries the job, so that its end finds it. */
static void start(sneck_link *link, struct job *job)
{
    if (job->holds ? sneck_lock_release_start(&job->op, job->lock, link)
                   : sneck_lock_acquire_start(&job->op, job->lock, link, 30000))
        fail(job->name, "out of memory");
    else
        sneck_op_set_data(job->op, job);
}

/* Its op has ended: the job goes on, or is over. */
static void go_on(sneck_link *link, struct job *job)
{
    int status = sneck_op_status(job->op);

    if (status == SNECK_INTERRUPTED)
        printf("%s is given up\n", job->name);
    else if (status)
        fail(job->name, sneck_op_error(job->op));
    sneck_op_free(job->op);
    job->op = NULL;
    if (status == SNECK_OK && !job->holds) {
        printf("%s is ours\n", job->name); /* here the work is done */
        job->holds = true;
        start(link, job);
    } else {
        running--;
    }
}

/* One turn of the loop. A program's own descriptors would be polled along with the
 * link's. What is started here leaves with the next turn. */
static void turn(sneck_link *link)
{
    struct pollfd fds[SNECK_LINK_FDS];
    nfds_t count = (nfds_t)sneck_link_fds(link, fds);
    sneck_op *op;

    if (poll(fds, count, (int)sneck_link_timeout_ms(link)) < 0 && errno != EINTR)
        perror("poll");
    sneck_link_step(link);
    while ((op = sneck_link_ended(link)))
        go_on(link, sneck_op_data(op));
}

static void run(sneck_link *link)
{
    for (running = 0; running < JOBS && !failed; running++)
        start(link, &jobs[running]);
    while (running > 1 && !failed)
        turn(link);
    if (jobs[BUSY].op)
        sneck_op_cancel(jobs[BUSY].op); /* it comes out of sneck_link_ended(), too */
    while (running > 0 && !failed)
        turn(link);
    while (!sneck_link_quiet(link)) /* until what the cancelled op left behind is done */
        turn(link);
}

static int make_locks(sneck_client *client)
{
    char error[SNECK_ERROR_SIZE];

    for (int i = 0; i < JOBS; i++) {
        struct job *job = &jobs[i];
        snprintf(job->name, sizeof job->name, "stock:%d", i);
        if (sneck_lock_new(&job->lock, client, job->name, strlen(job->name), NULL, error)) {
            fprintf(stderr, "%s\n", error);
            return 1;
        }
    }
    return 0;
}

int main(void)
{
    sneck_client *client = NULL;
    sneck_link *link = NULL;
    sneck_lock *other = NULL;
    char error[SNECK_ERROR_SIZE];

    if (sneck_client_new(&client, NULL, NULL, error)) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    failed = make_locks(client) || sneck_link_new(&link, client) ||
             sneck_lock_clone(&other, jobs[BUSY].lock) || sneck_lock_acquire(other, 0);
    if (!failed) {
        run(link);
        sneck_lock_release(other);
    }
    for (int i = 0; i < JOBS; i++) {
        sneck_op_free(jobs[i].op);
        sneck_lock_free(jobs[i].lock);
    }
    sneck_lock_free(other);
    sneck_link_free(link);
    sneck_client_free(client);
    return failed;
}
