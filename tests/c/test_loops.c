/* Thousands of ops on one link, as an event loop drives them: order, exactness, and what
 * is left behind when they are given up at any time. */
#include "door.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MANY_LIMIT_S 100
#define TURNS 10

/* A number of ops, a tenth of it where everything is slow: under valgrind, as the
 * environment says. */
static size_t many(size_t count)
{
    return getenv("SNECK_TEST_FEW") ? count / 10 : count;
}

static size_t fds; /* open before a test */

static int set_up(void **state)
{
    fds = count_fds();
    return set_up_held(state);
}

static int tear_down_all(void **state)
{
    tear_down(state);
    assert_int_equal(count_fds(), fds);
    return 0;
}

static void step_until_queued(struct scene *scene, int64_t count)
{
    WITHIN(MANY_LIMIT_S, count_waiters(scene) == count, step_once(scene->link, 10));
}

static void step_until_quiet(sneck_link *link)
{
    WITHIN(MANY_LIMIT_S, sneck_link_quiet(link), step_once(link, 100));
}

static sneck_op *start_acquire(sneck_lock *lock, sneck_link *link)
{
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, SNECK_FOREVER), SNECK_OK);
    return op;
}

/* --------------------------------------------------------- a counter under one lock */

/* A task acquires, reads the counter, writes what it read and 1, releases: ten times. */
struct task {
    size_t number;
    sneck_lock *lock;
    enum { ACQUIRING, READING, WRITING, RELEASING } doing;
    int turns;
};

struct tasks {
    struct scene *scene;
    struct task *all;
    size_t count, running;
    size_t grants;      /* so far; in order, the next is that of task `grants % count` */
    size_t out_of_order;
};

static void begin(struct tasks *tasks, struct task *task)
{
    task->doing = ACQUIRING;
    sneck_op_set_data(start_acquire(task->lock, tasks->scene->link), task);
}

static void start_reading(struct tasks *tasks, struct task *task)
{
    tasks->out_of_order += tasks->grants++ % tasks->count != task->number;
    task->doing = READING;
    sneck_op_set_data(START(tasks->scene->client, tasks->scene->link, "GET", "counter"), task);
}

static void start_writing(struct tasks *tasks, struct task *task, const sneck_reply *read)
{
    char next[24];
    snprintf(next, sizeof next, "%ld", strtol(text_of(read), NULL, 10) + 1);
    task->doing = WRITING;
    sneck_op_set_data(START(tasks->scene->client, tasks->scene->link, "SET", "counter", next),
                      task);
}

static void start_releasing(struct tasks *tasks, struct task *task)
{
    sneck_op *op = NULL;
    task->doing = RELEASING;
    assert_int_equal(sneck_lock_release_start(&op, task->lock, tasks->scene->link), SNECK_OK);
    sneck_op_set_data(op, task);
}

static void go_on(struct tasks *tasks, sneck_op *op)
{
    struct task *task = sneck_op_data(op);
    if (sneck_op_status(op) != SNECK_OK)
        fail_msg("%s", sneck_op_error(op));
    if (!task) { /* the release that let the first in */
        sneck_op_free(op);
        return;
    }
    switch (task->doing) {
    case ACQUIRING:
        start_reading(tasks, task);
        break;
    case READING:
        start_writing(tasks, task, sneck_op_reply(op));
        break;
    case WRITING:
        start_releasing(tasks, task);
        break;
    case RELEASING:
        if (++task->turns < TURNS)
            begin(tasks, task);
        else
            tasks->running--;
        break;
    }
    sneck_op_free(op);
}

static void run_tasks(struct tasks *tasks)
{
    time_t limit = time(NULL) + MANY_LIMIT_S;
    while (tasks->running > 0) {
        assert_true(time(NULL) < limit);
        step_once(tasks->scene->link, 100);
        for (sneck_op *op; (op = sneck_link_ended(tasks->scene->link));)
            go_on(tasks, op);
    }
}

/* Acquires it on the link itself: what that releases goes to its next waiter however long this
 * process does not run, while another's release gives a waiter 1 s to claim the lock. */
static void take_over(struct scene *scene)
{
    sneck_op *op = NULL;
    let_go(scene);
    assert_int_equal(sneck_lock_acquire_start(&op, scene->lock, scene->link, 0), SNECK_OK);
    assert_int_equal(end_op(op), SNECK_OK);
}

static void let_the_first_in(struct scene *scene)
{
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_release_start(&op, scene->lock, scene->link), SNECK_OK);
}

static void two_thousand_ops_on_one_link_count_exactly_and_in_their_order(void **state)
{
    struct scene *scene = *state;
    struct tasks tasks = {.scene = scene, .count = many(2000)};
    char expected[24];
    take_over(scene);
    tasks.all = calloc(tasks.count, sizeof *tasks.all);
    for (tasks.running = 0; tasks.running < tasks.count; tasks.running++) {
        struct task *task = &tasks.all[tasks.running];
        task->number = tasks.running;
        task->lock = new_lock(scene->client, "door", LONG_MS);
        begin(&tasks, task); /* before there is a connection: they queue in this order, too */
    }
    DO(scene->other, "SET", "counter", "0");
    step_until_queued(scene, (int64_t)tasks.count);
    let_the_first_in(scene);
    run_tasks(&tasks);
    snprintf(expected, sizeof expected, "%zu", tasks.count * TURNS);
    assert_value(scene->other, "counter", expected);
    assert_int_equal(tasks.grants, tasks.count * TURNS);
    assert_int_equal(tasks.out_of_order, 0);
    for (size_t i = 0; i < tasks.count; i++)
        sneck_lock_free(tasks.all[i].lock);
    free(tasks.all);
    DO(scene->other, "DEL", "counter");
    assert_nothing_is_left(scene);
}

/* --------------------------------------------------------------- giving up at random */

#define PLAYERS 100
#define DOORS 5

/* A player is idle, acquires, holds or releases; chance decides what it does next. */
struct player {
    sneck_lock *lock;
    sneck_op *op; /* under way, or NULL */
    bool holds, releasing;
};

struct game {
    sneck_link *link;
    struct player players[PLAYERS];
    unsigned seed;
    size_t cancels, acquired;
};

static size_t below(struct game *game, size_t limit)
{
    return (size_t)rand_r(&game->seed) % limit;
}

/* What an op has come to, cancelled or not. */
static void take_result(struct game *game, struct player *player)
{
    int status = sneck_op_status(player->op);
    if (player->releasing) {
        assert_true(status == SNECK_OK);
        player->holds = false;
    } else {
        assert_true(status == SNECK_OK || status == SNECK_INTERRUPTED);
        player->holds = status == SNECK_OK;
        game->acquired += player->holds;
    }
    sneck_op_free(player->op);
    player->op = NULL;
}

static void start(struct game *game, struct player *player)
{
    player->releasing = player->holds;
    if (player->holds)
        assert_int_equal(sneck_lock_release_start(&player->op, player->lock, game->link),
                         SNECK_OK);
    else
        player->op = start_acquire(player->lock, game->link);
    sneck_op_set_data(player->op, player);
}

/* Who has got a lock mostly does not keep it. */
static void take_results(struct game *game)
{
    for (sneck_op *op; (op = sneck_link_ended(game->link));) {
        struct player *player = sneck_op_data(op);
        take_result(game, player);
        if (player->holds && below(game, 4))
            start(game, player);
    }
}

/* Some are freed at once, and so are cancelled by that. */
static void give_up(struct game *game, struct player *player)
{
    game->cancels++;
    if (below(game, 4) == 0 && sneck_op_status(player->op) == SNECK_PENDING) {
        sneck_op_free(player->op);
        player->op = NULL;
    } else {
        sneck_op_cancel(player->op);
        take_result(game, player);
    }
}

static void play(struct game *game)
{
    struct player *player = &game->players[below(game, PLAYERS)];
    if (!player->op)
        start(game, player);
    else if (!player->releasing && below(game, 4) == 0)
        give_up(game, player);
}

static void release_the_rest(struct game *game)
{
    for (size_t i = 0; i < PLAYERS; i++) {
        struct player *player = &game->players[i];
        if (player->op && !player->releasing)
            give_up(game, player);
        if (!player->op && player->holds)
            start(game, player);
    }
    step_until_quiet(game->link);
    for (sneck_op *op; (op = sneck_link_ended(game->link));)
        take_result(game, sneck_op_data(op));
}

static void ten_thousand_ops_given_up_at_random_leave_nothing(void **state)
{
    struct scene *scene = *state;
    struct game game = {.link = scene->link, .seed = 7};
    size_t cancels = many(10000);
    let_go(scene);
    for (size_t i = 0; i < PLAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "door:%zu", i % DOORS);
        game.players[i].lock = new_lock(scene->client, name, LONG_MS);
    }
    while (game.cancels < cancels) {
        for (size_t moves = below(&game, 10); moves > 0; moves--)
            play(&game);
        /* now and then until an answer is there, so that some get somewhere */
        step_once(scene->link, below(&game, 4) ? 0 : 10);
        take_results(&game);
    }
    release_the_rest(&game);
    assert_nothing_is_left(scene);
    assert_true(game.acquired > cancels / 100); /* else all were given up too early */
    for (size_t i = 0; i < PLAYERS; i++) {
        assert_null(game.players[i].op);
        assert_int_equal(sneck_lock_token(game.players[i].lock, NULL, 0), 0);
        sneck_lock_free(game.players[i].lock);
    }
    assert_null(sneck_link_ended(scene->link));
}

static void a_grant_that_comes_after_its_op_was_cancelled_goes_to_the_next(void **state)
{
    struct scene *scene = *state;
    sneck_lock *leaver = new_lock(scene->client, "door", LONG_MS);
    sneck_lock *lock = new_lock(scene->client, "door", LONG_MS);
    sneck_op *leaving = start_acquire(leaver, scene->link);
    sneck_op *op = start_acquire(lock, scene->link);
    step_until_queued(scene, 2);
    let_go(scene); /* the server has given the lock to the first, which does not know yet */
    assert_int_equal(count_waiters(scene), 1);
    sneck_op_cancel(leaving);
    assert_int_equal(finish(scene->link, op), SNECK_OK);
    assert_int_equal(sneck_op_status(leaving), SNECK_INTERRUPTED);
    assert_int_equal(sneck_lock_token(leaver, NULL, 0), 0);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    assert_nothing_is_left(scene);
    sneck_op_free(leaving);
    sneck_op_free(op);
    sneck_lock_free(leaver);
    sneck_lock_free(lock);
}

/* ------------------------------------------------------------------- freeing a link */

/* Starts so many acquires, runs the steps, frees the link, and looks. */
static void free_with_pending(struct scene *scene, size_t count, int steps)
{
    sneck_link *link = new_link(scene->client);
    sneck_lock *lock = new_lock(scene->client, "door", LONG_MS);
    sneck_op **ops = calloc(count, sizeof(sneck_op *));
    for (size_t i = 0; i < count; i++)
        ops[i] = start_acquire(lock, link);
    for (int i = 0; i < steps; i++)
        step_once(link, 10);
    sneck_link_free(link);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(sneck_op_status(ops[i]), SNECK_INTERRUPTED);
        assert_null(sneck_op_link(ops[i]));
        sneck_op_free(ops[i]);
    }
    free(ops);
    sneck_lock_free(lock);
}

static void a_link_is_freed_with_a_thousand_ops_at_any_step(void **state)
{
    struct scene *scene = *state;
    for (int steps = 0; steps < 12; steps += 3)
        free_with_pending(scene, many(1000), steps);
    STEP_UNTIL(scene->link, count_inboxes(scene) == 0); /* the server has noticed it */
    while (count_waiters(scene) > 0) { /* it drops 1,000 at once */
        let_go(scene);
        assert_int_equal(sneck_lock_acquire(scene->held, 0), SNECK_OK);
    }
    let_go(scene);
    assert_nothing_is_left(scene);
}

/* ------------------------------------------------------------- a loop that is late */

#define TIMEOUT_MS 1000

static sneck_link *begin_late(struct scene *scene, sneck_client *client)
{
    sneck_link *link = new_link(client);
    sneck_reply_free(COMMAND(scene->other, "SETRANGE", "big", "4000000", "x"));
    assert_int_equal(end_op(START(client, link, "PING")), SNECK_OK);
    return link;
}

/* Does not step the link until the timeout is over; nothing fails by that. */
static void end_late(struct scene *scene, sneck_client *client, sneck_link *link, sneck_op *op)
{
    uint64_t generation = sneck_link_generation(link);
    sneck_link_step(link);
    nanosleep(&(struct timespec){1, 300000000}, NULL);
    assert_int_equal(finish(link, op), SNECK_OK);
    assert_int_equal(sneck_link_generation(link), generation);
    sneck_op_free(op);
    sneck_link_free(link);
    sneck_client_free(client);
    sneck_reply_free(COMMAND(scene->other, "DEL", "big"));
}

static void an_answer_that_has_begun_to_come_is_not_overdue_when_the_loop_was(void **state)
{
    sneck_client *client = new_client_within(TIMEOUT_MS);
    sneck_link *link = begin_late(*state, client);
    end_late(*state, client, link, START(client, link, "GET", "big"));
}

static void what_could_not_leave_yet_is_not_overdue_when_the_loop_was_late(void **state)
{
    static char much[4000000];
    sneck_client *client = new_client_within(TIMEOUT_MS);
    sneck_link *link = begin_late(*state, client);
    sneck_op *op = NULL;
    assert_int_equal(sneck_execute_start(&op, client, link, 3,
                                         (const void *const[]){"SET", "big", much},
                                         (const size_t[]){3, 3, sizeof much}), SNECK_OK);
    end_late(*state, client, link, op);
}

/* ------------------------------------------------------- what a loop is told */

static void an_op_carries_what_its_caller_gave_it(void **state)
{
    struct scene *scene = *state;
    int mine = 0;
    sneck_op *op = START(scene->client, scene->link, "PING");
    assert_null(sneck_op_data(op));
    sneck_op_set_data(op, &mine);
    assert_int_equal(finish(scene->link, op), SNECK_OK);
    assert_ptr_equal(sneck_op_data(op), &mine);
    sneck_op_free(op);
}

static void ops_are_told_once_in_the_order_in_which_they_ended(void **state)
{
    struct scene *scene = *state;
    sneck_lock *lock = new_lock(scene->client, "door", LONG_MS);
    sneck_op *waiting = start_acquire(lock, scene->link), *invalid = NULL;
    sneck_op *first = START(scene->client, scene->link, "PING");
    sneck_op *freed = START(scene->client, scene->link, "PING");
    sneck_op *second = START(scene->client, scene->link, "PING");
    assert_null(sneck_link_ended(scene->link));
    assert_int_equal(finish(scene->link, second), SNECK_OK);
    sneck_op_free(freed);
    sneck_op_cancel(waiting);
    assert_int_equal(sneck_lock_acquire_start(&invalid, lock, scene->link, -2), SNECK_OK);
    sneck_op *const expected[] = {first, second, waiting, invalid, NULL, NULL};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_ptr_equal(sneck_link_ended(scene->link), expected[i]);
    for (size_t i = 0; i < 4; i++)
        sneck_op_free(expected[i]);
    step_until_quiet(scene->link);
    sneck_lock_free(lock);
}

/* So that a loop which looks for them after each step does not sleep over them. */
static void a_link_asks_to_be_stepped_when_an_op_ends_outside_of_a_step(void **state)
{
    struct scene *scene = *state;
    sneck_lock *lock = new_lock(scene->client, "door", LONG_MS);
    sneck_op *waiting = start_acquire(lock, scene->link), *invalid = NULL;
    step_until_queued(scene, 1);
    step_until_quiet(scene->link);
    assert_true(sneck_link_timeout_ms(scene->link) > 0);
    assert_int_equal(sneck_lock_acquire_start(&invalid, lock, scene->link, -2), SNECK_OK);
    assert_int_equal(sneck_link_timeout_ms(scene->link), 0);
    sneck_link_step(scene->link);
    assert_true(sneck_link_timeout_ms(scene->link) > 0);
    sneck_op_cancel(waiting);
    assert_int_equal(sneck_link_timeout_ms(scene->link), 0);
    step_until_quiet(scene->link);
    assert_int_equal(sneck_link_timeout_ms(scene->link), -1);
    sneck_op *ping = START(scene->client, scene->link, "PING"); /* another one's wait steps */
    sneck_op *last = START(scene->client, scene->link, "PING");
    assert_int_equal(sneck_op_wait(last, NULL, NULL), SNECK_OK);
    assert_int_equal(sneck_op_status(ping), SNECK_OK);
    assert_int_equal(sneck_link_timeout_ms(scene->link), 0);
    sneck_op_free(ping);
    sneck_op_free(last);
    sneck_op_free(invalid);
    sneck_op_free(waiting);
    sneck_lock_free(lock);
}

static void a_link_is_quiet_when_its_cleanups_are_answered(void **state)
{
    struct scene *scene = *state;
    sneck_lock *lock = new_lock(scene->client, "window", LONG_MS);
    assert_true(sneck_link_quiet(scene->link));
    sneck_op *op = start_acquire(lock, scene->link);
    assert_false(sneck_link_quiet(scene->link));
    step_once(scene->link, 0);
    sneck_op_free(op);
    assert_false(sneck_link_quiet(scene->link));
    step_until_quiet(scene->link);
    let_go(scene);
    assert_nothing_is_left(scene);
    sneck_lock_free(lock);
}

static void a_waiter_that_stands_in_the_queue_is_quiet(void **state)
{
    struct scene *scene = *state;
    sneck_lock *lock = new_lock(scene->client, "door", LONG_MS);
    sneck_op *op = start_acquire(lock, scene->link);
    step_until_queued(scene, 1);
    step_until_quiet(scene->link);
    assert_int_equal(sneck_op_status(op), SNECK_PENDING);
    sneck_op_free(op);
    step_until_quiet(scene->link);
    sneck_lock_free(lock);
}

static uint64_t assert_other_generation(struct scene *scene, uint64_t before)
{
    uint64_t now = sneck_link_generation(scene->link);
    assert_true(now != before);
    return now;
}

static void a_link_tells_by_its_generation_of_every_socket(void **state)
{
    struct scene *scene = *state;
    uint64_t generation = sneck_link_generation(scene->link);
    settle(scene->client, scene->link);
    generation = assert_other_generation(scene, generation);
    settle(scene->client, scene->link);
    assert_int_equal(sneck_link_generation(scene->link), generation);
    sneck_lock *lock = new_lock(scene->client, "door", LONG_MS);
    sneck_op *op = start_acquire(lock, scene->link);
    step_until_queued(scene, 1); /* by the second socket */
    generation = assert_other_generation(scene, generation);
    assert_true(COMMAND_INTEGER(scene->other, "CLIENT", "KILL", "TYPE", "pubsub") > 0);
    let_go(scene);
    assert_int_equal(finish(scene->link, op), SNECK_OK);
    assert_other_generation(scene, generation);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    sneck_op_free(op);
    sneck_lock_free(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down_all)
        TEST(two_thousand_ops_on_one_link_count_exactly_and_in_their_order),
        TEST(ten_thousand_ops_given_up_at_random_leave_nothing),
        TEST(a_grant_that_comes_after_its_op_was_cancelled_goes_to_the_next),
        TEST(a_link_is_freed_with_a_thousand_ops_at_any_step),
        TEST(an_answer_that_has_begun_to_come_is_not_overdue_when_the_loop_was),
        TEST(what_could_not_leave_yet_is_not_overdue_when_the_loop_was_late),
        TEST(an_op_carries_what_its_caller_gave_it),
        TEST(ops_are_told_once_in_the_order_in_which_they_ended),
        TEST(a_link_asks_to_be_stepped_when_an_op_ends_outside_of_a_step),
        TEST(a_link_is_quiet_when_its_cleanups_are_answered),
        TEST(a_waiter_that_stands_in_the_queue_is_quiet),
        TEST(a_link_tells_by_its_generation_of_every_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
