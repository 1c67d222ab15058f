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

static void *open_library(const char *stem, struct error *error)
{
    char name[32];
    snprintf(name, sizeof name, "%s.so.%d", stem, CUBLAS_VER_MAJOR);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        error_set(error, ERROR_UNSUPPORTED, "there is a GPU, but no %s: install cuBLAS or set LD_LIBRARY_PATH", name);
    return library;
}

static int find_functions(struct cublas *cublas, struct error *error)
{
#define X(function)                                                                                                    \
    if (find_function(cublas->library, #function, &cublas->function, error) < 0)                                       \
        return -1;
    CUBLAS_FUNCTIONS(X)
#undef X
    if (!cublas->lt)
        return 0;
#define X(function)                                                                                                    \
    if (find_function(cublas->lt, #function, &cublas->function, error) < 0)                                            \
        return -1;
    CUBLASLT_FUNCTIONS(X)
#undef X
    return 0;
}

int cublas_open(struct cublas *cublas, bool with_lt, struct error *error)
{
    *cublas = (struct cublas){.library = open_library("libcublas", error)};
    if (!cublas->library)
        return -1;
    if (with_lt)
        cublas->lt = open_library("libcublasLt", error);
    if ((with_lt && !cublas->lt) || find_functions(cublas, error) < 0) {
        cublas_close(cublas);
        return -1;
    }
    return 0;
}

void cublas_close(struct cublas *cublas)
{
    if (cublas->lt)
        dlclose(cublas->lt);
    if (cublas->library)
        dlclose(cublas->library);
    *cublas = (struct cublas){0};
}
