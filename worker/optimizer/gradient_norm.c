/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/optimizer/gradient_norm.h"

#include <math.h>

int64_t gradient_norm_blocks(int64_t elements)
{
    return (elements + SQUARE_SUM_BLOCK - 1) / SQUARE_SUM_BLOCK;
}

void gradient_norm_launch(struct device_stream *stream, const float *gradients, int64_t elements, double *sums)
{
    device_square_sums(stream, &(struct square_sums){elements, gradients, sums});
}

double gradient_norm_finish(const double *sums, int64_t elements)
{
    double total = 0;
    for (int64_t block = 0; block < gradient_norm_blocks(elements); block++)
        total += sums[block];
    return sqrt(total);
}

double gradient_clip_factor(double norm, double limit)
{
    return !isnan(limit) && norm > limit ? limit / norm : 1.0;
}
