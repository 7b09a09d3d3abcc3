/* Renewal: held locks stay held, and no others; who loses one is told. */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TTL_MS 600
#define MANY 10000

static sneck_lock *new_renewed(sneck_client *client, const char *name, int64_t ttl_ms)
{
    sneck_lock *lock = NULL;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.ttl_ms = ttl_ms;
    options.renew = true;
    assert_int_equal(sneck_lock_new(&lock, client, name, strlen(name), &options, NULL), SNECK_OK);
    return lock;
}

static sneck_lock *hold(sneck_client *client, const char *name, int64_t ttl_ms)
{
    sneck_lock *lock = new_renewed(client, name, ttl_ms);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    return lock;
}

/* Renewals that found their lock, since the server's statistics were reset. */
static int64_t renewals(sneck_client *client)
{
    return calls_of(client, "pexpire");
}

/* A lock of another client is the clock: waits until it was renewed so often. */
static void let_pass(sneck_client *client, int thirds)
{
    sneck_client *other = new_client();
    sneck_lock *lock = hold(other, "clock", TTL_MS);
    DO(client, "CONFIG", "RESETSTAT");
    UNTIL(renewals(client) >= thirds);
    sneck_client_free(other); /* ends its renewal */
    sneck_lock_free(lock);
    DO(client, "DEL", "clock");
}

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
        DO(other, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
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
        locks[i] = hold(client, name, 9000);
    }
    UNTIL(renewals(other) >= 4 * MANY);
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

static void count_loss(sneck_lock *lock, void *data)
{
    (void)lock;
    atomic_fetch_add((atomic_int *)data, 1);
}

static sneck_lock *hold_told(sneck_client *client, const char *name, int64_t ttl_ms,
                             sneck_lost *on_lost, void *data)
{
    sneck_lock *lock = NULL;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.ttl_ms = ttl_ms;
    options.renew = true;
    options.on_lost = on_lost;
    options.on_lost_data = data;
    assert_int_equal(sneck_lock_new(&lock, client, name, strlen(name), &options, NULL), SNECK_OK);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    return lock;
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

/* ------------------------------------------------------------------------ losses */

static void a_deleted_lock_is_found_lost_by_its_next_renewal(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    atomic_int losses = 0;
    sneck_lock *lock = hold_told(client, "door", TTL_MS, count_loss, &losses);
    DO(other, "DEL", "door");
    UNTIL(losses == 1);
    assert_int_equal(calls_of(other, "evalsha") - renewals(other), 1);
    assert_int_equal(sneck_lock_lease(lock), SNECK_LEASE_LOST);
    assert_int_equal(sneck_lock_remaining_ms(lock), 0);
    assert_int_equal(sneck_lock_release(lock), SNECK_NOT_OWNER);
    let_pass(other, 5);
    assert_int_equal(losses, 1);
    sneck_lock_free(lock);
    sneck_client_free(client);
    sneck_client_free(other);
}

static void a_lock_that_another_took_is_lost_and_left_alone(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    atomic_int losses = 0;
    sneck_lock *lock = hold_told(client, "door", TTL_MS, count_loss, &losses);
    DO(other, "SET", "door", "theirs");
    UNTIL(losses == 1);
    assert_value(other, "door", "theirs");
    assert_int_equal(COMMAND_INTEGER(other, "PTTL", "door"), -1);
    sneck_stats stats;
    sneck_client_stats(&stats, client);
    assert_int_equal(stats.losses, 1);
    sneck_lock_free(lock);
    sneck_client_free(client);
    sneck_client_free(other);
}

static void a_loss_that_an_extend_finds_is_told(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    atomic_int losses = 0;
    sneck_lock *lock = hold_told(client, "door", 600000, count_loss, &losses);
    DO(client, "DEL", "door");
    assert_int_equal(sneck_lock_extend(lock, 0), SNECK_NOT_OWNER);
    UNTIL(losses == 1); /* not after a third of ten minutes */
    sneck_lock_free(lock);
    sneck_client_free(client);
}

/* ------------------------------------------------- calling back from within on_lost */

struct callback {
    atomic_int calls, statuses;
    sneck_client *client, *other;
    sneck_lock *lock;
};

static void lose(struct callback *c, sneck_lost *on_lost)
{
    *c = (struct callback){.client = new_client(), .other = new_client()};
    c->lock = hold_told(c->client, "door", TTL_MS, on_lost, c);
    DO(c->other, "DEL", "door");
    UNTIL(c->calls == 1);
}

static void release_in_it(sneck_lock *lock, void *data)
{
    struct callback *c = data;
    c->statuses = sneck_lock_release(lock);
    c->calls++;
}

static void acquire_in_it(sneck_lock *lock, void *data)
{
    struct callback *c = data;
    if (c->calls == 0)
        c->statuses = sneck_lock_acquire(lock, 0);
    c->calls++;
}

static void free_in_it(sneck_lock *lock, void *data)
{
    struct callback *c = data;
    sneck_lock_free(lock);
    c->calls++;
}

static void free_all_in_it(sneck_lock *lock, void *data)
{
    struct callback *c = data;
    sneck_lock_free(lock);
    sneck_client_free(c->client);
    c->calls++;
}

static void close_in_it(sneck_lock *lock, void *data)
{
    struct callback *c = data;
    sneck_client_close(c->client);
    c->statuses = sneck_lock_acquire(lock, 0);
    c->calls++;
}

static void on_lost_may_release(void **state)
{
    (void)state;
    struct callback c;
    lose(&c, release_in_it);
    assert_int_equal(c.statuses, SNECK_NOT_OWNER);
    sneck_lock_free(c.lock);
    sneck_client_free(c.client);
    sneck_client_free(c.other);
}

static void on_lost_may_acquire_again_and_that_is_renewed(void **state)
{
    (void)state;
    struct callback c;
    lose(&c, acquire_in_it);
    assert_int_equal(c.statuses, SNECK_OK);
    int64_t before = renewals(c.other);
    UNTIL(renewals(c.other) >= before + 4);
    assert_int_equal(sneck_lock_lease(c.lock), SNECK_LEASE_HELD);
    DO(c.other, "DEL", "door");
    UNTIL(c.calls == 2);
    sneck_lock_free(c.lock);
    sneck_client_free(c.client);
    sneck_client_free(c.other);
}

static void on_lost_may_free_the_lock(void **state)
{
    (void)state;
    struct callback c;
    lose(&c, free_in_it);
    sneck_lock *lock = hold(c.client, "door", TTL_MS); /* others are still renewed */
    int64_t before = renewals(c.other);
    UNTIL(renewals(c.other) >= before + 4);
    sneck_lock_free(lock);
    sneck_client_free(c.client);
    sneck_client_free(c.other);
}

static void on_lost_may_free_lock_and_client(void **state)
{
    (void)state;
    struct callback c;
    lose(&c, free_all_in_it);
    sneck_client_free(c.other);
}

static void on_lost_may_close_the_client(void **state)
{
    (void)state;
    struct callback c;
    lose(&c, close_in_it);
    assert_int_equal(c.statuses, SNECK_INVALID);
    assert_int_equal(sneck_lock_renew(c.lock, true), SNECK_NOT_OWNER);
    sneck_client_close(c.client);
    sneck_lock_free(c.lock);
    sneck_client_free(c.client);
    sneck_client_free(c.other);
}

/* --------------------------------------------------- waiting for a callback to end */

struct slow {
    atomic_int entered, waiters, over, too_soon;
    sneck_lock *lock;
    sneck_client *client;
};

static void run_slowly(sneck_lock *lock, void *data)
{
    (void)lock;
    struct slow *s = data;
    s->entered = 1;
    while (s->waiters == 0)
        pause_ms(1);
    pause_ms(50); /* those who should wait, but do not, are through by now */
    s->over = 1;
}

static void *free_it(void *data)
{
    struct slow *s = data;
    s->waiters++;
    sneck_lock_free(s->lock);
    s->too_soon += !s->over;
    return NULL;
}

static void *close_it(void *data)
{
    struct slow *s = data;
    s->waiters++;
    sneck_client_close(s->client);
    s->too_soon += !s->over;
    return NULL;
}

static void start_slow(struct slow *s)
{
    *s = (struct slow){.client = new_client()};
    s->lock = hold_told(s->client, "door", TTL_MS, run_slowly, s);
    DO(s->client, "DEL", "door");
    UNTIL(s->entered);
}

static void freeing_waits_for_a_callback_that_runs(void **state)
{
    (void)state;
    struct slow s;
    start_slow(&s);
    free_it(&s);
    assert_int_equal(s.too_soon, 0);
    sneck_client_free(s.client);
}

static void all_who_close_wait_for_a_callback_that_runs(void **state)
{
    (void)state;
    struct slow s;
    pthread_t threads[3];
    start_slow(&s);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, close_it, &s), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(s.too_soon, 0);
    sneck_lock_free(s.lock);
    sneck_client_free(s.client);
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
    assert_int_equal(finish(link, op), SNECK_INVALID);
    sneck_op_free(op);
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
        cmocka_unit_test_setup(a_deleted_lock_is_found_lost_by_its_next_renewal, empty_server),
        cmocka_unit_test_setup(a_lock_that_another_took_is_lost_and_left_alone, empty_server),
        cmocka_unit_test_setup(a_loss_that_an_extend_finds_is_told, empty_server),
        cmocka_unit_test_setup(on_lost_may_release, empty_server),
        cmocka_unit_test_setup(on_lost_may_acquire_again_and_that_is_renewed, empty_server),
        cmocka_unit_test_setup(on_lost_may_free_the_lock, empty_server),
        cmocka_unit_test_setup(on_lost_may_free_lock_and_client, empty_server),
        cmocka_unit_test_setup(on_lost_may_close_the_client, empty_server),
        cmocka_unit_test_setup(freeing_waits_for_a_callback_that_runs, empty_server),
        cmocka_unit_test_setup(all_who_close_wait_for_a_callback_that_runs, empty_server),
        cmocka_unit_test_setup(releases_that_meet_renewals_do_not_mix, empty_server),
        cmocka_unit_test_setup(a_client_is_closed_with_locks_held_and_renewed, empty_server),
        cmocka_unit_test_setup(an_acquire_that_the_close_overtakes_holds_nothing, empty_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
