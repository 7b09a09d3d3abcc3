/* actor_try_lock.c - try_lock and release_lock: locks that are a key and a value. */
#include "verbs.h"

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

const char *verb_try_lock(struct actor *actor, const struct act *act)
{
    struct call *call = call_for(actor, act);
    call_add_words(call, act->arguments.places, 2);
    call->expire_ms = arguments_ms(&act->arguments, "expire", 60000);
    call->ms = read_wait_ms(&act->arguments, 0);
    actor_do_call(actor, call, act);
    return NULL;
}
