#ifndef SNECK_QUORUM_SERVERS_H
#define SNECK_QUORUM_SERVERS_H

#include "sneck_quorum.h"

/* The servers of a client that is a quorum's. */
struct quorum {
    size_t count;
    size_t majority;                          /* of all that were named, whatever is down */
    sneck_client *members[SNECK_QUORUM_MAX];  /* owned; a client of each server alone */
};

/* Why a client that is a quorum's runs no commands. */
#define NO_SERVER_OF_ITS_OWN "a quorum has no one server for this; make a client of one of them"

void sneck__quorum_free(struct quorum *quorum);

#endif
