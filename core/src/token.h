#ifndef SNECK_TOKEN_H
#define SNECK_TOKEN_H

#include "sneck.h"

/* sneck:<host>:<pid>:<label>:<32 hexadecimal digits> */
#define TOKEN_HEAD_SIZE 160
#define TOKEN_PID_MAX 20 /* digits of a long */
#define TOKEN_RANDOM 16
#define OWN_TOKEN_MAX (TOKEN_HEAD_SIZE + 2 * TOKEN_RANDOM)

/* Writes the readable beginning of this process's tokens and returns its
 * length. A NULL label is empty. */
size_t sneck__token_head(char out[TOKEN_HEAD_SIZE], const char *label);

/* After fork(): puts this process's pid into a head, which has room for TOKEN_PID_MAX bytes
 * more than it had when it was made; returns its length. */
size_t sneck__token_head_of_child(char *head, size_t len);

/* Appends 128 random bits in hexadecimal digits at `out`; false when the system
 * has none to give. */
bool sneck__token_tail(char out[2 * TOKEN_RANDOM]);

/* Fills in what a token tells; ttl_ms -1 means that the key never expires. */
void sneck__token_read(sneck_holder *out, const void *token, size_t len,
                       int64_t ttl_ms);

/* Writes who holds a lock and for how long, as messages say it. */
#define HOLDER_TOLD_SIZE 256
void sneck__holder_tell(const sneck_holder *holder, char out[HOLDER_TOLD_SIZE]);

#endif
