/* racer.c - a racer with C: as racer.py. Arguments: KIND (ours, ours-ms), URL, TIMEOUT. */
#include <sneck_legacy.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct racer {
    sneck_client *client;
    sneck_legacy_unit unit;
    int64_t timeout_ms;
    sneck_lock *lock; /* the last one */
};

static void die(const char *message)
{
    fprintf(stderr, "%s\n", message);
    exit(1);
}

static const char *take(struct racer *racer, const char *name)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    char error[SNECK_ERROR_SIZE];
    options.ttl_ms = racer->timeout_ms;
    sneck_lock_free(racer->lock);
    if (sneck_legacy_lock_new(&racer->lock, racer->client, name, strlen(name), &options,
                              racer->unit, error) != SNECK_OK)
        die(error);
    int status = sneck_lock_acquire(racer->lock, 0);
    if (status != SNECK_OK && status != SNECK_BUSY)
        die(sneck_lock_error(racer->lock));
    return status == SNECK_OK ? "won" : "lost";
}

static const char *release(struct racer *racer)
{
    int status = sneck_lock_release(racer->lock);
    if (status != SNECK_OK && status != SNECK_NOT_OWNER)
        die(sneck_lock_error(racer->lock));
    return status == SNECK_OK ? "released" : "not-owner";
}

int main(int argc, char **argv)
{
    char verb[16], name[128], error[SNECK_ERROR_SIZE];
    struct racer racer = {.client = NULL};
    if (argc != 4)
        die("usage: racer KIND URL TIMEOUT");
    if (sneck_client_new(&racer.client, argv[2], NULL, error) != SNECK_OK)
        die(error);
    if (strcmp(argv[1], "ours-ms") == 0)
        racer.unit = SNECK_LEGACY_MILLISECONDS;
    racer.timeout_ms = atoll(argv[3]) * 1000;
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (scanf("%15s %127s", verb, name) == 2)
        printf("%s\n", strcmp(verb, "take") == 0 ? take(&racer, name) : release(&racer));
    sneck_lock_free(racer.lock);
    sneck_client_free(racer.client);
    return 0;
}
