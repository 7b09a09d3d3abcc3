/* url.c - reads the address of a server; refuses whatever it does not know.
 *
 * A part that is not understood is an error, never ignored: a mistyped option
 * must not become a lock on another server or database. Messages name the part
 * that is wrong and leave out the url itself, which may hold a password.
 */
#include "url.h"

#include "sneck.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DB_MAX 1000000
#define HOST_MAX 255 /* of a name, as DNS has it */

/* A piece of the url: from `at` up to `end`. */
struct piece {
    const char *at, *end;
};

static int refuse_url(char *error, const char *why)
{
    sneck__message(error, "server url: %s; use redis://[[user]:password@]host[:port][/db]"
                   " or unix:///path[?db=N]", why);
    return SNECK_INVALID;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decodes a piece into a new string. */
static int decode(char **out, struct piece piece, char *error)
{
    char *text = malloc((size_t)(piece.end - piece.at) + 1), *to = text;
    if (!text)
        return SNECK_NO_MEMORY;
    for (const char *at = piece.at; at < piece.end; at++) {
        char c = *at;
        if (c == '%') {
            int high = piece.end - at > 2 ? hex_digit(at[1]) : -1;
            int low = high >= 0 ? hex_digit(at[2]) : -1;
            if (low < 0 || high * 16 + low == 0) {
                free(text);
                return refuse_url(error, "a % is not followed by two hexadecimal digits, or is %00");
            }
            c = (char)(high * 16 + low);
            at += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    *out = text;
    return SNECK_OK;
}

/* Reads a whole piece as a decimal number of at most `max`; -1 if it is none. */
static int number(struct piece piece, int max)
{
    int value = 0;
    if (piece.at == piece.end)
        return -1;
    for (; piece.at < piece.end; piece.at++) {
        if (*piece.at < '0' || *piece.at > '9')
            return -1;
        value = value * 10 + (*piece.at - '0');
        if (value > max)
            return -1;
    }
    return value;
}

static const char *find(struct piece piece, char c)
{
    const char *at = memchr(piece.at, c, (size_t)(piece.end - piece.at));
    return at ? at : piece.end;
}

/* [user][:password]@ in front of the rest; moves `rest` behind it. */
static int read_user(struct address *a, struct piece *rest, char *error)
{
    struct piece authority = {rest->at, find(*rest, '/')};
    const char *at = NULL;
    for (const char *c = authority.at; c < authority.end; c++)
        if (*c == '@')
            at = c;
    if (!at)
        return SNECK_OK;
    struct piece user = {authority.at, at};
    const char *colon = find(user, ':');
    if (colon == at)
        return refuse_url(error, "a user stands without :password");
    int rc = decode(&a->password, (struct piece){colon + 1, at}, error);
    user.end = colon;
    if (rc == SNECK_OK && user.at < user.end)
        rc = decode(&a->user, user, error);
    rest->at = at + 1;
    return rc;
}

static int read_query(struct address *a, struct piece query, char *error)
{
    while (query.at < query.end) {
        struct piece item = {query.at, find(query, '&')};
        query.at = item.end < query.end ? item.end + 1 : query.end;
        if (item.end - item.at < 3 || memcmp(item.at, "db=", 3) != 0)
            return refuse_url(error, "the only query parameter is db=N");
        a->db = number((struct piece){item.at + 3, item.end}, DB_MAX);
        if (a->db < 0)
            return refuse_url(error, "db is not a number");
    }
    return SNECK_OK;
}

static int read_unix(struct address *a, struct piece rest, char *error)
{
    const char *mark = find(rest, '?');
    int rc = read_user(a, &(struct piece){rest.at, mark}, error);
    if (rc != SNECK_OK)
        return rc;
    struct piece path = {rest.at, mark};
    path.at = find(path, '/');
    if (path.at == path.end || (path.at != rest.at && path.at[-1] != '@'))
        return refuse_url(error, "a unix socket's path starts with /, so there are three: unix:///path");
    rc = decode(&a->path, path, error);
    if (rc != SNECK_OK)
        return rc;
    if (strlen(a->path) >= PATH_SIZE)
        return refuse_url(error, "the unix socket's path is too long for the system");
    struct piece query = {mark < rest.end ? mark + 1 : rest.end, rest.end};
    rc = read_query(a, query, error);
    if (rc == SNECK_OK && !(a->text = strdup(a->path)))
        rc = SNECK_NO_MEMORY;
    return rc;
}

/* host or [v6 address]; moves `rest` behind it. */
static int read_host(struct address *a, struct piece *rest, char *error)
{
    struct piece host = *rest;
    if (host.at < host.end && *host.at == '[') {
        host.at++;
        host.end = find(host, ']');
        if (host.end == rest->end)
            return refuse_url(error, "a [ has no ]");
        rest->at = host.end + 1;
    } else {
        host.end = find(host, ':');
        rest->at = host.end;
    }
    static const char here[] = "localhost";
    if (host.at == host.end)
        host = (struct piece){here, &here[sizeof here - 1]};
    int rc = decode(&a->host, host, error);
    if (rc == SNECK_OK && strlen(a->host) > HOST_MAX)
        rc = refuse_url(error, "the host is longer than 255 bytes");
    return rc;
}

static int read_tcp(struct address *a, struct piece rest, char *error)
{
    if (find(rest, '?') < rest.end)
        return refuse_url(error, "a ? and what follows mean nothing here");
    int rc = read_user(a, &rest, error);
    if (rc != SNECK_OK)
        return rc;
    struct piece place = {rest.at, find(rest, '/')};
    rest.at = place.end < rest.end ? place.end + 1 : rest.end;
    rc = read_host(a, &place, error);
    if (rc != SNECK_OK)
        return rc;
    a->port = 6379;
    if (place.at < place.end) {
        if (*place.at != ':')
            return refuse_url(error, "what follows the host is not a port");
        a->port = number((struct piece){place.at + 1, place.end}, 65535);
        if (a->port <= 0)
            return refuse_url(error, "the port is not a number from 1 to 65535");
    }
    if (rest.at < rest.end && (a->db = number(rest, DB_MAX)) < 0)
        return refuse_url(error, "what follows the / is not the number of a database");
    size_t size = strlen(a->host) + 16;
    if (!(a->text = malloc(size)))
        return SNECK_NO_MEMORY;
    snprintf(a->text, size, strchr(a->host, ':') ? "[%s]:%d" : "%s:%d", a->host, a->port);
    return SNECK_OK;
}

static int read_any(struct address *a, const char *url, char *error)
{
    static const struct {
        const char *scheme;
        int (*read)(struct address *, struct piece, char *);
    } schemes[] = {
        {"redis://", read_tcp}, {"valkey://", read_tcp}, {"unix://", read_unix},
    };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t len = strlen(schemes[i].scheme);
        if (strncmp(url, schemes[i].scheme, len) == 0)
            return schemes[i].read(a, (struct piece){url + len, url + strlen(url)}, error);
    }
    if (strncmp(url, "rediss://", 9) == 0 || strncmp(url, "valkeys://", 10) == 0)
        return refuse_url(error, "TLS is not supported yet, so the connection would not be encrypted");
    return refuse_url(error, "it does not start with redis://, valkey:// or unix://");
}

int sneck__address_read(struct address *out, const char *url, char *error)
{
    struct address a = {0};
    int rc = strchr(url, '#') ? refuse_url(error, "a # must be written %23")
                              : read_any(&a, url, error);
    if (rc != SNECK_OK) {
        if (rc == SNECK_NO_MEMORY)
            sneck__message(error, "out of memory");
        sneck__address_clear(&a);
        return rc;
    }
    *out = a;
    return SNECK_OK;
}

void sneck__address_clear(struct address *a)
{
    free(a->host);
    free(a->path);
    free(a->user);
    free(a->password);
    free(a->text);
    *a = (struct address){0};
}
