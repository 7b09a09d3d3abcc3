/* Thousands that wait on one link, while the server cannot be reached, is full, or new. */
#include "door.h"
#include "own_server.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY 1000

struct crowd {
    sneck_client *client;
    sneck_link *link;
    sneck_lock *lock;
    sneck_op *ops[MANY];
};

static void gather(struct crowd *crowd, const char *url)
{
    assert_int_equal(sneck_client_new(&crowd->client, url, NULL, NULL), SNECK_OK);
    crowd->link = new_link(crowd->client);
    crowd->lock = new_lock(crowd->client, "door", LONG_MS);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(sneck_lock_acquire_start(&crowd->ops[i], crowd->lock, crowd->link,
                                                  SNECK_FOREVER), SNECK_OK);
}

static void disperse(struct crowd *crowd)
{
    for (size_t i = 0; i < MANY; i++)
        sneck_op_free(crowd->ops[i]);
    sneck_lock_free(crowd->lock);
    sneck_link_free(crowd->link);
    sneck_client_free(crowd->client);
}

static bool all_queue(sneck_client *other)
{
    return COMMAND_INTEGER(other, "ZCARD", "{door}:sneck:queue") == MANY;
}

/* How many connections are tried in a while; each changes the generation, once or twice. */
static void watch_attempts(struct crowd *crowd, struct own_server *server)
{
    int64_t begin_ms = clock_ms();
    kill_server(server);
    uint64_t before = sneck_link_generation(crowd->link);
    while (clock_ms() - begin_ms < 1500)
        step_once(crowd->link, 100);
    size_t attempts = (size_t)(sneck_link_generation(crowd->link) - before);
    size_t seconds = (size_t)(clock_ms() - begin_ms) / 1000 + 1;
    assert_in_range(attempts, 1, 20 + 4 * seconds);
}

/* `wakes`: they queue, and are told of grants; else they poll. */
static void wait_without_server(bool wakes)
{
    struct own_server server = {.pid = 0};
    struct crowd crowd;
    sneck_client *other = NULL;
    start_server(&server);
    assert_int_equal(sneck_client_new(&other, server.url, NULL, NULL), SNECK_OK);
    if (!wakes)
        DO(other, "ACL", "SETUSER", "default", "-subscribe");
    DO(other, "SET", "door", "another's");
    gather(&crowd, server.url);
    if (wakes) {
        STEP_UNTIL(crowd.link, all_queue(other));
    } else {
        sneck_stats stats = {.polls = 0};
        STEP_UNTIL(crowd.link, (sneck_client_stats(&stats, crowd.client), stats.polls > MANY));
    }
    watch_attempts(&crowd, &server);
    start_server(&server);
    STEP_UNTIL(crowd.link, sneck_op_status(crowd.ops[0]) == SNECK_OK ||
                           COMMAND_INTEGER(other, "EXISTS", "door") == 1);
    disperse(&crowd);
    sneck_client_free(other);
    remove_server(&server);
}

static void a_thousand_waiters_try_a_server_that_is_down_now_and_then(void **state)
{
    (void)state;
    wait_without_server(true);
}

static void a_thousand_that_poll_do_so_too(void **state)
{
    (void)state;
    wait_without_server(false);
}

static void a_server_that_has_no_place_for_now_is_tried_again(void **state)
{
    struct scene *scene = *state;
    sneck_op *op = NULL;
    sneck_stats stats;
    char most[24];
    settle(scene->client, scene->link);
    snprintf(most, sizeof most, "%lld", (long long)connections_of(scene->other));
    DO(scene->other, "CONFIG", "SET", "maxclients", most);
    assert_int_equal(sneck_lock_acquire_start(&op, scene->lock, scene->link, SNECK_FOREVER),
                     SNECK_OK);
    STEP_UNTIL(scene->link, server_number(scene->other, "stats", "rejected_connections") > 0);
    for (int i = 0; i < 10; i++)
        step_once(scene->link, 10); /* the refusal is read */
    sneck_client_stats(&stats, scene->client);
    assert_int_equal(stats.wakeups, SNECK_WAKEUPS_UNTRIED);
    DO(scene->other, "CONFIG", "SET", "maxclients", "10000");
    STEP_UNTIL(scene->link, count_waiters(scene) == 1);
    let_go(scene);
    assert_int_equal(end_op(op), SNECK_OK);
    assert_int_equal(sneck_lock_release(scene->lock), SNECK_OK);
}

static void a_script_that_is_new_to_the_server_is_sent_by_its_text_once(void **state)
{
    struct scene *scene = *state;
    sneck_op *ops[100];
    DO(scene->other, "SCRIPT", "FLUSH");
    DO(scene->other, "CONFIG", "RESETSTAT");
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(sneck_lock_holder_start(&ops[i], scene->lock, scene->link), SNECK_OK);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(end_op(ops[i]), SNECK_OK);
    assert_int_equal(calls_of(scene->other, "eval"), 1);
    assert_int_equal(sneck_lock_holder_start(&ops[0], scene->lock, scene->link), SNECK_OK);
    assert_int_equal(end_op(ops[0]), SNECK_OK);
    DO(scene->other, "SCRIPT", "FLUSH"); /* and again, on a connection where it was told */
    assert_int_equal(sneck_lock_holder_start(&ops[0], scene->lock, scene->link), SNECK_OK);
    assert_int_equal(end_op(ops[0]), SNECK_OK);
    assert_int_equal(calls_of(scene->other, "eval"), 2);
}

/* ------------------------------------------------------------------- interrupts */

struct caller {
    pthread_t thread;
    char channel[64];
    atomic_bool stop;
};

/* Sends to the link's inbox all the time. */
static void *call_out(void *data)
{
    struct caller *caller = data;
    sneck_client *client = new_client();
    sneck_link *link = new_link(client);
    while (!atomic_load(&caller->stop)) {
        sneck_op *ops[200];
        for (size_t i = 0; i < 200; i++)
            ops[i] = START(client, link, "PUBLISH", caller->channel, "nobody's 1 1");
        for (size_t i = 0; i < 200; i++)
            end_op(ops[i]);
    }
    sneck_link_free(link);
    sneck_client_free(client);
    return NULL;
}

static int stop_at_the_third(void *data)
{
    int *calls = data;
    return ++*calls == 3;
}

static void an_interrupt_is_asked_for_on_a_link_where_something_always_comes(void **state)
{
    struct scene *scene = *state;
    struct caller caller = {.channel = ""};
    sneck_op *op = NULL;
    int calls = 0;
    assert_int_equal(sneck_lock_acquire_start(&op, scene->lock, scene->link, SNECK_FOREVER),
                     SNECK_OK);
    STEP_UNTIL(scene->link, count_waiters(scene) == 1);
    sneck_reply *reply = COMMAND(scene->other, "PUBSUB", "CHANNELS", "sneck:inbox:*");
    snprintf(caller.channel, sizeof caller.channel, "%s", text_of(sneck_reply_item(reply, 0)));
    sneck_reply_free(reply);
    assert_int_equal(pthread_create(&caller.thread, NULL, call_out, &caller), 0);
    assert_int_equal(sneck_op_wait(op, stop_at_the_third, &calls), SNECK_INTERRUPTED);
    assert_int_equal(calls, 3);
    atomic_store(&caller.stop, true);
    pthread_join(caller.thread, NULL);
    sneck_op_free(op);
    let_go(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_held, tear_down)
        TEST(a_thousand_waiters_try_a_server_that_is_down_now_and_then),
        TEST(a_thousand_that_poll_do_so_too),
        TEST(a_server_that_has_no_place_for_now_is_tried_again),
        TEST(a_script_that_is_new_to_the_server_is_sent_by_its_text_once),
        TEST(an_interrupt_is_asked_for_on_a_link_where_something_always_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
