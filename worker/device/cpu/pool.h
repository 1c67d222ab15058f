/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes which part of an image a pooling window covers, cut at the image's borders. The CPU's
 * max and average pooling use it, forward and backward.
 */
#ifndef COXSWAIN_DEVICE_CPU_POOL_H
#define COXSWAIN_DEVICE_CPU_POOL_H

#include "worker/device/cpu/cpu.h"

struct window {
    int64_t top, bottom, left, right; /* [top, bottom) x [left, right), cut at the borders */
};

static inline struct window pool_window(const struct pool_shape *shape, int64_t i, int64_t j)
{
    int64_t top = i * shape->stride - shape->padding, left = j * shape->stride - shape->padding;
    return (struct window){
        .top = top < 0 ? 0 : top,
        .bottom = top + shape->size < shape->h ? top + shape->size : shape->h,
        .left = left < 0 ? 0 : left,
        .right = left + shape->size < shape->w ? left + shape->size : shape->w,
    };
}

#endif
