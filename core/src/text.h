#ifndef SNECK_TEXT_H
#define SNECK_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Room for a quoted name in a message. */
#define QUOTED_SIZE 96

/* Writes bytes as printable text in double quotes, cut with "..." where they do
 * not fit into QUOTED_SIZE, and returns `out`. */
const char *sneck__quote(char out[QUOTED_SIZE], const void *bytes, size_t len);

/* Formats one line into an error buffer, which may be NULL. */
__attribute__((format(printf, 2, 3)))
void sneck__message(char *error, const char *format, ...);

/* Room for a code word such as WRONGTYPE. */
#define CODE_SIZE 24

/* Copies the code word that an error reply starts with. */
void sneck__code_word(char out[CODE_SIZE], const char *text, size_t len);

/* A server that has just started, or runs a long script, will answer later. */
bool sneck__code_passes(const char *code);

#endif
