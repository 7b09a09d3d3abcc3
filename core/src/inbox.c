/* inbox.c - the socket on which a link is told that a lock was granted to it.
 *
 * It subscribes to one channel with a random name of its own. A waiter leaves that
 * name in the queue; whoever releases publishes the grant there. The number of the
 * channel's subscribers tells whether the waiter's process still lives.
 *
 *   CLOSED --want--> OPENING --subscribed--> READY
 *      ^                |  \--refused--> DENIED (for a while: wait by polling)
 *      +----- failed ---+------------------ READY
 *
 * The first command on the new connection is a probe: where publishing, counting
 * subscribers or subscribing is not allowed, there are no wake-ups at all.
 */
#include "inbox.h"

#include "client.h"
#include "clock.h"
#include "link.h"
#include "script.h"
#include "token.h"

#include <stdio.h>
#include <string.h>

#define DENIED_MS 30000 /* permissions may be mended meanwhile */

static struct inbox *inbox_of(struct wire *wire)
{
    return (struct inbox *)((char *)wire - offsetof(struct inbox, wire));
}

static sneck_link *link_of_inbox(struct inbox *inbox)
{
    return (sneck_link *)((char *)inbox - offsetof(sneck_link, inbox));
}

static bool inbox_greet(struct wire *wire)
{
    struct inbox *inbox = inbox_of(wire);
    int used = snprintf(inbox->id, sizeof inbox->id, "sneck:inbox:");
    if (!sneck__token_tail(inbox->id + used))
        return false;
    inbox->id[used + 2 * TOKEN_RANDOM] = '\0';
    return sneck__wire_greet(wire, 4, (const char *[]){
               "EVAL", script_probe.text, "0", inbox->id}) &&
           sneck__wire_greet(wire, 2, (const char *[]){"SUBSCRIBE", inbox->id});
}

static void inbox_ready(struct wire *wire)
{
    struct inbox *inbox = inbox_of(wire);
    inbox->state = INBOX_READY;
    sneck__client_count_wakeups(wire->client, true);
    sneck__link_wake(link_of_inbox(inbox));
}

static bool is_message(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
           reply->element[0]->type == REDIS_REPLY_STRING &&
           strcmp(reply->element[0]->str, "message") == 0 &&
           reply->element[2]->type == REDIS_REPLY_STRING;
}

static void inbox_reply(struct wire *wire, redisReply *reply)
{
    if (is_message(reply))
        sneck__link_deliver(link_of_inbox(inbox_of(wire)), reply->element[2]->str,
                            (size_t)reply->element[2]->len);
    freeReplyObject(reply);
}

static bool is_full(const char *why)
{
    static const char full[] = "ERR max number of clients";
    return strncmp(why, full, sizeof full - 1) == 0;
}

static bool refused_for_good(int status, const char *code, const char *why)
{
    return status == SNECK_SERVER && !sneck__code_passes(code) && !is_full(why);
}

static void inbox_failed(struct wire *wire, int status, const char *code, const char *why)
{
    struct inbox *inbox = inbox_of(wire);
    inbox->state = INBOX_CLOSED; /* the commands' connection tells what is wrong, if anything is */
    if (refused_for_good(status, code, why)) {
        inbox->state = INBOX_DENIED;
        inbox->retry_ms = sneck__later_ms(sneck__now_ms(), DENIED_MS);
        sneck__client_count_wakeups(wire->client, false);
    }
    sneck__link_wake(link_of_inbox(inbox));
}

static const struct wire_owner inbox_owner = {
    inbox_greet, inbox_ready, inbox_reply, inbox_failed,
};

void sneck__inbox_init(struct inbox *inbox, sneck_client *client)
{
    inbox->wire.owner = &inbox_owner;
    inbox->wire.client = client;
}

enum inbox_state sneck__inbox_want(struct inbox *inbox)
{
    if (inbox->state == INBOX_DENIED && sneck__now_ms() >= inbox->retry_ms)
        inbox->state = INBOX_CLOSED;
    if (inbox->state == INBOX_CLOSED)
        inbox->state = INBOX_OPENING; /* a step of the link opens it, not too soon after a failure */
    return inbox->state;
}

void sneck__inbox_close(struct inbox *inbox)
{
    sneck__wire_close(&inbox->wire);
    if (inbox->state != INBOX_DENIED)
        inbox->state = INBOX_CLOSED;
}
