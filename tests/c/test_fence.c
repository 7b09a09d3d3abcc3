/* Fences: each acquire's is greater than all before it, whatever becomes of the counter. */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Under a sanitizer or valgrind a tenth of it must do. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ACQUISITIONS 10000
#else
#define ACQUISITIONS 100000
#endif
#define THREADS 4
#define COUNTER "{door}:sneck:fence"

static sneck_lock *new_fenced(sneck_client *client, int64_t ttl_ms)
{
    sneck_lock *lock = NULL;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.ttl_ms = ttl_ms;
    options.fence = true;
    if (sneck_lock_new(&lock, client, "door", 4, &options, NULL) != SNECK_OK)
        return NULL;
    return lock;
}

static int64_t take_fence(sneck_lock *lock)
{
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    int64_t fence = sneck_lock_fence(lock);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    return fence;
}

static void a_lock_has_a_fence_only_where_asked_and_while_held(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *bare = new_lock(client, "door", 60000), *lock = new_fenced(client, 60000);
    sneck_lock *clone = NULL;
    assert_int_equal(sneck_lock_acquire(bare, 0), SNECK_OK);
    assert_int_equal(sneck_lock_fence(bare), 0);
    assert_int_equal(sneck_lock_release(bare), SNECK_OK);
    assert_false(key_exists(client, COUNTER));
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    assert_true(sneck_lock_fence(lock) > 0);
    assert_int_equal(sneck_lock_clone(&clone, lock), SNECK_OK);
    assert_int_equal(sneck_lock_fence(clone), 0);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    assert_int_equal(sneck_lock_fence(lock), 0);
    assert_int_equal(sneck_lock_acquire(clone, 0), SNECK_OK);
    assert_true(sneck_lock_fence(clone) > 0); /* the options are the same */
    sneck_lock_free(bare);
    sneck_lock_free(lock);
    sneck_lock_free(clone);
    sneck_client_free(client);
}

static void a_fence_stays_through_extends_and_a_loss(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = new_fenced(client, 60000);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    int64_t fence = sneck_lock_fence(lock);
    assert_int_equal(sneck_lock_extend(lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_fence(lock), fence);
    DO(client, "DEL", "door");
    assert_int_equal(sneck_lock_extend(lock, 0), SNECK_NOT_OWNER);
    assert_int_equal(sneck_lock_fence(lock), fence);
    assert_true(take_fence(lock) > fence);
    sneck_lock_free(lock);
    sneck_client_free(client);
}

static void the_counter_expires_and_may_be_ahead_of_the_clock(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = new_fenced(client, 60000);
    int64_t fence = take_fence(lock);
    assert_in_range(COMMAND_INTEGER(client, "PTTL", COUNTER), 86000000, 86400000);
    char ahead[32];
    snprintf(ahead, sizeof ahead, "%lld", (long long)fence + 3600000000LL);
    DO(client, "SET", COUNTER, ahead);
    assert_int_equal(take_fence(lock), fence + 3600000001LL);
    assert_int_equal(take_fence(lock), fence + 3600000002LL);
    sneck_lock_free(lock);
    sneck_client_free(client);
}

static void a_counter_that_is_none_refuses_the_lock(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = new_fenced(client, 60000);
    DO(client, "RPUSH", COUNTER, "precious");
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_SERVER);
    assert_string_equal(sneck_lock_server_code(lock), "WRONGTYPE");
    assert_false(key_exists(client, "door"));
    assert_int_equal(COMMAND_INTEGER(client, "LLEN", COUNTER), 1);
    sneck_lock_free(lock);
    sneck_client_free(client);
}

/* A waiter that wants a fence is given the lock by a holder that wants none, or that does. */
static void hand_over(bool releaser_fenced)
{
    sneck_client *client = new_client();
    sneck_link *link = new_link(client);
    sneck_lock *first = releaser_fenced ? new_fenced(client, 60000)
                                        : new_lock(client, "door", 60000);
    sneck_lock *second = new_fenced(client, 60000), *bare = new_lock(client, "door", 60000);
    sneck_waiter *waiters = NULL;
    sneck_op *op = NULL;
    size_t count = 0;
    int64_t before = take_fence(second);
    assert_int_equal(sneck_lock_acquire(first, 0), SNECK_OK);
    before = sneck_lock_fence(first) ? sneck_lock_fence(first) : before;
    assert_int_equal(sneck_lock_acquire_start(&op, second, link, 60000), SNECK_OK);
    while (count == 0) {
        sneck_link_step(link);
        sneck_waiters_free(waiters);
        assert_int_equal(sneck_lock_waiters(&waiters, &count, first), SNECK_OK);
    }
    sneck_waiters_free(waiters);
    assert_int_equal(sneck_lock_release(first), SNECK_OK);
    assert_int_equal(finish(link, op), SNECK_OK);
    assert_true(sneck_lock_fence(second) > before);
    sneck_op_free(op);
    /* and the other way round: a waiter without, a releaser with */
    count = 0;
    assert_int_equal(sneck_lock_acquire_start(&op, bare, link, 60000), SNECK_OK);
    while (count == 0) {
        sneck_link_step(link);
        assert_int_equal(sneck_lock_waiters(&waiters, &count, first), SNECK_OK);
        sneck_waiters_free(waiters);
    }
    assert_int_equal(sneck_lock_release(second), SNECK_OK);
    assert_int_equal(finish(link, op), SNECK_OK);
    assert_int_equal(sneck_lock_fence(bare), 0);
    sneck_op_free(op);
    sneck_lock_free(first);
    sneck_lock_free(second);
    sneck_lock_free(bare);
    sneck_link_free(link);
    sneck_client_free(client);
}

static void a_waiter_gets_its_fence_with_the_grant(void **state)
{
    (void)state;
    hand_over(true);
}

static void a_waiter_makes_its_fence_itself_where_the_releaser_has_none(void **state)
{
    (void)state;
    hand_over(false);
}

/* --------------------------------------------------------------- very many of them */

struct taker {
    pthread_t thread;
    int number;
    int64_t *last;       /* guarded by the lock alone */
    atomic_bool passed;
};

/* What an operator or a restart might do to the counter and the scripts. */
static bool disturb(sneck_client *client, int i)
{
    const char *del[] = {"DEL", COUNTER}, *flush[] = {"SCRIPT", "FLUSH"};
    const char *const *words = i % 2 ? del : flush;
    sneck_reply *reply = NULL;
    bool ok = sneck_execute(&reply, client, 2, (const void *const *)words,
                            (const size_t[]){strlen(words[0]), strlen(words[1])}) == SNECK_OK;
    sneck_reply_free(reply);
    return ok;
}

static bool take_one(sneck_lock *lock, int64_t *last)
{
    bool greater = sneck_lock_acquire(lock, 60000) == SNECK_OK &&
                   sneck_lock_fence(lock) > __atomic_load_n(last, __ATOMIC_RELAXED);
    __atomic_store_n(last, sneck_lock_fence(lock), __ATOMIC_RELAXED);
    return sneck_lock_release(lock) == SNECK_OK && greater;
}

/* Threads must not use cmocka's assertions, which jump; a client for each. */
static void *take_many(void *data)
{
    struct taker *t = data;
    sneck_client *client = NULL;
    sneck_lock *lock = NULL;
    if (sneck_client_new(&client, server_url(), NULL, NULL) == SNECK_OK)
        lock = new_fenced(client, 60000);
    bool passed = lock != NULL;
    for (int i = 0; passed && i < ACQUISITIONS / THREADS; i++)
        passed = take_one(lock, t->last) && (i % 500 != t->number || disturb(client, i / 500));
    sneck_lock_free(lock);
    sneck_client_free(client);
    t->passed = passed;
    return NULL;
}

static void fences_increase_over_very_many_acquires(void **state)
{
    (void)state;
    struct taker takers[THREADS];
    int64_t last = 0;
    for (int i = 0; i < THREADS; i++) {
        takers[i] = (struct taker){.number = i, .last = &last};
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_many, &takers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(takers[i].thread, NULL);
        assert_true(takers[i].passed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_lock_has_a_fence_only_where_asked_and_while_held, empty_server),
        cmocka_unit_test_setup(a_fence_stays_through_extends_and_a_loss, empty_server),
        cmocka_unit_test_setup(the_counter_expires_and_may_be_ahead_of_the_clock, empty_server),
        cmocka_unit_test_setup(a_counter_that_is_none_refuses_the_lock, empty_server),
        cmocka_unit_test_setup(a_waiter_gets_its_fence_with_the_grant, empty_server),
        cmocka_unit_test_setup(a_waiter_makes_its_fence_itself_where_the_releaser_has_none,
                               empty_server),
        cmocka_unit_test_setup(fences_increase_over_very_many_acquires, empty_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
