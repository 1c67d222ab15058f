/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"
#include "worker/device/cuda/warp.cuh"

template <typename Stored> static __global__ void each_token(struct embedding_forward op, struct cuda_fault *fault)
{
    EACH_ROW(at, lane, op.b * op.t);
    const int32_t token = op.tokens[at];
    const bool bad = token < 0 || token >= op.vocabulary;
    if (bad && lane == 0)
        report_fault(fault, CUDA_FAULT_TOKEN, token, op.vocabulary);
    const float *from = op.token + (bad ? 0 : token) * op.c, *position = op.position + at % op.t * op.c;
    for (int64_t i = lane; i < op.c; i += WARP)
        values<Stored>(op.y).put(at * op.c + i, from[i] + position[i]);
}

void cuda_embedding_forward(const struct cuda_call *call, const struct embedding_forward *op)
{
    launch_rows(call, op->b * op->t, KERNEL_FOR(call, each_token), *op, call->fault);
}
