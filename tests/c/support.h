#ifndef SUPPORT_H
#define SUPPORT_H

#include <sneck.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The server that pytest started for this program. */
const char *server_url(void);

/* A client of that server. */
sneck_client *new_client(void);

/* The same, with a timeout of its own. */
sneck_client *new_client_within(int64_t io_timeout_ms);
sneck_lock *new_lock(sneck_client *client, const char *name, int64_t ttl_ms);
sneck_link *new_link(sneck_client *client);

/* Sends a command of text words, the last one NULL; must succeed. */
sneck_reply *command(sneck_client *client, const char *const *words);
#define COMMAND(client, ...) command(client, (const char *const[]){__VA_ARGS__, NULL})

/* The same, for the reply's integer or whether it is nil; frees it. */
int64_t command_integer(sneck_client *client, const char *const *words);
#define COMMAND_INTEGER(client, ...)                                           \
    command_integer(client, (const char *const[]){__VA_ARGS__, NULL})
/* The bytes of a reply, which are text. */
const char *text_of(const sneck_reply *reply);

bool key_exists(sneck_client *client, const char *key);

/* The same for a command whose reply does not matter. */
#define DO(client, ...) sneck_reply_free(COMMAND(client, __VA_ARGS__))

/* Commands of text words inside of a transaction's body. */
int tx_read(sneck_reply **out, sneck_tx *tx, const char *const *words);
int tx_queue(sneck_tx *tx, const char *const *words);
#define READ(out, tx, ...) tx_read(out, tx, (const char *const[]){__VA_ARGS__, NULL})
#define QUEUE(tx, ...) tx_queue(tx, (const char *const[]){__VA_ARGS__, NULL})
sneck_op *tx_read_start(sneck_tx *tx, const char *const *words);
#define READ_START(tx, ...) tx_read_start(tx, (const char *const[]){__VA_ARGS__, NULL})

void assert_value(sneck_client *client, const char *key, const char *value);

/* Starts a command of text words on a link. */
sneck_op *start_command(sneck_client *client, sneck_link *link, const char *const *words);
#define START(client, link, ...)                                               \
    start_command(client, link, (const char *const[]){__VA_ARGS__, NULL})

/* Waits for the link, no longer than that, and steps it. */
void step_once(sneck_link *link, int64_t at_most_ms);

/* Steps the link until the op has ended; its status. */
int finish(sneck_link *link, sneck_op *op);

/* The same on the op's own link; frees the op. */
int end_op(sneck_op *op);

/* Steps the link until all that was started on it has reached the server and was
 * answered, what nobody waits for any more, too. */
void settle(sneck_client *client, sneck_link *link);

/* Blocks the link at the server until unblock(); the op that does so. */
sneck_op *block(sneck_client *client, sneck_link *link);
void unblock(sneck_client *other);

/* Steps until the command of `op`'s link has left and the server has it; `other`
 * is used to ask. */
void step_until_blocked(sneck_link *link, sneck_client *other);

/* Waits until the condition holds, or steps the link until then; only a broken library
 * reaches the limit. */
#define LIMIT_S 30
#define UNTIL(condition) WITHIN(60, condition, pause_ms(2))
#define STEP_UNTIL(link, condition) WITHIN(LIMIT_S, condition, step_once(link, 10))
#define WITHIN(seconds, condition, action)                                     \
    do {                                                                       \
        int64_t limit_ms_ = clock_ms() + (seconds) * 1000;                     \
        while (!(condition)) {                                                 \
            if (clock_ms() > limit_ms_)                                        \
                fail_msg("never so: %s", #condition);                          \
            action;                                                            \
        }                                                                      \
    } while (0)
int64_t clock_ms(void);
void pause_ms(int64_t ms);

/* The open descriptors of this process. */
size_t count_fds(void);

/* Closes every connection but `client`'s and those that listen. */
void kill_others(sneck_client *client);

/* A number of the server's INFO, such as "total_connections_received"; and how often it
 * has run a command since it started or CONFIG RESETSTAT, also from scripts. */
int64_t server_number(sneck_client *client, const char *section, const char *field);
int64_t calls_of(sneck_client *client, const char *name);

/* How many connections the server has, this one included. */
int64_t connections_of(sneck_client *client);

/* setup and teardown of a test: an empty server. */
int empty_server(void **state);

#endif
