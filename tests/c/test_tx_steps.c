/* A transaction step by step: what each step does, in which order they go, who has
 * the turn, and what is left behind. */
#include "turn.h"

#include <string.h>

static void read_a(sneck_tx *tx, const char *expected)
{
    sneck_op *op = READ_START(tx, "GET", "a");
    assert_int_equal(finish(sneck_op_link(op), op), SNECK_OK);
    assert_string_equal(text_of(sneck_op_reply(op)), expected);
    sneck_op_free(op);
}

static int64_t connection_of(sneck_tx *tx)
{
    sneck_op *op = READ_START(tx, "CLIENT", "ID");
    assert_int_equal(finish(sneck_op_link(op), op), SNECK_OK);
    int64_t id = sneck_reply_integer(sneck_op_reply(op));
    sneck_op_free(op);
    return id;
}

/* ---------------------------------------------------------------- the usual way */

static void steps_commit_what_was_queued(void **state)
{
    struct turn *turn = *state;
    sneck_tx *tx = make(turn);
    assert_int_equal(begin(tx), SNECK_OK);
    assert_int_equal(sneck_tx_conflicts(tx), 0);
    read_a(tx, "1");
    assert_int_equal(QUEUE(tx, "SET", "a", "2"), SNECK_OK);
    assert_int_equal(QUEUE(tx, "INCR", "n"), SNECK_OK);
    sneck_op *op = start(sneck_tx_commit_start, tx);
    assert_null(sneck_op_reply(op));
    assert_int_equal(finish(sneck_op_link(op), op), SNECK_OK);
    assert_int_equal(sneck_reply_count(sneck_op_reply(op)), 2);
    assert_int_equal(sneck_reply_integer(sneck_reply_item(sneck_op_reply(op), 1)), 1);
    assert_int_equal(turn->report.attempts, 1);
    sneck_tx_free(tx);
    turn->tx = NULL;
    assert_int_equal(sneck_reply_count(sneck_op_reply(op)), 2); /* it is the op's */
    assert_null(sneck_op_link(op));
    sneck_op_free(op);
    assert_value(turn->other, "a", "2");
}

static void what_was_put_is_written_with_its_expiry(void **state)
{
    struct turn *turn = *state;
    sneck_tx *tx = make(turn);
    DO(turn->other, "SET", "a", "1", "PX", "60000");
    DO(turn->other, "SET", "gone", "1");
    assert_int_equal(begin(tx), SNECK_OK);
    read_a(tx, "1");
    char value[] = "2\0\n";
    assert_int_equal(sneck_tx_put(tx, "a", 1, value, 3, 0), SNECK_OK);
    value[0] = 'x'; /* it was copied */
    assert_int_equal(sneck_tx_put(tx, "b", 1, "", 0, 90000), SNECK_OK);
    assert_int_equal(sneck_tx_put(tx, "gone", 4, NULL, 0, 0), SNECK_OK);
    sneck_op *op = start(sneck_tx_commit_start, tx);
    assert_int_equal(finish(sneck_op_link(op), op), SNECK_OK);
    assert_int_equal(sneck_reply_count(sneck_op_reply(op)), 3);
    sneck_op_free(op);
    assert_int_equal(COMMAND_INTEGER(turn->other, "STRLEN", "a"), 3);
    assert_value(turn->other, "a", "2");
    assert_in_range(COMMAND_INTEGER(turn->other, "PTTL", "a"), 1, 60000);
    assert_value(turn->other, "b", "");
    assert_in_range(COMMAND_INTEGER(turn->other, "PTTL", "b"), 60001, 90000);
    assert_false(key_exists(turn->other, "gone"));
}

static void what_cannot_be_put_spoils_the_attempt(void **state)
{
    struct turn *turn = *state;
    sneck_tx *tx = make(turn);
    const struct { const char *key; int64_t ttl_ms; } wrong[] = {
        {NULL, 0}, {"a", -1}, {"a", SNECK_TTL_MAX_MS + 1},
    };
    assert_int_equal(sneck_tx_put(tx, "a", 1, "2", 1, 0), SNECK_INVALID); /* no attempt yet */
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tx = make(turn);
        assert_int_equal(begin(tx), SNECK_OK);
        assert_int_equal(sneck_tx_put(tx, wrong[i].key, 1, "2", 1, wrong[i].ttl_ms),
                         SNECK_INVALID);
        assert_int_equal(commit(tx), SNECK_INVALID);
    }
    assert_value(turn->other, "a", "1");
}

static void the_first_begin_on_a_quiet_key_ends_at_once(void **state)
{
    struct turn *turn = *state;
    sneck_op *op = start(sneck_tx_begin_start, make(turn));
    assert_int_equal(sneck_op_status(op), SNECK_OK);
    sneck_op_free(op);
}

static void a_conflict_is_told_and_the_next_attempt_reads_anew(void **state)
{
    struct turn *turn = *state;
    sneck_tx *tx = make(turn);
    assert_int_equal(begin(tx), SNECK_OK);
    read_a(tx, "1");
    int64_t id = connection_of(tx);
    DO(turn->other, "SET", "a", "theirs");
    assert_int_equal(QUEUE(tx, "SET", "a", "stale"), SNECK_OK);
    assert_int_equal(commit(tx), SNECK_CONFLICT);
    assert_value(turn->other, "a", "theirs");
    assert_int_equal(begin(tx), SNECK_OK);
    assert_int_equal(sneck_tx_conflicts(tx), 1);
    assert_int_equal(connection_of(tx), id);
    read_a(tx, "theirs");
    assert_int_equal(QUEUE(tx, "SET", "a", "ours"), SNECK_OK);
    assert_int_equal(commit(tx), SNECK_OK);
    assert_value(turn->other, "a", "ours");
    assert_int_equal(turn->report.attempts, 2);
}

static void an_attempt_may_be_begun_again_without_a_commit(void **state)
{
    struct turn *turn = *state;
    sneck_tx *tx = make(turn);
    assert_int_equal(begin(tx), SNECK_OK);
    read_a(tx, "1");
    assert_int_equal(QUEUE(tx, "SET", "a", "dropped"), SNECK_OK);
    DO(turn->other, "SET", "a", "2"); /* no conflict of the next attempt */
    assert_int_equal(begin(tx), SNECK_OK);
    read_a(tx, "2");
    assert_int_equal(QUEUE(tx, "INCR", "n"), SNECK_OK);
    assert_int_equal(commit(tx), SNECK_OK);
    assert_value(turn->other, "a", "2");
    assert_value(turn->other, "n", "1");
}

static void attempts_are_used_up_by_begin(void **state)
{
    struct turn *turn = *state;
    turn->options.attempts = 2;
    sneck_tx *tx = make(turn);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(begin(tx), SNECK_OK);
        read_a(tx, "1");
        DO(turn->other, "SET", "a", "1");
        assert_int_equal(QUEUE(tx, "SET", "a", "ours"), SNECK_OK);
        assert_int_equal(commit(tx), SNECK_CONFLICT);
    }
    sneck_op *op = start(sneck_tx_begin_start, tx);
    assert_int_equal(finish(sneck_op_link(op), op), SNECK_CONFLICT);
    assert_non_null(strstr(sneck_op_error(op), "in each of 2 attempts"));
    assert_string_equal(sneck_op_error(op), sneck_tx_error(tx));
    sneck_op_free(op);
    assert_int_equal(begin(tx), SNECK_INVALID);
}

static void a_write_that_fails_does_not_hide_the_replies(void **state)
{
    struct turn *turn = *state;
    sneck_tx *tx = make(turn);
    DO(turn->other, "RPUSH", "list", "x");
    assert_int_equal(begin(tx), SNECK_OK);
    assert_int_equal(QUEUE(tx, "INCR", "n"), SNECK_OK);
    assert_int_equal(QUEUE(tx, "APPEND", "list", "x"), SNECK_OK);
    sneck_op *op = start(sneck_tx_commit_start, tx);
    assert_int_equal(finish(sneck_op_link(op), op), SNECK_SERVER);
    assert_string_equal(sneck_op_server_code(op), "WRONGTYPE");
    assert_int_equal(sneck_reply_integer(sneck_reply_item(sneck_op_reply(op), 0)), 1);
    assert_int_equal(turn->report.failed, 1);
    assert_string_equal(turn->report.server_code, "WRONGTYPE");
    sneck_op_free(op);
}

static void a_read_that_fails_may_be_followed_by_others(void **state)
{
    struct turn *turn = *state;
    sneck_tx *tx = make(turn);
    assert_int_equal(begin(tx), SNECK_OK);
    sneck_op *op = READ_START(tx, "LLEN", "a");
    assert_int_equal(finish(sneck_op_link(op), op), SNECK_SERVER);
    assert_string_equal(sneck_op_server_code(op), "WRONGTYPE");
    assert_null(sneck_op_reply(op));
    sneck_op_free(op);
    read_a(tx, "1");
    assert_int_equal(QUEUE(tx, "SET", "a", "2"), SNECK_OK);
    assert_int_equal(commit(tx), SNECK_OK);
}

static void the_guard_is_asked_before_the_commit(void **state)
{
    struct turn *turn = *state;
    sneck_lock *guard = new_lock(turn->client, "door", 60000);
    turn->options.guard = guard;
    assert_int_equal(begin(make(turn)), SNECK_NOT_OWNER);
    assert_int_equal(sneck_lock_acquire(guard, 0), SNECK_OK);
    sneck_tx *tx = make(turn);
    assert_int_equal(begin(tx), SNECK_OK);
    read_a(tx, "1");
    int64_t id = connection_of(tx);
    DO(turn->other, "SET", "door", "somebody else");
    sneck_lock_free(guard); /* the transaction has a share in it */
    assert_int_equal(QUEUE(tx, "SET", "a", "2"), SNECK_OK);
    assert_int_equal(commit(tx), SNECK_NOT_OWNER);
    assert_value(turn->other, "a", "1");
    turn->options.guard = NULL;
    tx = make(turn);
    assert_int_equal(begin(tx), SNECK_OK);
    assert_int_equal(connection_of(tx), id); /* nothing was watched there any more */
}

/* ----------------------------------------------------------------------- misuse */

static void steps_out_of_order_are_refused(void **state)
{
    struct turn *turn = *state;
    sneck_tx *tx = make(turn);
    assert_int_equal(sneck_tx_watch(tx, "b", 1), SNECK_INVALID);
    assert_int_equal(QUEUE(tx, "INCR", "n"), SNECK_INVALID);
    assert_int_equal(end_op(READ_START(tx, "GET", "a")), SNECK_INVALID);
    assert_int_equal(commit(tx), SNECK_INVALID);
    assert_non_null(strstr(sneck_tx_error(tx), "begin"));
    assert_int_equal(begin(tx), SNECK_OK); /* it is none the worse */
    assert_int_equal(QUEUE(tx, "INCR", "n"), SNECK_OK);
    assert_int_equal(commit(tx), SNECK_OK);
    assert_int_equal(QUEUE(tx, "INCR", "n"), SNECK_INVALID);
    assert_int_equal(commit(tx), SNECK_INVALID);
    assert_int_equal(begin(tx), SNECK_INVALID);
    assert_int_equal(unwatch(tx), SNECK_OK);
    assert_value(turn->other, "n", "1");
}

static void a_second_op_at_the_same_time_is_refused(void **state)
{
    struct turn *turn = *state;
    start_function *const functions[] = {
        sneck_tx_begin_start, sneck_tx_commit_start, sneck_tx_unwatch_start,
    };
    sneck_tx *tx = make(turn);
    assert_int_equal(begin(tx), SNECK_OK);
    sneck_op *op = READ_START(tx, "GET", "a");
    assert_int_equal(sneck_op_status(op), SNECK_PENDING);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        assert_int_equal(end_op(start(functions[i], tx)), SNECK_INVALID);
    sneck_op *second = READ_START(tx, "GET", "a");
    assert_int_equal(sneck_op_status(second), SNECK_INVALID);
    assert_non_null(strstr(sneck_op_error(second), "another"));
    sneck_op_free(second);
    assert_int_equal(QUEUE(tx, "SET", "a", "2"), SNECK_OK); /* sends nothing */
    assert_int_equal(end_op(op), SNECK_OK);
    assert_int_equal(commit(tx), SNECK_OK);
    assert_value(turn->other, "a", "2");
}

static void nothing_joins_a_commit_under_way(void **state)
{
    struct turn *turn = *state;
    sneck_lock *guard = new_lock(turn->client, "door", 60000);
    assert_int_equal(sneck_lock_acquire(guard, 0), SNECK_OK);
    turn->options.guard = guard;
    sneck_tx *tx = make(turn);
    assert_int_equal(begin(tx), SNECK_OK);
    assert_int_equal(QUEUE(tx, "INCR", "n"), SNECK_OK);
    sneck_op *op = start(sneck_tx_commit_start, tx); /* asks for the guard first */
    assert_int_equal(QUEUE(tx, "INCR", "n"), SNECK_INVALID);
    assert_int_equal(sneck_tx_watch(tx, "b", 1), SNECK_INVALID);
    assert_int_equal(end_op(op), SNECK_OK);
    assert_value(turn->other, "n", "1");
    sneck_lock_free(guard);
}

static void a_closed_client_refuses_steps(void **state)
{
    struct turn *turn = *state;
    sneck_tx *tx = make(turn);
    assert_int_equal(begin(tx), SNECK_OK);
    read_a(tx, "1");
    assert_int_equal(QUEUE(tx, "SET", "a", "2"), SNECK_OK);
    sneck_client_close(turn->client);
    assert_int_equal(commit(tx), SNECK_INVALID);
    assert_int_equal(begin(tx), SNECK_INVALID);
    assert_int_equal(unwatch(tx), SNECK_INVALID);
    assert_value(turn->other, "a", "1");
}

/* ------------------------------------------------------------- what it leaves behind */

static void unwatch_gives_the_connection_back_clean(void **state)
{
    struct turn *turn = *state;
    sneck_tx *tx = make(turn);
    assert_int_equal(begin(tx), SNECK_OK);
    read_a(tx, "1");
    int64_t id = connection_of(tx);
    assert_int_equal(QUEUE(tx, "SET", "a", "2"), SNECK_OK);
    assert_int_equal(unwatch(tx), SNECK_OK);
    assert_value(turn->other, "a", "1");
    tx = make(turn);
    assert_int_equal(begin(tx), SNECK_OK);
    assert_int_equal(connection_of(tx), id);
    DO(turn->other, "SET", "a", "2");
    assert_int_equal(unwatch(tx), SNECK_OK);
    assert_int_equal(unwatch(tx), SNECK_OK);
}

static void unwatch_ends_well_also_when_its_connection_is_lost(void **state)
{
    struct turn *turn = *state;
    sneck_tx *tx = make(turn);
    assert_int_equal(begin(tx), SNECK_OK);
    read_a(tx, "1");
    sneck_op *op = start(sneck_tx_unwatch_start, tx);
    kill_others(turn->other);
    assert_int_equal(end_op(op), SNECK_OK);
}

static void a_commit_of_nothing_unwatches(void **state)
{
    struct turn *turn = *state;
    sneck_tx *tx = make(turn);
    assert_int_equal(begin(tx), SNECK_OK);
    int64_t id = connection_of(tx);
    sneck_op *op = start(sneck_tx_commit_start, tx);
    assert_int_equal(finish(sneck_op_link(op), op), SNECK_OK);
    assert_null(sneck_op_reply(op));
    sneck_op_free(op);
    assert_int_equal(begin(make(turn)), SNECK_OK);
    assert_int_equal(connection_of(turn->tx), id);
}

static void a_connection_that_watches_is_closed_when_it_is_freed(void **state)
{
    struct turn *turn = *state;
    sneck_tx *tx = make(turn);
    assert_int_equal(begin(tx), SNECK_OK);
    int64_t id = connection_of(tx);
    assert_int_equal(begin(make(turn)), SNECK_OK);
    assert_int_not_equal(connection_of(turn->tx), id);
}

static void the_client_may_go_first(void **state)
{
    struct turn *turn = *state;
    sneck_tx *tx = make(turn);
    assert_int_equal(begin(tx), SNECK_OK);
    sneck_op *op = READ_START(tx, "GET", "a");
    sneck_client_free(turn->client);
    turn->client = new_client();
    assert_int_equal(finish(sneck_op_link(op), op), SNECK_OK);
    sneck_tx_free(tx);
    turn->tx = NULL;
    assert_string_equal(text_of(sneck_op_reply(op)), "1");
    sneck_op_free(op);
}

/* --------------------------------------------------------------------- the turn */

static void a_reader_waits_for_its_turn_and_reads_again(void **state)
{
    struct turn *turn = *state;
    assert_int_equal(sneck_lock_acquire(turn->order, 0), SNECK_OK);
    sneck_op *op = wait_for_turn(turn);
    sneck_tx *tx = turn->tx;
    DO(turn->other, "SET", "a", "theirs");
    assert_int_equal(sneck_lock_release(turn->order), SNECK_OK);
    assert_int_equal(finish(sneck_op_link(op), op), SNECK_OK);
    assert_string_equal(text_of(sneck_op_reply(op)), "theirs");
    sneck_op_free(op);
    assert_true(key_exists(turn->other, ORDER));
    assert_int_equal(QUEUE(tx, "SET", "a", "ours"), SNECK_OK);
    assert_int_equal(commit(tx), SNECK_OK);
    assert_int_equal(sneck_tx_conflicts(tx), 0);
    assert_false(key_exists(turn->other, ORDER));
    assert_value(turn->other, "a", "ours");
}

static void whoever_has_the_turn_gives_it_up_by_unwatch(void **state)
{
    struct turn *turn = *state;
    assert_int_equal(sneck_lock_acquire(turn->order, 0), SNECK_OK);
    sneck_op *op = wait_for_turn(turn);
    assert_int_equal(sneck_lock_release(turn->order), SNECK_OK);
    assert_int_equal(end_op(op), SNECK_OK);
    assert_true(key_exists(turn->other, ORDER));
    assert_int_equal(unwatch(turn->tx), SNECK_OK);
    assert_false(key_exists(turn->other, ORDER));
}

static void who_does_not_wait_any_more_leaves_the_queue(void **state)
{
    struct turn *turn = *state;
    assert_int_equal(sneck_lock_acquire(turn->order, 0), SNECK_OK);
    sneck_op *op = wait_for_turn(turn);
    sneck_op_cancel(op);
    assert_int_equal(unwatch(turn->tx), SNECK_OK);
    assert_int_equal(count_waiting(turn), 0);
    assert_int_equal(end_op(op), SNECK_INTERRUPTED);
    assert_int_equal(end_op(wait_for_turn(turn)), SNECK_OK); /* waits no longer than 1 s */
}

static void the_turn_is_taken_after_three_conflicts(void **state)
{
    struct turn *turn = *state;
    sneck_tx *tx = make(turn);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(begin(tx), SNECK_OK);
        assert_true(key_exists(turn->other, ORDER) == (i >= 3));
        read_a(tx, "1");
        DO(turn->other, "SET", "a", "1");
        assert_int_equal(QUEUE(tx, "SET", "a", "ours"), SNECK_OK);
        assert_int_equal(commit(tx), SNECK_CONFLICT);
    }
    assert_true(key_exists(turn->other, ORDER)); /* kept between two attempts */
    assert_int_equal(begin(tx), SNECK_OK);
    read_a(tx, "1");
    assert_int_equal(QUEUE(tx, "SET", "a", "ours"), SNECK_OK);
    assert_int_equal(commit(tx), SNECK_OK);
    assert_false(key_exists(turn->other, ORDER));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_turn, tear_down_turn)
        TEST(steps_commit_what_was_queued),
        TEST(what_was_put_is_written_with_its_expiry),
        TEST(what_cannot_be_put_spoils_the_attempt),
        TEST(the_first_begin_on_a_quiet_key_ends_at_once),
        TEST(a_conflict_is_told_and_the_next_attempt_reads_anew),
        TEST(an_attempt_may_be_begun_again_without_a_commit),
        TEST(attempts_are_used_up_by_begin),
        TEST(a_write_that_fails_does_not_hide_the_replies),
        TEST(a_read_that_fails_may_be_followed_by_others),
        TEST(the_guard_is_asked_before_the_commit),
        TEST(steps_out_of_order_are_refused),
        TEST(a_second_op_at_the_same_time_is_refused),
        TEST(nothing_joins_a_commit_under_way),
        TEST(a_closed_client_refuses_steps),
        TEST(unwatch_gives_the_connection_back_clean),
        TEST(unwatch_ends_well_also_when_its_connection_is_lost),
        TEST(a_commit_of_nothing_unwatches),
        TEST(a_connection_that_watches_is_closed_when_it_is_freed),
        TEST(the_client_may_go_first),
        TEST(a_reader_waits_for_its_turn_and_reads_again),
        TEST(whoever_has_the_turn_gives_it_up_by_unwatch),
        TEST(who_does_not_wait_any_more_leaves_the_queue),
        TEST(the_turn_is_taken_after_three_conflicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
