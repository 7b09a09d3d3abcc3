#ifndef SNECK_HEAP_H
#define SNECK_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is due at some time; a member of what it belongs to. */
struct heap_item {
    int64_t due_ms;
    size_t place;               /* from 1 in the heap; 0: in none */
};

/* A binary heap: the soonest is items[0]. */
struct heap {
    struct heap_item **items;   /* owned, not what they point to */
    size_t count, size;
};

/* Makes room for so many items. False: no memory. */
bool sneck__heap_reserve(struct heap *heap, size_t count);

/* Adds the item, for which there must be room, or moves it to its new time. */
void sneck__heap_put(struct heap *heap, struct heap_item *item, int64_t due_ms);

/* Takes the item out, if it is there. */
void sneck__heap_take(struct heap *heap, struct heap_item *item);

/* The time of the soonest; NEVER_MS when there is none. */
int64_t sneck__heap_due_ms(const struct heap *heap);

#endif
