/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/cuda_failure.h"

#include <string.h>

enum error_kind cuda_failure_kind(cudaError_t result)
{
    switch (result) {
    case cudaErrorMemoryAllocation:
        return ERROR_NO_SPACE;
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorCompatNotSupportedOnDevice:
        return ERROR_UNSUPPORTED;
    case cudaErrorInitializationError:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoDevice:
    case cudaErrorStartupFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorOperatingSystem:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsMaxClientsReached:
    case cudaErrorMpsMaxConnectionsReached:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
        return ERROR_DEVICE;
    default:
        return ERROR_INTERNAL;
    }
}

enum error_kind cublas_failure_kind(cublasStatus_t status, cudaError_t after)
{
    switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED:
        return ERROR_NO_SPACE;
    case CUBLAS_STATUS_ARCH_MISMATCH:
        return ERROR_UNSUPPORTED;
    case CUBLAS_STATUS_NOT_INITIALIZED:
    case CUBLAS_STATUS_EXECUTION_FAILED:
    case CUBLAS_STATUS_INTERNAL_ERROR:
        return after != cudaSuccess ? cuda_failure_kind(after) : ERROR_DEVICE;
    default:
        return ERROR_INTERNAL;
    }
}

#define THOUSANDS(status) ((int)(status) / 1000 * 1000)

enum error_kind cudnn_failure_kind(cudnnStatus_t status, cudaError_t after)
{
    switch ((int)status) {
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
        return ERROR_NO_SPACE;
    case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
    case CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED:
        return ERROR_UNSUPPORTED;
    }
    if (THOUSANDS(status) == CUDNN_STATUS_NOT_SUPPORTED)
        return ERROR_UNSUPPORTED;
    if (THOUSANDS(status) == CUDNN_STATUS_BAD_PARAM)
        return ERROR_INTERNAL;
    return after != cudaSuccess ? cuda_failure_kind(after) : ERROR_DEVICE;
}

static const char *remedy_of(enum error_kind kind)
{
    switch (kind) {
    case ERROR_NO_SPACE:
        return "set a smaller training.batchSize or more training.logicalShards";
    case ERROR_UNSUPPORTED:
        return "install a newer driver, or take a worker that was built for this GPU (CUDA_ARCHITECTURES)";
    case ERROR_DEVICE:
        return "another GPU may do; the kernel log of the node (Xid) says what became of this one";
    default:
        return "this is a bug of the worker, please report it; CUDA_LAUNCH_BLOCKING=1 names the call that it is in";
    }
}

static int tell(enum error_kind kind, const char *doing, const char *words, const char *library, int code,
                const struct cuda_place *place, struct error *error)
{
    return error_set(error, kind, "GPU: %s: %s (%.*s at %s:%d, %s %d); %s", doing, words,
                     (int)strcspn(place->call, "("), place->call, place->file, place->line, library, code,
                     remedy_of(kind));
}

int cuda_failure_set(cudaError_t result, const char *doing, const struct cuda_place *place, struct error *error)
{
    return tell(cuda_failure_kind(result), doing, cudaGetErrorString(result), "CUDA error", (int)result, place, error);
}

int cublas_failure_set(cublasStatus_t status, cudaError_t after, const char *words, const struct cuda_place *place,
                       struct error *error)
{
    return tell(cublas_failure_kind(status, after), "cuBLAS", words, "status", (int)status, place, error);
}

int cudnn_failure_set(cudnnStatus_t status, cudaError_t after, const char *words, const struct cuda_place *place,
                      struct error *error)
{
    const enum error_kind kind = cudnn_failure_kind(status, after);
    if (kind != ERROR_UNSUPPORTED)
        return tell(kind, "cuDNN", words, "status", (int)status, place, error);
    return error_set(error, kind,
                     "GPU: cuDNN: %s (%s at %s:%d, status %d); install all libraries of one cuDNN 9, and a driver that "
                     "it is for, or unset COXSWAIN_GPU_DNN",
                     words, place->call, place->file, place->line, (int)status);
}
