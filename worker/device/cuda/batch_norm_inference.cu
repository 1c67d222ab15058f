/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/batch_norm.cuh"

void cuda_batch_norm_inference(const struct cuda_call *call, const struct batch_norm_inference *op)
{
    struct batch_norm_line line = {};
    line.rows = op->rows;
    line.c = op->c;
    line.x = op->x;
    line.past = op->past;
    line.weight = op->weight;
    line.bias = op->bias;
    line.mean = op->running_mean;
    line.variance = op->running_variance;
    line.y = op->y;
    line.relu = op->activation == ACTIVATION_RELU;
    batch_norm_line(call, &line);
}
