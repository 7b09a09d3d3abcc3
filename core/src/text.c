/* text.c - bytes made fit for a message: printable, one line, bounded. */
#include "text.h"

#include "sneck.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *sneck__quote(char out[QUOTED_SIZE], const void *bytes, size_t len)
{
    static const char tail[] = "...\"";
    const unsigned char *in = bytes;
    size_t at = 0;

    out[at++] = '"';
    for (size_t i = 0; i < len; i++) {
        char piece[5];
        bool plain = in[i] >= ' ' && in[i] != 0x7f && in[i] != '"' && in[i] != '\\';
        size_t width = (size_t)(plain
            ? snprintf(piece, sizeof piece, "%c", in[i])
            : snprintf(piece, sizeof piece, "\\x%02x", in[i]));
        if (at + width + sizeof tail > QUOTED_SIZE) {
            memcpy(out + at, tail, sizeof tail);
            return out;
        }
        memcpy(out + at, piece, width);
        at += width;
    }
    out[at++] = '"';
    out[at] = '\0';
    return out;
}

void sneck__message(char *error, const char *format, ...)
{
    if (!error)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(error, SNECK_ERROR_SIZE, format, args);
    va_end(args);
}

void sneck__code_word(char out[CODE_SIZE], const char *text, size_t len)
{
    size_t n = 0;
    while (n < len && n < CODE_SIZE - 1 && text[n] > ' ' && text[n] < 0x7f)
        n++;
    memcpy(out, text, n);
    out[n] = '\0';
}

bool sneck__code_passes(const char *code)
{
    return strcmp(code, "LOADING") == 0 || strcmp(code, "BUSY") == 0;
}
