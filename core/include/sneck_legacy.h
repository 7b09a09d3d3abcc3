/* sneck_legacy.h - locks of older forms, side by side with their old clients.
 *
 * Conventions as in sneck.h. docs/try-lock.md tells how they fit together.
 */
#ifndef SNECK_LEGACY_H
#define SNECK_LEGACY_H

#include "sneck.h"

#ifdef __cplusplus
extern "C" {
#endif

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
 * is NULL. SNECK_FOREVER as timeout_ms: no limit. */
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

#endif
