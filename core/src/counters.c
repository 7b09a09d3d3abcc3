/* counters.c - what a client has seen: for its users' metrics, and to start an
 * acquire of a busy lock with the request that will be needed. */
#include "counters.h"

#include "client.h"

uint32_t sneck__hash(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * 16777619u;
    return hash;
}

bool sneck__was_busy(struct counters *c, uint32_t hash)
{
    return atomic_load_explicit(&c->busy[hash % BUSY_NAMES], memory_order_relaxed) == hash;
}

void sneck__note_busy(struct counters *c, uint32_t hash, bool busy)
{
    if (busy != sneck__was_busy(c, hash))
        atomic_store_explicit(&c->busy[hash % BUSY_NAMES], busy ? hash : 0,
                              memory_order_relaxed);
}

void sneck_client_stats(sneck_stats *out, const sneck_client *client)
{
    const struct counters *c = &client->counters;
    *out = (sneck_stats){
        .acquisitions = atomic_load_explicit(&c->acquisitions, memory_order_relaxed),
        .contended = atomic_load_explicit(&c->contended, memory_order_relaxed),
        .handoffs = atomic_load_explicit(&c->handoffs, memory_order_relaxed),
        .polls = atomic_load_explicit(&c->polls, memory_order_relaxed),
        .wait_ms = atomic_load_explicit(&c->wait_ms, memory_order_relaxed),
        .losses = atomic_load_explicit(&c->losses, memory_order_relaxed),
        .unknown = atomic_load_explicit(&c->unknown, memory_order_relaxed),
        .wakeups = (sneck_wakeups)atomic_load_explicit(&c->wakeups, memory_order_relaxed),
    };
}
