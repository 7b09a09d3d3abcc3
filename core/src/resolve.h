#ifndef SNECK_RESOLVE_H
#define SNECK_RESOLVE_H

#include <stddef.h>

#define PLACES_MAX 8

/* The numeric addresses of a host that are still to be tried. */
struct places {
    size_t count, next;
    char text[PLACES_MAX][64];
};

/* Looks a host up, or takes a numeric address as it is. NULL, or why it failed.
 * Blocks as long as the system's resolver does; numeric addresses do not. */
const char *sneck__resolve(struct places *out, const char *host);

#endif
