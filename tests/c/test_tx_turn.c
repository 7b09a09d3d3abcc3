/* The turn to write is handed on by EXEC itself, with the writes or not at all, and by
 * a release of its own wherever EXEC did not do it. */
#include "turn.h"

#include <stdio.h>
#include <string.h>

/* Gets the turn from somebody, reads, and queues a write. */
static void take_turn(struct turn *turn)
{
    assert_int_equal(sneck_lock_acquire(turn->order, 0), SNECK_OK);
    sneck_op *op = wait_for_turn(turn);
    assert_int_equal(sneck_lock_release(turn->order), SNECK_OK);
    assert_int_equal(end_op(op), SNECK_OK);
    assert_true(key_exists(turn->other, ORDER));
    assert_int_equal(QUEUE(turn->tx, "INCR", "commits"), SNECK_OK);
}

/* Starts a commit that leaves, and whose reply is not read. */
static sneck_op *send_commit(struct turn *turn)
{
    sneck_op *op = start(sneck_tx_commit_start, turn->tx);
    step_once(sneck_op_link(op), 0);
    return op;
}

static sneck_op *send_commit_that_is_done(struct turn *turn)
{
    sneck_op *op = send_commit(turn);
    for (int i = 0; key_exists(turn->other, ORDER); i++)
        assert_true(i < 10000);
    assert_value(turn->other, "commits", "1");
    return op;
}

static void assert_committed(struct turn *turn, sneck_op *op)
{
    assert_int_equal(finish(sneck_op_link(op), op), SNECK_OK);
    assert_int_equal(sneck_reply_count(sneck_op_reply(op)), 1);
    assert_int_equal(sneck_reply_integer(sneck_reply_item(sneck_op_reply(op), 0)), 1);
    assert_true(turn->report.failed == SIZE_MAX);
    assert_false(key_exists(turn->other, ORDER));
    assert_value(turn->other, "commits", "1");
    sneck_op_free(op);
}

/* Nobody has asked for the lock that is the turn. */
static void assert_uncounted(struct turn *turn)
{
    sneck_stats stats;
    sneck_client_stats(&stats, turn->client);
    assert_int_equal(stats.acquisitions + stats.contended + stats.handoffs + stats.losses, 0);
}

static void the_turn_is_free_before_the_reply_is_read(void **state)
{
    struct turn *turn = *state;
    take_turn(turn);
    assert_committed(turn, send_commit_that_is_done(turn));
    assert_uncounted(turn);
}

static void a_script_that_the_server_forgot_is_run_after_the_commit(void **state)
{
    struct turn *turn = *state;
    take_turn(turn);
    DO(turn->other, "SCRIPT", "FLUSH");
    assert_committed(turn, send_commit(turn));
    assert_uncounted(turn);
}

static void a_write_that_fails_does_not_keep_the_turn(void **state)
{
    struct turn *turn = *state;
    take_turn(turn);
    assert_int_equal(QUEUE(turn->tx, "LPUSH", "a", "x"), SNECK_OK);
    sneck_op *op = send_commit_that_is_done(turn);
    assert_int_equal(finish(sneck_op_link(op), op), SNECK_SERVER);
    assert_int_equal(sneck_reply_count(sneck_op_reply(op)), 2);
    assert_int_equal(turn->report.failed, 1);
    assert_non_null(strstr(sneck_op_error(op), "2 of 2"));
    sneck_op_free(op);
}

static void a_conflict_keeps_the_turn(void **state)
{
    struct turn *turn = *state;
    take_turn(turn);
    DO(turn->other, "SET", "a", "theirs");
    assert_int_equal(end_op(send_commit(turn)), SNECK_CONFLICT);
    assert_true(key_exists(turn->other, ORDER));
    assert_int_equal(begin(turn->tx), SNECK_OK);
    assert_int_equal(end_op(READ_START(turn->tx, "GET", "a")), SNECK_OK);
    assert_int_equal(QUEUE(turn->tx, "INCR", "commits"), SNECK_OK);
    assert_committed(turn, send_commit_that_is_done(turn));
    assert_uncounted(turn);
}

static void a_commit_that_is_refused_passes_the_turn_on(void **state)
{
    struct turn *turn = *state;
    take_turn(turn);
    assert_int_equal(QUEUE(turn->tx, "NOSUCHCOMMAND"), SNECK_OK);
    assert_int_equal(end_op(send_commit(turn)), SNECK_SERVER);
    assert_false(key_exists(turn->other, ORDER));
    assert_false(key_exists(turn->other, "commits"));
    assert_uncounted(turn);
}

/* The reply is lost; EXEC was done, and somebody else has the turn already. */
static void the_turn_of_another_is_left_alone_when_the_reply_is_lost(void **state)
{
    struct turn *turn = *state;
    take_turn(turn);
    sneck_op *op = send_commit_that_is_done(turn);
    assert_int_equal(sneck_lock_acquire(turn->order, 0), SNECK_OK);
    sneck_op_cancel(op); /* as good as a loss, and no reply was read */
    assert_int_equal(end_op(op), SNECK_UNKNOWN);
    assert_int_equal(unwatch(turn->tx), SNECK_OK);
    assert_int_equal(sneck_lock_extend(turn->order, 0), SNECK_OK);
    assert_uncounted(turn);
}

/* EXEC has left, was not done, and never will be. */
static void the_turn_is_passed_on_over_another_connection(void **state)
{
    struct turn *turn = *state;
    take_turn(turn);
    DO(turn->other, "CLIENT", "PAUSE", "60000", "WRITE");
    sneck_op *op = send_commit(turn);
    kill_others(turn->other);
    DO(turn->other, "CLIENT", "UNPAUSE");
    assert_true(key_exists(turn->other, ORDER));
    assert_int_equal(end_op(op), SNECK_UNKNOWN);
    assert_false(key_exists(turn->other, ORDER));
    assert_false(key_exists(turn->other, "commits"));
    assert_uncounted(turn);
}

/* Who got the turn by SET may not be allowed to run a script: EXEC must not fail for it. */
static void a_user_without_scripts_commits_with_the_turn(void **state)
{
    struct turn *turn = *state;
    char url[256];
    const char *const scheme = "unix://";
    DO(turn->other, "ACL", "SETUSER", "tester", "reset", "on", ">secret", "~*");
    DO(turn->other, "ACL", "SETUSER", "tester", "&*", "+@all", "-evalsha");
    snprintf(url, sizeof url, "unix://tester:secret@%s", server_url() + strlen(scheme));
    sneck_client_free(turn->client);
    assert_int_equal(sneck_client_new(&turn->client, url, NULL, NULL), SNECK_OK);
    make(turn);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(begin(turn->tx), SNECK_OK);
        assert_int_equal(end_op(READ_START(turn->tx, "GET", "a")), SNECK_OK);
        assert_int_equal(QUEUE(turn->tx, "INCR", "commits"), SNECK_OK);
        if (i < 3) {
            DO(turn->other, "SET", "a", "theirs");
            assert_int_equal(end_op(send_commit(turn)), SNECK_CONFLICT);
        }
    }
    assert_true(key_exists(turn->other, ORDER));
    assert_int_equal(end_op(send_commit(turn)), SNECK_OK);
    assert_value(turn->other, "commits", "1");
}

static void lose_attempt(struct turn *turn)
{
    assert_int_equal(begin(turn->tx), SNECK_OK);
    assert_int_equal(end_op(READ_START(turn->tx, "GET", "a")), SNECK_OK);
    DO(turn->other, "INCR", "a");
    assert_int_equal(QUEUE(turn->tx, "INCR", "commits"), SNECK_OK);
    assert_int_equal(commit(turn->tx), SNECK_CONFLICT);
}

/* Whoever looks after the unwatch finds nothing of it, however busy the server is. */
static void a_wait_that_is_cancelled_has_left_the_queue_when_the_unwatch_has_ended(void **state)
{
    struct turn *turn = *state;
    make(turn);
    for (int i = 0; i < 3; i++)
        lose_attempt(turn);
    assert_int_equal(sneck_lock_acquire(turn->order, 0), SNECK_OK);
    sneck_op *op = start(sneck_tx_begin_start, turn->tx);
    STEP_UNTIL(sneck_op_link(op), count_waiting(turn) == 1);
    sneck_op_free(op);
    op = start(sneck_tx_unwatch_start, turn->tx);
    assert_int_equal(sneck_op_status(op), SNECK_PENDING);
    assert_int_equal(end_op(op), SNECK_OK);
    assert_int_equal(count_waiting(turn), 0);
    assert_int_equal(sneck_lock_release(turn->order), SNECK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_turn, tear_down_turn)
        TEST(the_turn_is_free_before_the_reply_is_read),
        TEST(a_script_that_the_server_forgot_is_run_after_the_commit),
        TEST(a_write_that_fails_does_not_keep_the_turn),
        TEST(a_conflict_keeps_the_turn),
        TEST(a_wait_that_is_cancelled_has_left_the_queue_when_the_unwatch_has_ended),
        TEST(a_commit_that_is_refused_passes_the_turn_on),
        TEST(the_turn_of_another_is_left_alone_when_the_reply_is_lost),
        TEST(the_turn_is_passed_on_over_another_connection),
        TEST(a_user_without_scripts_commits_with_the_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
