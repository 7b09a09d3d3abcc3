/* renewed.c - locks that are renewed, for tests. */
#include "renewed.h"

#include <stdatomic.h>
#include <string.h>

sneck_lock *new_renewed(sneck_client *client, const char *name, int64_t ttl_ms)
{
    sneck_lock *lock = NULL;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.ttl_ms = ttl_ms;
    options.renew = true;
    assert_int_equal(sneck_lock_new(&lock, client, name, strlen(name), &options, NULL), SNECK_OK);
    return lock;
}

sneck_lock *hold(sneck_client *client, const char *name, int64_t ttl_ms)
{
    sneck_lock *lock = new_renewed(client, name, ttl_ms);
    assert_int_equal(sneck_lock_acquire(lock, 60000), SNECK_OK); /* the ttl may be short */
    return lock;
}

int64_t renewals(sneck_client *client)
{
    return calls_of(client, "pexpire");
}

void let_pass(sneck_client *client, int thirds)
{
    sneck_client *other = new_client();
    sneck_lock *lock = hold(other, "clock", TTL_MS);
    DO(client, "CONFIG", "RESETSTAT");
    UNTIL(renewals(client) >= thirds);
    sneck_client_free(other); /* ends its renewal */
    sneck_lock_free(lock);
    DO(client, "DEL", "clock");
}

void count_loss(sneck_lock *lock, void *data)
{
    (void)lock;
    atomic_fetch_add((atomic_int *)data, 1);
}

sneck_lock *hold_told(sneck_client *client, const char *name, int64_t ttl_ms,
                      sneck_lost *on_lost, void *data)
{
    sneck_lock *lock = NULL;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.ttl_ms = ttl_ms;
    options.renew = true;
    options.on_lost = on_lost;
    options.on_lost_data = data;
    assert_int_equal(sneck_lock_new(&lock, client, name, strlen(name), &options, NULL), SNECK_OK);
    assert_int_equal(sneck_lock_acquire(lock, 60000), SNECK_OK); /* the ttl may be short */
    return lock;
}
