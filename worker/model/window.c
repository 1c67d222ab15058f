/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/window.h"

static int64_t steps(int64_t length, int64_t size, int64_t stride, int64_t padding)
{
    return (length + 2 * padding - size) / stride + 1;
}

int window_resolve(struct layer *layer, int64_t size, int64_t default_stride, struct error *error)
{
    const struct layer_shape *input = &layer->inputs[0];
    struct layer_spec *spec = &layer->spec;
    if (input->rank != 3 || input->integral)
        return layer_refuse_input(input, error);
    spec->stride = spec->stride == FIELD_UNSET ? default_stride : spec->stride;
    spec->padding = spec->padding == FIELD_UNSET ? 0 : spec->padding;
    if (size < 1 || spec->stride < 1 || spec->padding < 0 ||
        (layer->kind->type != LAYER_CONV2D && spec->padding >= size))
        return error_set(error, ERROR_INVALID, "window %lld, stride %lld, padding %lld do not go together",
                         (long long)size, (long long)spec->stride, (long long)spec->padding);
    if (input->dims[0] + 2 * spec->padding < size || input->dims[1] + 2 * spec->padding < size)
        return error_set(error, ERROR_INVALID, "a window of %lld does not fit an image of %lldx%lld", (long long)size,
                         (long long)input->dims[0], (long long)input->dims[1]);
    layer->output = *input;
    layer->output.dims[0] = steps(input->dims[0], size, spec->stride, spec->padding);
    layer->output.dims[1] = steps(input->dims[1], size, spec->stride, spec->padding);
    return 0;
}
