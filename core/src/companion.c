/* companion.c - names the keys that stand beside a lock's own.
 *
 *     reports:42       {reports:42}:sneck:queue
 *     {user:7}:mail    {user:7}:mail:sneck:queue
 *     odd}name         {iqmh}odd}name:sneck:queue
 *
 * A cluster hashes what stands between the first { and the next }, if that is not
 * empty, and otherwise the whole key. So a name with such a tag keeps it; another
 * one becomes the tag; and where its own } forbids that, four letters of the same
 * slot do.
 */
#include "companion.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 16384
#define SLOT_BITS 14
#define TAG_LEN 4

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

/* Four letters from h to w, which stand for the 16 bits of a number. */
static void spell_tag(char out[TAG_LEN], unsigned number)
{
    for (size_t i = 0; i < TAG_LEN; i++)
        out[i] = (char)('h' + (number >> (12 - 4 * i) & 15));
}

/* Makes a tag of that slot. A checksum is linear: a change of certain bits of the
 * number changes a certain bit of its tag's slot, and no other, whatever the rest is.
 * These are the bits of the number for each bit of the slot, by Gaussian elimination. */
static void make_tag(char out[TAG_LEN], unsigned slot)
{
    static const uint16_t flips[SLOT_BITS] = {
        0x8536, 0x0f55, 0x9abe, 0x8658, 0x0898, 0x1bc9, 0x8917,
        0x9aba, 0x1104, 0x9fcd, 0x8426, 0x0d75, 0x9efe, 0x8640,
    };
    unsigned number = 0;
    spell_tag(out, 0);
    unsigned change = slot ^ crc16(out, TAG_LEN);
    for (size_t bit = 0; bit < SLOT_BITS; bit++)
        if (change >> bit & 1)
            number ^= flips[bit];
    spell_tag(out, number);
}

bool sneck__companion(struct companion *out, const char *name, size_t len,
                      const char *purpose)
{
    const char *tag;
    size_t tag_len, at = 0;
    char *text = malloc(len + strlen(purpose) + 32);
    if (!text)
        return false;
    bool tagged = find_tag(name, len, &tag, &tag_len);
    bool wrap = !tagged && !memchr(name, '}', len);
    if (wrap)
        text[at++] = '{';
    if (!tagged && !wrap) {
        text[at++] = '{';
        make_tag(text + at, crc16(name, len) % SLOTS);
        at += TAG_LEN;
        text[at++] = '}';
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
