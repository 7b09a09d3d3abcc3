#ifndef SNECK_SCRIPT_H
#define SNECK_SCRIPT_H

/* A server-side script; script_table.h has them all, made from core/scripts. */
struct script {
    const char *name;
    const char *sha1;   /* of the text, as EVALSHA wants it */
    unsigned keys;      /* how many it takes; the third may be left out */
    const char *text;
};

#include "script_table.h"

#endif
