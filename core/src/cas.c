/* cas.c - the common transactions on one key, written as bodies of sneck_transact():
 * change a value by a function of it, or only if it is what it was. A value is a string.
 */
#include "text.h"
#include "tx.h"

#include <string.h>

struct cell {
    const void *key;
    size_t key_len;
    int64_t ttl_ms;
};

static int read_cell(sneck_reply **out, sneck_tx *tx, const struct cell *cell)
{
    return sneck_tx_read(out, tx, 2, (const void *const[]){"GET", cell->key},
                         (const size_t[]){3, cell->key_len});
}

static int write_cell(sneck_tx *tx, const struct cell *cell, const sneck_change *change)
{
    bool deletes = change->kind == SNECK_DELETE;
    if (change->kind == SNECK_KEEP)
        return SNECK_OK;
    if (!deletes && !change->bytes)
        return sneck__tx_fail(tx, SNECK_INVALID, "transaction: the new value is NULL; to delete"
                              " the key takes SNECK_DELETE");
    return sneck_tx_put(tx, cell->key, cell->key_len, deletes ? NULL : change->bytes,
                        change->len, cell->ttl_ms);
}

static int check_cell(const struct cell *cell, char *error)
{
    const char *why = sneck__tx_put_refused(cell->key, cell->ttl_ms);
    if (!why)
        return SNECK_OK;
    sneck__message(error, "compare-and-set: %s", why);
    return SNECK_INVALID;
}

static int transact_cell(sneck_client *client, const struct cell *cell,
                         const sneck_tx_options *options, sneck_tx_body *body, void *data,
                         char *error)
{
    sneck_reply *reply = NULL;
    int status = check_cell(cell, error);
    if (status == SNECK_OK)
        status = sneck_transact(&reply, client, 1, (const void *const[]){cell->key},
                                &cell->key_len, options, body, data, error);
    sneck_reply_free(reply);
    return status;
}

/* --------------------------------------------------------------------- update */

struct update {
    struct cell cell;
    sneck_update_function *function;
    void *data;
};

static int update_body(sneck_tx *tx, void *data)
{
    struct update *u = data;
    sneck_reply *old = NULL;
    sneck_change change = {SNECK_KEEP, NULL, 0};
    size_t len = 0;
    int status = read_cell(&old, tx, &u->cell);
    if (status != SNECK_OK)
        return status;
    const char *bytes = sneck_reply_bytes(old, &len);
    status = u->function(&change, bytes, len, u->data);
    if (status == SNECK_OK)
        status = write_cell(tx, &u->cell, &change);
    sneck_reply_free(old);
    return status;
}

int sneck_update(sneck_client *client, const void *key, size_t key_len, int64_t ttl_ms,
                 const sneck_tx_options *options, sneck_update_function *function, void *data,
                 char *error)
{
    struct update u = {{key, key_len, ttl_ms}, function, data};
    return transact_cell(client, &u.cell, options, update_body, &u, error);
}

/* ---------------------------------------------------------------- compare, set */

struct compare {
    struct cell cell;
    const void *expected;   /* NULL: the key must be absent */
    size_t expected_len;
    sneck_change change;
    bool matched;
};

static int compare_body(sneck_tx *tx, void *data)
{
    struct compare *c = data;
    sneck_reply *old = NULL;
    size_t len = 0;
    int status = read_cell(&old, tx, &c->cell);
    if (status != SNECK_OK)
        return status;
    const char *bytes = sneck_reply_bytes(old, &len);
    c->matched = bytes && c->expected
        ? len == c->expected_len && memcmp(bytes, c->expected, len) == 0
        : !bytes && !c->expected;
    sneck_reply_free(old);
    return c->matched ? write_cell(tx, &c->cell, &c->change) : SNECK_OK;
}

int sneck_compare_and_set(bool *out, sneck_client *client, const void *key, size_t key_len,
                          const void *expected, size_t expected_len, const void *value,
                          size_t value_len, int64_t ttl_ms, const sneck_tx_options *options,
                          char *error)
{
    struct compare c = {
        .cell = {key, key_len, ttl_ms},
        .expected = expected,
        .expected_len = expected_len,
        .change = {value ? SNECK_SET : SNECK_DELETE, value, value_len},
    };
    int status = transact_cell(client, &c.cell, options, compare_body, &c, error);
    if (status == SNECK_OK)
        *out = c.matched;
    return status;
}
