/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes of sliding windows, for convolutions and pools.
 */
#ifndef COXSWAIN_MODEL_WINDOW_H
#define COXSWAIN_MODEL_WINDOW_H

#include "worker/model/layer.h"

/* Windows of `size` at steps of `stride` along H and W of the layer's image; ERROR_INVALID when none fits. Unset stride
 * and padding get their defaults in the layer's spec. */
int window_resolve(struct layer *layer, int64_t size, int64_t default_stride, struct error *error);

#endif
