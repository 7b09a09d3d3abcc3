/* sneck_all.c - the whole core as one translation unit.
 *
 * Every build compiles this file: CMake, the Python extension and the Lua rock,
 * so there is one list of sources and nothing internal needs a visible symbol.
 */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* getentropy, CLOCK_BOOTTIME, MSG_NOSIGNAL under -std=c11 */
#endif

#include "acquire.c"
#include "blocking.c"
#include "buffer.c"
#include "cas.c"
#include "client.c"
#include "clock.c"
#include "command.c"
#include "companion.c"
#include "counters.c"
#include "execute.c"
#include "extend.c"
#include "force_release.c"
#include "fork.c"
#include "heap.c"
#include "holder.c"
#include "inbox.c"
#include "link.c"
#include "listeners.c"
#include "lock.c"
#include "lock_op.c"
#include "op.c"
#include "release.c"
#include "renewal.c"
#include "reply.c"
#include "reply_guard.c"
#include "resolve.c"
#include "status.c"
#include "text.c"
#include "token.c"
#include "transact.c"
#include "tx.c"
#include "tx_begin.c"
#include "tx_commit.c"
#include "tx_op.c"
#include "tx_read.c"
#include "tx_turn.c"
#include "url.c"
#include "waiters.c"
#include "waiting.c"
#include "wire.c"
