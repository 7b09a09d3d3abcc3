/* sneck_quorum.h - one lock over several servers that know nothing of each other.
 *
 *     const char *const urls[] = {"redis://one", "redis://two", "redis://three"};
 *     sneck_client *client;
 *
 *     if (sneck_quorum_new(&client, 3, urls, NULL, error))
 *         die(error);
 *     sneck_lock_new(&lock, client, "reports", 7, NULL, error);
 *
 * A quorum is a client, and its locks are ordinary locks: everything in sneck.h is
 * done with them in the same way, by blocking calls, ops and links. A lock is held while
 * more than half of the servers that were named hold its token (redis.io, "Distributed
 * Locks with Redis"), so fewer than half of them may be down. docs/quorum.md tells how, and
 * what that needs.
 *
 * What differs:
 *   - SNECK_QUORUM is the outcome where fewer servers than a majority could be used. After
 *     a release or an extend the token is kept, so call again.
 *   - Who waits tries again after pauses at random of up to twice the poll interval: there is
 *     no queue, so no waiters and no fair locks.
 *   - A fence costs one more round trip.
 *   - What needs one server is refused with INVALID, before anything is sent: sneck_execute(),
 *     sneck_transact(), sneck_tx_new(), sneck_update(), sneck_compare_and_set(),
 *     sneck_try_lock(), sneck_release_lock(), sneck_legacy_lock_new(), and a quorum's lock
 *     as a guard. Make a client of one of the servers for them.
 */
#ifndef SNECK_QUORUM_H
#define SNECK_QUORUM_H

#include "sneck.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SNECK_QUORUM_MAX 15

/* Makes a client of `count` servers, from 1 to SNECK_QUORUM_MAX; nothing is sent yet. The
 * urls and options are those of sneck_client_new(), but none is NULL. Fails with INVALID:
 * also where two urls name one server, in whatever spelling of its address, user and database;
 * no name is looked up for that, and a unix socket is another address than a port. Or with
 * NO_MEMORY. Release with sneck_client_free(). */
SNECK_API int sneck_quorum_new(sneck_client **out, size_t count, const char *const *urls,
                               const sneck_client_options *options, char *error);

/* How many servers a client has: 1 when it is not a quorum's. */
SNECK_API size_t sneck_client_servers(const sneck_client *client);

/* The address of one of them, counted from 0 in the order of the urls: "host:port" or the
 * path of a unix socket, for messages. Borrowed from the client; NULL past the last one. */
SNECK_API const char *sneck_client_address(const sneck_client *client, size_t server);

/* The client that an op belongs to; borrowed. NULL once its link is freed. */
SNECK_API const sneck_client *sneck_op_client(const sneck_op *op);

/* What was wrong at one of the servers of the op's client, without its address: "" where
 * nothing was, or is yet. Borrowed from the op. Of an op that has ended OK, too. */
SNECK_API const char *sneck_op_member_error(const sneck_op *op, size_t server);

#ifdef __cplusplus
}
#endif

#endif /* SNECK_QUORUM_H */
