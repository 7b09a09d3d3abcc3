/* library.c - the whole C library, inside of the module and seen by nobody else.
 *
 * A program may link another version of the library and load this module, too: with
 * visible symbols each would call the other's functions. luarocks passes no flag for
 * that, so a pragma does it. The system's headers come first, since what they
 * declare is not ours; one that is missing here is an error of the linker. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)
#include "../../core/src/sneck_all.c"
#pragma GCC visibility pop
