/* fork.c - tells what a child process inherited from what it made itself.
 *
 * Sockets and tokens that a child inherits are still its parent's. Each client,
 * link and lock remembers the count it was made under and compares. The child's
 * copies of the sockets are closed at once: while one is open, the server takes
 * the parent's inbox for alive, though the parent may be dead. Mutexes are held while
 * the process forks where a child goes on with what they guard.
 */
#include "fork.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_uint forks;

static pthread_mutex_t noted_mutex = PTHREAD_MUTEX_INITIALIZER; /* for what follows */
static int *noted;          /* descriptors; owned */
static size_t noted_count, noted_size;

static pthread_mutex_t adopting_mutex = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t held_mutex = PTHREAD_MUTEX_INITIALIZER; /* for the list */
static struct fork_hold *holds;

/* In this order: whoever holds one of the held mutexes may adopt something, and who
 * does that may forget a descriptor. */
static void before_fork(void)
{
    pthread_mutex_lock(&held_mutex);
    for (struct fork_hold *hold = holds; hold; hold = hold->next)
        pthread_mutex_lock(hold->mutex);
    pthread_mutex_lock(&adopting_mutex);
    pthread_mutex_lock(&noted_mutex);
}

static void unlock_all(void)
{
    pthread_mutex_unlock(&noted_mutex);
    pthread_mutex_unlock(&adopting_mutex);
    for (struct fork_hold *hold = holds; hold; hold = hold->next)
        pthread_mutex_unlock(hold->mutex);
    pthread_mutex_unlock(&held_mutex);
}

static void after_fork_in_parent(void)
{
    unlock_all();
}

static void after_fork_in_child(void)
{
    for (size_t i = 0; i < noted_count; i++)
        close(noted[i]);
    noted_count = 0;
    atomic_fetch_add(&forks, 1);
    unlock_all();
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

unsigned sneck__fork_count(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

bool sneck__fork_inherited(atomic_uint *count)
{
    unsigned now = sneck__fork_count();
    if (atomic_load_explicit(count, memory_order_acquire) == now)
        return false;
    pthread_mutex_lock(&adopting_mutex);
    if (atomic_load_explicit(count, memory_order_relaxed) != now)
        return true;
    pthread_mutex_unlock(&adopting_mutex);
    return false;
}

void sneck__fork_adopted(atomic_uint *count)
{
    atomic_store_explicit(count, sneck__fork_count(), memory_order_release);
    pthread_mutex_unlock(&adopting_mutex);
}

/* Without memory the descriptor is not noted: a child then keeps its copy. */
void sneck__fork_note(int fd)
{
    pthread_mutex_lock(&noted_mutex);
    if (noted_count == noted_size) {
        size_t size = noted_size ? noted_size * 2 : 16;
        int *grown = realloc(noted, size * sizeof *grown);
        if (grown) {
            noted = grown;
            noted_size = size;
        }
    }
    if (noted_count < noted_size)
        noted[noted_count++] = fd;
    pthread_mutex_unlock(&noted_mutex);
}

void sneck__fork_forget(int fd)
{
    pthread_mutex_lock(&noted_mutex);
    for (size_t i = 0; i < noted_count; i++)
        if (noted[i] == fd)
            noted[i] = noted[--noted_count];
    if (noted_count == 0) {
        free(noted);
        noted = NULL;
        noted_size = 0;
    }
    pthread_mutex_unlock(&noted_mutex);
}

void sneck__fork_hold(struct fork_hold *hold, pthread_mutex_t *mutex)
{
    sneck__fork_count(); /* the handlers are there from the first use on */
    pthread_mutex_lock(&held_mutex);
    hold->mutex = mutex;
    hold->prev = NULL;
    hold->next = holds;
    if (holds)
        holds->prev = hold;
    holds = hold;
    pthread_mutex_unlock(&held_mutex);
}

void sneck__fork_let_go(struct fork_hold *hold)
{
    pthread_mutex_lock(&held_mutex);
    if (hold->prev)
        hold->prev->next = hold->next;
    else
        holds = hold->next;
    if (hold->next)
        hold->next->prev = hold->prev;
    pthread_mutex_unlock(&held_mutex);
}
