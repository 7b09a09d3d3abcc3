/* fork.c - tells what a child process inherited from what it made itself.
 *
 * Sockets and tokens that a child inherits are still its parent's. Each client,
 * link and lock remembers the count it was made under and compares.
 */
#include "fork.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_uint forks;

static void count_fork(void)
{
    atomic_fetch_add(&forks, 1);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

unsigned sneck__fork_count(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    return atomic_load_explicit(&forks, memory_order_relaxed);
}
