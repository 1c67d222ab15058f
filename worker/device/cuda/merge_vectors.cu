/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

/* A thread's additions follow each other in one element: what one has left the next finds in the nearest cache. */
static __global__ void each_element(struct merge_vectors op)
{
    EACH(i, op.count);
#pragma unroll
    for (int pair = 0; pair < MERGE_PAIRS_MAX; pair++)
        if (pair < op.pair_count)
            op.pairs[pair].into[i] += op.pairs[pair].from[i];
}

void cuda_merge_vectors(const struct cuda_call *call, const struct merge_vectors *op)
{
    launch_each(call, op->count, each_element, *op);
}
