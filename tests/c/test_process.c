/* The library in a process: fork, signals, descriptors. */
#include "support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* ------------------------------------------------------------------------ fork */

/* In the child: 0, or the number of the line that is not so. */
#define CHILD_EXPECT(condition)                                                \
    do {                                                                       \
        if (!(condition))                                                      \
            return __LINE__ % 256;                                             \
    } while (0)

static int wait_for_child(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int child_with_lock(sneck_client *client, sneck_lock *lock)
{
    sneck_lock *own = NULL;
    sneck_holder holder;
    CHILD_EXPECT(sneck_lock_token(lock, NULL, 0) == 0);
    CHILD_EXPECT(sneck_lock_remaining_ms(lock) == 0);
    CHILD_EXPECT(sneck_lock_release(lock) == SNECK_NOT_OWNER);
    CHILD_EXPECT(sneck_lock_acquire(lock, 0) == SNECK_BUSY);
    CHILD_EXPECT(sneck_lock_new(&own, client, "window", 6, NULL, NULL) == SNECK_OK);
    CHILD_EXPECT(sneck_lock_acquire(own, 0) == SNECK_OK);
    CHILD_EXPECT(sneck_lock_holder(&holder, own) == SNECK_OK);
    CHILD_EXPECT(holder.pid == getpid());
    CHILD_EXPECT(sneck_lock_release(own) == SNECK_OK);
    sneck_lock_free(own);
    return 0;
}

static void a_child_owns_nothing_and_can_use_the_client(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = new_lock(client, "door", 60000);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    pid_t child = fork();
    if (child == 0)
        _exit(child_with_lock(client, lock));
    assert_int_equal(wait_for_child(child), 0);
    assert_true(sneck_lock_remaining_ms(lock) > 0);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    sneck_lock_free(lock);
    sneck_client_free(client);
}

static int child_frees_all(sneck_client *client, sneck_lock *lock, sneck_link *link,
                           sneck_op *op)
{
    sneck_op_free(op);
    sneck_link_free(link);
    sneck_lock_free(lock);
    sneck_client_free(client);
    return 0;
}

static void a_child_that_frees_everything_does_not_disturb_the_parent(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    sneck_lock *lock = new_lock(client, "door", 60000);
    sneck_link *link = new_link(client);
    sneck_op *op = block(client, link);
    step_until_blocked(link, other);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    pid_t child = fork();
    if (child == 0)
        _exit(child_frees_all(client, lock, link, op));
    assert_int_equal(wait_for_child(child), 0);
    unblock(other);
    assert_int_equal(finish(link, op), SNECK_OK);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    sneck_op_free(op);
    sneck_link_free(link);
    sneck_lock_free(lock);
    sneck_client_free(client);
    sneck_client_free(other);
}

static int child_steps(sneck_client *client, sneck_link *link)
{
    sneck_op *op = NULL;
    sneck_link_step(link);
    CHILD_EXPECT(sneck_execute_start(&op, client, link, 2, (const void *[]){"ECHO", "child"},
                                     (const size_t[]){4, 5}) == SNECK_OK);
    CHILD_EXPECT(sneck_op_wait(op, NULL, NULL) == SNECK_OK);
    CHILD_EXPECT(strcmp(text_of(sneck_op_reply(op)), "child") == 0);
    sneck_op_free(op);
    return 0;
}

static void a_child_does_not_take_the_parent_s_replies(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_link *link = new_link(client);
    settle(client, link);
    sneck_op *op = START(client, link, "ECHO", "parent");
    sneck_link_step(link);
    pid_t child = fork();
    if (child == 0)
        _exit(child_steps(client, link));
    assert_int_equal(wait_for_child(child), 0);
    assert_int_equal(finish(link, op), SNECK_OK);
    assert_string_equal(text_of(sneck_op_reply(op)), "parent");
    sneck_op_free(op);
    sneck_link_free(link);
    sneck_client_free(client);
}

/* --------------------------------------------------------------------- signals */

static volatile sig_atomic_t alarms;

static void count_alarm(int number)
{
    (void)number;
    alarms++;
}

static void alarm_every_5_ms(bool on)
{
    struct sigaction action = {.sa_handler = on ? count_alarm : SIG_IGN};
    struct itimerval timer = {{0, on ? 5000 : 0}, {0, on ? 5000 : 0}};
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

static int child_goes_on(sneck_client *client, sneck_link *link, sneck_op *unsent,
                         sneck_op *waiting, sneck_op *pooled)
{
    sneck_op_free(pooled);
    settle(client, link);
    CHILD_EXPECT(sneck_op_status(unsent) == SNECK_CONNECTION);
    CHILD_EXPECT(sneck_op_status(waiting) == SNECK_INTERRUPTED);
    sneck_op_free(unsent);
    sneck_op_free(waiting);
    settle(client, link);
    return 0;
}

static void step_until_waiting(sneck_client *other, sneck_link *link, int64_t count)
{
    while (COMMAND_INTEGER(other, "ZCARD", "{door}:sneck:queue") != count)
        sneck_link_step(link);
}

static sneck_op *start_waiting(sneck_lock *lock, sneck_link *link)
{
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, SNECK_FOREVER), SNECK_OK);
    return op;
}

static void a_child_does_not_do_again_what_the_parent_has_under_way(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    sneck_lock *held = new_lock(other, "door", 600000);
    sneck_lock *locks[] = {new_lock(client, "door", 600000), new_lock(client, "door", 600000)};
    sneck_link *link = new_link(client);
    assert_int_equal(sneck_lock_acquire(held, 0), SNECK_OK);
    sneck_op *pooled = start_waiting(locks[0], NULL);
    step_until_waiting(other, sneck_op_link(pooled), 1);
    sneck_op *waiting = start_waiting(locks[1], link);
    step_until_waiting(other, link, 2);
    settle(client, link);
    sneck_op *unsent = START(client, link, "INCR", "counter");
    pid_t child = fork();
    if (child == 0)
        _exit(child_goes_on(client, link, unsent, waiting, pooled));
    assert_int_equal(wait_for_child(child), 0);
    assert_int_equal(COMMAND_INTEGER(other, "ZCARD", "{door}:sneck:queue"), 2);
    assert_int_equal(finish(link, unsent), SNECK_OK);
    assert_value(other, "counter", "1");
    assert_int_equal(sneck_lock_release(held), SNECK_OK);
    assert_int_equal(finish(sneck_op_link(pooled), pooled), SNECK_OK);
    assert_int_equal(sneck_lock_release(locks[0]), SNECK_OK);
    assert_int_equal(finish(link, waiting), SNECK_OK);
    assert_int_equal(sneck_lock_release(locks[1]), SNECK_OK);
    sneck_op_free(unsent);
    sneck_op_free(waiting);
    sneck_op_free(pooled);
    sneck_link_free(link);
    for (int i = 0; i < 2; i++)
        sneck_lock_free(locks[i]);
    sneck_lock_free(held);
    sneck_client_free(client);
    sneck_client_free(other);
}

static void signals_do_not_end_a_blocking_call(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    sneck_lock *lock = new_lock(client, "door", 60000), *held = new_lock(other, "door", 60000);
    assert_int_equal(sneck_lock_acquire(held, 0), SNECK_OK);
    alarms = 0;
    alarm_every_5_ms(true);
    assert_int_equal(sneck_lock_acquire(lock, 300), SNECK_TIMEOUT);
    alarm_every_5_ms(false);
    assert_true(alarms > 1);
    sneck_lock_free(lock);
    sneck_lock_free(held);
    sneck_client_free(client);
    sneck_client_free(other);
}

static int stop_after_alarms(void *data)
{
    (void)data;
    return alarms > 1;
}

static void a_wait_asks_its_interrupt_after_signals(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    sneck_link *link = new_link(client);
    sneck_op *op = block(client, link);
    alarms = 0;
    alarm_every_5_ms(true);
    assert_int_equal(sneck_op_wait(op, stop_after_alarms, NULL), SNECK_UNKNOWN);
    alarm_every_5_ms(false);
    sneck_op_free(op);
    sneck_link_free(link);
    sneck_client_free(client);
    sneck_client_free(other);
}

/* Leaves the client with an idle connection that the server has closed. */
static void lose_connection(sneck_client *client, sneck_client *other)
{
    char id[24];
    snprintf(id, sizeof id, "%lld", (long long)COMMAND_INTEGER(client, "CLIENT", "ID"));
    assert_int_equal(COMMAND_INTEGER(other, "CLIENT", "KILL", "ID", id), 1);
}

static void a_lost_connection_raises_no_sigpipe(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    struct sigaction action;
    sigset_t mask, pending;
    assert_int_equal(signal(SIGPIPE, SIG_DFL) == SIG_ERR, 0);
    lose_connection(client, other);
    sneck_reply_free(COMMAND(client, "PING"));
    assert_int_equal(sigaction(SIGPIPE, NULL, &action), 0);
    assert_true(action.sa_handler == SIG_DFL);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    assert_int_equal(sigismember(&mask, SIGPIPE), 0);
    assert_int_equal(sigpending(&pending), 0);
    assert_int_equal(sigismember(&pending, SIGPIPE), 0);
    sneck_client_free(client);
    sneck_client_free(other);
}

/* ----------------------------------------------------------------- descriptors */

static void connections_are_closed_on_exec(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_link *link = new_link(client);
    struct pollfd fds[SNECK_LINK_FDS];
    settle(client, link);
    size_t n = sneck_link_fds(link, fds);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++)
        assert_true(fcntl(fds[i].fd, F_GETFD) & FD_CLOEXEC);
    sneck_link_free(link);
    sneck_client_free(client);
}

static void clients_give_back_their_descriptors(void **state)
{
    (void)state;
    size_t before = count_fds();
    for (int i = 0; i < 20; i++) {
        sneck_client *client = new_client();
        sneck_op *op = START(client, NULL, "PING");
        sneck_reply_free(COMMAND(client, "PING"));
        sneck_client_close(client);
        assert_int_equal(sneck_op_wait(op, NULL, NULL), SNECK_OK);
        sneck_op_free(op);
        sneck_client_free(client);
    }
    assert_int_equal(count_fds(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_child_owns_nothing_and_can_use_the_client, empty_server),
        cmocka_unit_test_setup(a_child_that_frees_everything_does_not_disturb_the_parent,
                               empty_server),
        cmocka_unit_test_setup(a_child_does_not_take_the_parent_s_replies, empty_server),
        cmocka_unit_test_setup(a_child_does_not_do_again_what_the_parent_has_under_way,
                               empty_server),
        cmocka_unit_test_setup(signals_do_not_end_a_blocking_call, empty_server),
        cmocka_unit_test_setup(a_wait_asks_its_interrupt_after_signals, empty_server),
        cmocka_unit_test(a_lost_connection_raises_no_sigpipe),
        cmocka_unit_test(connections_are_closed_on_exec),
        cmocka_unit_test(clients_give_back_their_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
