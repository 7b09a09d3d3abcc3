#ifndef SNECK_COMMAND_GUARD_H
#define SNECK_COMMAND_GUARD_H

#include <stddef.h>

/* Where a command is going to be sent. */
enum command_place { ON_SHARED_CONNECTION, IN_TRANSACTION };

/* Why a command from outside must not be sent there; NULL: it may be. */
const char *sneck__command_refused(enum command_place place, size_t argc,
                                   const void *const *argv, const size_t *len);

#endif
