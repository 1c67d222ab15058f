/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes output sizes of sliding windows, for convolutions and pools.
 */
#ifndef COXSWAIN_MODEL_WINDOW_H
#define COXSWAIN_MODEL_WINDOW_H

#include "worker/model/layer.h"

/* Sets the layer's output shape for windows of `size` along H and W. Fills in default stride and
 * padding in the layer's spec if they are unset. ERROR_INVALID: no window fits the image. */
int window_resolve(struct layer *layer, int64_t size, int64_t default_stride, struct error *error);

#endif
