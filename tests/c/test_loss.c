/* A lock that is lost while it is renewed: who held it is told, and may do anything then. */
#include "renewed.h"

#include <pthread.h>
#include <stdatomic.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
