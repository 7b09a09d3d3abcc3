/* Transactions that fail: the error names its cause, tells what was written, and
 * leaves the connection clean. */
#include "support.h"

#include <stdio.h>
#include <string.h>

struct scene {
    sneck_client *client, *other;
    sneck_lock *guard;
    sneck_tx_options options;
    sneck_tx_report report;
    char error[SNECK_ERROR_SIZE];
    sneck_reply *results;
    const char *words[9]; /* of the command under test */
    int runs;
};

static int set_up(void **state)
{
    static struct scene scene;
    empty_server(state);
    scene = (struct scene){.client = new_client(), .other = new_client(),
                           .options = SNECK_TX_OPTIONS};
    scene.guard = new_lock(scene.client, "door", 60000);
    scene.options.report = &scene.report;
    scene.options.attempts = 1;
    DO(scene.other, "SET", "a", "1");
    DO(scene.other, "RPUSH", "list", "x");
    *state = &scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    sneck_reply_free(scene->results);
    sneck_lock_free(scene->guard);
    sneck_client_free(scene->client);
    sneck_client_free(scene->other);
    return 0;
}

static int transact(struct scene *scene, sneck_tx_body *body)
{
    scene->runs = 0;
    scene->error[0] = '\0';
    sneck_reply_free(scene->results);
    scene->results = NULL;
    return sneck_transact(&scene->results, scene->client, 1, (const void *const[]){"a"},
                          (const size_t[]){1}, &scene->options, body, scene, scene->error);
}

static int echo(sneck_tx *tx, void *data)
{
    sneck_reply *reply = NULL;
    (void)data;
    assert_int_equal(READ(&reply, tx, "ECHO", "mine"), SNECK_OK);
    assert_string_equal(text_of(reply), "mine");
    sneck_reply_free(reply);
    return QUEUE(tx, "ECHO", "queued");
}

/* The connection is within no MULTI, watches nothing and owes no reply. */
static void assert_clean(struct scene *scene)
{
    sneck_tx_options before = scene->options;
    scene->options.guard = NULL;
    DO(scene->other, "APPEND", "a", "x");
    sneck_reply_free(scene->results);
    scene->results = NULL;
    assert_int_equal(sneck_transact(&scene->results, scene->client, 0, NULL, NULL,
                                    &scene->options, echo, scene, scene->error), SNECK_OK);
    assert_string_equal(text_of(sneck_reply_item(scene->results, 0)), "queued");
    sneck_reply *reply = COMMAND(scene->client, "ECHO", "mine");
    assert_string_equal(text_of(reply), "mine");
    sneck_reply_free(reply);
    scene->options = before;
}

/* -------------------------------------------------------------------- failing */

static int write_between(sneck_tx *tx, void *data)
{
    struct scene *scene = data;
    sneck_reply *reply = NULL;
    scene->runs++;
    int status = READ(&reply, tx, "GET", "a");
    if (status != SNECK_OK)
        return status;
    sneck_reply_free(reply);
    assert_int_equal(QUEUE(tx, "SET", "first", "1"), SNECK_OK);
    assert_int_equal(tx_queue(tx, scene->words), SNECK_OK);
    assert_int_equal(QUEUE(tx, "SET", "last", "1"), SNECK_OK);
    return SNECK_OK;
}

static void use(struct scene *scene, const char *const *words)
{
    size_t n = 0;
    for (; words[n]; n++)
        scene->words[n] = words[n];
    scene->words[n] = NULL;
}
#define USE(scene, ...) use(scene, (const char *const[]){__VA_ARGS__, NULL})

static void assert_refused(struct scene *scene, const char *code)
{
    assert_int_equal(transact(scene, write_between), SNECK_SERVER);
    assert_string_equal(scene->report.server_code, code);
    assert_true(scene->report.failed == SIZE_MAX);
    assert_non_null(strstr(scene->error, code));
    assert_non_null(strstr(scene->error, "nothing was written"));
    assert_null(scene->results);
    assert_int_equal(scene->runs, 1);
}

static void a_command_that_cannot_be_queued_writes_nothing(void **state)
{
    struct scene *scene = *state;
    USE(scene, "SET", "too few");
    assert_refused(scene, "ERR");
    assert_false(key_exists(scene->other, "first"));
    assert_clean(scene);
    USE(scene, "NOSUCHCOMMAND");
    assert_refused(scene, "ERR");
    assert_false(key_exists(scene->other, "last"));
    assert_clean(scene);
}

static void a_server_without_memory_writes_nothing(void **state)
{
    struct scene *scene = *state;
    USE(scene, "SET", "middle", "1");
    DO(scene->other, "CONFIG", "SET", "maxmemory", "1");
    assert_refused(scene, "OOM");
    DO(scene->other, "CONFIG", "SET", "maxmemory", "0");
    assert_false(key_exists(scene->other, "first"));
    assert_clean(scene);
}

static void a_replica_writes_nothing(void **state)
{
    struct scene *scene = *state;
    USE(scene, "SET", "middle", "1");
    DO(scene->other, "REPLICAOF", "127.0.0.1", "1");
    assert_refused(scene, "READONLY");
    DO(scene->other, "REPLICAOF", "NO", "ONE");
    assert_false(key_exists(scene->other, "first"));
    assert_clean(scene);
}

static void a_write_that_fails_when_run_does_not_hide_the_others(void **state)
{
    struct scene *scene = *state;
    USE(scene, "APPEND", "list", "x");
    assert_int_equal(transact(scene, write_between), SNECK_SERVER);
    assert_string_equal(scene->report.server_code, "WRONGTYPE");
    assert_int_equal(scene->report.failed, 1);
    assert_non_null(strstr(scene->error, "2 of 3"));
    assert_non_null(scene->results);
    assert_int_equal(sneck_reply_count(scene->results), 3);
    assert_string_equal(text_of(sneck_reply_item(scene->results, 0)), "OK");
    assert_int_equal(sneck_reply_kind(sneck_reply_item(scene->results, 1)), SNECK_REPLY_ERROR);
    assert_string_equal(text_of(sneck_reply_item(scene->results, 2)), "OK");
    assert_value(scene->other, "last", "1");
    assert_clean(scene);
}

static int read_list(sneck_tx *tx, void *data)
{
    struct scene *scene = data;
    sneck_reply *reply = NULL;
    int status = READ(&reply, tx, "GET", "list");
    assert_int_equal(status, SNECK_SERVER);
    assert_string_equal(sneck_tx_server_code(tx), "WRONGTYPE");
    assert_non_null(strstr(sneck_tx_error(tx), "WRONGTYPE"));
    assert_null(reply);
    if (scene->runs++ == 0)
        return status;
    return QUEUE(tx, "SET", "first", "1");
}

static void a_read_that_fails_is_for_the_body_to_judge(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(transact(scene, read_list), SNECK_SERVER);
    assert_string_equal(scene->report.server_code, "WRONGTYPE");
    assert_non_null(strstr(scene->error, "WRONGTYPE"));
    assert_clean(scene);
}

static int judge(sneck_tx *tx, void *data)
{
    ((struct scene *)data)->runs = 1;
    return read_list(tx, data);
}

static void a_body_may_go_on_after_a_read_that_failed(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(transact(scene, judge), SNECK_OK);
    assert_string_equal(scene->report.server_code, "");
    assert_value(scene->other, "first", "1");
}

/* ----------------------------------------------------------------- permissions */

/* Makes the scene's client one of a user with these rights. */
static void become(struct scene *scene, const char *rights)
{
    char url[256];
    const char *const scheme = "unix://";
    DO(scene->other, "ACL", "SETUSER", "tester", "reset", "on", ">secret");
    char copy[128];
    snprintf(copy, sizeof copy, "%s", rights);
    for (char *rest = copy, *word; (word = strtok(rest, " ")); rest = NULL)
        DO(scene->other, "ACL", "SETUSER", "tester", word);
    assert_memory_equal(server_url(), scheme, strlen(scheme));
    snprintf(url, sizeof url, "unix://tester:secret@%s", server_url() + strlen(scheme));
    sneck_client_free(scene->client);
    assert_int_equal(sneck_client_new(&scene->client, url, NULL, NULL), SNECK_OK);
}

static void the_key_alone_is_enough_to_be_allowed(void **state)
{
    struct scene *scene = *state;
    become(scene, "~a ~first ~middle ~last +get +set +watch +unwatch +multi +exec");
    USE(scene, "SET", "middle", "1");
    assert_int_equal(transact(scene, write_between), SNECK_OK);
    assert_value(scene->other, "last", "1");
}

static void what_the_user_may_not_do_is_told(void **state)
{
    struct scene *scene = *state;
    static const char *const rights[] = {
        "~a +@all",             /* not the other keys */
        "~* +@all -watch",
        "~* +@all -multi",
        "~* +@all -exec",
        "~first ~last ~middle +@all", /* not the watched key */
    };
    USE(scene, "SET", "middle", "1");
    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++) {
        become(scene, rights[i]);
        assert_int_equal(transact(scene, write_between), SNECK_SERVER);
        assert_string_equal(scene->report.server_code, "NOPERM");
        assert_false(key_exists(scene->other, "first"));
        sneck_reply *reply = COMMAND(scene->client, "ECHO", "mine");
        assert_string_equal(text_of(reply), "mine");
        sneck_reply_free(reply);
    }
}

static int watch_only(sneck_tx *tx, void *data)
{
    (void)data;
    return QUEUE(tx, "SET", "first", "1");
}

/* Nor where there is no read, or the connection is a new one. */
static void a_user_that_may_not_multi_writes_nothing(void **state)
{
    struct scene *scene = *state;
    become(scene, "~* +@all -multi");
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(sneck_transact(&scene->results, scene->client, i % 2,
                                        (const void *const[]){"a"}, (const size_t[]){1},
                                        &scene->options, watch_only, scene, scene->error),
                         SNECK_SERVER);
        assert_string_equal(scene->report.server_code, "NOPERM");
        assert_non_null(strstr(scene->error, "MULTI"));
        assert_non_null(strstr(scene->error, "nothing was written"));
        assert_false(key_exists(scene->other, "first"));
        if (i == 1)
            kill_others(scene->other);
    }
}

/* What one connection was allowed says nothing of the next. */
static void each_connection_is_tried(void **state)
{
    struct scene *scene = *state;
    become(scene, "~* +@all");
    scene->options.attempts = 3; /* that the first one is killed may not be known yet */
    USE(scene, "SET", "middle", "1");
    assert_int_equal(transact(scene, write_between), SNECK_OK);
    DO(scene->other, "DEL", "first");
    DO(scene->other, "ACL", "SETUSER", "tester", "-multi");
    kill_others(scene->other);
    assert_int_equal(transact(scene, write_between), SNECK_SERVER);
    assert_non_null(strstr(scene->error, "nothing was written"));
    assert_false(key_exists(scene->other, "first"));
}

static void nothing_is_written_where_the_watch_is_refused(void **state)
{
    struct scene *scene = *state;
    become(scene, "~first +@all"); /* not "a", which is watched but never read */
    assert_int_equal(transact(scene, watch_only), SNECK_SERVER);
    assert_string_equal(scene->report.server_code, "NOPERM");
    assert_false(key_exists(scene->other, "first"));
}

/* ------------------------------------------------------------------- refusals */

static int use_command(sneck_tx *tx, void *data)
{
    struct scene *scene = data;
    sneck_reply *reply = NULL;
    int first = scene->runs == 0 ? tx_read(&reply, tx, scene->words) : tx_queue(tx, scene->words);
    assert_int_equal(first, SNECK_INVALID);
    assert_non_null(strstr(sneck_tx_error(tx), scene->words[0]));
    return scene->runs == 0 ? first : SNECK_OK; /* not heeded: no help */
}

static int queue_refused(sneck_tx *tx, void *data)
{
    ((struct scene *)data)->runs = 1;
    return use_command(tx, data);
}

static void commands_that_have_no_place_in_a_transaction_are_refused(void **state)
{
    struct scene *scene = *state;
    const char *const *const commands[] = {
#define WORDS(...) (const char *const[]){__VA_ARGS__, NULL}
        WORDS("MULTI"), WORDS("exec"), WORDS("Discard"), WORDS("WATCH", "a"), WORDS("UNWATCH"),
        WORDS("SUBSCRIBE", "x"), WORDS("PSUBSCRIBE", "x"), WORDS("SSUBSCRIBE", "x"),
        WORDS("UNSUBSCRIBE"), WORDS("MONITOR"), WORDS("SELECT", "1"), WORDS("AUTH", "x"),
        WORDS("HELLO", "3"), WORDS("RESET"), WORDS("QUIT"), WORDS("CLIENT", "REPLY", "OFF"),
        WORDS("BLPOP", "x", "0"), WORDS("brpop", "x", "0"), WORDS("BLMOVE", "x", "y"),
        WORDS("BZPOPMIN", "x", "0"), WORDS("BLMPOP", "0"), WORDS("WAIT", "1", "0"),
        WORDS("WAITAOF", "1", "0", "0"), WORDS("XREAD", "BLOCK", "0", "STREAMS", "s", "$"),
        WORDS("XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "block", "0"),
    };
    sneck_client *real = scene->client;
    /* nothing is sent: there is no server */
    assert_int_equal(sneck_client_new(&scene->client, "unix:///nowhere", NULL, NULL), SNECK_OK);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        use(scene, commands[i]);
        assert_int_equal(transact(scene, use_command), SNECK_INVALID);
        assert_int_equal(transact(scene, queue_refused), SNECK_INVALID);
    }
    sneck_client_free(scene->client);
    scene->client = real;
}

static int read_streams(sneck_tx *tx, void *data)
{
    sneck_reply *reply = NULL;
    (void)data;
    assert_int_equal(READ(&reply, tx, "XREAD", "STREAMS", "block", "0"), SNECK_OK);
    sneck_reply_free(reply);
    return SNECK_OK;
}

static void a_stream_may_be_named_block(void **state)
{
    struct scene *scene = *state;
    DO(scene->other, "XADD", "block", "1-1", "field", "value");
    assert_int_equal(transact(scene, read_streams), SNECK_OK);
}

/* --------------------------------------------------------------------- shapes */

#define SHAPES "return {7, {'x', {false, {}}, redis.error_reply('MINE text')}, 'a\\0b'}"

static void assert_shapes(const sneck_reply *reply)
{
    size_t len;
    assert_int_equal(sneck_reply_count(reply), 3);
    assert_int_equal(sneck_reply_integer(sneck_reply_item(reply, 0)), 7);
    const sneck_reply *inner = sneck_reply_item(reply, 1);
    assert_int_equal(sneck_reply_count(inner), 3);
    const sneck_reply *innermost = sneck_reply_item(inner, 1);
    assert_int_equal(sneck_reply_kind(sneck_reply_item(innermost, 0)), SNECK_REPLY_NIL);
    assert_int_equal(sneck_reply_kind(sneck_reply_item(innermost, 1)), SNECK_REPLY_ARRAY);
    assert_int_equal(sneck_reply_kind(sneck_reply_item(inner, 2)), SNECK_REPLY_ERROR);
    assert_memory_equal(sneck_reply_bytes(sneck_reply_item(reply, 2), &len), "a\0b", 4);
    assert_int_equal(len, 3);
}

static int read_shapes(sneck_tx *tx, void *data)
{
    sneck_reply *reply = NULL;
    (void)data;
    assert_int_equal(READ(&reply, tx, "EVAL", SHAPES, "0"), SNECK_OK);
    assert_shapes(reply);
    sneck_reply_free(reply);
    assert_int_equal(QUEUE(tx, "EVAL", SHAPES, "0"), SNECK_OK);
    return QUEUE(tx, "GET", "no such key");
}

static void replies_keep_their_shapes(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(transact(scene, read_shapes), SNECK_OK);
    assert_int_equal(sneck_reply_count(scene->results), 2);
    assert_shapes(sneck_reply_item(scene->results, 0));
    assert_int_equal(sneck_reply_kind(sneck_reply_item(scene->results, 1)), SNECK_REPLY_NIL);
}

/* ---------------------------------------------------------------------- guard */

static int extend_and_write(sneck_tx *tx, void *data)
{
    struct scene *scene = data;
    sneck_reply *reply = NULL;
    assert_int_equal(sneck_lock_extend(scene->guard, 0), SNECK_OK);
    assert_int_equal(READ(&reply, tx, "GET", "a"), SNECK_OK);
    sneck_reply_free(reply);
    assert_int_equal(sneck_lock_extend(scene->guard, 0), SNECK_OK);
    scene->runs++;
    return QUEUE(tx, "SET", "a", "guarded");
}

static void an_extension_of_ours_is_no_conflict_with_the_guard(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(sneck_lock_acquire(scene->guard, 0), SNECK_OK);
    scene->options.guard = scene->guard;
    assert_int_equal(transact(scene, extend_and_write), SNECK_OK);
    assert_value(scene->other, "a", "guarded");
    assert_int_equal(sneck_lock_release(scene->guard), SNECK_OK);
}

static int lose_and_write(sneck_tx *tx, void *data)
{
    struct scene *scene = data;
    scene->runs++;
    DO(scene->other, scene->words[0], scene->words[1], scene->words[2]);
    return QUEUE(tx, "SET", "a", "guarded");
}

static void a_guard_that_is_lost_commits_nothing(void **state)
{
    struct scene *scene = *state;
    scene->options.guard = scene->guard;
    assert_int_equal(sneck_lock_acquire(scene->guard, 0), SNECK_OK);
    USE(scene, "SET", "door", "somebody else");
    assert_int_equal(transact(scene, lose_and_write), SNECK_NOT_OWNER);
    assert_non_null(strstr(scene->error, "door"));
    assert_value(scene->other, "a", "1");
    assert_clean(scene);
    DO(scene->other, "DEL", "door");
    assert_int_equal(transact(scene, write_between), SNECK_NOT_OWNER);
    assert_false(key_exists(scene->other, "first"));
    DO(scene->other, "RPUSH", "door", "x");
    assert_int_equal(transact(scene, write_between), SNECK_SERVER);
    assert_string_equal(scene->report.server_code, "WRONGTYPE");
    assert_false(key_exists(scene->other, "first"));
    assert_clean(scene);
}

static void a_guard_that_is_not_held_is_told_before_anything_is_done(void **state)
{
    struct scene *scene = *state;
    scene->options.guard = scene->guard;
    USE(scene, "SET", "middle", "1");
    assert_int_equal(transact(scene, write_between), SNECK_NOT_OWNER);
    assert_int_equal(scene->runs, 0);
    sneck_lock *foreign = new_lock(scene->other, "door", 60000);
    scene->options.guard = foreign;
    assert_int_equal(transact(scene, write_between), SNECK_INVALID);
    assert_int_equal(scene->runs, 0);
    sneck_lock_free(foreign);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_command_that_cannot_be_queued_writes_nothing),
        TEST(a_server_without_memory_writes_nothing),
        TEST(a_replica_writes_nothing),
        TEST(a_write_that_fails_when_run_does_not_hide_the_others),
        TEST(a_read_that_fails_is_for_the_body_to_judge),
        TEST(a_body_may_go_on_after_a_read_that_failed),
        TEST(the_key_alone_is_enough_to_be_allowed),
        TEST(what_the_user_may_not_do_is_told),
        TEST(a_user_that_may_not_multi_writes_nothing),
        TEST(each_connection_is_tried),
        TEST(nothing_is_written_where_the_watch_is_refused),
        TEST(commands_that_have_no_place_in_a_transaction_are_refused),
        TEST(a_stream_may_be_named_block),
        TEST(replies_keep_their_shapes),
        TEST(an_extension_of_ours_is_no_conflict_with_the_guard),
        TEST(a_guard_that_is_lost_commits_nothing),
        TEST(a_guard_that_is_not_held_is_told_before_anything_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
