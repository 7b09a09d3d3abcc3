/* The names of a quorum's servers: how often they are looked up, and which are one server's. The
 * lookups are this program's, which stand before the system's. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "five.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
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
    if (!host || !strstr(host, ".test") || (hints && hints->ai_flags & AI_NUMERICHOST))
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

/* ----------------------------------------------------------- one server, named twice */

static int make_two(const char *a, const char *b, char *error)
{
    sneck_client *client = NULL;
    int status = sneck_quorum_new(&client, 2, (const char *const[]){a, b}, NULL, error);
    if (status == SNECK_OK)
        sneck_client_free(client);
    return status;
}

static void assert_one(const char *a, const char *b)
{
    char error[SNECK_ERROR_SIZE] = "";
    if (make_two(a, b, error) != SNECK_INVALID || make_two(b, a, error) != SNECK_INVALID)
        fail_msg("%s and %s are taken for two servers", a, b);
    assert_non_null(strstr(error, " stands there twice; "));
}

static void assert_two(const char *a, const char *b)
{
    char error[SNECK_ERROR_SIZE] = "";
    if (make_two(a, b, error) != SNECK_OK || make_two(b, a, error) != SNECK_OK)
        fail_msg("%s and %s: %s", a, b, error);
}

static void a_host_in_another_spelling_is_the_same(void **state)
{
    (void)state;
    int before = lookups;
    assert_one("redis://db.test", "valkey://DB.Test.:6379/1");
    assert_two("redis://db.test", "redis://db.test2");
    assert_two("redis://db.test", "redis://db.tes");
    assert_one("redis://[2001:db8::5]", "redis://[2001:0DB8:0:0::0005]");
    assert_two("redis://[2001:db8::5]", "redis://[2001:db8::6]");
    assert_one("redis://10.0.0.1:7000", "redis://[::ffff:10.0.0.1]:7000");
    assert_one("redis://10.0.0.1:7000", "redis://[::FFFF:a00:1]:7000");
    assert_two("redis://10.0.0.1:7000", "redis://[::10.0.0.1]:7000");
    assert_two("redis://10.0.0.1:7000", "redis://[::ffff:10.0.0.1]:7001");
    assert_one("redis://10.1", "redis://10.0.0.1");
    assert_one("redis://0x0a.0.1", "redis://167772161");
    assert_one("redis://010.0.0.1", "redis://8.0.0.1");
    assert_two("redis://010.0.0.1", "redis://10.0.0.1");
    assert_int_equal(lookups, before);
}

static void this_machine_is_the_same_by_all_its_own_names(void **state)
{
    (void)state;
    const char *urls[] = {"redis://", "redis://LocalHost.", "redis://127.0.0.1", "redis://127.1",
                          "redis://[::1]", "redis://[0:0:0:0:0:0:0:1]",
                          "redis://[::ffff:127.0.0.1]", "redis://0", "redis://[::]"};
    for (size_t i = 1; i < sizeof urls / sizeof *urls; i++)
        assert_one(urls[0], urls[i]);
    assert_two("redis://localhost", "redis://127.0.0.2"); /* may be another one's */
    assert_two("redis://localhost", "redis://localhost.test");
    assert_two("redis://localhost", "redis://localhost:6380");
}

static void a_path_in_another_spelling_is_the_same(void **state)
{
    (void)state;
    assert_one("unix:///no/where", "unix:////no//./where?db=2");
    assert_one("unix:///no/where", "unix:///./no/where/.");
    assert_two("unix:///no/where", "unix:///no/.where");
    assert_two("unix:///no/where", "unix:///no/where/a");
    assert_two("unix:///no/where", "unix:///nowhere");
    assert_two("unix:///no/where", "unix:///no/../where"); /* /no may be a link */
}

static void two_paths_to_one_socket_are_the_same(void **state)
{
    struct five *five = *state;
    char folder[32], link_text[128], file[128], directory[128], up[160], down[160];
    const char *socket_path = five->servers[0].url + 7;
    snprintf(folder, sizeof folder, "%s", "/tmp/sneck-names-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(directory, sizeof directory, "%s/d", folder);
    snprintf(file, sizeof file, "%s/s", folder);
    snprintf(link_text, sizeof link_text, "%.*s",
             (int)(strrchr(socket_path, '/') - socket_path), socket_path);
    assert_int_equal(symlink(link_text, directory), 0);
    assert_int_equal(symlink(socket_path, file), 0);

    snprintf(up, sizeof up, "unix://%s", file);
    assert_one(five->servers[0].url, up);
    assert_two(five->servers[1].url, up);
    snprintf(up, sizeof up, "unix://%s/down", directory); /* nobody has made that socket yet */
    snprintf(down, sizeof down, "unix://%s/down", link_text);
    assert_one(up, down);
    snprintf(down, sizeof down, "unix://%s/other", link_text);
    assert_two(up, down);
    unlink(directory);
    unlink(file);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIVE(a_name_that_is_not_found_is_not_looked_up_by_each_call),
        WITH_FIVE(addresses_are_kept_while_they_work),
        cmocka_unit_test(a_host_in_another_spelling_is_the_same),
        cmocka_unit_test(this_machine_is_the_same_by_all_its_own_names),
        cmocka_unit_test(a_path_in_another_spelling_is_the_same),
        WITH_FIVE(two_paths_to_one_socket_are_the_same),
    };
    return cmocka_run_group_tests(tests, start_five, stop_five);
}
