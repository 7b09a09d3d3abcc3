/* resolve.c - a host's addresses, so that each of them can be tried.
 *
 * hiredis would take the first one only, and IPv4 before IPv6: "localhost" with a
 * server on ::1 alone would not be found.
 */
#include "resolve.h"

#include <netdb.h>
#include <sys/socket.h>

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
