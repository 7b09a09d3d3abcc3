/* latch.c - how the runner's threads wait for each other.
 *
 * Invariant: what was written before latch_set() is seen behind latch_wait().
 */
#include "latch.h"

#include <errno.h>
#include <time.h>

void latch_init(struct latch *latch)
{
    pthread_mutex_init(&latch->mutex, NULL);
    pthread_cond_init(&latch->changed, NULL);
    latch->set = false;
}

void latch_destroy(struct latch *latch)
{
    pthread_mutex_destroy(&latch->mutex);
    pthread_cond_destroy(&latch->changed);
}

void latch_set(struct latch *latch)
{
    pthread_mutex_lock(&latch->mutex);
    latch->set = true;
    pthread_cond_signal(&latch->changed);
    pthread_mutex_unlock(&latch->mutex);
}

static struct timespec in_ms(int64_t ms)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += (time_t)(ms / 1000);
    limit.tv_nsec += (long)(ms % 1000) * 1000000;
    if (limit.tv_nsec >= 1000000000) {
        limit.tv_sec++;
        limit.tv_nsec -= 1000000000;
    }
    return limit;
}

bool latch_wait(struct latch *latch, int64_t ms)
{
    struct timespec limit = in_ms(ms < 0 ? 0 : ms);
    int rc = 0;
    pthread_mutex_lock(&latch->mutex);
    while (!latch->set && rc != ETIMEDOUT)
        rc = ms < 0 ? pthread_cond_wait(&latch->changed, &latch->mutex)
                    : pthread_cond_timedwait(&latch->changed, &latch->mutex, &limit);
    bool set = latch->set;
    latch->set = false;
    pthread_mutex_unlock(&latch->mutex);
    return set;
}
