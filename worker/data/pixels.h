/* SPDX-License-Identifier: Apache-2.0
 *
 * Provides what the data formats of images share (cifar10, npy, tfrecord): checks that the model takes images
 * with one class each and that a label is a class of the model, and the conversion of a byte to a number in
 * [0, 1].
 */
#ifndef COXSWAIN_DATA_PIXELS_H
#define COXSWAIN_DATA_PIXELS_H

#include "worker/data/dataset_format.h"

static inline int pixels_check_wanted(const struct example_format *format, const char *name, struct error *error)
{
    if (format->input_type == ELEMENT_FLOAT32 && format->target_type == ELEMENT_INT32 && format->target_elements == 1)
        return 0;
    return error_set(error, ERROR_INVALID,
                     "data.format %s holds images with one class each, but the model takes other examples", name);
}

static inline int pixels_check_label(const struct example_format *format, int64_t label, int64_t example,
                                     struct error *error)
{
    if (example_takes_target(format, label))
        return 0;
    return error_set(error, ERROR_INVALID, "label %lld is %lld, but the model has %lld classes (0..%lld)",
                     (long long)example, (long long)label, (long long)format->classes, (long long)format->classes - 1);
}

static inline float pixel_value(uint8_t byte)
{
    return (float)byte / 255.0f;
}

#endif
