/* actor_connect.c - the client of an actor: of one server, or of a quorum of them. */
#include "verbs.h"

#include "outcome.h"

#include <sneck_quorum.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void server_url(char out[256], const struct actor *actor, const char *name, size_t number)
{
    snprintf(out, 256, "unix://%s/%s%zu", actor->servers, name, number);
}

static int make_quorum(struct actor *actor, const sneck_client_options *options)
{
    char text[SNECK_QUORUM_MAX][256];
    const char *urls[SNECK_QUORUM_MAX];
    for (size_t i = 0; i < actor->server_count; i++) {
        server_url(text[i], actor, "proxy", i + 1);
        urls[i] = text[i];
    }
    return sneck_quorum_new(&actor->client, actor->server_count, urls, options, NULL);
}

bool actor_connect(struct actor *actor, const char *url, const sneck_client_options *options,
                   struct words *outcome)
{
    int rc = actor->server_count ? make_quorum(actor, options)
                                 : sneck_client_new(&actor->client, url, options, NULL);
    if (rc != SNECK_OK) {
        outcome_fail(outcome, rc, "");
        return false;
    }
    actor->driver->open(&actor->link, actor->client);
    return true;
}

static const char *unix_url(struct bytes *url, const struct variables *v, const char *name)
{
    const struct bytes *path = variable_find(v, name, strlen(name));
    bytes_add_text(url, "unix://");
    bytes_add_text(url, path->at);
    return url->at;
}

bool actor_connect_plainly(struct actor *actor, const struct variables *v, struct words *outcome)
{
    struct bytes url = {0};
    char own[256] = "";
    if (actor->alone)
        server_url(own, actor, "server", actor->alone);
    bool made = actor_connect(actor, *own ? own : unix_url(&url, v, "socket"), NULL, outcome);
    free(url.at);
    return made;
}

const char *verb_connect(struct actor *actor, const struct act *act)
{
    const struct arguments *a = &act->arguments;
    const char *through = arguments_text(a, "through"), *url = arguments_text(a, "url");
    struct bytes made = {0};
    sneck_client_options options = SNECK_CLIENT_OPTIONS;
    if (through && (url || strcmp(through, "proxy") != 0))
        return "through=proxy stands alone";
    if (actor->server_count && (url || through))
        return "where there are several servers, a client is a quorum of all of them";
    if (actor->client)
        return "connect is the first step of an actor";
    options.io_timeout_ms = arguments_ms(a, "timeout", options.io_timeout_ms);
    options.connect_timeout_ms = arguments_ms(a, "connect_timeout", options.connect_timeout_ms);
    options.key_prefix = arguments_text(a, "prefix");
    options.key_prefix_len = arguments_text_len(a, "prefix");
    options.label = arguments_text(a, "label");
    options.client_name = arguments_text(a, "client_name");
    if (!url)
        url = unix_url(&made, act->variables, through ? "proxy" : "socket");
    if (actor_connect(actor, url, &options, act->outcome))
        outcome_ok(act->outcome);
    free(made.at);
    return NULL;
}
