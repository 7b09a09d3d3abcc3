/* add_sneck WAY URL PAGE INDEX: adds 1 to the number at a key that others add to, too,
 * through the C library.
 *
 *   update           sneck_update() with a function of the old value
 *   transact         sneck_transact() with a body that reads and queues
 *   compare_and_set  with the value of the last time; a GET when it was another */
#include "page.h"

#include <sneck.h>
#include <string.h>

static const char key[] = "bench:number";
enum { KEY_LEN = sizeof key - 1 };

struct adder {
    sneck_client *client;
    sneck_tx_options options;
    char known[24]; /* compare_and_set: the value of the last time; "": none */
    char next[24];
    char error[SNECK_ERROR_SIZE];
};

static size_t next_number(char next[24], const char *old)
{
    return (size_t)snprintf(next, 24, "%ld", old ? strtol(old, NULL, 10) + 1 : 1);
}

/* -------------------------------------------------------------------- update */

static int change_number(sneck_change *change, const void *old, size_t old_len, void *data)
{
    struct adder *adder = data;

    (void)old_len; /* a NUL stands behind it */
    *change = (sneck_change){SNECK_SET, adder->next, next_number(adder->next, old)};
    return SNECK_OK;
}

static int add_by_update(struct adder *adder)
{
    return sneck_update(adder->client, key, KEY_LEN, 0, &adder->options, change_number, adder,
                        adder->error);
}

/* ------------------------------------------------------------------ transact */

static int read_and_queue(sneck_tx *tx, void *data)
{
    struct adder *adder = data;
    sneck_reply *old;
    size_t len;
    int status = sneck_tx_read(&old, tx, 2, (const void *const[]){"GET", key},
                               (const size_t[]){3, KEY_LEN});

    if (status)
        return status;
    len = next_number(adder->next, sneck_reply_bytes(old, &len));
    sneck_reply_free(old);
    return sneck_tx_queue(tx, 3, (const void *const[]){"SET", key, adder->next},
                          (const size_t[]){3, KEY_LEN, len});
}

static int add_by_transact(struct adder *adder)
{
    sneck_reply *replies = NULL;
    int status = sneck_transact(&replies, adder->client, 1, (const void *const[]){key},
                                (const size_t[]){KEY_LEN}, &adder->options, read_and_queue,
                                adder, adder->error);

    sneck_reply_free(replies);
    return status;
}

/* ----------------------------------------------------------- compare-and-set */

static int look(struct adder *adder)
{
    sneck_reply *old;
    size_t len;
    int status = sneck_execute(&old, adder->client, 2, (const void *const[]){"GET", key},
                               (const size_t[]){3, KEY_LEN});

    if (status)
        return status;
    const char *bytes = sneck_reply_bytes(old, &len);
    snprintf(adder->known, sizeof adder->known, "%s", bytes ? bytes : "");
    sneck_reply_free(old);
    return SNECK_OK;
}

static int add_by_compare_and_set(struct adder *adder)
{
    bool done = false;
    int status = SNECK_OK;

    while (status == SNECK_OK && !done) {
        if (!adder->known[0])
            status = look(adder);
        const char *known = adder->known[0] ? adder->known : NULL;
        size_t len = next_number(adder->next, known);
        if (status == SNECK_OK)
            status = sneck_compare_and_set(&done, adder->client, key, KEY_LEN, known,
                                           known ? strlen(known) : 0, adder->next, len, 0,
                                           &adder->options, adder->error);
        strcpy(adder->known, done ? adder->next : "");
    }
    return status;
}

/* -------------------------------------------------------------------------- */

typedef int add_function(struct adder *adder);

static add_function *find_way(const char *name)
{
    static const struct {
        const char *name;
        add_function *add;
    } ways[] = {
        {"update", add_by_update},
        {"transact", add_by_transact},
        {"compare_and_set", add_by_compare_and_set},
    };

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(name, ways[i].name) == 0)
            return ways[i].add;
    give_up("there is no such way to add");
}

int main(int argc, char **argv)
{
    struct adder adder = {.options = SNECK_TX_OPTIONS};

    if (argc != 5)
        give_up("usage: add_sneck WAY URL PAGE INDEX");
    add_function *add = find_way(argv[1]);
    struct page *page = page_open(argv[3]);
    size_t index = strtoul(argv[4], NULL, 10);
    if (sneck_client_new(&adder.client, argv[2], NULL, adder.error))
        give_up(adder.error);
    while (round_begin() > 0) {
        uint64_t begun_ns;
        do {
            begun_ns = page_now();
            if (add(&adder))
                give_up(adder.error);
        } while (page_count(page, index, begun_ns));
        round_end();
    }
    sneck_client_free(adder.client);
    return 0;
}
