#ifndef SNECK_LINK_H
#define SNECK_LINK_H

#include "heap.h"
#include "inbox.h"
#include "listeners.h"
#include "sneck.h"
#include "text.h"
#include "wire.h"

#include <stdatomic.h>

#define SCRIPTS_KNOWN 8
#define LATE_MAX 64
#define UNHEARD_WORDS_MAX 5 /* behind the script: how many keys, these, and arguments */

/* A script that was sent by its text, in the request of this number. */
struct telling {
    const struct script *script;
    uint64_t request;
};

/* A command that was queued and is not answered yet. */
struct request {
    sneck_op *op;        /* NULL: abandoned, its reply is swallowed */
    uint64_t begin;      /* place of its first byte among all bytes queued */
    int64_t limit_ms;    /* when its answer is overdue */
    const struct script *script; /* which the server knows when it has answered; or NULL */
};

/* A script that another thread wants to be sent behind what this link has sent; its answer is
 * swallowed. */
struct errand {
    struct errand *next;
    const struct script *script;
    uint32_t servers;    /* to which, a bit for each */
    size_t argc;         /* of what follows the script */
    size_t len[UNHEARD_WORDS_MAX];
    char bytes[];        /* the words, one behind the other */
};

/* Ops in the order in which they came in; doubly linked. */
struct op_list {
    sneck_op *first, *last;
};

/* One connection, or what holds together those of a quorum, which has none of its own
 * then. The ops of a quorum are on the latter, and their parts on the connections. */
struct sneck_link {
    sneck_client *client;            /* a reference */
    sneck_link **members;            /* the connections: owned, or `itself` alone */
    size_t member_count;
    sneck_link *itself;
    unsigned fork_count;             /* whose sockets these are */
    struct wire wire;                /* for commands */
    struct inbox inbox;              /* for grants; closed until something waits */

    struct request *requests;        /* a ring, in the order sent; owned */
    size_t first, count, size;
    uint64_t popped;                 /* how many have left the ring */
    struct buffer late;              /* requests that go before whatever is queued next */
    size_t late_len[LATE_MAX];       /* the bytes of each */
    size_t late_count;

    int64_t used_ms;                 /* when the last reply came */
    bool answered;                   /* this connection has answered once */
    bool put_off;                    /* overdue answers have got more time, and none came since */
    bool may_commit;                 /* on it MULTI and EXEC are known to be allowed */
    bool pinned;                     /* what is queued is for this connection alone */
    bool ends;                       /* it is being freed: nothing is sent any more */
    const struct script *known[SCRIPTS_KNOWN]; /* this connection has run them by their SHA-1 */
    size_t known_count;
    struct telling told_scripts[SCRIPTS_KNOWN]; /* on this connection, the last time */
    size_t told_count;

    /* The ops on this link: under way; ended, and not yet told by
     * sneck_link_ended(); told. */
    struct op_list pending, ended, told;
    size_t op_count;                 /* in all three */
    bool ended_aside;                /* an op ended elsewhere than in a step of the caller's */
    struct heap timers;              /* of ops; has room for all of them */
    struct listeners listeners;
    sneck_link *next_idle;           /* in the client's pool */
    bool unsent;                     /* and not all has left it */

    /* Of a quorum's alone. */
    uint64_t number;                 /* among all links of the client; 0: none */
    sneck_link *next_live;           /* in the client's list; under its mutex */
    struct errand *errands;          /* owned, the last one first; under the client's mutex */
    atomic_bool has_errands;         /* read without it */

    int fail_status;                 /* of the last failure, with its message */
    char fail_code[CODE_SIZE];
    char fail_text[SNECK_ERROR_SIZE];
    size_t fail_why;                 /* where in it the address ends and the words begin */
};

/* Queues a command; its reply goes to op's class, or is swallowed when op is
 * NULL. Nothing is sent before the next step. false: no memory, nothing queued. */
bool sneck__link_send(sneck_link *link, sneck_op *op, struct command command);

/* The same for `replies` commands that are formatted already. */
bool sneck__link_send_bytes(sneck_link *link, sneck_op *op, const char *bytes, size_t len,
                            size_t replies);

/* ----- one connection */

/* Makes a link that is one connection. */
int sneck__link_new_one(sneck_link **out, sneck_client *client);

/* Which of a link's connections have something to read, a bit for each: knowing it
 * spares a system call to who has just polled. */
struct readable {
    uint32_t commands, inbox;
};
#define READ_ALL ((struct readable){UINT32_MAX, UINT32_MAX})

/* Connects, reads what has come, and looks for answers that are overdue. */
void sneck__link_take(sneck_link *link, bool commands, bool inbox);

/* Sends what is queued, as far as that does not block. */
void sneck__link_flush(sneck_link *link);

/* Its descriptors; how many. */
size_t sneck__link_poll(const sneck_link *link, struct pollfd *fds);

/* When it is to be stepped at the latest; NEVER_MS: when a descriptor is ready. */
int64_t sneck__link_due_ms(const sneck_link *link);

/* What was queued last runs this script: its answer tells that the server has it. */
void sneck__link_note_script(sneck_link *link, const struct script *script);

/* Much is queued that the server does not take: to queue more would fill the memory. */
bool sneck__link_stuck(const sneck_link *link);

/* So much waits to leave that what is not urgent should not be added yet. */
bool sneck__link_crowded(const sneck_link *link);

/* Until when what was asked last may be waited for, where no op waits for it. */
int64_t sneck__link_linger_ms(const sneck_link *link);

/* What is queued for a connection that is not there yet is never sent, but for what may be
 * late. Nobody waits for it any more. */
void sneck__link_drop_unsent_one(sneck_link *link);

/* link_scripts.c: the server behind this connection has the script, as far as was heard
 * from it. */
bool sneck__link_knows(const sneck_link *link, const struct script *script);
void sneck__link_learn(sneck_link *link, const struct script *script);

/* The next request has the script's text; and such a request is under way, so that what is
 * sent from now on may name the script. */
void sneck__link_tell(sneck_link *link, const struct script *script);
bool sneck__link_is_telling(const sneck_link *link, const struct script *script);

/* Sends a script, of which nothing is heard: by its text to who may not know it. `argv` is what
 * follows the script. */
void sneck__link_send_unheard(sneck_link *link, const struct script *script, size_t argc,
                              const char *const *argv, const size_t *len);

/* Reads what came while it was idle in the pool with replies still to come. */
void sneck__link_catch_up_one(sneck_link *link);

/* Gives the connection up: what has left may or may not be done. */
void sneck__link_fail_one(sneck_link *link, const char *why);

/* It is being freed: who still hears of a request is told that it is lost. */
void sneck__link_end_one(sneck_link *link);

/* There are no ops on it any more. */
void sneck__link_free_one(sneck_link *link);

/* ----- all connections of a link; see link_members.c */

/* One step; reads only where told that there is something to read. */
void sneck__link_step(sneck_link *link, struct readable readable);

/* What poll(2) has found out about the descriptors of sneck_link_fds(). */
struct readable sneck__link_readable(const sneck_link *link, const struct pollfd *fds);

/* As sneck_link_timeout_ms(), whatever has ended: for whoever waits for one op. */
int64_t sneck__link_timeout_ms(const sneck_link *link);

/* Something waits to be sent on a connection that is being made. */
bool sneck__link_is_connecting(const sneck_link *link);

/* Sends what is queued where there is a connection, as far as that does not block. */
void sneck__link_flush_all(sneck_link *link);

/* Not all of what is queued has left. */
bool sneck__link_has_unsent(const sneck_link *link);

/* To who takes it out of the pool: forgets what nobody has sent and may not be late, and reads
 * what has come meanwhile. */
void sneck__link_drop_unsent(sneck_link *link);
void sneck__link_catch_up(sneck_link *link);

/* link_errands.c: asks the link of this number, whoever has it, to send the script behind what
 * it has sent to these servers. It does so with its next step, or when it is given back; at once
 * where it is idle. One that is gone has nothing under way. */
void sneck__link_leave_errand(sneck_client *client, uint64_t number, uint32_t servers,
                              const struct script *script, size_t argc, const char *const *argv,
                              const size_t *len);

/* Whoever has the link sends what others have asked for. */
void sneck__link_run_errands(sneck_link *link);

/* The link is being freed, and nobody finds it any more. */
void sneck__link_drop_errands(sneck_link *link);

/* Gives up the connections where a reply is outstanding. */
void sneck__link_fail(sneck_link *link, const char *why);

/* No reply is outstanding and nothing waits to be sent. */
bool sneck__link_quiet(const sneck_link *link);

/* ----- for ops */

/* Makes tombstones of the op's requests: their replies will be swallowed. */
void sneck__link_abandon(sneck_link *link, const sneck_op *op);

/* They are another op's from now on, which has none of its own. */
void sneck__link_hand_over(sneck_link *link, sneck_op *from, sneck_op *to);

/* The op's oldest request has not left yet, not even in part. */
bool sneck__link_unsent(const sneck_link *link, const sneck_op *op);

/* One of its ops, in whatever state; NULL: it has none. */
sneck_op *sneck__link_any_op(const sneck_link *link);

/* Notices a connection that was lost while it was idle, as sending does. */
void sneck__link_look(sneck_link *link);

/* From the inbox: its state has changed; a message has come. */
void sneck__link_wake(sneck_link *link);
void sneck__link_deliver(sneck_link *link, const char *message, size_t len);

#endif
