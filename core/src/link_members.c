/* link_members.c - a link as a loop sees it: what to wait for, for how long, and a step.
 *
 * A link is one connection, or one for each server of a quorum. The loop does not
 * tell them apart: a step reads from all connections first, then fires timers, and
 * then writes to all. So what an op decides by the reply of one server, however many it
 * concerns, leaves in the same step.
 */
#include "client.h"
#include "clock.h"
#include "link.h"
#include "op.h"

#include <stdlib.h>

#define TIMEOUT_MAX_MS 60000

static bool has_bit(uint32_t bits, size_t i)
{
    return bits >> i & 1;
}

static sneck_op *op_of_timer(struct heap_item *item)
{
    return (sneck_op *)((char *)item - offsetof(sneck_op, timer));
}

static void fire_timers(sneck_link *link)
{
    if (link->timers.count == 0)
        return;
    int64_t now = sneck__now_ms();
    while (sneck__heap_due_ms(&link->timers) <= now)
        sneck__op_timer(op_of_timer(link->timers.items[0]));
}

void sneck__link_step(sneck_link *link, struct readable readable)
{
    sneck__link_run_errands(link);
    for (size_t i = 0; i < link->member_count; i++)
        sneck__link_take(link->members[i], has_bit(readable.commands, i),
                         has_bit(readable.inbox, i));
    fire_timers(link);
    sneck__link_flush_all(link);
}

void sneck_link_step(sneck_link *link)
{
    sneck__link_step(link, READ_ALL);
    link->ended_aside = false; /* who has stepped looks for what has ended */
}

size_t sneck_link_fds(const sneck_link *link, struct pollfd fds[SNECK_LINK_FDS])
{
    size_t n = 0;
    for (size_t i = 0; i < link->member_count; i++)
        n += sneck__link_poll(link->members[i], &fds[n]);
    return n;
}

struct readable sneck__link_readable(const sneck_link *link, const struct pollfd *fds)
{
    struct readable readable = {0, 0};
    for (size_t i = 0; i < link->member_count; i++) {
        const sneck_link *member = link->members[i];
        if (member->wire.state != WIRE_CLOSED && (fds++)->revents)
            readable.commands |= (uint32_t)1 << i;
        if (member->inbox.wire.state != WIRE_CLOSED && (fds++)->revents)
            readable.inbox |= (uint32_t)1 << i;
    }
    return readable;
}

uint64_t sneck_link_generation(const sneck_link *link)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < link->member_count; i++)
        sum += link->members[i]->wire.generation + link->members[i]->inbox.wire.generation;
    return sum;
}

int64_t sneck__link_timeout_ms(const sneck_link *link)
{
    int64_t next = sneck__heap_due_ms(&link->timers);
    for (size_t i = 0; i < link->member_count; i++) {
        int64_t due = sneck__link_due_ms(link->members[i]);
        next = due < next ? due : next;
    }
    if (next == NEVER_MS)
        return -1;
    int64_t left = next - sneck__now_ms();
    return left <= 0 ? 0 : left < TIMEOUT_MAX_MS ? left : TIMEOUT_MAX_MS;
}

bool sneck__link_quiet(const sneck_link *link)
{
    for (size_t i = 0; i < link->member_count; i++)
        if (link->members[i]->count > 0)
            return false;
    return true;
}

/* A quorum's ops do not wait for a server that is stalled. When they have ended, what is left
 * for one is worth a moment, and no more: until when; 0: it is quiet now. */
static int64_t linger_ms(const sneck_link *link)
{
    int64_t last = 0;
    for (size_t i = 0; i < link->member_count; i++) {
        int64_t until = sneck__link_linger_ms(link->members[i]);
        last = until > last ? until : last;
    }
    return last > sneck__now_ms() ? last : 0;
}

static bool may_linger(const sneck_link *link)
{
    return link->client->quorum && !link->pending.first && !sneck__link_quiet(link);
}

bool sneck_link_quiet(const sneck_link *link)
{
    return may_linger(link) ? linger_ms(link) == 0 : sneck__link_quiet(link);
}

static int64_t wait_at_most(int64_t timeout_ms, int64_t at_ms)
{
    int64_t left = at_ms - sneck__now_ms();
    left = left > 0 ? left : 0;
    return timeout_ms < 0 || left < timeout_ms ? left : timeout_ms;
}

/* A loop looks for what has ended, and whether the link is quiet, after each step only; so it is
 * made to step. */
int64_t sneck_link_timeout_ms(const sneck_link *link)
{
    int64_t timeout_ms = sneck__link_timeout_ms(link);
    int64_t until = may_linger(link) ? linger_ms(link) : 0;
    if (link->ended_aside)
        return 0;
    return until > 0 ? wait_at_most(timeout_ms, until) : timeout_ms;
}

void sneck__link_flush_all(sneck_link *link)
{
    for (size_t i = 0; i < link->member_count; i++)
        sneck__link_flush(link->members[i]);
}

void sneck__link_drop_unsent(sneck_link *link)
{
    for (size_t i = 0; i < link->member_count; i++)
        sneck__link_drop_unsent_one(link->members[i]);
}

bool sneck__link_has_unsent(const sneck_link *link)
{
    for (size_t i = 0; i < link->member_count; i++) {
        const sneck_link *member = link->members[i];
        if (member->late_count > 0 || member->wire.out.sent < member->wire.out.len)
            return true;
    }
    return false;
}

bool sneck__link_is_connecting(const sneck_link *link)
{
    for (size_t i = 0; i < link->member_count; i++) {
        const struct wire *wire = &link->members[i]->wire;
        if ((wire->state == WIRE_CONNECTING || wire->state == WIRE_GREETING) &&
            wire->out.sent < wire->out.len)
            return true;
    }
    return false;
}

void sneck__link_catch_up(sneck_link *link)
{
    for (size_t i = 0; i < link->member_count; i++)
        sneck__link_catch_up_one(link->members[i]);
}

void sneck__link_fail(sneck_link *link, const char *why)
{
    for (size_t i = 0; i < link->member_count; i++)
        if (link->members[i]->count > 0)
            sneck__link_fail_one(link->members[i], why);
}

/* ------------------------------------------------------------------ lifetime */

static int add_members(sneck_link *link, const struct quorum *quorum)
{
    link->members = calloc(quorum->count, sizeof *link->members);
    link->member_count = 0;
    for (size_t i = 0; link->members && i < quorum->count; i++) {
        if (sneck__link_new_one(&link->members[i], quorum->members[i]) != SNECK_OK)
            return SNECK_NO_MEMORY;
        link->member_count++;
    }
    return link->members ? SNECK_OK : SNECK_NO_MEMORY;
}

int sneck_link_new(sneck_link **out, sneck_client *client)
{
    sneck_link *link = NULL;
    int status = sneck__link_new_one(&link, client);
    if (status == SNECK_OK && client->quorum)
        status = add_members(link, client->quorum);
    if (status == SNECK_OK && client->quorum)
        sneck__client_add_link(link);
    if (status == SNECK_OK)
        *out = link;
    else
        sneck_link_free(link);
    return status;
}

void sneck_link_free(sneck_link *link)
{
    if (!link)
        return;
    if (link->number > 0)
        sneck__client_remove_link(link);
    sneck__link_drop_errands(link);
    link->ends = true;
    for (size_t i = 0; i < link->member_count; i++)
        if (link->members[i])
            link->members[i]->ends = true;
    for (sneck_op *op; (op = sneck__link_any_op(link));)
        sneck__op_detach(op); /* and its parts from the connections */
    if (link->members != &link->itself) {
        for (size_t i = 0; i < link->member_count; i++)
            sneck__link_end_one(link->members[i]);
        for (size_t i = 0; i < link->member_count; i++)
            sneck__link_free_one(link->members[i]);
        free(link->members);
    }
    sneck__link_free_one(link);
}
