/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies a block of a matrix (`depth` rows and `columns` columns) into a panel with rows of
 * `width` floats, from which a matrix product reads it. In each row of the panel, the floats after
 * `columns` up to the next multiple of 16, or up to `width` if that is less, are set to zero.
 * Floats after those are not written.
 */
#ifndef COXSWAIN_DEVICE_CPU_PACK_H
#define COXSWAIN_DEVICE_CPU_PACK_H

#include <stdint.h>

/* panel[k][j] = source[k * stride + j] */
void pack_rows(const float *source, int64_t stride, int64_t depth, int64_t columns, float *panel, int64_t width);
/* panel[k][j] = source[j * stride + k] */
void pack_transposed(const float *source, int64_t stride, int64_t depth, int64_t columns, float *panel, int64_t width);

#endif
