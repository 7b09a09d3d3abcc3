/* sneck_legacy.h - locks of older forms, side by side with their old clients.
 *
 * Conventions are those of sneck.h. docs/legacy.md and docs/try-lock.md have more.
 */
#ifndef SNECK_LEGACY_H
#define SNECK_LEGACY_H

#include "sneck.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------- timestamp lock */

/* In which the time is written. Both are read: a number from 1e9 on is one in seconds, from
 * 1e11 on in milliseconds, below 1e14, and anything else is no time. */
typedef enum sneck_legacy_unit {
    SNECK_LEGACY_SECONDS,       /* but milliseconds over an expired time that was in them */
    SNECK_LEGACY_MILLISECONDS
} sneck_legacy_unit;

/* Makes a lock whose key holds the Unix time at which it runs out, as the
 * documentation of SETNX had it. It excludes and is excluded by older clients that take
 * an expired one over by GETSET: exactly one of all wins. To clients that write milliseconds,
 * seconds look expired: beside them the unit must be theirs. The options' ttl_ms is how
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
 *   - What is no time, such as the value of a plain SETNX, is held for as long as it stands.
 *   - sneck_lock_force_release() leaves an expired time, which an older client may be
 *     about to take over.
 *   - It cannot be a transaction's guard, and its token cannot be adopted.
 *
 * Who wrote the time stands in a second key, `{name}:sneck:writer`. Fails as
 * sneck_lock_new(), and with INVALID where the options ask for `fair` or `fence`, the
 * client is a quorum's, or the unit is none of these.
 * docs/legacy.md has more. */
SNECK_API int sneck_legacy_lock_new(sneck_lock **out, sneck_client *client,
                                    const void *name, size_t name_len,
                                    const sneck_lock_options *options,
                                    sneck_legacy_unit unit, char *error);

/* ---------------------------------------------------------------- try_lock */

/* `SET key value NX PX expire_ms` until it succeeds or `timeout_ms` is over, for callers
 * that choose the value themselves. It may be any 1 to SNECK_TOKEN_MAX bytes, and others
 * may use the same: they exclude each other. The client's key prefix is put before the
 * key. It excludes, and is excluded by, whoever else sets this key if it does not
 * exist, and waits in the lock's queue as sneck_lock_acquire() does.
 *
 *   OK          the key holds the value, and expires expire_ms later
 *   BUSY        timeout_ms was 0 and the key exists
 *   TIMEOUT     the wait ended; `error` says who has it, also that it never expires
 *   UNKNOWN     a reply was lost, or the call was cancelled while a request was under way,
 *               and the key may hold the value on behalf of this call. It is left to
 *               expire, since it may as well be another's with the same value. With a
 *               value that nobody else uses, release it to be certain
 *   CONNECTION, SERVER, PROTOCOL, INVALID, INTERRUPTED, NO_MEMORY
 *
 * Whatever is not OK or UNKNOWN means: nothing of ours stays. `error` takes one line, or
 * is NULL; after SERVER sneck_client_server_code() has the code word. SNECK_FOREVER as
 * timeout_ms: no limit. */
SNECK_API int sneck_try_lock(sneck_client *client, const void *key, size_t key_len,
                             const void *value, size_t value_len, int64_t expire_ms,
                             int64_t timeout_ms, char *error);

/* Hands the lock to whoever waits first, or deletes the key, if it holds the value: in one
 * step of the server. Blocks for one round trip.
 *
 *   OK         released
 *   NOT_OWNER  it had expired, or was deleted or taken; nothing was changed
 *   UNKNOWN    the reply was lost
 *   CONNECTION, SERVER, PROTOCOL, INVALID, INTERRUPTED, NO_MEMORY */
SNECK_API int sneck_release_lock(sneck_client *client, const void *key, size_t key_len,
                                 const void *value, size_t value_len, char *error);

/* The same as ops: see "without blocking" in sneck.h. */
SNECK_API int sneck_try_lock_start(sneck_op **out, sneck_client *client, sneck_link *link,
                                   const void *key, size_t key_len, const void *value,
                                   size_t value_len, int64_t expire_ms, int64_t timeout_ms);
SNECK_API int sneck_release_lock_start(sneck_op **out, sneck_client *client, sneck_link *link,
                                       const void *key, size_t key_len, const void *value,
                                       size_t value_len);

#ifdef __cplusplus
}
#endif

#endif /* SNECK_LEGACY_H */
