#ifndef TURN_H
#define TURN_H

#include "support.h"

#define ORDER "{a}:sneck:order" /* the lock that is the turn of "a" */

/* A transaction on "a", which is "1", step by step; others may have the turn. */
struct turn {
    sneck_client *client, *other;
    sneck_lock *order; /* the turn, as others hold it */
    sneck_tx *tx;
    sneck_tx_options options;
    sneck_tx_report report;
    char error[SNECK_ERROR_SIZE];
};

/* setup and teardown of a test. */
int set_up_turn(void **state);
int tear_down_turn(void **state);

/* Makes turn->tx, by the options, in place of the one before. */
sneck_tx *make(struct turn *turn);

typedef int start_function(sneck_op **out, sneck_tx *tx);
sneck_op *start(start_function *function, sneck_tx *tx);

/* A step from its start to its end; its status. */
int begin(sneck_tx *tx);
int commit(sneck_tx *tx);
int unwatch(sneck_tx *tx);

size_t count_waiting(struct turn *turn);

/* Starts a read that finds the turn taken, and steps until it waits for it. */
sneck_op *wait_for_turn(struct turn *turn);

#endif
