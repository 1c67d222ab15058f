/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/launch.cuh"

static __global__ void write_values(struct begin_step op)
{
    op.values->factors = op.factors;
    op.values->pass = op.pass;
    op.values->loss_scale = op.loss_scale > 0 ? op.loss_scale : 1.0f;
    op.values->good_steps = op.loss_scale > 0 ? op.good_steps : -1;
}

void cuda_begin_step(const struct cuda_call *call, const struct begin_step *op)
{
    launch_kernel(call, 1, 1, 0, write_values, *op);
}
