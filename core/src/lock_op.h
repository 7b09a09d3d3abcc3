#ifndef SNECK_LOCK_OP_H
#define SNECK_LOCK_OP_H

#include "lock.h"
#include "op.h"

/* The first member of every op on a lock. */
struct lock_op {
    sneck_op op;
    sneck_lock *lock;       /* a reference */
};

/* What the scripts of timestamp locks say to a holder whose time is not the one that it
 * wrote; and how that is told. */
#define LOST_MOVED (-2)
#define LOST_MOVED_TEXT ", or another client has written a time over ours: one that has taken" \
                        " it, or has lost a race for it"

/* As sneck__op_new(), with the lock shared. */
void *sneck__lock_op_new(size_t size, const struct op_class *class, sneck_lock *lock,
                         sneck_link *link);

/* The `clear` of a class that owns nothing else; others call it last. */
void sneck__lock_op_clear(sneck_op *op);

/* Runs a script on the lock's keys; all of ARGV must stay until the reply. */
void sneck__lock_op_script(struct lock_op *o, const struct script *script, size_t argc,
                           const char *const *argv, const size_t *len);

/* The same, kept in the op and not sent. */
void sneck__lock_op_compose(struct lock_op *o, const struct script *script, size_t argc,
                            const char *const *argv, const size_t *len);

/* False: that is no wait, and the op has ended. */
bool sneck__lock_op_check_wait(struct lock_op *o, int64_t wait_ms);

/* The lock was acquired: renewal as its options say, whatever was said of an earlier lease of
 * this object. */
int sneck__lock_op_keep_alive(const struct lock_op *o);

/* renew.c: why a lock is not renewed, by what sneck__renewal_add() or sneck__renewal_start()
 * returned. */
void sneck__lock_why_not_renewed(sneck_client *client, int status, char out[RENEWAL_WHY_SIZE]);

/* Ends the op, since its lock cannot be renewed. */
void sneck__lock_op_end_unrenewed(struct lock_op *o, int status);

/* Begins the release of the lock's token; `only`: the number of the only lease that it is to
 * end, or NULL. False: there is none, and the op has ended. What is still under way when the
 * op is freed is for that to undo. */
bool sneck__lock_op_begin_release(struct lock_op *o, const uint64_t *only,
                                  struct token_release *release);

/* What an extend begins with: a copy of the token, for the caller to free. False: there is
 * none, or it must not be, and the op has ended. */
bool sneck__lock_op_token_to_extend(struct lock_op *o, char **token, size_t *len,
                                    int64_t ttl_ms);

/* As sneck__lock_begin_extend(). False: the op has ended. */
bool sneck__lock_op_begin_extend(struct lock_op *o, const char *token, size_t len,
                                 int64_t sent_ms, int64_t ttl_ms);

/* Writes the link's inbox and the time, so that those who wait on the same link need not show
 * that this process runs. Its length; 0: it has no inbox. */
#define RELEASE_MARK_SIZE (INBOX_ID_SIZE + 24)
size_t sneck__lock_op_mark(const struct lock_op *o, char out[RELEASE_MARK_SIZE]);

/* Sends a release of the token, with its entry in the queue if there is one, on a
 * link, behind whatever is under way there; the reply is swallowed. */
void sneck__lock_clean_up(const sneck_lock *lock, sneck_link *link, const char *token,
                          size_t token_len, const char *entry, size_t entry_len);

/* The same, by the link that the grant is under way on, whoever has that. */
void sneck__lock_clean_up_behind(sneck_lock *lock, const struct grant *grant, const char *token,
                                 size_t token_len);

/* What holder.lua answers: the token's reply, a string, or nil where nobody holds the lock; behind
 * it, in element[1], is how long the key lasts. NULL: it is no such answer. */
const redisReply *sneck__held_token(const redisReply *reply);

#endif
