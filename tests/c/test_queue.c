/* The queue as one who steps links sees it: late readers, many waiters, and leaving at any time. */
#include "door.h"

#include <sneck_legacy.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MANY 50
#define CYCLES 1000

/* Starts an acquire without a limit; it is the last in the queue when this returns. */
static sneck_op *queue_up(struct scene *scene, sneck_lock *lock, sneck_link *link)
{
    sneck_op *op = NULL;
    int64_t before = count_waiters(scene);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, SNECK_FOREVER), SNECK_OK);
    STEP_UNTIL(link, count_waiters(scene) != before || sneck_op_status(op) != SNECK_PENDING);
    assert_int_equal(sneck_op_status(op), SNECK_PENDING);
    return op;
}

static bool is_ours(struct scene *scene, const sneck_lock *lock)
{
    char token[256];
    size_t len = sneck_lock_token(lock, token, sizeof token), held_len;
    sneck_reply *reply = COMMAND(scene->other, "GET", "door");
    const char *held = sneck_reply_bytes(reply, &held_len);
    bool ours = held && len > 0 && held_len == len && memcmp(held, token, len) == 0;
    sneck_reply_free(reply);
    return ours;
}

static void release_on(sneck_link *link, sneck_lock *lock)
{
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_release_start(&op, lock, link), SNECK_OK);
    assert_int_equal(end_op(op), SNECK_OK);
}

/* ------------------------------------------------------------------ late readers */

static void a_grant_that_is_read_after_its_lease_does_not_count_as_held(void **state)
{
    struct scene *scene = *state;
    sneck_lock *lock = new_lock(scene->client, "door", 1000);
    sneck_op *op = queue_up(scene, lock, scene->link);
    let_go(scene);
    assert_true(key_exists(scene->other, "door")); /* the grant is out, and nobody reads it */
    WITHIN(LIMIT_S, !key_exists(scene->other, "door"), pause_ms(20));
    assert_int_equal(sneck_lock_acquire(scene->held, 0), SNECK_OK);
    for (int64_t until = clock_ms() + 300; clock_ms() < until;)
        step_once(scene->link, 5);
    assert_int_equal(sneck_op_status(op), SNECK_PENDING);
    assert_int_equal(sneck_lock_remaining_ms(lock), 0);
    assert_true(is_ours(scene, scene->held));
    let_go(scene);
    assert_int_equal(finish(scene->link, op), SNECK_OK);
    assert_true(is_ours(scene, lock));
    sneck_op_free(op);
    release_on(scene->link, lock);
    assert_nothing_is_left(scene);
    sneck_lock_free(lock);
}

static void a_late_reader_gets_a_free_lock_with_a_lease_of_its_own(void **state)
{
    struct scene *scene = *state;
    sneck_lock *lock = new_lock(scene->client, "door", 1000);
    sneck_op *op = queue_up(scene, lock, scene->link);
    let_go(scene);
    WITHIN(LIMIT_S, !key_exists(scene->other, "door"), pause_ms(20));
    assert_int_equal(finish(scene->link, op), SNECK_OK);
    int64_t remaining_ms = sneck_lock_remaining_ms(lock);
    int64_t ttl_ms = COMMAND_INTEGER(scene->other, "PTTL", "door");
    /* asked for later, so the server's lease may only seem shorter, by the time between */
    assert_true(remaining_ms == 0 || ttl_ms > 0);
    assert_true(remaining_ms < 1000);
    sneck_op_free(op);
    sneck_lock_free(lock);
}

static void a_frozen_waiter_costs_the_next_one_a_moment_and_comes_back(void **state)
{
    struct scene *scene = *state;
    sneck_lock *frozen = new_lock(scene->client, "door", LONG_MS);
    sneck_lock *lock = new_lock(scene->client, "door", LONG_MS);
    sneck_op *frozen_op = queue_up(scene, frozen, scene->link);
    sneck_op *op = queue_up(scene, lock, scene->next);
    pause_ms(350); /* more than what a waiter that runs is trusted for */
    let_go(scene);
    int64_t ttl_ms = COMMAND_INTEGER(scene->other, "PTTL", "door");
    assert_true(ttl_ms <= 1000); /* to claim it, and not the lease */
    assert_int_equal(finish(scene->next, op), SNECK_OK);
    assert_true(is_ours(scene, lock));
    STEP_UNTIL(scene->link, count_waiters(scene) != 0); /* it thaws */
    assert_int_equal(sneck_op_status(frozen_op), SNECK_PENDING);
    assert_true(is_ours(scene, lock));
    release_on(scene->next, lock);
    assert_int_equal(finish(scene->link, frozen_op), SNECK_OK);
    assert_true(is_ours(scene, frozen));
    release_on(scene->link, frozen);
    assert_nothing_is_left(scene);
    sneck_op_free(frozen_op);
    sneck_op_free(op);
    sneck_lock_free(frozen);
    sneck_lock_free(lock);
}

/* Whoever released the lock was there a moment ago. */
static void a_waiter_whose_own_link_has_released_need_not_show_that_it_runs(void **state)
{
    struct scene *scene = *state;
    sneck_lock *first = new_lock(scene->client, "door", 20000);
    sneck_lock *second = new_lock(scene->client, "door", 20000);
    sneck_op *first_op = queue_up(scene, first, scene->link), *release = NULL;
    let_go(scene);
    assert_int_equal(finish(scene->link, first_op), SNECK_OK);
    sneck_op *second_op = queue_up(scene, second, scene->link);
    pause_ms(350); /* more than what others that run are trusted for */
    assert_int_equal(sneck_lock_release_start(&release, first, scene->link), SNECK_OK);
    step_once(scene->link, 0);
    UNTIL(count_waiters(scene) == 0);
    assert_true(COMMAND_INTEGER(scene->other, "PTTL", "door") > 1000); /* the whole lease */
    pause_ms(300); /* in which the grant is not read */
    assert_int_equal(finish(scene->link, second_op), SNECK_OK);
    int64_t ttl_ms = COMMAND_INTEGER(scene->other, "PTTL", "door");
    assert_true(ttl_ms <= 20000 - 300); /* it was not asked for again */
    assert_true(sneck_lock_remaining_ms(second) <= ttl_ms);
    assert_true(is_ours(scene, second));
    sneck_op_free(release);
    release_on(scene->link, second);
    assert_nothing_is_left(scene);
    sneck_op_free(first_op);
    sneck_op_free(second_op);
    sneck_lock_free(first);
    sneck_lock_free(second);
}

static void nor_need_one_whose_link_has_released_a_value(void **state)
{
    struct scene *scene = *state;
    sneck_lock *lock = new_lock(scene->client, "door", 20000);
    sneck_op *op = queue_up(scene, lock, scene->link), *release = NULL;
    DO(scene->other, "SET", "door", "mine", "PX", "20000");
    pause_ms(350);
    assert_int_equal(sneck_release_lock_start(&release, scene->client, scene->link, "door", 4,
                                              "mine", 4), SNECK_OK);
    step_once(scene->link, 0);
    UNTIL(count_waiters(scene) == 0);
    assert_true(COMMAND_INTEGER(scene->other, "PTTL", "door") > 1000);
    assert_int_equal(finish(scene->link, op), SNECK_OK);
    assert_int_equal(end_op(release), SNECK_OK);
    release_on(scene->link, lock);
    assert_nothing_is_left(scene);
    sneck_op_free(op);
    sneck_lock_free(lock);
}

static void a_wait_that_ends_while_its_grant_is_unread_is_decided_one_way(void **state)
{
    struct scene *scene = *state;
    sneck_lock *lock = new_lock(scene->client, "door", LONG_MS);
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire_start(&op, lock, scene->link, 300), SNECK_OK);
    STEP_UNTIL(scene->link,
               count_waiters(scene) != 0 || sneck_op_status(op) != SNECK_PENDING);
    let_go(scene);
    pause_ms(350);
    int status = finish(scene->link, op);
    assert_true(status == SNECK_OK || status == SNECK_TIMEOUT);
    settle(scene->client, scene->link);
    assert_int_equal(is_ours(scene, lock), status == SNECK_OK);
    if (status == SNECK_OK)
        release_on(scene->link, lock);
    assert_nothing_is_left(scene);
    sneck_op_free(op);
    sneck_lock_free(lock);
}

/* ------------------------------------------------------------------ many waiters */

static void fifty_waiters_on_one_link_are_served_in_their_order(void **state)
{
    struct scene *scene = *state;
    sneck_lock *locks[MANY];
    sneck_op *ops[MANY];
    for (size_t i = 0; i < MANY; i++) {
        locks[i] = new_lock(scene->client, "door", LONG_MS);
        ops[i] = queue_up(scene, locks[i], scene->link);
    }
    let_go(scene);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(finish(scene->link, ops[i]), SNECK_OK);
        assert_true(is_ours(scene, locks[i]));
        for (size_t j = i + 1; j < MANY; j++)
            assert_int_equal(sneck_op_status(ops[j]), SNECK_PENDING);
        release_on(scene->link, locks[i]);
        sneck_op_free(ops[i]);
        sneck_lock_free(locks[i]);
    }
    assert_nothing_is_left(scene);
}

static void two_links_hand_the_lock_to_each_other_and_leave_no_key(void **state)
{
    struct scene *scene = *state;
    sneck_link *links[] = {scene->link, scene->next};
    sneck_lock *locks[] = {new_lock(scene->client, "door", LONG_MS),
                           new_lock(scene->client, "door", LONG_MS)};
    sneck_op *op = queue_up(scene, locks[0], links[0]);
    let_go(scene);
    for (size_t i = 0; i < CYCLES; i++) {
        size_t mine = i % 2, other = 1 - mine;
        assert_int_equal(finish(links[mine], op), SNECK_OK);
        sneck_op_free(op);
        op = NULL;
        if (i + 1 < CYCLES)
            op = queue_up(scene, locks[other], links[other]);
        release_on(links[mine], locks[mine]);
    }
    sneck_stats stats;
    sneck_client_stats(&stats, scene->client);
    assert_int_equal(stats.acquisitions, CYCLES);
    assert_int_equal(stats.losses + stats.unknown, 0);
    assert_nothing_is_left(scene);
    sneck_lock_free(locks[0]);
    sneck_lock_free(locks[1]);
}

/* ---------------------------------------------------------------------- leaving */

/* How many steps it takes to be in the queue, and a few more. */
#define STEPS 16

static void leave_after(struct scene *scene, int steps, bool by_freeing)
{
    sneck_link *link = new_link(scene->client);
    sneck_lock *lock = new_lock(scene->client, "door", LONG_MS);
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, SNECK_FOREVER), SNECK_OK);
    for (int i = 0; i < steps; i++)
        step_once(link, 5);
    assert_int_equal(sneck_op_status(op), SNECK_PENDING);
    if (!by_freeing) {
        sneck_op_cancel(op);
        assert_int_equal(sneck_op_status(op), SNECK_INTERRUPTED);
    }
    sneck_op_free(op);
    settle(scene->client, link);
    assert_int_equal(count_waiters(scene), 0);
    assert_true(is_ours(scene, scene->held));
    sneck_link_free(link);
    sneck_lock_free(lock);
}

static void a_waiter_that_leaves_at_any_step_is_not_in_the_queue(void **state)
{
    struct scene *scene = *state;
    for (int steps = 0; steps < STEPS; steps++) {
        leave_after(scene, steps, false);
        leave_after(scene, steps, true);
    }
    let_go(scene);
    assert_nothing_is_left(scene);
}

/* The same, while the lock is handed over to it. */
static void a_waiter_that_leaves_with_its_grant_unread_keeps_no_lock(void **state)
{
    struct scene *scene = *state;
    for (int steps = 0; steps < 4; steps++) {
        sneck_lock *lock = new_lock(scene->client, "door", LONG_MS);
        sneck_op *op = queue_up(scene, lock, scene->link);
        for (int i = 0; i < steps; i++)
            sneck_link_step(scene->link);
        let_go(scene);
        assert_true(key_exists(scene->other, "door"));
        sneck_op_cancel(op);
        sneck_op_free(op);
        settle(scene->client, scene->link);
        assert_nothing_is_left(scene);
        assert_int_equal(sneck_lock_acquire(scene->held, 0), SNECK_OK);
        sneck_lock_free(lock);
    }
}

static void a_waiter_that_leaves_with_its_grant_unread_hands_the_lock_on(void **state)
{
    struct scene *scene = *state;
    sneck_lock *leaver = new_lock(scene->client, "door", LONG_MS);
    sneck_lock *lock = new_lock(scene->client, "door", LONG_MS);
    sneck_op *leaving = queue_up(scene, leaver, scene->link);
    sneck_op *op = queue_up(scene, lock, scene->next);
    let_go(scene);
    sneck_op_cancel(leaving);
    settle(scene->client, scene->link);
    assert_true(key_exists(scene->other, "door")); /* never free in between */
    assert_int_equal(count_waiters(scene), 0);
    assert_int_equal(finish(scene->next, op), SNECK_OK);
    assert_true(is_ours(scene, lock));
    sneck_op_free(leaving);
    sneck_op_free(op);
    sneck_lock_free(leaver);
    sneck_lock_free(lock);
}

static void a_waiter_whose_link_is_freed_is_passed_over(void **state)
{
    struct scene *scene = *state;
    sneck_link *link = new_link(scene->client);
    sneck_lock *leaver = new_lock(scene->client, "door", LONG_MS);
    sneck_lock *lock = new_lock(scene->client, "door", LONG_MS);
    sneck_op *leaving = queue_up(scene, leaver, link);
    sneck_op *op = queue_up(scene, lock, scene->next);
    sneck_link_free(link);
    assert_int_equal(sneck_op_status(leaving), SNECK_INTERRUPTED);
    UNTIL(count_inboxes(scene) <= 1); /* the server has noticed it */
    let_go(scene);
    assert_int_equal(finish(scene->next, op), SNECK_OK);
    release_on(scene->next, lock);
    assert_nothing_is_left(scene);
    sneck_op_free(leaving);
    sneck_op_free(op);
    sneck_lock_free(leaver);
    sneck_lock_free(lock);
}

/* --------------------------------------------------------------------- the dead */

/* A connection that listens to every channel, as monitoring does. */
static int listen_to_all(void)
{
    static const char request[] = "PSUBSCRIBE *\r\n";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char answer[64];
    snprintf(address.sun_path, sizeof address.sun_path, "%s", server_url() + strlen("unix://"));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(write(fd, request, strlen(request)), strlen(request));
    assert_true(read(fd, answer, sizeof answer) > 0);
    return fd;
}

static void who_listens_to_every_channel_does_not_make_the_dead_look_alive(void **state)
{
    struct scene *scene = *state;
    int fd = listen_to_all();
    for (int i = 0; i < 200; i++) {
        char score[16], entry[128];
        snprintf(score, sizeof score, "%d", i);
        snprintf(entry, sizeof entry, "sneck:host:%d::%032d sneck:inbox:%032d 60000", i, i, i);
        assert_int_equal(COMMAND_INTEGER(scene->other, "ZADD", "{door}:sneck:queue", score, entry),
                         1);
    }
    sneck_lock *lock = new_lock(scene->client, "door", LONG_MS);
    sneck_op *op = queue_up(scene, lock, scene->link);
    let_go(scene);
    assert_true(key_exists(scene->other, "door"));
    assert_int_equal(count_waiters(scene), 0);
    assert_int_equal(finish(scene->link, op), SNECK_OK);
    release_on(scene->link, lock);
    assert_nothing_is_left(scene);
    sneck_op_free(op);
    sneck_lock_free(lock);
    close(fd);
}

static void first_entry(struct scene *scene, char out[512])
{
    sneck_reply *reply = COMMAND(scene->other, "ZRANGE", "{door}:sneck:queue", "0", "0");
    const sneck_reply *item = sneck_reply_item(reply, 0);
    snprintf(out, 512, "%s", item ? text_of(item) : "");
    sneck_reply_free(reply);
}

static void a_waiter_that_lost_its_connection_comes_back_to_its_old_place(void **state)
{
    struct scene *scene = *state;
    static const char *const kinds[] = {"pubsub", "normal"};
    for (size_t i = 0; i < 2; i++) {
        char before[512], after[512];
        sneck_lock *first = new_lock(scene->client, "door", LONG_MS);
        sneck_lock *second = new_lock(scene->client, "door", LONG_MS);
        sneck_op *first_op = queue_up(scene, first, scene->link);
        sneck_op *second_op = queue_up(scene, second, scene->next);
        first_entry(scene, before);
        assert_true(COMMAND_INTEGER(scene->other, "CLIENT", "KILL", "TYPE", kinds[i]) > 0);
        do {
            step_once(scene->link, 5);
            first_entry(scene, after);
        } while (strcmp(before, after) == 0);
        assert_int_equal(count_waiters(scene), 2);
        let_go(scene);
        assert_int_equal(finish(scene->link, first_op), SNECK_OK);
        assert_true(is_ours(scene, first));
        release_on(scene->link, first);
        assert_int_equal(finish(scene->next, second_op), SNECK_OK);
        release_on(scene->next, second);
        assert_nothing_is_left(scene);
        assert_int_equal(sneck_lock_acquire(scene->held, 0), SNECK_OK);
        sneck_op_free(first_op);
        sneck_op_free(second_op);
        sneck_lock_free(first);
        sneck_lock_free(second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_held, tear_down)
        TEST(a_grant_that_is_read_after_its_lease_does_not_count_as_held),
        TEST(a_late_reader_gets_a_free_lock_with_a_lease_of_its_own),
        TEST(a_frozen_waiter_costs_the_next_one_a_moment_and_comes_back),
        TEST(a_waiter_whose_own_link_has_released_need_not_show_that_it_runs),
        TEST(nor_need_one_whose_link_has_released_a_value),
        TEST(a_wait_that_ends_while_its_grant_is_unread_is_decided_one_way),
        TEST(fifty_waiters_on_one_link_are_served_in_their_order),
        TEST(two_links_hand_the_lock_to_each_other_and_leave_no_key),
        TEST(a_waiter_that_leaves_at_any_step_is_not_in_the_queue),
        TEST(a_waiter_that_leaves_with_its_grant_unread_keeps_no_lock),
        TEST(a_waiter_that_leaves_with_its_grant_unread_hands_the_lock_on),
        TEST(a_waiter_whose_link_is_freed_is_passed_over),
        TEST(who_listens_to_every_channel_does_not_make_the_dead_look_alive),
        TEST(a_waiter_that_lost_its_connection_comes_back_to_its_old_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
