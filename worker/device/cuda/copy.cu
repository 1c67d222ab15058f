/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/cuda.h"

/* The driver knows from the addresses whether it goes to the host, from it, or neither. */
void cuda_copy(const struct cuda_call *call, const struct copy *op)
{
    cudaError_t result = cudaMemcpyAsync(op->to, op->from, (size_t)op->bytes, cudaMemcpyDefault, call->stream);
    if (result != cudaSuccess)
        cuda_call_fail(call, result, "cudaMemcpyAsync");
}
