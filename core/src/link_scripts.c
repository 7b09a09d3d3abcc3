/* link_scripts.c - which scripts the server behind a connection has.
 *
 * It has those that it ran, and those whose text is on its way to it: what is sent behind
 * that may name them by their SHA-1.
 */
#include "link.h"

#include "script.h"

#include <string.h>

bool sneck__link_knows(const sneck_link *link, const struct script *script)
{
    for (size_t i = 0; i < link->known_count; i++)
        if (link->known[i] == script)
            return true;
    return false;
}

void sneck__link_learn(sneck_link *link, const struct script *script)
{
    if (!sneck__link_knows(link, script) && link->known_count < SCRIPTS_KNOWN)
        link->known[link->known_count++] = script;
}

/* Its place among those that were told; behind the last one: it was not. */
static size_t find_telling(const sneck_link *link, const struct script *script)
{
    size_t i = 0;
    while (i < link->told_count && link->told_scripts[i].script != script)
        i++;
    return i;
}

void sneck__link_tell(sneck_link *link, const struct script *script)
{
    size_t i = find_telling(link, script);
    if (i == SCRIPTS_KNOWN)
        return;
    if (i == link->told_count)
        link->told_count++;
    link->told_scripts[i] = (struct telling){script, link->popped + link->count + 1};
}

bool sneck__link_is_telling(const sneck_link *link, const struct script *script)
{
    size_t i = find_telling(link, script);
    return i < link->told_count && link->told_scripts[i].request > link->popped;
}

void sneck__link_send_unheard(sneck_link *link, const struct script *script, size_t argc,
                              const char *const *argv, const size_t *len)
{
    bool known = sneck__link_knows(link, script);
    const char *verb = known ? "EVALSHA" : "EVAL", *text = known ? script->sha1 : script->text;
    const char *words[2 + UNHEARD_WORDS_MAX] = {verb, text};
    size_t sizes[2 + UNHEARD_WORDS_MAX] = {strlen(verb), strlen(text)};
    for (size_t i = 0; i < argc; i++) {
        words[2 + i] = argv[i];
        sizes[2 + i] = len[i];
    }
    bool queued = sneck__link_send(link, NULL, (struct command){2 + argc, words, sizes});
    if (queued && link->client->is_member)
        sneck__link_note_script(link, script);
}
