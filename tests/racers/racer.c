/* racer.c - a racer with C: as racer.py. Arguments: KIND (ours), URL, TIMEOUT. */
#include <sneck_legacy.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *message)
{
    fprintf(stderr, "%s\n", message);
    exit(1);
}

static bool take(sneck_client *client, const char *name, int64_t timeout_ms)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    char error[SNECK_ERROR_SIZE];
    sneck_lock *lock;
    options.ttl_ms = timeout_ms;
    if (sneck_legacy_lock_new(&lock, client, name, strlen(name), &options, error) != SNECK_OK)
        die(error);
    int status = sneck_lock_acquire(lock, 0);
    if (status != SNECK_OK && status != SNECK_BUSY)
        die(sneck_lock_error(lock));
    sneck_lock_free(lock);
    return status == SNECK_OK;
}

int main(int argc, char **argv)
{
    char name[128], error[SNECK_ERROR_SIZE];
    sneck_client *client;
    if (argc != 4)
        die("usage: racer ours URL TIMEOUT");
    if (sneck_client_new(&client, argv[2], NULL, error) != SNECK_OK)
        die(error);
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(name, sizeof name, stdin)) {
        name[strcspn(name, "\n")] = '\0';
        printf("%d\n", take(client, name, atoll(argv[3]) * 1000));
    }
    sneck_client_free(client);
    return 0;
}
