/* op.c - what all calls under way have in common.
 *
 * Invariant: an op ends once. After that it has no request that the link would
 * still bring to it, and no timer.
 *
 *   start --> PENDING --reply, lost, timer, cancel--> ended (status, message)
 */
#include "op.h"

#include "client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ lifetime */

/* As the last one: ops are told in the order in which they ended, and woken in that
 * in which they began, so that they queue in it, too. */
static void enlist(sneck_op *op, struct op_list *list)
{
    op->list = list;
    op->next = NULL;
    op->prev = list->last;
    if (op->prev)
        op->prev->next = op;
    else
        list->first = op;
    list->last = op;
}

static void delist(sneck_op *op)
{
    if (op->prev)
        op->prev->next = op->next;
    else
        op->list->first = op->next;
    if (op->next)
        op->next->prev = op->prev;
    else
        op->list->last = op->prev;
}

void *sneck__op_new(size_t size, const struct op_class *class, sneck_client *client,
                    sneck_link *link)
{
    sneck_op *op = calloc(1, size);
    if (!op)
        return NULL;
    op->class = class;
    op->status = SNECK_PENDING;
    op->pooled = op->alone = !link;
    op->link = link ? link : sneck__client_borrow(client);
    if (!op->link || !sneck__heap_reserve(&op->link->timers, op->link->op_count + 1)) {
        if (op->link && op->pooled)
            sneck__client_give_back(op->link);
        free(op);
        return NULL;
    }
    op->link->op_count++;
    enlist(op, &op->link->pending);
    if (sneck__client_closed(client))
        sneck__op_end(op, SNECK_INVALID, "client of %s: it is closed",
                      client->address.text);
    else if (op->link->client != client)
        sneck__op_end(op, SNECK_INVALID, "client of %s: the link is another client's; make one for"
                      " each client", client->address.text);
    return op;
}

static void leave_link(sneck_op *op)
{
    if (op->class->leave)
        op->class->leave(op);
    if (op->in_flight > 0)
        sneck__link_abandon(op->link, op);
    op->in_flight = 0;
    delist(op);
    op->link->op_count--;
    op->link = NULL;
}

void sneck__op_begin_part(sneck_op *part, const struct op_class *class, sneck_link *link)
{
    part->class = class;
    part->status = SNECK_PENDING;
    part->link = link;
    link->op_count++;
    enlist(part, &link->pending);
}

void sneck__op_leave_part(sneck_op *part)
{
    leave_link(part);
}

void sneck__op_detach(sneck_op *op)
{
    sneck_op_cancel(op);
    leave_link(op);
}

void sneck_op_free(sneck_op *op)
{
    if (!op)
        return;
    sneck_op_cancel(op);
    sneck_link *link = op->link;
    if (link)
        leave_link(op);
    if (link && op->pooled)
        sneck__client_give_back(link);
    if (op->class->clear)
        op->class->clear(op);
    if (op->reply)
        freeReplyObject(op->reply);
    free(op->error);
    free(op);
}

/* -------------------------------------------------------------------- ending */

static void keep_message(sneck_op *op, int status, const char *format, va_list args)
{
    char text[SNECK_ERROR_SIZE];
    if (status == SNECK_OK)
        return;
    vsnprintf(text, sizeof text, format, args);
    op->error = strdup(text);
}

void sneck__op_end(sneck_op *op, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    keep_message(op, status, format, args);
    va_end(args);
    op->status = status;
    sneck__op_set_timer(op, NEVER_MS);
    sneck__listen_no_more(&op->link->listeners, op);
    delist(op);
    enlist(op, &op->link->ended);
    op->link->ended_aside = true;
    if (status == SNECK_UNKNOWN && !op->parent) /* a part's is its parent's business */
        atomic_fetch_add(&op->link->client->counters.unknown, 1);
    if (op->in_flight > 0)
        sneck__link_abandon(op->link, op);
    op->in_flight = 0;
    if (op->parent && op->parent->status == SNECK_PENDING)
        sneck__op_set_timer(op->parent, 0); /* fires in this step or, at once, in the next */
}

int sneck__op_tell_lost(char error[SNECK_ERROR_SIZE], const sneck_op *op, bool sent,
                        const char *what)
{
    const sneck_link *link = op->link;
    int status = link->fail_status;
    const char *advice = "";
    if (status == SNECK_CONNECTION && sent)
        advice = "; the reply was lost, so the server may or may not have done it";
    else if (status == SNECK_CONNECTION)
        advice = "; nothing was done: is the server running there?";
    else if (status == SNECK_PROTOCOL)
        advice = "; is this a Redis or Valkey server?";
    sneck__message(error, "%s: %s%s", what, link->fail_text, advice);
    return status == SNECK_CONNECTION && sent ? SNECK_UNKNOWN : status;
}

void sneck__op_end_lost(sneck_op *op, bool sent, const char *what)
{
    char error[SNECK_ERROR_SIZE];
    int status = sneck__op_tell_lost(error, op, sent, what);
    sneck__op_end(op, status, "%s", error);
    memcpy(op->server_code, op->link->fail_code, sizeof op->server_code);
}

const char *sneck__advice(const char *code, const char *text)
{
    static const struct { const char *code, *text; } known[] = {
        {"NOPERM", "; grant the user what docs/acl.md lists"},
        {"NOAUTH", "; put user and password into the url"},
        {"WRONGTYPE", "; the key holds a value of another kind"},
        {"READONLY", "; connect to the primary, not to a replica"},
        {"OOM", "; the server is out of memory and refuses writes"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(code, known[i].code) == 0)
            return known[i].text;
    /* so servers from 7.0 say it of a script's commands */
    if (strstr(text, "can't run this command"))
        return known[0].text;
    return "";
}

void sneck__op_end_reply(sneck_op *op, const redisReply *reply, const char *what)
{
    const char *place = op->link->client->address.text;
    if (reply->type != REDIS_REPLY_ERROR) {
        sneck__op_end(op, SNECK_PROTOCOL, "%s: %s: a reply of an unexpected type; is this a"
                      " Redis or Valkey server?", what, place);
        return;
    }
    sneck__code_word(op->server_code, reply->str, (size_t)reply->len);
    sneck__op_end(op, SNECK_SERVER, "%s: %s: %.200s%s", what, place, reply->str,
                  sneck__advice(op->server_code, reply->str));
}

void sneck__op_set_timer(sneck_op *op, int64_t due_ms)
{
    if (due_ms == NEVER_MS)
        sneck__heap_take(&op->link->timers, &op->timer);
    else
        sneck__heap_put(&op->link->timers, &op->timer, due_ms);
}

/* -------------------------------------------------------------------- sending */

void sneck__op_send(sneck_op *op, struct command command)
{
    if (sneck__link_send(op->link, op, command))
        op->in_flight++;
    else
        sneck__op_end(op, SNECK_NO_MEMORY, "out of memory");
}

void sneck__op_send_script(sneck_op *op)
{
    sneck__op_send(op, (struct command){op->argc, op->argv, op->argv_len});
}

bool sneck__op_withdraw(sneck_op *op)
{
    sneck_link *link = op->link;
    if (op->in_flight == 0)
        return true;
    if (!sneck__link_unsent(link, op))
        return false;
    if (link->ends)
        return true;
    if (!op->pooled)
        return false;
    sneck__link_abandon(link, op);
    op->in_flight = 0;
    link->answered = false; /* or else it would leave on the next connection */
    sneck__link_fail(link, "given up before it was sent");
    return true;
}

static void set_arg(sneck_op *op, size_t i, const char *bytes, size_t len)
{
    op->argv[i] = bytes;
    op->argv_len[i] = len;
}

void sneck__op_compose(sneck_op *op, const struct script *script, size_t keys, size_t count,
                       const char *const *words, const size_t *len)
{
    static const char *const digits[] = {"0", "1", "2", "3"};
    op->script = script;
    op->named_twice = false;
    op->argc = 3 + count;
    set_arg(op, 0, "EVALSHA", 7);
    set_arg(op, 1, script->sha1, 40);
    set_arg(op, 2, digits[keys], 1);
    for (size_t i = 0; i < count; i++)
        set_arg(op, 3 + i, words[i], len[i]);
}

void sneck__op_as_text(sneck_op *op)
{
    set_arg(op, 0, "EVAL", 4);
    set_arg(op, 1, op->script->text, strlen(op->script->text));
}

bool sneck__is_noscript(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) == 0;
}

/* The server does not have the script (it is new there, restarted, or its scripts
 * were flushed): EVAL runs it and makes it known. Of thousands that find this out at the
 * same time only the first sends the text, and the others once more the name. */
static bool run_by_text(sneck_op *op, const redisReply *reply)
{
    const struct script *script = op->script;
    bool unknown = script && sneck__is_noscript(reply);
    bool again = unknown && !op->named_twice && sneck__link_is_telling(op->link, script);
    op->named_twice = again;
    if (unknown && !again) {
        sneck__op_as_text(op);
        sneck__link_tell(op->link, script);
    }
    if (unknown)
        sneck__op_send_script(op);
    if (!again)
        op->script = NULL;
    return unknown;
}

/* ------------------------------------------------------- what the link calls */

void sneck__op_reply(sneck_op *op, redisReply *reply)
{
    op->in_flight--;
    if (run_by_text(op, reply) || !op->class->reply(op, reply))
        freeReplyObject(reply);
}

void sneck__op_lost(sneck_op *op, bool sent)
{
    op->in_flight--;
    op->class->lost(op, sent);
}

void sneck__op_timer(sneck_op *op)
{
    sneck__op_set_timer(op, NEVER_MS);
    op->class->timer(op);
}

void sneck__op_wake(sneck_op *op)
{
    if (op->class->wake && op->status == SNECK_PENDING)
        op->class->wake(op);
}

bool sneck__op_message(sneck_op *op, const char *message, size_t len)
{
    return op->class->message && op->status == SNECK_PENDING &&
           op->class->message(op, message, len);
}

/* ----------------------------------------------------------------- the public */

void sneck_op_cancel(sneck_op *op)
{
    if (op->status != SNECK_PENDING)
        return;
    if (op->class->cancel)
        op->class->cancel(op);
    if (op->status == SNECK_PENDING)
        sneck__op_end(op, SNECK_INTERRUPTED, op->link->ends
                      ? "its link was freed while it was under way"
                      : "cancelled before it was done");
}

int sneck_op_status(const sneck_op *op)
{
    return op->status;
}

const char *sneck_op_error(const sneck_op *op)
{
    if (op->error)
        return op->error;
    if (op->status == SNECK_OK || op->status == SNECK_PENDING)
        return "";
    return sneck_status_text(op->status); /* there was no memory for a message */
}

const char *sneck_op_server_code(const sneck_op *op)
{
    return op->server_code;
}

sneck_op *sneck_link_ended(sneck_link *link)
{
    for (sneck_op *op; (op = link->ended.first);) {
        delist(op);
        enlist(op, &link->told);
        if (!op->parent) /* who has one is its parent's business */
            return op;
    }
    return NULL;
}

sneck_link *sneck_op_link(const sneck_op *op)
{
    return op->link;
}

void sneck_op_set_data(sneck_op *op, void *data)
{
    op->data = data;
}

void *sneck_op_data(const sneck_op *op)
{
    return op->data;
}

const sneck_reply *sneck_op_reply(const sneck_op *op)
{
    return op->status == SNECK_PENDING ? NULL : (const sneck_reply *)op->reply;
}

uint64_t sneck_op_lease_number(const sneck_op *op)
{
    return op->status == SNECK_OK ? op->lease_number : 0;
}

sneck_reply *sneck__op_take_reply(sneck_op *op)
{
    sneck_reply *reply = (sneck_reply *)op->reply;
    op->reply = NULL;
    return reply;
}
