/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/cpu.h"

void cpu_begin_step(const struct cpu_call *call, const struct begin_step *op)
{
    (void)call;
    op->values->factors = op->factors;
    op->values->pass = op->pass;
    op->values->loss_scale = op->loss_scale > 0 ? op->loss_scale : 1.0f;
    op->values->good_steps = op->loss_scale > 0 ? op->good_steps : -1;
}
