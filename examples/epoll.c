/* Drive a link by epoll(7): acquire many locks at once, do something under each,
 * release, and give one up.
 *
 * epoll keeps what it watches, so a program must see when the link has another
 * descriptor: by the link's generation, since the number may be the same again. */
#include <errno.h>
#include <sneck.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* ------------------------------------------------------- a link in an epoll loop */

struct driver {
    int epoll;
    sneck_link *link;
    uint64_t generation; /* of the descriptors that are watched */
    size_t count;
    struct pollfd fds[SNECK_LINK_FDS];
};

static void control(struct driver *driver, int action, const struct pollfd *fd)
{
    struct epoll_event event = {.data.ptr = driver};

    event.events = (fd->events & POLLIN ? EPOLLIN : 0u) | (fd->events & POLLOUT ? EPOLLOUT : 0u);
    if (epoll_ctl(driver->epoll, action, fd->fd, &event) && action != EPOLL_CTL_DEL)
        perror("epoll_ctl");
}

/* Watches what the link wants now: to be called after every call on it or its ops. It
 * asks the kernel for nothing where nothing has changed. */
static void update(struct driver *driver)
{
    struct pollfd now[SNECK_LINK_FDS];
    size_t count = sneck_link_fds(driver->link, now);
    uint64_t generation = sneck_link_generation(driver->link);
    bool anew = generation != driver->generation;

    /* of the old ones some are closed, and epoll has forgotten those already */
    for (size_t i = 0; anew && i < driver->count; i++)
        control(driver, EPOLL_CTL_DEL, &driver->fds[i]);
    for (size_t i = 0; i < count; i++)
        if (anew || now[i].events != driver->fds[i].events)
            control(driver, anew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, &now[i]);
    memcpy(driver->fds, now, sizeof now[0] * count);
    driver->count = count;
    driver->generation = generation;
}

/* One turn of the loop, in which go_on() is given each op that has ended. Of a program
 * with descriptors of its own, epoll_wait() would tell those here, too. */
static void turn(struct driver *driver, void go_on(struct driver *driver, sneck_op *op))
{
    struct epoll_event events[16];
    bool told;

    if (epoll_wait(driver->epoll, events, 16, (int)sneck_link_timeout_ms(driver->link)) < 0 &&
        errno != EINTR)
        perror("epoll_wait");
    do {
        told = false;
        sneck_link_step(driver->link);
        update(driver); /* before go_on() can open a descriptor with the number of a closed one */
        for (sneck_op *op; (op = sneck_link_ended(driver->link)); told = true)
            go_on(driver, op);
    } while (told); /* what go_on() has started leaves at once */
    update(driver);
}

/* ------------------------------------------------------------------- the program */

enum { JOBS = 5 };

struct job {
    char name[16];
    sneck_lock *lock;
    enum { ACQUIRING, RELEASING } doing;
};

static int running;

static _Noreturn void die(const char *message)
{
    fprintf(stderr, "%s\n", message);
    exit(1);
}

static sneck_op *acquire(struct driver *driver, struct job *job, int64_t wait_ms)
{
    sneck_op *op;

    job->doing = ACQUIRING;
    if (sneck_lock_acquire_start(&op, job->lock, driver->link, wait_ms))
        die("out of memory");
    sneck_op_set_data(op, job);
    update(driver);
    running++;
    return op;
}

static void release(struct driver *driver, struct job *job)
{
    sneck_op *op;

    job->doing = RELEASING;
    if (sneck_lock_release_start(&op, job->lock, driver->link))
        die("out of memory");
    sneck_op_set_data(op, job);
}

static void go_on(struct driver *driver, sneck_op *op)
{
    struct job *job = sneck_op_data(op);
    int status = sneck_op_status(op);

    if (status && status != SNECK_INTERRUPTED)
        die(sneck_op_error(op));
    sneck_op_free(op);
    if (status == SNECK_INTERRUPTED) {
        printf("%s is given up\n", job->name);
        running--;
    } else if (job->doing == ACQUIRING) {
        printf("%s is ours\n", job->name); /* here the work is done */
        release(driver, job);
    } else {
        running--;
    }
}

int main(void)
{
    struct driver driver = {.epoll = epoll_create1(EPOLL_CLOEXEC)};
    struct job jobs[JOBS];
    sneck_client *client;
    sneck_lock *other;
    char error[SNECK_ERROR_SIZE];

    if (sneck_client_new(&client, NULL, NULL, error))
        die(error);
    if (sneck_link_new(&driver.link, client))
        die("out of memory");
    for (int i = 0; i < JOBS; i++) {
        snprintf(jobs[i].name, sizeof jobs[i].name, "stock:%d", i);
        if (sneck_lock_new(&jobs[i].lock, client, jobs[i].name, strlen(jobs[i].name), NULL, error))
            die(error);
    }
    /* somebody else has the first one */
    if (sneck_lock_clone(&other, jobs[0].lock) || sneck_lock_acquire(other, 0))
        die("stock:0 is held already");

    sneck_op *first = acquire(&driver, &jobs[0], SNECK_FOREVER);
    for (int i = 1; i < JOBS; i++)
        acquire(&driver, &jobs[i], 30000);
    while (running > 1)
        turn(&driver, go_on);
    sneck_op_cancel(first); /* it is told like any other end */
    update(&driver);
    while (running > 0 || !sneck_link_quiet(driver.link))
        turn(&driver, go_on);

    if (sneck_lock_release(other))
        die(sneck_lock_error(other));
    sneck_lock_free(other);
    for (int i = 0; i < JOBS; i++)
        sneck_lock_free(jobs[i].lock);
    sneck_link_free(driver.link);
    sneck_client_free(client);
    close(driver.epoll);
    return 0;
}
