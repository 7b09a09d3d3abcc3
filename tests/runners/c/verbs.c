/* verbs.c - the table of all verbs of a case. */
#include "verbs.h"

#include <string.h>

#define ANY ARGUMENTS_MAX
#define TX_OPTIONS "attempts wait guard"

/* Invariant: of rows with one name, that of an owner comes first. */
static const struct verb verbs[] = {
    {"connect", MAKES_CLIENT, CALL_NONE, 0, 0,
     "url through timeout connect_timeout prefix label client_name", verb_connect},
    {"execute", WORDS_ONLY, CALL_EXECUTE, 0, ANY, "", verb_execute},
    {"stats", 0, CALL_NONE, 1, 1, "", verb_stats},

    {"acquire", OF_AN_OWNER, CALL_ACQUIRE, 1, 1, LOCK_OPTIONS " wait owner", verb_owner_call},
    {"release", OF_AN_OWNER, CALL_RELEASE, 1, 1, "owner", verb_owner_call},
    {"owned", OF_AN_OWNER, CALL_NONE, 1, 1, "owner", verb_owner_owned},

    {"acquire", MAY_WAIT, CALL_ACQUIRE, 1, 1, LOCK_OPTIONS " kind wait", verb_acquire},
    {"release", 0, CALL_RELEASE, 1, 1, "token", verb_release},
    {"extend", 0, CALL_EXTEND, 1, 1, "ttl token", verb_release},
    {"adopt", 0, CALL_NONE, 2, 2, "ttl", verb_adopt},
    {"remaining", ABOUT_A_LOCK, CALL_NONE, 1, 1, "", verb_remaining},
    {"owned", ABOUT_A_LOCK, CALL_NONE, 1, 1, "", verb_owned},
    {"token", ABOUT_A_LOCK, CALL_NONE, 1, 1, "", verb_token},
    {"holder", ABOUT_A_LOCK, CALL_HOLDER, 2, 2, "", verb_holder},
    {"locked", ABOUT_A_LOCK, CALL_HOLDER, 1, 1, "", verb_locked},
    {"waiters", ABOUT_A_LOCK, CALL_WAITERS, 1, 2, "", verb_waiters},
    {"force_release", ABOUT_A_LOCK, CALL_FORCE_RELEASE, 1, 1, "", verb_force_release},

    {"lease", ABOUT_A_LOCK, CALL_NONE, 1, 1, "", verb_lease},
    {"lost", ABOUT_A_LOCK, CALL_NONE, 1, 1, "", verb_lost},
    {"fence", ABOUT_A_LOCK, CALL_NONE, 1, 1, "", verb_fence},
    {"keep_alive", ABOUT_A_LOCK, CALL_NONE, 2, 2, "", verb_keep_alive},
    {"clone", ABOUT_A_LOCK, CALL_NONE, 2, 2, "", verb_clone},

    {"try_lock", MAY_WAIT, CALL_TRY_LOCK, 2, 2, "expire wait", verb_try_lock},
    {"release_lock", 0, CALL_RELEASE_LOCK, 2, 2, "", verb_try_lock},

    {"update", 0, CALL_UPDATE, 1, 1, "add append delete keep ttl " TX_OPTIONS, verb_update},
    {"compare_and_set", 0, CALL_COMPARE, 3, 3, "ttl", verb_compare},
    {"compare_and_delete", 0, CALL_COMPARE, 2, 2, "", verb_compare},
    {"failure", 0, CALL_NONE, 1, 1, "", verb_failure},

    {"begin", 0, CALL_BEGIN, 0, ANY, TX_OPTIONS, verb_begin},
    {"read", WORDS_ONLY, CALL_READ, 0, ANY, "", verb_in_tx},
    {"watch", WORDS_ONLY, CALL_WATCH, 0, ANY, "", verb_in_tx},
    {"queue", WORDS_ONLY, CALL_QUEUE, 0, ANY, "", verb_in_tx},
    {"conflicts", 0, CALL_CONFLICTS, 0, 0, "", verb_in_tx},
    {"commit", 0, CALL_COMMIT, 0, 0, "", verb_in_tx},
    {"abort", 0, CALL_GIVE_UP, 0, 0, "", verb_abort},
    {"raise", 0, CALL_GIVE_UP, 0, 0, "", verb_in_tx},
};

static bool has_owner(const struct words *step, size_t count)
{
    for (size_t i = 2; i < count; i++)
        if (step->at[i].key_len == 5 && memcmp(step->at[i].bytes.at, "owner", 5) == 0)
            return true;
    return false;
}

const struct verb *verb_find(const struct words *step, size_t count)
{
    bool owner = has_owner(step, count);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (word_is(&step->at[1], verbs[i].name) && (owner || !(verbs[i].traits & OF_AN_OWNER)))
            return &verbs[i];
    return NULL;
}

bool verb_is_of_tx(const struct word *word)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (word_is(word, verbs[i].name))
            return verbs[i].kind >= CALL_BEGIN;
    return false;
}
