/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies a block of a matrix into a panel of `depth` rows of `width` floats. The first `columns`
 * floats of a row are the block's; the rest of its last vector (up to a multiple of 16) is zero.
 */
#ifndef COXSWAIN_DEVICE_CPU_PACK_H
#define COXSWAIN_DEVICE_CPU_PACK_H

#include <stdint.h>

/* panel[k][j] = source[k * stride + j] */
void pack_rows(const float *source, int64_t stride, int64_t depth, int64_t columns, float *panel, int64_t width);
/* panel[k][j] = source[j * stride + k] */
void pack_transposed(const float *source, int64_t stride, int64_t depth, int64_t columns, float *panel, int64_t width);

#endif
