/* One key: changed by a function of its value, or if its value is what was expected. */
#include "support.h"

#include <stdio.h>
#include <string.h>

struct scene {
    sneck_client *client, *other;
    char error[SNECK_ERROR_SIZE];
    char old[64]; /* what the function got; "(none)" for NULL */
    sneck_change change;
    int runs, conflicts;
    int end;
};

static int set_up(void **state)
{
    static struct scene scene;
    empty_server(state);
    scene = (struct scene){.client = new_client(), .other = new_client()};
    *state = &scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    sneck_client_free(scene->client);
    sneck_client_free(scene->other);
    return 0;
}

static int decide(sneck_change *change, const void *old, size_t old_len, void *data)
{
    struct scene *scene = data;
    snprintf(scene->old, sizeof scene->old, "%.*s", old ? (int)old_len : 6,
             old ? (const char *)old : "(none)");
    if (scene->runs++ < scene->conflicts)
        DO(scene->other, "SET", "a", "theirs");
    *change = scene->change;
    return scene->end;
}

static int update(struct scene *scene, int64_t ttl_ms)
{
    scene->runs = 0;
    return sneck_update(scene->client, "a", 1, ttl_ms, NULL, decide, scene, scene->error);
}

static void set_to(struct scene *scene, const char *value)
{
    scene->change = (sneck_change){SNECK_SET, value, strlen(value)};
}

static void an_update_gets_the_old_value_and_writes_the_new_one(void **state)
{
    struct scene *scene = *state;
    set_to(scene, "one");
    assert_int_equal(update(scene, 0), SNECK_OK);
    assert_string_equal(scene->old, "(none)");
    set_to(scene, "");
    assert_int_equal(update(scene, 0), SNECK_OK);
    assert_string_equal(scene->old, "one");
    assert_value(scene->other, "a", "");
    set_to(scene, "two");
    assert_int_equal(update(scene, 0), SNECK_OK);
    assert_string_equal(scene->old, ""); /* not absent */
    scene->change = (sneck_change){SNECK_KEEP, NULL, 0};
    assert_int_equal(update(scene, 0), SNECK_OK);
    assert_value(scene->other, "a", "two");
    scene->change = (sneck_change){SNECK_DELETE, NULL, 0};
    assert_int_equal(update(scene, 0), SNECK_OK);
    assert_false(key_exists(scene->other, "a"));
}

static void an_update_is_made_again_after_a_conflict(void **state)
{
    struct scene *scene = *state;
    set_to(scene, "ours");
    scene->conflicts = 6;
    assert_int_equal(update(scene, 0), SNECK_OK);
    assert_int_equal(scene->runs, 7);
    assert_string_equal(scene->old, "theirs");
    assert_value(scene->other, "a", "ours");
    scene->conflicts = 1000;
    assert_int_equal(update(scene, 0), SNECK_CONFLICT);
    assert_int_equal(scene->runs, 16);
    assert_value(scene->other, "a", "theirs");
}

static void a_function_that_gives_up_changes_nothing(void **state)
{
    struct scene *scene = *state;
    set_to(scene, "ours");
    scene->end = 77;
    assert_int_equal(update(scene, 0), 77);
    assert_false(key_exists(scene->other, "a"));
}

static void a_new_value_of_null_deletes_nothing(void **state)
{
    struct scene *scene = *state;
    DO(scene->other, "SET", "a", "1");
    scene->change = (sneck_change){SNECK_SET, NULL, 0};
    assert_int_equal(update(scene, 0), SNECK_INVALID);
    assert_non_null(strstr(scene->error, "NULL"));
    assert_value(scene->other, "a", "1");
}

static void a_write_keeps_the_expiry_unless_told(void **state)
{
    struct scene *scene = *state;
    bool done = false;
    set_to(scene, "ours");
    DO(scene->other, "SET", "a", "1", "EX", "5000");
    assert_int_equal(update(scene, 0), SNECK_OK);
    assert_in_range(COMMAND_INTEGER(scene->other, "TTL", "a"), 1000, 5000);
    assert_int_equal(sneck_compare_and_set(&done, scene->client, "a", 1, "ours", 4, "x", 1, 0,
                                           NULL, scene->error), SNECK_OK);
    assert_in_range(COMMAND_INTEGER(scene->other, "TTL", "a"), 1000, 5000);
    assert_int_equal(update(scene, 900000), SNECK_OK);
    assert_in_range(COMMAND_INTEGER(scene->other, "TTL", "a"), 100, 900);
    assert_int_equal(sneck_compare_and_set(&done, scene->client, "a", 1, "ours", 4, "x", 1,
                                           90000, NULL, scene->error), SNECK_OK);
    assert_in_range(COMMAND_INTEGER(scene->other, "TTL", "a"), 10, 90);
    assert_int_equal(update(scene, -1), SNECK_INVALID);
    assert_int_equal(update(scene, SNECK_TTL_MAX_MS + 1), SNECK_INVALID);
}

static bool compare(struct scene *scene, const char *expected, const char *value)
{
    bool matched = false;
    int status = sneck_compare_and_set(&matched, scene->client, "a", 1, expected,
                                       expected ? strlen(expected) : 0, value,
                                       value ? strlen(value) : 0, 0, NULL, scene->error);
    if (status != SNECK_OK)
        fail_msg("%s", scene->error);
    return matched;
}

static void a_value_is_written_only_over_what_was_expected(void **state)
{
    struct scene *scene = *state;
    assert_false(compare(scene, "1", "2"));
    assert_false(compare(scene, "", "2"));
    assert_false(key_exists(scene->other, "a"));
    assert_true(compare(scene, NULL, NULL));
    assert_true(compare(scene, NULL, "1"));
    assert_false(compare(scene, NULL, "2"));
    assert_false(compare(scene, "12", "2"));
    assert_false(compare(scene, "", "2"));
    assert_value(scene->other, "a", "1");
    assert_true(compare(scene, "1", ""));
    assert_false(compare(scene, NULL, "2"));
    assert_true(compare(scene, "", "2"));
    assert_false(compare(scene, "1", NULL));
    assert_true(compare(scene, "2", NULL));
    assert_false(key_exists(scene->other, "a"));
}

static void a_key_of_another_kind_is_an_error(void **state)
{
    struct scene *scene = *state;
    bool matched;
    set_to(scene, "ours");
    DO(scene->other, "RPUSH", "a", "x");
    assert_int_equal(update(scene, 0), SNECK_SERVER);
    assert_int_equal(scene->runs, 0);
    assert_non_null(strstr(scene->error, "WRONGTYPE"));
    assert_int_equal(sneck_compare_and_set(&matched, scene->client, "a", 1, NULL, 0, "x", 1, 0,
                                           NULL, scene->error), SNECK_SERVER);
    assert_int_equal(COMMAND_INTEGER(scene->other, "LLEN", "a"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(an_update_gets_the_old_value_and_writes_the_new_one),
        TEST(an_update_is_made_again_after_a_conflict),
        TEST(a_function_that_gives_up_changes_nothing),
        TEST(a_new_value_of_null_deletes_nothing),
        TEST(a_write_keeps_the_expiry_unless_told),
        TEST(a_value_is_written_only_over_what_was_expected),
        TEST(a_key_of_another_kind_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
