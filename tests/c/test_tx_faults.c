/* A transaction step by step, with a fault at each step: cancelled, freed, its
 * connection killed, its client closed. Whatever is said to be done is done once,
 * whatever is said not to be done is not, and nothing is left on a connection. */
#include "support.h"

enum fault { CANCEL, FREE, KILL, CLOSE, FAULTS };
enum manner { PLAIN, GUARDED, IN_TURN, MANNERS };

struct scene {
    sneck_client *client, *other;
    sneck_lock *guard;
    sneck_tx *tx;
    enum fault fault;
    int steps;   /* before it happens */
    bool fired;
    int status;  /* how the transaction ended */
};

static int set_up(void **state)
{
    static struct scene scene;
    empty_server(state);
    scene = (struct scene){.other = new_client()};
    *state = &scene;
    return 0;
}

static int tear_down(void **state)
{
    sneck_client_free(((struct scene *)*state)->other);
    return 0;
}

/* ------------------------------------------------------------------- the faults */

static void fire(struct scene *scene, sneck_op *op)
{
    scene->fired = true;
    switch (scene->fault) {
    case CANCEL:
        sneck_op_cancel(op);
        break;
    case FREE:
        sneck_tx_free(scene->tx);
        scene->tx = NULL;
        break;
    case KILL:
        kill_others(scene->other);
        return;
    default:
        sneck_client_close(scene->client);
        return;
    }
    assert_int_not_equal(sneck_op_status(op), SNECK_PENDING);
}

/* Steps the op to its end; the fault comes first if it is due. */
static int run(struct scene *scene, sneck_op *op)
{
    while (sneck_op_status(op) == SNECK_PENDING) {
        if (scene->steps-- == 0)
            fire(scene, op);
        else
            step_once(sneck_op_link(op), 1000);
    }
    int status = sneck_op_status(op);
    assert_true(status == SNECK_OK || sneck_op_error(op)[0]);
    sneck_op_free(op);
    return status;
}

static int begin(struct scene *scene)
{
    sneck_op *op = NULL;
    assert_int_equal(sneck_tx_begin_start(&op, scene->tx), SNECK_OK);
    return run(scene, op);
}

static int commit(struct scene *scene)
{
    sneck_op *op = NULL;
    assert_int_equal(sneck_tx_commit_start(&op, scene->tx), SNECK_OK);
    return run(scene, op);
}

/* Reads, meets a conflict the first time, and counts its commits. */
static int attempt(struct scene *scene)
{
    int status = begin(scene);
    if (status != SNECK_OK)
        return status == SNECK_CONFLICT ? SNECK_TIMEOUT : status;
    status = run(scene, READ_START(scene->tx, "GET", "a"));
    if (status != SNECK_OK)
        return status;
    if (sneck_tx_conflicts(scene->tx) == 0)
        DO(scene->other, "SET", "a", "theirs");
    assert_int_equal(QUEUE(scene->tx, "SET", "a", "ours"), SNECK_OK);
    assert_int_equal(QUEUE(scene->tx, "INCR", "commits"), SNECK_OK);
    return commit(scene);
}

static void transact(struct scene *scene)
{
    do
        scene->status = attempt(scene);
    while (scene->status == SNECK_CONFLICT);
    if (!scene->tx)
        return;
    sneck_op *op = NULL;
    assert_int_equal(sneck_tx_unwatch_start(&op, scene->tx), SNECK_OK);
    int left = run(scene, op);
    if (scene->tx && scene->fault == KILL)
        assert_int_equal(left, SNECK_OK);
    sneck_tx_free(scene->tx);
    scene->tx = NULL;
}

/* -------------------------------------------------------------------- the scenes */

static void prepare(struct scene *scene, enum manner manner)
{
    sneck_tx_options options = SNECK_TX_OPTIONS;
    DO(scene->other, "DEL", "a", "commits");
    scene->client = new_client();
    DO(scene->client, "PING");
    scene->guard = new_lock(scene->client, "door", 60000);
    if (manner == GUARDED) {
        DO(scene->other, "DEL", "door");
        assert_int_equal(sneck_lock_acquire(scene->guard, 0), SNECK_OK);
        options.guard = scene->guard;
    }
    if (manner == IN_TURN) /* of somebody who died */
        DO(scene->other, "SET", "{a}:sneck:order", "somebody", "PX", "20");
    assert_int_equal(sneck_tx_new(&scene->tx, scene->client, 1, (const void *const[]){"a"},
                                  (const size_t[]){1}, &options, NULL), SNECK_OK);
}

static void assert_outcome(struct scene *scene)
{
    bool done = key_exists(scene->other, "commits");
    if (done)
        assert_value(scene->other, "commits", "1");
    switch (scene->status) {
    case SNECK_OK:
        assert_true(done);
        break;
    case SNECK_UNKNOWN:
        assert_true(scene->fired);
        break;
    case SNECK_INTERRUPTED:
        assert_true(scene->fault == CANCEL || scene->fault == FREE);
        assert_false(done);
        break;
    case SNECK_INVALID:
        assert_int_equal(scene->fault, CLOSE);
        assert_false(done);
        break;
    default:
        fail_msg("%s", sneck_status_name(scene->status));
    }
}

static int echo(sneck_tx *tx, void *data)
{
    sneck_reply *reply = NULL;
    (void)data;
    if (READ(&reply, tx, "ECHO", "mine") != SNECK_OK)
        return SNECK_CONFLICT; /* killed before, which nobody had noticed yet */
    assert_string_equal(text_of(reply), "mine");
    sneck_reply_free(reply);
    return QUEUE(tx, "ECHO", "queued");
}

/* The pool's connections watch nothing, are in no MULTI and owe no reply. */
static void assert_clean(struct scene *scene)
{
    sneck_reply *results = NULL;
    char error[SNECK_ERROR_SIZE] = "";
    sneck_tx_options options = SNECK_TX_OPTIONS;
    options.attempts = scene->fault == KILL ? 3 : 1; /* a killed one is not known yet */
    DO(scene->other, "SET", "a", "changed");
    if (sneck_transact(&results, scene->client, 0, NULL, NULL, &options, echo, NULL, error))
        fail_msg("%s", error);
    assert_string_equal(text_of(sneck_reply_item(results, 0)), "queued");
    sneck_reply_free(results);
}

/* Once for each step at which the fault can come, until it comes too late. */
static void at_each_step(struct scene *scene, enum fault fault, enum manner manner)
{
    int at = -1;
    do {
        assert_true(++at < 500);
        prepare(scene, manner);
        scene->fault = fault;
        scene->steps = at;
        scene->fired = false;
        transact(scene);
        assert_outcome(scene);
        if (fault != CLOSE)
            assert_clean(scene);
        sneck_lock_free(scene->guard);
        sneck_client_free(scene->client);
    } while (scene->fired);
    assert_int_equal(scene->status, SNECK_OK);
    assert_true(at > 5);
}

#define AT_EACH_STEP(name, fault)                                              \
    static void name(void **state)                                             \
    {                                                                          \
        for (enum manner manner = PLAIN; manner < MANNERS; manner++)           \
            at_each_step(*state, fault, manner);                               \
    }

AT_EACH_STEP(it_may_be_cancelled_at_each_step, CANCEL)
AT_EACH_STEP(it_may_be_freed_at_each_step, FREE)
AT_EACH_STEP(its_connection_may_be_killed_at_each_step, KILL)
AT_EACH_STEP(its_client_may_be_closed_at_each_step, CLOSE)

/* ---------------------------------------------------------------- the commit itself */

/* Begins, and starts a commit that the server has got but does not answer yet. */
static sneck_op *commit_into_a_pause(struct scene *scene, bool sent)
{
    sneck_op *op = NULL;
    scene->steps = -1;
    prepare(scene, PLAIN);
    assert_int_equal(begin(scene), SNECK_OK);
    assert_int_equal(run(scene, READ_START(scene->tx, "GET", "a")), SNECK_OK);
    assert_int_equal(QUEUE(scene->tx, "INCR", "commits"), SNECK_OK);
    DO(scene->other, "CLIENT", "PAUSE", "60000", "WRITE");
    assert_int_equal(sneck_tx_commit_start(&op, scene->tx), SNECK_OK);
    if (sent)
        step_once(sneck_op_link(op), 0);
    return op;
}

static void end_the_pause(struct scene *scene, sneck_op *op)
{
    DO(scene->other, "CLIENT", "UNPAUSE");
    sneck_op_free(op);
    sneck_tx_free(scene->tx);
    sneck_lock_free(scene->guard);
    assert_clean(scene);
    sneck_client_free(scene->client);
}

static void a_commit_that_has_left_is_unknown_when_it_is_cancelled(void **state)
{
    struct scene *scene = *state;
    sneck_op *op = commit_into_a_pause(scene, true);
    sneck_op_cancel(op);
    assert_int_equal(sneck_op_status(op), SNECK_UNKNOWN);
    assert_int_equal(begin(scene), SNECK_INVALID); /* not made again */
    end_the_pause(scene, op);
    op = commit_into_a_pause(scene, true);
    sneck_tx_free(scene->tx);
    scene->tx = NULL;
    assert_int_equal(sneck_op_status(op), SNECK_UNKNOWN);
    end_the_pause(scene, op);
}

static void a_commit_that_has_not_left_never_will_when_it_is_cancelled(void **state)
{
    struct scene *scene = *state;
    sneck_op *op = commit_into_a_pause(scene, false);
    sneck_link *link = sneck_op_link(op);
    sneck_op_cancel(op);
    assert_int_equal(sneck_op_status(op), SNECK_INTERRUPTED);
    step_once(link, 0); /* as a loop may that does not know yet */
    step_once(link, 0);
    end_the_pause(scene, op);
    assert_false(key_exists(scene->other, "commits"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(it_may_be_cancelled_at_each_step),
        TEST(it_may_be_freed_at_each_step),
        TEST(its_connection_may_be_killed_at_each_step),
        TEST(its_client_may_be_closed_at_each_step),
        TEST(a_commit_that_has_left_is_unknown_when_it_is_cancelled),
        TEST(a_commit_that_has_not_left_never_will_when_it_is_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
