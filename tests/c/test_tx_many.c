/* Thousands of tasks that add by compare-and-set, driven by one loop on a few connections:
 * each adds exactly once each time, and nothing is left behind. */
#include "support.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define TASKS 2000
#define TURNS 10
#define ADDERS 8 /* transactions at the same time, each with a connection */
#define TOTAL (TASKS * TURNS)
#define MANY_LIMIT_S 100

/* Runs one task's addition after the other. */
struct adder {
    sneck_tx *tx;
    sneck_op *op; /* under way */
    enum { BEGINNING, READING, COMMITTING } doing;
    long seen;
    size_t task; /* whose addition it is */
};

struct crowd {
    sneck_client *client;
    struct adder adders[ADDERS];
    size_t next;         /* the addition that is begun next, that of task `next % TASKS` */
    size_t added[TASKS]; /* by each task */
    size_t times[TOTAL]; /* how often a value was the one before an addition */
    size_t done;
};

static void begin_attempt(struct adder *adder)
{
    adder->doing = BEGINNING;
    assert_int_equal(sneck_tx_begin_start(&adder->op, adder->tx), SNECK_OK);
}

/* In the order in which the tasks came, as long as there are any. */
static void take_next(struct crowd *crowd, struct adder *adder)
{
    sneck_tx_options options = SNECK_TX_OPTIONS;
    char error[SNECK_ERROR_SIZE];
    options.attempts = 1000;
    options.wait_ms = SNECK_FOREVER;
    sneck_tx_free(adder->tx);
    adder->tx = NULL;
    if (crowd->next == TOTAL)
        return;
    adder->task = crowd->next++ % TASKS;
    assert_int_equal(sneck_tx_new(&adder->tx, crowd->client, 1, (const void *const[]){"counter"},
                                  (const size_t[]){7}, &options, error), SNECK_OK);
    begin_attempt(adder);
}

static void write_next(struct adder *adder, const sneck_reply *read)
{
    char value[24];
    adder->seen = strtol(text_of(read), NULL, 10);
    snprintf(value, sizeof value, "%ld", adder->seen + 1);
    assert_int_equal(QUEUE(adder->tx, "SET", "counter", value), SNECK_OK);
}

static void count_addition(struct crowd *crowd, const struct adder *adder)
{
    assert_in_range(adder->seen, 0, TOTAL - 1);
    crowd->times[adder->seen]++;
    crowd->added[adder->task]++;
    crowd->done++;
}

static void go_on(struct crowd *crowd, struct adder *adder)
{
    sneck_op *ended = adder->op;
    int status = sneck_op_status(ended);
    adder->op = NULL;
    if (status != SNECK_OK && !(adder->doing == COMMITTING && status == SNECK_CONFLICT))
        fail_msg("%s", sneck_op_error(ended));
    switch (adder->doing) {
    case BEGINNING:
        adder->doing = READING;
        adder->op = READ_START(adder->tx, "GET", "counter");
        break;
    case READING:
        write_next(adder, sneck_op_reply(ended));
        adder->doing = COMMITTING;
        assert_int_equal(sneck_tx_commit_start(&adder->op, adder->tx), SNECK_OK);
        break;
    case COMMITTING:
        if (status == SNECK_OK) {
            count_addition(crowd, adder);
            take_next(crowd, adder);
        } else {
            begin_attempt(adder);
        }
        break;
    }
    sneck_op_free(ended);
}

static void go_on_where_possible(struct crowd *crowd)
{
    for (size_t i = 0; i < ADDERS; i++) {
        struct adder *adder = &crowd->adders[i];
        while (adder->op && sneck_op_status(adder->op) != SNECK_PENDING)
            go_on(crowd, adder);
    }
}

/* One poll(2) for the links of all; each op's link is its own, and gone with its end. */
static void step_all(struct crowd *crowd)
{
    struct pollfd fds[ADDERS * SNECK_LINK_FDS];
    nfds_t count = 0;
    int64_t timeout_ms = 1000;
    for (size_t i = 0; i < ADDERS; i++) {
        if (!crowd->adders[i].op)
            continue;
        sneck_link *link = sneck_op_link(crowd->adders[i].op);
        int64_t own_ms = sneck_link_timeout_ms(link);
        count += (nfds_t)sneck_link_fds(link, fds + count);
        timeout_ms = own_ms >= 0 && own_ms < timeout_ms ? own_ms : timeout_ms;
    }
    poll(fds, count, (int)timeout_ms);
    for (size_t i = 0; i < ADDERS; i++)
        if (crowd->adders[i].op)
            sneck_link_step(sneck_op_link(crowd->adders[i].op));
}

static void two_thousand_tasks_add_exactly_by_compare_and_set(void **state)
{
    (void)state;
    size_t fds = count_fds();
    struct crowd *crowd = calloc(1, sizeof *crowd);
    sneck_client *other = new_client();
    char expected[24];
    crowd->client = new_client();
    DO(other, "SET", "counter", "0");
    for (size_t i = 0; i < ADDERS; i++)
        take_next(crowd, &crowd->adders[i]);
    go_on_where_possible(crowd);
    WITHIN(MANY_LIMIT_S, crowd->done == TOTAL,
           (step_all(crowd), go_on_where_possible(crowd)));
    snprintf(expected, sizeof expected, "%d", TOTAL);
    assert_value(other, "counter", expected);
    for (size_t i = 0; i < TASKS; i++)
        assert_int_equal(crowd->added[i], TURNS);
    for (size_t i = 0; i < TOTAL; i++)
        assert_int_equal(crowd->times[i], 1);
    DO(other, "DEL", "counter");
    assert_int_equal(COMMAND_INTEGER(other, "DBSIZE"), 0); /* no turn, and nobody in its queue */
    sneck_client_free(crowd->client);
    sneck_client_free(other);
    free(crowd);
    assert_int_equal(count_fds(), fds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(two_thousand_tasks_add_exactly_by_compare_and_set, empty_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
