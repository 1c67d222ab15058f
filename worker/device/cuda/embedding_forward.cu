/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"
#include "worker/device/cuda/warp.cuh"

template <typename Stored, bool ALIGNED>
static __global__ void each_token(struct embedding_forward op, struct cuda_fault *fault)
{
    const int length = element_pack<Stored>::LENGTH;
    EACH_ROW(at, lane, op.b * op.t);
    const int32_t token = op.tokens[at];
    const bool bad = token < 0 || token >= op.vocabulary;
    if (bad && lane == 0)
        report_fault(fault, CUDA_FAULT_TOKEN, token, op.vocabulary);
    const float *from = op.token + (bad ? 0 : token) * op.c, *position = op.position + at % op.t * op.c;
#pragma unroll 4
    for (int64_t i = lane * length; i < op.c; i += WARP * length) {
        float sums[length], more[length];
        element_pack<Stored> y;
        read_numbers<ALIGNED, length>(from + i, op.c - i, sums);
        read_numbers<ALIGNED, length>(position + i, op.c - i, more);
#pragma unroll
        for (int k = 0; k < length; k++)
            narrow(sums[k] + more[k], &y.at[k]);
        write_pack<ALIGNED>(values<Stored>(op.y).start + at * op.c + i, y, op.c - i);
    }
}

template <typename Stored> static void launch(const struct cuda_call *call, const struct embedding_forward *op)
{
    const bool aligned = are_aligned(op->token, op->position, op->y) && op->c % element_pack<Stored>::LENGTH == 0;
    launch_rows(call, op->b * op->t, aligned ? each_token<Stored, true> : each_token<Stored, false>, *op, call->fault);
}

void cuda_embedding_forward(const struct cuda_call *call, const struct embedding_forward *op)
{
    BY_STORED(call, launch, call, op);
}
