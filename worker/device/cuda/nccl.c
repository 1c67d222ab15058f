/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "worker/device/communicator.h"

static int find_function(void *library, const char *name, void *ret_function, struct error *error)
{
    void *found = dlsym(library, name);
    if (!found)
        return error_set(error, ERROR_UNSUPPORTED,
                         "strategy.collective: the NCCL of this machine lacks %s; install 2.18 or a later one", name);
    memcpy(ret_function, &found, sizeof found);
    return 0;
}

static int check_version(struct nccl *nccl, struct error *error)
{
    char text[COMMUNICATOR_VERSION_MAX];
    if (nccl->ncclGetVersion(&nccl->version) != ncclSuccess)
        return error_set(error, ERROR_UNSUPPORTED,
                         "strategy.collective: the version of this machine's NCCL cannot be read; install 2.18 or a "
                         "later one");
    if (nccl->version >= NCCL_VERSION_LEAST)
        return 0;
    communicator_version_text(nccl->version, text);
    return error_set(error, ERROR_UNSUPPORTED,
                     "strategy.collective: the NCCL of this machine is %s; install 2.18 or a later one", text);
}

static int find_functions(struct nccl *nccl, struct error *error)
{
#define X(function)                                                                                                    \
    if (find_function(nccl->library, #function, &nccl->function, error) < 0)                                           \
        return -1;
    NCCL_FUNCTIONS(X)
#undef X
    return 0;
}

int nccl_open(struct nccl *nccl, struct error *error)
{
    char name[32];
    snprintf(name, sizeof name, "libnccl.so.%d", NCCL_FILE_NUMBER);
    struct nccl found = {.library = dlopen(name, RTLD_NOW | RTLD_LOCAL)};
    if (!found.library)
        return error_set(error, ERROR_UNSUPPORTED,
                         "strategy.collective: there is no %s; install NCCL 2.18 or later (Debian's and NVIDIA's "
                         "package is libnccl2) or set LD_LIBRARY_PATH",
                         name);
    if (find_functions(&found, error) < 0 || check_version(&found, error) < 0) {
        dlclose(found.library); /* it has done nothing yet */
        return -1;
    }
    *nccl = found;
    return 0;
}
