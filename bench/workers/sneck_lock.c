/* sneck_lock URL...: acquire and release through the C library; several are a quorum's. */
#include "rounds.h"

#include <sneck_quorum.h>

static int make_client(sneck_client **out, int count, char **urls, char *error)
{
    if (count == 1)
        return sneck_client_new(out, urls[0], NULL, error);
    return sneck_quorum_new(out, (size_t)count, (const char *const *)urls, NULL, error);
}

int main(int argc, char **argv)
{
    sneck_client *client;
    sneck_lock *lock;
    char error[SNECK_ERROR_SIZE];
    long cycles;

    if (make_client(&client, argc - 1, argv + 1, error) ||
        sneck_lock_new(&lock, client, "bench:lock", 10, NULL, error))
        give_up(error);
    while ((cycles = round_begin()) > 0) {
        for (long i = 0; i < cycles; i++) {
            if (sneck_lock_acquire(lock, 0) || sneck_lock_release(lock))
                give_up(sneck_lock_error(lock));
        }
        round_end();
    }
    sneck_lock_free(lock);
    sneck_client_free(client);
    return 0;
}
