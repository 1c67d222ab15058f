/* SPDX-License-Identifier: Apache-2.0
 *
 * Classifies failures of CUDA and its libraries by what the job should do. A GPU that is lost, or
 * whose memory or links are bad, is replaced (ERROR_DEVICE, exit code 162). An invalid memory
 * access or an invalid call would fail on every GPU: that is a bug (ERROR_INTERNAL, 70). Too
 * little memory is ERROR_NO_SPACE (72); a driver or GPU that this worker does not support is
 * ERROR_UNSUPPORTED (69).
 *
 * Errors that CUDA's manual attributes to either ("unspecified launch failure", "unknown error")
 * count as the GPU's: these are retried a limited number of times, while a bug is not retried.
 */
#ifndef COXSWAIN_DEVICE_CUDA_CUDA_FAILURE_H
#define COXSWAIN_DEVICE_CUDA_CUDA_FAILURE_H

#include "common/error.h"
#include "worker/device/cuda/cublas.h"
#include "worker/device/cuda/cuda.h"
#include "worker/device/cuda/cudnn.h"

/* Return the kind of error that a failed call of CUDA, cuBLAS or cuDNN becomes. `after`: the result of
 * cudaGetLastError after the call, which is more precise than the library's "execution failed". */
enum error_kind cuda_failure_kind(cudaError_t result);
enum error_kind cublas_failure_kind(cublasStatus_t status, cudaError_t after);
enum error_kind cudnn_failure_kind(cudnnStatus_t status, cudaError_t after);

/* Set the error: "GPU: waiting for its work: … (cudaStreamSynchronize at
 * worker/…/cuda_stream.c:168, CUDA error 700); what to do". Only the part of place->call before
 * its bracket is quoted. Return -1. */
int cuda_failure_set(cudaError_t result, const char *doing, const struct cuda_place *place, struct error *error);
int cublas_failure_set(cublasStatus_t status, cudaError_t after, const char *words, const struct cuda_place *place,
                       struct error *error);
int cudnn_failure_set(cudnnStatus_t status, cudaError_t after, const char *words, const struct cuda_place *place,
                      struct error *error);

#endif
