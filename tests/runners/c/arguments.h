#ifndef RUNNER_ARGUMENTS_H
#define RUNNER_ARGUMENTS_H

#include "words.h"

/* The arguments of a verb: places by position, options by key. */
struct arguments {
    const struct word *verb;
    const struct word *places[8];
    size_t place_count;
    const struct word *options[8];
    size_t option_count;
};

/* Sorts the words of a step, the actor's first. NULL, or what is wrong. */
const char *arguments_read(struct arguments *out, const struct words *step, size_t count);

/* NULL unless there are `places` of them, and options of `keys` (blank between) only. */
const char *arguments_check(const struct arguments *a, size_t places, const char *keys);

/* The value of an option, or NULL. */
const char *arguments_text(const struct arguments *a, const char *key);
size_t arguments_text_len(const struct arguments *a, const char *key);

/* A time; `fallback` when the option is not there. Ends the run when it is none. */
int64_t arguments_ms(const struct arguments *a, const char *key, int64_t fallback);

#endif
