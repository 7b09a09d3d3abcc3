/* The lease and the fences of a lock over five servers. */
#include "five.h"
#include "renewed.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LONG_MS 600000
#define FENCE_KEY "{door}:sneck:fence"

static int64_t left_on(struct five *five, size_t i)
{
    return COMMAND_INTEGER(five->each[i], "PTTL", "door");
}

/* ------------------------------------------------------------------------ extending */

static void a_minority_that_fails_to_extend_costs_nothing(void **state)
{
    struct five *five = *state;
    sneck_op *op = NULL;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    UNTIL(found_on(five, "door") == FIVE);
    DO(five->each[0], "DEL", "door");
    kill_some(five, 1, 1);
    assert_int_equal(sneck_lock_extend_start(&op, lock, NULL, 2 * LONG_MS), SNECK_OK);
    assert_int_equal(sneck_op_wait(op, NULL, NULL), SNECK_OK);
    sneck_op_free(op);
    assert_true(sneck_lock_remaining_ms(lock) > LONG_MS);
    for (size_t i = 2; i < FIVE; i++)
        assert_true(left_on(five, i) > LONG_MS);
    UNTIL(found_on(five, "door") >= 3);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    UNTIL(found_on(five, "door") == 0);
    sneck_lock_free(lock);
}

static void a_lease_that_three_have_lost_is_lost(void **state)
{
    struct five *five = *state;
    sneck_op *op = NULL;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    UNTIL(found_on(five, "door") == FIVE);
    DO(five->each[0], "DEL", "door");
    occupy(five, "door", 1, 2);
    assert_int_equal(sneck_lock_extend_start(&op, lock, NULL, 0), SNECK_OK);
    assert_int_equal(sneck_op_wait(op, NULL, NULL), SNECK_NOT_OWNER);
    assert_int_equal(errors_with(op, "not ours there"), 3);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_lease(lock), SNECK_LEASE_LOST);
    assert_int_equal(sneck_lock_release(lock), SNECK_NOT_OWNER);
    assert_value(five->each[1], "door", "another's");
    assert_int_equal(found_on(five, "door"), 4);
    sneck_lock_free(lock);
}

static void an_extend_that_too_few_hear_leaves_the_shorter_lease(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    UNTIL(found_on(five, "door") == FIVE);
    signal_some(five, 0, 3, SIGSTOP);
    assert_int_equal(sneck_lock_extend(lock, 2 * LONG_MS), SNECK_QUORUM);
    assert_in_range(sneck_lock_remaining_ms(lock), 1, LONG_MS);
    assert_int_equal(sneck_lock_extend(lock, LONG_MS / 10), SNECK_QUORUM);
    assert_in_range(sneck_lock_remaining_ms(lock), 1, LONG_MS / 10);
    assert_int_equal(sneck_lock_lease(lock), SNECK_LEASE_HELD);
    signal_some(five, 0, 3, SIGCONT);
    assert_int_equal(sneck_lock_extend(lock, 0), SNECK_OK);
    assert_true(sneck_lock_remaining_ms(lock) > LONG_MS / 2);
    assert_int_equal(found_on(five, "door"), FIVE); /* nothing was released for it */
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    sneck_lock_free(lock);
}

static void answers_that_outlast_the_new_lease_confirm_nothing(void **state)
{
    struct five *five = *state;
    sneck_op *op = NULL;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    sneck_link *link = new_link(five->client);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, 0), SNECK_OK);
    assert_int_equal(finish(link, op), SNECK_OK);
    sneck_op_free(op);
    STEP_UNTIL(link, sneck_link_quiet(link));
    assert_int_equal(sneck_lock_extend_start(&op, lock, link, 50), SNECK_OK);
    sneck_link_step(link);
    pause_ms(60);
    assert_int_equal(finish(link, op), SNECK_QUORUM);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_remaining_ms(lock), 0);
    sneck_link_free(link);
    sneck_lock_free(lock);
}

/* ------------------------------------------------------------------------- renewal */

static void renewal_goes_on_as_long_as_three_servers_do(void **state)
{
    struct five *five = *state;
    atomic_int losses = 0;
    sneck_lock *lock = hold_told(five->client, "door", 3000, count_loss, &losses);
    UNTIL(found_on(five, "door") == FIVE);
    for (size_t down = 0; down < 3; down++) {
        if (down > 0)
            kill_some(five, down - 1, 1);
        DO(five->each[4], "CONFIG", "RESETSTAT");
        UNTIL(renewals(five->each[4]) >= 2);
        assert_int_equal(losses, 0);
        assert_int_equal(sneck_lock_lease(lock), SNECK_LEASE_HELD);
    }
    kill_some(five, 2, 1);
    UNTIL(losses == 1);
    assert_int_equal(sneck_lock_lease(lock), SNECK_LEASE_LOST);
    assert_int_equal(sneck_lock_remaining_ms(lock), 0);
    revive(five);
    assert_int_equal(sneck_lock_acquire(lock, 60000), SNECK_OK);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    assert_int_equal(losses, 1);
    sneck_lock_free(lock);
}

static void a_lock_taken_away_on_three_is_told(void **state)
{
    struct five *five = *state;
    atomic_int losses = 0;
    sneck_lock *lock = hold_told(five->client, "door", 3000, count_loss, &losses);
    UNTIL(found_on(five, "door") == FIVE);
    occupy(five, "door", 0, 2);
    DO(five->each[4], "CONFIG", "RESETSTAT");
    UNTIL(renewals(five->each[4]) >= 2);
    assert_int_equal(losses, 0);
    occupy(five, "door", 2, 1);
    UNTIL(losses == 1);
    assert_int_equal(sneck_lock_lease(lock), SNECK_LEASE_LOST);
    sneck_lock_free(lock);
}

static void a_short_stall_of_three_is_survived(void **state)
{
    struct five *five = *state;
    atomic_int losses = 0;
    sneck_lock *lock = hold_told(five->client, "door", 6000, count_loss, &losses);
    UNTIL(found_on(five, "door") == FIVE);
    signal_some(five, 0, 3, SIGSTOP);
    UNTIL(sneck_lock_lease(lock) == SNECK_LEASE_UNCERTAIN);
    signal_some(five, 0, 3, SIGCONT);
    UNTIL(sneck_lock_lease(lock) == SNECK_LEASE_HELD);
    assert_int_equal(losses, 0);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    sneck_lock_free(lock);
}

/* -------------------------------------------------------------------------- fences */

static size_t fences_of_at_least(struct five *five, int64_t fence)
{
    size_t count = 0;
    for (size_t i = 0; i < FIVE; i++) {
        if (five->servers[i].pid == 0)
            continue;
        sneck_reply *reply = COMMAND(five->each[i], "GET", FENCE_KEY);
        count += sneck_reply_kind(reply) == SNECK_REPLY_BYTES &&
                 strtoll(text_of(reply), NULL, 10) >= fence;
        sneck_reply_free(reply);
    }
    return count;
}

static void a_fence_is_the_greatest_and_known_to_a_majority(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, true);
    for (size_t i = 0; i < FIVE; i++) {
        /* one server is far ahead, another lags: their clocks, or their pasts, differ */
        DO(five->each[i], "SET", FENCE_KEY, "4000000000000000");
        kill_some(five, i + 1, 2);
        assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
        int64_t fence = sneck_lock_fence(lock);
        assert_true(fence > 4000000000000000);
        assert_true(fences_of_at_least(five, fence) >= 3);
        int64_t kept_ms = COMMAND_INTEGER(five->each[i], "PTTL", FENCE_KEY); /* till then, and on */
        assert_in_range(kept_ms, 1000000000000, 4000000000000);
        assert_int_equal(sneck_lock_release(lock), SNECK_OK);
        revive(five);
        for (size_t k = 0; k < FIVE; k++)
            DO(five->each[k], "FLUSHALL");
    }
    sneck_lock_free(lock);
}

/* Of two majorities that differ as much as they can, one server is in both. */
static void fences_grow_whichever_servers_are_up(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, true);
    int64_t last = 4000000000000000; /* the first majority is ahead of all clocks */
    DO(five->each[0], "SET", FENCE_KEY, "4000000000000000");
    for (size_t round = 0; round < 12; round++) {
        signal_some(five, 3 + 2 * round, 2, SIGSTOP); /* up: 0 1 2, then 2 3 4, 4 0 1, ... */
        assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
        assert_true(sneck_lock_fence(lock) > last);
        last = sneck_lock_fence(lock);
        assert_int_equal(sneck_lock_release(lock), SNECK_OK);
        signal_some(five, 0, FIVE, SIGCONT);
        UNTIL(found_on(five, "door") == 0);
    }
    sneck_lock_free(lock);
}

/* Three have granted it, and are stopped before they are told the greatest fence. */
static void without_a_majority_for_the_fence_there_is_no_lock(void **state)
{
    struct five *five = *state;
    sneck_op *op = NULL;
    sneck_lock *lock = quorum_lock(five->client, "door", 20000, true);
    sneck_link *link = new_link(five->client);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, 0), SNECK_OK);
    assert_int_equal(finish(link, op), SNECK_OK);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    STEP_UNTIL(link, sneck_link_quiet(link) && found_on(five, "door") == 0);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, 0), SNECK_OK);
    sneck_link_step(link);
    UNTIL(found_on(five, "door") == FIVE);
    signal_some(five, 0, FIVE, SIGSTOP);
    assert_int_equal(finish(link, op), SNECK_QUORUM);
    assert_non_null(strstr(sneck_op_error(op), "servers took its fence, 3 are needed"));
    sneck_op_free(op);
    assert_int_equal(sneck_lock_token(lock, NULL, 0), 0);
    signal_some(five, 0, FIVE, SIGCONT);
    STEP_UNTIL(link, sneck_link_quiet(link) && found_on(five, "door") == 0);
    sneck_link_free(link);
    sneck_lock_free(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIVE(a_minority_that_fails_to_extend_costs_nothing),
        WITH_FIVE(a_lease_that_three_have_lost_is_lost),
        WITH_FIVE(an_extend_that_too_few_hear_leaves_the_shorter_lease),
        WITH_FIVE(answers_that_outlast_the_new_lease_confirm_nothing),
        WITH_FIVE(renewal_goes_on_as_long_as_three_servers_do),
        WITH_FIVE(a_lock_taken_away_on_three_is_told),
        WITH_FIVE(a_short_stall_of_three_is_survived),
        WITH_FIVE(a_fence_is_the_greatest_and_known_to_a_majority),
        WITH_FIVE(fences_grow_whichever_servers_are_up),
        WITH_FIVE(without_a_majority_for_the_fence_there_is_no_lock),
    };
    return cmocka_run_group_tests(tests, start_five, stop_five);
}
