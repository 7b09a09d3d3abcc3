/* Nobody waits for the renewal thread while it looks up the server's name. The lookups are this
 * program's, which stand before the system's; in other threads they take as long as it likes. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "support.h"

#include <sneck_quorum.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TTL_MS 600

typedef int lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static pthread_t program;
static atomic_bool held_up, looking;
static atomic_int losses;

static void be_slow(void)
{
    looking = true;
    while (held_up)
        pause_ms(1);
    looking = false;
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
    lookup *next;
    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!pthread_equal(pthread_self(), program))
        be_slow();
    return next(strcmp(host, "slow.test") == 0 ? "127.0.0.1" : host, service, hints, out);
}

static void note_loss(sneck_lock *lock, void *data)
{
    (void)lock;
    (void)data;
    losses++;
}

/* A url of the server with a name in it. */
static const char *url_by_name(void)
{
    static char url[64];
    sneck_client *client = new_client();
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    char port[16];
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    close(fd);
    snprintf(port, sizeof port, "%d", ntohs(at.sin_port));
    DO(client, "CONFIG", "SET", "port", port);
    snprintf(url, sizeof url, "redis://slow.test:%s", port);
    sneck_client_free(client);
    return url;
}

/* Takes a lock, whose thread looks up the name from then on. */
static sneck_lock *hold_looking(sneck_client *client)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    sneck_lock *lock = NULL;
    options.ttl_ms = TTL_MS;
    options.renew = true;
    options.on_lost = note_loss;
    assert_int_equal(sneck_lock_new(&lock, client, "door", 4, &options, NULL), SNECK_OK);
    held_up = true;
    assert_int_equal(sneck_lock_acquire(lock, 10000), SNECK_OK);
    UNTIL(looking);
    return lock;
}

static void let_it_end(size_t fds)
{
    held_up = false;
    UNTIL(count_fds() == fds);
    assert_int_equal(losses, 0);
}

static void assert_nobody_waits(sneck_client *client, size_t fds)
{
    sneck_lock *lock = hold_looking(client);
    sneck_link *link = new_link(client);
    UNTIL(sneck_lock_remaining_ms(lock) == 0);
    sneck_client_close(client);
    assert_true(looking);
    assert_int_equal(sneck_lock_renew(lock, true), SNECK_NOT_OWNER);
    sneck_lock_free(lock);
    sneck_client_free(client);
    sneck_link_free(link);
    let_it_end(fds);
}

static void closing_does_not_wait_for_a_lookup(void **state)
{
    (void)state;
    const char *url = url_by_name();
    size_t fds = count_fds();
    sneck_client *client = NULL;
    assert_int_equal(sneck_client_new(&client, url, NULL, NULL), SNECK_OK);
    assert_nobody_waits(client, fds);
}

static void nor_that_of_a_quorum(void **state)
{
    (void)state;
    const char *url = url_by_name();
    size_t fds = count_fds();
    sneck_client *client = NULL;
    assert_int_equal(sneck_quorum_new(&client, 1, &url, NULL, NULL), SNECK_OK);
    sneck_lock *first = new_lock(client, "first", 60000);
    assert_int_equal(sneck_lock_acquire(first, 0), SNECK_OK);
    sneck_lock_free(first);
    assert_nobody_waits(client, fds);
}

static void a_lock_may_outlive_the_thread(void **state)
{
    (void)state;
    const char *url = url_by_name();
    size_t fds = count_fds();
    sneck_client *client = NULL;
    assert_int_equal(sneck_client_new(&client, url, NULL, NULL), SNECK_OK);
    sneck_lock *lock = hold_looking(client);
    sneck_client_free(client);
    held_up = false;
    UNTIL(!looking);
    sneck_lock_free(lock);
    let_it_end(fds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(closing_does_not_wait_for_a_lookup, empty_server),
        cmocka_unit_test_setup(nor_that_of_a_quorum, empty_server),
        cmocka_unit_test_setup(a_lock_may_outlive_the_thread, empty_server),
    };
    program = pthread_self();
    alarm(120); /* a wait for the lookup would have no end */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
