/* What counts of a lease while calls on it overlap or are in doubt: never more than is so. */
#include "support.h"

#include <string.h>

static void extends_that_overlap_count_as_the_shortest(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_link *link = new_link(client);
    sneck_lock *lock = new_lock(client, "door", 600000);
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_extend_start(&op, lock, link, 60000), SNECK_OK);
    assert_int_equal(sneck_lock_extend(lock, 0), SNECK_OK); /* the server has this one first */
    assert_true(sneck_lock_remaining_ms(lock) <= 60000);
    assert_int_equal(finish(link, op), SNECK_OK);
    assert_true(COMMAND_INTEGER(client, "PTTL", "door") <= 60000);
    assert_in_range(sneck_lock_remaining_ms(lock), 30000, 60000);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_extend(lock, 0), SNECK_OK);
    assert_true(sneck_lock_remaining_ms(lock) > 300000); /* that is over */
    sneck_link_free(link);
    sneck_lock_free(lock);
    sneck_client_free(client);
}

static void an_extend_that_is_given_up_does_not_count_for_ever(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_link *link = new_link(client);
    sneck_lock *lock = new_lock(client, "door", 600000);
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sneck_lock_extend_start(&op, lock, link, 60000), SNECK_OK);
        if (i == 0)
            sneck_op_cancel(op);
        if (i == 1)
            sneck_link_free(link);
        sneck_op_free(op);
        if (i == 1)
            link = new_link(client);
    }
    settle(client, link);
    assert_int_equal(sneck_lock_extend(lock, 0), SNECK_OK);
    assert_true(sneck_lock_remaining_ms(lock) > 300000);
    sneck_link_free(link);
    sneck_lock_free(lock);
    sneck_client_free(client);
}

static void an_extend_answered_during_a_release_gives_nothing_back(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_link *link = new_link(client), *other = new_link(client);
    sneck_lock *lock = new_lock(client, "door", 600000);
    sneck_op *extend = NULL, *release = NULL;
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_extend_start(&extend, lock, link, 0), SNECK_OK);
    assert_int_equal(sneck_lock_release_start(&release, lock, other), SNECK_OK);
    assert_int_equal(finish(link, extend), SNECK_OK);
    assert_int_equal(sneck_lock_remaining_ms(lock), 0);
    assert_int_equal(finish(other, release), SNECK_OK);
    assert_int_equal(sneck_lock_lease(lock), SNECK_LEASE_NONE);
    sneck_op_free(extend);
    sneck_op_free(release);
    sneck_link_free(link);
    sneck_link_free(other);
    sneck_lock_free(lock);
    sneck_client_free(client);
}

static void nothing_is_extended_or_renewed_while_a_release_may_still_come(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_link *link = new_link(client);
    sneck_lock *lock = new_lock(client, "door", 600000);
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_release_start(&op, lock, link), SNECK_OK);
    assert_int_equal(sneck_lock_extend(lock, 0), SNECK_NOT_OWNER);
    assert_int_equal(sneck_lock_renew(lock, true), SNECK_NOT_OWNER);
    sneck_op_cancel(op);
    assert_int_equal(sneck_op_status(op), SNECK_UNKNOWN);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_lease(lock), SNECK_LEASE_UNCERTAIN);
    assert_int_equal(sneck_lock_extend(lock, 0), SNECK_NOT_OWNER);
    assert_non_null(strstr(sneck_lock_error(lock), "door"));
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    sneck_link_free(link);
    sneck_lock_free(lock);
    sneck_client_free(client);
}

static void nothing_is_extended_or_renewed_after_an_acquire_in_doubt(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    sneck_link *link = new_link(client);
    sneck_lock *lock = new_lock(client, "door", 600000);
    sneck_op *op = NULL, *gate = block(client, link);
    step_until_blocked(link, other);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, 1), SNECK_OK);
    assert_int_equal(finish(link, op), SNECK_UNKNOWN);
    sneck_op_free(op);
    assert_true(sneck_lock_token(lock, NULL, 0) > 0);
    assert_int_equal(sneck_lock_extend(lock, 0), SNECK_NOT_OWNER);
    assert_int_equal(sneck_lock_renew(lock, true), SNECK_NOT_OWNER);
    unblock(other);
    assert_int_equal(finish(link, gate), SNECK_OK);
    sneck_op_free(gate);
    settle(client, link);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    sneck_link_free(link);
    sneck_lock_free(lock);
    sneck_client_free(client);
    sneck_client_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(extends_that_overlap_count_as_the_shortest, empty_server),
        cmocka_unit_test_setup(an_extend_that_is_given_up_does_not_count_for_ever, empty_server),
        cmocka_unit_test_setup(an_extend_answered_during_a_release_gives_nothing_back, empty_server),
        cmocka_unit_test_setup(nothing_is_extended_or_renewed_while_a_release_may_still_come,
                               empty_server),
        cmocka_unit_test_setup(nothing_is_extended_or_renewed_after_an_acquire_in_doubt,
                               empty_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
