/* contend_sneck URL PAGE INDEX: wants a lock that others want, through the C library. */
#include "page.h"

#include <sneck.h>

int main(int argc, char **argv)
{
    sneck_client *client;
    sneck_lock *lock;
    char error[SNECK_ERROR_SIZE];

    if (argc != 4)
        give_up("usage: contend_sneck URL PAGE INDEX");
    struct page *page = page_open(argv[2]);
    size_t index = strtoul(argv[3], NULL, 10);
    if (sneck_client_new(&client, argv[1], NULL, error) ||
        sneck_lock_new(&lock, client, "bench:lock", 10, NULL, error))
        give_up(error);
    while (round_begin() > 0) {
        bool in_time;
        do {
            uint64_t asked_ns = page_now();
            if (sneck_lock_acquire(lock, SNECK_FOREVER))
                give_up(sneck_lock_error(lock));
            in_time = page_hold(page, index, asked_ns);
            if (sneck_lock_release(lock))
                give_up(sneck_lock_error(lock));
        } while (in_time);
        round_end();
    }
    sneck_lock_free(lock);
    sneck_client_free(client);
    return 0;
}
