/* sneck_quorum URL...: acquire and release on several servers through the C library. */
#include "rounds.h"

#include <sneck.h>
#include <sneck_quorum.h>

int main(int argc, char **argv)
{
    sneck_client *client;
    sneck_lock *lock;
    char error[SNECK_ERROR_SIZE];
    long cycles;

    if (sneck_quorum_new(&client, (size_t)(argc - 1), (const char *const *)(argv + 1), NULL,
                         error) ||
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
