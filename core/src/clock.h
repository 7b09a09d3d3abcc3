#ifndef SNECK_CLOCK_H
#define SNECK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define NEVER_MS INT64_MAX

/* Milliseconds of a clock that is never set and, where the system has such a
 * clock, goes on while the machine sleeps. */
int64_t sneck__now_ms(void);

/* at + ms, or NEVER_MS when that is past the clock's end. */
int64_t sneck__later_ms(int64_t at, int64_t ms);

/* The same for what may be SNECK_FOREVER: NEVER_MS then. */
int64_t sneck__end_ms(int64_t at, int64_t ms);

/* A caller may wait that long: from 0 ms to 365 days, or SNECK_FOREVER. */
bool sneck__is_wait(int64_t ms);

/* Of two times, or two durations. */
int64_t sneck__least_ms(int64_t a, int64_t b);
int64_t sneck__most_ms(int64_t a, int64_t b);

#endif
