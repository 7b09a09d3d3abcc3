/* reply_guard.c - refuses a reply by its headers, before anything is allocated.
 *
 * hiredis allocates an array when its header is read, waits without end for a
 * string of whatever length was announced, and (from 1.0) nests without limit.
 * A server that is hostile, or no Redis at all, must cost neither memory nor a
 * time-out. So each byte passes here first. RESP2 only: we never ask for more.
 *
 *   TYPE --'$','*'--> LENGTH --\n--> BYTES or TYPE
 *   TYPE --'+','-',':'--> LINE --\n--> TYPE
 */
#include "reply_guard.h"

#include <string.h>

/* A value has ended, and with it maybe the arrays that it was the last of. */
static void end_value(struct reply_guard *g)
{
    g->state = GUARD_TYPE;
    while (g->depth > 0 && --g->items[g->depth - 1] == 0)
        g->depth--;
}

static const char *begin_value(struct reply_guard *g, char type)
{
    g->type = type;
    g->number = 0;
    g->negative = 0;
    g->line = 0;
    if (type == '$' || type == '*')
        g->state = GUARD_LENGTH;
    else if (type == '+' || type == '-' || type == ':')
        g->state = GUARD_LINE;
    else
        return "it does not speak the Redis protocol";
    return NULL;
}

static const char *end_length(struct reply_guard *g)
{
    if (g->negative) {
        if (g->number != 1)
            return "a length is negative";
        end_value(g); /* $-1 and *-1 are nil */
    } else if (g->type == '$') {
        g->number += 2; /* the line end behind the bytes */
        g->state = GUARD_BYTES;
    } else if (g->number == 0) {
        end_value(g);
    } else if (g->depth == REPLY_DEPTH_MAX) {
        return "arrays are nested too deeply";
    } else {
        g->items[g->depth++] = g->number;
        g->state = GUARD_TYPE;
    }
    return NULL;
}

static const char *length_byte(struct reply_guard *g, char c)
{
    int64_t max = g->type == '$' ? REPLY_BYTES_MAX : REPLY_ITEMS_MAX;
    g->line++;
    if (c == '\n')
        return end_length(g);
    if (c == '\r')
        return NULL;
    if (c == '-' && g->line == 1) {
        g->negative = 1;
        return NULL;
    }
    if (c < '0' || c > '9' || g->line > 20)
        return "a length is not a number";
    g->number = g->number * 10 + (c - '0');
    return g->number > max ? "it announces more than we take" : NULL;
}

/* Passes a part of a line; returns how much. */
static size_t line_bytes(struct reply_guard *g, const char *bytes, size_t len)
{
    const char *end = memchr(bytes, '\n', len);
    size_t n = end ? (size_t)(end - bytes) + 1 : len;
    g->line = n > REPLY_LINE_MAX ? REPLY_LINE_MAX + 1 : g->line + (int)n;
    if (end)
        end_value(g);
    return n;
}

const char *sneck__guard(struct reply_guard *g, const char *bytes, size_t len)
{
    const char *why = NULL;
    for (size_t i = 0; i < len && !why;) {
        switch (g->state) {
        case GUARD_TYPE:
            why = begin_value(g, bytes[i++]);
            break;
        case GUARD_LENGTH:
            why = length_byte(g, bytes[i++]);
            break;
        case GUARD_LINE:
            i += line_bytes(g, bytes + i, len - i);
            if (g->line > REPLY_LINE_MAX)
                why = "a line has no end";
            break;
        case GUARD_BYTES: {
            size_t left = len - i;
            size_t n = (uint64_t)g->number < left ? (size_t)g->number : left;
            i += n;
            g->number -= (int64_t)n;
            if (g->number == 0)
                end_value(g);
            break;
        }
        }
    }
    return why;
}
