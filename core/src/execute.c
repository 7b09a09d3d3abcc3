/* execute.c - the op that sends any one command, and keeps its reply. */
#include "client.h"
#include "command_guard.h"
#include "op.h"

#include <stdio.h>
#include <string.h>

struct execute {
    sneck_op op;
    sneck_client *client;   /* a reference */
    char what[QUOTED_SIZE + 16];
};

static bool execute_reply(sneck_op *op, redisReply *reply)
{
    struct execute *e = (struct execute *)op;
    if (reply->type == REDIS_REPLY_ERROR) {
        sneck__op_end_reply(op, reply, e->what);
        return false;
    }
    op->reply = reply;
    sneck__op_end(op, SNECK_OK, "%s", "");
    return true;
}

static void execute_lost(sneck_op *op, bool sent)
{
    sneck__op_end_lost(op, sent, ((struct execute *)op)->what);
}

static void execute_cancel(sneck_op *op)
{
    if (!sneck__op_withdraw(op))
        sneck__op_end(op, SNECK_UNKNOWN, "%s: cancelled while it was under way, so the server may"
                      " or may not do it", ((struct execute *)op)->what);
}

static void execute_clear(sneck_op *op)
{
    sneck__client_drop(((struct execute *)op)->client);
}

static const struct op_class execute_class = {
    .reply = execute_reply,
    .lost = execute_lost,
    .cancel = execute_cancel,
    .clear = execute_clear,
};

static void begin_execute(struct execute *e, size_t argc, const void *const *argv,
                          const size_t *len)
{
    const char *why = e->client->quorum
        ? NO_SERVER_OF_ITS_OWN : sneck__command_refused(ON_SHARED_CONNECTION, argc, argv, len);
    char quoted[QUOTED_SIZE];
    bool named = argc > 0 && argv[0];
    snprintf(e->what, sizeof e->what, "command %s",
             sneck__quote(quoted, named ? argv[0] : "", named ? len[0] : 0));
    if (why)
        sneck__op_end(&e->op, SNECK_INVALID, "%s: %s", e->what, why);
    else
        sneck__op_send(&e->op, (struct command){argc, (const char *const *)argv, len});
}

int sneck_execute_start(sneck_op **out, sneck_client *client, sneck_link *link, size_t argc,
                        const void *const *argv, const size_t *argv_len)
{
    struct execute *e = sneck__op_new(sizeof *e, &execute_class, client, link);
    if (!e)
        return SNECK_NO_MEMORY;
    e->client = sneck__client_share(client);
    if (e->op.status == SNECK_PENDING)
        begin_execute(e, argc, argv, argv_len);
    *out = &e->op;
    return SNECK_OK;
}
