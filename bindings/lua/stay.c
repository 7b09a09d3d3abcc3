/* stay.c - keeps the module's code in memory when its state is closed.
 *
 * A client's finalizer ends the thread that renews its locks, and Lua unloads modules after
 * all finalizers. But a thread that looks up a name just then ends later. And a client in use by
 * a transaction, whose function calls os.exit(0, true), is not finalized, nor is one that another
 * finalizer makes by then. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include "core.h"

#include <dlfcn.h>

void core_stay_loaded(void)
{
    static const char here;
    Dl_info module;
    void *handle = NULL;
    if (dladdr(&here, &module) && module.dli_fname)
        handle = dlopen(module.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    if (handle)
        dlclose(handle);
}
