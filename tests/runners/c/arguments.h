#ifndef RUNNER_ARGUMENTS_H
#define RUNNER_ARGUMENTS_H

#include "words.h"

#define ARGUMENTS_MAX 64

/* The arguments of a verb: places by position, options by key. */
struct arguments {
    const struct word *places[ARGUMENTS_MAX];
    size_t place_count;
    const struct word *options[ARGUMENTS_MAX];
    size_t option_count;
};

/* Sorts the words of a step, the actor and the verb first; all are places where there can be
 * no options. NULL, or what is wrong. */
const char *arguments_read(struct arguments *out, const struct words *step, size_t count,
                           bool options);

/* NULL unless it has that many places, and options of `keys` (blank between) only. */
const char *arguments_check(const struct arguments *a, size_t fewest, size_t most,
                            const char *keys);

/* The value of an option, or NULL. */
const char *arguments_text(const struct arguments *a, const char *key);
size_t arguments_text_len(const struct arguments *a, const char *key);

/* A time; `fallback` when the option is not there. Ends the run when it is none. */
int64_t arguments_ms(const struct arguments *a, const char *key, int64_t fallback);

#endif
