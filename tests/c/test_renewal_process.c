/* The renewal thread in a process that forks, takes signals, or gets no thread. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKS 40
#define LOCKS 8
#define CHILD_THREADS 4
#define DESCRIPTORS 128
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZER_MAY_HANG true /* see result_of() */
#define CHILD_LIMIT_S 10
#else
#define SANITIZER_MAY_HANG false
#define CHILD_LIMIT_S 60
#endif

static sneck_lock *new_renewed(sneck_client *client, const char *name)
{
    sneck_lock *lock = NULL;
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    options.ttl_ms = 600000;
    options.renew = true;
    if (sneck_lock_new(&lock, client, name, strlen(name), &options, NULL) != SNECK_OK)
        return NULL;
    return lock;
}

/* AddressSanitizer does not hold its allocator's mutexes while a process forks, so a child
 * of one with threads may hang in malloc() or free() for good. Such a child tells nothing;
 * the builds without it tell all. It may leave a lease behind, so each child has a lock of
 * another name. */
static int result_of(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (SANITIZER_MAY_HANG && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        return 0;
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* ------------------------------------------------------------------------ forks */

/* A thread that has the renewal thread at work without a pause. */
struct mill {
    pthread_t thread;
    sneck_client *client;
    sneck_lock *locks[LOCKS];
    atomic_bool stop, failed;
};

static void *grind(void *data)
{
    struct mill *mill = data;
    for (unsigned i = 0; !mill->stop; i++)
        if (sneck_lock_extend(mill->locks[i % LOCKS], 60000) != SNECK_OK) /* renewed at once */
            mill->failed = true;
    return NULL;
}

static void start_mill(struct mill *mill)
{
    char name[16];
    *mill = (struct mill){.client = new_client()};
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof name, "mill%d", i);
        mill->locks[i] = new_renewed(mill->client, name);
        assert_int_equal(sneck_lock_acquire(mill->locks[i], 0), SNECK_OK);
    }
    assert_int_equal(pthread_create(&mill->thread, NULL, grind, mill), 0);
}

static void stop_mill(struct mill *mill)
{
    mill->stop = true;
    pthread_join(mill->thread, NULL);
    assert_false(mill->failed);
    for (int i = 0; i < LOCKS; i++) {
        assert_int_equal(sneck_lock_lease(mill->locks[i]), SNECK_LEASE_HELD);
        assert_int_equal(sneck_lock_release(mill->locks[i]), SNECK_OK);
        sneck_lock_free(mill->locks[i]);
    }
    sneck_client_free(mill->client);
}

/* Everything at once that a child may do with what it inherited: 0 when it goes well. */
static int use_in_child(struct mill *mill, const char *name)
{
    alarm(CHILD_LIMIT_S);
    sneck_lock *own = new_renewed(mill->client, name);
    if (sneck_lock_lease(mill->locks[0]) != SNECK_LEASE_NONE)
        return 1;
    if (sneck_lock_release(mill->locks[1]) != SNECK_NOT_OWNER)
        return 2;
    if (!own || sneck_lock_acquire(own, 0) != SNECK_OK)
        return 3;
    if (sneck_lock_extend(own, 60000) != SNECK_OK)
        return 4;
    while (sneck_lock_remaining_ms(own) < 300000) /* until its own thread has renewed it */
        pause_ms(1);
    if (sneck_lock_release(own) != SNECK_OK)
        return 5;
    for (int i = 0; i < LOCKS; i++)
        sneck_lock_free(mill->locks[i]);
    sneck_lock_free(own);
    sneck_client_free(mill->client);
    return 0;
}

static void a_child_renews_its_own_locks_and_the_parent_is_undisturbed(void **state)
{
    (void)state;
    struct mill mill;
    char name[16];
    start_mill(&mill);
    for (int i = 0; i < FORKS; i++) {
        snprintf(name, sizeof name, "child%d", i);
        pid_t child = fork();
        if (child == 0)
            _exit(use_in_child(&mill, name));
        assert_int_equal(result_of(child), 0);
    }
    stop_mill(&mill);
}

static atomic_int ready; /* threads of the child */

static void *use_the_client(void *data)
{
    sneck_lock *lock = data; /* shared by all of them */
    intptr_t status = SNECK_OK;
    for (ready++; ready < CHILD_THREADS;)
        ; /* all at once */
    for (int i = 0; i < 3 && status == SNECK_OK; i++) {
        status = sneck_lock_acquire(lock, 60000);
        if (status == SNECK_OK)
            status = sneck_lock_release(lock);
    }
    return (void *)status;
}

static int use_by_threads(sneck_lock *lock)
{
    pthread_t threads[CHILD_THREADS];
    void *status;
    int failed = 0;
    alarm(CHILD_LIMIT_S);
    for (int i = 0; i < CHILD_THREADS; i++)
        pthread_create(&threads[i], NULL, use_the_client, lock);
    for (int i = 0; i < CHILD_THREADS; i++) {
        pthread_join(threads[i], &status);
        failed += (intptr_t)status != SNECK_OK;
    }
    return failed;
}

static void threads_of_a_child_may_all_begin_with_the_inherited_client(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    char name[16];
    for (int i = 0; i < FORKS; i++) {
        snprintf(name, sizeof name, "door%d", i);
        sneck_lock *lock = new_renewed(client, name);
        assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
        assert_int_equal(sneck_lock_release(lock), SNECK_OK);
        pid_t child = fork();
        if (child == 0)
            _exit(use_by_threads(lock));
        assert_int_equal(result_of(child), 0);
        sneck_lock_free(lock);
    }
    sneck_client_free(client);
}

struct forking {
    sneck_client *client;
    atomic_int child;
    bool comes_back;
};

static int use_in_callback(sneck_client *client)
{
    alarm(CHILD_LIMIT_S);
    sneck_lock *lock = new_renewed(client, "child");
    int status = sneck_lock_acquire(lock, 0) | sneck_lock_release(lock);
    sneck_lock_free(lock);
    sneck_client_close(client);
    return status != SNECK_OK;
}

/* Before the leak check: what the other threads' stacks owned is lost in a child. */
static void leave_at_once(void)
{
    _exit(0);
}

static void fork_in_it(sneck_lock *lock, void *data)
{
    (void)lock;
    struct forking *f = data;
    pid_t child = fork();
    if (child == 0 && !f->comes_back)
        _exit(use_in_callback(f->client));
    if (child != 0) {
        f->child = (int)child;
        return;
    }
    alarm(CHILD_LIMIT_S);
    signal(SIGSEGV, SIG_DFL); /* cmocka would end it as if it had come to its end */
    atexit(leave_at_once); /* its only thread ends, and so does it */
}

static void fork_in_on_lost(bool comes_back)
{
    struct forking f = {.client = new_client(), .comes_back = comes_back};
    sneck_lock_options options = SNECK_LOCK_OPTIONS;
    sneck_lock *lock = NULL, *kept = new_renewed(f.client, "kept");
    options.ttl_ms = 3000;
    options.renew = true;
    options.on_lost = fork_in_it;
    options.on_lost_data = &f;
    assert_int_equal(sneck_lock_new(&lock, f.client, "door", 4, &options, NULL), SNECK_OK);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_acquire(kept, 0), SNECK_OK);
    DO(f.client, "DEL", "door");
    UNTIL(f.child != 0);
    assert_int_equal(result_of(f.child), 0);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_extend(kept, 60000), SNECK_OK);
    UNTIL(sneck_lock_remaining_ms(kept) > 300000); /* the parent's thread goes on */
    sneck_lock_free(lock);
    sneck_lock_free(kept);
    sneck_client_free(f.client);
}

static void on_lost_may_fork(void **state)
{
    (void)state;
    fork_in_on_lost(false);
}

static void a_child_that_comes_back_from_on_lost_ends(void **state)
{
    (void)state;
    fork_in_on_lost(true);
}

/* ---------------------------------------------------------------- signals, no thread */

static void no_signal_of_the_program_is_taken(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = new_renewed(client, "door");
    sigset_t usual, blocked, pending;
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigaddset(&blocked, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &blocked, &usual);
    signal(SIGUSR1, SIG_DFL); /* a thread that took it would end the process */
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGTERM);
    assert_int_equal(sneck_lock_extend(lock, 60000), SNECK_OK);
    UNTIL(sneck_lock_remaining_ms(lock) > 300000);
    sigpending(&pending);
    assert_true(sigismember(&pending, SIGUSR1) && sigismember(&pending, SIGTERM));
    signal(SIGUSR1, SIG_IGN);
    signal(SIGTERM, SIG_IGN); /* drops what is pending */
    pthread_sigmask(SIG_SETMASK, &usual, NULL);
    signal(SIGUSR1, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sneck_lock_free(lock);
    sneck_client_free(client);
}

static void without_a_thread_nothing_is_acquired(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = new_renewed(client, "door"), *bare = new_lock(client, "window", 60000);
    pthread_attr_t usual, huge;
    DO(client, "PING");
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_getattr_default_np(&huge), 0);
    assert_int_equal(pthread_attr_setstacksize(&huge, (size_t)1 << 46), 0);
    assert_int_equal(pthread_setattr_default_np(&huge), 0);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_NO_MEMORY);
    assert_non_null(strstr(sneck_lock_error(lock), "thread"));
    assert_non_null(strstr(sneck_lock_error(lock), strerror(EAGAIN)));
    assert_int_equal(sneck_lock_acquire(bare, 0), SNECK_OK);
    assert_int_equal(sneck_lock_renew(bare, true), SNECK_NO_MEMORY);
    assert_int_equal(pthread_setattr_default_np(&usual), 0);
    assert_false(key_exists(client, "door"));
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    pthread_attr_destroy(&usual);
    pthread_attr_destroy(&huge);
    sneck_lock_free(lock);
    sneck_lock_free(bare);
    sneck_client_free(client);
}

/* Opens files until the system gives no more; how many, in `files`. */
static size_t use_up_descriptors(int files[DESCRIPTORS])
{
    size_t count = 0;
    while (count < DESCRIPTORS && (files[count] = open("/dev/null", O_RDONLY)) >= 0)
        count++;
    assert_true(count < DESCRIPTORS);
    return count;
}

static void without_descriptors_nothing_is_acquired_and_why_is_told(void **state)
{
    (void)state;
    sneck_client *client = new_client();
    sneck_lock *lock = new_renewed(client, "door"), *bare = new_lock(client, "window", 60000);
    struct rlimit usual, few;
    int files[DESCRIPTORS];
    assert_int_equal(sneck_lock_acquire(bare, 0), SNECK_OK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    few = usual;
    few.rlim_cur = DESCRIPTORS;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    size_t count = use_up_descriptors(files);
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_CONNECTION);
    assert_non_null(strstr(sneck_lock_error(lock), strerror(EMFILE)));
    assert_int_equal(sneck_lock_renew(bare, true), SNECK_CONNECTION);
    assert_non_null(strstr(sneck_lock_error(bare), strerror(EMFILE)));
    while (count > 0)
        close(files[--count]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_false(key_exists(client, "door"));
    assert_int_equal(sneck_lock_acquire(lock, 0), SNECK_OK);
    assert_int_equal(sneck_lock_renew(bare, true), SNECK_OK);
    sneck_lock_free(lock);
    sneck_lock_free(bare);
    sneck_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_child_renews_its_own_locks_and_the_parent_is_undisturbed,
                               empty_server),
        cmocka_unit_test_setup(threads_of_a_child_may_all_begin_with_the_inherited_client,
                               empty_server),
        cmocka_unit_test_setup(on_lost_may_fork, empty_server),
        cmocka_unit_test_setup(a_child_that_comes_back_from_on_lost_ends, empty_server),
        cmocka_unit_test_setup(no_signal_of_the_program_is_taken, empty_server),
        cmocka_unit_test_setup(without_a_thread_nothing_is_acquired, empty_server),
        cmocka_unit_test_setup(without_descriptors_nothing_is_acquired_and_why_is_told,
                               empty_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
