/* One lock object for several: a lease that was lost is not mixed up with the next one. */
#include "renewed.h"

#include <string.h>

enum { ME = 1, YOU = 2 };

/* "door", shared: I have lost the first lease, and you have got the second. */
struct scene {
    sneck_client *client;
    sneck_link *link;
    sneck_lock *lock;
    uint64_t mine, yours; /* the leases */
};

static void lose_and_acquire_again(struct scene *s)
{
    assert_int_equal(sneck_lock_acquire(s->lock, 0), SNECK_OK);
    s->mine = sneck_lock_lease_number(s->lock);
    DO(s->client, "DEL", "door");
    assert_int_equal(sneck_lock_acquire(s->lock, 0), SNECK_OK);
    s->yours = sneck_lock_lease_number(s->lock);
}

static int set_up(void **state)
{
    static struct scene scene;
    empty_server(state);
    scene.client = new_client();
    scene.link = new_link(scene.client);
    scene.lock = new_lock(scene.client, "door", 60000);
    *state = &scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;
    sneck_lock_free(s->lock);
    sneck_link_free(s->link);
    sneck_client_free(s->client);
    return 0;
}

static void each_lease_has_a_number(void **state)
{
    struct scene *s = *state;
    assert_int_equal(sneck_lock_lease_number(s->lock), 0);
    lose_and_acquire_again(s);
    assert_int_equal(s->mine, 1);
    assert_int_equal(s->yours, 2);
    assert_int_equal(sneck_lock_release(s->lock), SNECK_OK);
    assert_int_equal(sneck_lock_lease_number(s->lock), 2);
}

static void an_op_tells_which_lease_it_got_or_confirmed(void **state)
{
    struct scene *s = *state;
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire_start(&op, s->lock, s->link, 0), SNECK_OK);
    assert_int_equal(sneck_op_lease_number(op), 0);
    assert_int_equal(finish(s->link, op), SNECK_OK);
    DO(s->client, "DEL", "door");
    assert_int_equal(sneck_lock_acquire(s->lock, 0), SNECK_OK);
    assert_int_equal(sneck_op_lease_number(op), 1);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_extend_start(&op, s->lock, s->link, 0), SNECK_OK);
    assert_int_equal(finish(s->link, op), SNECK_OK);
    assert_int_equal(sneck_op_lease_number(op), 2);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_release_start(&op, s->lock, s->link), SNECK_OK);
    assert_int_equal(finish(s->link, op), SNECK_OK);
    assert_int_equal(sneck_op_lease_number(op), 0);
    sneck_op_free(op);
}

static void a_release_of_a_lost_lease_leaves_the_next_one(void **state)
{
    struct scene *s = *state;
    lose_and_acquire_again(s);
    assert_int_equal(sneck_lock_release_lease(s->lock, s->mine), SNECK_NOT_OWNER);
    assert_non_null(strstr(sneck_lock_error(s->lock), "acquired anew"));
    assert_true(key_exists(s->client, "door"));
    assert_true(sneck_lock_remaining_ms(s->lock) > 0);
    assert_int_equal(sneck_lock_release_lease(s->lock, s->yours), SNECK_OK);
    assert_false(key_exists(s->client, "door"));
    assert_int_equal(sneck_lock_release_lease(s->lock, s->yours), SNECK_NOT_OWNER);
    assert_int_equal(sneck_lock_release_lease(s->lock, 0), SNECK_NOT_OWNER);
}

static void an_op_on_a_link_does_so_as_well(void **state)
{
    struct scene *s = *state;
    sneck_op *op = NULL;
    lose_and_acquire_again(s);
    assert_int_equal(sneck_lock_release_lease_start(&op, s->lock, s->link, s->mine), SNECK_OK);
    assert_int_equal(end_op(op), SNECK_NOT_OWNER);
    assert_true(key_exists(s->client, "door"));
    assert_int_equal(sneck_lock_release_lease_start(&op, s->lock, s->link, s->yours), SNECK_OK);
    assert_int_equal(end_op(op), SNECK_OK);
    assert_false(key_exists(s->client, "door"));
}

static void the_next_lease_is_renewed_further(void **state)
{
    struct scene *s = *state;
    sneck_lock_free(s->lock);
    s->lock = new_renewed(s->client, "door", TTL_MS);
    lose_and_acquire_again(s);
    assert_int_equal(sneck_lock_release_lease(s->lock, s->mine), SNECK_NOT_OWNER);
    let_pass(s->client, 8);
    assert_int_equal(sneck_lock_release_lease(s->lock, s->yours), SNECK_OK);
}

static void each_body_ends_with_its_own_lease(void **state)
{
    struct scene *s = *state;
    uint64_t lease = 99;
    assert_false(sneck_lock_end_body(&lease, s->lock, ME));
    sneck_lock_set_body(s->lock, ME, 5); /* it is in none */
    assert_int_equal(sneck_lock_begin_body(s->lock, ME), SNECK_OK);
    sneck_lock_set_body(s->lock, ME, 1);
    assert_int_equal(sneck_lock_begin_body(s->lock, YOU), SNECK_OK);
    sneck_lock_set_body(s->lock, YOU, 2);
    assert_int_equal(sneck_lock_begin_body(s->lock, ME), SNECK_OK);
    sneck_lock_set_body(s->lock, ME, 3);
    assert_true(sneck_lock_end_body(&lease, s->lock, ME));
    assert_int_equal(lease, 3);
    assert_true(sneck_lock_end_body(&lease, s->lock, ME));
    assert_int_equal(lease, 1);
    assert_true(sneck_lock_end_body(&lease, s->lock, YOU));
    assert_int_equal(lease, 2);
    assert_false(sneck_lock_end_body(&lease, s->lock, YOU));
}

static void a_body_may_be_ended_by_another_owner(void **state)
{
    struct scene *s = *state;
    uint64_t lease = 99;
    assert_int_equal(sneck_lock_begin_body(s->lock, YOU), SNECK_OK); /* waits still */
    assert_int_equal(sneck_lock_begin_body(s->lock, 3), SNECK_OK);
    sneck_lock_set_body(s->lock, 3, 1);
    assert_int_equal(sneck_lock_begin_body(s->lock, 4), SNECK_OK);
    sneck_lock_set_body(s->lock, 4, 2);
    assert_true(sneck_lock_end_body(&lease, s->lock, ME));
    assert_int_equal(lease, 1);
    assert_true(sneck_lock_end_body(&lease, s->lock, ME));
    assert_int_equal(lease, 2);
    assert_false(sneck_lock_end_body(&lease, s->lock, ME)); /* what is left is freed with it */
}

/* ------------------------------------------------------- freed while it is acquired */

static void a_renewed_lock_that_is_freed_meanwhile_is_given_back(void **state)
{
    struct scene *s = *state;
    sneck_lock *renewed = new_renewed(s->client, "door", 60000);
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire(s->lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_acquire_start(&op, renewed, s->link, 60000), SNECK_OK);
    step_once(s->link, 10);
    sneck_lock_free(renewed);
    assert_int_equal(sneck_lock_release(s->lock), SNECK_OK);
    assert_int_equal(finish(s->link, op), SNECK_INTERRUPTED);
    assert_non_null(strstr(sneck_op_error(op), "freed"));
    sneck_op_free(op);
    settle(s->client, s->link);
    assert_false(key_exists(s->client, "door"));
}

/* ----------------------------------------------------------------------- statistics */

static sneck_stats stats_of(struct scene *s)
{
    sneck_stats stats;
    sneck_client_stats(&stats, s->client);
    return stats;
}

static void an_acquire_that_was_cancelled_is_counted_as_contended(void **state)
{
    struct scene *s = *state;
    sneck_lock *busy = new_lock(s->client, "door", 60000);
    assert_int_equal(sneck_lock_acquire(busy, 0), SNECK_OK);
    for (uint64_t i = 1; i <= 3; i++) {
        sneck_op *op = NULL;
        assert_int_equal(sneck_lock_acquire_start(&op, s->lock, s->link, 60000), SNECK_OK);
        STEP_UNTIL(s->link, stats_of(s).contended == i);
        assert_int_equal(sneck_op_status(op), SNECK_PENDING);
        sneck_op_cancel(op);
        sneck_op_free(op);
    }
    assert_int_equal(stats_of(s).contended, 3);
    assert_int_equal(stats_of(s).acquisitions, 1);
    sneck_lock_free(busy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(each_lease_has_a_number),
        TEST(an_op_tells_which_lease_it_got_or_confirmed),
        TEST(a_release_of_a_lost_lease_leaves_the_next_one),
        TEST(an_op_on_a_link_does_so_as_well),
        TEST(the_next_lease_is_renewed_further),
        TEST(each_body_ends_with_its_own_lease),
        TEST(a_body_may_be_ended_by_another_owner),
        TEST(a_renewed_lock_that_is_freed_meanwhile_is_given_back),
        TEST(an_acquire_that_was_cancelled_is_counted_as_contended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
