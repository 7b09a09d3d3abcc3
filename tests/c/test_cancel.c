/* Ops that are given up: no token of theirs stays, and nobody reads their replies. */
#include "door.h"

static sneck_op *start_acquire(struct scene *scene, int64_t wait_ms)
{
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire_start(&op, scene->lock, scene->link, wait_ms), SNECK_OK);
    return op;
}

static void a_cancelled_waiter_leaves_the_lock_to_others(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(sneck_lock_acquire(scene->held, 0), SNECK_OK);
    sneck_op *op = start_acquire(scene, SNECK_FOREVER);
    settle(scene->client, scene->link);
    assert_int_equal(sneck_op_status(op), SNECK_PENDING);
    sneck_op_cancel(op);
    assert_int_equal(sneck_op_status(op), SNECK_INTERRUPTED);
    assert_true(*sneck_op_error(op) != '\0');
    let_go(scene);
    settle(scene->client, scene->link);
    assert_false(key_exists(scene->other, "door"));
    assert_int_equal(sneck_lock_token(scene->lock, NULL, 0), 0);
    sneck_op_free(op);
}

/* The server gets to the acquire only after it was given up. */
static void give_up_in_flight(struct scene *scene, bool by_freeing)
{
    sneck_op *gate = block(scene->client, scene->link);
    sneck_op *op = start_acquire(scene, 0);
    step_until_blocked(scene->link, scene->other);
    assert_int_equal(sneck_op_status(op), SNECK_PENDING);
    if (by_freeing) {
        sneck_op_free(op);
    } else {
        sneck_op_cancel(op);
        assert_int_equal(sneck_op_status(op), SNECK_INTERRUPTED);
        sneck_op_free(op);
    }
    unblock(scene->other);
    settle(scene->client, scene->link);
    assert_int_equal(sneck_op_status(gate), SNECK_OK);
    assert_false(key_exists(scene->other, "door"));
    assert_int_equal(sneck_lock_remaining_ms(scene->lock), 0);
    sneck_op_free(gate);
}

static void an_acquire_cancelled_in_flight_leaves_no_key(void **state)
{
    give_up_in_flight(*state, false);
}

static void an_acquire_freed_in_flight_leaves_no_key(void **state)
{
    give_up_in_flight(*state, true);
}

static void an_acquire_cancelled_before_it_was_sent_leaves_no_key(void **state)
{
    struct scene *scene = *state;
    sneck_op *op = start_acquire(scene, 0);
    sneck_op_cancel(op);
    assert_int_equal(sneck_op_status(op), SNECK_INTERRUPTED);
    sneck_op_free(op);
    settle(scene->client, scene->link);
    assert_false(key_exists(scene->other, "door"));
}

static void a_cancelled_acquire_can_be_repeated(void **state)
{
    struct scene *scene = *state;
    sneck_op *op = start_acquire(scene, 0);
    sneck_link_step(scene->link);
    sneck_op_cancel(op);
    sneck_op_free(op);
    op = start_acquire(scene, 0);
    assert_int_equal(end_op(op), SNECK_OK);
    settle(scene->client, scene->link);
    assert_true(key_exists(scene->other, "door"));
    assert_true(sneck_lock_remaining_ms(scene->lock) > 0);
    assert_int_equal(sneck_lock_release(scene->lock), SNECK_OK);
}

static void a_release_cancelled_in_flight_is_unknown_and_can_be_repeated(void **state)
{
    struct scene *scene = *state;
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire(scene->lock, 0), SNECK_OK);
    sneck_op *gate = block(scene->client, scene->link);
    assert_int_equal(sneck_lock_release_start(&op, scene->lock, scene->link), SNECK_OK);
    step_until_blocked(scene->link, scene->other);
    sneck_op_cancel(op);
    assert_int_equal(sneck_op_status(op), SNECK_UNKNOWN);
    assert_int_equal(sneck_lock_remaining_ms(scene->lock), 0);
    sneck_op_free(op);
    unblock(scene->other);
    settle(scene->client, scene->link);
    assert_int_equal(sneck_lock_release(scene->lock), SNECK_OK);
    assert_false(key_exists(scene->other, "door"));
    sneck_op_free(gate);
}

/* Nothing connects yet, so all that is cancelled may still leave. */
static void what_may_still_leave_is_unknown_when_it_is_cancelled(void **state)
{
    struct scene *scene = *state;
    sneck_op *op = START(scene->client, scene->link, "INCR", "count"), *force = NULL;
    assert_int_equal(sneck_lock_force_release_start(&force, scene->lock, scene->link), SNECK_OK);
    sneck_op_cancel(op);
    sneck_op_cancel(force);
    assert_int_equal(sneck_op_status(op), SNECK_UNKNOWN);
    assert_int_equal(sneck_op_status(force), SNECK_UNKNOWN);
    settle(scene->client, scene->link);
    assert_value(scene->other, "count", "1");
    sneck_op_free(op);
    sneck_op_free(force);
}

static void what_cannot_leave_any_more_is_interrupted(void **state)
{
    struct scene *scene = *state;
    sneck_op *op = START(scene->client, NULL, "INCR", "count"), *release = NULL;
    sneck_op_cancel(op);
    assert_int_equal(sneck_op_status(op), SNECK_INTERRUPTED);
    sneck_op_wait(op, NULL, NULL);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_acquire(scene->lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_release_start(&release, scene->lock, scene->next), SNECK_OK);
    sneck_link_free(scene->next); /* before it has sent anything */
    scene->next = NULL;
    assert_int_equal(sneck_op_status(release), SNECK_INTERRUPTED);
    assert_true(sneck_lock_remaining_ms(scene->lock) > 0);
    sneck_op_free(release);
    assert_int_equal(sneck_lock_release(scene->lock), SNECK_OK);
    assert_false(key_exists(scene->other, "count"));
}

/* To connect could take its time, as where a name has to be resolved. */
static void an_op_that_is_freed_at_once_opens_no_connection(void **state)
{
    struct scene *scene = *state;
    sneck_client *fresh = new_client();
    sneck_lock *lock = new_lock(fresh, "door", 60000);
    sneck_op *op = NULL;
    int64_t before = server_number(scene->other, "stats", "total_connections_received");
    assert_int_equal(sneck_lock_acquire_start(&op, lock, NULL, 0), SNECK_OK);
    sneck_op_free(op);
    sneck_op_free(START(fresh, NULL, "INCR", "count"));
    sneck_lock_free(lock);
    sneck_client_free(fresh);
    assert_int_equal(server_number(scene->other, "stats", "total_connections_received"), before);
    assert_false(key_exists(scene->other, "door"));
}

/* The server has done it, and the answer is never read. */
static void a_release_under_way_on_a_link_that_is_freed_is_no_loss(void **state)
{
    struct scene *scene = *state;
    sneck_op *release = NULL;
    sneck_stats stats;
    assert_int_equal(sneck_lock_acquire(scene->lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_release(scene->lock), SNECK_OK); /* the server knows the script */
    assert_int_equal(sneck_lock_acquire(scene->lock, 0), SNECK_OK);
    settle(scene->client, scene->next);
    sneck_op *count = START(scene->client, scene->next, "INCR", "count");
    assert_int_equal(sneck_lock_release_start(&release, scene->lock, scene->next), SNECK_OK);
    sneck_link_step(scene->next);
    UNTIL(key_exists(scene->other, "count"));
    sneck_link_free(scene->next);
    scene->next = NULL;
    assert_int_equal(sneck_op_status(count), SNECK_UNKNOWN);
    assert_int_equal(sneck_op_status(release), SNECK_UNKNOWN);
    sneck_op_free(count);
    sneck_op_free(release);
    assert_int_equal(sneck_lock_release(scene->lock), SNECK_OK);
    sneck_client_stats(&stats, scene->client);
    assert_int_equal(stats.losses, 0);
}

/* Two at once: what is told of the one is not true of the other. */
static void a_release_that_never_left_says_nothing_of_one_that_did(void **state)
{
    struct scene *scene = *state;
    sneck_op *unsent = NULL, *sent = NULL;
    assert_int_equal(sneck_lock_acquire(scene->lock, 0), SNECK_OK);
    sneck_op *gate = block(scene->client, scene->link);
    assert_int_equal(sneck_lock_release_start(&unsent, scene->lock, scene->next), SNECK_OK);
    assert_int_equal(sneck_lock_release_start(&sent, scene->lock, scene->link), SNECK_OK);
    step_until_blocked(scene->link, scene->other);
    sneck_link_free(scene->next);
    scene->next = NULL;
    assert_int_equal(sneck_op_status(unsent), SNECK_INTERRUPTED);
    assert_int_equal(sneck_lock_remaining_ms(scene->lock), 0);
    assert_int_equal(sneck_lock_extend(scene->lock, 0), SNECK_NOT_OWNER);
    sneck_op_cancel(sent);
    assert_int_equal(sneck_op_status(sent), SNECK_UNKNOWN);
    unblock(scene->other);
    settle(scene->client, scene->link);
    assert_int_equal(sneck_lock_release(scene->lock), SNECK_OK); /* it was done, and in time */
    sneck_op_free(gate);
    sneck_op_free(unsent);
    sneck_op_free(sent);
}

static void a_late_reply_is_not_read_by_a_later_op(void **state)
{
    struct scene *scene = *state;
    sneck_op_free(block(scene->client, scene->link));
    sneck_op *abandoned = START(scene->client, scene->link, "ECHO", "theirs");
    sneck_op *op = START(scene->client, scene->link, "ECHO", "mine");
    step_until_blocked(scene->link, scene->other);
    sneck_op_cancel(abandoned);
    sneck_op_free(abandoned);
    assert_int_equal(sneck_op_status(op), SNECK_PENDING);
    unblock(scene->other);
    assert_int_equal(finish(scene->link, op), SNECK_OK);
    assert_string_equal(text_of(sneck_op_reply(op)), "mine");
    sneck_op_free(op);
}

static void cancelling_an_op_that_has_ended_changes_nothing(void **state)
{
    struct scene *scene = *state;
    sneck_op *op = start_acquire(scene, 0);
    assert_int_equal(finish(scene->link, op), SNECK_OK);
    sneck_op_cancel(op);
    assert_int_equal(sneck_op_status(op), SNECK_OK);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_release(scene->lock), SNECK_OK);
}

static int count_and_stop(void *data)
{
    int *calls = data;
    return ++*calls == 3;
}

static void an_interrupt_ends_a_wait_and_leaves_no_key(void **state)
{
    struct scene *scene = *state;
    sneck_op *op = NULL;
    int calls = 0;
    assert_int_equal(sneck_lock_acquire(scene->held, 0), SNECK_OK);
    assert_int_equal(sneck_lock_acquire_start(&op, scene->lock, NULL, SNECK_FOREVER), SNECK_OK);
    assert_int_equal(sneck_op_wait(op, count_and_stop, &calls), SNECK_INTERRUPTED);
    assert_int_equal(calls, 3);
    sneck_op_free(op);
    let_go(scene);
    assert_false(key_exists(scene->other, "door"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_free, tear_down)
        TEST(a_cancelled_waiter_leaves_the_lock_to_others),
        TEST(an_acquire_cancelled_in_flight_leaves_no_key),
        TEST(an_acquire_freed_in_flight_leaves_no_key),
        TEST(an_acquire_cancelled_before_it_was_sent_leaves_no_key),
        TEST(a_cancelled_acquire_can_be_repeated),
        TEST(a_release_cancelled_in_flight_is_unknown_and_can_be_repeated),
        TEST(what_may_still_leave_is_unknown_when_it_is_cancelled),
        TEST(what_cannot_leave_any_more_is_interrupted),
        TEST(an_op_that_is_freed_at_once_opens_no_connection),
        TEST(a_release_under_way_on_a_link_that_is_freed_is_no_loss),
        TEST(a_release_that_never_left_says_nothing_of_one_that_did),
        TEST(a_late_reply_is_not_read_by_a_later_op),
        TEST(cancelling_an_op_that_has_ended_changes_nothing),
        TEST(an_interrupt_ends_a_wait_and_leaves_no_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
