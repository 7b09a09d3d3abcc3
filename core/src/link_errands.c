/* link_errands.c - what one thread has a link send that another one has.
 *
 * A server reads each connection by itself, in whatever order it likes. So what must come
 * after a request that is still under way has to go the same way, behind it: it is left with the
 * link, which sends it when whoever has the link steps it next or gives it back.
 */
#include "client.h"
#include "link.h"

#include <stdlib.h>
#include <string.h>

static struct errand *make_errand(uint32_t servers, const struct script *script, size_t argc,
                                  const char *const *argv, const size_t *len)
{
    size_t total = 0, used = 0;
    for (size_t i = 0; i < argc; i++)
        total += len[i];
    struct errand *errand = malloc(sizeof *errand + total);
    if (!errand)
        return NULL;
    *errand = (struct errand){.script = script, .servers = servers, .argc = argc};
    for (size_t i = 0; i < argc; i++) {
        memcpy(errand->bytes + used, argv[i], len[i]);
        errand->len[i] = len[i];
        used += len[i];
    }
    return errand;
}

void sneck__link_leave_errand(sneck_client *client, uint64_t number, uint32_t servers,
                              const struct script *script, size_t argc, const char *const *argv,
                              const size_t *len)
{
    struct errand *errand = make_errand(servers, script, argc, argv, len);
    if (!errand)
        return;
    sneck_link *idle = sneck__client_leave_errand(client, number, errand);
    if (idle)
        sneck__client_give_back(idle); /* which runs it */
}

void sneck__link_drop_errands(sneck_link *link)
{
    while (link->errands) {
        struct errand *next = link->errands->next;
        free(link->errands);
        link->errands = next;
    }
}

static void run(sneck_link *link, const struct errand *errand)
{
    const char *argv[UNHEARD_WORDS_MAX];
    const char *next = errand->bytes;
    for (size_t i = 0; i < errand->argc; i++) {
        argv[i] = next;
        next += errand->len[i];
    }
    for (size_t i = 0; i < link->member_count; i++)
        if (errand->servers >> i & 1)
            sneck__link_send_unheard(link->members[i], errand->script, errand->argc, argv,
                                     errand->len);
}

void sneck__link_run_errands(sneck_link *link)
{
    if (!atomic_load(&link->has_errands))
        return;
    struct errand *errand = sneck__client_take_errands(link);
    while (errand) {
        struct errand *next = errand->next;
        run(link, errand);
        free(errand);
        errand = next;
    }
}
