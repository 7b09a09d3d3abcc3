/* lock.c - the lock object: a name, a ttl, and what is known of the token.
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

#include "bodies.h"
#include "clock.h"
#include "fork.h"
#include "script.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIFT_MS 2 /* as in Redlock: ttl/100 + 2 ms for drift and rounding */

/* The key holds the token. */
static const struct lock_kind token_kind = {
    .acquire = &script_acquire,
    .release = &script_release,
    .extend = &script_extend,
    .holder = &script_holder,
    .force_release = &script_force_release,
    .beside = "queue",
    .queues = true,
};

/* -------------------------------------------------------------- construction */

static int refuse_lock(char *error, const char *what, const char *why)
{
    sneck__message(error, "%s: %s", what, why);
    return SNECK_INVALID;
}

static int check_arguments(const sneck_client *client, const void *name, size_t name_len,
                           const sneck_lock_options *o, const struct lock_kind *kind,
                           const char *what, char *error)
{
    if (!name || name_len == 0)
        return refuse_lock(error, "lock", "the name is empty");
    if (name_len > SNECK_NAME_MAX - client->prefix_len)
        return refuse_lock(error, what, "the name, its prefix included, is longer than 1 MiB");
    if (o->size != sizeof *o)
        return refuse_lock(error, what, "start the options from SNECK_LOCK_OPTIONS");
    if (o->ttl_ms < SNECK_TTL_MIN_MS || o->ttl_ms > SNECK_TTL_MAX_MS)
        return refuse_lock(error, what, kind->unit ? "a timeout is from 3 ms to 365 days"
                                                   : "a ttl is from 3 ms to 365 days");
    if (o->max_hold_ms != SNECK_FOREVER &&
        (o->max_hold_ms < 1 || o->max_hold_ms > SNECK_TTL_MAX_MS))
        return refuse_lock(error, what, "max_hold is from 1 ms to 365 days, or SNECK_FOREVER");
    if (o->poll_ms < 1 || o->poll_ms > SNECK_TTL_MAX_MS)
        return refuse_lock(error, what, "a poll interval is from 1 ms to 365 days");
    if (o->fair && client->quorum)
        return refuse_lock(error, what, "a quorum has no queue, so its locks cannot be fair");
    if (!kind->queues && (o->fair || o->fence))
        return refuse_lock(error, what, o->fair ? "a timestamp lock has no queue, so it cannot be fair"
                                                : "a timestamp lock has no fence");
    if (!kind->queues && client->quorum)
        return refuse_lock(error, what, "a timestamp lock is on one server, so a client of several"
                                        " makes none");
    return SNECK_OK;
}

static void destroy_lock(sneck_lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
    sneck__client_drop(lock->client);
    free(lock->name);
    free(lock->beside_key.text);
    free(lock->fence_key.text);
    free(lock->label);
    free(lock->what);
    free(lock->head);
    free(lock->token);
    free(lock->error);
    sneck__bodies_free(lock->bodies);
    free(lock);
}

/* How long its own tokens can become, also in a child with a longer pid. */
static size_t token_room(size_t head_len)
{
    return head_len + TOKEN_PID_MAX + 2 * TOKEN_RANDOM;
}

/* What there are thousands of is as large as it must be, and no larger. */
static bool prepare_tokens(sneck_lock *lock)
{
    char head[TOKEN_HEAD_SIZE];
    lock->head_len = sneck__token_head(head, lock->label);
    lock->head = malloc(lock->head_len + TOKEN_PID_MAX);
    lock->token = malloc(token_room(lock->head_len));
    if (!lock->head || !lock->token)
        return false;
    memcpy(lock->head, head, lock->head_len);
    return true;
}

static bool fill(sneck_lock *lock, const void *name, size_t name_len,
                 const sneck_lock_options *o, const char *what)
{
    const sneck_client *client = lock->client;
    const char *label = o->label ? o->label : client->label;
    lock->ttl_ms = o->ttl_ms;
    lock->poll_ms = o->poll_ms;
    lock->fair = o->fair;
    lock->renew = o->renew;
    lock->max_hold_ms = o->max_hold_ms;
    lock->on_lost = o->on_lost;
    lock->on_lost_data = o->on_lost_data;
    lock->name_len = client->prefix_len + name_len;
    lock->name = malloc(lock->name_len);
    lock->what = strdup(what);
    lock->label = label ? strdup(label) : NULL;
    if (!lock->name || !lock->what || (label && !lock->label) || !prepare_tokens(lock))
        return false;
    memcpy(lock->name, client->prefix, client->prefix_len);
    memcpy(lock->name + client->prefix_len, name, name_len);
    if (!sneck__companion(&lock->beside_key, lock->name, lock->name_len, lock->kind->beside) ||
        (o->fence && !sneck__companion(&lock->fence_key, lock->name, lock->name_len, "fence")))
        return false;
    lock->hash = sneck__hash(lock->name, lock->name_len);
    atomic_init(&lock->fork_count, sneck__fork_count());
    return true;
}

int sneck__lock_make(sneck_lock **out, sneck_client *client, const void *name, size_t name_len,
                     const sneck_lock_options *options, const struct lock_kind *kind,
                     char *error)
{
    static const sneck_lock_options defaults = SNECK_LOCK_OPTIONS;
    char quoted[QUOTED_SIZE], what[QUOTED_SIZE + 8];
    if (!options)
        options = &defaults;
    snprintf(what, sizeof what, "lock %s", sneck__quote(quoted, name, name ? name_len : 0));
    int rc = check_arguments(client, name, name_len, options, kind, what, error);
    if (rc != SNECK_OK)
        return rc;
    sneck_lock *lock = calloc(1, sizeof *lock);
    if (!lock) {
        sneck__message(error, "out of memory");
        return SNECK_NO_MEMORY;
    }
    atomic_init(&lock->references, 1);
    pthread_mutex_init(&lock->mutex, NULL);
    lock->client = sneck__client_share(client);
    lock->kind = kind;
    lock->counters = &client->counters;
    if (!fill(lock, name, name_len, options, what)) {
        sneck__message(error, "out of memory");
        destroy_lock(lock);
        return SNECK_NO_MEMORY;
    }
    *out = lock;
    return SNECK_OK;
}

int sneck_lock_new(sneck_lock **out, sneck_client *client, const void *name,
                   size_t name_len, const sneck_lock_options *options, char *error)
{
    return sneck__lock_make(out, client, name, name_len, options, &token_kind, error);
}

int sneck_lock_clone(sneck_lock **out, const sneck_lock *lock)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    size_t prefix_len = lock->client->prefix_len;
    options.ttl_ms = lock->ttl_ms;
    options.label = lock->label;
    options.poll_ms = lock->poll_ms;
    options.fair = lock->fair;
    options.fence = lock->fence_key.text != NULL;
    options.renew = lock->renew;
    options.max_hold_ms = lock->max_hold_ms;
    options.on_lost = lock->on_lost;
    options.on_lost_data = lock->on_lost_data;
    return sneck__lock_make(out, lock->client, lock->name + prefix_len,
                            lock->name_len - prefix_len, &options, lock->kind, NULL);
}

int sneck_lock_adopt(sneck_lock **out, sneck_client *client, const void *name,
                     size_t name_len, const void *token, size_t token_len,
                     const sneck_lock_options *options, char *error)
{
    if (!token || token_len == 0 || token_len > SNECK_TOKEN_MAX)
        return refuse_lock(error, "lock", "an adopted token has from 1 to 65536 bytes");
    sneck_lock *lock;
    int rc = sneck_lock_new(&lock, client, name, name_len, options, error);
    if (rc != SNECK_OK)
        return rc;
    if (token_len > token_room(lock->head_len)) {
        char *grown = realloc(lock->token, token_len);
        if (!grown) {
            sneck__message(error, "out of memory");
            destroy_lock(lock);
            return SNECK_NO_MEMORY;
        }
        lock->token = grown;
    }
    memcpy(lock->token, token, token_len);
    lock->token_len = token_len;
    lock->lease_number = 1;
    *out = lock;
    return SNECK_OK;
}

sneck_lock *sneck__lock_share(sneck_lock *lock)
{
    atomic_fetch_add_explicit(&lock->references, 1, memory_order_relaxed);
    return lock;
}

void sneck__lock_drop(sneck_lock *lock)
{
    if (atomic_fetch_sub(&lock->references, 1) == 1)
        destroy_lock(lock);
}

bool sneck__lock_is_shared(const sneck_lock *lock)
{
    return atomic_load(&lock->references) > 1;
}

void sneck_lock_free(sneck_lock *lock)
{
    if (!lock)
        return;
    sneck__renewal_forget(lock);
    sneck__lock_drop(lock);
}

/* ----------------------------------------------------------------- the token */

static void forget(sneck_lock *lock)
{
    lock->token_len = 0;
    lock->deadline_ms = 0;
    lock->doubt = DOUBT_NONE;
    lock->releasing = lock->lost = lock->moved = lock->failing = false;
    lock->extending = 0;
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

static void own(sneck_lock *lock, const char *token, size_t len, int64_t deadline_ms,
                enum lock_doubt doubt)
{
    memcpy(lock->token, token, len);
    lock->token_len = len;
    lock->lease_number++;
    lock->deadline_ms = deadline_ms;
    lock->doubt = doubt;
    lock->fence = 0;
    lock->releasing = lock->lost = lock->moved = lock->failing = false;
    lock->extending = 0;
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

void sneck__lock_doubt_acquire(sneck_lock *lock, const char *token, size_t len)
{
    sneck__lock_enter(lock);
    if (lock->token_len == 0 || sneck__now_ms() >= lock->deadline_ms)
        own(lock, token, len, 0, DOUBT_ACQUIRE);
    sneck__lock_exit(lock);
}

void sneck__lock_begin_release(sneck_lock *lock, struct token_release *release)
{
    release->deadline_ms = 0;
    sneck__lock_enter(lock);
    if (owns(lock, release->token, release->token_len)) {
        release->deadline_ms = lock->deadline_ms;
        lock->deadline_ms = 0;
        lock->releasing = true;
    }
    sneck__lock_exit(lock);
    release->in_time = sneck__now_ms() < release->deadline_ms;
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
    if (owns(lock, release->token, release->token_len)) {
        lock->deadline_ms = release->deadline_ms;
        lock->releasing = lock->doubt == DOUBT_RELEASE; /* an earlier one may still come */
    }
    sneck__lock_exit(lock);
    release_over(release);
}

void sneck__lock_doubt_release(sneck_lock *lock, struct token_release *release)
{
    if (!release->token)
        return;
    sneck__lock_enter(lock);
    if (owns(lock, release->token, release->token_len) && lock->doubt == DOUBT_NONE) {
        lock->doubt = DOUBT_RELEASE;
        lock->released_in_time = release->in_time;
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

bool sneck__lock_lose(sneck_lock *lock, const char *token, size_t len)
{
    sneck__lock_enter(lock);
    bool lost = owns(lock, token, len) && !lock->releasing;
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

/* Behind an acquire in doubt a cleanup was sent, which may end the lease at any time,
 * and so may a release in doubt. */
static bool may_extend(const sneck_lock *lock)
{
    return lock->token_len > 0 && !lock->releasing && lock->doubt == DOUBT_NONE;
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
        if (confirmed && !lock->releasing) {
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

/* The place of the message stays for good: another thread may be reading the last one. */
void sneck__lock_report(sneck_lock *lock, const char *error, const char *code)
{
    sneck__lock_enter(lock);
    if (!lock->error)
        lock->error = malloc(SNECK_ERROR_SIZE);
    if (lock->error)
        snprintf(lock->error, SNECK_ERROR_SIZE, "%s", error);
    snprintf(lock->server_code, sizeof lock->server_code, "%s", code);
    sneck__lock_exit(lock);
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

int64_t sneck_lock_ttl_ms(const sneck_lock *lock)
{
    return lock->ttl_ms;
}

const char *sneck_lock_server_code(const sneck_lock *lock)
{
    return lock->server_code;
}

const char *sneck_lock_error(const sneck_lock *lock)
{
    return lock->error ? lock->error : "";
}
