/* same_server.c - whether two addresses are spellings of one server's.
 *
 * Without a lookup: two names of one machine are not found out.
 */
#include "same_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* --------------------------------------------------------------------------- hosts */

/* Reads what needs no lookup, as a connection would. IPv4 becomes IPv6, mapped. */
static bool read_numeric(struct sockaddr_in6 *out, const char *host)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return false;
    *out = (struct sockaddr_in6){.sin6_family = AF_INET6};
    if (found->ai_family == AF_INET6) {
        memcpy(out, found->ai_addr, sizeof *out);
    } else {
        struct sockaddr_in v4;
        memcpy(&v4, found->ai_addr, sizeof v4);
        out->sin6_addr.s6_addr[10] = out->sin6_addr.s6_addr[11] = 0xff;
        memcpy(&out->sin6_addr.s6_addr[12], &v4.sin_addr, sizeof v4.sin_addr);
    }
    freeaddrinfo(found);
    return true;
}

static bool same_numeric(const struct sockaddr_in6 *a, const struct sockaddr_in6 *b)
{
    return memcmp(&a->sin6_addr, &b->sin6_addr, sizeof a->sin6_addr) == 0 &&
           a->sin6_scope_id == b->sin6_scope_id;
}

/* A name may end with a dot. */
static size_t name_length(const char *host)
{
    size_t len = strlen(host);
    return len > 1 && host[len - 1] == '.' ? len - 1 : len;
}

static bool same_name(const char *a, const char *b)
{
    size_t len = name_length(a);
    return len == name_length(b) && strncasecmp(a, b, len) == 0;
}

/* This machine, by itself. Who connects to the address of no host gets here, too. */
static bool is_here(const char *host)
{
    static const char *const here[] = {"127.0.0.1", "::1", "0.0.0.0", "::"};
    struct sockaddr_in6 own, numeric;
    if (!read_numeric(&numeric, host))
        return same_name(host, "localhost");
    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        if (read_numeric(&own, here[i]) && same_numeric(&own, &numeric))
            return true;
    return false;
}

static bool same_host(const char *a, const char *b)
{
    struct sockaddr_in6 a_numeric, b_numeric;
    if (same_name(a, b) || (is_here(a) && is_here(b)))
        return true;
    return read_numeric(&a_numeric, a) && read_numeric(&b_numeric, b) &&
           same_numeric(&a_numeric, &b_numeric);
}

/* -------------------------------------------------------------------- unix sockets */

/* Skips what changes nothing between two parts of a path: / and /./ */
static const char *next_part(const char *at)
{
    while (*at == '/' || (*at == '.' && (at[1] == '/' || at[1] == '\0')))
        at++;
    return at;
}

static bool same_parts(const char *a, const char *b)
{
    size_t len;
    do {
        a = next_part(a);
        b = next_part(b);
        len = strcspn(a, "/");
        if (len != strcspn(b, "/") || memcmp(a, b, len) != 0)
            return false;
        a += len;
        b += len;
    } while (len > 0);
    return true;
}

static bool same_file(const char *a, const char *b)
{
    struct stat a_file, b_file;
    return stat(a, &a_file) == 0 && stat(b, &b_file) == 0 &&
           a_file.st_dev == b_file.st_dev && a_file.st_ino == b_file.st_ino;
}

/* The socket is not there while its server is down, but its directory is. */
static bool same_place(const char *a, const char *b)
{
    char a_dir[PATH_SIZE], b_dir[PATH_SIZE];
    size_t a_len = (size_t)(strrchr(a, '/') + 1 - a), b_len = (size_t)(strrchr(b, '/') + 1 - b);
    if (strcmp(a + a_len, b + b_len) != 0)
        return false;
    memcpy(a_dir, a, a_len);
    memcpy(b_dir, b, b_len);
    a_dir[a_len] = b_dir[b_len] = '\0';
    return same_file(a_dir, b_dir);
}

static bool same_path(const char *a, const char *b)
{
    return same_parts(a, b) || same_file(a, b) || same_place(a, b);
}

bool sneck__same_server(const struct address *a, const struct address *b)
{
    if (a->path || b->path)
        return a->path && b->path && same_path(a->path, b->path);
    return a->port == b->port && same_host(a->host, b->host);
}
