#ifndef SNECK_COUNTERS_H
#define SNECK_COUNTERS_H

#include "sneck.h"

#include <stdatomic.h>

#define BUSY_NAMES 64

/* What a client counts, and what it remembers of busy locks. Any thread may touch
 * it at any time. */
struct counters {
    atomic_uint_fast64_t acquisitions, contended, handoffs, polls, wait_ms, losses, unknown;
    atomic_int wakeups;                     /* a sneck_wakeups */
    atomic_uint_fast32_t busy[BUSY_NAMES];  /* hashes of locks that were busy lately */
};

/* Was the lock with this hash busy when it was last asked for? Forgetful: another
 * lock may take its place. */
bool sneck__was_busy(struct counters *counters, uint32_t hash);
void sneck__note_busy(struct counters *counters, uint32_t hash, bool busy);

uint32_t sneck__hash(const void *bytes, size_t len);

#endif
