/* What counts of a lease while calls on it overlap or are in doubt: never more than is so. */
#include "door.h"

#include <string.h>

static void extends_that_overlap_count_as_the_shortest(void **state)
{
    struct scene *scene = *state;
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire(scene->lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_extend_start(&op, scene->lock, scene->link, 60000), SNECK_OK);
    assert_int_equal(sneck_lock_extend(scene->lock, 0), SNECK_OK); /* is there first */
    assert_true(sneck_lock_remaining_ms(scene->lock) <= 60000);
    assert_int_equal(finish(scene->link, op), SNECK_OK);
    assert_true(COMMAND_INTEGER(scene->client, "PTTL", "door") <= 60000);
    assert_in_range(sneck_lock_remaining_ms(scene->lock), 30000, 60000);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_extend(scene->lock, 0), SNECK_OK);
    assert_true(sneck_lock_remaining_ms(scene->lock) > 300000); /* that is over */
}

static void an_extend_that_is_given_up_does_not_count_for_ever(void **state)
{
    struct scene *scene = *state;
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire(scene->lock, 0), SNECK_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sneck_lock_extend_start(&op, scene->lock, scene->link, 60000), SNECK_OK);
        if (i == 0)
            sneck_op_cancel(op);
        if (i == 1)
            sneck_link_free(scene->link);
        sneck_op_free(op);
        if (i == 1)
            scene->link = new_link(scene->client);
    }
    settle(scene->client, scene->link);
    assert_int_equal(sneck_lock_extend(scene->lock, 0), SNECK_OK);
    assert_true(sneck_lock_remaining_ms(scene->lock) > 300000);
}

static void an_extend_answered_during_a_release_gives_nothing_back(void **state)
{
    struct scene *scene = *state;
    sneck_op *extend = NULL, *release = NULL;
    assert_int_equal(sneck_lock_acquire(scene->lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_extend_start(&extend, scene->lock, scene->link, 0), SNECK_OK);
    assert_int_equal(sneck_lock_release_start(&release, scene->lock, scene->next), SNECK_OK);
    assert_int_equal(finish(scene->link, extend), SNECK_OK);
    assert_int_equal(sneck_lock_remaining_ms(scene->lock), 0);
    assert_int_equal(finish(scene->next, release), SNECK_OK);
    assert_int_equal(sneck_lock_lease(scene->lock), SNECK_LEASE_NONE);
    sneck_op_free(extend);
    sneck_op_free(release);
}

static void nothing_is_extended_or_renewed_while_a_release_may_still_come(void **state)
{
    struct scene *scene = *state;
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire(scene->lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_release_start(&op, scene->lock, scene->link), SNECK_OK);
    assert_int_equal(sneck_lock_extend(scene->lock, 0), SNECK_NOT_OWNER);
    assert_int_equal(sneck_lock_renew(scene->lock, true), SNECK_NOT_OWNER);
    sneck_op_cancel(op);
    assert_int_equal(sneck_op_status(op), SNECK_UNKNOWN);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_lease(scene->lock), SNECK_LEASE_UNCERTAIN);
    assert_int_equal(sneck_lock_extend(scene->lock, 0), SNECK_NOT_OWNER);
    assert_non_null(strstr(sneck_lock_error(scene->lock), "door"));
    assert_int_equal(sneck_lock_release(scene->lock), SNECK_OK);
}

static void nothing_is_extended_or_renewed_after_an_acquire_in_doubt(void **state)
{
    struct scene *scene = *state;
    sneck_op *op = NULL, *gate = block(scene->client, scene->link);
    step_until_blocked(scene->link, scene->other);
    assert_int_equal(sneck_lock_acquire_start(&op, scene->lock, scene->link, 1), SNECK_OK);
    assert_int_equal(end_op(op), SNECK_UNKNOWN);
    assert_true(sneck_lock_token(scene->lock, NULL, 0) > 0);
    assert_int_equal(sneck_lock_extend(scene->lock, 0), SNECK_NOT_OWNER);
    assert_int_equal(sneck_lock_renew(scene->lock, true), SNECK_NOT_OWNER);
    unblock(scene->other);
    assert_int_equal(end_op(gate), SNECK_OK);
    settle(scene->client, scene->link);
    assert_int_equal(sneck_lock_release(scene->lock), SNECK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_free, tear_down)
        TEST(extends_that_overlap_count_as_the_shortest),
        TEST(an_extend_that_is_given_up_does_not_count_for_ever),
        TEST(an_extend_answered_during_a_release_gives_nothing_back),
        TEST(nothing_is_extended_or_renewed_while_a_release_may_still_come),
        TEST(nothing_is_extended_or_renewed_after_an_acquire_in_doubt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
