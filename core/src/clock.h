#ifndef SNECK_CLOCK_H
#define SNECK_CLOCK_H

#include <stdint.h>

#define NEVER_MS INT64_MAX

/* Milliseconds of a clock that is never set and, where the system has such a
 * clock, goes on while the machine sleeps. */
int64_t sneck__now_ms(void);

/* at + ms, or NEVER_MS when that is past the clock's end. */
int64_t sneck__later_ms(int64_t at, int64_t ms);

#endif
