/* The names of a quorum's servers: how often they are looked up. The lookups are this program's,
 * which stand before the system's. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "five.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG_MS 600000

typedef int lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static atomic_int lookups; /* of names under .test */
static bool name_is_known; /* here.test is this machine; others never are */

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
    lookup *next;
    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!host || !strstr(host, ".test"))
        return next(host, service, hints, out);
    lookups++;
    if (!name_is_known || strcmp(host, "here.test") != 0)
        return EAI_AGAIN;
    return next("127.0.0.1", service, hints, out);
}

/* No more than one at first, and one for each second that has passed. */
static void assert_rare(int before, int64_t since_ms)
{
    assert_true(lookups - before <= 1 + (clock_ms() - since_ms) / 1000);
}

static void a_name_that_is_not_found_is_not_looked_up_by_each_call(void **state)
{
    struct five *five = *state;
    const char *urls[] = {five->servers[0].url, five->servers[1].url, "redis://away.test"};
    sneck_client *client = NULL;
    assert_int_equal(sneck_quorum_new(&client, 3, urls, NULL, NULL), SNECK_OK);
    sneck_lock *lock = quorum_lock(client, "door", LONG_MS, false);
    int64_t begin_ms = clock_ms();
    int before = lookups;
    for (int i = 0; i < 30; i++) {
        assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
        assert_int_equal(sneck_lock_extend(lock, 0), SNECK_OK);
        assert_int_equal(sneck_lock_release(lock), SNECK_OK);
    }
    assert_true(lookups > before);
    assert_rare(before, begin_ms);
    sneck_lock_free(lock);
    sneck_client_free(client);
}

/* A port that nobody has, as far as the system knows. */
static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    close(fd);
    return ntohs(at.sin_port);
}

static void cut_connections(struct five *five)
{
    DO(five->each[0], "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    pause_ms(150); /* idle for longer, a connection is looked at before it is used */
}

static void assert_works(sneck_lock *lock)
{
    assert_int_equal(sneck_lock_acquire(lock, 10000), SNECK_OK);
    assert_int_equal(sneck_lock_release(lock), SNECK_OK);
}

static void addresses_are_kept_while_they_work(void **state)
{
    struct five *five = *state;
    char port[16], url[64];
    const char *urls[] = {url};
    sneck_client *client = NULL;
    snprintf(port, sizeof port, "%d", free_port());
    snprintf(url, sizeof url, "redis://here.test:%s", port);
    DO(five->each[0], "CONFIG", "SET", "port", port);
    assert_int_equal(sneck_quorum_new(&client, 1, urls, NULL, NULL), SNECK_OK);
    sneck_lock *lock = quorum_lock(client, "door", LONG_MS, false);
    int before = lookups;
    name_is_known = true;
    assert_works(lock);
    name_is_known = false;
    for (int i = 0; i < 3; i++) {
        cut_connections(five);
        assert_works(lock);
    }
    assert_int_equal(lookups, before + 1);

    DO(five->each[0], "CONFIG", "SET", "port", "0");
    cut_connections(five);
    int64_t begin_ms = clock_ms();
    UNTIL(sneck_lock_acquire(lock, 0) == SNECK_QUORUM && lookups > before + 1);
    assert_rare(before + 1, begin_ms);
    DO(five->each[0], "CONFIG", "SET", "port", port);
    assert_works(lock); /* what was found once is better than nothing */
    sneck_lock_free(lock);
    sneck_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIVE(a_name_that_is_not_found_is_not_looked_up_by_each_call),
        WITH_FIVE(addresses_are_kept_while_they_work),
    };
    return cmocka_run_group_tests(tests, start_five, stop_five);
}
