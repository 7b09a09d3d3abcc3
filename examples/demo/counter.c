/* counter FILE TIMES [NAME]: add one to the number in FILE, TIMES times.
 *
 * With NAME, each addition holds the lock of that name. Begins when a line
 * comes in, so that all the counters of the demo begin together. */
#include <sneck.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add_one(const char *path)
{
    long number = 0;
    FILE *file = fopen(path, "r+");

    if (!file || fscanf(file, "%ld", &number) != 1) {
        perror(path);
        if (file)
            fclose(file);
        return -1;
    }
    rewind(file);
    fprintf(file, "%10ld\n", number + 1); /* one width: no old digit stays */
    return fclose(file);
}

static int add_one_locked(const char *path, sneck_lock *lock)
{
    int failed;

    if (sneck_lock_acquire(lock, 60000)) {
        fprintf(stderr, "%s\n", sneck_lock_error(lock));
        return -1;
    }
    failed = add_one(path);
    if (sneck_lock_release(lock)) {
        fprintf(stderr, "%s\n", sneck_lock_error(lock));
        return -1;
    }
    return failed;
}

int main(int argc, char **argv)
{
    sneck_client *client = NULL;
    sneck_lock *lock = NULL;
    char error[SNECK_ERROR_SIZE];
    int failed = 1;
    long times;

    if (argc < 3) {
        fprintf(stderr, "usage: counter FILE TIMES [NAME]\n");
        return 2;
    }
    times = strtol(argv[2], NULL, 10);
    if (argc > 3 &&
        (sneck_client_new(&client, NULL, NULL, error) ||
         sneck_lock_new(&lock, client, argv[3], strlen(argv[3]), NULL, error))) {
        fprintf(stderr, "%s\n", error);
        goto out;
    }
    getchar();
    for (long i = 0; i < times; i++) {
        if (lock ? add_one_locked(argv[1], lock) : add_one(argv[1]))
            goto out;
    }
    failed = 0;

out:
    sneck_lock_free(lock);
    sneck_client_free(client);
    return failed;
}
