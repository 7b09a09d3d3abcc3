/* What only C says of timestamp locks: refusals, messages, clones, cancels. */
#include "door.h"

#include <sneck_legacy.h>
#include <string.h>

static int make(sneck_lock **out, sneck_client *client, const sneck_lock_options *options,
                char *error)
{
    return sneck_legacy_lock_new(out, client, "door", 4, options, SNECK_LEGACY_SECONDS,
                                 error);
}

static sneck_lock *make_held(sneck_client *client)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    sneck_lock *lock;
    options.ttl_ms = LONG_MS;
    assert_int_equal(make(&lock, client, &options, NULL), SNECK_OK);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    return lock;
}

static void fair_and_fence_are_refused(void **state)
{
    struct scene *scene = *state;
    sneck_lock_options fair = SNECK_LOCK_OPTIONS, fence = SNECK_LOCK_OPTIONS;
    char error[SNECK_ERROR_SIZE];
    sneck_lock *lock = NULL;
    fair.fair = fence.fence = true;
    assert_int_equal(make(&lock, scene->client, &fair, error), SNECK_INVALID);
    assert_string_equal(error, "lock \"door\": a timestamp lock has no queue, so it cannot be fair");
    assert_int_equal(make(&lock, scene->client, &fence, error), SNECK_INVALID);
    assert_string_equal(error, "lock \"door\": a timestamp lock has no fence");
    assert_null(lock);
}

static void a_unit_that_is_none_is_refused(void **state)
{
    struct scene *scene = *state;
    static const int units[] = {-1, 2, 1000};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        char error[SNECK_ERROR_SIZE] = "";
        sneck_lock *lock = NULL;
        assert_int_equal(sneck_legacy_lock_new(&lock, scene->client, "door", 4, NULL,
                                               (sneck_legacy_unit)units[i], error),
                         SNECK_INVALID);
        assert_non_null(strstr(error, "SNECK_LEGACY_SECONDS or SNECK_LEGACY_MILLISECONDS, not "));
        assert_null(lock);
    }
}

static void try_lock_and_its_release_leave_the_servers_word(void **state)
{
    struct scene *scene = *state;
    DO(scene->client, "HSET", "hash", "field", "value");
    assert_int_equal(sneck_release_lock(scene->client, "hash", 4, "mine", 4, NULL), SNECK_SERVER);
    assert_string_equal(sneck_client_server_code(scene->client), "WRONGTYPE");
    assert_int_equal(sneck_try_lock(scene->client, "", 0, "mine", 4, 1000, 0, NULL),
                     SNECK_INVALID);
    assert_string_equal(sneck_client_server_code(scene->client), "");
    assert_int_equal(sneck_try_lock(scene->client, "hash", 4, "mine", 4, 1000, 0, NULL),
                     SNECK_SERVER);
    assert_string_equal(sneck_client_server_code(scene->client), "WRONGTYPE");
}

static void it_cannot_be_a_guard(void **state)
{
    struct scene *scene = *state;
    sneck_tx_options options = SNECK_TX_OPTIONS;
    const void *const keys[] = {"key"};
    const size_t key_len[] = {3};
    char error[SNECK_ERROR_SIZE];
    sneck_tx *tx = NULL;
    sneck_lock *lock = make_held(scene->client);
    options.guard = lock;
    assert_int_equal(sneck_tx_new(&tx, scene->client, 1, keys, key_len, &options, error),
                     SNECK_INVALID);
    assert_null(tx);
    assert_non_null(strstr(error, "a timestamp lock cannot be a guard"));
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    sneck_lock_free(lock);
}

static void a_clone_is_of_the_same_kind(void **state)
{
    struct scene *scene = *state;
    sneck_lock *lock = make_held(scene->client), *clone;
    assert_int_equal(sneck_lock_clone(&clone, lock), SNECK_OK);
    assert_int_equal(sneck_lock_acquire(clone, 0), SNECK_BUSY);
    assert_non_null(strstr(sneck_lock_error(clone), "held by pid"));
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    assert_int_equal(sneck_lock_acquire(clone, 0), SNECK_OK);
    assert_true(key_exists(scene->other, "{door}:sneck:writer"));
    assert_int_equal(sneck_lock_release(clone), SNECK_OK);
    sneck_lock_free(clone);
    sneck_lock_free(lock);
    assert_nothing_is_left(scene);
}

static void nobody_is_known_to_wait(void **state)
{
    struct scene *scene = *state;
    sneck_lock *lock = make_held(scene->client);
    sneck_waiter *list;
    size_t count = 1;
    assert_int_equal(sneck_lock_waiters(&list, &count, lock), SNECK_OK);
    assert_int_equal(count, 0);
    sneck_waiters_free(list);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    sneck_lock_free(lock);
}

static void a_time_of_another_is_told(void **state)
{
    struct scene *scene = *state;
    sneck_lock *lock = make_held(scene->client);
    DO(scene->other, "GETSET", "door", "4102444800");
    assert_int_equal(sneck_lock_release(lock), SNECK_NOT_OWNER);
    assert_non_null(strstr(sneck_lock_error(lock), "another client has written a time over ours"));
    sneck_lock_free(lock);
}

static void an_extend_tells_it_too_and_the_release_behind_it(void **state)
{
    static const char moved[] = "or another client has written a time over ours";
    struct scene *scene = *state;
    sneck_lock *lock = make_held(scene->client);
    DO(scene->other, "GETSET", "door", "4102444800");
    assert_int_equal(sneck_lock_extend(lock, 0), SNECK_NOT_OWNER);
    assert_non_null(strstr(sneck_lock_error(lock), moved));
    assert_int_equal(sneck_lock_release(lock), SNECK_NOT_OWNER);
    assert_non_null(strstr(sneck_lock_error(lock), moved));
    DO(scene->other, "SET", "door", "1234567890");
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    DO(scene->other, "DEL", "door");
    assert_int_equal(sneck_lock_extend(lock, 0), SNECK_NOT_OWNER);
    assert_null(strstr(sneck_lock_error(lock), moved));
    assert_int_equal(sneck_lock_release(lock), SNECK_NOT_OWNER);
    assert_null(strstr(sneck_lock_error(lock), moved));
    sneck_lock_free(lock);
}

static void what_is_no_time_is_told(void **state)
{
    static const char no_time[] = "its key holds no time", never[] = "it may never end";
    struct scene *scene = *state;
    sneck_lock *lock;
    assert_int_equal(make(&lock, scene->client, NULL, NULL), SNECK_OK);
    DO(scene->other, "SETNX", "door", "1");
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_BUSY);
    assert_non_null(strstr(sneck_lock_error(lock), no_time));
    assert_non_null(strstr(sneck_lock_error(lock), never));
    assert_int_equal(sneck_lock_acquire(lock, 60), SNECK_TIMEOUT);
    assert_non_null(strstr(sneck_lock_error(lock), no_time));
    assert_non_null(strstr(sneck_lock_error(lock), never));
    DO(scene->other, "SET", "door", "1234567890123456"); /* microseconds */
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_BUSY);
    assert_non_null(strstr(sneck_lock_error(lock), no_time));
    DO(scene->other, "SET", "door", "4102444800");
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_BUSY);
    assert_null(strstr(sneck_lock_error(lock), no_time));
    sneck_lock_free(lock);
}

static void taken_away_by_force_nothing_is_left(void **state)
{
    struct scene *scene = *state;
    sneck_lock *lock = make_held(scene->client);
    bool held;
    assert_int_equal(sneck_lock_force_release(&held, lock), SNECK_OK);
    assert_true(held);
    assert_int_equal(sneck_lock_release(lock), SNECK_NOT_OWNER);
    assert_nothing_is_left(scene);
    DO(scene->other, "SET", "door", "1234567890");
    assert_int_equal(sneck_lock_force_release(&held, lock), SNECK_OK);
    assert_false(held);
    assert_value(scene->other, "door", "1234567890");
    sneck_lock_free(lock);
}

static void a_cancelled_acquire_leaves_nothing(void **state)
{
    struct scene *scene = *state;
    sneck_lock *lock;
    sneck_op *op;
    assert_int_equal(make(&lock, scene->client, NULL, NULL), SNECK_OK);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, scene->link, LONG_MS), SNECK_OK);
    sneck_op_cancel(op);
    assert_int_equal(sneck_op_status(op), SNECK_INTERRUPTED);
    sneck_op_free(op);
    settle(scene->client, scene->link);
    assert_nothing_is_left(scene);
    sneck_lock_free(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fair_and_fence_are_refused, set_up_free, tear_down),
        cmocka_unit_test_setup_teardown(a_unit_that_is_none_is_refused, set_up_free, tear_down),
        cmocka_unit_test_setup_teardown(it_cannot_be_a_guard, set_up_free, tear_down),
        cmocka_unit_test_setup_teardown(a_clone_is_of_the_same_kind, set_up_free, tear_down),
        cmocka_unit_test_setup_teardown(nobody_is_known_to_wait, set_up_free, tear_down),
        cmocka_unit_test_setup_teardown(try_lock_and_its_release_leave_the_servers_word,
                                        set_up_free, tear_down),
        cmocka_unit_test_setup_teardown(a_time_of_another_is_told, set_up_free, tear_down),
        cmocka_unit_test_setup_teardown(an_extend_tells_it_too_and_the_release_behind_it,
                                        set_up_free, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_time_is_told, set_up_free, tear_down),
        cmocka_unit_test_setup_teardown(taken_away_by_force_nothing_is_left, set_up_free,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_cancelled_acquire_leaves_nothing, set_up_free, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
