/* A lock over five servers, step by step: links, cancels, forks. */
#include "five.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_MS 600000
#define MANY 40

static sneck_op *start_acquire(sneck_lock *lock, sneck_link *link, int64_t wait_ms)
{
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, wait_ms), SNECK_OK);
    return op;
}

/* A link whose connections are open, and whose servers know the scripts. */
static sneck_link *warm_link(struct five *five, sneck_lock *lock)
{
    sneck_link *link = new_link(five->client);
    sneck_op *op = start_acquire(lock, link, 0);
    assert_int_equal(finish(link, op), SNECK_OK);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_release_start(&op, lock, link), SNECK_OK);
    assert_int_equal(finish(link, op), SNECK_OK);
    sneck_op_free(op);
    STEP_UNTIL(link, sneck_link_quiet(link) && found_on(five, "door") == 0);
    return link;
}

/* ---------------------------------------------------------------------------- links */

static void a_link_has_a_connection_for_each_server(void **state)
{
    struct five *five = *state;
    struct pollfd fds[SNECK_LINK_FDS];
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    sneck_link *link = new_link(five->client);
    size_t before = count_fds();
    assert_int_equal(sneck_link_fds(link, fds), 0);
    assert_int_equal(sneck_link_timeout_ms(link), -1);
    uint64_t generation = sneck_link_generation(link);
    sneck_op *op = start_acquire(lock, link, 0);
    assert_int_equal(sneck_link_timeout_ms(link), 0);
    assert_false(sneck_link_quiet(link));
    sneck_link_step(link);
    assert_int_equal(sneck_link_fds(link, fds), FIVE);
    assert_int_equal(count_fds(), before + FIVE);
    assert_true(sneck_link_generation(link) != generation);
    assert_int_equal(finish(link, op), SNECK_OK);
    assert_ptr_equal(sneck_link_ended(link), op);
    assert_null(sneck_link_ended(link));
    STEP_UNTIL(link, sneck_link_quiet(link));
    generation = sneck_link_generation(link);
    kill_some(five, 3, 1);
    STEP_UNTIL(link, sneck_link_fds(link, fds) == FIVE - 1);
    assert_true(sneck_link_generation(link) != generation);
    sneck_op_free(op);
    sneck_link_free(link);
    assert_int_equal(count_fds(), before);
    sneck_lock_free(lock);
}

static void many_locks_share_one_link(void **state)
{
    struct five *five = *state;
    sneck_lock *locks[MANY];
    sneck_op *ops[MANY];
    char name[16];
    sneck_link *link = new_link(five->client);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "door:%d", i);
        locks[i] = quorum_lock(five->client, name, LONG_MS, i % 2);
        ops[i] = start_acquire(locks[i], link, 0);
    }
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(finish(link, ops[i]), SNECK_OK);
        sneck_op_free(ops[i]);
        assert_int_equal(sneck_lock_release_start(&ops[i], locks[i], link), SNECK_OK);
    }
    for (int i = MANY - 1; i >= 0; i--) {
        assert_int_equal(finish(link, ops[i]), SNECK_OK);
        sneck_op_free(ops[i]);
        sneck_lock_free(locks[i]);
    }
    for (size_t i = 0; i < FIVE; i++) /* the fences */
        STEP_UNTIL(link, COMMAND_INTEGER(five->each[i], "DBSIZE") == MANY / 2);
    sneck_link_free(link);
}

/* --------------------------------------------------------------------------- fences */

/* Begins a fenced acquire, with the first three servers' grants on their way and the others
 * stalled; then the third one stalls, and these go on. */
static sneck_op *start_raising(struct five *five, sneck_lock *lock, sneck_link *link)
{
    signal_some(five, 3, 2, SIGSTOP);
    sneck_op *op = start_acquire(lock, link, 0);
    sneck_link_step(link);
    for (size_t i = 0; i < 3; i++)
        UNTIL(key_exists(five->each[i], "door"));
    signal_some(five, 2, 1, SIGSTOP);
    signal_some(five, 3, 2, SIGCONT);
    return op;
}

static void a_granter_that_stalls_does_not_fail_a_fence(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, true);
    sneck_link *link = warm_link(five, lock);
    sneck_op *op = start_raising(five, lock, link);
    assert_int_equal(finish(link, op), SNECK_OK);
    sneck_op_free(op);
    signal_some(five, 2, 1, SIGCONT);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    STEP_UNTIL(link, sneck_link_quiet(link) && found_on(five, "door") == 0);
    sneck_link_free(link);
    sneck_lock_free(lock);
}

/* Its holder may have a fence that is smaller. */
static void a_fence_is_not_raised_where_another_holds_the_lock(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, true);
    sneck_link *link = warm_link(five, lock);
    DO(five->each[3], "DEL", "{door}:sneck:fence");
    DO(five->each[3], "CONFIG", "RESETSTAT");
    occupy(five, "door", 3, 1);
    sneck_op *op = start_raising(five, lock, link);
    assert_int_equal(finish(link, op), SNECK_OK);
    sneck_op_free(op);
    signal_some(five, 2, 1, SIGCONT);
    STEP_UNTIL(link, calls_of(five->each[3], "eval") + calls_of(five->each[3], "evalsha") >= 2);
    assert_false(key_exists(five->each[3], "{door}:sneck:fence"));
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    UNTIL(found_on(five, "door") == 1);
    sneck_link_free(link);
    sneck_lock_free(lock);
}

/* -------------------------------------------------------------------------- cancels */

static void a_cancel_at_any_step_leaves_no_token(void **state)
{
    struct five *five = *state;
    for (int occupied = 0; occupied <= 3; occupied += 3)
        for (int fence = 0; fence < 2; fence++)
            for (int steps = 0; steps < 12; steps++) {
                sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, fence);
                sneck_link *link = warm_link(five, lock);
                occupy(five, "door", 0, (size_t)occupied);
                sneck_op *op = start_acquire(lock, link, SNECK_FOREVER);
                for (int i = 0; i < steps && sneck_op_status(op) == SNECK_PENDING; i++)
                    step_once(link, 1000);
                bool ended = sneck_op_status(op) != SNECK_PENDING;
                sneck_op_cancel(op);
                assert_int_equal(sneck_op_status(op), ended ? SNECK_OK : SNECK_INTERRUPTED);
                sneck_op_free(op);
                assert_int_equal(sneck_lock_release(lock), ended ? SNECK_OK : SNECK_NOT_OWNER);
                STEP_UNTIL(link, sneck_link_quiet(link) &&
                                 found_on(five, "door") == (size_t)occupied);
                for (size_t i = 0; i < FIVE; i++)
                    DO(five->each[i], "DEL", "door");
                sneck_link_free(link);
                sneck_lock_free(lock);
            }
}

static void a_cancel_reaches_servers_that_are_stalled(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    sneck_link *link = warm_link(five, lock);
    signal_some(five, 0, 3, SIGSTOP);
    sneck_op *op = start_acquire(lock, link, SNECK_FOREVER);
    for (int i = 0; i < 3; i++)
        step_once(link, 10);
    sneck_op_free(op); /* a cancel, too */
    sneck_link_step(link);
    signal_some(five, 0, 3, SIGCONT);
    STEP_UNTIL(link, sneck_link_quiet(link) && found_on(five, "door") == 0);
    sneck_link_free(link);
    sneck_lock_free(lock);
}

static int always(void *data)
{
    (void)data;
    return 1;
}

static void an_interrupted_call_leaves_no_token(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    int64_t fastest_ms = INT64_MAX; /* of some: the machine may be busy for a moment */
    signal_some(five, 0, 3, SIGSTOP);
    for (int i = 0; i < 5; i++) {
        sneck_op *op = start_acquire(lock, NULL, SNECK_FOREVER);
        int64_t begin_ms = clock_ms();
        assert_int_equal(sneck_op_wait(op, always, NULL), SNECK_INTERRUPTED);
        int64_t took_ms = clock_ms() - begin_ms;
        fastest_ms = took_ms < fastest_ms ? took_ms : fastest_ms;
        sneck_op_free(op);
    }
    assert_true(fastest_ms < 900); /* not as long as servers are given */
    signal_some(five, 0, 3, SIGCONT);
    UNTIL(found_on(five, "door") == 0);
    sneck_lock_free(lock);
}

static void cancelled_releases_and_extends_are_unknown(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    sneck_link *link = warm_link(five, lock);
    sneck_op *op = start_acquire(lock, link, 0);
    assert_int_equal(finish(link, op), SNECK_OK);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_extend_start(&op, lock, link, 2 * LONG_MS), SNECK_OK);
    sneck_link_step(link);
    sneck_op_cancel(op);
    assert_int_equal(sneck_op_status(op), SNECK_UNKNOWN);
    sneck_op_free(op);
    assert_in_range(sneck_lock_remaining_ms(lock), 1, LONG_MS);
    assert_int_equal(sneck_lock_release_start(&op, lock, link), SNECK_OK);
    sneck_link_step(link);
    sneck_op_cancel(op);
    assert_int_equal(sneck_op_status(op), SNECK_UNKNOWN);
    sneck_op_free(op);
    STEP_UNTIL(link, sneck_link_quiet(link));
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    sneck_link_free(link);
    sneck_lock_free(lock);
}

/* A server that is late answers the request of an earlier op, then that of the next. */
static void late_answers_are_no_answers_to_what_follows(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", 1000, false); /* limit: 50 ms */
    sneck_link *link = new_link(five->client);
    signal_some(five, 0, 3, SIGSTOP);
    sneck_op *op = start_acquire(lock, link, SNECK_FOREVER);
    for (int i = 0; i < 40; i++)
        step_once(link, 5);
    assert_int_equal(sneck_op_status(op), SNECK_PENDING);
    signal_some(five, 0, 3, SIGCONT);
    assert_int_equal(finish(link, op), SNECK_OK);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_release_start(&op, lock, link), SNECK_OK);
    finish(link, op); /* the ttl is short */
    sneck_op_free(op);
    STEP_UNTIL(link, sneck_link_quiet(link) && found_on(five, "door") == 0);
    sneck_link_free(link);
    sneck_lock_free(lock);
}

/* ------------------------------------------------------------------ freeing, closing */

static void ops_and_links_are_freed_in_any_order(void **state)
{
    struct five *five = *state;
    for (int order = 0; order < 4; order++) {
        sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
        sneck_link *link = order < 2 ? new_link(five->client) : NULL;
        sneck_op *op = start_acquire(lock, link, SNECK_FOREVER);
        if (order & 1)
            sneck_link_step(sneck_op_link(op));
        if (link) {
            sneck_link_free(link);
            assert_int_equal(sneck_op_status(op), SNECK_INTERRUPTED);
            assert_null(sneck_op_link(op));
        }
        assert_non_null(sneck_op_member_error(op, 0));
        sneck_lock_free(lock);
        sneck_op_free(op);
        for (size_t i = 0; i < FIVE; i++)
            DO(five->each[i], "FLUSHALL");
    }
}

static void a_closed_quorum_refuses_and_goes_with_its_last_lock(void **state)
{
    struct five *five = *state;
    sneck_client *client = new_quorum(five, FIVE);
    sneck_lock *lock = quorum_lock(client, "door", LONG_MS, false);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    sneck_client_free(client);
    assert_int_equal(sneck_lock_release(lock), SNECK_INVALID);
    sneck_lock_free(lock);
}

/* ------------------------------------------------------------------------------ fork */

static int in_child(struct five *five, sneck_lock *held, sneck_op *pending)
{
    sneck_lock *own = NULL;
    if (sneck_lock_remaining_ms(held) != 0 || sneck_lock_release(held) != SNECK_NOT_OWNER)
        return 2;
    if (sneck_op_wait(pending, NULL, NULL) != SNECK_INTERRUPTED)
        return 3;
    sneck_op_free(pending);
    if (sneck_lock_acquire(held, 0) != SNECK_BUSY)
        return 4;
    if (sneck_lock_new(&own, five->client, "child", 5, NULL, NULL) != SNECK_OK ||
        sneck_lock_acquire(own, 60000) != SNECK_OK || sneck_lock_release(own) != SNECK_OK)
        return 5;
    sneck_lock_free(own);
    return 0;
}

static void a_child_owns_nothing_and_has_connections_of_its_own(void **state)
{
    struct five *five = *state;
    int status = 0;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    sneck_lock *waiter = quorum_lock(five->client, "door", LONG_MS, false);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    UNTIL(found_on(five, "door") == FIVE);
    sneck_op *op = start_acquire(waiter, NULL, SNECK_FOREVER);
    sneck_link *link = sneck_op_link(op);
    for (int i = 0; i < 4; i++)
        step_once(link, 10);
    pid_t pid = fork();
    if (pid == 0)
        _exit(in_child(five, lock, op));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : 99, 0);
    assert_int_equal(found_on(five, "door"), FIVE);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    assert_int_equal(sneck_op_wait(op, NULL, NULL), SNECK_OK);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_release(waiter), SNECK_OK);
    UNTIL(found_on(five, "door") == 0);
    sneck_lock_free(lock);
    sneck_lock_free(waiter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIVE(a_link_has_a_connection_for_each_server),
        WITH_FIVE(many_locks_share_one_link),
        WITH_FIVE(a_granter_that_stalls_does_not_fail_a_fence),
        WITH_FIVE(a_fence_is_not_raised_where_another_holds_the_lock),
        WITH_FIVE(a_cancel_at_any_step_leaves_no_token),
        WITH_FIVE(a_cancel_reaches_servers_that_are_stalled),
        WITH_FIVE(an_interrupted_call_leaves_no_token),
        WITH_FIVE(cancelled_releases_and_extends_are_unknown),
        WITH_FIVE(late_answers_are_no_answers_to_what_follows),
        WITH_FIVE(ops_and_links_are_freed_in_any_order),
        WITH_FIVE(a_closed_quorum_refuses_and_goes_with_its_last_lock),
        WITH_FIVE(a_child_owns_nothing_and_has_connections_of_its_own),
    };
    return cmocka_run_group_tests(tests, start_five, stop_five);
}
