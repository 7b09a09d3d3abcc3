/* timestamp_lock.c - the timestamp lock: its key holds the time at which it runs out.
 *
 * What the token is elsewhere stands in a second key here, with the time that was
 * written, so that everything above the scripts is as for any lock. The scripts compare
 * and write at once and by the server's clock: a client whose clock is wrong takes
 * nothing from others, and of all who find the time over, older clients that
 * use GETSET included, the first to write is the only one to find it so.
 */
#include "sneck_legacy.h"

#include "lock.h"
#include "script.h"

#define TIMESTAMP_KIND(UNIT)                              \
    {                                                     \
        .acquire = &script_timestamp_acquire,             \
        .release = &script_timestamp_release,             \
        .extend = &script_timestamp_extend,               \
        .holder = &script_timestamp_holder,               \
        .force_release = &script_timestamp_force_release, \
        .beside = "writer",                               \
        .unit = UNIT,                                     \
        .queues = false,                                  \
    }

/* One for each unit, so that a clone is of the same. */
static const struct lock_kind seconds_kind = TIMESTAMP_KIND("s");
static const struct lock_kind milliseconds_kind = TIMESTAMP_KIND("ms");

int sneck_legacy_lock_new(sneck_lock **out, sneck_client *client, const void *name,
                          size_t name_len, const sneck_lock_options *options,
                          sneck_legacy_unit unit, char *error)
{
    if (unit != SNECK_LEGACY_SECONDS && unit != SNECK_LEGACY_MILLISECONDS) {
        sneck__message(error, "lock: the unit of a timestamp lock is SNECK_LEGACY_SECONDS or"
                              " SNECK_LEGACY_MILLISECONDS, not %d", (int)unit);
        return SNECK_INVALID;
    }
    return sneck__lock_make(out, client, name, name_len, options,
                            unit == SNECK_LEGACY_MILLISECONDS ? &milliseconds_kind : &seconds_kind,
                            error);
}
