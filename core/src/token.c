/* token.c - what proves ownership, and says whose it is.
 *
 * A token is unique by its 128 random bits from the system alone; what stands
 * before them is for people. Host and label are cleaned of everything that
 * would break that form, so a token can always be read back.
 */
#include "token.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/random.h>
#endif

static const char token_mark[] = "sneck:";

/* Copies text, at most 63 bytes, with what is not plain made '_'. Bytes of UTF-8
 * pass, and are not cut in the middle. */
static void clean(char out[64], const char *text)
{
    size_t n = 0;
    for (; text && text[n] && n < 63; n++) {
        unsigned char c = (unsigned char)text[n];
        out[n] = c <= ' ' || c == ':' || c == 0x7f ? '_' : text[n];
    }
    if (text && text[n])
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--;
    out[n] = '\0';
}

size_t sneck__token_head(char out[TOKEN_HEAD_SIZE], const char *label)
{
    char name[256] = "", host[64], owner[64];
    if (gethostname(name, sizeof name - 1) != 0)
        name[0] = '\0';
    clean(host, name);
    clean(owner, label);
    return (size_t)snprintf(out, TOKEN_HEAD_SIZE, "%s%s:%ld:%s:", token_mark,
                            host, (long)getpid(), owner);
}

size_t sneck__token_head_of_child(char *head, size_t len)
{
    char digits[TOKEN_PID_MAX + 1];
    char *host = head + sizeof token_mark - 1, *end = head + len;
    char *pid = (char *)memchr(host, ':', (size_t)(end - host)) + 1;
    char *rest = memchr(pid, ':', (size_t)(end - pid));
    size_t rest_len = (size_t)(end - rest);
    size_t n = (size_t)snprintf(digits, sizeof digits, "%ld", (long)getpid());
    memmove(pid + n, rest, rest_len);
    memcpy(pid, digits, n);
    return (size_t)(pid - head) + n + rest_len;
}

bool sneck__token_tail(char out[2 * TOKEN_RANDOM])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bits[TOKEN_RANDOM];
    if (getentropy(bits, sizeof bits) != 0)
        return false;
    for (size_t i = 0; i < sizeof bits; i++) {
        out[2 * i] = digits[bits[i] >> 4];
        out[2 * i + 1] = digits[bits[i] & 15];
    }
    return true;
}

/* Copies the field that ends at the next ':' and returns what follows it; NULL
 * when there is none of that size. */
static const char *field(char out[64], const char *at, const char *end)
{
    const char *colon = memchr(at, ':', (size_t)(end - at));
    if (!colon || colon - at > 63)
        return NULL;
    memcpy(out, at, (size_t)(colon - at));
    out[colon - at] = '\0';
    return colon + 1;
}

static bool read_own(sneck_holder *out, const char *token, size_t len)
{
    const char *at = token, *end = token + len;
    char pid[64], *rest;
    if (len < sizeof token_mark || memcmp(at, token_mark, sizeof token_mark - 1) != 0)
        return false;
    at = field(out->host, at + sizeof token_mark - 1, end);
    at = at ? field(pid, at, end) : NULL;
    at = at ? field(out->label, at, end) : NULL;
    if (!at || end - at != 2 * TOKEN_RANDOM)
        return false;
    out->pid = strtol(pid, &rest, 10);
    return *pid && !*rest;
}

void sneck__token_read(sneck_holder *out, const void *token, size_t len,
                       int64_t ttl_ms)
{
    memset(out, 0, sizeof *out);
    bool own = read_own(out, token, len);
    if (!own)
        out->pid = 0, out->host[0] = out->label[0] = '\0';
    out->held = true;
    out->foreign = !own || ttl_ms < 0;
    out->ttl_ms = ttl_ms < 0 ? -1 : ttl_ms;
    out->token_len = len;
    memcpy(out->token, token, len < sizeof out->token ? len : sizeof out->token);
}

void sneck__holder_tell(const sneck_holder *h, char out[HOLDER_TOLD_SIZE])
{
    char ends[48] = "without an expiry: it may never end";
    if (h->ttl_ms >= 0)
        snprintf(ends, sizeof ends, "its lease ends in %lld ms", (long long)h->ttl_ms);
    if (h->foreign)
        snprintf(out, HOLDER_TOLD_SIZE, "held by a client of another kind, %s", ends);
    else
        snprintf(out, HOLDER_TOLD_SIZE, "held by pid %lld on %s%s%s, %s", (long long)h->pid,
                 h->host, *h->label ? ", label " : "", h->label, ends);
}
