/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations that a step does once, on a few numbers: what its launches read, its
 * verdict, and the running statistics.
 */
#include "worker/device/cpu/cpu.h"
#include "worker/device/loss_scale.h"
#include <math.h>
#include <string.h>

void cpu_begin_step(const struct cpu_call *call, const struct begin_step *op)
{
    (void)call;
    op->values->factors = op->factors;
    op->values->pass = op->pass;
    op->values->loss_scale = op->loss_scale > 0 ? op->loss_scale : 1.0f;
    op->values->good_steps = op->loss_scale > 0 ? op->good_steps : -1;
}

void cpu_judge_step(const struct cpu_call *call, const struct judge_step *op)
{
    (void)call; /* nothing is launched behind a stream's error */
    double total = 0;
    bool finite = true;
    for (int64_t i = 0; i < op->blocks; i++)
        total += op->block_sums[i];
    for (int64_t i = 0; i < op->passes; i++)
        finite &= isfinite((float)op->sums[i].loss) != 0;
    struct step_values *values = op->values;
    double norm = sqrt(total) / (double)values->loss_scale;
    values->gradient_scale =
        (op->limit > 0 && norm > op->limit ? (float)(op->limit / norm) : 1.0f) / values->loss_scale;
    values->refused = !finite || !isfinite(norm);
    loss_scale_update(&values->loss_scale, &values->good_steps, values->refused);
    *op->ret_norm = norm;
    memcpy(op->ret_sums, op->sums, (size_t)op->passes * sizeof *op->sums);
}

void cpu_statistics_update(const struct cpu_call *call, const struct statistics_update *op)
{
    (void)call; /* they are few */
    if (op->values != NULL && op->values->refused)
        return;
    for (int64_t i = 0; i < op->count; i++)
        op->statistics[i] -= op->steps[i];
}
