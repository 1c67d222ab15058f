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

static const char *remedy_of(enum error_kind kind)
{
    switch (kind) {
    case ERROR_NO_SPACE:
        return "write a smaller training.batchSize or more training.logicalShards";
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
