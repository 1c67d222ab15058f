/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/batch_norm.cuh"

void cuda_batch_norm_inference(const struct cuda_call *call, const struct batch_norm_inference *op)
{
    struct batch_norm_line line = batch_norm_line_of(*op);
    line.mean = op->running_mean;
    line.variance = op->running_variance;
    batch_norm_line(call, &line);
}
