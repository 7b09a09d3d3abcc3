#ifndef SNECK_FORK_H
#define SNECK_FORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Counts the forks that this process descends from since the library was first
 * used: what was made under another count belongs to the parent. */
unsigned sneck__fork_count(void);

/* A child closes its copies of the descriptors noted here, and must not close them
 * again. `forget` comes before the descriptor is closed. */
void sneck__fork_note(int fd);
void sneck__fork_forget(int fd);

/* True: what was made under `count` is the parent's, and this thread alone makes it
 * the child's, though others may use it for the first time as well. It ends that by
 * sneck__fork_adopted(), and calls nothing in between that adopts. */
bool sneck__fork_inherited(atomic_uint *count);
void sneck__fork_adopted(atomic_uint *count);

/* A mutex that is held while the process forks, so that a child finds whole what it
 * guards. Neither call may be made while holding any such mutex. */
struct fork_hold {
    pthread_mutex_t *mutex;
    struct fork_hold *prev, *next;
};
void sneck__fork_hold(struct fork_hold *hold, pthread_mutex_t *mutex);
void sneck__fork_let_go(struct fork_hold *hold);

#endif
