/* update.c - calls that change the value of one key: they have blocking functions only. */
#include "call.h"
#include "outcome.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* What the function of an update works on. */
struct update {
    const struct call *call;
    struct bytes value;        /* what the key holds behind it */
    bool absent;
};

static void add(struct update *u, const char *old)
{
    char text[24];
    int64_t number = (old ? strtoll(old, NULL, 10) : 0) +
                     strtoll(u->call->argument.at, NULL, 10);
    snprintf(text, sizeof text, "%" PRId64, number);
    bytes_add_text(&u->value, text);
}

static int change(sneck_change *out, const void *old, size_t len, void *data)
{
    struct update *u = data;
    enum change kind = u->call->change;
    u->value.len = 0;
    u->absent = kind == CHANGE_DELETE || (kind == CHANGE_KEEP && !old);
    bytes_add(&u->value, old, old && kind != CHANGE_ADD ? len : 0);
    if (kind == CHANGE_ADD)
        add(u, old);
    if (kind == CHANGE_APPEND)
        bytes_add(&u->value, u->call->argument.at, u->call->argument.len);
    if (kind == CHANGE_DELETE)
        out->kind = SNECK_DELETE;
    else if (kind != CHANGE_KEEP)
        *out = (sneck_change){SNECK_SET, u->value.at, u->value.len};
    return SNECK_OK;
}

static void put_code(struct call *call)
{
    snprintf(call->server_code, sizeof call->server_code, "%s", call->report.server_code);
}

int run_update(struct call *call)
{
    struct update u = {.call = call};
    const struct bytes *key = &call->command.at[0].bytes;
    sneck_tx_options options = call->options;
    options.report = &call->report;
    int status = sneck_update(call->client, key->at, key->len, call->ms, &options, change, &u,
                              call->error);
    put_code(call);
    if (status == SNECK_OK && u.absent)
        outcome_nil(&call->reply);
    else if (status == SNECK_OK)
        outcome_ok_bytes(&call->reply, u.value.at, u.value.len);
    free(u.value.at);
    return status;
}

/* The bare word `nil` is no value. */
static const void *value_of(const struct word *word)
{
    return word_is(word, "nil") ? NULL : word->bytes.at;
}

int run_compare(struct call *call)
{
    bool matched;
    const struct word *w = call->command.at;
    sneck_tx_options options = SNECK_TX_OPTIONS;
    options.report = &call->report;
    int status = sneck_compare_and_set(&matched, call->client, w[0].bytes.at, w[0].bytes.len,
                                       value_of(&w[1]), w[1].bytes.len, value_of(&w[2]),
                                       w[2].bytes.len, call->ms, &options, call->error);
    put_code(call);
    if (status == SNECK_OK)
        outcome_ok_yes(&call->reply, matched);
    return status;
}
