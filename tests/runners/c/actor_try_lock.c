/* actor_try_lock.c - try_lock and release_lock: locks that are a key and a value. */
#include "actor.h"

#include <sneck_legacy.h>

static const struct bytes *key_of(const struct call *call)
{
    return &call->command.at[0].bytes;
}

static const struct bytes *value_of(const struct call *call)
{
    return &call->command.at[1].bytes;
}

int run_try_lock(struct call *call)
{
    const struct bytes *key = key_of(call), *value = value_of(call);
    if (call->kind == CALL_TRY_LOCK)
        return sneck_try_lock(call->client, key->at, key->len, value->at, value->len,
                              call->expire_ms, call->ms, call->error);
    return sneck_release_lock(call->client, key->at, key->len, value->at, value->len,
                              call->error);
}

int start_try_lock(sneck_op **op, struct call *call)
{
    const struct bytes *key = key_of(call), *value = value_of(call);
    if (call->kind == CALL_TRY_LOCK)
        return sneck_try_lock_start(op, call->client, call->link, key->at, key->len, value->at,
                                    value->len, call->expire_ms, call->ms);
    return sneck_release_lock_start(op, call->client, call->link, key->at, key->len, value->at,
                                    value->len);
}

const char *actor_run_try_lock(struct actor *actor, const struct arguments *a, bool leave,
                               bool *known, struct words *outcome)
{
    bool tries = word_is(a->verb, "try_lock");
    *known = tries || word_is(a->verb, "release_lock");
    if (!*known)
        return NULL;
    const char *wrong = arguments_check(a, 2, tries ? "expire wait" : "");
    if (wrong)
        return wrong;
    struct call *call = actor_new_call(actor, tries ? CALL_TRY_LOCK : CALL_RELEASE_LOCK);
    for (size_t i = 0; i < 2; i++)
        words_add_bytes(&call->command, a->places[i]->bytes.at, a->places[i]->bytes.len);
    call->expire_ms = arguments_ms(a, "expire", 60000);
    call->ms = actor_wait_ms(a);
    actor_do_call(actor, call, leave, outcome);
    return NULL;
}
