#ifndef SNECK_CLIENT_H
#define SNECK_CLIENT_H

#include "counters.h"
#include "quorum.h"
#include "renewal.h"
#include "resolve.h"
#include "sneck.h"
#include "text.h"
#include "url.h"

#include <pthread.h>
#include <stdatomic.h>

struct sneck_client {
    atomic_size_t references;    /* the handle, locks, links */
    struct address address;      /* never changes; of a quorum's client only the text */
    struct quorum *quorum;       /* owned; NULL: it has one server */
    bool is_member;              /* it is one server of a quorum */
    int64_t connect_timeout_ms;
    int64_t io_timeout_ms;
    char *name;                  /* for CLIENT SETNAME, or NULL */
    char *prefix;                /* of lock names */
    size_t prefix_len;
    char *label;                 /* of tokens, or NULL */

    struct counters counters;
    struct renewal renewal;
    pthread_mutex_t mutex;       /* for what follows; never held across I/O */
    bool closed;
    atomic_uint fork_count;      /* whose sockets the pool has */
    struct known_places known;   /* where its server is; of a member only */
    sneck_link *live;            /* all links of a quorum's client */
    uint64_t link_count;         /* how many it has ever had */
    sneck_link *idle;            /* a stack; the last used is the next */
    size_t idle_count;
    char error[SNECK_ERROR_SIZE];
    char server_code[CODE_SIZE];
};

/* Makes a client that has no address yet. */
int sneck__client_make(sneck_client **out, const sneck_client_options *options, char *error);

sneck_client *sneck__client_share(sneck_client *client);
void sneck__client_drop(sneck_client *client);
bool sneck__client_closed(sneck_client *client);

/* Keeps the message and the server's code word of a blocking call. */
void sneck__client_report(sneck_client *client, const char *error, const char *code);

/* The addresses of its server, as sneck__resolve() gives them; of a quorum's from memory while
 * they work. And whether a connection to one of them was made. */
const char *sneck__client_places(sneck_client *client, struct places *out);
void sneck__client_reached(sneck_client *client, bool reached);

/* A connection of it may begin with the lookup of a name, which takes as long as the system
 * likes. */
bool sneck__client_has_name(const sneck_client *client);

/* Waiters are woken, or have to poll. */
void sneck__client_count_wakeups(sneck_client *client, bool woken);

/* Takes a link out of the pool, or makes one; NULL: no memory. */
sneck_link *sneck__client_borrow(sneck_client *client);

/* The same, but where the link of this number is there, that one. */
sneck_link *sneck__client_borrow_this(sneck_client *client, uint64_t number);

/* A link of a quorum's client comes, and goes. */
void sneck__client_add_link(sneck_link *link);
void sneck__client_remove_link(sneck_link *link);

/* Leaves an errand, which is the client's now, with the link of this number, if there is one;
 * gives that one where it was idle: it is the caller's to give back. */
struct errand;
sneck_link *sneck__client_leave_errand(sneck_client *client, uint64_t number,
                                       struct errand *errand);

/* Takes what the link was asked to send, the first one first. */
struct errand *sneck__client_take_errands(sneck_link *link);

/* Puts a link back, or frees it when it is in doubt. */
void sneck__client_give_back(sneck_link *link);

#endif
