/* bodies.c - which lease of a shared lock object each body has.
 *
 * A body runs from an acquire to its release, as a block of a `with` does. When its lease is
 * lost and somebody else acquires the object meanwhile, its end must not release what is the
 * other's. The list is under the lock's mutex. */
#include "bodies.h"

#include "lock.h"

#include <stdlib.h>

struct body {
    struct body *next;      /* an older one */
    uint64_t owner;
    uint64_t lease;         /* the number; 0: none yet, or it was released */
};

void sneck__bodies_free(struct body *bodies)
{
    for (struct body *next; bodies; bodies = next) {
        next = bodies->next;
        free(bodies);
    }
}

int sneck_lock_begin_body(sneck_lock *lock, uint64_t owner)
{
    struct body *body = malloc(sizeof *body);
    if (!body)
        return SNECK_NO_MEMORY;
    sneck__lock_enter(lock);
    *body = (struct body){lock->bodies, owner, 0};
    lock->bodies = body;
    sneck__lock_exit(lock);
    return SNECK_OK;
}

/* Where the owner's innermost body hangs; NULL: it is in none. */
static struct body **find_body(sneck_lock *lock, uint64_t owner)
{
    struct body **at = &lock->bodies;
    while (*at && (*at)->owner != owner)
        at = &(*at)->next;
    return *at ? at : NULL;
}

/* Where the oldest body that has a lease hangs: the one to end when whoever leaves has
 * entered as somebody else. NULL: none. */
static struct body **oldest_body(sneck_lock *lock)
{
    struct body **oldest = NULL;
    for (struct body **at = &lock->bodies; *at; at = &(*at)->next)
        if ((*at)->lease != 0)
            oldest = at;
    return oldest;
}

void sneck_lock_set_body(sneck_lock *lock, uint64_t owner, uint64_t number)
{
    sneck__lock_enter(lock);
    struct body **at = find_body(lock, owner);
    if (at)
        (*at)->lease = number;
    sneck__lock_exit(lock);
}

bool sneck_lock_end_body(uint64_t *out, sneck_lock *lock, uint64_t owner)
{
    sneck__lock_enter(lock);
    struct body **at = find_body(lock, owner);
    if (!at)
        at = oldest_body(lock);
    struct body *body = at ? *at : NULL;
    if (body) {
        *out = body->lease;
        *at = body->next;
    }
    sneck__lock_exit(lock);
    free(body);
    return body != NULL;
}
