/* outcome.c - what a step led to, as words, and whether a case expected it.
 *
 * Invariant: what came from the library as bytes is a quoted word and never
 * mistaken for `nil`, `[` or `]`, which are words with a meaning.
 */
#include "outcome.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void outcome_ok(struct words *out)
{
    words_add_keyword(out, "ok");
}

void outcome_ok_bytes(struct words *out, const void *bytes, size_t len)
{
    outcome_ok(out);
    words_add_bytes(out, bytes, len);
}

static void add_number(struct words *out, int64_t number)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%" PRId64, number);
    words_add_bytes(out, text, (size_t)len);
}

void outcome_ok_number(struct words *out, int64_t number)
{
    outcome_ok(out);
    add_number(out, number);
}

void outcome_ok_yes(struct words *out, bool yes)
{
    outcome_ok_bytes(out, yes ? "yes" : "no", yes ? 3 : 2);
}

void outcome_nothing(struct words *out)
{
    outcome_ok(out);
    words_add_keyword(out, "[");
    words_add_keyword(out, "]");
}

void outcome_nil(struct words *out)
{
    words_add_keyword(out, "nil");
}

void outcome_fail(struct words *out, int status, const char *server_code)
{
    words_add_keyword(out, "fail");
    words_add_keyword(out, sneck_status_name(status));
    if (*server_code)
        words_add_keyword(out, server_code);
}

static void add_reply(struct words *out, const sneck_reply *reply)
{
    size_t len;
    const char *bytes;
    switch (sneck_reply_kind(reply)) {
    case SNECK_REPLY_NIL:
        words_add_keyword(out, "nil");
        break;
    case SNECK_REPLY_INTEGER:
        add_number(out, sneck_reply_integer(reply));
        break;
    case SNECK_REPLY_ARRAY:
        words_add_keyword(out, "[");
        for (size_t i = 0; i < sneck_reply_count(reply); i++)
            add_reply(out, sneck_reply_item(reply, i));
        words_add_keyword(out, "]");
        break;
    case SNECK_REPLY_BYTES:
    case SNECK_REPLY_ERROR:
        bytes = sneck_reply_bytes(reply, &len);
        words_add_bytes(out, bytes, len);
        break;
    }
}

void outcome_reply(struct words *out, const sneck_reply *reply)
{
    if (sneck_reply_kind(reply) == SNECK_REPLY_NIL) {
        outcome_nil(out);
        return;
    }
    outcome_ok(out);
    add_reply(out, reply);
}

void outcome_token(struct words *out, const sneck_lock *lock)
{
    size_t len = sneck_lock_token(lock, NULL, 0);
    char *token = malloc(len + 1);
    if (!token || sneck_lock_token(lock, token, len) != len)
        abort();
    if (len)
        outcome_ok_bytes(out, token, len);
    else
        outcome_nil(out);
    free(token);
}

void outcome_labels(struct words *out, const sneck_waiter *list, size_t count)
{
    outcome_ok(out);
    words_add_keyword(out, "[");
    for (size_t i = 0; i < count; i++)
        words_add_bytes(out, list[i].label, strlen(list[i].label));
    words_add_keyword(out, "]");
}

/* ----------------------------------------------------------------- comparing */

static bool read_range(const char *text, int64_t *low, int64_t *high)
{
    char *end;
    *low = strtoll(text, &end, 10);
    return end != text && strncmp(end, "..", 2) == 0 && read_number(end + 2, high);
}

static bool is_marker(const struct word *word)
{
    return word_is(word, "nil") || word_is(word, "[") || word_is(word, "]");
}

static bool matches_variable(const char *name, const struct word *got, struct variables *v)
{
    const struct bytes *value = variable_find(v, name, strlen(name));
    if (is_marker(got))
        return false;
    if (!value) {
        variable_bind(v, name, got->bytes.at, got->bytes.len);
        return true;
    }
    return value->len == got->bytes.len && memcmp(value->at, got->bytes.at, value->len) == 0;
}

static bool matches_range(const char *range, const struct word *got)
{
    int64_t low, high, number;
    return read_range(range, &low, &high) && read_number(got->bytes.at, &number) &&
           number >= low && number <= high;
}

/* Whether it is a number greater than the variable's. */
static bool matches_above(const struct word *variable, const struct word *got,
                          const struct variables *v)
{
    const char *name = variable->bytes.at + 1;
    const struct bytes *value = variable_find(v, name, strlen(name));
    int64_t low, number;
    return value && read_number(value->at, &low) && read_number(got->bytes.at, &number) &&
           number > low;
}

static bool matches_word(const struct word *expected, const struct word *got,
                         struct variables *v)
{
    if (word_is(expected, "any"))
        return true;
    if (!expected->quoted && *expected->bytes.at == '$')
        return matches_variable(expected->bytes.at + 1, got, v);
    return is_marker(expected) == is_marker(got) && expected->bytes.len == got->bytes.len &&
           memcmp(expected->bytes.at, got->bytes.at, got->bytes.len) == 0;
}

/* `ok` says nothing of the value, `fail CODE` nothing of the server's word. */
static bool says_no_more(const struct word *expected, size_t count)
{
    return (count == 1 && word_is(expected, "ok")) || (count == 2 && word_is(expected, "fail"));
}

/* Compares one word with what stands at `*at`, which may be two. */
static bool matches_value(const struct word *expected, size_t count, size_t *at,
                          const struct word *got, struct variables *v)
{
    bool two = *at > 0 && *at + 1 < count;
    if (two && word_is(&expected[*at], "in"))
        return matches_range(expected[++*at].bytes.at, got);
    if (two && word_is(&expected[*at], "above"))
        return matches_above(&expected[++*at], got, v);
    return matches_word(&expected[*at], got, v);
}

bool outcome_matches(const struct word *expected, size_t count, const struct words *got,
                     struct variables *v)
{
    size_t e = 0, g = 0, bound = v->count;
    bool same = true;
    for (; same && e < count && g < got->count; e++, g++)
        same = matches_value(expected, count, &e, &got->at[g], v);
    same = same && e == count && (g == got->count || says_no_more(expected, count));
    if (!same)
        variables_cut(v, bound);
    return same;
}

/* ------------------------------------------------------------------ checking */

static bool is_status(const char *name)
{
    for (int status = -1; status >= -16; status--)
        if (strcmp(sneck_status_name(status), name) == 0)
            return true;
    return false;
}

static bool is_variable(const struct word *word)
{
    return !word->quoted && *word->bytes.at == '$' &&
           variable_name_len(word->bytes.at + 1) == word->bytes.len - 1 && word->bytes.len > 1;
}

static const char *check_values(const struct word *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct word *word = &values[i];
        int64_t low, high;
        if (word_is(word, "in") &&
            (i + 1 == count || !read_range(values[i + 1].bytes.at, &low, &high)))
            return "in is not followed by A..B";
        if (word_is(word, "above") && (i + 1 == count || !is_variable(&values[i + 1])))
            return "above is not followed by a variable";
        if (!word->quoted && *word->bytes.at == '$' && !is_variable(word))
            return "not the name of a variable";
    }
    return NULL;
}

const char *outcome_check(const struct word *expected, size_t count)
{
    if (count == 0)
        return "no outcome";
    if (word_is(expected, "ok"))
        return check_values(expected + 1, count - 1);
    if (word_is(expected, "nil") || word_is(expected, "again") || word_is(expected, "..."))
        return count == 1 ? NULL : "more words than the outcome has";
    if (!word_is(expected, "fail"))
        return "unknown outcome";
    if (count < 2 || count > 3 || !is_status(expected[1].bytes.at))
        return "fail is not followed by a known code";
    return NULL;
}
