/* SPDX-License-Identifier: Apache-2.0
 *
 * The global norm of a flat gradient as sums over fixed blocks of the flat array
 * (SQUARE_SUM_BLOCK), added in order in float64: the same bits for every crew.
 */
#ifndef COXSWAIN_OPTIMIZER_GRADIENT_NORM_H
#define COXSWAIN_OPTIMIZER_GRADIENT_NORM_H

#include <stdint.h>

#include "worker/device/device.h"

/* Blocks of an array of `elements`. */
int64_t gradient_norm_blocks(int64_t elements);
/* Enqueues the block sums; `sums` is shared memory of gradient_norm_blocks(elements) doubles. */
void gradient_norm_launch(struct device_stream *stream, const float *gradients, int64_t elements, double *sums);
/* Once the stream has passed: the norm. */
double gradient_norm_finish(const double *sums, int64_t elements);

/* Pascanu et al. 2013: 1, or limit / norm when norm > limit (`limit` DECIMAL_UNSET: always 1). */
double gradient_clip_factor(double norm, double limit);

#endif
