#ifndef SNECK_QUORUM_BUSY_H
#define SNECK_QUORUM_BUSY_H

#include "quorum_op.h"

/* What the servers say when they are asked, at the end, who holds the lock. */
struct quorum_busy {
    char token[OWN_TOKEN_MAX];  /* of the first one that named a holder, or its beginning */
    size_t len;                 /* of the whole; 0: none did */
    size_t first;               /* which server that was */
    uint32_t others;            /* who named the same */
};

/* Begins the round. What the servers were found to say before stays for who is silent. */
void sneck__quorum_busy_ask(struct quorum_op *q, struct quorum_busy *busy);

/* An answer: NO when somebody holds it there, YES when nobody does. */
enum voice sneck__quorum_busy_read(struct quorum_op *q, struct quorum_busy *busy,
                                   struct member *m, const redisReply *reply);

/* So many have answered that the message is worth its name, or nobody is silent. */
bool sneck__quorum_busy_known(const struct quorum_op *q);

/* Ends the op with that status, or with QUORUM if the key is no lock; the message names the
 * holder once, and what the other servers say. `granted`: how many had said yes. */
void sneck__quorum_busy_end(struct quorum_op *q, const struct quorum_busy *busy, int status,
                            size_t granted);

#endif
