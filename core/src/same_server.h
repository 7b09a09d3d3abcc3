#ifndef SNECK_SAME_SERVER_H
#define SNECK_SAME_SERVER_H

#include "url.h"

#include <stdbool.h>

/* Whether two addresses are of one server, in whatever spelling and whatever the database.
 * No name is looked up; paths of unix sockets are looked at in the file system. */
bool sneck__same_server(const struct address *a, const struct address *b);

#endif
