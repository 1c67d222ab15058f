/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"
#include "worker/device/stochastic_rounding.h"

/* One thread a block of four numbers of elements, of which the first and the last may have fewer. */
template <typename Stored> static __global__ void each_block(struct stochastic_round op)
{
    const int64_t first_block = op.first / 4, blocks = (op.first + op.count + 3) / 4 - first_block;
    EACH(i, blocks);
    const int64_t block = first_block + i;
    const struct philox_words words = stochastic_words(op.key, stochastic_step(&op), block);
    for (int k = 0; k < 4; k++) {
        const int64_t at = 4 * block + k - op.first;
        if (at >= 0 && at < op.count)
            values<Stored>(op.y).put(at, op.to_float16 ? float16_round_by(op.x[at], words.word[k])
                                                       : bfloat16_round_by(op.x[at], words.word[k]));
    }
}

void cuda_stochastic_round(const struct cuda_call *call, const struct stochastic_round *op)
{
    launch_each(call, (op->first + op->count + 3) / 4 - op->first / 4, KERNEL_FOR(call, each_block), *op);
}
