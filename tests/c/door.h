#ifndef DOOR_H
#define DOOR_H

#include "support.h"

#define LONG_MS 600000 /* of leases that must not end during a test */

/* Two clients of an empty server, which both want the lock "door". */
struct scene {
    sneck_client *client, *other;
    sneck_link *link, *next;    /* two of the client's */
    sneck_lock *lock;           /* the client's */
    sneck_lock *held;           /* the other's */
};

/* setup and teardown of a test; the door is free, or the other one has it. */
int set_up_free(void **state);
int set_up_held(void **state);
int tear_down(void **state);

/* The other one releases the lock. */
void let_go(struct scene *scene);

int64_t count_waiters(struct scene *scene);
size_t count_inboxes(struct scene *scene);
void assert_nothing_is_left(struct scene *scene);

#endif
