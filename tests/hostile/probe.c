/* probe.c - calls a server that may be hostile and prints what came of it.
 *
 * usage: probe URL TIMEOUT_MS acquire|release|extend|holder|execute|twice
 *
 * `twice` sends two commands and prints the reply to the second one.
 */
#include <sneck.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int execute(sneck_client *client, bool show)
{
    sneck_reply *reply = NULL;
    size_t len;
    int rc = sneck_execute(&reply, client, 2, (const void *[]){"GET", "door"},
                           (const size_t[]){3, 4});
    if (rc == SNECK_OK && show && sneck_reply_bytes(reply, &len))
        printf("%s ", sneck_reply_bytes(reply, &len));
    sneck_reply_free(reply);
    return rc;
}

static int use_lock(sneck_client *client, const char *verb)
{
    sneck_lock *lock = NULL;
    sneck_holder holder;
    int rc = sneck_lock_adopt(&lock, client, "door", 4, "mine", 4, NULL, NULL);
    if (rc != SNECK_OK)
        return rc;
    if (strcmp(verb, "acquire") == 0)
        rc = sneck_lock_acquire(lock, 0);
    else if (strcmp(verb, "release") == 0)
        rc = sneck_lock_release(lock);
    else if (strcmp(verb, "extend") == 0)
        rc = sneck_lock_extend(lock, 0);
    else
        rc = sneck_lock_holder(&holder, lock);
    sneck_lock_free(lock);
    return rc;
}

int main(int argc, char **argv)
{
    sneck_client *client = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS;
    if (argc != 4)
        return 2;
    options.io_timeout_ms = options.connect_timeout_ms = atoll(argv[2]);
    if (sneck_client_new(&client, argv[1], &options, NULL) != SNECK_OK)
        return 2;
    bool twice = strcmp(argv[3], "twice") == 0;
    int rc = 0;
    if (twice)
        execute(client, false);
    if (twice || strcmp(argv[3], "execute") == 0)
        rc = execute(client, twice);
    else
        rc = use_lock(client, argv[3]);
    puts(sneck_status_name(rc));
    sneck_client_free(client);
    return 0;
}
