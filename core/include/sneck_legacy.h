/* sneck_legacy.h - locks of the kinds that were there before `SET NX PX`, for programs
 * whose older clients still use them. Conventions are those of sneck.h. */
#ifndef SNECK_LEGACY_H
#define SNECK_LEGACY_H

#include "sneck.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------- timestamp lock */

/* Makes a lock whose key holds the Unix time in seconds at which it runs out, as the
 * documentation of SETNX had it. It excludes and is excluded by older clients that take
 * an expired one over by GETSET: exactly one of all wins. The options' ttl_ms is how
 * long it is held. Every call on a lock takes it, with these differences:
 *
 *   - Only the server's clock is asked. A part of a second is rounded up in the key, but
 *     not in what sneck_lock_remaining_ms() says.
 *   - There is no queue: who waits asks after every poll_ms, jittered, and when the
 *     time in the key is over. So sneck_lock_waiters() lists nobody.
 *   - When another client has written a time over ours, release and extend say
 *     NOT_OWNER and leave it: it may have lost a race for the lock, or taken it.
 *   - sneck_lock_holder() gives the writer's token where a client of ours wrote
 *     the time, and else the time itself as a foreign token.
 *   - It cannot be a transaction's guard.
 *
 * Who wrote the time stands in a second key, `{name}:sneck:writer`. Fails as
 * sneck_lock_new(), and with INVALID where the options ask for `fair` or `fence`.
 * docs/legacy.md has more. */
SNECK_API int sneck_legacy_lock_new(sneck_lock **out, sneck_client *client,
                                    const void *name, size_t name_len,
                                    const sneck_lock_options *options, char *error);

#ifdef __cplusplus
}
#endif

#endif /* SNECK_LEGACY_H */
