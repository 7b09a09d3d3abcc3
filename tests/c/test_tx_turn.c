/* The turn to write is handed on by EXEC itself, with the writes or not at all, and by
 * a release of its own wherever EXEC did not do it. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#define ORDER "{a}:sneck:order" /* the lock that is the turn of "a" */

struct scene {
    sneck_client *client, *other;
    sneck_lock *order; /* the turn, as others hold it */
    sneck_tx *tx;
    sneck_tx_report report;
};

static int set_up(void **state)
{
    static struct scene scene;
    empty_server(state);
    scene = (struct scene){.client = new_client(), .other = new_client()};
    scene.order = new_lock(scene.other, ORDER, 60000);
    DO(scene.other, "SET", "a", "1");
    *state = &scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    sneck_tx_free(scene->tx);
    sneck_lock_free(scene->order);
    sneck_client_free(scene->client);
    sneck_client_free(scene->other);
    return 0;
}

static int end(sneck_op *op)
{
    int status = finish(sneck_op_link(op), op);
    sneck_op_free(op);
    return status;
}

static void make(struct scene *scene)
{
    sneck_tx_options options = SNECK_TX_OPTIONS;
    options.report = &scene->report;
    assert_int_equal(sneck_tx_new(&scene->tx, scene->client, 1, (const void *const[]){"a"},
                                  (const size_t[]){1}, &options, NULL), SNECK_OK);
}

static void begin(struct scene *scene)
{
    sneck_op *op = NULL;
    assert_int_equal(sneck_tx_begin_start(&op, scene->tx), SNECK_OK);
    assert_int_equal(end(op), SNECK_OK);
}

static size_t count_waiters(struct scene *scene)
{
    sneck_waiter *waiters;
    size_t count;
    assert_int_equal(sneck_lock_waiters(&waiters, &count, scene->order), SNECK_OK);
    sneck_waiters_free(waiters);
    return count;
}

/* Gets the turn from somebody, reads, and queues a write. */
static void take_turn(struct scene *scene)
{
    assert_int_equal(sneck_lock_acquire(scene->order, 0), SNECK_OK);
    make(scene);
    begin(scene);
    sneck_op *op = READ_START(scene->tx, "GET", "a");
    while (count_waiters(scene) == 0)
        step_once(sneck_op_link(op), 10);
    assert_int_equal(sneck_lock_release(scene->order), SNECK_OK);
    assert_int_equal(end(op), SNECK_OK);
    assert_true(key_exists(scene->other, ORDER));
    assert_int_equal(QUEUE(scene->tx, "INCR", "commits"), SNECK_OK);
}

/* Starts a commit that leaves, and whose reply is not read. */
static sneck_op *send_commit(struct scene *scene)
{
    sneck_op *op = NULL;
    assert_int_equal(sneck_tx_commit_start(&op, scene->tx), SNECK_OK);
    step_once(sneck_op_link(op), 0);
    return op;
}

static sneck_op *send_commit_that_is_done(struct scene *scene)
{
    sneck_op *op = send_commit(scene);
    for (int i = 0; key_exists(scene->other, ORDER); i++)
        assert_true(i < 10000);
    assert_value(scene->other, "commits", "1");
    return op;
}

static void assert_committed(struct scene *scene, sneck_op *op)
{
    assert_int_equal(finish(sneck_op_link(op), op), SNECK_OK);
    assert_int_equal(sneck_reply_count(sneck_op_reply(op)), 1);
    assert_int_equal(sneck_reply_integer(sneck_reply_item(sneck_op_reply(op), 0)), 1);
    assert_true(scene->report.failed == SIZE_MAX);
    assert_false(key_exists(scene->other, ORDER));
    assert_value(scene->other, "commits", "1");
    sneck_op_free(op);
}

static void assert_no_losses(struct scene *scene)
{
    sneck_stats stats;
    sneck_client_stats(&stats, scene->client);
    assert_int_equal(stats.losses, 0);
}

static void kill_others(struct scene *scene)
{
    DO(scene->other, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
}

static void the_turn_is_free_before_the_reply_is_read(void **state)
{
    struct scene *scene = *state;
    take_turn(scene);
    assert_committed(scene, send_commit_that_is_done(scene));
    assert_no_losses(scene);
}

static void a_script_that_the_server_forgot_is_run_after_the_commit(void **state)
{
    struct scene *scene = *state;
    take_turn(scene);
    DO(scene->other, "SCRIPT", "FLUSH");
    assert_committed(scene, send_commit(scene));
    assert_no_losses(scene);
}

static void a_write_that_fails_does_not_keep_the_turn(void **state)
{
    struct scene *scene = *state;
    take_turn(scene);
    assert_int_equal(QUEUE(scene->tx, "LPUSH", "a", "x"), SNECK_OK);
    sneck_op *op = send_commit_that_is_done(scene);
    assert_int_equal(finish(sneck_op_link(op), op), SNECK_SERVER);
    assert_int_equal(sneck_reply_count(sneck_op_reply(op)), 2);
    assert_int_equal(scene->report.failed, 1);
    assert_non_null(strstr(sneck_op_error(op), "2 of 2"));
    sneck_op_free(op);
}

static void a_conflict_keeps_the_turn(void **state)
{
    struct scene *scene = *state;
    take_turn(scene);
    DO(scene->other, "SET", "a", "theirs");
    assert_int_equal(end(send_commit(scene)), SNECK_CONFLICT);
    assert_true(key_exists(scene->other, ORDER));
    begin(scene);
    assert_int_equal(end(READ_START(scene->tx, "GET", "a")), SNECK_OK);
    assert_int_equal(QUEUE(scene->tx, "INCR", "commits"), SNECK_OK);
    assert_committed(scene, send_commit_that_is_done(scene));
    assert_no_losses(scene);
}

static void a_commit_that_is_refused_passes_the_turn_on(void **state)
{
    struct scene *scene = *state;
    take_turn(scene);
    assert_int_equal(QUEUE(scene->tx, "NOSUCHCOMMAND"), SNECK_OK);
    assert_int_equal(end(send_commit(scene)), SNECK_SERVER);
    assert_false(key_exists(scene->other, ORDER));
    assert_false(key_exists(scene->other, "commits"));
    assert_no_losses(scene);
}

/* The reply is lost; EXEC was done, and somebody else has the turn already. */
static void the_turn_of_another_is_left_alone_when_the_reply_is_lost(void **state)
{
    struct scene *scene = *state;
    take_turn(scene);
    sneck_op *op = send_commit_that_is_done(scene);
    assert_int_equal(sneck_lock_acquire(scene->order, 0), SNECK_OK);
    sneck_op_cancel(op); /* as good as a loss, and no reply was read */
    assert_int_equal(end(op), SNECK_UNKNOWN);
    assert_int_equal(sneck_tx_unwatch_start(&op, scene->tx), SNECK_OK);
    assert_int_equal(end(op), SNECK_OK);
    assert_int_equal(sneck_lock_extend(scene->order, 0), SNECK_OK);
    assert_no_losses(scene);
}

/* EXEC has left, was not done, and never will be. */
static void the_turn_is_passed_on_over_another_connection(void **state)
{
    struct scene *scene = *state;
    take_turn(scene);
    DO(scene->other, "CLIENT", "PAUSE", "60000", "WRITE");
    sneck_op *op = send_commit(scene);
    kill_others(scene);
    DO(scene->other, "CLIENT", "UNPAUSE");
    assert_true(key_exists(scene->other, ORDER));
    assert_int_equal(end(op), SNECK_UNKNOWN);
    assert_false(key_exists(scene->other, ORDER));
    assert_false(key_exists(scene->other, "commits"));
    assert_no_losses(scene);
}

/* Who got the turn by SET may not be allowed to run a script: EXEC must not fail for it. */
static void a_user_without_scripts_commits_with_the_turn(void **state)
{
    struct scene *scene = *state;
    char url[256];
    const char *const scheme = "unix://";
    DO(scene->other, "ACL", "SETUSER", "tester", "reset", "on", ">secret", "~*");
    DO(scene->other, "ACL", "SETUSER", "tester", "&*", "+@all", "-evalsha");
    snprintf(url, sizeof url, "unix://tester:secret@%s", server_url() + strlen(scheme));
    sneck_client_free(scene->client);
    assert_int_equal(sneck_client_new(&scene->client, url, NULL, NULL), SNECK_OK);
    make(scene);
    for (int i = 0; i < 4; i++) {
        begin(scene);
        assert_int_equal(end(READ_START(scene->tx, "GET", "a")), SNECK_OK);
        assert_int_equal(QUEUE(scene->tx, "INCR", "commits"), SNECK_OK);
        if (i < 3) {
            DO(scene->other, "SET", "a", "theirs");
            assert_int_equal(end(send_commit(scene)), SNECK_CONFLICT);
        }
    }
    assert_true(key_exists(scene->other, ORDER));
    assert_int_equal(end(send_commit(scene)), SNECK_OK);
    assert_value(scene->other, "commits", "1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(the_turn_is_free_before_the_reply_is_read),
        TEST(a_script_that_the_server_forgot_is_run_after_the_commit),
        TEST(a_write_that_fails_does_not_keep_the_turn),
        TEST(a_conflict_keeps_the_turn),
        TEST(a_commit_that_is_refused_passes_the_turn_on),
        TEST(the_turn_of_another_is_left_alone_when_the_reply_is_lost),
        TEST(the_turn_is_passed_on_over_another_connection),
        TEST(a_user_without_scripts_commits_with_the_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
