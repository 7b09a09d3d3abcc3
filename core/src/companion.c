/* companion.c - names the keys that stand beside a lock's own.
 *
 *     reports:42       {reports:42}:sneck:queue
 *     {user:7}:mail    {user:7}:mail:sneck:queue
 *     odd}name         {3kf}odd}name:sneck:queue
 *
 * A cluster hashes what stands between the first { and the next }, if that is not
 * empty, and otherwise the whole key. So a name with such a tag keeps it; another
 * one becomes the tag; and where its own } forbids that, a short tag of the same
 * slot is searched for: some 16,384 tries on average.
 */
#include "companion.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 16384

static unsigned crc16(const char *bytes, size_t len)
{
    unsigned crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)(unsigned char)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? (crc << 1 ^ 0x1021) & 0xffff : crc << 1;
    }
    return crc;
}

/* The tag of a key; false when it has none. */
static bool find_tag(const char *key, size_t len, const char **tag, size_t *tag_len)
{
    const char *open = memchr(key, '{', len);
    if (!open)
        return false;
    const char *at = open + 1;
    const char *close = memchr(at, '}', (size_t)(key + len - at));
    if (!close || close == at)
        return false;
    *tag = at;
    *tag_len = (size_t)(close - at);
    return true;
}

unsigned sneck__slot(const char *key, size_t len)
{
    find_tag(key, len, &key, &len);
    return crc16(key, len) % SLOTS;
}

/* Finds a short tag with the slot of the whole name. */
static void search_tag(char out[16], const char *name, size_t len)
{
    unsigned slot = crc16(name, len) % SLOTS;
    for (unsigned n = 0;; n++) {
        int width = snprintf(out, 16, "%x", n);
        if (crc16(out, (size_t)width) % SLOTS == slot)
            return;
    }
}

bool sneck__companion(struct companion *out, const char *name, size_t len,
                      const char *purpose)
{
    const char *tag;
    size_t tag_len, at = 0;
    char found[16], *text = malloc(len + strlen(purpose) + 32);
    if (!text)
        return false;
    bool tagged = find_tag(name, len, &tag, &tag_len);
    bool wrap = !tagged && !memchr(name, '}', len);
    if (wrap)
        text[at++] = '{';
    if (!tagged && !wrap) {
        search_tag(found, name, len);
        at += (size_t)sprintf(text, "{%s}", found);
    }
    memcpy(text + at, name, len);
    at += len;
    if (wrap)
        text[at++] = '}';
    at += (size_t)sprintf(text + at, ":sneck:%s", purpose);
    out->text = text;
    out->len = at;
    return true;
}
