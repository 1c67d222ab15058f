/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/cublas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int find_function(void *library, const char *name, void *ret_function, struct error *error)
{
    void *found = dlsym(library, name);
    if (!found)
        return error_set(error, ERROR_UNSUPPORTED, "the cuBLAS of this machine lacks %s: install that of CUDA %d", name,
                         CUBLAS_VER_MAJOR);
    memcpy(ret_function, &found, sizeof found);
    return 0;
}

int cublas_open(struct cublas *cublas, struct error *error)
{
    char name[32];
    snprintf(name, sizeof name, "libcublas.so.%d", CUBLAS_VER_MAJOR);
    *cublas = (struct cublas){.library = dlopen(name, RTLD_NOW | RTLD_LOCAL)};
    if (!cublas->library)
        return error_set(error, ERROR_UNSUPPORTED, "there is a GPU, but no %s: install cuBLAS or set LD_LIBRARY_PATH",
                         name);
#define X(function)                                                                                                    \
    if (find_function(cublas->library, #function, &cublas->function, error) < 0) {                                     \
        cublas_close(cublas);                                                                                          \
        return -1;                                                                                                     \
    }
    CUBLAS_FUNCTIONS(X)
#undef X
    return 0;
}

void cublas_close(struct cublas *cublas)
{
    if (cublas->library)
        dlclose(cublas->library);
    *cublas = (struct cublas){0};
}
