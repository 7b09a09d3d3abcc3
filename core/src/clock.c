/* clock.c - the one clock that waits, timeouts and validity are counted by.
 *
 * Wall-clock time is never used: it can be set. A lease goes on while a laptop
 * sleeps, so the clock must too: CLOCK_BOOTTIME on Linux; on macOS
 * CLOCK_MONOTONIC counts sleep by itself.
 */
#include "clock.h"

#include "sneck.h"

#include <time.h>

int64_t sneck__now_ms(void)
{
    struct timespec now;
#if defined(CLOCK_BOOTTIME)
    if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
#endif
        clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t sneck__later_ms(int64_t at, int64_t ms)
{
    return ms >= NEVER_MS - at ? NEVER_MS : at + ms;
}

int64_t sneck__end_ms(int64_t at, int64_t ms)
{
    return ms == SNECK_FOREVER ? NEVER_MS : sneck__later_ms(at, ms);
}

bool sneck__is_wait(int64_t ms)
{
    return ms == SNECK_FOREVER || (ms >= 0 && ms <= SNECK_TTL_MAX_MS);
}

int64_t sneck__least_ms(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t sneck__most_ms(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
