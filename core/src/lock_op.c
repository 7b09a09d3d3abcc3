/* lock_op.c - what the ops on a lock have in common. */
#include "lock_op.h"

#include "client.h"

#include <string.h>

void *sneck__lock_op_new(size_t size, const struct op_class *class, sneck_lock *lock,
                         sneck_link *link)
{
    struct lock_op *o = sneck__op_new(size, class, lock->client, link);
    if (o)
        o->lock = sneck__lock_share(lock);
    return o;
}

void sneck__lock_op_clear(sneck_op *op)
{
    sneck__lock_drop(((struct lock_op *)op)->lock);
}

void sneck__lock_op_compose(struct lock_op *o, const struct script *script, size_t argc,
                            const char *const *argv, const size_t *len)
{
    const sneck_lock *lock = o->lock;
    const char *words[SCRIPT_WORDS_MAX] = {lock->name, lock->beside_key.text, lock->fence_key.text};
    size_t sizes[SCRIPT_WORDS_MAX] = {lock->name_len, lock->beside_key.len, lock->fence_key.len};
    size_t keys = script->keys == 3 && !lock->fence_key.text ? 2 : script->keys;
    for (size_t i = 0; i < argc; i++) {
        words[keys + i] = argv[i];
        sizes[keys + i] = len[i];
    }
    sneck__op_compose(&o->op, script, keys, keys + argc, words, sizes);
}

void sneck__lock_op_script(struct lock_op *o, const struct script *script, size_t argc,
                           const char *const *argv, const size_t *len)
{
    sneck__lock_op_compose(o, script, argc, argv, len);
    sneck__op_send_script(&o->op);
}

bool sneck__lock_op_check_wait(struct lock_op *o, int64_t wait_ms)
{
    if (sneck__is_wait(wait_ms))
        return true;
    sneck__op_end(&o->op, SNECK_INVALID, "%s: a wait is from 0 ms to 365 days, or SNECK_FOREVER",
                  o->lock->what);
    return false;
}

int sneck__lock_op_keep_alive(const struct lock_op *o)
{
    if (o->lock->renew)
        return sneck__renewal_add(o->lock);
    sneck__renewal_remove(o->lock);
    return SNECK_OK;
}

void sneck__lock_op_end_unrenewed(struct lock_op *o, int status)
{
    char why[RENEWAL_WHY_SIZE];
    sneck__lock_why_not_renewed(o->lock->client, status, why);
    sneck__op_end(&o->op, status, "%s: %s", o->lock->what, why);
}

void sneck__lock_clean_up(const sneck_lock *lock, sneck_link *link, const char *token,
                          size_t token_len, const char *entry, size_t entry_len)
{
    sneck__link_send_unheard(link, lock->kind->release, 5,
        (const char *const[]){"2", lock->name, lock->beside_key.text, token, entry},
        (const size_t[]){1, lock->name_len, lock->beside_key.len, token_len, entry_len});
}

void sneck__lock_clean_up_behind(sneck_lock *lock, const struct grant *grant, const char *token,
                                 size_t token_len)
{
    sneck__link_leave_errand(lock->client, grant->link, grant->servers, lock->kind->release, 5,
        (const char *const[]){"2", lock->name, lock->beside_key.text, token, ""},
        (const size_t[]){1, lock->name_len, lock->beside_key.len, token_len, 0});
    sneck__renewal_wake(lock);
}

const redisReply *sneck__held_token(const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[1]->type != REDIS_REPLY_INTEGER)
        return NULL;
    const redisReply *token = reply->element[0];
    return token->type == REDIS_REPLY_STRING || token->type == REDIS_REPLY_NIL ? token : NULL;
}
