/* arguments.c - sorts the words of a step into places and options.
 *
 * Invariant: an option that a verb does not know is an error, so a mistyped case
 * cannot pass by testing less.
 */
#include "arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *arguments_read(struct arguments *out, const struct words *step, size_t count,
                           bool options)
{
    *out = (struct arguments){0};
    if (count > ARGUMENTS_MAX)
        return "too many arguments";
    for (size_t i = 2; i < count; i++) {
        const struct word *word = &step->at[i];
        if (options && word->key_len)
            out->options[out->option_count++] = word;
        else
            out->places[out->place_count++] = word;
    }
    return NULL;
}

static bool is_key(const struct word *word, const char *key, size_t len)
{
    return word->key_len == len && memcmp(word->bytes.at, key, len) == 0;
}

static bool is_listed(const struct word *word, const char *keys)
{
    for (; *keys; keys += strspn(keys, " ")) {
        size_t len = strcspn(keys, " ");
        if (is_key(word, keys, len))
            return true;
        keys += len;
    }
    return false;
}

const char *arguments_check(const struct arguments *a, size_t fewest, size_t most,
                            const char *keys)
{
    for (size_t i = 0; i < a->option_count; i++)
        if (!is_listed(a->options[i], keys))
            return "unknown option";
    bool right = a->place_count >= fewest && a->place_count <= most;
    return right ? NULL : "wrong number of arguments";
}

static const struct word *find(const struct arguments *a, const char *key)
{
    for (size_t i = 0; i < a->option_count; i++)
        if (is_key(a->options[i], key, strlen(key)))
            return a->options[i];
    return NULL;
}

const char *arguments_text(const struct arguments *a, const char *key)
{
    const struct word *word = find(a, key);
    return word ? word->bytes.at + word->key_len + 1 : NULL;
}

size_t arguments_text_len(const struct arguments *a, const char *key)
{
    const struct word *word = find(a, key);
    return word ? word->bytes.len - word->key_len - 1 : 0;
}

int64_t arguments_ms(const struct arguments *a, const char *key, int64_t fallback)
{
    const char *text = arguments_text(a, key);
    int64_t ms = fallback;
    if (text && !read_number(text, &ms)) {
        fprintf(stderr, "not a number of milliseconds: %s=%s\n", key, text);
        exit(2);
    }
    return ms;
}
