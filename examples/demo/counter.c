/* counter HOW WHERE TIMES: add one to a number, TIMES times.
 *
 *   file    the number in the file WHERE
 *   lock    the same, each time under the lock of that name
 *   key     the number at the key WHERE of the server, by GET and SET
 *   update  the same, by compare-and-set
 */
#include <sneck.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_SIZE 24 /* of its text */

struct counter {
    const char *where;
    sneck_client *client;
    sneck_lock *lock;
};

/* The first time, says that we are here and waits until the input ends. Counters that
 * do so between reading and writing have all read before the first one writes. */
static void meet(void)
{
    if (feof(stdin))
        return;
    puts("here");
    fflush(stdout);
    getchar();
}

static long to_number(const char *text)
{
    return text ? strtol(text, NULL, 10) : 0;
}

/* ------------------------------------------------------------- the four ways */

static int add_in_file(struct counter *c)
{
    long number = 0;
    FILE *file = fopen(c->where, "r+");

    if (!file || fscanf(file, "%ld", &number) != 1) {
        perror(c->where);
        if (file)
            fclose(file);
        return -1;
    }
    meet();
    rewind(file);
    fprintf(file, "%10ld\n", number + 1); /* one width: no old digit stays */
    return fclose(file);
}

static int add_under_lock(struct counter *c)
{
    int failed;

    meet();
    if (sneck_lock_acquire(c->lock, 60000)) {
        fprintf(stderr, "%s\n", sneck_lock_error(c->lock));
        return -1;
    }
    failed = add_in_file(c);
    if (sneck_lock_release(c->lock)) {
        fprintf(stderr, "%s\n", sneck_lock_error(c->lock));
        return -1;
    }
    return failed;
}

static int add_at_key(struct counter *c)
{
    char number[NUMBER_SIZE];
    sneck_reply *reply;
    const void *get[] = {"GET", c->where}, *set[] = {"SET", c->where, number};
    size_t lengths[] = {3, strlen(c->where), 0};

    if (sneck_execute(&reply, c->client, 2, get, lengths))
        goto failed;
    lengths[2] = (size_t)snprintf(number, sizeof number, "%ld",
                                  to_number(sneck_reply_bytes(reply, NULL)) + 1);
    sneck_reply_free(reply);
    meet();
    if (sneck_execute(&reply, c->client, 3, set, lengths))
        goto failed;
    sneck_reply_free(reply);
    return 0;

failed:
    fprintf(stderr, "%s\n", sneck_client_error(c->client));
    return -1;
}

/* Called again when another counter was faster, so it only decides. */
static int add_one(sneck_change *change, const void *old, size_t old_len, void *number)
{
    int len = snprintf(number, NUMBER_SIZE, "%ld", to_number(old) + 1);

    (void)old_len; /* a NUL stands behind it */
    *change = (sneck_change){SNECK_SET, number, (size_t)len};
    return SNECK_OK;
}

static int add_by_update(struct counter *c)
{
    char number[NUMBER_SIZE], error[SNECK_ERROR_SIZE];

    meet();
    if (sneck_update(c->client, c->where, strlen(c->where), 0, NULL, add_one, number, error)) {
        fprintf(stderr, "%s\n", error);
        return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------------------- */

static const struct way {
    const char *name;
    int (*add)(struct counter *);
} ways[] = {
    {"file", add_in_file},
    {"lock", add_under_lock},
    {"key", add_at_key},
    {"update", add_by_update},
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    struct counter counter = {0};
    const struct way *way = ways;
    char error[SNECK_ERROR_SIZE];
    int failed = 1;

    while (argc == 4 && way->name && strcmp(way->name, argv[1]) != 0)
        way++;
    if (argc != 4 || !way->name) {
        fprintf(stderr, "usage: counter file|lock|key|update WHERE TIMES\n");
        return 2;
    }
    counter.where = argv[2];
    if (sneck_client_new(&counter.client, NULL, NULL, error) ||
        sneck_lock_new(&counter.lock, counter.client, counter.where, strlen(counter.where),
                       NULL, error)) {
        fprintf(stderr, "%s\n", error);
        goto out;
    }
    for (long times = strtol(argv[3], NULL, 10); times > 0; times--)
        if (way->add(&counter))
            goto out;
    failed = 0;

out:
    sneck_lock_free(counter.lock);
    sneck_client_free(counter.client);
    return failed;
}
