/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/layer.h"

/* Scores of one query row and its gradient must fit a thread's scratch. */
#define CONTEXT_MAX 16384

static int resolve(struct layer *layer, struct error *error)
{
    const struct layer_shape *input = &layer->inputs[0];
    int64_t heads = layer->spec.heads;
    if (heads == FIELD_UNSET || heads < 1)
        return error_set(error, ERROR_INVALID, "heads must be given and at least 1");
    if (input->rank != 2 || input->integral || input->dims[1] % 3 != 0)
        return error_set(error, ERROR_INVALID,
                         "the layer before it must give queries, keys and values: a dense layer "
                         "over a sequence with units 3 x width");
    if (input->dims[1] / 3 % heads != 0)
        return error_set(error, ERROR_INVALID, "a width of %lld cannot be shared by %lld heads",
                         (long long)input->dims[1] / 3, (long long)heads);
    if (input->dims[0] > CONTEXT_MAX)
        return error_set(error, ERROR_INVALID, "a context of %lld is above %d", (long long)input->dims[0], CONTEXT_MAX);
    layer->output = *input;
    layer->output.dims[1] = input->dims[1] / 3;
    return 0;
}

static int check_device(const struct layer *layer, const struct device *device, enum stored stored, struct error *error)
{
    return device_check_attention(device, layer->output.dims[1] / layer->spec.heads, stored, error);
}

static void forward(const struct layer_call *call)
{
    const struct layer *layer = call->layer;
    device_attention_forward_stored(call->stream, call->stored,
                                    &(struct attention_forward){
                                        .b = call->n,
                                        .t = layer->output.dims[0],
                                        .c = layer->output.dims[1],
                                        .heads = layer->spec.heads,
                                        .qkv = call->x[0],
                                        .y = call->y,
                                        .logsumexp = call->kept,
                                        .first = call->first,
                                    });
}

static void backward_input(const struct layer_call *call)
{
    const struct layer *layer = call->layer;
    device_attention_backward_stored(call->stream, call->stored,
                                     &(struct attention_backward){
                                         .b = call->n,
                                         .t = layer->output.dims[0],
                                         .c = layer->output.dims[1],
                                         .heads = layer->spec.heads,
                                         .qkv = call->x[0],
                                         .y = call->y,
                                         .dy = call->dy,
                                         .logsumexp = call->kept,
                                         .dqkv = call->dx,
                                     });
}

static int64_t kept(const struct layer *layer, int64_t n)
{
    return n * layer->spec.heads * layer->output.dims[0];
}

/* Scores and weighted values; causality halves them. */
static double multiply_adds(const struct layer *layer)
{
    double t = (double)layer->output.dims[0];
    return t * t * (double)layer->output.dims[1];
}

const struct layer_kind layer_attention = {
    .type = LAYER_ATTENTION,
    .input_count = 1,
    .resolve = resolve,
    .check_device = check_device,
    .forward = forward,
    .backward_input = backward_input,
    .kept = kept,
    .multiply_adds = multiply_adds,
};
