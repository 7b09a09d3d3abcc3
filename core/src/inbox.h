#ifndef SNECK_INBOX_H
#define SNECK_INBOX_H

#include "wire.h"

#define INBOX_ID_SIZE 48

/* A link's second socket, on which it is told of the locks granted to it. */
struct inbox {
    struct wire wire;
    enum inbox_state { INBOX_CLOSED, INBOX_OPENING, INBOX_READY, INBOX_DENIED } state;
    int64_t retry_ms;            /* DENIED: when to try again */
    char id[INBOX_ID_SIZE];      /* the channel; new for each connection */
};

void sneck__inbox_init(struct inbox *inbox, sneck_client *client);

/* Opens it if it is closed, or was denied long ago. The link's ops are woken when
 * it becomes ready, fails or is denied. Returns the state. */
enum inbox_state sneck__inbox_want(struct inbox *inbox);

/* Closes it; the next one has another id, so that nothing stale is granted. */
void sneck__inbox_close(struct inbox *inbox);

#endif
