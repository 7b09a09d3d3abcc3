/* The re-entrant lock: its owner's acquires are counted, others wait. */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ME = 1, YOU = 2 };

struct scene {
    sneck_client *client;
    sneck_link *link;
    sneck_rlock *rlock; /* "door" */
};

static int set_up(void **state)
{
    static struct scene scene;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.ttl_ms = 60000;
    empty_server(state);
    scene.client = new_client();
    scene.link = new_link(scene.client);
    assert_int_equal(sneck_rlock_new(&scene.rlock, scene.client, "door", 4, &options, NULL),
                     SNECK_OK);
    *state = &scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    sneck_rlock_free(scene->rlock);
    sneck_link_free(scene->link);
    sneck_client_free(scene->client);
    return 0;
}

static void its_owner_acquires_it_again_without_a_word_to_the_server(void **state)
{
    struct scene *scene = *state;
    sneck_client *other = new_client();
    sneck_rlock *rlock = scene->rlock;
    DO(other, "PING");
    assert_null(sneck_rlock_lock(rlock, ME));
    assert_int_equal(sneck_rlock_acquire(rlock, ME, 0), SNECK_OK);
    int64_t before = server_number(other, "stats", "total_commands_processed");
    for (size_t i = 1; i <= 100; i++) {
        assert_int_equal(sneck_rlock_count(rlock, ME), i);
        assert_int_equal(sneck_rlock_acquire(rlock, ME, 0), SNECK_OK);
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(sneck_rlock_release(rlock, ME), SNECK_OK);
    assert_int_equal(server_number(other, "stats", "total_commands_processed"), before + 1);
    assert_true(key_exists(other, "door"));
    assert_true(sneck_lock_remaining_ms(sneck_rlock_lock(rlock, ME)) > 0);
    assert_int_equal(sneck_rlock_release(rlock, ME), SNECK_OK);
    assert_false(key_exists(other, "door"));
    assert_int_equal(sneck_rlock_count(rlock, ME), 0);
    assert_null(sneck_rlock_lock(rlock, ME));
    assert_int_equal(sneck_rlock_release(rlock, ME), SNECK_NOT_OWNER);
    assert_non_null(strstr(sneck_rlock_error(rlock), "door"));
    sneck_client_free(other);
}

static void owners_exclude_each_other_and_other_locks(void **state)
{
    struct scene *scene = *state;
    sneck_rlock *rlock = scene->rlock;
    sneck_lock *lock = new_lock(scene->client, "door", 60000);
    assert_int_equal(sneck_rlock_acquire(rlock, ME, 0), SNECK_OK);
    assert_int_equal(sneck_rlock_acquire(rlock, YOU, 0), SNECK_BUSY);
    assert_non_null(strstr(sneck_rlock_error(rlock), "held by pid"));
    assert_int_equal(sneck_rlock_release(rlock, YOU), SNECK_NOT_OWNER);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_BUSY);
    assert_int_equal(sneck_rlock_release(rlock, ME), SNECK_OK);
    assert_int_equal(sneck_rlock_acquire(rlock, YOU, 0), SNECK_OK);
    assert_int_equal(sneck_rlock_release(rlock, YOU), SNECK_OK);
    sneck_lock_free(lock);
}

static void a_lost_lease_is_not_counted_further(void **state)
{
    struct scene *scene = *state;
    sneck_rlock *rlock = scene->rlock;
    assert_int_equal(sneck_rlock_acquire(rlock, ME, 0), SNECK_OK);
    assert_int_equal(sneck_rlock_acquire(rlock, ME, 0), SNECK_OK);
    DO(scene->client, "DEL", "door");
    assert_int_equal(sneck_lock_extend(sneck_rlock_lock(rlock, ME), 0), SNECK_NOT_OWNER);
    assert_int_equal(sneck_rlock_acquire(rlock, YOU, 0), SNECK_OK);
    assert_int_equal(sneck_rlock_acquire(rlock, ME, 0), SNECK_NOT_OWNER);
    assert_non_null(strstr(sneck_rlock_error(rlock), "door"));
    assert_int_equal(sneck_rlock_count(rlock, ME), 2);
    assert_int_equal(sneck_rlock_release(rlock, ME), SNECK_NOT_OWNER);
    assert_int_equal(sneck_rlock_count(rlock, ME), 1);
    assert_int_equal(sneck_rlock_release(rlock, ME), SNECK_NOT_OWNER);
    assert_int_equal(sneck_rlock_count(rlock, ME), 0);
    assert_true(key_exists(scene->client, "door")); /* what the other one got is its own */
    assert_int_equal(sneck_rlock_release(rlock, YOU), SNECK_OK);
    assert_int_equal(sneck_rlock_acquire(rlock, ME, 0), SNECK_OK); /* begins anew */
    assert_int_equal(sneck_rlock_release(rlock, ME), SNECK_OK);
}

static void ops_on_a_link_acquire_and_release_it(void **state)
{
    struct scene *scene = *state;
    sneck_rlock *rlock = scene->rlock;
    sneck_lock *lock = NULL;
    sneck_op *op = NULL;
    assert_int_equal(sneck_rlock_acquire_begin(&lock, rlock, ME), SNECK_PENDING);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, scene->link, 0), SNECK_OK);
    sneck_rlock_acquire_end(rlock, ME, end_op(op));
    assert_int_equal(sneck_rlock_acquire_begin(&lock, rlock, ME), SNECK_OK);
    assert_int_equal(sneck_rlock_count(rlock, ME), 2);
    assert_int_equal(sneck_rlock_release_begin(&lock, rlock, ME), SNECK_OK);
    assert_int_equal(sneck_rlock_release_begin(&lock, rlock, ME), SNECK_PENDING);
    assert_int_equal(sneck_lock_release_start(&op, lock, scene->link), SNECK_OK);
    sneck_rlock_release_end(rlock, ME, end_op(op));
    assert_int_equal(sneck_rlock_count(rlock, ME), 0);
    assert_false(key_exists(scene->client, "door"));
}

/* A release that is cancelled as soon as it has begun: unknown. */
static void release_and_cancel(struct scene *scene)
{
    sneck_lock *lock = NULL;
    sneck_op *op = NULL;
    assert_int_equal(sneck_rlock_release_begin(&lock, scene->rlock, ME), SNECK_PENDING);
    assert_int_equal(sneck_lock_release_start(&op, lock, scene->link), SNECK_OK);
    sneck_op_cancel(op);
    sneck_rlock_release_end(scene->rlock, ME, sneck_op_status(op));
    sneck_op_free(op);
}

static void a_release_that_is_unknown_can_be_repeated(void **state)
{
    struct scene *scene = *state;
    sneck_rlock *rlock = scene->rlock;
    assert_int_equal(sneck_rlock_acquire(rlock, ME, 0), SNECK_OK);
    release_and_cancel(scene);
    assert_int_equal(sneck_rlock_acquire(rlock, ME, 0), SNECK_BUSY); /* it has not left yet */
    assert_int_equal(sneck_rlock_release(rlock, ME), SNECK_OK);
    assert_false(key_exists(scene->client, "door"));
}

static void its_owner_acquires_it_anew_behind_a_release_that_is_unknown(void **state)
{
    struct scene *scene = *state;
    sneck_rlock *rlock = scene->rlock;
    sneck_lock *lock = NULL;
    sneck_op *op = NULL;
    assert_int_equal(sneck_rlock_acquire(rlock, ME, 0), SNECK_OK);
    release_and_cancel(scene);
    assert_int_equal(sneck_rlock_acquire_begin(&lock, rlock, ME), SNECK_PENDING);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, scene->link, 60000), SNECK_OK);
    sneck_rlock_acquire_end(rlock, ME, end_op(op));
    assert_int_equal(sneck_rlock_count(rlock, ME), 1);
    assert_int_equal(sneck_rlock_acquire(rlock, ME, 0), SNECK_OK);
    assert_int_equal(sneck_rlock_release(rlock, ME), SNECK_OK);
    assert_int_equal(sneck_rlock_release(rlock, ME), SNECK_OK);
    assert_false(key_exists(scene->client, "door"));
}

/* The release goes on while its owner acquires the lock again. */
static void a_late_end_of_a_release_does_not_end_the_next_lease(void **state)
{
    struct scene *scene = *state;
    sneck_rlock *rlock = scene->rlock;
    sneck_lock *lock = NULL;
    sneck_op *release = NULL, *op = NULL;
    assert_int_equal(sneck_rlock_acquire(rlock, ME, 0), SNECK_OK);
    assert_int_equal(sneck_rlock_release_begin(&lock, rlock, ME), SNECK_PENDING);
    assert_int_equal(sneck_lock_release_start(&release, lock, scene->link), SNECK_OK);
    assert_int_equal(sneck_rlock_acquire_begin(&lock, rlock, ME), SNECK_PENDING);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, scene->link, 60000), SNECK_OK);
    sneck_rlock_acquire_end(rlock, ME, end_op(op));
    sneck_rlock_release_end(rlock, ME, end_op(release));
    assert_int_equal(sneck_rlock_count(rlock, ME), 1);
    assert_int_equal(sneck_rlock_release(rlock, ME), SNECK_OK);
    assert_false(key_exists(scene->client, "door"));
}

static void it_tells_the_servers_word(void **state)
{
    struct scene *scene = *state;
    sneck_rlock *rlock = scene->rlock;
    DO(scene->client, "HSET", "{door}:sneck:queue", "field", "value");
    DO(scene->client, "SET", "door", "theirs");
    assert_int_equal(sneck_rlock_acquire(rlock, ME, 10), SNECK_SERVER);
    assert_string_equal(sneck_rlock_server_code(rlock), "WRONGTYPE");
    assert_int_equal(sneck_rlock_release(rlock, ME), SNECK_NOT_OWNER);
    assert_string_equal(sneck_rlock_server_code(rlock), "");
}

/* What an op has to say stands in the op. */
static void an_op_that_fails_leaves_no_message(void **state)
{
    struct scene *scene = *state;
    sneck_rlock *rlock = scene->rlock;
    sneck_lock *lock = NULL;
    sneck_op *op = NULL;
    DO(scene->client, "SET", "door", "theirs");
    assert_int_equal(sneck_rlock_acquire_begin(&lock, rlock, ME), SNECK_PENDING);
    assert_int_equal(sneck_lock_acquire_start(&op, lock, scene->link, 0), SNECK_OK);
    sneck_rlock_acquire_end(rlock, ME, end_op(op));
    assert_string_equal(sneck_rlock_error(rlock), "");
}

static void a_child_owns_nothing_of_it(void **state)
{
    struct scene *scene = *state;
    sneck_rlock *rlock = scene->rlock;
    assert_int_equal(sneck_rlock_acquire(rlock, ME, 0), SNECK_OK);
    pid_t child = fork();
    if (child == 0) {
        bool well = sneck_rlock_count(rlock, ME) == 0 &&
                    sneck_rlock_release(rlock, ME) == SNECK_NOT_OWNER &&
                    sneck_rlock_acquire(rlock, ME, 0) == SNECK_BUSY;
        sneck_rlock_free(rlock);
        sneck_client_free(scene->client);
        _exit(!well);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(sneck_rlock_release(rlock, ME), SNECK_OK);
}

struct adder {
    pthread_t thread;
    sneck_rlock *rlock;
    uint64_t owner;
    int *count; /* guarded by the lock alone */
    atomic_bool passed;
};

static void *add_twice_under_it(void *data)
{
    struct adder *a = data;
    int statuses = 0;
    for (int i = 0; i < 50; i++) {
        statuses |= sneck_rlock_acquire(a->rlock, a->owner, 60000);
        statuses |= sneck_rlock_acquire(a->rlock, a->owner, 60000);
        int seen = __atomic_load_n(a->count, __ATOMIC_RELAXED);
        sched_yield();
        __atomic_store_n(a->count, seen + 1, __ATOMIC_RELAXED);
        statuses |= sneck_rlock_release(a->rlock, a->owner);
        statuses |= sneck_rlock_release(a->rlock, a->owner);
    }
    a->passed = statuses == SNECK_OK;
    return NULL;
}

static void threads_of_one_object_exclude_each_other(void **state)
{
    struct scene *scene = *state;
    sneck_rlock *rlock = scene->rlock;
    struct adder adders[4];
    int count = 0;
    for (uint64_t i = 0; i < 4; i++) {
        adders[i] = (struct adder){.rlock = rlock, .owner = i, .count = &count};
        assert_int_equal(pthread_create(&adders[i].thread, NULL, add_twice_under_it, &adders[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(adders[i].thread, NULL);
    for (int i = 0; i < 4; i++)
        assert_true(adders[i].passed);
    assert_int_equal(count, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(its_owner_acquires_it_again_without_a_word_to_the_server),
        TEST(owners_exclude_each_other_and_other_locks),
        TEST(a_lost_lease_is_not_counted_further),
        TEST(ops_on_a_link_acquire_and_release_it),
        TEST(a_release_that_is_unknown_can_be_repeated),
        TEST(its_owner_acquires_it_anew_behind_a_release_that_is_unknown),
        TEST(a_late_end_of_a_release_does_not_end_the_next_lease),
        TEST(it_tells_the_servers_word),
        TEST(an_op_that_fails_leaves_no_message),
        TEST(a_child_owns_nothing_of_it),
        TEST(threads_of_one_object_exclude_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
