/* link_scripts.c - which scripts the server behind a connection has.
 *
 * It has those that it ran, and those whose text is on its way to it: what is sent behind
 * that may name them by their SHA-1.
 */
#include "link.h"

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
