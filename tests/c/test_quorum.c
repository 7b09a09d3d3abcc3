/* A lock over five servers, all of which work. */
#include "five.h"

#include <pthread.h>
#include <sneck_legacy.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define LONG_MS 600000

/* --------------------------------------------------------------- what it is made of */

static int make(size_t count, const char *const *urls, char *error)
{
    sneck_client *client = NULL;
    int status = sneck_quorum_new(&client, count, urls, NULL, error);
    if (status == SNECK_OK)
        sneck_client_free(client);
    return status;
}

#define MAKE(error, ...)                                                       \
    make(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),               \
         (const char *const[]){__VA_ARGS__}, error)

static void a_quorum_has_from_1_to_15_servers(void **state)
{
    (void)state;
    const char *urls[16];
    char text[16][40], error[SNECK_ERROR_SIZE];
    for (size_t i = 0; i < 16; i++) {
        snprintf(text[i], sizeof text[i], "redis://10.0.0.%zu", i + 1);
        urls[i] = text[i];
    }
    assert_int_equal(make(0, urls, error), SNECK_INVALID);
    assert_int_equal(make(1, urls, error), SNECK_OK);
    assert_int_equal(make(15, urls, error), SNECK_OK);
    assert_int_equal(make(16, urls, error), SNECK_INVALID);
    assert_string_equal(error, "quorum: it has from 1 to 15 servers");
    assert_int_equal(make(3, NULL, error), SNECK_INVALID);
    assert_int_equal(MAKE(error, "redis://a", NULL), SNECK_INVALID);
    assert_int_equal(MAKE(error, "redis://a", "http://b"), SNECK_INVALID);
    assert_non_null(strstr(error, "redis://"));
}

static void a_server_named_twice_is_refused(void **state)
{
    (void)state;
    char error[SNECK_ERROR_SIZE];
    assert_int_equal(MAKE(error, "redis://a", "redis://b", "redis://:secret@A:6379/3"),
                     SNECK_INVALID);
    assert_non_null(strstr(error, "A:6379"));
    assert_null(strstr(error, "secret"));
    assert_int_equal(MAKE(error, "unix:///a?db=1", "unix:///b", "unix:///a?db=2"), SNECK_INVALID);
    assert_int_equal(MAKE(error, "redis://a:1", "redis://a:2", "redis://b:1", "unix:///a"), SNECK_OK);
}

static void a_client_tells_its_servers(void **state)
{
    struct five *five = *state;
    assert_int_equal(sneck_client_servers(five->client), FIVE);
    assert_int_equal(sneck_client_servers(five->each[0]), 1);
    assert_string_equal(sneck_client_address(five->client, 2), five->servers[2].url + 7);
    assert_string_equal(sneck_client_address(five->each[1], 0), five->servers[1].url + 7);
    assert_null(sneck_client_address(five->client, FIVE));
    assert_null(sneck_client_address(five->each[0], 1));
}

static int no_body(sneck_tx *tx, void *data)
{
    (void)tx;
    (void)data;
    return SNECK_OK;
}

static int no_change(sneck_change *change, const void *old, size_t old_len, void *data)
{
    (void)change;
    (void)old;
    (void)old_len;
    (void)data;
    return SNECK_OK;
}

static void what_needs_one_server_is_refused(void **state)
{
    struct five *five = *state;
    char error[SNECK_ERROR_SIZE];
    sneck_reply *reply = NULL;
    sneck_tx_options guarded = SNECK_TX_OPTIONS;
    sneck_lock_options fair = SNECK_LOCK_OPTIONS;
    sneck_lock *lock = NULL;
    bool matched;
    assert_int_equal(sneck_execute(&reply, five->client, 1, (const void *[]){"PING"},
                                   (size_t[]){4}), SNECK_INVALID);
    assert_non_null(strstr(sneck_client_error(five->client), "make a client of one of them"));
    assert_int_equal(sneck_transact(&reply, five->client, 0, NULL, NULL, NULL, no_body, NULL, error),
                     SNECK_INVALID);
    assert_int_equal(sneck_update(five->client, "door", 4, 0, NULL, no_change, NULL, error),
                     SNECK_INVALID);
    assert_int_equal(sneck_compare_and_set(&matched, five->client, "door", 4, NULL, 0, "v", 1, 0,
                                           NULL, error), SNECK_INVALID);
    assert_int_equal(sneck_try_lock(five->client, "door", 4, "v", 1, LONG_MS, 0, error),
                     SNECK_INVALID);
    assert_non_null(strstr(error, "quorum"));
    assert_int_equal(sneck_release_lock(five->client, "door", 4, "v", 1, error), SNECK_INVALID);
    assert_non_null(strstr(error, "quorum"));
    assert_int_equal(sneck_legacy_lock_new(&lock, five->client, "door", 4, NULL,
                                           SNECK_LEGACY_SECONDS, error), SNECK_INVALID);
    assert_non_null(strstr(error, "quorum"));
    fair.fair = true;
    assert_int_equal(sneck_lock_new(&lock, five->client, "door", 4, &fair, error), SNECK_INVALID);
    assert_int_equal(found_on(five, "door"), 0);
    lock = quorum_lock(five->client, "door", LONG_MS, false);
    guarded.guard = lock;
    assert_int_equal(sneck_transact(&reply, five->each[0], 0, NULL, NULL, &guarded, no_body, NULL,
                                    error), SNECK_INVALID);
    assert_non_null(strstr(error, "quorum"));
    sneck_lock_free(lock);
}

static void a_link_of_another_client_is_refused(void **state)
{
    struct five *five = *state;
    sneck_op *op = NULL;
    sneck_lock *own = quorum_lock(five->client, "door", LONG_MS, false);
    sneck_lock *single = new_lock(five->each[0], "door", LONG_MS);
    sneck_link *link = new_link(five->each[0]), *links = new_link(five->client);
    assert_int_equal(sneck_lock_acquire_start(&op, own, link, 0), SNECK_OK);
    assert_int_equal(sneck_op_status(op), SNECK_INVALID);
    assert_string_equal(sneck_op_member_error(op, 0), "");
    sneck_op_free(op);
    assert_int_equal(sneck_lock_acquire_start(&op, single, links, 0), SNECK_OK);
    assert_int_equal(sneck_op_status(op), SNECK_INVALID);
    sneck_op_free(op);
    sneck_link_free(link);
    sneck_link_free(links);
    sneck_lock_free(own);
    sneck_lock_free(single);
}

/* -------------------------------------------------------------- acquire and release */

static void it_has_one_token_on_all_servers_and_leaves_none(void **state)
{
    struct five *five = *state;
    char token[256] = "";
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    assert_in_range(sneck_lock_remaining_ms(lock), LONG_MS / 2, LONG_MS - LONG_MS / 100 - 2);
    UNTIL(found_on(five, "door") == FIVE);
    sneck_lock_token(lock, token, sizeof token - 1);
    for (size_t i = 0; i < FIVE; i++)
        assert_value(five->each[i], "door", token);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    UNTIL(found_on(five, "door") == 0);
    assert_int_equal(sneck_lock_release(lock), SNECK_NOT_OWNER);
    sneck_lock_free(lock);
}

static void one_server_is_a_quorum_of_one(void **state)
{
    struct five *five = *state;
    sneck_client *client = new_quorum(five, 1);
    sneck_lock *lock = quorum_lock(client, "door", LONG_MS, true);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    assert_true(sneck_lock_fence(lock) > 0);
    assert_int_equal(found_on(five, "door"), 1);
    assert_int_equal(sneck_lock_extend(lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    assert_int_equal(found_on(five, "door"), 0);
    occupy(five, "door", 0, 1);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_BUSY);
    sneck_lock_free(lock);
    sneck_client_free(client);
}

static void others_at_two_servers_do_not_keep_it_away(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    occupy(five, "door", 3, 2);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    UNTIL(found_on(five, "door") == 2);
    sneck_lock_free(lock);
}

static void others_at_three_do_and_what_was_granted_is_given_back(void **state)
{
    struct five *five = *state;
    sneck_op *op = NULL;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    for (size_t first = 0; first < FIVE; first++) {
        occupy(five, "door", first, 3);
        assert_int_equal(sneck_lock_acquire_start(&op, lock, NULL, 0), SNECK_OK);
        assert_int_equal(sneck_op_wait(op, NULL, NULL), SNECK_BUSY);
        assert_in_range(errors_with(op, "held by"), 3, 3);
        assert_non_null(strstr(sneck_op_error(op), "held by a client of another kind, "));
        assert_non_null(strstr(sneck_op_error(op), "; so at 3 servers"));
        assert_non_null(strstr(sneck_op_error(op), "of 5 servers granted it, 3 are needed"));
        sneck_op_free(op);
        UNTIL(found_on(five, "door") == 3);
        for (size_t i = 0; i < FIVE; i++)
            DO(five->each[i], "DEL", "door");
    }
    sneck_lock_free(lock);
}

static void a_wait_ends_by_itself_or_when_the_holder_goes(void **state)
{
    struct five *five = *state;
    sneck_lock *holder = quorum_lock(five->client, "door", LONG_MS, false);
    sneck_lock *waiter = quorum_lock(five->client, "door", LONG_MS, false);
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire(holder, 0), SNECK_OK);
    int64_t begin_ms = clock_ms();
    assert_int_equal(sneck_lock_acquire(waiter, 60), SNECK_TIMEOUT);
    assert_true(clock_ms() - begin_ms >= 59);
    sneck_link *link = new_link(five->client);
    assert_int_equal(sneck_lock_acquire_start(&op, waiter, link, SNECK_FOREVER), SNECK_OK);
    for (int i = 0; i < 20; i++)
        step_once(link, 20);
    assert_int_equal(sneck_op_status(op), SNECK_PENDING);
    assert_int_equal(sneck_lock_release(holder), SNECK_OK);
    assert_int_equal(finish(link, op), SNECK_OK);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_release(waiter), SNECK_OK);
    sneck_link_free(link);
    sneck_lock_free(holder);
    sneck_lock_free(waiter);
}

static void a_release_after_the_loss_of_three_says_so(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    for (size_t lost = 2; lost <= 3; lost++) {
        assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
        UNTIL(found_on(five, "door") == FIVE);
        for (size_t i = 0; i < lost; i++)
            DO(five->each[i], "DEL", "door");
        assert_int_equal(sneck_lock_release(lock), lost == 2 ? SNECK_OK : SNECK_NOT_OWNER);
        UNTIL(found_on(five, "door") == 0);
        assert_int_equal(sneck_lock_token(lock, NULL, 0), 0);
    }
    sneck_lock_free(lock);
}

/* ---------------------------------------------------------------------- asking */

static void whoever_has_a_majority_is_the_holder(void **state)
{
    struct five *five = *state;
    sneck_holder holder;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    assert_int_equal(sneck_lock_holder(&holder, lock), SNECK_OK);
    assert_false(holder.held);
    occupy(five, "door", 0, 2);
    assert_int_equal(sneck_lock_holder(&holder, lock), SNECK_OK);
    assert_false(holder.held);
    occupy(five, "door", 2, 1);
    DO(five->each[0], "PERSIST", "door");
    DO(five->each[1], "PEXPIRE", "door", "900000");
    assert_int_equal(sneck_lock_holder(&holder, lock), SNECK_OK);
    assert_true(holder.held && holder.foreign);
    assert_in_range(holder.ttl_ms, 1, 600000); /* no longer than three of them say */
    assert_int_equal(holder.token_len, strlen("another's"));
    DO(five->each[1], "PERSIST", "door");
    DO(five->each[2], "PERSIST", "door");
    assert_int_equal(sneck_lock_holder(&holder, lock), SNECK_OK);
    assert_int_equal(holder.ttl_ms, -1);
    DO(five->each[2], "SET", "door", "a third's");
    assert_int_equal(sneck_lock_holder(&holder, lock), SNECK_OK);
    assert_false(holder.held);
    sneck_lock_free(lock);
}

static void force_release_frees_all_servers(void **state)
{
    struct five *five = *state;
    bool was_held = true;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    assert_int_equal(sneck_lock_force_release(&was_held, lock), SNECK_OK);
    assert_false(was_held);
    occupy(five, "door", 0, 2);
    assert_int_equal(sneck_lock_force_release(&was_held, lock), SNECK_OK);
    assert_false(was_held); /* no majority did */
    UNTIL(found_on(five, "door") == 0);
    occupy(five, "door", 1, 4);
    assert_int_equal(sneck_lock_force_release(&was_held, lock), SNECK_OK);
    assert_true(was_held);
    UNTIL(found_on(five, "door") == 0);
    sneck_lock_free(lock);
}

static void nobody_waits_in_a_queue(void **state)
{
    struct five *five = *state;
    sneck_waiter *waiters = NULL;
    size_t count = 7;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    assert_int_equal(sneck_lock_waiters(&waiters, &count, lock), SNECK_OK);
    assert_int_equal(count, 0);
    assert_null(waiters);
    sneck_lock_free(lock);
}

static void a_token_can_be_handed_over(void **state)
{
    struct five *five = *state;
    char token[256];
    sneck_client *client = new_quorum(five, FIVE);
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false), *other = NULL;
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    size_t len = sneck_lock_token(lock, token, sizeof token);
    UNTIL(found_on(five, "door") == FIVE);
    assert_int_equal(sneck_lock_adopt(&other, client, "door", 4, token, len, NULL, NULL), SNECK_OK);
    assert_int_equal(sneck_lock_remaining_ms(other), 0);
    assert_int_equal(sneck_lock_extend(other, LONG_MS), SNECK_OK);
    assert_true(sneck_lock_remaining_ms(other) > LONG_MS / 2);
    assert_int_equal(sneck_lock_release(other), SNECK_OK);
    assert_int_equal(sneck_lock_release(lock), SNECK_NOT_OWNER);
    sneck_lock_free(lock);
    sneck_lock_free(other);
    sneck_client_free(client);
}

static void a_reentrant_lock_works_as_ever(void **state)
{
    struct five *five = *state;
    sneck_rlock *rlock = NULL;
    assert_int_equal(sneck_rlock_new(&rlock, five->client, "door", 4, NULL, NULL), SNECK_OK);
    assert_int_equal(sneck_rlock_acquire(rlock, 1, 0), SNECK_OK);
    assert_int_equal(sneck_rlock_acquire(rlock, 1, 0), SNECK_OK);
    assert_int_equal(sneck_rlock_acquire(rlock, 2, 0), SNECK_BUSY);
    assert_int_equal(sneck_rlock_release(rlock, 1), SNECK_OK);
    assert_int_equal(sneck_rlock_release(rlock, 1), SNECK_OK);
    assert_int_equal(sneck_rlock_acquire(rlock, 2, 60000), SNECK_OK);
    assert_int_equal(sneck_rlock_release(rlock, 2), SNECK_OK);
    sneck_rlock_free(rlock);
}

/* ------------------------------------------------------------------- contention */

#define CONTENDERS 8
#define ROUNDS 25

struct section {
    struct five *five;
    atomic_int inside;
    atomic_int overlaps;
    int64_t count;      /* guarded by the lock alone */
    int64_t last_fence;
    bool fence;
    atomic_int backwards;
};

static void *contend(void *data)
{
    struct section *section = data;
    sneck_client *client = new_quorum(section->five, FIVE);
    sneck_lock *lock = quorum_lock(client, "door", LONG_MS, section->fence);
    for (int i = 0; i < ROUNDS; i++) {
        if (sneck_lock_acquire(lock, 60000) != SNECK_OK)
            break;
        atomic_fetch_add(&section->overlaps, atomic_fetch_add(&section->inside, 1) != 0);
        int64_t fence = sneck_lock_fence(lock);
        if (section->fence) {
            atomic_fetch_add(&section->backwards, fence <= section->last_fence);
            section->last_fence = fence;
        }
        section->count++;
        atomic_fetch_sub(&section->inside, 1);
        if (sneck_lock_release(lock) != SNECK_OK)
            break;
    }
    sneck_lock_free(lock);
    sneck_client_free(client);
    return NULL;
}

static void run_contenders(struct five *five, bool fence)
{
    pthread_t threads[CONTENDERS];
    struct section section = {.five = five, .fence = fence};
    for (int i = 0; i < CONTENDERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, contend, &section), 0);
    for (int i = 0; i < CONTENDERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(section.overlaps, 0);
    assert_int_equal(section.backwards, 0);
    assert_int_equal(section.count, CONTENDERS * ROUNDS);
}

static void eight_contenders_take_turns(void **state)
{
    run_contenders(*state, false);
}

static void eight_contenders_get_growing_fences(void **state)
{
    run_contenders(*state, true);
}

static void an_acquire_that_fails_tells_it_in_the_statistics(void **state)
{
    struct five *five = *state;
    sneck_stats stats;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    occupy(five, "door", 0, FIVE);
    assert_int_equal(sneck_lock_acquire(lock, 1000), SNECK_TIMEOUT);
    sneck_client_stats(&stats, five->client);
    assert_int_equal(stats.contended, 1);
    assert_true(stats.polls > 0);
    assert_int_equal(stats.wakeups, SNECK_WAKEUPS_UNTRIED);
    sneck_lock_free(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quorum_has_from_1_to_15_servers),
        cmocka_unit_test(a_server_named_twice_is_refused),
        WITH_FIVE(a_client_tells_its_servers),
        WITH_FIVE(what_needs_one_server_is_refused),
        WITH_FIVE(a_link_of_another_client_is_refused),
        WITH_FIVE(it_has_one_token_on_all_servers_and_leaves_none),
        WITH_FIVE(one_server_is_a_quorum_of_one),
        WITH_FIVE(others_at_two_servers_do_not_keep_it_away),
        WITH_FIVE(others_at_three_do_and_what_was_granted_is_given_back),
        WITH_FIVE(a_wait_ends_by_itself_or_when_the_holder_goes),
        WITH_FIVE(a_release_after_the_loss_of_three_says_so),
        WITH_FIVE(whoever_has_a_majority_is_the_holder),
        WITH_FIVE(force_release_frees_all_servers),
        WITH_FIVE(nobody_waits_in_a_queue),
        WITH_FIVE(a_token_can_be_handed_over),
        WITH_FIVE(a_reentrant_lock_works_as_ever),
        WITH_FIVE(eight_contenders_take_turns),
        WITH_FIVE(eight_contenders_get_growing_fences),
        WITH_FIVE(an_acquire_that_fails_tells_it_in_the_statistics),
    };
    return cmocka_run_group_tests(tests, start_five, stop_five);
}
