#ifndef RUNNER_OUTCOME_H
#define RUNNER_OUTCOME_H

#include "words.h"

#include <sneck.h>

/* An outcome is its words: `ok` and values, `nil`, `fail CODE WORD`, `again`, `...`. */

void outcome_ok(struct words *out);
void outcome_ok_bytes(struct words *out, const void *bytes, size_t len);
void outcome_ok_number(struct words *out, int64_t number);
void outcome_ok_yes(struct words *out, bool yes);
void outcome_nothing(struct words *out); /* an empty array */
void outcome_nil(struct words *out);
void outcome_fail(struct words *out, int status, const char *server_code);
void outcome_reply(struct words *out, const sneck_reply *reply);
void outcome_token(struct words *out, const sneck_lock *lock); /* nil: it holds none */
void outcome_labels(struct words *out, const sneck_waiter *list, size_t count);

/* Compares, and binds the variables that are new if all is as expected. */
bool outcome_matches(const struct word *expected, size_t count, const struct words *got,
                     struct variables *v);

/* NULL, or what is wrong with the outcome that a case expects. */
const char *outcome_check(const struct word *expected, size_t count);

#endif
