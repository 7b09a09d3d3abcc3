/* status.c - names and texts of the outcomes, from status.def. */
#include "sneck.h"

const char *sneck_status_name(int status)
{
    switch (status) {
    case SNECK_OK: return "OK";
    case SNECK_PENDING: return "PENDING";
#define SNECK_STATUS(name, value, class_name, text) case SNECK_##name: return #name;
#include "status.def"
#undef SNECK_STATUS
    }
    return "?";
}

const char *sneck_status_text(int status)
{
    switch (status) {
    case SNECK_OK: return "done";
    case SNECK_PENDING: return "not ended yet";
#define SNECK_STATUS(name, value, class_name, text) case SNECK_##name: return text;
#include "status.def"
#undef SNECK_STATUS
    }
    return "not a status of this library";
}

const char *sneck_version(void)
{
    return SNECK_VERSION;
}

/* The header's enum is generated from the same table; a stale one must not
 * compile. */
#define SNECK_STATUS(name, value, class_name, text)                            \
    _Static_assert((int)SNECK_##name == (value), "run scripts/generate");
#include "status.def"
#undef SNECK_STATUS
