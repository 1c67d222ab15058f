/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/optimizer/loss_scaling.h"

#include "worker/device/loss_scale.h"

double loss_scaling_factor(const struct loss_scaling *scaling, enum precision precision)
{
    if (precision != PRECISION_FLOAT16)
        return 1;
    return scaling->scale > 0 ? (double)scaling->scale : LOSS_SCALE_FIRST;
}

float loss_scaling_for_begin_step(const struct loss_scaling *scaling, enum precision precision)
{
    return precision == PRECISION_FLOAT16 ? (float)loss_scaling_factor(scaling, precision) : 0;
}

void loss_scaling_follow(struct loss_scaling *scaling, enum precision precision, bool skipped)
{
    if (precision != PRECISION_FLOAT16)
        return;
    float scale = loss_scaling_for_begin_step(scaling, precision);
    int32_t good_steps = (int32_t)scaling->good_steps;
    loss_scale_update(&scale, &good_steps, skipped);
    scaling->scale = (int64_t)scale;
    scaling->good_steps = good_steps;
    scaling->skipped_steps += skipped;
}
