/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/batch_norm.h"

/* Number of columns whose lines are computed at a time, on the stack. */
#define STRIPE 1024

struct stripe {
    const struct batch_norm_inference *op;
    int64_t first, count;
    float slope[STRIPE], start[STRIPE];
};

CPU_VECTORISED static void run_block(const void *context, int64_t block, void *scratch)
{
    const struct stripe *stripe = context;
    const struct batch_norm_inference *op = stripe->op;
    (void)scratch;
    int64_t first = block * batch_norm_block_rows(op->c), rows = batch_norm_rows_of(op->rows, op->c, block);
    const bool adds = op->past != NULL;
    float least = op->activation == ACTIVATION_RELU ? 0 : -__builtin_inff();
    for (int64_t r = first; r < first + rows; r++) {
        const float *restrict x = op->x + r * op->c + stripe->first;
        const float *restrict past = adds ? op->past + r * op->c + stripe->first : x;
        float *restrict y = op->y + r * op->c + stripe->first;
        for (int64_t i = 0; i < stripe->count; i++) {
            float value = x[i] * stripe->slope[i] + stripe->start[i];
            value = adds ? value + past[i] : value;
            y[i] = value <= least ? least : value;
        }
    }
}

void cpu_batch_norm_inference(const struct cpu_call *call, const struct batch_norm_inference *op)
{
    struct stripe stripe = {.op = op};
    for (; stripe.first < op->c; stripe.first += STRIPE) {
        stripe.count = op->c - stripe.first < STRIPE ? op->c - stripe.first : STRIPE;
        for (int64_t i = 0; i < stripe.count; i++) {
            int64_t at = stripe.first + i;
            stripe.slope[i] = op->weight[at] * (1.0f / __builtin_sqrtf(op->running_variance[at] + BATCH_NORM_EPSILON));
            stripe.start[i] = op->bias[at] - op->running_mean[at] * stripe.slope[i];
        }
        team_run(call->team, batch_norm_blocks(op->rows, op->c), run_block, &stripe);
    }
}
