/* storm.c - starts many acquires on few links, and leaves most of them at a random moment.
 *
 *     storm SEED COUNT KILLS
 *
 * COUNT acquires in all, with waits that end, cancels, frees and releases; about KILLS times a
 * connection of anybody at the server is killed. Ends with nothing under way: what is held is
 * released, and what was sent is answered. The address is SNECK_TEST_URL. Prints how the
 * acquires ended; tests/test_queue_storm.py looks at what is left.
 */
#include <sneck.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LINKS 3
#define PLACES 24          /* acquires at a time */
#define NAMES 4
#define TTL_MS 2000        /* of what a killed connection could not release */
#define WAIT_MAX_MS 40
#define LIMIT_S 60

struct place {
    sneck_lock *lock;
    sneck_op *op;          /* an acquire or a release; NULL: none */
    sneck_link *link;
    bool releasing;
};

struct storm {
    sneck_client *client;
    sneck_link *links[LINKS];
    struct place places[PLACES];
    long left, kills, started;
    long won, timeouts, left_early, other;
    uint64_t random;
};

static void give_up(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static unsigned below(struct storm *s, unsigned limit)
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(s->random >> 33) % limit;
}

static void step_all(struct storm *s, int timeout_ms)
{
    struct pollfd fds[LINKS * SNECK_LINK_FDS];
    size_t n = 0;
    for (size_t i = 0; i < LINKS; i++) {
        int64_t ms = sneck_link_timeout_ms(s->links[i]);
        n += sneck_link_fds(s->links[i], fds + n);
        timeout_ms = ms >= 0 && ms < timeout_ms ? (int)ms : timeout_ms;
    }
    poll(fds, (nfds_t)n, timeout_ms);
    for (size_t i = 0; i < LINKS; i++)
        sneck_link_step(s->links[i]);
}

/* -------------------------------------------------------------------- a place */

static void drop(struct place *place)
{
    sneck_op_free(place->op);
    sneck_lock_free(place->lock);
    *place = (struct place){0};
}

static void begin(struct storm *s, struct place *place)
{
    char name[16], error[SNECK_ERROR_SIZE];
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.ttl_ms = TTL_MS;
    options.fair = below(s, 2);
    int len = snprintf(name, sizeof name, "door%u", below(s, NAMES));
    int64_t wait_ms = below(s, 4) ? (int64_t)below(s, WAIT_MAX_MS) : SNECK_FOREVER;
    if (sneck_lock_new(&place->lock, s->client, name, (size_t)len, &options, error) != SNECK_OK)
        give_up(error);
    place->link = s->links[below(s, LINKS)];
    if (sneck_lock_acquire_start(&place->op, place->lock, place->link, wait_ms) != SNECK_OK)
        give_up("out of memory");
    s->left--;
    s->started++;
}

static void release(struct place *place)
{
    sneck_op_free(place->op);
    place->releasing = true;
    if (sneck_lock_release_start(&place->op, place->lock, place->link) != SNECK_OK)
        give_up("out of memory");
}

/* The op of the place has ended. */
static void go_on(struct storm *s, struct place *place)
{
    int status = sneck_op_status(place->op);
    if (place->releasing) {
        if (status == SNECK_UNKNOWN || status == SNECK_CONNECTION)
            release(place); /* once more, until it is certain */
        else
            drop(place);
        return;
    }
    s->won += status == SNECK_OK;
    s->timeouts += status == SNECK_TIMEOUT || status == SNECK_BUSY;
    s->other += status != SNECK_OK && status != SNECK_TIMEOUT && status != SNECK_BUSY;
    if (status == SNECK_OK || status == SNECK_UNKNOWN)
        release(place);
    else
        drop(place);
}

static void leave(struct storm *s, struct place *place)
{
    s->left_early++;
    if (below(s, 2))
        sneck_op_cancel(place->op);
    if (sneck_op_status(place->op) == SNECK_OK)
        go_on(s, place);
    else
        drop(place);
}

static void visit(struct storm *s, struct place *place)
{
    if (!place->op) {
        if (s->left > 0)
            begin(s, place);
    } else if (sneck_op_status(place->op) != SNECK_PENDING) {
        go_on(s, place);
    } else if (!place->releasing && below(s, 100) == 0) {
        leave(s, place);
    }
}

/* ------------------------------------------------------------------ the storm */

static void execute(struct storm *s, size_t argc, const char *const *words)
{
    const void *argv[8];
    size_t len[8];
    sneck_reply *reply = NULL;
    for (size_t i = 0; i < argc; i++) {
        argv[i] = words[i];
        len[i] = strlen(words[i]);
    }
    sneck_execute(&reply, s->client, argc, argv, len);
    sneck_reply_free(reply);
}

static void kill_somebody(struct storm *s)
{
    static const char *const kinds[] = {"pubsub", "normal"};
    execute(s, 6, (const char *const[]){"CLIENT", "KILL", "TYPE", kinds[below(s, 2)], "SKIPME",
                                        "yes"});
}

static bool anything_under_way(const struct storm *s)
{
    for (size_t i = 0; i < PLACES; i++)
        if (s->places[i].op)
            return true;
    return false;
}

static void rage(struct storm *s)
{
    time_t limit = time(NULL) + LIMIT_S;
    long every = s->kills ? s->left / s->kills : 0, next = every;
    while (s->left > 0 || anything_under_way(s)) {
        if (time(NULL) > limit)
            give_up("it does not end");
        for (size_t i = 0; i < PLACES; i++)
            visit(s, &s->places[below(s, PLACES)]);
        if (s->left == 0) /* none is passed over by chance any more */
            for (size_t i = 0; i < PLACES; i++)
                visit(s, &s->places[i]);
        if (every && s->started >= next) {
            kill_somebody(s);
            next += every;
        }
        step_all(s, 1);
    }
}

/* Sees that all that was sent is answered, the cleanups, too. */
static void settle(struct storm *s)
{
    static const void *const argv[] = {"PING"};
    static const size_t len[] = {4};
    for (size_t i = 0; i < LINKS; i++) {
        sneck_op *op;
        if (sneck_execute_start(&op, s->client, s->links[i], 1, argv, len) != SNECK_OK)
            give_up("out of memory");
        while (sneck_op_status(op) == SNECK_PENDING)
            step_all(s, 100);
        sneck_op_free(op);
    }
}

int main(int argc, char **argv)
{
    static struct storm s;
    char error[SNECK_ERROR_SIZE];
    if (argc != 4) {
        fputs("usage: storm SEED COUNT KILLS\n", stderr);
        return 2;
    }
    s.random = strtoull(argv[1], NULL, 10);
    s.left = atol(argv[2]);
    s.kills = atol(argv[3]);
    if (sneck_client_new(&s.client, getenv("SNECK_TEST_URL"), NULL, error) != SNECK_OK)
        give_up(error);
    for (size_t i = 0; i < LINKS; i++)
        if (sneck_link_new(&s.links[i], s.client) != SNECK_OK)
            give_up("out of memory");
    rage(&s);
    settle(&s);
    for (size_t i = 0; i < LINKS; i++)
        sneck_link_free(s.links[i]);
    sneck_client_free(s.client);
    printf("won %ld, timeouts %ld, left %ld, other %ld\n", s.won, s.timeouts, s.left_early,
           s.other);
    return 0;
}
