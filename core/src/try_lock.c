/* try_lock.c - the lock of those who write `SET key value NX PX` themselves: the caller
 * chooses the value, and no object keeps it.
 *
 * To take it is an acquire whose key is to hold the value; see acquire.c. To release it
 * compares the value, whoever wrote it, and knows nothing of an earlier try: what is
 * not there was lost.
 */
#include "acquire.h"
#include "client.h"
#include "sneck_legacy.h"

#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- arguments */

/* An op that has ended with INVALID; nothing was sent. */
static int refuse_start(sneck_op **out, sneck_client *client, sneck_link *link, const char *why)
{
    static const struct op_class refused_class = {0};
    sneck_op *op = sneck__op_new(sizeof *op, &refused_class, client, link);
    if (!op)
        return SNECK_NO_MEMORY;
    if (op->status == SNECK_PENDING)
        sneck__op_end(op, SNECK_INVALID, "%s", why);
    *out = op;
    return SNECK_OK;
}

static const char *wrong_times(int64_t expire_ms, int64_t timeout_ms)
{
    if (expire_ms < SNECK_TTL_MIN_MS || expire_ms > SNECK_TTL_MAX_MS)
        return "expire_ms is from 3 to 31536000000, which is 365 days";
    if (!sneck__is_wait(timeout_ms))
        return "timeout_ms is from 0 to 31536000000, which is 365 days";
    return NULL;
}

static const char *wrong_value(const sneck_client *client, const void *value, size_t value_len)
{
    if (client->quorum)
        return "a value is kept by one server, which a quorum is not; take a lock of it instead";
    if (!value || value_len == 0 || value_len > SNECK_TOKEN_MAX)
        return "a value has from 1 to 65536 bytes";
    return NULL;
}

/* Makes the lock object of one op, unless something is `wrong`. INVALID with words in `error`,
 * or NO_MEMORY. */
static int make_lock(sneck_lock **out, sneck_client *client, const void *key, size_t key_len,
                     int64_t ttl_ms, const char *wrong, char *error)
{
    char quoted[QUOTED_SIZE];
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.ttl_ms = ttl_ms;
    if (!wrong)
        return sneck_lock_new(out, client, key, key_len, &options, error);
    sneck__message(error, "lock %s: %s", sneck__quote(quoted, key, key ? key_len : 0), wrong);
    return SNECK_INVALID;
}

/* -------------------------------------------------------------------- taking */

int sneck_try_lock_start(sneck_op **out, sneck_client *client, sneck_link *link,
                         const void *key, size_t key_len, const void *value, size_t value_len,
                         int64_t expire_ms, int64_t timeout_ms)
{
    char error[SNECK_ERROR_SIZE];
    sneck_lock *lock;
    const char *wrong = wrong_value(client, value, value_len);
    int status = make_lock(&lock, client, key, key_len, expire_ms,
                           wrong ? wrong : wrong_times(expire_ms, timeout_ms), error);
    if (status == SNECK_INVALID)
        return refuse_start(out, client, link, error);
    if (status != SNECK_OK)
        return status;
    status = sneck__acquire_start(out, lock, link, timeout_ms, value, value_len);
    sneck_lock_free(lock);
    return status;
}

/* ----------------------------------------------------------------- releasing */

struct release_value {
    struct lock_op base;
    char *value;            /* owned */
    size_t value_len;
    char mark[RELEASE_MARK_SIZE];
};

static bool release_value_reply(sneck_op *op, redisReply *reply)
{
    sneck_lock *lock = ((struct release_value *)op)->base.lock;
    if (reply->type != REDIS_REPLY_INTEGER) {
        sneck__op_end_reply(op, reply, lock->what);
    } else if (reply->integer > 0) {
        sneck__op_end(op, SNECK_OK, "%s", "");
        if (reply->integer == 3)
            sneck__client_count_wakeups(lock->client, false);
    } else {
        sneck__op_end(op, SNECK_NOT_OWNER, "%s: it does not hold this value: it had expired, or was"
                      " deleted%s", lock->what,
                      reply->integer == 0 ? ", and has another owner now" : "");
    }
    return false;
}

static void release_value_lost(sneck_op *op, bool sent)
{
    sneck__op_end_lost(op, sent, ((struct release_value *)op)->base.lock->what);
}

static void release_value_cancel(sneck_op *op)
{
    sneck__op_end(op, SNECK_UNKNOWN, "%s: cancelled while its release was under way; release"
                  " again to be certain", ((struct release_value *)op)->base.lock->what);
}

static void release_value_clear(sneck_op *op)
{
    free(((struct release_value *)op)->value);
    sneck__lock_op_clear(op);
}

static const struct op_class release_value_class = {
    .reply = release_value_reply,
    .lost = release_value_lost,
    .cancel = release_value_cancel,
    .clear = release_value_clear,
};

static int release_with(sneck_op **out, sneck_lock *lock, sneck_link *link, const void *value,
                        size_t value_len)
{
    char *copy = malloc(value_len);
    struct release_value *r =
        copy ? sneck__lock_op_new(sizeof *r, &release_value_class, lock, link) : NULL;
    if (!r) {
        free(copy);
        return SNECK_NO_MEMORY;
    }
    r->value = memcpy(copy, value, value_len);
    r->value_len = value_len;
    if (r->base.op.status == SNECK_PENDING) {
        size_t mark_len = sneck__lock_op_mark(&r->base, r->mark);
        sneck__lock_op_script(&r->base, &script_release, mark_len ? 3 : 2,
                              (const char *const[]){r->value, "", r->mark},
                              (const size_t[]){r->value_len, 0, mark_len});
    }
    *out = &r->base.op;
    return SNECK_OK;
}

int sneck_release_lock_start(sneck_op **out, sneck_client *client, sneck_link *link,
                             const void *key, size_t key_len, const void *value,
                             size_t value_len)
{
    char error[SNECK_ERROR_SIZE];
    sneck_lock *lock;
    int status = make_lock(&lock, client, key, key_len, SNECK_TTL_MAX_MS,
                           wrong_value(client, value, value_len), error);
    if (status == SNECK_INVALID)
        return refuse_start(out, client, link, error);
    if (status != SNECK_OK)
        return status;
    status = release_with(out, lock, link, value, value_len);
    sneck_lock_free(lock);
    return status;
}

/* ------------------------------------------------------------------ blocking */

/* Waits for an op that was started with this status, and frees it. */
static int finish_value_op(sneck_client *client, int status, sneck_op *op, char *error)
{
    if (status != SNECK_OK) {
        sneck__client_report(client, "out of memory", "");
        sneck__message(error, "out of memory");
        return status;
    }
    status = sneck_op_wait(op, NULL, NULL);
    if (status != SNECK_OK) {
        sneck__client_report(client, sneck_op_error(op), op->server_code);
        sneck__message(error, "%s", sneck_op_error(op));
    }
    sneck_op_free(op);
    return status;
}

int sneck_try_lock(sneck_client *client, const void *key, size_t key_len, const void *value,
                   size_t value_len, int64_t expire_ms, int64_t timeout_ms, char *error)
{
    sneck_op *op = NULL;
    int status = sneck_try_lock_start(&op, client, NULL, key, key_len, value, value_len,
                                      expire_ms, timeout_ms);
    return finish_value_op(client, status, op, error);
}

int sneck_release_lock(sneck_client *client, const void *key, size_t key_len, const void *value,
                       size_t value_len, char *error)
{
    sneck_op *op = NULL;
    int status = sneck_release_lock_start(&op, client, NULL, key, key_len, value, value_len);
    return finish_value_op(client, status, op, error);
}
