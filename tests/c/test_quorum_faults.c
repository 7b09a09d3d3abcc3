/* A lock over five servers, some of which are down, stalled, or have forgotten. */
#include "five.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG_MS 600000

/* ------------------------------------------------------------------ servers are down */

static void two_servers_that_are_down_change_nothing(void **state)
{
    struct five *five = *state;
    sneck_holder holder;
    bool was_held;
    for (int warm = 0; warm < 2; warm++) {
        sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, true);
        if (warm)
            assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
        kill_some(five, 1, 2);
        if (!warm)
            assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
        assert_int_equal(sneck_lock_extend(lock, 0), SNECK_OK);
        assert_int_equal(sneck_lock_holder(&holder, lock), SNECK_OK);
        assert_true(holder.held && !holder.foreign);
        assert_int_equal(sneck_lock_release(lock), SNECK_OK);
        assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
        assert_int_equal(sneck_lock_force_release(&was_held, lock), SNECK_OK);
        assert_true(was_held);
        UNTIL(found_on(five, "door") == 0);
        sneck_lock_free(lock);
        revive(five);
    }
}

static void three_that_are_down_make_it_impossible(void **state)
{
    struct five *five = *state;
    sneck_holder holder;
    bool was_held;
    sneck_op *op = NULL;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    kill_some(five, 2, 3);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, NULL, 0), SNECK_OK);
    assert_int_equal(sneck_op_wait(op, NULL, NULL), SNECK_QUORUM);
    assert_in_range(errors_with(op, "Connection refused") + errors_with(op, "No such file"), 3, 3);
    assert_string_equal(sneck_op_member_error(op, 0), "");
    assert_string_equal(sneck_op_member_error(op, FIVE), "");
    for (size_t i = 2; i < FIVE; i++)
        assert_non_null(strstr(sneck_op_error(op), sneck_client_address(five->client, i)));
    sneck_op_free(op);
    int64_t begin_ms = clock_ms();
    assert_int_equal(sneck_lock_acquire(lock, 100), SNECK_QUORUM);
    assert_true(clock_ms() - begin_ms >= 99); /* they might have come back */
    assert_int_equal(found_on(five, "door"), 0);
    assert_int_equal(sneck_lock_holder(&holder, lock), SNECK_QUORUM);
    assert_int_equal(sneck_lock_force_release(&was_held, lock), SNECK_QUORUM);
    sneck_lock_free(lock);
}

/* Two hold another's token: they alone leave a majority of five, but not of four. */
static void who_answers_first_does_not_matter(void **state)
{
    struct five *five = *state;
    sneck_client *four = new_quorum(five, 4);
    sneck_lock *lock = quorum_lock(five->client, "door", 2000, false);
    sneck_lock *lock_of_four = quorum_lock(four, "door", 2000, false);
    occupy(five, "door", 0, 2);
    kill_some(five, 2, 1);
    signal_some(five, 3, 2, SIGSTOP);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_QUORUM);
    kill_some(five, 3, 2);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_QUORUM);
    assert_int_equal(sneck_lock_acquire(lock_of_four, 0), SNECK_BUSY);
    assert_int_equal(sneck_lock_acquire(lock_of_four, 0), SNECK_BUSY);
    sneck_lock_free(lock);
    sneck_lock_free(lock_of_four);
    sneck_client_free(four);
}

static void who_may_be_held_by_a_majority_is_not_called_free(void **state)
{
    struct five *five = *state;
    sneck_holder holder;
    sneck_op *op = NULL;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    kill_some(five, 2, 2);
    assert_int_equal(sneck_lock_holder(&holder, lock), SNECK_OK);
    assert_false(holder.held);
    occupy(five, "door", 0, 2);
    assert_int_equal(sneck_lock_holder_start(&op, lock, NULL), SNECK_OK);
    assert_int_equal(sneck_op_wait(op, NULL, NULL), SNECK_QUORUM);
    assert_non_null(strstr(sneck_op_error(op), "2 of 5 servers name the same holder"));
    assert_int_equal(errors_with(op, "Connection refused") + errors_with(op, "No such file"), 2);
    sneck_op_free(op);
    revive(five);
    assert_int_equal(sneck_lock_holder(&holder, lock), SNECK_OK);
    assert_false(holder.held); /* a minority's is nobody's */
    sneck_lock_free(lock);
}

static void a_waiter_gets_it_when_the_servers_come_back(void **state)
{
    struct five *five = *state;
    sneck_op *op = NULL;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    sneck_link *link = new_link(five->client);
    kill_some(five, 0, 3);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, SNECK_FOREVER), SNECK_OK);
    for (int i = 0; i < 30; i++)
        step_once(link, 5);
    assert_int_equal(sneck_op_status(op), SNECK_PENDING);
    revive(five);
    assert_int_equal(finish(link, op), SNECK_OK);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    sneck_link_free(link);
    sneck_lock_free(lock);
}

static void a_release_that_too_few_hear_can_be_repeated(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    UNTIL(found_on(five, "door") == FIVE);
    signal_some(five, 0, 3, SIGSTOP);
    assert_int_equal(sneck_lock_release(lock), SNECK_QUORUM);
    assert_true(sneck_lock_token(lock, NULL, 0) > 0);
    assert_int_equal(sneck_lock_lease(lock), SNECK_LEASE_UNCERTAIN);
    assert_int_equal(sneck_lock_extend(lock, 0), SNECK_NOT_OWNER);
    signal_some(five, 0, 3, SIGCONT);
    UNTIL(found_on(five, "door") == 0); /* what was sent comes through */
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    assert_int_equal(sneck_lock_token(lock, NULL, 0), 0);
    sneck_lock_free(lock);
}

static void a_release_that_nobody_hears_keeps_the_token(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    UNTIL(found_on(five, "door") == FIVE);
    kill_some(five, 0, FIVE);
    assert_int_equal(sneck_lock_release(lock), SNECK_QUORUM);
    assert_true(sneck_lock_token(lock, NULL, 0) > 0);
    revive(five);
    sneck_lock_release(lock); /* they have forgotten, or it was on its way */
    assert_int_equal(sneck_lock_token(lock, NULL, 0), 0);
    sneck_lock_free(lock);
}

/* ------------------------------------------------------------- releases that are late */

/* Five servers, of which the first has what was written also after it was killed. */
static void make_first_persistent(struct five *five, bool persistent)
{
    five->servers[0].persistent = persistent;
    kill_some(five, 0, 1);
    revive(five);
}

/* It has the lock's token; then it is killed. The client's connection is at rest: whoever uses
 * it next sees that it is gone. */
static void lose_a_holder(struct five *five, sneck_lock *lock)
{
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    UNTIL(found_on(five, "door") == FIVE);
    kill_some(five, 0, 1);
    pause_ms(150);
}

static void a_release_that_no_connection_took_waits_for_the_next(void **state)
{
    struct five *five = *state;
    sneck_holder holder;
    make_first_persistent(five, true);
    for (int stepped = 0; stepped < 2; stepped++) {
        sneck_op *op = NULL;
        sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
        sneck_lock *other = quorum_lock(five->client, "other", LONG_MS, false);
        sneck_link *link = stepped ? new_link(five->client) : NULL;
        lose_a_holder(five, lock);
        assert_int_equal(sneck_lock_release_start(&op, lock, link), SNECK_OK);
        assert_int_equal(sneck_op_wait(op, NULL, NULL), SNECK_OK);
        sneck_op_free(op);
        if (link)
            STEP_UNTIL(link, sneck_link_quiet(link)); /* it may be closed by now */
        else
            assert_int_equal(sneck_lock_holder(&holder, other), SNECK_OK); /* in vain, too */
        revive(five);
        assert_true(key_exists(five->each[0], "door"));
        assert_int_equal(sneck_lock_holder_start(&op, other, link), SNECK_OK);
        assert_int_equal(sneck_op_wait(op, NULL, NULL), SNECK_OK);
        sneck_op_free(op);
        if (link)
            STEP_UNTIL(link, found_on(five, "door") == 0);
        else
            UNTIL(found_on(five, "door") == 0);
        sneck_link_free(link);
        sneck_lock_free(other);
        sneck_lock_free(lock);
    }
    make_first_persistent(five, false);
}

/* What is told not to be done is not done later either: the lock is still held. */
static void a_release_that_certainly_failed_is_never_late(void **state)
{
    struct five *five = *state;
    make_first_persistent(five, true);
    sneck_client *client = new_quorum(five, 1);
    sneck_lock *lock = quorum_lock(client, "door", LONG_MS, false);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    kill_some(five, 0, 1);
    pause_ms(150);
    assert_int_equal(sneck_lock_release(lock), SNECK_QUORUM);
    assert_int_equal(sneck_lock_lease(lock), SNECK_LEASE_HELD);
    revive(five);
    assert_int_equal(sneck_lock_extend(lock, 0), SNECK_OK);
    assert_true(key_exists(five->each[0], "door"));
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    sneck_lock_free(lock);
    sneck_client_free(client);
    make_first_persistent(five, false);
}

/* The first server is down for all that time: only so much waits for it. */
static void releases_that_wait_have_a_bound(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    make_first_persistent(five, true);
    lose_a_holder(five, lock);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(sneck_lock_release(lock), SNECK_OK);
        assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    }
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    revive(five);
    DO(five->each[0], "CONFIG", "RESETSTAT");
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    UNTIL(calls_of(five->each[0], "eval") > 0); /* the first release was kept */
    UNTIL(found_on(five, "door") == FIVE);      /* and came before this acquire, as all have */
    assert_in_range(calls_of(five->each[0], "eval"), 1, 64);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    UNTIL(found_on(five, "door") == 0);
    sneck_lock_free(lock);
    make_first_persistent(five, false);
}

/* --------------------------------------------------------------- servers are stalled */

#define CYCLES 20

/* An acquire and a release; how long the slower of them took. */
static int64_t cycle_ms(sneck_lock *lock)
{
    int64_t begin_ms = clock_ms();
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    int64_t acquired_ms = clock_ms();
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    int64_t released_ms = clock_ms();
    return acquired_ms - begin_ms > released_ms - acquired_ms ? acquired_ms - begin_ms
                                                              : released_ms - acquired_ms;
}

static int compare_ms(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

static int64_t cycle(void *data)
{
    return cycle_ms(data);
}

static int64_t connect_and_cycle(void *data)
{
    sneck_client *client = new_quorum(data, FIVE);
    sneck_lock *lock = quorum_lock(client, "door", LONG_MS, false);
    int64_t took_ms = cycle_ms(lock);
    sneck_lock_free(lock);
    sneck_client_free(client);
    return took_ms;
}

/* Some of them may meet a moment in which the machine is busy. */
static int64_t median_ms(int64_t (*measure)(void *data), void *data)
{
    int64_t took_ms[CYCLES];
    for (int i = 0; i < CYCLES; i++)
        took_ms[i] = measure(data);
    qsort(took_ms, CYCLES, sizeof *took_ms, compare_ms);
    return took_ms[CYCLES / 2];
}

/* Whoever waited for who is stalled would do so for a second, in each cycle: that is how long
 * an attempt and a release wait for an answer. */
static void two_that_are_stalled_delay_nothing(void **state)
{
    struct five *five = *state;
    for (size_t first = 0; first < FIVE; first += 2) {
        sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, first == 2);
        cycle_ms(lock); /* its client's connections are among those that are counted */
        int64_t before = connections_of(five->each[first % FIVE]);
        int64_t before_next = connections_of(five->each[(first + 1) % FIVE]);
        signal_some(five, first, 2, SIGSTOP);
        assert_true(median_ms(connect_and_cycle, five) < 1000);
        assert_true(median_ms(cycle, lock) < 100);
        signal_some(five, first, 2, SIGCONT);
        /* what the clients that are gone have asked is done before they are seen to be gone */
        UNTIL(connections_of(five->each[first % FIVE]) <= before);
        UNTIL(connections_of(five->each[(first + 1) % FIVE]) <= before_next);
        UNTIL(found_on(five, "door") == 0); /* each release came behind its acquire */
        sneck_lock_free(lock);
    }
}

static int64_t scripts_run_by(sneck_client *client)
{
    return calls_of(client, "eval") + calls_of(client, "evalsha");
}

static void three_that_are_stalled_are_given_up_and_cleaned(void **state)
{
    struct five *five = *state;
    sneck_op *op = NULL;
    for (int warm = 0; warm < 2; warm++) {
        sneck_lock *lock = quorum_lock(five->client, "door", 10000, warm == 1);
        if (warm) {
            assert_int_equal(sneck_lock_acquire(lock, 60000), SNECK_OK);
            assert_int_equal(sneck_lock_release(lock), SNECK_OK);
        }
        UNTIL(found_on(five, "door") == 0);
        DO(five->each[2], "CONFIG", "RESETSTAT");
        signal_some(five, 1, 3, SIGSTOP);
        assert_int_equal(sneck_lock_acquire_start(&op, lock, NULL, 0), SNECK_OK);
        assert_int_equal(sneck_op_wait(op, NULL, NULL), SNECK_QUORUM);
        assert_int_equal(errors_with(op, "no answer within 500 ms"), 3); /* ttl / 20 */
        sneck_op_free(op);
        assert_int_equal(sneck_lock_token(lock, NULL, 0), 0);
        signal_some(five, 1, 3, SIGCONT);
        UNTIL(scripts_run_by(five->each[2]) > warm); /* the cleanup has come */
        UNTIL(found_on(five, "door") == 0);
        sneck_lock_free(lock);
    }
}

static void a_stalled_server_costs_no_connection(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    cycle_ms(lock);
    int64_t before = server_number(five->each[4], "stats", "total_connections_received");
    signal_some(five, 0, 2, SIGSTOP);
    for (int i = 0; i < 10; i++)
        cycle_ms(lock);
    signal_some(five, 0, 2, SIGCONT);
    assert_int_equal(server_number(five->each[4], "stats", "total_connections_received"), before);
    cycle_ms(lock);
    UNTIL(found_on(five, "door") == 0);
    sneck_lock_free(lock);
}

static void answers_that_come_after_the_ttl_win_nothing(void **state)
{
    struct five *five = *state;
    sneck_op *op = NULL;
    sneck_lock *lock = quorum_lock(five->client, "door", 2000, false);
    sneck_link *link = new_link(five->client);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, 60000), SNECK_OK);
    assert_int_equal(finish(link, op), SNECK_OK); /* connected now */
    sneck_op_free(op);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    STEP_UNTIL(link, sneck_link_quiet(link) && found_on(five, "door") == 0);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, 0), SNECK_OK);
    sneck_link_step(link); /* it leaves */
    pause_ms(2100);        /* and nobody reads the answers */
    assert_int_equal(finish(link, op), SNECK_TIMEOUT);
    assert_non_null(strstr(sneck_op_error(op), "took longer than the ttl of 2000 ms"));
    sneck_op_free(op);
    assert_int_equal(sneck_lock_token(lock, NULL, 0), 0);
    UNTIL(found_on(five, "door") == 0);
    sneck_link_free(link);
    sneck_lock_free(lock);
}

/* What was asked last gets a moment to be answered, a tenth of a second, not the i/o timeout. */
static void a_stalled_server_keeps_no_link_from_being_closed(void **state)
{
    struct five *five = *state;
    sneck_op *op = NULL;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    sneck_link *link = new_link(five->client);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, 0), SNECK_OK);
    assert_int_equal(finish(link, op), SNECK_OK);
    sneck_op_free(op);
    signal_some(five, 1, 2, SIGSTOP);
    assert_int_equal(sneck_lock_release_start(&op, lock, link), SNECK_OK);
    assert_false(sneck_link_quiet(link));
    assert_int_equal(finish(link, op), SNECK_OK);
    uint64_t generation = sneck_link_generation(link);
    while (!sneck_link_quiet(link)) {
        assert_in_range(sneck_link_timeout_ms(link), 0, 100);
        step_once(link, 60000);
    }
    assert_true(sneck_link_generation(link) == generation); /* no timeout has closed one */
    sneck_op_free(op);
    sneck_link_free(link);
    signal_some(five, 1, 2, SIGCONT);
    UNTIL(found_on(five, "door") == 0);
    sneck_lock_free(lock);
}

/* A port where nobody is let in: its line is full. */
static int full_port(char url[64], int waiting[8])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    snprintf(url, 64, "redis://127.0.0.1:%d", ntohs(at.sin_port));
    for (int i = 0; i < 8; i++) {
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(waiting[i], (struct sockaddr *)&at, len);
    }
    return fd;
}

/* A cycle on one link, in which the server was asked for nothing. */
static bool is_left_out(sneck_lock *lock, sneck_link *link, size_t server)
{
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, 0), SNECK_OK);
    assert_int_equal(sneck_op_wait(op, NULL, NULL), SNECK_OK);
    bool left_out = strstr(sneck_op_member_error(op, server), "still waits to leave") != NULL;
    sneck_op_free(op);
    assert_int_equal(sneck_lock_release_start(&op, lock, link), SNECK_OK);
    assert_int_equal(sneck_op_wait(op, NULL, NULL), SNECK_OK);
    sneck_op_free(op);
    return left_out;
}

/* The server connects for as long as the test lasts. */
static void what_waits_for_a_server_has_a_bound(void **state)
{
    struct five *five = *state;
    int waiting[8];
    char url[64];
    sneck_client *client = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS;
    options.connect_timeout_ms = LONG_MS;
    int fd = full_port(url, waiting);
    const char *urls[] = {five->servers[0].url, url, five->servers[1].url};
    assert_int_equal(sneck_quorum_new(&client, 3, urls, &options, NULL), SNECK_OK);
    sneck_lock *lock = quorum_lock(client, "door", LONG_MS, false);
    sneck_link *link = new_link(client);
    WITHIN(60, is_left_out(lock, link, 1), );
    sneck_link_free(link);
    sneck_lock_free(lock);
    sneck_client_free(client);
    for (int i = 0; i < 8; i++)
        close(waiting[i]);
    close(fd);
}

/* --------------------------------------------------------- servers that say other things */

/* Whoever waits for a busy lock cleans up after each attempt. */
static void cleanups_do_not_carry_the_script(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    cycle_ms(lock);
    UNTIL(found_on(five, "door") == 0);
    pause_ms(150); /* idle for longer, a connection is read before it is used */
    occupy(five, "door", 0, FIVE);
    DO(five->each[4], "CONFIG", "RESETSTAT");
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_BUSY);
    UNTIL(scripts_run_by(five->each[4]) == 2);
    DO(five->each[4], "CONFIG", "RESETSTAT"); /* it knows the one that asks who holds it, too */
    for (int i = 0; i < 5; i++)
        assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_BUSY);
    UNTIL(scripts_run_by(five->each[4]) == 10);
    assert_int_equal(calls_of(five->each[4], "eval"), 0);
    sneck_lock_free(lock);
}

static void errors_of_a_majority_end_the_wait(void **state)
{
    struct five *five = *state;
    sneck_op *op = NULL;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, true);
    for (size_t i = 0; i < 2; i++)
        DO(five->each[i], "LPUSH", "door", "no lock");
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    DO(five->each[2], "LPUSH", "door", "no lock");
    assert_int_equal(sneck_lock_acquire_start(&op, lock, NULL, SNECK_FOREVER), SNECK_OK);
    assert_int_equal(sneck_op_wait(op, NULL, NULL), SNECK_QUORUM);
    assert_int_equal(errors_with(op, "WRONGTYPE"), 3);
    sneck_op_free(op);
    UNTIL(found_on(five, "door") == 3);
    sneck_lock_free(lock);
}

/* Without a delay after a restart, or persistence, servers that forget break exclusion:
 * a minority does not, and has the token again after an extend. */
static void one_server_that_restarts_empty_breaks_nothing(void **state)
{
    struct five *five = *state;
    sneck_client *client = new_quorum(five, FIVE);
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    sneck_lock *other = quorum_lock(client, "door", LONG_MS, false);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    UNTIL(found_on(five, "door") == FIVE);
    kill_some(five, 0, 2);
    revive(five);
    assert_int_equal(sneck_lock_acquire(other, 0), SNECK_BUSY);
    UNTIL(found_on(five, "door") == 3);
    UNTIL(sneck_lock_extend(lock, 0) == SNECK_OK && found_on(five, "door") == FIVE);
    kill_some(five, 2, 1);
    revive(five);
    assert_int_equal(sneck_lock_extend(lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    UNTIL(found_on(five, "door") == 0);
    sneck_lock_free(lock);
    sneck_lock_free(other);
    sneck_client_free(client);
}

static void a_restart_between_two_calls_is_no_error(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    cycle_ms(lock);
    kill_some(five, 0, FIVE);
    revive(five);
    for (size_t i = 0; i < FIVE; i++)
        UNTIL(server_number(five->each[i], "server", "process_id") == five->servers[i].pid);
    pause_ms(150); /* idle for longer, a connection is looked at before it is used */
    cycle_ms(lock);
    UNTIL(found_on(five, "door") == 0);
    sneck_lock_free(lock);
}

/* The release ends when three have answered; no server may keep the token for want of
 * its script. */
static void servers_that_know_no_script_keep_no_token(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    for (int i = 0; i < 10; i++) {
        kill_some(five, (size_t)i, 2);
        revive(five);
        cycle_ms(lock);
        UNTIL(found_on(five, "door") == 0);
    }
    sneck_lock_free(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIVE(two_servers_that_are_down_change_nothing),
        WITH_FIVE(three_that_are_down_make_it_impossible),
        WITH_FIVE(who_answers_first_does_not_matter),
        WITH_FIVE(who_may_be_held_by_a_majority_is_not_called_free),
        WITH_FIVE(a_waiter_gets_it_when_the_servers_come_back),
        WITH_FIVE(a_release_that_too_few_hear_can_be_repeated),
        WITH_FIVE(a_release_that_nobody_hears_keeps_the_token),
        WITH_FIVE(a_release_that_no_connection_took_waits_for_the_next),
        WITH_FIVE(a_release_that_certainly_failed_is_never_late),
        WITH_FIVE(releases_that_wait_have_a_bound),
        WITH_FIVE(two_that_are_stalled_delay_nothing),
        WITH_FIVE(three_that_are_stalled_are_given_up_and_cleaned),
        WITH_FIVE(a_stalled_server_costs_no_connection),
        WITH_FIVE(a_stalled_server_keeps_no_link_from_being_closed),
        WITH_FIVE(what_waits_for_a_server_has_a_bound),
        WITH_FIVE(cleanups_do_not_carry_the_script),
        WITH_FIVE(answers_that_come_after_the_ttl_win_nothing),
        WITH_FIVE(errors_of_a_majority_end_the_wait),
        WITH_FIVE(one_server_that_restarts_empty_breaks_nothing),
        WITH_FIVE(a_restart_between_two_calls_is_no_error),
        WITH_FIVE(servers_that_know_no_script_keep_no_token),
    };
    return cmocka_run_group_tests(tests, start_five, stop_five);
}
