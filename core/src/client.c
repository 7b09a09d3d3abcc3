/* client.c - an address, its options, and a pool of links behind a mutex.
 *
 * Invariant: a link in the pool is quiet, so whoever takes it gets replies to
 * nothing but own commands. The pool grows with the number of calls at the same
 * time; a link that is in doubt is freed, not put back. Only a quorum's may owe replies,
 * which are swallowed when they come; what has not left by then is never sent, but for releases.
 */
#include "client.h"

#include "fork.h"
#include "link.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_MAX 64

static const char default_url[] = "redis://localhost:6379";

/* ------------------------------------------------------------------- options */

static bool duration_ok(int64_t ms)
{
    return ms > 0 && ms <= SNECK_TTL_MAX_MS;
}

static int check_options(const sneck_client_options *o, char *error)
{
    const char *why = NULL;
    if (o->size != sizeof *o)
        why = "start from SNECK_CLIENT_OPTIONS";
    else if (!duration_ok(o->connect_timeout_ms) || !duration_ok(o->io_timeout_ms))
        why = "a timeout is more than 0 and at most 365 days";
    else if (o->key_prefix_len >= SNECK_NAME_MAX || (o->key_prefix_len && !o->key_prefix))
        why = "the key prefix is too long";
    else if (o->client_name && (!*o->client_name || strpbrk(o->client_name, " \r\n")))
        why = "a client name has no spaces and is not empty";
    if (!why)
        return SNECK_OK;
    sneck__message(error, "client options: %s", why);
    return SNECK_INVALID;
}

/* Copies text that may be NULL; false: no memory. */
static bool copy_text(char **out, const char *text)
{
    *out = text ? strdup(text) : NULL;
    return *out || !text;
}

static bool copy_options(sneck_client *client, const sneck_client_options *o)
{
    client->connect_timeout_ms = o->connect_timeout_ms;
    client->io_timeout_ms = o->io_timeout_ms;
    client->prefix = malloc(o->key_prefix_len + 1);
    if (!client->prefix)
        return false;
    if (o->key_prefix_len)
        memcpy(client->prefix, o->key_prefix, o->key_prefix_len);
    client->prefix_len = o->key_prefix_len;
    return copy_text(&client->name, o->client_name) && copy_text(&client->label, o->label);
}

/* ------------------------------------------------------------------ lifetime */

static void destroy(sneck_client *client)
{
    sneck__renewal_clear(&client->renewal);
    pthread_mutex_destroy(&client->mutex);
    sneck__address_clear(&client->address);
    sneck__quorum_free(client->quorum);
    free(client->name);
    free(client->prefix);
    free(client->label);
    free(client);
}

int sneck__client_make(sneck_client **out, const sneck_client_options *options, char *error)
{
    static const sneck_client_options defaults = SNECK_CLIENT_OPTIONS;
    if (!options)
        options = &defaults;
    int rc = check_options(options, error);
    if (rc != SNECK_OK)
        return rc;
    sneck_client *client = calloc(1, sizeof *client);
    if (!client) {
        sneck__message(error, "out of memory");
        return SNECK_NO_MEMORY;
    }
    atomic_init(&client->references, 1);
    pthread_mutex_init(&client->mutex, NULL);
    sneck__renewal_init(&client->renewal);
    atomic_init(&client->fork_count, sneck__fork_count());
    if (!copy_options(client, options)) {
        sneck__message(error, "out of memory");
        destroy(client);
        return SNECK_NO_MEMORY;
    }
    *out = client;
    return SNECK_OK;
}

int sneck_client_new(sneck_client **out, const char *url,
                     const sneck_client_options *options, char *error)
{
    const char *configured = getenv("SNECK_URL");
    if (!url)
        url = configured && *configured ? configured : default_url;
    sneck_client *client;
    int rc = sneck__client_make(&client, options, error);
    if (rc != SNECK_OK)
        return rc;
    rc = sneck__address_read(&client->address, url, error);
    if (rc == SNECK_OK)
        *out = client;
    else
        destroy(client);
    return rc;
}

sneck_client *sneck__client_share(sneck_client *client)
{
    atomic_fetch_add_explicit(&client->references, 1, memory_order_relaxed);
    return client;
}

void sneck__client_drop(sneck_client *client)
{
    if (atomic_fetch_sub(&client->references, 1) == 1)
        destroy(client);
}

static void free_links(sneck_link *list)
{
    while (list) {
        sneck_link *next = list->next_idle;
        sneck_link_free(list);
        list = next;
    }
}

/* Takes the pool's links out; the mutex is held. */
static sneck_link *empty_pool(sneck_client *client)
{
    sneck_link *list = client->idle;
    client->idle = NULL;
    client->idle_count = 0;
    return list;
}

/* In a child, the pool's links are the parent's, and a thread that does not exist
 * here may have held the mutex while the process forked. */
static void check_fork(sneck_client *client)
{
    if (!sneck__fork_inherited(&client->fork_count))
        return;
    pthread_mutex_init(&client->mutex, NULL);
    client->live = NULL;
    for (sneck_link *link = client->idle; link; link = link->next_idle)
        link->number = 0; /* it is in that list no more */
    free_links(empty_pool(client));
    sneck__fork_adopted(&client->fork_count);
}

void sneck_client_close(sneck_client *client)
{
    if (!client)
        return;
    check_fork(client);
    pthread_mutex_lock(&client->mutex);
    client->closed = true;
    sneck_link *list = empty_pool(client);
    pthread_mutex_unlock(&client->mutex);
    free_links(list);
    sneck__renewal_stop(client);
}

void sneck_client_free(sneck_client *client)
{
    if (!client)
        return;
    sneck_client_close(client);
    sneck__client_drop(client);
}

const char *sneck_client_error(const sneck_client *client)
{
    return client->error;
}

const char *sneck_client_server_code(const sneck_client *client)
{
    return client->server_code;
}

void sneck__client_report(sneck_client *client, const char *error, const char *code)
{
    check_fork(client);
    pthread_mutex_lock(&client->mutex);
    snprintf(client->error, sizeof client->error, "%s", error);
    snprintf(client->server_code, sizeof client->server_code, "%s", code);
    pthread_mutex_unlock(&client->mutex);
}

void sneck__client_count_wakeups(sneck_client *client, bool woken)
{
    atomic_store_explicit(&client->counters.wakeups,
                          woken ? SNECK_WAKEUPS_USED : SNECK_WAKEUPS_DENIED,
                          memory_order_relaxed);
}

/* ------------------------------------------------------------ the server's place */

/* A client of one server looks each time, since a failover may have moved its name. */
const char *sneck__client_places(sneck_client *client, struct places *out)
{
    const char *why = NULL;
    if (!client->is_member)
        return sneck__resolve(out, client->address.host);
    check_fork(client);
    pthread_mutex_lock(&client->mutex);
    bool known = sneck__known_places(&client->known, out, &why);
    pthread_mutex_unlock(&client->mutex);
    if (known)
        return why;
    why = sneck__resolve(out, client->address.host);
    pthread_mutex_lock(&client->mutex);
    why = sneck__note_places(&client->known, out, why);
    pthread_mutex_unlock(&client->mutex);
    return why;
}

void sneck__client_reached(sneck_client *client, bool reached)
{
    if (!client->is_member || client->address.path)
        return;
    check_fork(client);
    pthread_mutex_lock(&client->mutex);
    sneck__note_reached(&client->known, reached);
    pthread_mutex_unlock(&client->mutex);
}

bool sneck__client_has_name(const sneck_client *client)
{
    if (!client->quorum)
        return !client->address.path;
    for (size_t i = 0; i < client->quorum->count; i++)
        if (!client->quorum->members[i]->address.path)
            return true;
    return false;
}

/* ----------------------------------------------------------------- the pool */

bool sneck__client_closed(sneck_client *client)
{
    check_fork(client);
    pthread_mutex_lock(&client->mutex);
    bool closed = client->closed;
    pthread_mutex_unlock(&client->mutex);
    return closed;
}

/* One that has something to send yet goes first: nobody steps it while it is idle. */
static sneck_link **next_idle_place(sneck_client *client)
{
    sneck_link **place = &client->idle;
    while (*place && !(*place)->unsent)
        place = &(*place)->next_idle;
    return *place ? place : &client->idle;
}

static sneck_link **idle_place(sneck_client *client, uint64_t number)
{
    sneck_link **place = &client->idle;
    while (*place && (*place)->number != number)
        place = &(*place)->next_idle;
    return place;
}

/* Takes the link of this number out of the pool, or with 0 the next one; NULL: it is not there.
 * The mutex is held. */
static sneck_link *take_idle(sneck_client *client, uint64_t number)
{
    sneck_link **place = number > 0 ? idle_place(client, number) : next_idle_place(client);
    sneck_link *link = *place;
    if (link) {
        *place = link->next_idle;
        client->idle_count--;
        link->next_idle = NULL;
    }
    return link;
}

sneck_link *sneck__client_borrow_this(sneck_client *client, uint64_t number)
{
    check_fork(client);
    pthread_mutex_lock(&client->mutex);
    sneck_link *link = take_idle(client, number);
    if (!link && number > 0)
        link = take_idle(client, 0);
    pthread_mutex_unlock(&client->mutex);
    if (link) {
        sneck__link_drop_unsent(link);
        sneck__link_catch_up(link);
    } else if (sneck_link_new(&link, client) != SNECK_OK) {
        return NULL;
    }
    return link;
}

sneck_link *sneck__client_borrow(sneck_client *client)
{
    return sneck__client_borrow_this(client, 0);
}

/* One link of a quorum may stay in doubt for as long as one of its servers is stalled: its
 * replies come in order all the same. */
static bool may_be_kept(const sneck_link *link)
{
    return link->client->quorum || sneck__link_quiet(link);
}

/* Nobody else has it: what it is asked to send from now on, whoever asks sends. */
static bool put_back(sneck_client *client, sneck_link *link)
{
    pthread_mutex_lock(&client->mutex);
    bool keep = !client->closed && client->idle_count < IDLE_MAX && !link->errands;
    if (keep) {
        link->unsent = sneck__link_has_unsent(link);
        link->next_idle = client->idle;
        client->idle = link;
        client->idle_count++;
    }
    pthread_mutex_unlock(&client->mutex);
    return keep;
}

void sneck__client_give_back(sneck_link *link)
{
    sneck_client *client = link->client;
    check_fork(client);
    bool kept = false;
    do {
        sneck__link_run_errands(link);
        sneck__link_flush_all(link); /* a cleanup may still leave; to connect could block */
        kept = may_be_kept(link) && put_back(client, link);
    } while (!kept && atomic_load(&link->has_errands));
    if (!kept)
        sneck_link_free(link);
}

/* ------------------------------------------------------------ a quorum's links */

void sneck__client_add_link(sneck_link *link)
{
    sneck_client *client = link->client;
    check_fork(client);
    pthread_mutex_lock(&client->mutex);
    link->number = ++client->link_count;
    link->next_live = client->live;
    client->live = link;
    pthread_mutex_unlock(&client->mutex);
}

void sneck__client_remove_link(sneck_link *link)
{
    sneck_client *client = link->client;
    check_fork(client);
    pthread_mutex_lock(&client->mutex);
    for (sneck_link **place = &client->live; *place; place = &(*place)->next_live)
        if (*place == link) {
            *place = link->next_live;
            break;
        }
    pthread_mutex_unlock(&client->mutex);
}

static void add_errand(sneck_link *link, struct errand *errand)
{
    errand->next = link->errands;
    link->errands = errand;
    atomic_store(&link->has_errands, true);
}

sneck_link *sneck__client_leave_errand(sneck_client *client, uint64_t number,
                                       struct errand *errand)
{
    check_fork(client);
    pthread_mutex_lock(&client->mutex);
    sneck_link *link = client->live;
    while (link && link->number != number)
        link = link->next_live;
    if (link)
        add_errand(link, errand);
    sneck_link *idle = link ? take_idle(client, number) : NULL;
    pthread_mutex_unlock(&client->mutex);
    if (!link)
        free(errand);
    return idle;
}

static struct errand *reversed(struct errand *list)
{
    struct errand *out = NULL;
    while (list) {
        struct errand *next = list->next;
        list->next = out;
        out = list;
        list = next;
    }
    return out;
}

struct errand *sneck__client_take_errands(sneck_link *link)
{
    sneck_client *client = link->client;
    check_fork(client);
    pthread_mutex_lock(&client->mutex);
    struct errand *errands = link->errands;
    link->errands = NULL;
    atomic_store(&link->has_errands, false);
    pthread_mutex_unlock(&client->mutex);
    return reversed(errands);
}
