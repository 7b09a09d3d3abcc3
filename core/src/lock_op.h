#ifndef SNECK_LOCK_OP_H
#define SNECK_LOCK_OP_H

#include "lock.h"
#include "op.h"

/* The first member of every op on a lock. */
struct lock_op {
    sneck_op op;
    sneck_lock *lock;       /* a reference */
};

/* As sneck__op_new(), with the lock shared. */
void *sneck__lock_op_new(size_t size, const struct op_class *class, sneck_lock *lock,
                         sneck_link *link);

/* The `clear` of a class that owns nothing else; others call it last. */
void sneck__lock_op_clear(sneck_op *op);

/* Runs a script on the lock's keys; all of ARGV must stay until the reply. */
void sneck__lock_op_script(struct lock_op *o, const struct script *script, size_t argc,
                           const char *const *argv, const size_t *len);

/* Sends a release of the token, with its entry in the queue if there is one,
 * behind whatever is under way; the reply is swallowed. */
void sneck__lock_op_clean_up(struct lock_op *o, const char *token, size_t token_len,
                             const char *entry, size_t entry_len);

#endif
