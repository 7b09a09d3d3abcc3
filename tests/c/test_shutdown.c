/* A server that goes away for good: the one test that ends the server. */
#include "support.h"

/* The link is not stepped by others, so the waiter's last request is answered, and
 * the answer waits to be read, when the second client's first command is. */
static void shut_down(sneck_client *other)
{
    sneck_reply *reply = NULL;
    sneck_reply_free(COMMAND(other, "PING"));
    sneck_execute(&reply, other, 2, (const void *[]){"SHUTDOWN", "NOSAVE"},
                  (const size_t[]){8, 6});
    sneck_reply_free(reply);
}

static void a_wait_that_ends_without_a_server_says_so(void **state)
{
    (void)state;
    sneck_client *client = new_client(), *other = new_client();
    sneck_link *link = new_link(client);
    sneck_lock *held = new_lock(other, "door", 60000), *lock = new_lock(client, "door", 60000);
    sneck_op *op = NULL;
    assert_int_equal(sneck_lock_acquire(held, 0), SNECK_OK);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, link, 3000), SNECK_OK);
    settle(client, link);
    assert_int_equal(sneck_op_status(op), SNECK_PENDING);
    shut_down(other);
    assert_int_equal(finish(link, op), SNECK_CONNECTION);
    assert_int_equal(sneck_lock_token(lock, NULL, 0), 0);
    sneck_op_free(op);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_CONNECTION);
    sneck_lock_free(lock);
    sneck_lock_free(held);
    sneck_link_free(link);
    sneck_client_free(client);
    sneck_client_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_wait_that_ends_without_a_server_says_so, empty_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
