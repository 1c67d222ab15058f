/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "worker/device/cpu/cpu.h"

void cpu_judge_step(const struct cpu_call *call, const struct judge_step *op)
{
    (void)call; /* nothing is launched behind a stream's error */
    double total = 0;
    bool finite = true;
    for (int64_t i = 0; i < op->blocks; i++)
        total += op->block_sums[i];
    for (int64_t i = 0; i < op->passes; i++)
        finite &= isfinite((float)op->sums[i].loss) != 0;
    double norm = sqrt(total);
    op->values->gradient_scale = op->limit > 0 && norm > op->limit ? (float)(op->limit / norm) : 1.0f;
    op->values->refused = !finite || !isfinite(norm);
    *op->ret_norm = norm;
    memcpy(op->ret_sums, op->sums, (size_t)op->passes * sizeof *op->sums);
}
