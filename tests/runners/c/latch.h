#ifndef RUNNER_LATCH_H
#define RUNNER_LATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* What one thread waits for and another one says, once. */
struct latch {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool set;
};

void latch_init(struct latch *latch);
void latch_destroy(struct latch *latch);
void latch_set(struct latch *latch);

/* Waits until it is set and takes that back; -1 ms: without a limit. False: it was
 * not set in time. */
bool latch_wait(struct latch *latch, int64_t ms);

#endif
