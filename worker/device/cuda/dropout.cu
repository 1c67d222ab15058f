/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"
#include "worker/device/dropout_word.h"

/* One thread a block of four elements. */
template <typename Stored> static __global__ void each_block(struct dropout op)
{
    const int64_t blocks = (op.elements + 3) / 4;
    EACH(i, op.examples * blocks);
    const int64_t example = i / blocks, block = i % blocks, first = example * op.elements;
    const float keep = 1.0f / (1.0f - op.rate);
    const uint32_t limit = dropout_limit(op.rate);
    const struct philox_words words = dropout_words(&op, example, block);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int64_t at = 4 * block + k;
        if (at < op.elements)
            values<Stored>(op.y).put(first + at, words.word[k] < limit ? 0 : values<Stored>(op.x)[first + at] * keep);
    }
}

void cuda_dropout(const struct cuda_call *call, const struct dropout *op)
{
    launch_each(call, op->examples * ((op->elements + 3) / 4), KERNEL_FOR(call, each_block), *op);
}
