/* op_wait.c - the one place that waits: an op is driven, by poll(2), until it has ended. */
#include "op.h"

#include "client.h"

#include <poll.h>

#define SLICE_MS 50    /* how often a wait looks for an interrupt */
#define SETTLE_MS 100  /* how long a cleanup may delay an interrupted call */
#define QUORUM_SETTLE_MS 10 /* how long what is to leave on a new connection, a quorum's */

bool sneck__wait(const sneck_link *link, int other, int64_t timeout_ms,
                 struct readable *readable)
{
    struct pollfd fds[SNECK_LINK_FDS + 1];
    nfds_t n = (nfds_t)sneck_link_fds(link, fds);
    fds[n] = (struct pollfd){.fd = other, .events = POLLIN};
    bool ready = poll(fds, n + (other >= 0), (int)timeout_ms) > 0;
    *readable = ready ? sneck__link_readable(link, fds) : (struct readable){0, 0};
    return ready;
}

/* Nothing that the op has left behind is to be waited for. A quorum's waits by itself for
 * the answers that it needs, and not for a server that is stalled. But nobody steps the link
 * when the call has returned, so what is queued on a connection that was begun by it, when
 * the link's generation was another one, gets the time to leave. */
static bool is_settled(const sneck_op *op, uint64_t generation)
{
    const sneck_link *link = op->link;
    if (!op->alone)
        return true;
    if (!link->client->quorum)
        return sneck__link_quiet(link);
    return sneck_link_generation(link) == generation || !sneck__link_is_connecting(link);
}

static int64_t settle_limit_ms(const sneck_op *op)
{
    return sneck__now_ms() + (op->link->client->quorum ? QUORUM_SETTLE_MS : SETTLE_MS);
}

/* An interrupt is asked for where nothing came, as after a signal; and now and then where
 * something always comes. */
static bool must_ask(bool idle, int64_t *asked_ms)
{
    int64_t now = sneck__now_ms();
    bool must = idle || now - *asked_ms >= SLICE_MS;
    if (must)
        *asked_ms = now;
    return must;
}

/* Steps the link until the op has ended and, after that, until what it left behind is
 * settled, or the time for that has passed. */
static void drive(sneck_op *op, sneck_interrupt *interrupt, void *data)
{
    sneck_link *link = op->link;
    int64_t settled_ms = NEVER_MS;
    uint64_t generation = sneck_link_generation(link);
    int64_t asked_ms = sneck__now_ms();
    struct readable readable = {0, 0};
    for (;;) {
        sneck__link_step(link, readable);
        bool pending = op->status == SNECK_PENDING;
        if (!pending && is_settled(op, generation))
            return;
        if (!pending && settled_ms == NEVER_MS)
            settled_ms = settle_limit_ms(op);
        if (!pending && sneck__now_ms() >= settled_ms)
            return;
        int64_t timeout = sneck__link_timeout_ms(link);
        int64_t most = pending ? SLICE_MS : settled_ms - sneck__now_ms();
        if ((!pending || interrupt) && (timeout < 0 || timeout > most))
            timeout = most;
        bool idle = !sneck__wait(link, -1, timeout, &readable);
        if (pending && interrupt && must_ask(idle, &asked_ms) && interrupt(data))
            sneck_op_cancel(op);
    }
}

int sneck_op_wait(sneck_op *op, sneck_interrupt *interrupt, void *data)
{
    if (op->status == SNECK_PENDING)
        drive(op, interrupt, data);
    return op->status;
}
