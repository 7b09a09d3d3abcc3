/* One client and many threads: locks exclude threads, and calls do not mix. */
#include "support.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define THREADS 4
#define ROUNDS 10

struct worker {
    pthread_t thread;
    sneck_client *client;
    int number;
    int *count;          /* guarded by the lock alone */
    sneck_lock *lock;    /* shared, where it is set */
    bool passed;
};

/* Threads must not use cmocka's assertions, which jump. */
static void *add_under_lock(void *data)
{
    struct worker *worker = data;
    sneck_lock *lock = NULL;
    worker->passed = sneck_lock_new(&lock, worker->client, "door", 4, NULL, NULL) == SNECK_OK;
    for (int i = 0; worker->passed && i < ROUNDS; i++) {
        worker->passed = sneck_lock_acquire(lock, 60000) == SNECK_OK;
        int seen = __atomic_load_n(worker->count, __ATOMIC_RELAXED);
        sched_yield();
        __atomic_store_n(worker->count, seen + 1, __ATOMIC_RELAXED);
        worker->passed = worker->passed && sneck_lock_release(lock) == SNECK_OK;
    }
    sneck_lock_free(lock);
    return NULL;
}

static bool echoes(struct worker *worker, int i)
{
    char text[32];
    sneck_reply *reply = NULL;
    size_t len = 0;
    snprintf(text, sizeof text, "%d of %d", i, worker->number);
    int rc = sneck_execute(&reply, worker->client, 2, (const void *[]){"ECHO", text},
                           (const size_t[]){4, strlen(text)});
    bool same = rc == SNECK_OK && strcmp(sneck_reply_bytes(reply, &len), text) == 0;
    sneck_reply_free(reply);
    return same;
}

static void *echo_own_words(void *data)
{
    struct worker *worker = data;
    worker->passed = true;
    for (int i = 0; worker->passed && i < 500; i++)
        worker->passed = echoes(worker, i);
    return NULL;
}

static int run_workers(void *(*function)(void *))
{
    struct worker workers[THREADS];
    sneck_client *client = new_client();
    int count = 0;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.client = client, .number = i, .count = &count};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, function, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_true(workers[i].passed);
    sneck_client_free(client);
    return count;
}

static void a_lock_excludes_the_threads_of_one_client(void **state)
{
    (void)state;
    assert_int_equal(run_workers(add_under_lock), THREADS * ROUNDS);
}

static void commands_of_many_threads_do_not_mix(void **state)
{
    (void)state;
    run_workers(echo_own_words);
}

static void *release_it(void *data)
{
    struct worker *worker = data;
    worker->passed = sneck_lock_release(worker->lock) == SNECK_OK;
    return NULL;
}

static void one_of_two_threads_releases_a_lock_object(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = new_lock(client, "door", 60000);
    struct worker workers[2] = {{.lock = lock}, {.lock = lock}};
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, release_it, &workers[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i].thread, NULL);
    assert_int_equal(workers[0].passed + workers[1].passed, 1);
    sneck_lock_free(lock);
    sneck_client_free(client);
}

static void *fail_often(void *data)
{
    struct worker *worker = data;
    worker->passed = true;
    for (int i = 0; worker->passed && i < 500; i++)
        worker->passed = sneck_lock_acquire(worker->lock, -2) == SNECK_INVALID;
    return NULL;
}

static void threads_whose_calls_on_one_lock_fail_do_not_harm_its_message(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = new_lock(client, "door", 60000);
    struct worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.lock = lock};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, fail_often, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_true(workers[i].passed);
    assert_true(*sneck_lock_error(lock) != '\0');
    sneck_lock_free(lock);
    sneck_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_lock_excludes_the_threads_of_one_client, empty_server),
        cmocka_unit_test(commands_of_many_threads_do_not_mix),
        cmocka_unit_test_setup(one_of_two_threads_releases_a_lock_object, empty_server),
        cmocka_unit_test(threads_whose_calls_on_one_lock_fail_do_not_harm_its_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
