#ifndef SNECK_BUFFER_H
#define SNECK_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes on their way to a socket. Zero-initialised is empty. */
struct buffer {
    char *bytes;        /* owned */
    size_t len, size;
    size_t sent;        /* of len, how many the socket has taken */
    uint64_t before;    /* bytes that have left and were dropped from here */
};

/* False: no memory, and nothing was appended. */
bool sneck__buffer_append(struct buffer *buffer, const char *bytes, size_t len);

/* Sends what it can without blocking and without SIGPIPE. False: errno says why
 * the connection is broken. */
bool sneck__buffer_flush(struct buffer *buffer, int fd);

/* The place of the next byte appended, and of the next byte sent, counted from
 * the first byte ever. */
uint64_t sneck__buffer_end(const struct buffer *buffer);
uint64_t sneck__buffer_sent(const struct buffer *buffer);

/* Drops all bytes before `place`, sent or not; later ones count as not sent. */
void sneck__buffer_drop(struct buffer *buffer, uint64_t place);

void sneck__buffer_clear(struct buffer *buffer);

#endif
