/* Renewal: held locks stay held, and no others. */
#include "renewed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define MANY 10000

/* ----------------------------------------------------------------- staying held */

static void a_renewed_lock_outlives_its_ttl(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    sneck_lock *lock = hold(client, "door", TTL_MS);
    UNTIL(renewals(other) >= 7);
    assert_int_equal(sneck_lock_lease(lock), SNECK_LEASE_HELD);
    assert_true(sneck_lock_remaining_ms(lock) > 0);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    assert_int_equal(sneck_lock_lease(lock), SNECK_LEASE_NONE);
    sneck_lock_free(lock);
    sneck_client_free(client);
    sneck_client_free(other);
}

static void a_lock_is_renewed_only_where_asked(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = new_lock(client, "door", TTL_MS);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    UNTIL(!key_exists(client, "door"));
    assert_int_equal(renewals(client), 0);
    UNTIL(sneck_lock_lease(lock) == SNECK_LEASE_LOST);
    sneck_lock_free(lock);
    sneck_client_free(client);
}

static void renewal_is_switched_on_and_off(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = new_lock(client, "door", TTL_MS);
    assert_int_equal(sneck_lock_renew(lock, true), SNECK_NOT_OWNER);
    assert_non_null(strstr(sneck_lock_error(lock), "door"));
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_renew(lock, true), SNECK_OK);
    UNTIL(renewals(client) >= 4);
    assert_int_equal(sneck_lock_lease(lock), SNECK_LEASE_HELD);
    assert_int_equal(sneck_lock_renew(lock, false), SNECK_OK);
    UNTIL(!key_exists(client, "door"));
    assert_int_equal(sneck_lock_renew(lock, true), SNECK_NOT_OWNER);
    sneck_lock_free(lock);
    sneck_client_free(client);
}

static void a_bare_acquire_is_not_renewed_by_what_was_said_of_an_earlier_lease(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = new_lock(client, "door", TTL_MS);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_renew(lock, true), SNECK_OK);
    DO(client, "DEL", "door");
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    UNTIL(!key_exists(client, "door"));
    sneck_lock_free(lock);
    sneck_client_free(client);
}

static void renewal_survives_the_loss_of_its_connection(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    sneck_lock *lock = hold(client, "door", 6000);
    sneck_lock *quick = hold(client, "window", TTL_MS);
    for (int i = 1; i <= 3; i++) {
        int64_t before = renewals(other);
        UNTIL(renewals(other) > before);
        kill_others(other);
    }
    int64_t before = renewals(other);
    UNTIL(renewals(other) >= before + 4);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    assert_int_equal(sneck_lock_release(quick), SNECK_OK);
    sneck_lock_free(lock);
    sneck_lock_free(quick);
    sneck_client_free(client);
    sneck_client_free(other);
}

static void ten_thousand_locks_are_renewed_over_one_connection(void **state)
{
    (void)state;
    static sneck_lock *locks[MANY];
    sneck_client *client = new_client(), *other = new_client();
    char name[16];
    DO(other, "PING");
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "door%d", i);
        locks[i] = hold(client, name, 18000);
    }
    UNTIL(renewals(other) >= 2 * MANY);
    assert_int_equal(COMMAND_INTEGER(other, "DBSIZE"), MANY);
    assert_int_equal(server_number(other, "stats", "total_connections_received"), 3);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(sneck_lock_lease(locks[i]), SNECK_LEASE_HELD);
        sneck_lock_free(locks[i]);
    }
    sneck_client_free(client);
    sneck_client_free(other);
}

/* ---------------------------------------------------------------------- its end */

static void nothing_is_renewed_once_released_or_freed(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    sneck_lock *lock = hold(client, "door", TTL_MS), *freed = hold(client, "window", TTL_MS);
    UNTIL(renewals(other) >= 4);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    sneck_lock_free(freed);
    let_pass(other, 5);
    assert_int_equal(calls_of(other, "evalsha"), renewals(other));
    assert_false(key_exists(other, "window"));
    sneck_lock_free(lock);
    sneck_client_free(client);
    sneck_client_free(other);
}

/* Calls interrupted anywhere: what the lock's answers say of it decides what is done. */
static void interrupt_one(sneck_lock *lock, sneck_link *link, unsigned random)
{
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, random % 3 ? 50 : 0), SNECK_OK);
    for (unsigned i = random % 7; i > 0 && sneck_op_status(op) == SNECK_PENDING; i--)
        sneck_link_step(link);
    sneck_op_cancel(op);
    sneck_op_free(op);
    if (sneck_lock_token(lock, NULL, 0) == 0)
        return;
    assert_int_equal(sneck_lock_release_start(&op, lock, link), SNECK_OK);
    for (unsigned i = random % 5; i > 0 && sneck_op_status(op) == SNECK_PENDING; i--)
        sneck_link_step(link);
    sneck_op_cancel(op);
    sneck_op_free(op);
}

static void a_thousand_interrupted_calls_leave_no_renewal(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    sneck_link *link = new_link(client);
    sneck_lock *lock = new_renewed(client, "door", TTL_MS);
    unsigned random = 1;
    for (int i = 0; i < 1000; i++) {
        random = random * 1103515245 + 12345;
        interrupt_one(lock, link, random >> 16);
    }
    settle(client, link);
    let_pass(other, 5);
    assert_int_equal(calls_of(other, "evalsha"), renewals(other));
    assert_int_equal(calls_of(other, "eval"), 0);
    assert_false(key_exists(other, "door"));
    sneck_link_free(link);
    sneck_lock_free(lock);
    sneck_client_free(client);
    sneck_client_free(other);
}

static void max_hold_ends_renewal(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = NULL;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    atomic_int losses = 0;
    options.ttl_ms = TTL_MS;
    options.renew = true;
    options.max_hold_ms = TTL_MS;
    options.on_lost = count_loss;
    options.on_lost_data = &losses;
    assert_int_equal(sneck_lock_new(&lock, client, "door", 4, &options, NULL), SNECK_OK);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    UNTIL(!key_exists(client, "door"));
    UNTIL(losses == 1);
    assert_int_equal(sneck_lock_lease(lock), SNECK_LEASE_LOST);
    assert_true(renewals(client) >= 1 && renewals(client) <= 3);
    sneck_lock_free(lock);
    options.max_hold_ms = 0;
    assert_int_equal(sneck_lock_new(&lock, client, "door", 4, &options, NULL), SNECK_INVALID);
    sneck_client_free(client);
}

/* ------------------------------------------------------------ what extends do to it */

static void a_longer_lease_is_renewed_later(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    sneck_lock *lock = hold(client, "door", TTL_MS);
    assert_int_equal(sneck_lock_extend(lock, 600000), SNECK_OK);
    let_pass(other, 5);
    assert_true(COMMAND_INTEGER(other, "PTTL", "door") > 300000);
    assert_true(sneck_lock_remaining_ms(lock) > 300000);
    sneck_lock_free(lock);
    sneck_client_free(client);
    sneck_client_free(other);
}

static void a_shorter_lease_is_renewed_at_once(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    sneck_lock *lock = hold(client, "door", 600000);
    assert_int_equal(sneck_lock_extend(lock, 60000), SNECK_OK);
    UNTIL(sneck_lock_remaining_ms(lock) > 300000);
    assert_true(COMMAND_INTEGER(other, "PTTL", "door") > 300000);
    sneck_lock_free(lock);
    sneck_client_free(client);
    sneck_client_free(other);
}

static void an_adopted_lock_is_renewed_when_asked(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    sneck_lock *mine = NULL, *not_mine = NULL;
    options.ttl_ms = TTL_MS;
    DO(client, "SET", "door", "token", "PX", "60000");
    assert_int_equal(sneck_lock_adopt(&mine, client, "door", 4, "token", 5, &options, NULL),
                     SNECK_OK);
    assert_int_equal(sneck_lock_adopt(&not_mine, client, "door", 4, "other", 5, &options, NULL),
                     SNECK_OK);
    assert_int_equal(sneck_lock_lease(mine), SNECK_LEASE_UNCERTAIN);
    assert_int_equal(sneck_lock_renew(mine, true), SNECK_OK);
    assert_int_equal(sneck_lock_renew(not_mine, true), SNECK_OK);
    UNTIL(sneck_lock_lease(mine) == SNECK_LEASE_HELD);
    UNTIL(sneck_lock_lease(not_mine) == SNECK_LEASE_LOST);
    UNTIL(renewals(client) >= 4);
    assert_int_equal(sneck_lock_release(mine), SNECK_OK);
    sneck_lock_free(mine);
    sneck_lock_free(not_mine);
    sneck_client_free(client);
}

/* ----------------------------------------------------------- with others at work */

struct cycler {
    pthread_t thread;
    sneck_client *client;
    int number;
    atomic_bool passed;
};

/* A ttl so short that a renewal is nearly always under way when it is released. */
static void *cycle(void *data)
{
    struct cycler *c = data;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    sneck_lock *lock = NULL;
    char name[16];
    int statuses = 0;
    options.ttl_ms = 30000;
    options.renew = true;
    snprintf(name, sizeof name, "door%d", c->number % 2);
    if (sneck_lock_new(&lock, c->client, name, strlen(name), &options, NULL) != SNECK_OK)
        return NULL;
    for (int i = 0; i < 150; i++) {
        statuses |= sneck_lock_acquire(lock, 60000);
        sneck_lock_extend(lock, 5000); /* below two thirds: renewed at once */
        statuses |= sneck_lock_release(lock);
    }
    sneck_lock_free(lock);
    c->passed = statuses == SNECK_OK;
    return NULL;
}

static void releases_that_meet_renewals_do_not_mix(void **state)
{
    (void)state;
    struct cycler cyclers[4];
    sneck_client *client = new_client();
    for (int i = 0; i < 4; i++) {
        cyclers[i] = (struct cycler){.client = client, .number = i};
        assert_int_equal(pthread_create(&cyclers[i].thread, NULL, cycle, &cyclers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(cyclers[i].thread, NULL);
        assert_true(cyclers[i].passed);
    }
    assert_int_equal(COMMAND_INTEGER(client, "DBSIZE"), 0);
    sneck_client_free(client);
}

static void a_client_is_closed_with_locks_held_and_renewed(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    sneck_lock *lock = hold(client, "door", TTL_MS);
    sneck_client_close(client);
    assert_int_equal(sneck_lock_renew(lock, true), SNECK_INVALID);
    assert_non_null(strstr(sneck_lock_error(lock), "closed"));
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_INVALID);
    UNTIL(!key_exists(other, "door"));
    sneck_client_free(client);
    sneck_lock_free(lock);
    sneck_client_free(other);
}

static void an_acquire_that_the_close_overtakes_holds_nothing(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    sneck_link *link = new_link(client);
    sneck_lock *lock = new_renewed(client, "door", 60000);
    sneck_op *op = NULL;
    settle(client, link);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, 0), SNECK_OK);
    sneck_client_close(client);
    assert_int_equal(end_op(op), SNECK_INVALID);
    assert_int_equal(sneck_lock_token(lock, NULL, 0), 0);
    for (int i = 0; key_exists(other, "door") && i < 1000; i++)
        sneck_link_step(link); /* what cleans up leaves */
    assert_false(key_exists(other, "door"));
    sneck_lock_free(lock);
    sneck_link_free(link);
    sneck_client_free(client);
    sneck_client_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_renewed_lock_outlives_its_ttl, empty_server),
        cmocka_unit_test_setup(a_lock_is_renewed_only_where_asked, empty_server),
        cmocka_unit_test_setup(renewal_is_switched_on_and_off, empty_server),
        cmocka_unit_test_setup(a_bare_acquire_is_not_renewed_by_what_was_said_of_an_earlier_lease,
                               empty_server),
        cmocka_unit_test_setup(renewal_survives_the_loss_of_its_connection, empty_server),
        cmocka_unit_test_setup(ten_thousand_locks_are_renewed_over_one_connection, empty_server),
        cmocka_unit_test_setup(nothing_is_renewed_once_released_or_freed, empty_server),
        cmocka_unit_test_setup(a_thousand_interrupted_calls_leave_no_renewal, empty_server),
        cmocka_unit_test_setup(max_hold_ends_renewal, empty_server),
        cmocka_unit_test_setup(a_longer_lease_is_renewed_later, empty_server),
        cmocka_unit_test_setup(a_shorter_lease_is_renewed_at_once, empty_server),
        cmocka_unit_test_setup(an_adopted_lock_is_renewed_when_asked, empty_server),
        cmocka_unit_test_setup(releases_that_meet_renewals_do_not_mix, empty_server),
        cmocka_unit_test_setup(a_client_is_closed_with_locks_held_and_renewed, empty_server),
        cmocka_unit_test_setup(an_acquire_that_the_close_overtakes_holds_nothing, empty_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
