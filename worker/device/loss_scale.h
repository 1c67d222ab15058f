/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates the loss scale of training in float16 (dynamic loss scaling, Micikevicius et al. 2018). The
 * loss is multiplied by the scale, so that the layers' gradients stay within the range of float16. A
 * step whose gradient is not finite is skipped and halves the scale; LOSS_SCALE_GOOD_STEPS good steps
 * in a row double it. The scale is a power of two, so that it rounds no gradient that stays in range.
 * The devices and the host share this code, so that they compute the same scale.
 */
#ifndef COXSWAIN_DEVICE_LOSS_SCALE_H
#define COXSWAIN_DEVICE_LOSS_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define LOSS_SCALE_DEVICE __host__ __device__
#else
#define LOSS_SCALE_DEVICE
#endif

#define LOSS_SCALE_FIRST 65536
#define LOSS_SCALE_LEAST 1
#define LOSS_SCALE_MOST 16777216
#define LOSS_SCALE_GOOD_STEPS 2000 /* good steps in a row until the scale is doubled */

/* Updates the scale after a step. `good_steps` counts the steps since the scale last changed; if it is
 * negative, the scale is fixed. `skipped`: the step's gradient was not finite. */
static inline LOSS_SCALE_DEVICE void loss_scale_update(float *scale, int32_t *good_steps, bool skipped)
{
    if (*good_steps < 0)
        return;
    *good_steps = skipped ? 0 : *good_steps + 1;
    if (skipped && *scale > LOSS_SCALE_LEAST)
        *scale *= 0.5f;
    if (*good_steps < LOSS_SCALE_GOOD_STEPS)
        return;
    *good_steps = 0;
    if (*scale < LOSS_SCALE_MOST)
        *scale *= 2.0f;
}

#endif
