/* door.c - a lock that two clients want, for tests. */
#include "door.h"

int set_up_free(void **state)
{
    static struct scene scene;
    empty_server(state);
    scene.client = new_client();
    scene.other = new_client();
    scene.link = new_link(scene.client);
    scene.next = new_link(scene.client);
    scene.lock = new_lock(scene.client, "door", LONG_MS);
    scene.held = new_lock(scene.other, "door", LONG_MS);
    *state = &scene;
    return 0;
}

int set_up_held(void **state)
{
    set_up_free(state);
    assert_int_equal(sneck_lock_acquire(((struct scene *)*state)->held, 0), SNECK_OK);
    return 0;
}

int tear_down(void **state)
{
    struct scene *scene = *state;
    sneck_lock_free(scene->held);
    sneck_lock_free(scene->lock);
    sneck_link_free(scene->next);
    sneck_link_free(scene->link);
    sneck_client_free(scene->other);
    sneck_client_free(scene->client);
    return 0;
}

void let_go(struct scene *scene)
{
    assert_int_equal(sneck_lock_release(scene->held), SNECK_OK);
}

int64_t count_waiters(struct scene *scene)
{
    return COMMAND_INTEGER(scene->other, "ZCARD", "{door}:sneck:queue");
}

size_t count_inboxes(struct scene *scene)
{
    sneck_reply *reply = COMMAND(scene->other, "PUBSUB", "CHANNELS", "sneck:inbox:*");
    size_t count = sneck_reply_count(reply);
    sneck_reply_free(reply);
    return count;
}

void assert_nothing_is_left(struct scene *scene)
{
    assert_int_equal(COMMAND_INTEGER(scene->other, "DBSIZE"), 0);
}
