#ifndef RENEWED_H
#define RENEWED_H

#include "support.h"

#define TTL_MS 2000

sneck_lock *new_renewed(sneck_client *client, const char *name, int64_t ttl_ms);

/* One that is acquired. */
sneck_lock *hold(sneck_client *client, const char *name, int64_t ttl_ms);
sneck_lock *hold_told(sneck_client *client, const char *name, int64_t ttl_ms,
                      sneck_lost *on_lost, void *data);

/* An on_lost; `data` is an atomic_int. */
void count_loss(sneck_lock *lock, void *data);

/* Renewals that found their lock, since the server's statistics were reset. */
int64_t renewals(sneck_client *client);

/* A lock of another client is the clock: waits until it was renewed so often. */
void let_pass(sneck_client *client, int thirds);

#endif
