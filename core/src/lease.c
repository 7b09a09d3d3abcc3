/* lease.c - what is known of a lock's token: whether it is ours, and until when.
 *
 * No I/O here; acquire.c, release.c, extend.c and holder.c talk to the server and
 * report back. Invariant: until `deadline_ms` no other client can hold the lock,
 * as far as every answer so far tells. Reports name the token that they are
 * about, so that a late one never changes what a newer acquire found.
 *
 *            acquired                       release sent
 *   nothing ---------> held until deadline -------------> held, not surely ours
 *      ^  \               |                                  |   reply lost:
 *      |   \ reply lost:  | deadline passed, or not ours     |   DOUBT_RELEASE
 *      |    DOUBT_ACQUIRE |                                  |
 *      +---------+--------+---------- definite answer -------+
 */
#include "lock.h"

#include "clock.h"
#include "fork.h"

#include <stdlib.h>
#include <string.h>

#define DRIFT_MS 2 /* as in Redlock: ttl/100 + 2 ms for drift and rounding */

/* ----------------------------------------------------------------- the token */

static void forget(sneck_lock *lock)
{
    lock->token_len = 0;
    lock->deadline_ms = 0;
    lock->doubt = DOUBT_NONE;
    lock->lost = lock->moved = lock->failing = false;
    lock->extending = lock->releasing = 0;
    lock->grant_count = 0;
}

/* In a child after fork() the token is the parent's, and so may be the mutex. */
void sneck__lock_enter(sneck_lock *lock)
{
    if (sneck__fork_inherited(&lock->fork_count)) {
        pthread_mutex_init(&lock->mutex, NULL);
        lock->head_len = sneck__token_head_of_child(lock->head, lock->head_len);
        forget(lock);
        sneck__fork_adopted(&lock->fork_count);
    }
    pthread_mutex_lock(&lock->mutex);
}

void sneck__lock_exit(sneck_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}

static bool owns(const sneck_lock *lock, const char *token, size_t len)
{
    return lock->token_len == len && memcmp(lock->token, token, len) == 0;
}

/* Behind an acquire in doubt a cleanup was sent, which may end the lease at any time,
 * and so may a release in doubt. */
static bool may_extend(const sneck_lock *lock)
{
    return lock->token_len > 0 && !lock->releasing && lock->doubt == DOUBT_NONE;
}

static void own(sneck_lock *lock, const char *token, size_t len, int64_t deadline_ms,
                enum lock_doubt doubt)
{
    memcpy(lock->token, token, len);
    lock->token_len = len;
    lock->lease_number++;
    lock->deadline_ms = deadline_ms;
    lock->doubt = doubt;
    lock->fence = 0;
    lock->lost = lock->moved = lock->failing = false;
    lock->extending = lock->releasing = 0;
    lock->grant_count = 0;
}

int64_t sneck__validity_ms(int64_t sent_ms, int64_t ttl_ms)
{
    return sent_ms + ttl_ms - (ttl_ms / 100 + DRIFT_MS);
}

size_t sneck__lock_make_token(sneck_lock *lock, char out[OWN_TOKEN_MAX])
{
    sneck__lock_enter(lock);
    size_t head_len = lock->head_len;
    memcpy(out, lock->head, head_len);
    sneck__lock_exit(lock);
    return sneck__token_tail(out + head_len) ? head_len + 2 * TOKEN_RANDOM : 0;
}

int sneck__lock_copy_token(sneck_lock *lock, char **out, size_t *len, uint64_t *number)
{
    int rc = SNECK_OK;
    *out = NULL;
    sneck__lock_enter(lock);
    *len = lock->token_len;
    if (number)
        *number = lock->lease_number;
    if (*len > 0 && !(*out = malloc(*len)))
        rc = SNECK_NO_MEMORY;
    else if (*len > 0)
        memcpy(*out, lock->token, *len);
    sneck__lock_exit(lock);
    return rc;
}

/* ------------------------------------------------------------ what ops report */

uint64_t sneck__lock_hold(sneck_lock *lock, const char *token, size_t len, int64_t deadline_ms,
                          int64_t fence)
{
    sneck__lock_enter(lock);
    own(lock, token, len, deadline_ms, DOUBT_NONE);
    lock->fence = fence;
    uint64_t number = lock->lease_number;
    sneck__lock_exit(lock);
    return number;
}

static bool add_grant(sneck_lock *lock, struct grant grant)
{
    for (size_t i = 0; i < lock->grant_count; i++)
        if (lock->grants[i].link == grant.link) {
            lock->grants[i].servers |= grant.servers;
            return true;
        }
    if (lock->grant_count == GRANTS_MAX)
        return false;
    lock->grants[lock->grant_count++] = grant;
    return true;
}

bool sneck__lock_note_grant(sneck_lock *lock, const char *token, size_t len, struct grant grant)
{
    sneck__lock_enter(lock);
    bool may = owns(lock, token, len) && may_extend(lock) &&
                 sneck__now_ms() < lock->deadline_ms && add_grant(lock, grant);
    sneck__lock_exit(lock);
    return may;
}

uint64_t sneck__lock_grant_link(sneck_lock *lock)
{
    sneck__lock_enter(lock);
    uint64_t link = lock->grant_count > 0 ? lock->grants[0].link : 0;
    sneck__lock_exit(lock);
    return link;
}

void sneck__lock_doubt_acquire(sneck_lock *lock, const char *token, size_t len)
{
    sneck__lock_enter(lock);
    if (lock->token_len == 0 || sneck__now_ms() >= lock->deadline_ms)
        own(lock, token, len, 0, DOUBT_ACQUIRE);
    sneck__lock_exit(lock);
}

/* Of several releases at once, the first keeps the deadline for all of them. */
void sneck__lock_begin_release(sneck_lock *lock, struct token_release *release)
{
    int64_t deadline_ms = 0;
    sneck__lock_enter(lock);
    if (owns(lock, release->token, release->token_len)) {
        memcpy(release->grants, lock->grants, sizeof release->grants);
        release->grant_count = lock->grant_count;
        if (lock->releasing++ == 0) {
            lock->kept_ms = lock->deadline_ms;
            lock->deadline_ms = 0;
        }
        deadline_ms = lock->kept_ms;
    }
    sneck__lock_exit(lock);
    release->in_time = sneck__now_ms() < deadline_ms;
}

static void release_over(struct token_release *release)
{
    free(release->token);
    release->token = NULL;
}

void sneck__lock_undo_release(sneck_lock *lock, struct token_release *release)
{
    if (!release->token)
        return;
    sneck__lock_enter(lock);
    if (owns(lock, release->token, release->token_len) && lock->releasing > 0 &&
        --lock->releasing == 0 && lock->doubt != DOUBT_RELEASE) /* else one may still come */
        lock->deadline_ms = lock->kept_ms;
    sneck__lock_exit(lock);
    release_over(release);
}

void sneck__lock_doubt_release(sneck_lock *lock, struct token_release *release)
{
    if (!release->token)
        return;
    sneck__lock_enter(lock);
    if (owns(lock, release->token, release->token_len)) {
        if (lock->releasing > 0) /* unless the token was adopted meanwhile */
            lock->releasing--;
        if (lock->doubt == DOUBT_NONE) {
            lock->doubt = DOUBT_RELEASE;
            lock->released_in_time = release->in_time;
        }
    }
    sneck__lock_exit(lock);
    release_over(release);
}

bool sneck__lock_end_release(sneck_lock *lock, struct token_release *release, bool found)
{
    bool well = found;
    if (!release->token)
        return well;
    sneck__lock_enter(lock);
    if (owns(lock, release->token, release->token_len)) {
        well = found || lock->doubt == DOUBT_ACQUIRE ||
               (lock->doubt == DOUBT_RELEASE && lock->released_in_time);
        forget(lock);
        lock->lost = !well;
    }
    sneck__lock_exit(lock);
    release_over(release);
    return well;
}

void sneck__lock_give_up(sneck_lock *lock, const char *token, size_t len)
{
    sneck__lock_enter(lock);
    if (owns(lock, token, len))
        forget(lock);
    sneck__lock_exit(lock);
}

static bool is_being_released(const sneck_lock *lock)
{
    return lock->releasing > 0 || lock->doubt == DOUBT_RELEASE;
}

bool sneck__lock_lose(sneck_lock *lock, const char *token, size_t len)
{
    sneck__lock_enter(lock);
    bool lost = owns(lock, token, len) && !is_being_released(lock);
    if (lost) {
        forget(lock);
        lock->lost = true;
    }
    sneck__lock_exit(lock);
    return lost;
}

void sneck__lock_note_moved(sneck_lock *lock)
{
    sneck__lock_enter(lock);
    lock->moved = lock->lost;
    sneck__lock_exit(lock);
}

struct lock_lease sneck__lock_lease(sneck_lock *lock)
{
    sneck__lock_enter(lock);
    struct lock_lease lease = {
        .owned = may_extend(lock),
        .lost = lock->lost,
        .moved = lock->moved,
        .deadline_ms = lock->deadline_ms ? lock->deadline_ms : NEVER_MS,
    };
    sneck__lock_exit(lock);
    return lease;
}

void sneck__lock_note_renewal(sneck_lock *lock, bool well)
{
    sneck__lock_enter(lock);
    lock->failing = !well;
    sneck__lock_exit(lock);
}

bool sneck__lock_begin_extend(sneck_lock *lock, const char *token, size_t len,
                              int64_t sent_ms, int64_t ttl_ms)
{
    sneck__lock_enter(lock);
    bool may = owns(lock, token, len) && may_extend(lock);
    if (may) {
        lock->deadline_ms = sneck__least_ms(lock->deadline_ms,
                                            sneck__validity_ms(sent_ms, ttl_ms));
        lock->shortest_ms = lock->extending++ > 0
            ? sneck__least_ms(lock->shortest_ms, ttl_ms) : ttl_ms;
    }
    sneck__lock_exit(lock);
    return may;
}

/* Of extends that overlap, the server may have done any one last. But that was not
 * before any of them was sent, so the lease is no shorter than the shortest. */
void sneck__lock_end_extend(sneck_lock *lock, const char *token, size_t len,
                            int64_t sent_ms, bool confirmed)
{
    sneck__lock_enter(lock);
    if (owns(lock, token, len)) {
        lock->extending--;
        if (confirmed && !is_being_released(lock)) {
            int64_t deadline_ms = sneck__validity_ms(sent_ms, lock->shortest_ms);
            lock->deadline_ms = sneck__most_ms(lock->deadline_ms, deadline_ms);
            lock->failing = false;
        }
    }
    sneck__lock_exit(lock);
}

/* ------------------------------------------------------------------- reading */

/* Reading may come first in a child, and must not take the parent's mutex. */
static sneck_lock *readable(const sneck_lock *lock)
{
    return (sneck_lock *)(uintptr_t)lock;
}

int64_t sneck_lock_remaining_ms(const sneck_lock *lock)
{
    sneck_lock *self = readable(lock);
    sneck__lock_enter(self);
    int64_t deadline_ms = self->token_len > 0 ? self->deadline_ms : 0;
    sneck__lock_exit(self);
    int64_t now = sneck__now_ms();
    return deadline_ms > now ? deadline_ms - now : 0;
}

static sneck_lease lease_of(const sneck_lock *lock)
{
    if (lock->token_len == 0)
        return lock->lost ? SNECK_LEASE_LOST : SNECK_LEASE_NONE;
    if (lock->deadline_ms == 0)
        return SNECK_LEASE_UNCERTAIN;
    if (sneck__now_ms() >= lock->deadline_ms)
        return SNECK_LEASE_LOST;
    return lock->failing ? SNECK_LEASE_UNCERTAIN : SNECK_LEASE_HELD;
}

uint64_t sneck_lock_lease_number(const sneck_lock *lock)
{
    sneck_lock *self = readable(lock);
    sneck__lock_enter(self);
    uint64_t number = self->lease_number;
    sneck__lock_exit(self);
    return number;
}

sneck_lease sneck_lock_lease(const sneck_lock *lock)
{
    sneck_lock *self = readable(lock);
    sneck__lock_enter(self);
    sneck_lease lease = lease_of(self);
    sneck__lock_exit(self);
    return lease;
}

int64_t sneck_lock_fence(const sneck_lock *lock)
{
    sneck_lock *self = readable(lock);
    sneck__lock_enter(self);
    int64_t fence = self->token_len > 0 || self->lost ? self->fence : 0;
    sneck__lock_exit(self);
    return fence;
}

size_t sneck_lock_token(const sneck_lock *lock, void *buffer, size_t size)
{
    sneck_lock *self = readable(lock);
    sneck__lock_enter(self);
    size_t len = self->token_len;
    if (len > 0 && size > 0)
        memcpy(buffer, self->token, len < size ? len : size);
    sneck__lock_exit(self);
    return len;
}
