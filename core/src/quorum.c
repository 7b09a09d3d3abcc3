/* quorum.c - a client of several servers: their addresses, checked and kept.
 *
 * Nothing is sent here. Each server has a client of its own, so that an address and options are
 * read in one place; the links of the quorum's client are made of theirs.
 */
#include "quorum.h"

#include "client.h"
#include "same_server.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse_quorum(char *error, const char *why)
{
    sneck__message(error, "quorum: %s", why);
    return SNECK_INVALID;
}

/* Whatever the database: one server that fails must not count twice. */
static int check_new(const struct quorum *quorum, size_t place, char *error)
{
    const struct address *address = &quorum->members[place]->address;
    for (size_t i = 0; i < place; i++)
        if (sneck__same_server(&quorum->members[i]->address, address)) {
            sneck__message(error, "quorum: %s stands there twice; each server has one voice,"
                           " whatever the database", address->text);
            return SNECK_INVALID;
        }
    return SNECK_OK;
}

static int add_servers(struct quorum *quorum, size_t count, const char *const *urls,
                       const sneck_client_options *options, char *error)
{
    char why[SNECK_ERROR_SIZE];
    for (size_t i = 0; i < count; i++) {
        if (!urls[i])
            return refuse_quorum(error, "a url is NULL");
        int rc = sneck_client_new(&quorum->members[i], urls[i], options, why);
        if (rc != SNECK_OK) {
            sneck__message(error, "quorum: %.480s", why);
            return rc;
        }
        quorum->members[i]->is_member = true;
        quorum->count++;
        rc = check_new(quorum, i, error);
        if (rc != SNECK_OK)
            return rc;
    }
    quorum->majority = count / 2 + 1;
    return SNECK_OK;
}

void sneck__quorum_free(struct quorum *quorum)
{
    for (size_t i = 0; quorum && i < quorum->count; i++)
        sneck_client_free(quorum->members[i]);
    free(quorum);
}

int sneck_quorum_new(sneck_client **out, size_t count, const char *const *urls,
                     const sneck_client_options *options, char *error)
{
    char text[32];
    if (count < 1 || count > SNECK_QUORUM_MAX || !urls)
        return refuse_quorum(error, "it has from 1 to 15 servers");
    struct quorum *quorum = calloc(1, sizeof *quorum);
    sneck_client *client = NULL;
    int rc = quorum ? add_servers(quorum, count, urls, options, error) : SNECK_NO_MEMORY;
    if (rc == SNECK_OK)
        rc = sneck__client_make(&client, options, error);
    if (rc == SNECK_OK) {
        client->quorum = quorum;
        snprintf(text, sizeof text, "a quorum of %zu servers", count);
        if ((client->address.text = strdup(text))) {
            *out = client;
            return SNECK_OK;
        }
        rc = SNECK_NO_MEMORY;
    }
    if (rc == SNECK_NO_MEMORY)
        sneck__message(error, "out of memory");
    if (client)
        sneck__client_drop(client); /* and the servers with it */
    else
        sneck__quorum_free(quorum);
    return rc;
}

size_t sneck_client_servers(const sneck_client *client)
{
    return client->quorum ? client->quorum->count : 1;
}

const char *sneck_client_address(const sneck_client *client, size_t server)
{
    if (server >= sneck_client_servers(client))
        return NULL;
    return client->quorum ? client->quorum->members[server]->address.text : client->address.text;
}
