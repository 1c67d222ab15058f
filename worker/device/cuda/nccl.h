/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads NCCL when a job needs it. A worker built with CUDA=1 starts on machines without NCCL and
 * is built without its header: this file declares the part of the binary interface that the worker
 * uses, which has not changed since 2.18 (NVIDIA, "NCCL API"). The names are the library's.
 */
#ifndef COXSWAIN_DEVICE_CUDA_NCCL_H
#define COXSWAIN_DEVICE_CUDA_NCCL_H

#include <cuda_runtime_api.h>
#include <limits.h>
#include <stddef.h>

#include "common/error.h"

/* The library's file is libnccl.so.<this number>; emulated GPUs use another. */
#ifndef NCCL_FILE_NUMBER
#define NCCL_FILE_NUMBER 2
#endif

#define NCCL_VERSION(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define NCCL_VERSION_LEAST NCCL_VERSION(2, 18, 0)
/* From this version on, NCCL_MULTI_RANK_GPU_ENABLE=1 allows several ranks on one GPU. */
#define NCCL_VERSION_SHARED_GPU NCCL_VERSION(2, 30, 0)

typedef struct ncclComm *ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
} ncclResult_t;
typedef enum { ncclFloat32 = 7 } ncclDataType_t;
typedef enum { ncclSum = 0 } ncclRedOp_t;

/* The configuration as of 2.18. Later libraries have more fields, and read `size` and `version`
 * to know which are set. `rest` fills the padding, so that a library that takes it for its first
 * additional field finds it undefined. */
typedef struct {
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
    int cgaClusterSize;
    int minCTAs;
    int maxCTAs;
    const char *netName;
    int splitShare;
    int rest;
} ncclConfig_t;
#define NCCL_CONFIG_MAGIC 0xcafebeef
#define NCCL_CONFIG_UNDEF_INT INT_MIN
/* Makes every call return at once. */
#define NCCL_CONFIG_NON_BLOCKING                                                                                       \
    {                                                                                                                  \
        .size = sizeof(ncclConfig_t), .magic = NCCL_CONFIG_MAGIC, .version = NCCL_VERSION_LEAST, .blocking = 0,        \
        .cgaClusterSize = NCCL_CONFIG_UNDEF_INT, .minCTAs = NCCL_CONFIG_UNDEF_INT, .maxCTAs = NCCL_CONFIG_UNDEF_INT,   \
        .splitShare = NCCL_CONFIG_UNDEF_INT, .rest = NCCL_CONFIG_UNDEF_INT                                             \
    }

ncclResult_t ncclGetVersion(int *version);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream);

#define NCCL_FUNCTIONS(X)                                                                                              \
    X(ncclGetVersion)                                                                                                  \
    X(ncclGetUniqueId)                                                                                                 \
    X(ncclCommInitRankConfig)                                                                                          \
    X(ncclCommAbort)                                                                                                   \
    X(ncclCommGetAsyncError)                                                                                           \
    X(ncclGetErrorString)                                                                                              \
    X(ncclGetLastError)                                                                                                \
    X(ncclGroupStart)                                                                                                  \
    X(ncclGroupEnd)                                                                                                    \
    X(ncclAllReduce)                                                                                                   \
    X(ncclSend)                                                                                                        \
    X(ncclRecv)

struct nccl {
    void *library; /* NULL: not opened */
    int version;
#define X(name) __typeof__(name) *name;
    NCCL_FUNCTIONS(X)
#undef X
};

/* Loads NCCL. ERROR_UNSUPPORTED: the message says what is missing. It is never unloaded, because
 * its threads may outlive its communicators. */
int nccl_open(struct nccl *nccl, struct error *error);

#endif
