/* own_server.c - starts the server program that pytest names, on a unix socket. */
#include "own_server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

static void run_program(const char *program, const char *socket, const struct own_server *server)
{
    int nowhere = open("/dev/null", O_RDWR);
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves none behind */
#endif
    dup2(nowhere, 1);
    dup2(nowhere, 2);
    execlp(program, program, "--port", "0", "--unixsocket", socket, "--dir", server->folder,
           "--save", "", "--appendonly", server->persistent ? "yes" : "no",
           "--appendfsync", "always", (char *)NULL);
    _exit(127);
}

static bool answers(const char *url)
{
    sneck_client *client = NULL;
    sneck_reply *reply = NULL;
    assert_int_equal(sneck_client_new(&client, url, NULL, NULL), SNECK_OK);
    bool ok = sneck_execute(&reply, client, 1, (const void *[]){"PING"}, (size_t[]){4}) == SNECK_OK;
    sneck_reply_free(reply);
    sneck_client_free(client);
    return ok;
}

void start_server(struct own_server *server)
{
    const char *program = getenv("SNECK_TEST_PROGRAM");
    char socket[sizeof server->folder + 2];
    if (!program)
        fail_msg("SNECK_TEST_PROGRAM is not set: run the C tests by pytest");
    if (!*server->folder) {
        strcpy(server->folder, "/tmp/sneck-test-XXXXXX");
        assert_non_null(mkdtemp(server->folder));
    }
    snprintf(socket, sizeof socket, "%s/s", server->folder);
    snprintf(server->url, sizeof server->url, "unix://%s", socket);
    server->pid = fork();
    if (server->pid == 0)
        run_program(program, socket, server);
    assert_true(server->pid > 0);
    UNTIL(answers(server->url));
}

void signal_server(struct own_server *server, int signal)
{
    assert_int_equal(kill(server->pid, signal), 0);
}

void kill_server(struct own_server *server)
{
    signal_server(server, SIGKILL);
    assert_int_equal(waitpid(server->pid, NULL, 0), server->pid);
    server->pid = 0;
}

void remove_server(struct own_server *server)
{
    char command[sizeof server->folder + 16];
    if (server->pid)
        kill_server(server);
    snprintf(command, sizeof command, "rm -rf '%s'", server->folder);
    assert_int_equal(system(command), 0);
}
