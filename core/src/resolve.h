#ifndef SNECK_RESOLVE_H
#define SNECK_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLACES_MAX 8

/* The numeric addresses of a host that are still to be tried. */
struct places {
    size_t count, next;
    char text[PLACES_MAX][64];
};

/* Looks a host up, or takes a numeric address as it is. NULL, or why it failed.
 * Blocks as long as the system's resolver does; numeric addresses do not. */
const char *sneck__resolve(struct places *out, const char *host);

/* What is known of a host, whose name is looked up again only when its addresses have failed,
 * and then not before a pause has passed, which doubles. So one whose lookup hangs delays a
 * call now and then, but not each. Zero-initialised is nothing; the caller locks. */
struct known_places {
    struct places places;    /* the last ones that were found */
    bool asked;              /* a lookup has ended */
    bool work;               /* nobody has failed to connect since they were found */
    const char *why;         /* the last lookup failed; static */
    int64_t next_ms, pause_ms;
};

/* True: there need be no lookup, and `out` has the addresses, or `why` tells why there are
 * none. False: look it up, and note what comes of it. */
bool sneck__known_places(struct known_places *known, struct places *out, const char **why);

/* Notes a lookup. Where it has failed `found` gets the addresses from before; returns why there
 * are none, or NULL. */
const char *sneck__note_places(struct known_places *known, struct places *found,
                               const char *why);

/* Notes that a connection was made, or that none could be. */
void sneck__note_reached(struct known_places *known, bool reached);

#endif
