/* Raw replies: every kind is read safely, in and out of its bounds. */
#include "support.h"

#include <string.h>

static void a_reply_is_read_by_kind(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_reply *reply = COMMAND(client, "EVAL", "return {7, 'a\\0b', false, {'x'}, "
                                 "redis.error_reply('MINE text')}", "0");
    size_t len = 0;
    assert_int_equal(sneck_reply_kind(reply), SNECK_REPLY_ARRAY);
    assert_int_equal(sneck_reply_count(reply), 5);
    assert_int_equal(sneck_reply_integer(sneck_reply_item(reply, 0)), 7);
    assert_memory_equal(sneck_reply_bytes(sneck_reply_item(reply, 1), &len), "a\0b", 4);
    assert_int_equal(len, 3);
    assert_int_equal(sneck_reply_kind(sneck_reply_item(reply, 2)), SNECK_REPLY_NIL);
    assert_int_equal(sneck_reply_count(sneck_reply_item(reply, 3)), 1);
    assert_int_equal(sneck_reply_kind(sneck_reply_item(reply, 4)), SNECK_REPLY_ERROR);
    assert_non_null(strstr(text_of(sneck_reply_item(reply, 4)), "MINE text"));
    sneck_reply_free(reply);
    sneck_client_free(client);
}

static void what_a_reply_does_not_have_reads_as_nothing(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_reply *reply = COMMAND(client, "EVAL", "return {1}", "0");
    const sneck_reply *integer = sneck_reply_item(reply, 0);
    size_t len = 99;
    assert_null(sneck_reply_item(reply, 1));
    assert_null(sneck_reply_item(reply, SIZE_MAX));
    assert_null(sneck_reply_bytes(reply, &len));
    assert_int_equal(len, 0);
    assert_null(sneck_reply_bytes(integer, &len));
    assert_int_equal(sneck_reply_count(integer), 0);
    assert_null(sneck_reply_item(integer, 0));
    sneck_reply_free(reply);
    reply = COMMAND(client, "PING");
    assert_int_equal(sneck_reply_integer(reply), 0);
    assert_string_equal(sneck_reply_bytes(reply, &len), "PONG");
    assert_int_equal(len, 4);
    sneck_reply_free(reply);
    sneck_client_free(client);
}

static void a_command_without_words_or_with_a_null_one_is_refused(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_reply *reply = NULL;
    const void *words[] = {"ECHO", NULL};
    const size_t len[] = {4, 3};
    assert_int_equal(sneck_execute(&reply, client, 0, NULL, NULL), SNECK_INVALID);
    assert_int_equal(sneck_execute(&reply, client, 2, words, len), SNECK_INVALID);
    assert_true(*sneck_client_error(client) != '\0');
    assert_null(reply);
    sneck_client_free(client);
}

static void a_failed_command_leaves_its_message_with_the_client(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_reply *reply = NULL;
    assert_string_equal(sneck_client_error(client), "");
    assert_int_equal(sneck_execute(&reply, client, 1, (const void *[]){"NOSUCH"},
                                   (const size_t[]){6}), SNECK_SERVER);
    assert_non_null(strstr(sneck_client_error(client), "ERR unknown command"));
    assert_null(strchr(sneck_client_error(client), '\n'));
    assert_null(reply);
    sneck_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_is_read_by_kind),
        cmocka_unit_test(what_a_reply_does_not_have_reads_as_nothing),
        cmocka_unit_test(a_command_without_words_or_with_a_null_one_is_refused),
        cmocka_unit_test(a_failed_command_leaves_its_message_with_the_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
