/* Renewal while the server stalls, refuses, or restarts; with a server of the test's own. */
#include "own_server.h"

#include <signal.h>
#include <stdatomic.h>

#define SHORT_MS 2000
#define LONG_MS 6000 /* three attempts before the lease ends */

struct holding {
    struct own_server server;
    sneck_client *client;
    sneck_lock *lock;
    atomic_int losses;
};

static void count_loss(sneck_lock *lock, void *data)
{
    (void)lock;
    atomic_fetch_add((atomic_int *)data, 1);
}

static void begin(struct holding *h, bool persistent, int64_t ttl_ms)
{
    sneck_client_options client_options = SNECK_CLIENT_OPTIONS;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    *h = (struct holding){.server = {.persistent = persistent}};
    client_options.io_timeout_ms = 60000; /* renewal has limits of its own */
    options.ttl_ms = ttl_ms;
    options.renew = options.fence = true;
    options.on_lost = count_loss;
    options.on_lost_data = &h->losses;
    start_server(&h->server);
    assert_int_equal(sneck_client_new(&h->client, h->server.url, &client_options, NULL), SNECK_OK);
    assert_int_equal(sneck_lock_new(&h->lock, h->client, "door", 4, &options, NULL), SNECK_OK);
    assert_int_equal(sneck_lock_acquire(h->lock, 60000), SNECK_OK);
}

static void end(struct holding *h)
{
    sneck_lock_free(h->lock);
    sneck_client_free(h->client);
    remove_server(&h->server);
}

static void is_renewed(struct holding *h)
{
    int64_t before = calls_of(h->client, "pexpire");
    UNTIL(calls_of(h->client, "pexpire") >= before + 3);
    assert_int_equal(sneck_lock_lease(h->lock), SNECK_LEASE_HELD);
}

static void a_server_that_stalls_for_less_than_the_lease_costs_nothing(void **state)
{
    (void)state;
    struct holding h;
    begin(&h, false, LONG_MS);
    signal_server(&h.server, SIGSTOP);
    UNTIL(sneck_lock_lease(h.lock) == SNECK_LEASE_UNCERTAIN);
    assert_true(sneck_lock_remaining_ms(h.lock) > 0);
    signal_server(&h.server, SIGCONT);
    UNTIL(sneck_lock_lease(h.lock) != SNECK_LEASE_UNCERTAIN);
    is_renewed(&h);
    assert_int_equal(h.losses, 0);
    assert_int_equal(sneck_lock_release(h.lock), SNECK_OK);
    end(&h);
}

static void a_server_that_stalls_for_longer_loses_the_lock(void **state)
{
    (void)state;
    struct holding h;
    begin(&h, false, SHORT_MS);
    signal_server(&h.server, SIGSTOP);
    UNTIL(h.losses == 1);
    assert_int_equal(sneck_lock_lease(h.lock), SNECK_LEASE_LOST);
    assert_int_equal(sneck_lock_remaining_ms(h.lock), 0);
    signal_server(&h.server, SIGCONT);
    sneck_lock_release(h.lock); /* the key may have outlived the stall */
    assert_int_equal(sneck_lock_acquire(h.lock, 0), SNECK_OK);
    is_renewed(&h);
    assert_int_equal(h.losses, 1);
    end(&h);
}

static void a_restart_that_keeps_the_data_costs_nothing(void **state)
{
    (void)state;
    struct holding h;
    begin(&h, true, LONG_MS);
    kill_server(&h.server);
    UNTIL(sneck_lock_lease(h.lock) == SNECK_LEASE_UNCERTAIN);
    start_server(&h.server);
    UNTIL(sneck_lock_lease(h.lock) != SNECK_LEASE_UNCERTAIN);
    is_renewed(&h);
    assert_int_equal(h.losses, 0);
    assert_int_equal(sneck_lock_release(h.lock), SNECK_OK);
    end(&h);
}

static void a_restart_that_forgets_loses_the_lock_and_its_fence_is_passed(void **state)
{
    (void)state;
    struct holding h;
    begin(&h, false, LONG_MS);
    int64_t fence = sneck_lock_fence(h.lock);
    kill_server(&h.server);
    start_server(&h.server);
    UNTIL(h.losses == 1);
    assert_int_equal(sneck_lock_lease(h.lock), SNECK_LEASE_LOST);
    assert_int_equal(sneck_lock_fence(h.lock), fence);
    assert_int_equal(sneck_lock_release(h.lock), SNECK_NOT_OWNER);
    assert_int_equal(sneck_lock_acquire(h.lock, 0), SNECK_OK);
    assert_true(sneck_lock_fence(h.lock) > fence);
    end(&h);
}

static void an_outage_ends_the_lease_but_not_renewal(void **state)
{
    (void)state;
    struct holding h;
    begin(&h, false, SHORT_MS);
    kill_server(&h.server);
    UNTIL(h.losses == 1);
    assert_int_equal(sneck_lock_lease(h.lock), SNECK_LEASE_LOST);
    assert_int_equal(sneck_lock_release(h.lock), SNECK_CONNECTION);
    start_server(&h.server);
    assert_int_equal(sneck_lock_acquire(h.lock, 60000), SNECK_OK);
    is_renewed(&h);
    assert_int_equal(h.losses, 1);
    end(&h);
}

static void a_client_closes_at_once_while_the_server_stalls(void **state)
{
    (void)state;
    struct holding h;
    begin(&h, false, LONG_MS);
    signal_server(&h.server, SIGSTOP);
    UNTIL(sneck_lock_lease(h.lock) == SNECK_LEASE_UNCERTAIN);
    sneck_client_close(h.client);
    assert_int_equal(h.losses, 0);
    end(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_stalls_for_less_than_the_lease_costs_nothing),
        cmocka_unit_test(a_server_that_stalls_for_longer_loses_the_lock),
        cmocka_unit_test(a_restart_that_keeps_the_data_costs_nothing),
        cmocka_unit_test(a_restart_that_forgets_loses_the_lock_and_its_fence_is_passed),
        cmocka_unit_test(an_outage_ends_the_lease_but_not_renewal),
        cmocka_unit_test(a_client_closes_at_once_while_the_server_stalls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
