/* Hold a lock while one piece of work is done. */
#include <sneck.h>
#include <stdio.h>

int main(void)
{
    sneck_client *client = NULL;
    sneck_lock *lock = NULL;
    char error[SNECK_ERROR_SIZE];
    int failed = 1;

    /* no url: SNECK_URL, or else redis://localhost:6379 */
    if (sneck_client_new(&client, NULL, NULL, error) ||
        sneck_lock_new(&lock, client, "reports:42", 10, NULL, error)) {
        fprintf(stderr, "%s\n", error);
        goto out;
    }
    if (sneck_lock_acquire(lock, 30000)) {
        fprintf(stderr, "%s\n", sneck_lock_error(lock));
        goto out;
    }
    printf("reports:42 is ours\n");

    /* a failure here says that the lock was lost before the work was done */
    if (sneck_lock_release(lock)) {
        fprintf(stderr, "%s\n", sneck_lock_error(lock));
        goto out;
    }
    failed = 0;

out:
    sneck_lock_free(lock);
    sneck_client_free(client);
    return failed;
}
