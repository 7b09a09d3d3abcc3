/* How the bench drives a worker in C: a line with a number of cycles comes in,
 * the worker runs them, a line goes out. At the end of the input it ends. */
#ifndef ROUNDS_H
#define ROUNDS_H

#include <stdio.h>
#include <stdlib.h>

/* The number of cycles to run now; 0 at the end. */
static inline long round_begin(void)
{
    char line[32];

    return fgets(line, sizeof line, stdin) ? strtol(line, NULL, 10) : 0;
}

static inline void round_end(void)
{
    puts("done");
    fflush(stdout);
}

static _Noreturn void give_up(const char *message)
{
    fprintf(stderr, "worker: %s\n", message);
    exit(1);
}

#endif /* ROUNDS_H */
