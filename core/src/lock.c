/* lock.c - the lock object: a name, its options, and how it comes and goes.
 *
 * No I/O here. What is known of its token is in lease.c.
 */
#include "lock.h"

#include "bodies.h"
#include "fork.h"
#include "script.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        return refuse_lock(error, what, "a timestamp lock is on one server, so a quorum makes none");
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

/* ------------------------------------------------------------- what it tells */

int64_t sneck_lock_ttl_ms(const sneck_lock *lock)
{
    return lock->ttl_ms;
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

const char *sneck_lock_server_code(const sneck_lock *lock)
{
    return lock->server_code;
}

const char *sneck_lock_error(const sneck_lock *lock)
{
    return lock->error ? lock->error : "";
}
