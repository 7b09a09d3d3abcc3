/* Transactions: what is a conflict, what ends one, and what it leaves behind. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#define GIVE_UP 77 /* a body's own status */

struct scene {
    sneck_client *client, *other;
    sneck_tx_options options;
    sneck_tx_report report;
    char error[SNECK_ERROR_SIZE];
    sneck_reply *results;

    void (*change)(struct scene *); /* what others do between read and commit */
    int changes;                    /* in so many runs */
    int runs;
    int end;                        /* how the body ends */
    int64_t id;                     /* of the connection */
    int64_t expiry_ms;
};

static int set_up(void **state)
{
    static struct scene scene;
    empty_server(state);
    scene = (struct scene){.client = new_client(), .other = new_client(),
                           .options = SNECK_TX_OPTIONS, .changes = 1};
    scene.options.report = &scene.report;
    sneck_reply_free(COMMAND(scene.other, "SET", "a", "1"));
    *state = &scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    sneck_reply_free(scene->results);
    sneck_client_free(scene->client);
    sneck_client_free(scene->other);
    return 0;
}

static int transact(struct scene *scene, const char *key, sneck_tx_body *body)
{
    size_t len = key ? strlen(key) : 0;
    scene->runs = 0;
    scene->error[0] = '\0';
    sneck_reply_free(scene->results);
    scene->results = NULL;
    return sneck_transact(&scene->results, scene->client, key != NULL,
                          (const void *const[]){key}, &len, &scene->options, body, scene,
                          scene->error);
}

/* Reads "a", lets others change things, and writes "ours". */
static int write_ours(sneck_tx *tx, void *data)
{
    struct scene *scene = data;
    sneck_reply *reply = NULL;
    assert_int_equal(sneck_tx_conflicts(tx), scene->runs);
    int status = READ(&reply, tx, "GET", "a");
    if (status != SNECK_OK)
        return status;
    sneck_reply_free(reply);
    if (scene->runs++ < scene->changes && scene->change)
        scene->change(scene);
    assert_int_equal(QUEUE(tx, "SET", "a", "ours"), SNECK_OK);
    return scene->end;
}

/* ------------------------------------------------------------------ conflicts */

static void back_and_forth(struct scene *scene)
{
    DO(scene->other, "SET", "a", "2");
    DO(scene->other, "SET", "a", "1");
}

static void to_the_same(struct scene *scene)
{
    DO(scene->other, "SET", "a", "1");
}

static void delete(struct scene *scene)
{
    DO(scene->other, "DEL", "a");
}

static void flush(struct scene *scene)
{
    DO(scene->other, "FLUSHALL");
}

static void write_by_us(struct scene *scene)
{
    DO(scene->client, "SET", "a", "2");
}

static void any_change_of_a_watched_key_is_a_conflict(void **state)
{
    struct scene *scene = *state;
    void (*const changes[])(struct scene *) = {
        back_and_forth, to_the_same, delete, flush, write_by_us,
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        DO(scene->other, "SET", "a", "1");
        scene->change = changes[i];
        assert_int_equal(transact(scene, "a", write_ours), SNECK_OK);
        assert_int_equal(scene->runs, 2);
        assert_int_equal(scene->report.attempts, 2);
        assert_value(scene->other, "a", "ours");
    }
}

static void a_key_that_comes_to_be_is_a_conflict(void **state)
{
    struct scene *scene = *state;
    scene->change = to_the_same;
    DO(scene->other, "DEL", "a");
    assert_int_equal(transact(scene, "a", write_ours), SNECK_OK);
    assert_int_equal(scene->runs, 2);
}

/* Waits as long as a key lives that is made now; what was made before with the same
 * time to live has ended then, and nobody has looked at it. */
static void wait_for_expiry(struct scene *scene)
{
    char ms[24];
    snprintf(ms, sizeof ms, "%lld", (long long)scene->expiry_ms);
    DO(scene->other, "SET", "clock", "x", "PX", ms);
    while (key_exists(scene->other, "clock"))
        continue;
}

/* Returns GIVE_UP if the key had ended before it could be read. */
static int read_before_expiry(sneck_tx *tx, void *data)
{
    struct scene *scene = data;
    sneck_reply *reply = NULL;
    assert_int_equal(READ(&reply, tx, "GET", "a"), SNECK_OK);
    bool there = sneck_reply_kind(reply) != SNECK_REPLY_NIL;
    sneck_reply_free(reply);
    if (scene->runs == 0 && !there)
        return GIVE_UP;
    assert_true(there == (scene->runs == 0));
    if (scene->runs++ == 0)
        wait_for_expiry(scene);
    return QUEUE(tx, "SET", "a", "ours");
}

static void an_expiry_is_a_conflict(void **state)
{
    struct scene *scene = *state;
    char ms[24];
    int status = GIVE_UP;
    for (scene->expiry_ms = 50; status == GIVE_UP; scene->expiry_ms *= 4) {
        snprintf(ms, sizeof ms, "%lld", (long long)scene->expiry_ms);
        DO(scene->other, "SET", "a", "1", "PX", ms);
        status = transact(scene, "a", read_before_expiry);
    }
    assert_int_equal(status, SNECK_OK);
    assert_int_equal(scene->runs, 2);
}

static void a_key_that_has_expired_is_absent_and_no_conflict(void **state)
{
    struct scene *scene = *state;
    scene->expiry_ms = 5;
    scene->options.attempts = 1;
    DO(scene->other, "SET", "a", "1", "PX", "5");
    wait_for_expiry(scene);
    assert_int_equal(transact(scene, "a", write_ours), SNECK_OK);
}

static int watch_more(sneck_tx *tx, void *data)
{
    struct scene *scene = data;
    sneck_reply *reply = NULL;
    for (char key[] = "b"; *key <= 'd'; ++*key) {
        assert_int_equal(sneck_tx_watch(tx, key, 1), SNECK_OK);
        assert_int_equal(READ(&reply, tx, "GET", key), SNECK_OK);
        sneck_reply_free(reply);
    }
    if (scene->runs++ == 0)
        scene->change(scene);
    return QUEUE(tx, "SET", "a", "ours");
}

static void change_c(struct scene *scene)
{
    DO(scene->other, "SET", "c", "2");
}

static void keys_watched_later_count_too(void **state)
{
    struct scene *scene = *state;
    scene->change = change_c;
    assert_int_equal(transact(scene, "a", watch_more), SNECK_OK);
    assert_int_equal(scene->runs, 2);
    scene->change = to_the_same;
    assert_int_equal(transact(scene, "a", watch_more), SNECK_OK);
    assert_int_equal(scene->runs, 2);
}

/* --------------------------------------------------------------------- bounds */

static void the_body_runs_exactly_as_often_as_is_allowed(void **state)
{
    struct scene *scene = *state;
    scene->change = back_and_forth;
    scene->changes = 1000;
    scene->options.wait_ms = SNECK_FOREVER;
    for (int attempts = 1; attempts <= 7; attempts += 3) {
        scene->options.attempts = attempts;
        assert_int_equal(transact(scene, "a", write_ours), SNECK_CONFLICT);
        assert_int_equal(scene->runs, attempts);
        assert_int_equal(scene->report.attempts, attempts);
        assert_non_null(strstr(scene->error, "\"a\""));
        assert_null(scene->results);
        assert_value(scene->other, "a", "1");
    }
}

static void the_wait_ends_it(void **state)
{
    struct scene *scene = *state;
    scene->change = back_and_forth;
    scene->changes = scene->options.attempts = 1000000;
    scene->options.wait_ms = 0;
    assert_int_equal(transact(scene, "a", write_ours), SNECK_CONFLICT);
    assert_int_equal(scene->runs, 1);
    scene->options.wait_ms = 60;
    assert_int_equal(transact(scene, "a", write_ours), SNECK_CONFLICT);
    assert_true(scene->runs < 1000000);
    assert_true(scene->report.elapsed_ms >= 60);
    assert_int_equal(scene->report.attempts, scene->runs);
}

static void options_that_make_no_sense_are_refused(void **state)
{
    struct scene *scene = *state;
    scene->options.attempts = 0;
    assert_int_equal(transact(scene, "a", write_ours), SNECK_INVALID);
    scene->options.attempts = 1;
    scene->options.wait_ms = -2;
    assert_int_equal(transact(scene, "a", write_ours), SNECK_INVALID);
    scene->options.wait_ms = 1;
    scene->options.size = 1;
    assert_int_equal(transact(scene, "a", write_ours), SNECK_INVALID);
    assert_int_equal(scene->runs, 0);
}

/* ---------------------------------------------------------- what it leaves behind */

static int64_t connection_of(sneck_tx *tx)
{
    sneck_reply *reply = NULL;
    assert_int_equal(READ(&reply, tx, "CLIENT", "ID"), SNECK_OK);
    int64_t id = sneck_reply_integer(reply);
    sneck_reply_free(reply);
    return id;
}

static int note_connection(sneck_tx *tx, void *data)
{
    struct scene *scene = data;
    scene->id = connection_of(tx);
    return write_ours(tx, data);
}

static int unrelated(sneck_tx *tx, void *data)
{
    struct scene *scene = data;
    scene->runs++;
    assert_true(scene->id == 0 || connection_of(tx) == scene->id);
    return QUEUE(tx, "SET", "z", "unrelated");
}

/* A transaction on the same connection commits, although "a" has changed. */
static void assert_clean(struct scene *scene)
{
    sneck_tx_options before = scene->options;
    scene->options.attempts = 1;
    DO(scene->other, "APPEND", "a", "x");
    assert_int_equal(transact(scene, NULL, unrelated), SNECK_OK);
    assert_int_equal(sneck_reply_count(scene->results), 1);
    assert_string_equal(text_of(sneck_reply_item(scene->results, 0)), "OK");
    scene->options = before;
}

static void watches_end_with_a_commit(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(transact(scene, "a", note_connection), SNECK_OK);
    assert_clean(scene);
}

static void watches_end_when_the_body_gives_up(void **state)
{
    struct scene *scene = *state;
    scene->end = GIVE_UP;
    assert_int_equal(transact(scene, "a", note_connection), GIVE_UP);
    assert_value(scene->other, "a", "1");
    assert_clean(scene);
}

static void watches_end_with_a_conflict(void **state)
{
    struct scene *scene = *state;
    scene->change = back_and_forth;
    scene->options.attempts = 1;
    assert_int_equal(transact(scene, "a", note_connection), SNECK_CONFLICT);
    assert_clean(scene);
}

static int write_nothing(sneck_tx *tx, void *data)
{
    struct scene *scene = data;
    scene->id = connection_of(tx);
    return SNECK_OK;
}

static void watches_end_when_nothing_is_written(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(transact(scene, "a", write_nothing), SNECK_OK);
    assert_null(scene->results);
    assert_clean(scene);
}

/* Every reply of a connection belongs to the command that was sent there. */
static int echo(sneck_tx *tx, void *data)
{
    struct scene *scene = data;
    sneck_reply *reply = NULL;
    char word[16];
    for (int i = 0; i < 3; i++) {
        snprintf(word, sizeof word, "%d of %d", i, scene->runs);
        assert_int_equal(READ(&reply, tx, "ECHO", word), SNECK_OK);
        assert_string_equal(text_of(reply), word);
        sneck_reply_free(reply);
    }
    assert_int_equal(QUEUE(tx, "ECHO", "queued"), SNECK_OK);
    assert_int_equal(QUEUE(tx, "GET", "a"), SNECK_OK);
    return write_ours(tx, data);
}

static void a_refused_commit_takes_one_reply(void **state)
{
    struct scene *scene = *state;
    scene->change = back_and_forth;
    scene->changes = 5;
    assert_int_equal(transact(scene, "a", echo), SNECK_OK);
    assert_int_equal(scene->runs, 6);
    assert_int_equal(sneck_reply_count(scene->results), 3);
    assert_string_equal(text_of(sneck_reply_item(scene->results, 0)), "queued");
    assert_string_equal(text_of(sneck_reply_item(scene->results, 1)), "1");
    assert_clean(scene);
}

/* ------------------------------------------------------------ lost connections */

static int kill_connection(sneck_tx *tx, void *data)
{
    struct scene *scene = data;
    char id[24];
    if (scene->runs < scene->changes) {
        snprintf(id, sizeof id, "%lld", (long long)connection_of(tx));
        assert_int_equal(COMMAND_INTEGER(scene->other, "CLIENT", "KILL", "ID", id), 1);
        DO(scene->other, "APPEND", "a", "x");
    }
    scene->runs++;
    return QUEUE(tx, "SET", "a", "ours");
}

static int kill_and_read(sneck_tx *tx, void *data)
{
    struct scene *scene = data;
    sneck_reply *reply = NULL;
    bool killed = scene->runs < scene->changes;
    assert_int_equal(kill_connection(tx, data), SNECK_OK);
    int status = READ(&reply, tx, "GET", "a");
    assert_int_equal(status, killed ? SNECK_CONFLICT : SNECK_OK);
    sneck_reply_free(reply);
    return status;
}

static int kill_and_heed_nothing(sneck_tx *tx, void *data)
{
    kill_and_read(tx, data);
    return SNECK_OK;
}

static void a_connection_lost_before_the_commit_begins_an_attempt(void **state)
{
    struct scene *scene = *state;
    sneck_tx_body *const bodies[] = {kill_connection, kill_and_read, kill_and_heed_nothing};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        for (int keys = 0; keys < 2; keys++) {
            scene->changes = 2;
            scene->options.attempts = 3;
            assert_int_equal(transact(scene, keys ? "a" : NULL, bodies[i]), SNECK_OK);
            assert_int_equal(scene->runs, 3);
            assert_value(scene->other, "a", "ours");
            assert_clean(scene);
        }
    }
}

static void a_connection_that_is_always_lost_commits_nothing(void **state)
{
    struct scene *scene = *state;
    scene->changes = scene->options.attempts = 3;
    assert_int_equal(transact(scene, "a", kill_connection), SNECK_CONNECTION);
    assert_int_equal(scene->runs, 3);
    assert_value(scene->other, "a", "1xxx");
    assert_clean(scene);
}

static void no_server_is_an_error_at_once(void **state)
{
    struct scene *scene = *state;
    sneck_client *real = scene->client;
    assert_int_equal(sneck_client_new(&scene->client, "unix:///nowhere", NULL, NULL), SNECK_OK);
    assert_int_equal(transact(scene, "a", write_ours), SNECK_CONNECTION);
    assert_int_equal(scene->report.attempts, 1);
    sneck_client_free(scene->client);
    scene->client = real;
}

/* ---------------------------------------------------------------- interruption */

static int always(void *data)
{
    (void)data;
    return 1;
}

/* PUBLISH waits, as do writes, while the server is paused for these. */
static int read_while_paused(sneck_tx *tx, void *data)
{
    struct scene *scene = data;
    sneck_reply *reply = NULL;
    assert_int_equal(write_ours(tx, data), SNECK_OK);
    DO(scene->other, "CLIENT", "PAUSE", "60000", "WRITE");
    return READ(&reply, tx, "PUBLISH", "nobody", "listens");
}

static int commit_while_paused(sneck_tx *tx, void *data)
{
    struct scene *scene = data;
    assert_int_equal(QUEUE(tx, "SET", "a", "late"), SNECK_OK);
    DO(scene->other, "CLIENT", "PAUSE", "60000", "WRITE");
    return SNECK_OK;
}

static void an_interrupted_read_ends_it_with_nothing_written(void **state)
{
    struct scene *scene = *state;
    scene->options.interrupt = always;
    assert_int_equal(transact(scene, "a", read_while_paused), SNECK_INTERRUPTED);
    DO(scene->other, "CLIENT", "UNPAUSE");
    assert_clean(scene);
    assert_value(scene->other, "a", "1x");
}

static void an_interrupted_commit_is_unknown(void **state)
{
    struct scene *scene = *state;
    scene->options.interrupt = always;
    assert_int_equal(transact(scene, NULL, commit_while_paused), SNECK_UNKNOWN);
    DO(scene->other, "CLIENT", "UNPAUSE");
    assert_clean(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(any_change_of_a_watched_key_is_a_conflict),
        TEST(a_key_that_comes_to_be_is_a_conflict),
        TEST(an_expiry_is_a_conflict),
        TEST(a_key_that_has_expired_is_absent_and_no_conflict),
        TEST(keys_watched_later_count_too),
        TEST(the_body_runs_exactly_as_often_as_is_allowed),
        TEST(the_wait_ends_it),
        TEST(options_that_make_no_sense_are_refused),
        TEST(watches_end_with_a_commit),
        TEST(watches_end_when_the_body_gives_up),
        TEST(watches_end_with_a_conflict),
        TEST(watches_end_when_nothing_is_written),
        TEST(a_refused_commit_takes_one_reply),
        TEST(a_connection_lost_before_the_commit_begins_an_attempt),
        TEST(a_connection_that_is_always_lost_commits_nothing),
        TEST(no_server_is_an_error_at_once),
        TEST(an_interrupted_read_ends_it_with_nothing_written),
        TEST(an_interrupted_commit_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
