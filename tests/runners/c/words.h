#ifndef RUNNER_WORDS_H
#define RUNNER_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing run of bytes, with a NUL behind it. */
struct bytes {
    char *at;
    size_t len, room;
};

void bytes_add(struct bytes *to, const void *from, size_t len);
void bytes_add_text(struct bytes *to, const char *text);

struct word {
    struct bytes bytes;
    bool quoted;     /* a piece of it was quoted: bytes only, no meaning */
    size_t key_len;  /* of `key=value`; 0: not an option */
};

struct words {
    struct word *at;
    size_t count, room;
};

/* Appends a word and returns it, empty. */
struct word *words_add(struct words *to);

/* Appends a word of plain bytes. */
void words_add_bytes(struct words *to, const void *from, size_t len);

/* Appends a word with a meaning, such as `ok` or `[`. */
void words_add_keyword(struct words *to, const char *text);

/* Appends copies of all words of another list. */
void words_append(struct words *to, const struct words *from);

void words_clear(struct words *words);

/* Appends the word as one would write it, cut to a readable length. */
void word_show(struct bytes *to, const struct word *word);

bool word_is(const struct word *word, const char *keyword);

/* A decimal number, all of it. */
bool read_number(const char *text, int64_t *out);

#define VARIABLES_MAX 32

struct variables {
    struct {
        char name[32];
        struct bytes value;
    } at[VARIABLES_MAX];
    size_t count;
};

const struct bytes *variable_find(const struct variables *v, const char *name, size_t len);
void variable_bind(struct variables *v, const char *name, const void *bytes, size_t len);
void variables_cut(struct variables *v, size_t count); /* forgets all but the first */
void variables_clear(struct variables *v);

/* The length of the name behind a `$`; 0 when it is none. */
size_t variable_name_len(const char *text);

/* Cuts a line into words; variables left of `->` are replaced. Returns NULL, or
 * what is wrong. */
const char *words_read(struct words *out, const char *line, const struct variables *v);

#endif
