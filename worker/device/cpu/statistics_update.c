/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/cpu.h"

void cpu_statistics_update(const struct cpu_call *call, const struct statistics_update *op)
{
    (void)call; /* they are few */
    if (op->values != NULL && op->values->refused)
        return;
    for (int64_t i = 0; i < op->count; i++)
        op->statistics[i] -= op->steps[i];
}
