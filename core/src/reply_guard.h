#ifndef SNECK_REPLY_GUARD_H
#define SNECK_REPLY_GUARD_H

#include <stddef.h>
#include <stdint.h>

#define REPLY_BYTES_MAX INT64_C(536870912)  /* the servers' own limit */
#define REPLY_ITEMS_MAX INT64_C(1048576)    /* of one array */
#define REPLY_LINE_MAX 65536                /* of a status, error or number */
#define REPLY_DEPTH_MAX 7                   /* what hiredis 0.14 can take */

struct reply_guard {
    enum { GUARD_TYPE, GUARD_LENGTH, GUARD_LINE, GUARD_BYTES } state;
    char type;
    int64_t number;     /* LENGTH: so far; BYTES: still to pass */
    int negative;
    int line;           /* bytes of this line so far */
    int depth;
    int64_t items[REPLY_DEPTH_MAX]; /* of each open array, still to come */
};

/* Follows the bytes that a server sent. NULL while all is well; else, in a few
 * words, why they must not be given to the parser. */
const char *sneck__guard(struct reply_guard *guard, const char *bytes, size_t len);

#endif
