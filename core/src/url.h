#ifndef SNECK_URL_H
#define SNECK_URL_H

#include <sys/un.h>

#define PATH_SIZE sizeof ((struct sockaddr_un *)0)->sun_path

/* Where a server is and who we are there. Strings are owned, NULL if absent. */
struct address {
    char *host;      /* TCP: a name or a numeric address, no brackets */
    int port;
    char *path;      /* a unix socket, in place of host and port: starts with /,
                        less than PATH_SIZE bytes */
    char *user;
    char *password;
    int db;
    char *text;      /* host:port or path, for messages: never a password */
};

/* Reads a url as sneck_client_new() describes it. INVALID with one line in
 * `error` (which may be NULL), or NO_MEMORY; then nothing is left to clear. */
int sneck__address_read(struct address *out, const char *url, char *error);

void sneck__address_clear(struct address *address);

#endif
