/* What the C API alone has: NULL, sizes of options, buffers of messages, names. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

static void destructors_take_null(void **state)
{
    (void)state;
    sneck_client_close(NULL);
    sneck_client_free(NULL);
    sneck_lock_free(NULL);
    sneck_link_free(NULL);
    sneck_op_free(NULL);
    sneck_reply_free(NULL);
}

static void statuses_have_names_and_texts(void **state)
{
    (void)state;
    assert_string_equal(sneck_status_name(SNECK_OK), "OK");
    assert_string_equal(sneck_status_name(SNECK_PENDING), "PENDING");
    assert_string_equal(sneck_status_name(SNECK_NOT_OWNER), "NOT_OWNER");
    for (int status = SNECK_PENDING; status >= SNECK_NO_MEMORY; status--) {
        assert_true(*sneck_status_name(status) != '\0');
        assert_true(*sneck_status_text(status) != '\0');
    }
    assert_string_equal(sneck_status_text(SNECK_BUSY), "another owner holds the lock");
}

static void a_number_that_is_no_status_has_a_name_too(void **state)
{
    (void)state;
    const int numbers[] = {2, -100, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_non_null(sneck_status_name(numbers[i]));
        assert_non_null(sneck_status_text(numbers[i]));
    }
}

static void the_version_is_that_of_the_header(void **state)
{
    (void)state;
    assert_string_equal(sneck_version(), SNECK_VERSION);
}

/* --------------------------------------------------------------------- clients */

static void expect_refused(const char *url, const sneck_client_options *options)
{
    sneck_client *client = NULL;
    char error[SNECK_ERROR_SIZE] = "";
    assert_int_equal(sneck_client_new(&client, url, options, error), SNECK_INVALID);
    assert_null(client);
    assert_true(strlen(error) > 10);
    assert_null(strchr(error, '\n'));
    assert_int_equal(sneck_client_new(&client, url, options, NULL), SNECK_INVALID);
}

static void options_not_started_from_the_macro_are_refused(void **state)
{
    (void)state;
    expect_refused(NULL, &(sneck_client_options){0});
    sneck_client_options options = SNECK_CLIENT_OPTIONS;
    options.size--;
    expect_refused(NULL, &options);
}

static void times_out_of_range_are_refused(void **state)
{
    (void)state;
    const int64_t wrong[] = {0, -1, INT64_MIN, INT64_MAX, SNECK_TTL_MAX_MS + 1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sneck_client_options options = SNECK_CLIENT_OPTIONS;
        options.io_timeout_ms = wrong[i];
        expect_refused(NULL, &options);
        options = (sneck_client_options)SNECK_CLIENT_OPTIONS;
        options.connect_timeout_ms = wrong[i];
        expect_refused(NULL, &options);
    }
}

static void a_key_prefix_that_leaves_no_room_is_refused(void **state)
{
    (void)state;
    sneck_client_options options = SNECK_CLIENT_OPTIONS;
    options.key_prefix = "x";
    options.key_prefix_len = SIZE_MAX;
    expect_refused(NULL, &options);
    options.key_prefix = NULL;
    options.key_prefix_len = 1;
    expect_refused(NULL, &options);
}

static void a_client_name_is_what_the_server_takes(void **state)
{
    (void)state;
    const char *const wrong[] = {"", "two words", "line\nend"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sneck_client_options options = SNECK_CLIENT_OPTIONS;
        options.client_name = wrong[i];
        expect_refused(NULL, &options);
    }
}

static void a_long_url_has_a_message_that_fits(void **state)
{
    (void)state;
    char *url = malloc(100000);
    assert_non_null(url);
    memset(url, 'x', 99999);
    url[99999] = '\0';
    expect_refused(url, NULL);
    memcpy(url, "unix:///", 8);
    expect_refused(url, NULL);
    free(url);
}

static void a_message_does_not_show_the_password(void **state)
{
    (void)state;
    sneck_client *client = NULL;
    char error[SNECK_ERROR_SIZE] = "";
    assert_int_equal(sneck_client_new(&client, "redis://me:s3cret@localhost:99999", NULL, error),
                     SNECK_INVALID);
    assert_null(strstr(error, "s3cret"));
}

static void without_a_url_the_environment_names_the_server(void **state)
{
    (void)state;
    sneck_client *client = NULL;
    assert_int_equal(setenv("SNECK_URL", "nonsense", 1), 0);
    assert_int_equal(sneck_client_new(&client, NULL, NULL, NULL), SNECK_INVALID);
    assert_int_equal(setenv("SNECK_URL", server_url(), 1), 0);
    assert_int_equal(sneck_client_new(&client, NULL, NULL, NULL), SNECK_OK);
    sneck_reply_free(COMMAND(client, "PING"));
    sneck_client_free(client);
    assert_int_equal(setenv("SNECK_URL", "", 1), 0);
    assert_int_equal(sneck_client_new(&client, NULL, NULL, NULL), SNECK_OK);
    sneck_client_free(client);
    unsetenv("SNECK_URL");
}

static void a_closed_client_refuses_calls(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = new_lock(client, "door", 60000);
    sneck_op *op;
    sneck_client_close(client);
    sneck_client_close(client);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_INVALID);
    assert_true(*sneck_lock_error(lock) != '\0');
    op = START(client, NULL, "PING");
    assert_int_equal(sneck_op_status(op), SNECK_INVALID);
    sneck_op_free(op);
    sneck_lock_free(lock);
    sneck_client_free(client);
}

/* ----------------------------------------------------------------------- locks */

static void lock_options_not_started_from_the_macro_are_refused(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = NULL;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.size = 0;
    assert_int_equal(sneck_lock_new(&lock, client, "door", 4, &options, NULL), SNECK_INVALID);
    assert_int_equal(sneck_lock_adopt(&lock, client, "door", 4, "t", 1, &options, NULL),
                     SNECK_INVALID);
    assert_null(lock);
    sneck_client_free(client);
}

static void names_and_tokens_that_are_null_are_refused(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = NULL;
    assert_int_equal(sneck_lock_new(&lock, client, NULL, 0, NULL, NULL), SNECK_INVALID);
    assert_int_equal(sneck_lock_new(&lock, client, NULL, 4, NULL, NULL), SNECK_INVALID);
    assert_int_equal(sneck_lock_adopt(&lock, client, "door", 4, NULL, 4, NULL, NULL),
                     SNECK_INVALID);
    assert_null(lock);
    sneck_client_free(client);
}

static void a_message_about_a_long_binary_name_is_one_short_line(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    char name[4096];
    sneck_lock *lock = NULL;
    for (size_t i = 0; i < sizeof name; i++)
        name[i] = (char)i;
    assert_int_equal(sneck_lock_new(&lock, client, name, sizeof name, NULL, NULL), SNECK_OK);
    assert_string_equal(sneck_lock_error(lock), "");
    assert_int_equal(sneck_lock_release(lock), SNECK_NOT_OWNER);
    assert_true(strlen(sneck_lock_error(lock)) < SNECK_ERROR_SIZE);
    assert_null(strchr(sneck_lock_error(lock), '\n'));
    sneck_lock_free(lock);
    sneck_client_free(client);
}

static void arguments_are_copied_before_a_call_returns(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_link *link = new_link(client);
    char name[] = "door", word[] = "ECHO", text[] = "mine";
    sneck_lock *lock = new_lock(client, name, 60000);
    sneck_op *op = START(client, link, word, text);
    memset(name, '?', 4);
    memset(word, '?', 4);
    memset(text, '?', 4);
    assert_int_equal(finish(link, op), SNECK_OK);
    assert_string_equal(text_of(sneck_op_reply(op)), "mine");
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    assert_true(key_exists(client, "door"));
    sneck_op_free(op);
    sneck_lock_free(lock);
    sneck_link_free(link);
    sneck_client_free(client);
}

static void a_token_is_cut_to_the_buffer_and_its_length_told(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = NULL;
    char buffer[8] = "zzzzzzz";
    assert_int_equal(sneck_lock_adopt(&lock, client, "door", 4, "abcdef", 6, NULL, NULL),
                     SNECK_OK);
    assert_int_equal(sneck_lock_token(lock, NULL, 0), 6);
    assert_int_equal(sneck_lock_token(lock, buffer, 3), 6);
    assert_memory_equal(buffer, "abczzzz", 7);
    assert_int_equal(sneck_lock_token(lock, buffer, sizeof buffer), 6);
    assert_memory_equal(buffer, "abcdefz", 7);
    sneck_lock_free(lock);
    sneck_client_free(client);
}

static void handles_may_be_freed_in_any_order(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = new_lock(client, "door", 60000);
    sneck_link *link = new_link(client);
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, 0), SNECK_OK);
    sneck_client_free(client);
    sneck_lock_free(lock);
    sneck_link_free(link);
    assert_int_equal(sneck_op_status(op), SNECK_INTERRUPTED);
    sneck_op_free(op);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(destructors_take_null),
        cmocka_unit_test(statuses_have_names_and_texts),
        cmocka_unit_test(a_number_that_is_no_status_has_a_name_too),
        cmocka_unit_test(the_version_is_that_of_the_header),
        cmocka_unit_test(options_not_started_from_the_macro_are_refused),
        cmocka_unit_test(times_out_of_range_are_refused),
        cmocka_unit_test(a_key_prefix_that_leaves_no_room_is_refused),
        cmocka_unit_test(a_client_name_is_what_the_server_takes),
        cmocka_unit_test(a_long_url_has_a_message_that_fits),
        cmocka_unit_test(a_message_does_not_show_the_password),
        cmocka_unit_test(without_a_url_the_environment_names_the_server),
        cmocka_unit_test_setup(a_closed_client_refuses_calls, empty_server),
        cmocka_unit_test(lock_options_not_started_from_the_macro_are_refused),
        cmocka_unit_test(names_and_tokens_that_are_null_are_refused),
        cmocka_unit_test(a_message_about_a_long_binary_name_is_one_short_line),
        cmocka_unit_test_setup(arguments_are_copied_before_a_call_returns, empty_server),
        cmocka_unit_test(a_token_is_cut_to_the_buffer_and_its_length_told),
        cmocka_unit_test_setup(handles_may_be_freed_in_any_order, empty_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
