/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call's failure means for the job. A GPU that is lost, or whose memory or
 * links are bad, is replaced (ERROR_DEVICE, exit code 162). A kernel that reads
 * where it must not, or a call that was never valid, would fail on each of them:
 * that is a bug (ERROR_INTERNAL, 70). Too little memory is ERROR_NO_SPACE (72), a
 * driver or a GPU that this worker is not made for ERROR_UNSUPPORTED (69).
 *
 * Where CUDA's manual allows both ("unspecified launch failure", "unknown error")
 * it is taken for the GPU's: that is tried again a limited number of times, and
 * a bug that is told as one is not.
 */
#ifndef COXSWAIN_DEVICE_CUDA_CUDA_FAILURE_H
#define COXSWAIN_DEVICE_CUDA_CUDA_FAILURE_H

#include "common/error.h"
#include "worker/device/cuda/cublas.h"
#include "worker/device/cuda/cuda.h"
#include "worker/device/cuda/cudnn.h"

enum error_kind cuda_failure_kind(cudaError_t result);
/* `after`: what cudaGetLastError said behind it, which tells more than "execution failed" does. */
enum error_kind cublas_failure_kind(cublasStatus_t status, cudaError_t after);
enum error_kind cudnn_failure_kind(cudnnStatus_t status, cudaError_t after);

/* "GPU: waiting for its work: … (cudaStreamSynchronize at worker/…/cuda_stream.c:168, CUDA error 700); what to do". Of `call`
 * the words before its bracket are told. Returns -1. */
int cuda_failure_set(cudaError_t result, const char *doing, const struct cuda_place *place, struct error *error);
int cublas_failure_set(cublasStatus_t status, cudaError_t after, const char *words, const struct cuda_place *place,
                       struct error *error);
int cudnn_failure_set(cudnnStatus_t status, cudaError_t after, const char *words, const struct cuda_place *place,
                      struct error *error);

#endif
