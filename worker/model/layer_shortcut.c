/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/layer.h"

static int resolve(struct layer *layer, struct error *error)
{
    const struct layer_shape *input = &layer->inputs[0];
    struct layer_spec *spec = &layer->spec;
    if (input->rank != 3 || input->integral)
        return layer_refuse_input(input, error);
    spec->stride = spec->stride == FIELD_UNSET ? 1 : spec->stride;
    if (spec->filters == FIELD_UNSET || spec->filters < input->dims[2] || spec->stride < 1)
        return error_set(error, ERROR_INVALID, "filters must be given and at least the %lld channels of its input",
                         (long long)input->dims[2]);
    layer->output = (struct layer_shape){{(input->dims[0] + spec->stride - 1) / spec->stride,
                                          (input->dims[1] + spec->stride - 1) / spec->stride, spec->filters},
                                         3,
                                         false};
    return 0;
}

static struct shortcut_shape shape_of(const struct layer_call *call)
{
    const int64_t *in = call->layer->inputs[0].dims;
    return (struct shortcut_shape){call->n, in[0], in[1], in[2], call->layer->spec.filters, call->layer->spec.stride};
}

static void forward(const struct layer_call *call)
{
    device_shortcut_forward_stored(call->stream, call->stored,
                                   &(struct shortcut_forward){shape_of(call), call->x[0], call->y});
}

static void backward(const struct layer_call *call)
{
    device_shortcut_backward_stored(call->stream, call->stored,
                                    &(struct shortcut_backward){shape_of(call), call->dy, call->dx});
}

const struct layer_kind layer_shortcut = {
    .type = LAYER_SHORTCUT,
    .input_count = 1,
    .forgets_output = true,
    .forgets_input = true,
    .resolve = resolve,
    .forward = forward,
    .backward_input = backward,
};
