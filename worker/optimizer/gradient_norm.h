/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the global L2 norm of a gradient, which is reported, and the factor that clips the
 * gradient. The gradient is one flat array. Its squares are summed over fixed blocks
 * (SQUARE_SUM_BLOCK), and the block sums are added in order in float64, so that the result has the
 * same bits however many workers the crew has.
 */
#ifndef COXSWAIN_OPTIMIZER_GRADIENT_NORM_H
#define COXSWAIN_OPTIMIZER_GRADIENT_NORM_H

#include <stdint.h>

#include "worker/device/device.h"

/* Returns the number of blocks of an array of `elements`. */
int64_t gradient_norm_blocks(int64_t elements);
/* Enqueues the block sums. `sums` is shared memory of gradient_norm_blocks(elements) doubles. */
void gradient_norm_launch(struct device_stream *stream, const float *gradients, int64_t elements, double *sums);
/* Returns the norm. Call it once the stream has executed the launch. */
double gradient_norm_finish(const double *sums, int64_t elements);

/* Returns the factor for gradient clipping (Pascanu et al. 2013): limit / norm if norm > limit,
 * else 1. Always 1 if `limit` is DECIMAL_UNSET. */
double gradient_clip_factor(double norm, double limit);

#endif
