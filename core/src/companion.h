#ifndef SNECK_COMPANION_H
#define SNECK_COMPANION_H

#include <stdbool.h>
#include <stddef.h>

/* A key that belongs to a lock. */
struct companion {
    char *text;     /* owned */
    size_t len;
};

/* The cluster slot of a key, as the servers compute it. */
unsigned sneck__slot(const char *key, size_t len);

/* Makes the key that belongs to the lock `name` for some purpose, in the same
 * cluster slot. False: no memory. */
bool sneck__companion(struct companion *out, const char *name, size_t len,
                      const char *purpose);

#endif
