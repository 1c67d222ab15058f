/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/cudnn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "common/contract/environment.h"

static int find_function(void *library, const char *name, void *ret_function, struct error *error)
{
    void *found = dlsym(library, name);
    if (!found)
        return error_set(error, ERROR_UNSUPPORTED, ENV_GPU_DNN ": the cuDNN of this machine lacks %s; install cuDNN %d",
                         name, CUDNN_FILE_NUMBER);
    memcpy(ret_function, &found, sizeof found);
    return 0;
}

static int find_functions(struct cudnn *cudnn, struct error *error)
{
#define X(function)                                                                                                    \
    if (find_function(cudnn->library, #function, &cudnn->function, error) < 0)                                         \
        return -1;
    CUDNN_FUNCTIONS(X)
#undef X
    return 0;
}

static int check_version(struct cudnn *cudnn, struct error *error)
{
    const size_t version = cudnn->cudnnGetVersion();
    if (version < CUDNN_VERSION_LEAST || version > 99999)
        return error_set(error, ERROR_UNSUPPORTED,
                         ENV_GPU_DNN ": the cuDNN of this machine calls itself %zu; install cuDNN 9 (90000 and more)",
                         version);
    cudnn->version = (int)version;
    return 0;
}

int cudnn_open(struct cudnn *cudnn, struct error *error)
{
    char name[32];
    snprintf(name, sizeof name, "libcudnn.so.%d", CUDNN_FILE_NUMBER);
    struct cudnn found = {.library = dlopen(name, RTLD_NOW | RTLD_LOCAL)};
    if (!found.library)
        return error_set(error, ERROR_UNSUPPORTED,
                         ENV_GPU_DNN " asks for cuDNN, and there is no %s: install cuDNN 9, set LD_LIBRARY_PATH, or "
                                     "unset " ENV_GPU_DNN,
                         name);
    if (find_functions(&found, error) < 0 || check_version(&found, error) < 0) {
        dlclose(found.library); /* it has done nothing yet */
        return -1;
    }
    *cudnn = found;
    return 0;
}
