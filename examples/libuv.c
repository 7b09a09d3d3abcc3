/* Drive a link by libuv: acquire many locks at once, do something under each, release,
 * and give one up after a while.
 *
 *     cc libuv.c $(pkg-config --cflags --libs sneck libuv) */
#define _POSIX_C_SOURCE 200809L /* uv.h needs it under -std=c11 */

#include <sneck.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

static _Noreturn void die(const char *message)
{
    fprintf(stderr, "%s\n", message);
    exit(1);
}

/* -------------------------------------------------------- a link in a libuv loop */

struct driver {
    sneck_link *link;
    void (*go_on)(struct driver *driver, sneck_op *op); /* is given each op that has ended */
    uv_timer_t timer;
    uint64_t generation; /* of the descriptors that are watched */
    size_t count;
    uv_poll_t *polls[SNECK_LINK_FDS]; /* owned by the loop until they are closed */
    short events[SNECK_LINK_FDS];
};

static void update(struct driver *driver);

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

/* What go_on() has started leaves at once, with the next step. */
static void step(struct driver *driver)
{
    bool told;

    do {
        told = false;
        sneck_link_step(driver->link);
        update(driver); /* before go_on() can open a descriptor with the number of a closed one */
        for (sneck_op *op; (op = sneck_link_ended(driver->link)); told = true)
            driver->go_on(driver, op);
    } while (told);
    update(driver);
}

static void on_timer(uv_timer_t *timer)
{
    step(timer->data);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    (void)status; /* the step finds out */
    (void)events;
    step(poll->data);
}

static uv_poll_t *watch(struct driver *driver, int fd)
{
    uv_poll_t *poll = malloc(sizeof *poll);

    if (!poll || uv_poll_init(driver->timer.loop, poll, fd))
        die("a descriptor cannot be watched");
    poll->data = driver;
    return poll;
}

/* Has the loop wait for what the link wants now: to be called after every call on the
 * link or its ops. A new descriptor can have the number of one that is closed, so it is
 * the generation that tells. */
static void update(struct driver *driver)
{
    struct pollfd now[SNECK_LINK_FDS];
    size_t count = sneck_link_fds(driver->link, now);
    uint64_t generation = sneck_link_generation(driver->link);
    int64_t timeout_ms = sneck_link_timeout_ms(driver->link);

    if (generation != driver->generation) {
        for (size_t i = 0; i < driver->count; i++)
            uv_close((uv_handle_t *)driver->polls[i], free_handle);
        for (size_t i = 0; i < count; i++) {
            driver->polls[i] = watch(driver, now[i].fd);
            driver->events[i] = 0;
        }
        driver->count = count;
        driver->generation = generation;
    }
    for (size_t i = 0; i < count; i++) {
        if (now[i].events != driver->events[i])
            uv_poll_start(driver->polls[i], (now[i].events & POLLIN ? UV_READABLE : 0) |
                          (now[i].events & POLLOUT ? UV_WRITABLE : 0), on_ready);
        driver->events[i] = now[i].events;
    }
    if (timeout_ms < 0)
        uv_timer_stop(&driver->timer);
    else
        uv_timer_start(&driver->timer, on_timer, (uint64_t)timeout_ms, 0);
}

static void driver_open(struct driver *driver, uv_loop_t *loop, sneck_client *client)
{
    if (sneck_link_new(&driver->link, client) || uv_timer_init(loop, &driver->timer))
        die("out of memory");
    driver->timer.data = driver;
}

/* The loop ends when it has nothing left. */
static void driver_close(struct driver *driver)
{
    for (size_t i = 0; i < driver->count; i++)
        uv_close((uv_handle_t *)driver->polls[i], free_handle);
    uv_close((uv_handle_t *)&driver->timer, NULL);
    sneck_link_free(driver->link);
}

/* ------------------------------------------------------------------- the program */

enum { JOBS = 5 };

struct job {
    char name[16];
    sneck_lock *lock;
    enum { ACQUIRING, RELEASING } doing;
};

static int running = JOBS;
static uv_timer_t patience; /* how long we wait for the first lock, which others have */

static void acquire(struct driver *driver, struct job *job)
{
    sneck_op *op;

    job->doing = ACQUIRING;
    if (sneck_lock_acquire_start(&op, job->lock, driver->link, SNECK_FOREVER))
        die("out of memory");
    sneck_op_set_data(op, job);
    update(driver);
    if (!patience.data)
        patience.data = op;
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
    } else if (job->doing == ACQUIRING) {
        printf("%s is ours\n", job->name); /* here the work is done */
        release(driver, job);
        return;
    }
    running--;
}

static void give_up(uv_timer_t *timer)
{
    sneck_op *op = timer->data;

    sneck_op_cancel(op); /* it is told like any other end */
    update(uv_loop_get_data(timer->loop));
    uv_close((uv_handle_t *)timer, NULL);
}

/* Ends the loop once every job is done, and what a cancelled op has left behind, too. */
static void look(uv_prepare_t *prepare)
{
    struct driver *driver = uv_loop_get_data(prepare->loop);

    if (running == 0 && sneck_link_quiet(driver->link)) {
        driver_close(driver);
        uv_close((uv_handle_t *)prepare, NULL);
    }
}

int main(void)
{
    struct driver driver = {.go_on = go_on};
    struct job jobs[JOBS];
    uv_loop_t *loop = uv_default_loop();
    uv_prepare_t prepare;
    sneck_client *client;
    sneck_lock *other;
    char error[SNECK_ERROR_SIZE];

    if (sneck_client_new(&client, NULL, NULL, error))
        die(error);
    driver_open(&driver, loop, client);
    uv_loop_set_data(loop, &driver);
    for (int i = 0; i < JOBS; i++) {
        snprintf(jobs[i].name, sizeof jobs[i].name, "stock:%d", i);
        if (sneck_lock_new(&jobs[i].lock, client, jobs[i].name, strlen(jobs[i].name), NULL, error))
            die(error);
    }
    if (sneck_lock_clone(&other, jobs[0].lock) || sneck_lock_acquire(other, 0))
        die("stock:0 is held already");

    for (int i = 0; i < JOBS; i++)
        acquire(&driver, &jobs[i]);
    uv_timer_init(loop, &patience);
    uv_timer_start(&patience, give_up, 200, 0);
    uv_prepare_init(loop, &prepare);
    uv_prepare_start(&prepare, look);
    uv_run(loop, UV_RUN_DEFAULT);

    if (sneck_lock_release(other))
        die(sneck_lock_error(other));
    sneck_lock_free(other);
    for (int i = 0; i < JOBS; i++)
        sneck_lock_free(jobs[i].lock);
    sneck_client_free(client);
    uv_loop_close(loop);
    return 0;
}
