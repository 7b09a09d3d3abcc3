/* call.c - what all ways to run a call share. */
#include "call.h"

#include "outcome.h"

#include <stdlib.h>

void call_free(struct call *call)
{
    words_clear(&call->command);
    words_clear(&call->reply);
    free(call->argument.at);
    free(call);
}

void call_add_words(struct call *call, const struct word *const *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct word *word = words_add(&call->command);
        word->quoted = !word_is(from[i], "nil");
        bytes_add(&word->bytes, from[i]->bytes.at, from[i]->bytes.len);
    }
}

void call_take_reply(struct call *call, sneck_reply *reply)
{
    if (reply)
        outcome_reply(&call->reply, reply);
    sneck_reply_free(reply);
}

struct argv argv_of(const struct words *command)
{
    struct argv argv = {calloc(command->count + 1, sizeof *argv.at),
                        calloc(command->count + 1, sizeof *argv.len), command->count};
    if (!argv.at || !argv.len)
        abort();
    for (size_t i = 0; i < argv.count; i++) {
        argv.at[i] = command->at[i].bytes.at;
        argv.len[i] = command->at[i].bytes.len;
    }
    return argv;
}

void argv_clear(struct argv *argv)
{
    free(argv->at);
    free(argv->len);
}

static int queue(sneck_tx *tx, const struct words *command)
{
    struct argv argv = argv_of(command);
    int status = sneck_tx_queue(tx, argv.count, argv.at, argv.len);
    argv_clear(&argv);
    return status;
}

static int watch(sneck_tx *tx, const struct words *keys)
{
    int status = SNECK_OK;
    for (size_t i = 0; i < keys->count && status == SNECK_OK; i++)
        status = sneck_tx_watch(tx, keys->at[i].bytes.at, keys->at[i].bytes.len);
    return status;
}

int run_on_tx(sneck_tx *tx, struct call *call)
{
    if (call->kind == CALL_WATCH)
        return watch(tx, &call->command);
    if (call->kind == CALL_QUEUE)
        return queue(tx, &call->command);
    outcome_ok_number(&call->reply, sneck_tx_conflicts(tx));
    return SNECK_OK;
}
