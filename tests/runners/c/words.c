/* words.c - the words of a line: quoting, repeats, variables, keys.
 *
 * The grammar stands in tests/corpus/README.md. Invariant: bytes that came from
 * quotes have no meaning; everything with a meaning is a word without quotes.
 */
#include "words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPEAT_MAX ((int64_t)1 << 24)
#define SHOWN_MAX 80

/* --------------------------------------------------------------------- bytes */

void bytes_add(struct bytes *to, const void *from, size_t len)
{
    if (to->len + len + 1 > to->room) {
        to->room = (to->len + len + 1) * 2;
        to->at = realloc(to->at, to->room);
        if (!to->at)
            abort();
    }
    if (len)
        memcpy(to->at + to->len, from, len);
    to->len += len;
    to->at[to->len] = '\0';
}

void bytes_add_text(struct bytes *to, const char *text)
{
    bytes_add(to, text, strlen(text));
}

/* --------------------------------------------------------------------- words */

struct word *words_add(struct words *to)
{
    if (to->count == to->room) {
        to->room = to->room ? to->room * 2 : 8;
        to->at = realloc(to->at, to->room * sizeof *to->at);
        if (!to->at)
            abort();
    }
    struct word *word = &to->at[to->count++];
    *word = (struct word){0};
    bytes_add(&word->bytes, "", 0);
    return word;
}

void words_add_bytes(struct words *to, const void *from, size_t len)
{
    struct word *word = words_add(to);
    word->quoted = true;
    bytes_add(&word->bytes, from, len);
}

void words_add_keyword(struct words *to, const char *text)
{
    bytes_add_text(&words_add(to)->bytes, text);
}

void words_append(struct words *to, const struct words *from)
{
    for (size_t i = 0; i < from->count; i++) {
        struct word *word = words_add(to);
        word->quoted = from->at[i].quoted;
        bytes_add(&word->bytes, from->at[i].bytes.at, from->at[i].bytes.len);
    }
}

void words_clear(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->at[i].bytes.at);
    free(words->at);
    *words = (struct words){0};
}

bool word_is(const struct word *word, const char *keyword)
{
    return !word->quoted && strcmp(word->bytes.at, keyword) == 0;
}

void word_show(struct bytes *to, const struct word *word)
{
    size_t shown = word->bytes.len < SHOWN_MAX ? word->bytes.len : SHOWN_MAX;
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)word->bytes.at[i];
        char text[8];
        bool plain = c > ' ' && c < 0x7f && c != '"' && c != '\\';
        snprintf(text, sizeof text, plain ? "%c" : "\\x%02x", c);
        bytes_add_text(to, text);
    }
    if (word->bytes.len == 0)
        bytes_add_text(to, "\"\"");
    if (shown < word->bytes.len)
        bytes_add_text(to, "...");
}

bool read_number(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

/* ----------------------------------------------------------------- variables */

size_t variable_name_len(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return *text >= 'a' && *text <= 'z' ? len : 0;
}

const struct bytes *variable_find(const struct variables *v, const char *name, size_t len)
{
    for (size_t i = 0; i < v->count; i++)
        if (strlen(v->at[i].name) == len && memcmp(v->at[i].name, name, len) == 0)
            return &v->at[i].value;
    return NULL;
}

void variable_bind(struct variables *v, const char *name, const void *bytes, size_t len)
{
    if (v->count == VARIABLES_MAX || strlen(name) >= sizeof v->at->name)
        abort();
    snprintf(v->at[v->count].name, sizeof v->at->name, "%s", name);
    v->at[v->count].value = (struct bytes){0};
    bytes_add(&v->at[v->count].value, bytes, len);
    v->count++;
}

void variables_cut(struct variables *v, size_t count)
{
    while (v->count > count)
        free(v->at[--v->count].value.at);
}

void variables_clear(struct variables *v)
{
    variables_cut(v, 0);
}

/* ------------------------------------------------------------------- reading */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static const char *read_escape(const char **at, struct bytes *to)
{
    static const char names[] = "nrt\"\\", meanings[] = "\n\r\t\"\\";
    const char *name = **at ? strchr(names, **at) : NULL;
    if (name) {
        bytes_add(to, meanings + (name - names), 1);
        ++*at;
        return NULL;
    }
    int high = **at == 'x' ? hex_digit((*at)[1]) : -1;
    int low = high >= 0 ? hex_digit((*at)[2]) : -1;
    if (low < 0)
        return "unknown escape";
    bytes_add(to, &(char){(char)(high * 16 + low)}, 1);
    *at += 3;
    return NULL;
}

/* A quoted piece and its repeat; `at` stands behind the opening quote. */
static const char *read_quoted(const char **at, struct word *word)
{
    size_t begin = word->bytes.len;
    word->quoted = true;
    while (**at != '"') {
        if (!**at)
            return "quote is not closed";
        if (*(*at)++ != '\\') {
            bytes_add(&word->bytes, *at - 1, 1);
            continue;
        }
        const char *wrong = read_escape(at, &word->bytes);
        if (wrong)
            return wrong;
    }
    ++*at;
    if (**at != '*')
        return NULL;
    char *end;
    long long times = strtoll(*at + 1, &end, 10);
    if (end == *at + 1 || times < 1 || times > REPEAT_MAX)
        return "a repeat is not a number";
    *at = end;
    struct bytes piece = {0};
    bytes_add(&piece, word->bytes.at + begin, word->bytes.len - begin);
    while (--times > 0)
        bytes_add(&word->bytes, piece.at, piece.len);
    free(piece.at);
    return NULL;
}

/* `$name` in a bare piece; `at` stands on the `$`. */
static const char *read_variable(const char **at, struct word *word, const struct variables *v)
{
    size_t len = variable_name_len(*at + 1);
    const struct bytes *value = variable_find(v, *at + 1, len);
    if (!value)
        return "variable is not bound";
    bytes_add(&word->bytes, value->at, value->len);
    *at += 1 + len;
    return NULL;
}

static bool may_be_key(const struct word *word)
{
    return !word->quoted && !word->key_len && word->bytes.len > 0 &&
           strspn(word->bytes.at, "abcdefghijklmnopqrstuvwxyz_") == word->bytes.len;
}

/* A variable's bytes, like quoted ones, have no meaning of their own. */
static const char *read_word(const char **at, struct word *word, const struct variables *v)
{
    const char *wrong = NULL;
    bool opaque = false;
    while (!wrong && **at && !strchr(" \t", **at)) {
        if (**at == '"') {
            ++*at;
            wrong = read_quoted(at, word);
        } else if (v && **at == '$' && variable_name_len(*at + 1)) {
            opaque = true;
            wrong = read_variable(at, word, v);
        } else {
            if (**at == '=' && !opaque && may_be_key(word))
                word->key_len = word->bytes.len;
            bytes_add(&word->bytes, (*at)++, 1);
        }
    }
    word->quoted |= opaque;
    return wrong;
}

const char *words_read(struct words *out, const char *line, const struct variables *v)
{
    const char *wrong = NULL;
    while (!wrong) {
        line += strspn(line, " \t");
        if (!*line || *line == '#')
            return NULL;
        struct word *word = words_add(out);
        wrong = read_word(&line, word, v);
        if (word_is(word, "->"))
            v = NULL;
    }
    return wrong;
}
