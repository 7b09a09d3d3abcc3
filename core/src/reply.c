/* reply.c - replies as the public header shows them: hiredis' own, behind names
 * that do not change with its version. */
#include "sneck.h"

#include <hiredis/hiredis.h>

static const redisReply *inner(const sneck_reply *reply)
{
    return (const redisReply *)reply;
}

sneck_reply_type sneck_reply_kind(const sneck_reply *reply)
{
    switch (inner(reply)->type) {
    case REDIS_REPLY_NIL: return SNECK_REPLY_NIL;
    case REDIS_REPLY_INTEGER: return SNECK_REPLY_INTEGER;
    case REDIS_REPLY_ARRAY: return SNECK_REPLY_ARRAY;
    case REDIS_REPLY_ERROR: return SNECK_REPLY_ERROR;
    default: return SNECK_REPLY_BYTES;
    }
}

int64_t sneck_reply_integer(const sneck_reply *reply)
{
    return inner(reply)->integer;
}

const char *sneck_reply_bytes(const sneck_reply *reply, size_t *len)
{
    if (len)
        *len = inner(reply)->str ? (size_t)inner(reply)->len : 0;
    return inner(reply)->str;
}

size_t sneck_reply_count(const sneck_reply *reply)
{
    return inner(reply)->type == REDIS_REPLY_ARRAY ? inner(reply)->elements : 0;
}

const sneck_reply *sneck_reply_item(const sneck_reply *reply, size_t index)
{
    if (index >= sneck_reply_count(reply))
        return NULL;
    return (const sneck_reply *)inner(reply)->element[index];
}

void sneck_reply_free(sneck_reply *reply)
{
    if (reply)
        freeReplyObject(reply);
}
