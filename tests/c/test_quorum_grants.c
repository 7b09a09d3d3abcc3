/* A token of a quorum's that comes late to a server, and one that is put back there. */
#include "five.h"

#include <signal.h>
#include <string.h>

#define LONG_MS 600000

static sneck_op *start_acquire(sneck_lock *lock, sneck_link *link, int64_t wait_ms)
{
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, wait_ms), SNECK_OK);
    return op;
}

static int acquire_on(sneck_lock *lock, sneck_link *link)
{
    return end_op(start_acquire(lock, link, 0));
}

static int release_on(sneck_lock *lock, sneck_link *link)
{
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_release_start(&op, lock, link), SNECK_OK);
    return end_op(op);
}

/* Until what is on its way to any server has been answered. */
static void quiesce(sneck_link *link)
{
    STEP_UNTIL(link, sneck_link_timeout_ms(link) < 0);
}

/* ------------------------------------------------------------ the grant that is late */

/* The last server stalls shortly. It then reads first what has come first, on the connection
 * that the release goes by. */
static void a_release_comes_behind_its_grant_whatever_link_it_goes_by(void **state)
{
    struct five *five = *state;
    sneck_link *first = new_link(five->client), *second = new_link(five->client);
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    sneck_lock *other = quorum_lock(five->client, "other", LONG_MS, false);
    for (int i = 0; i < 2; i++) {
        sneck_link *link = i ? second : first;
        assert_int_equal(acquire_on(lock, link), SNECK_OK);
        assert_int_equal(release_on(lock, link), SNECK_OK);
        STEP_UNTIL(link, sneck_link_quiet(link));
    }
    signal_some(five, 4, 1, SIGSTOP);
    assert_int_equal(acquire_on(other, second), SNECK_OK);
    assert_int_equal(acquire_on(lock, first), SNECK_OK);
    assert_int_equal(release_on(lock, second), SNECK_OK);
    sneck_link_step(first);
    signal_some(five, 4, 1, SIGCONT);
    quiesce(first);
    quiesce(second);
    assert_int_equal(found_on(five, "other"), FIVE);
    assert_int_equal(found_on(five, "door"), 0);
    assert_int_equal(release_on(other, second), SNECK_OK);
    sneck_link_free(first);
    sneck_link_free(second);
    sneck_lock_free(lock);
    sneck_lock_free(other);
}

/* The same by links of the pool: who waits has the one that was used last, and gives it back
 * before the release. */
static void a_release_takes_the_link_of_its_grant(void **state)
{
    struct five *five = *state;
    sneck_lock *lock = quorum_lock(five->client, "door", LONG_MS, false);
    sneck_lock *other = quorum_lock(five->client, "other", LONG_MS, false);
    sneck_lock *busy = quorum_lock(five->client, "busy", LONG_MS, false);
    sneck_op *first = start_acquire(lock, NULL, 0), *second = start_acquire(other, NULL, 0);
    assert_int_equal(end_op(first), SNECK_OK);
    assert_int_equal(end_op(second), SNECK_OK);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    assert_int_equal(sneck_lock_release(other), SNECK_OK);
    UNTIL(found_on(five, "door") + found_on(five, "other") == 0);
    occupy(five, "busy", 0, 3);
    signal_some(five, 4, 1, SIGSTOP);
    first = start_acquire(busy, NULL, SNECK_FOREVER);
    step_once(sneck_op_link(first), 10);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    sneck_op_free(first);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    signal_some(five, 4, 1, SIGCONT);
    UNTIL(COMMAND_INTEGER(five->each[4], "EXISTS", "door") == 0);
    assert_int_equal(sneck_lock_acquire(other, 0), SNECK_OK); /* what was sent is done */
    UNTIL(found_on(five, "other") == FIVE);
    assert_int_equal(found_on(five, "door"), 0);
    assert_int_equal(sneck_lock_release(other), SNECK_OK);
    sneck_lock_free(lock);
    sneck_lock_free(other);
    sneck_lock_free(busy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIVE(a_release_comes_behind_its_grant_whatever_link_it_goes_by),
        WITH_FIVE(a_release_takes_the_link_of_its_grant),
    };
    return cmocka_run_group_tests(tests, start_five, stop_five);
}
