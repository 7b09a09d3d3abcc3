/* listeners.c - finds the op that a message is for, among thousands on one link. */
#include "listeners.h"

#include "counters.h"
#include "op.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 16

static void chain(sneck_op **slots, size_t size, sneck_op *op)
{
    sneck_op **slot = &slots[op->listens_for & (size - 1)];
    op->next_listener = *slot;
    *slot = op;
}

static bool grow(struct listeners *l)
{
    size_t size = l->size ? 2 * l->size : FIRST_SLOTS;
    sneck_op **slots = calloc(size, sizeof *slots);
    if (!slots)
        return l->size > 0; /* the chains just get longer */
    for (size_t i = 0; i < l->size; i++)
        for (sneck_op *op = l->slots[i], *next; op; op = next) {
            next = op->next_listener;
            chain(slots, size, op);
        }
    free(l->slots);
    l->slots = slots;
    l->size = size;
    return true;
}

bool sneck__listen(struct listeners *l, sneck_op *op, const char *token, size_t len)
{
    if (op->listening)
        return true;
    if (l->count >= l->size && !grow(l))
        return false;
    op->listening = true;
    op->listens_for = sneck__hash(token, len);
    chain(l->slots, l->size, op);
    l->count++;
    return true;
}

void sneck__listen_no_more(struct listeners *l, sneck_op *op)
{
    if (!op->listening)
        return;
    sneck_op **at = &l->slots[op->listens_for & (l->size - 1)];
    while (*at != op)
        at = &(*at)->next_listener;
    *at = op->next_listener;
    op->listening = false;
    l->count--;
}

void sneck__listeners_tell(struct listeners *l, const char *message, size_t len)
{
    const char *end = memchr(message, ' ', len);
    if (!end || l->count == 0)
        return;
    uint32_t hash = sneck__hash(message, (size_t)(end - message));
    for (sneck_op *op = l->slots[hash & (l->size - 1)]; op; op = op->next_listener)
        if (op->listens_for == hash && sneck__op_message(op, message, len))
            return;
}
