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

static struct telling *find_telling(const sneck_link *link, const struct script *script)
{
    for (size_t i = 0; i < link->told_count; i++)
        if (link->told_scripts[i].script == script)
            return (struct telling *)&link->told_scripts[i];
    return NULL;
}

void sneck__link_tell(sneck_link *link, const struct script *script)
{
    struct telling *telling = find_telling(link, script);
    if (!telling && link->told_count < SCRIPTS_KNOWN)
        telling = &link->told_scripts[link->told_count++];
    if (telling)
        *telling = (struct telling){script, link->popped + link->count + 1};
}

bool sneck__link_is_telling(const sneck_link *link, const struct script *script)
{
    const struct telling *telling = find_telling(link, script);
    return telling && telling->request > link->popped;
}
