#ifndef SNECK_LISTENERS_H
#define SNECK_LISTENERS_H

#include "sneck.h"

/* The ops of a link that wait for a message, by the token that it begins with. */
struct listeners {
    sneck_op **slots;       /* chains by hash; owned, not the ops */
    size_t size, count;     /* a power of two, or 0 */
};

/* The op listens for its token from now on. False: no memory. */
bool sneck__listen(struct listeners *listeners, sneck_op *op, const char *token, size_t len);

/* Not any more; harmless when it did not. */
void sneck__listen_no_more(struct listeners *listeners, sneck_op *op);

/* Brings a message to the op whose token it begins with, if there is one. */
void sneck__listeners_tell(struct listeners *listeners, const char *message, size_t len);

#endif
