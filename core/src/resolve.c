/* resolve.c - a host's addresses, so that each of them can be tried.
 *
 * hiredis would take the first one only, and IPv4 before IPv6: "localhost" with a
 * server on ::1 alone would not be found.
 */
#include "resolve.h"

#include "clock.h"

#include <netdb.h>
#include <sys/socket.h>

#define LOOKUP_MIN_MS 1000
#define LOOKUP_MAX_MS 30000

const char *sneck__resolve(struct places *out, const char *host)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    out->count = out->next = 0;
    int error = getaddrinfo(host, NULL, &hints, &list);
    if (error)
        return gai_strerror(error);
    for (struct addrinfo *at = list; at && out->count < PLACES_MAX; at = at->ai_next) {
        char *text = out->text[out->count];
        if (getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof out->text[0], NULL, 0,
                        NI_NUMERICHOST) == 0)
            out->count++;
    }
    freeaddrinfo(list);
    return out->count > 0 ? NULL : "the host has no address";
}

/* ------------------------------------------------------------- what is remembered */

static const char *recall(const struct known_places *known, struct places *out)
{
    *out = known->places;
    out->next = 0;
    return out->count > 0 ? NULL : known->why;
}

/* Until a first lookup has ended, whoever comes looks for himself: it may be quick. Later, while
 * one looks, others do with what is known. */
bool sneck__known_places(struct known_places *known, struct places *out, const char **why)
{
    int64_t now = sneck__now_ms();
    if (!known->asked)
        return false;
    if (known->work || now < known->next_ms) {
        *why = recall(known, out);
        return true;
    }
    known->next_ms = sneck__later_ms(now, sneck__most_ms(known->pause_ms, LOOKUP_MIN_MS));
    return false;
}

const char *sneck__note_places(struct known_places *known, struct places *found,
                               const char *why)
{
    int64_t pause = sneck__most_ms(2 * known->pause_ms, LOOKUP_MIN_MS);
    known->pause_ms = sneck__least_ms(pause, LOOKUP_MAX_MS);
    known->next_ms = sneck__later_ms(sneck__now_ms(), known->pause_ms);
    known->asked = true;
    known->work = !why;
    known->why = why;
    if (!why)
        known->places = *found;
    return recall(known, found);
}

void sneck__note_reached(struct known_places *known, bool reached)
{
    known->work = reached;
    if (reached)
        known->pause_ms = 0;
}
