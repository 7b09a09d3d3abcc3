/* What stands around a fragment of C in docs/c.md. */
#include <sneck.h>
#include <stdio.h>
#include <stdlib.h>

static _Noreturn void die(const char *message)
{
    fprintf(stderr, "%s\n", message);
    exit(1);
}

static void fragment(sneck_client *client, sneck_lock *lock)
{
#include FRAGMENT
}

int main(void)
{
    sneck_client *client;
    sneck_lock *lock;
    char error[SNECK_ERROR_SIZE];

    if (sneck_client_new(&client, NULL, NULL, error) ||
        sneck_lock_new(&lock, client, "reports:42", 10, NULL, error))
        die(error);
    fragment(client, lock);
    sneck_lock_free(lock);
    sneck_client_free(client);
    return 0;
}
