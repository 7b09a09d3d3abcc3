/* heap.c - which of many things is due next. */
#include "heap.h"

#include "clock.h"

#include <stdlib.h>

#define FIRST_HEAP_SIZE 8

bool sneck__heap_reserve(struct heap *h, size_t count)
{
    size_t size = h->size ? h->size : FIRST_HEAP_SIZE;
    if (count <= h->size)
        return true;
    while (size < count)
        size *= 2;
    struct heap_item **grown = realloc(h->items, size * sizeof *grown);
    if (!grown)
        return false;
    h->items = grown;
    h->size = size;
    return true;
}

static void put_at(struct heap *h, size_t place, struct heap_item *item)
{
    h->items[place - 1] = item;
    item->place = place;
}

/* Moves the item from a place that is free towards the top or the bottom. */
static void sift(struct heap *h, size_t place, struct heap_item *item)
{
    for (; place > 1 && h->items[place / 2 - 1]->due_ms > item->due_ms; place /= 2)
        put_at(h, place, h->items[place / 2 - 1]);
    for (size_t child; (child = 2 * place) <= h->count; place = child) {
        if (child < h->count && h->items[child]->due_ms < h->items[child - 1]->due_ms)
            child++;
        if (h->items[child - 1]->due_ms >= item->due_ms)
            break;
        put_at(h, place, h->items[child - 1]);
    }
    put_at(h, place, item);
}

void sneck__heap_put(struct heap *h, struct heap_item *item, int64_t due_ms)
{
    item->due_ms = due_ms;
    sift(h, item->place ? item->place : ++h->count, item);
}

void sneck__heap_take(struct heap *h, struct heap_item *item)
{
    if (item->place == 0)
        return;
    size_t place = item->place;
    struct heap_item *last = h->items[--h->count];
    item->place = 0;
    if (last != item)
        sift(h, place, last);
}

int64_t sneck__heap_due_ms(const struct heap *h)
{
    return h->count > 0 ? h->items[0]->due_ms : NEVER_MS;
}
