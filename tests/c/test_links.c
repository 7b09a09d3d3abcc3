/* Links: many ops on one connection, and the three facts that an event loop uses. */
#include "door.h"

#include <stdio.h>
#include <string.h>

#define MANY 50

typedef int start_function(sneck_op **, sneck_lock *, sneck_link *);

static int start_try(sneck_op **out, sneck_lock *lock, sneck_link *link)
{
    return sneck_lock_acquire_start(out, lock, link, 0);
}

static int start_extend(sneck_op **out, sneck_lock *lock, sneck_link *link)
{
    return sneck_lock_extend_start(out, lock, link, 0);
}

/* Starts one op per lock before the link is stepped at all. */
static void run_many(sneck_link *link, sneck_lock *const *locks, start_function *start)
{
    sneck_op *ops[MANY];
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(start(&ops[i], locks[i], link), SNECK_OK);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(finish(link, ops[i]), SNECK_OK);
        sneck_op_free(ops[i]);
    }
}

static void fifty_locks_share_one_link(void **state)
{
    struct scene *scene = *state;
    sneck_lock *locks[MANY];
    char name[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "door:%d", i);
        locks[i] = new_lock(scene->client, name, 60000);
    }
    run_many(scene->link, locks, start_try);
    assert_int_equal(COMMAND_INTEGER(scene->other, "DBSIZE"), MANY);
    run_many(scene->link, locks, start_extend);
    run_many(scene->link, locks, sneck_lock_release_start);
    assert_int_equal(COMMAND_INTEGER(scene->other, "DBSIZE"), 0);
    for (int i = 0; i < MANY; i++)
        sneck_lock_free(locks[i]);
}

static void every_op_gets_its_own_reply(void **state)
{
    struct scene *scene = *state;
    sneck_op *ops[MANY];
    char text[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "word %d", i);
        ops[i] = START(scene->client, scene->link, "ECHO", text);
    }
    for (int i = MANY - 1; i >= 0; i--) {
        snprintf(text, sizeof text, "word %d", i);
        assert_int_equal(finish(scene->link, ops[i]), SNECK_OK);
        assert_string_equal(text_of(sneck_op_reply(ops[i])), text);
        sneck_op_free(ops[i]);
    }
}

static void a_waiter_does_not_keep_others_from_the_link(void **state)
{
    struct scene *scene = *state;
    sneck_lock *lock = new_lock(scene->client, "door", 60000);
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire(scene->held, 0), SNECK_OK);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, scene->link, SNECK_FOREVER), SNECK_OK);
    settle(scene->client, scene->link);
    settle(scene->client, scene->link);
    assert_int_equal(sneck_op_status(op), SNECK_PENDING);
    let_go(scene);
    assert_int_equal(end_op(op), SNECK_OK);
    sneck_lock_free(lock);
}

static void an_idle_link_wants_nothing(void **state)
{
    struct scene *scene = *state;
    struct pollfd fds[SNECK_LINK_FDS];
    sneck_link_step(scene->link);
    assert_int_equal(sneck_link_fds(scene->link, fds), 0);
    assert_int_equal(sneck_link_timeout_ms(scene->link), -1);
    settle(scene->client, scene->link);
    assert_int_equal(sneck_link_timeout_ms(scene->link), -1);
    sneck_link_step(scene->link);
    sneck_link_step(scene->link);
    settle(scene->client, scene->link);
}

static void a_link_asks_to_be_stepped_when_an_op_starts(void **state)
{
    struct scene *scene = *state;
    struct pollfd fds[SNECK_LINK_FDS];
    sneck_op *op = START(scene->client, scene->link, "PING");
    assert_int_equal(sneck_link_timeout_ms(scene->link), 0);
    sneck_link_step(scene->link);
    assert_int_equal(sneck_link_fds(scene->link, fds), 1);
    assert_true(fds[0].fd >= 0);
    assert_true(fds[0].events != 0);
    assert_int_equal(end_op(op), SNECK_OK);
}

static void a_timeout_never_goes_beyond_a_minute(void **state)
{
    struct scene *scene = *state;
    sneck_client *patient = new_client_within(SNECK_TTL_MAX_MS);
    sneck_link *link = new_link(patient);
    sneck_op *gate = block(patient, link);
    step_until_blocked(link, scene->other);
    assert_true(sneck_link_timeout_ms(link) >= 0);
    assert_true(sneck_link_timeout_ms(link) <= 60000);
    sneck_op_free(gate);
    sneck_link_free(link);
    sneck_client_free(patient);
    sneck_reply_free(COMMAND(scene->other, "DEL", "gate"));
}

static void ops_of_a_freed_link_end_as_interrupted(void **state)
{
    struct scene *scene = *state;
    sneck_link *link = new_link(scene->client);
    sneck_lock *lock = new_lock(scene->client, "door", 60000);
    sneck_op *unsent = START(scene->client, link, "PING"), *waiting = NULL;
    assert_int_equal(sneck_lock_acquire(scene->held, 0), SNECK_OK);
    assert_int_equal(end_op(unsent), SNECK_OK);
    assert_int_equal(sneck_lock_acquire_start(&waiting, lock, link, SNECK_FOREVER), SNECK_OK);
    settle(scene->client, link);
    unsent = START(scene->client, link, "PING");
    sneck_link_free(link);
    assert_int_equal(sneck_op_status(waiting), SNECK_INTERRUPTED);
    assert_int_equal(sneck_op_status(unsent), SNECK_INTERRUPTED);
    assert_int_equal(sneck_op_wait(waiting, NULL, NULL), SNECK_INTERRUPTED);
    sneck_op_cancel(waiting);
    sneck_op_free(waiting);
    sneck_op_free(unsent);
    sneck_lock_free(lock);
}

static void kill_connection(struct scene *scene)
{
    char id[24];
    sneck_op *op = START(scene->client, scene->link, "CLIENT", "ID");
    assert_int_equal(finish(scene->link, op), SNECK_OK);
    snprintf(id, sizeof id, "%lld", (long long)sneck_reply_integer(sneck_op_reply(op)));
    sneck_op_free(op);
    assert_int_equal(COMMAND_INTEGER(scene->other, "CLIENT", "KILL", "ID", id), 1);
}

static void a_link_connects_again_when_its_connection_is_gone(void **state)
{
    struct scene *scene = *state;
    kill_connection(scene);
    settle(scene->client, scene->link);
    kill_connection(scene);
    sneck_link_step(scene->link);
    settle(scene->client, scene->link);
}

static void a_command_lost_on_the_way_is_unknown_and_the_next_one_works(void **state)
{
    struct scene *scene = *state;
    char id[24];
    sneck_op *op = START(scene->client, scene->link, "CLIENT", "ID");
    assert_int_equal(finish(scene->link, op), SNECK_OK);
    snprintf(id, sizeof id, "%lld", (long long)sneck_reply_integer(sneck_op_reply(op)));
    sneck_op_free(op);
    op = block(scene->client, scene->link);
    step_until_blocked(scene->link, scene->other);
    assert_int_equal(COMMAND_INTEGER(scene->other, "CLIENT", "KILL", "ID", id), 1);
    assert_int_equal(finish(scene->link, op), SNECK_UNKNOWN);
    assert_null(sneck_op_reply(op));
    sneck_op_free(op);
    settle(scene->client, scene->link);
}

static void assert_refused(sneck_op *op)
{
    assert_int_equal(sneck_op_status(op), SNECK_INVALID);
    assert_non_null(strstr(sneck_op_error(op), "another client's"));
    sneck_op_free(op);
}

/* Its server may be another one, where the lock is free. */
static void a_link_of_another_client_is_refused(void **state)
{
    struct scene *scene = *state;
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire_start(&op, scene->held, scene->link, 0), SNECK_OK);
    assert_refused(op);
    assert_int_equal(sneck_lock_holder_start(&op, scene->held, scene->link), SNECK_OK);
    assert_refused(op);
    assert_int_equal(sneck_lock_force_release_start(&op, scene->held, scene->link), SNECK_OK);
    assert_refused(op);
    assert_refused(START(scene->other, scene->link, "SET", "door", "mine"));
    assert_true(sneck_link_quiet(scene->link));
    assert_int_equal(sneck_lock_acquire(scene->held, 0), SNECK_OK);
    assert_int_equal(sneck_lock_extend_start(&op, scene->held, scene->link, 0), SNECK_OK);
    assert_refused(op);
    assert_int_equal(sneck_lock_release_start(&op, scene->held, scene->link), SNECK_OK);
    assert_refused(op);
    assert_int_equal(sneck_lock_release(scene->held), SNECK_OK);
}

static void an_argument_that_is_not_valid_gives_an_op_that_has_ended(void **state)
{
    struct scene *scene = *state;
    sneck_lock *lock = new_lock(scene->client, "door", 60000);
    sneck_op *op = NULL;
    sneck_holder holder;
    assert_int_equal(sneck_lock_acquire_start(&op, lock, scene->link, -2), SNECK_OK);
    assert_int_equal(sneck_op_status(op), SNECK_INVALID);
    assert_true(*sneck_op_error(op) != '\0');
    assert_string_equal(sneck_op_server_code(op), "");
    assert_null(sneck_op_reply(op));
    assert_int_equal(sneck_op_holder(&holder, op), SNECK_INVALID);
    sneck_op_free(op);
    sneck_lock_free(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_free, tear_down)
        TEST(fifty_locks_share_one_link),
        TEST(every_op_gets_its_own_reply),
        TEST(a_waiter_does_not_keep_others_from_the_link),
        TEST(an_idle_link_wants_nothing),
        TEST(a_link_asks_to_be_stepped_when_an_op_starts),
        TEST(a_timeout_never_goes_beyond_a_minute),
        TEST(ops_of_a_freed_link_end_as_interrupted),
        TEST(a_link_connects_again_when_its_connection_is_gone),
        TEST(a_command_lost_on_the_way_is_unknown_and_the_next_one_works),
        TEST(a_link_of_another_client_is_refused),
        TEST(an_argument_that_is_not_valid_gives_an_op_that_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
