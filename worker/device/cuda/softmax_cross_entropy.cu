/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <math.h>

#include "worker/device/cuda/stored.cuh"
#include "worker/device/cuda/warp.cuh"

/* Workspace of a row: its loss, and 1 when the largest logit (the first of equals) is the target. `dlogits` may be
 * `logits`: each lane writes only what it alone has read. */
template <typename Stored> static __global__ void each_row(struct softmax_cross_entropy op, struct cuda_fault *fault)
{
    EACH_ROW(row, lane, op.rows);
    const int classes = (int)op.classes, target = op.targets[row];
    const int64_t place = row * op.row;
    const values<Stored> logits = values<Stored>(op.logits) + place;
    const bool bad = target < 0 || target >= classes;
    if (bad && lane == 0)
        report_fault(fault, CUDA_FAULT_TARGET, target, op.classes);
    const float wanted = bad ? 0 : logits[target];
    float maximum = -INFINITY, sum = 0;
    for (int j = lane; j < classes; j += WARP)
        maximum = fmaxf(maximum, logits[j]);
    maximum = warp_maximum(maximum);
    int first = INT_MAX;
    for (int j = lane; j < classes; j += WARP) {
        sum += expf(logits[j] - maximum);
        if (logits[j] == maximum)
            first = min(first, j);
    }
    sum = warp_sum(sum);
    first = warp_minimum(first);
    if (lane == 0) {
        op.workspace[row * 2] = log((double)sum) + (double)maximum - (double)wanted;
        op.workspace[row * 2 + 1] = first == target;
    }
    if (!op.dlogits)
        return;
    const values<Stored> dlogits = values<Stored>(op.dlogits) + place;
    const float scale = op.values ? op.scale * op.values->loss_scale : op.scale, share = scale / sum;
    for (int j = lane; j < classes; j += WARP)
        dlogits.put(j, expf(logits[j] - maximum) * share - (j == target ? scale : 0.0f));
}

void cuda_softmax_cross_entropy(const struct cuda_call *call, const struct softmax_cross_entropy *op)
{
    struct softmax_cross_entropy rows = *op;
    rows.row = row_or_packed(op->row, op->classes);
    launch_rows(call, op->rows, KERNEL_FOR(call, each_row), rows, call->fault);
    if (op->sums)
        cuda_loss_sums(call, op->workspace - 2 * op->earlier, op->earlier + op->rows, true, op->sums);
}
