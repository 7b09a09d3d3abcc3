/* renew.c - the call that has a lock renewed or not any more, and what is said of one that
 * cannot be renewed.
 */
#include "lock_op.h"

#include "clock.h"

#include <stdio.h>

void sneck__lock_why_not_renewed(sneck_client *client, int status, char out[RENEWAL_WHY_SIZE])
{
    const char *why = NULL;
    if (status == SNECK_NOT_OWNER)
        why = "not surely held by this object, so it cannot be renewed; acquire it first";
    else if (status == SNECK_INVALID)
        why = "its client is closed";
    else if (status == SNECK_INTERRUPTED)
        why = "its object was freed while it was being acquired; it was given back";
    if (why)
        snprintf(out, RENEWAL_WHY_SIZE, "%s", why);
    else
        sneck__renewal_tell_lack(client, out);
}

int sneck_lock_renew(sneck_lock *lock, bool on)
{
    char message[SNECK_ERROR_SIZE], why[RENEWAL_WHY_SIZE];
    if (!on) {
        sneck__renewal_remove(lock);
        return SNECK_OK;
    }
    struct lock_lease lease = sneck__lock_lease(lock);
    int status = SNECK_NOT_OWNER;
    if (lease.owned && lease.deadline_ms > sneck__now_ms())
        status = sneck__renewal_add(lock);
    if (status == SNECK_OK)
        return status;
    sneck__lock_why_not_renewed(lock->client, status, why);
    snprintf(message, sizeof message, "%s: %s", lock->what, why);
    sneck__lock_report(lock, message, "");
    return status;
}
