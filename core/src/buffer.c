/* buffer.c - bytes queued for a socket, counted so that it is known which of them
 * have left.
 *
 * hiredis has such a buffer too, but writes it with write(2): a connection that
 * was closed kills the process by SIGPIPE. Here MSG_NOSIGNAL prevents that
 * without touching the program's signals.
 */
#include "buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#if !defined(MSG_NOSIGNAL)
#define MSG_NOSIGNAL 0 /* macOS: the link sets SO_NOSIGPIPE */
#endif

#define KEEP_SIZE 16384 /* a larger buffer is given back once it is empty */

bool sneck__buffer_append(struct buffer *b, const char *bytes, size_t len)
{
    if (b->size - b->len < len) {
        size_t size = b->size ? b->size : 512;
        while (size - b->len < len)
            size *= 2;
        char *grown = realloc(b->bytes, size);
        if (!grown)
            return false;
        b->bytes = grown;
        b->size = size;
    }
    memcpy(b->bytes + b->len, bytes, len);
    b->len += len;
    return true;
}

static void give_back_large(struct buffer *b)
{
    if (b->len == 0 && b->size > KEEP_SIZE) {
        free(b->bytes);
        b->bytes = NULL;
        b->size = 0;
    }
}

static void restart(struct buffer *b)
{
    b->before += b->len;
    b->len = b->sent = 0;
    give_back_large(b);
}

bool sneck__buffer_flush(struct buffer *b, int fd)
{
    while (b->sent < b->len) {
        ssize_t n = send(fd, b->bytes + b->sent, b->len - b->sent, MSG_NOSIGNAL);
        if (n >= 0)
            b->sent += (size_t)n;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return true;
        else if (errno != EINTR)
            return false;
    }
    restart(b);
    return true;
}

uint64_t sneck__buffer_end(const struct buffer *b)
{
    return b->before + b->len;
}

uint64_t sneck__buffer_sent(const struct buffer *b)
{
    return b->before + b->sent;
}

void sneck__buffer_drop(struct buffer *b, uint64_t place)
{
    size_t n = place > b->before ? (size_t)(place - b->before) : 0;
    if (n > b->len)
        n = b->len;
    if (n < b->len)
        memmove(b->bytes, b->bytes + n, b->len - n);
    b->before += n;
    b->len -= n;
    b->sent = 0;
    give_back_large(b);
}

void sneck__buffer_clear(struct buffer *b)
{
    free(b->bytes);
    *b = (struct buffer){0};
}
