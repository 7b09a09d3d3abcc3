#ifndef OWN_SERVER_H
#define OWN_SERVER_H

#include "support.h"

#include <sys/types.h>

/* A server of the test's own, which it may stop as it likes. */
struct own_server {
    char folder[64];
    char url[96];
    pid_t pid;          /* 0: it does not run */
    bool persistent;    /* what was written is there again after a restart */
};

void start_server(struct own_server *server);   /* again in the same folder, too */
void signal_server(struct own_server *server, int signal);
void kill_server(struct own_server *server);    /* at once, as a power cut does */
void remove_server(struct own_server *server);

#endif
