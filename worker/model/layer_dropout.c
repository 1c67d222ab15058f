/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/graph.h"
#include "worker/model/layer.h"

static int resolve(struct layer *layer, struct error *error)
{
    double rate = layer->spec.rate;
    if (!(rate >= 0 && rate < 1))
        return error_set(error, ERROR_INVALID, "rate must be given, from 0 to below 1");
    if (layer->inputs[0].integral)
        return error_set(error, ERROR_INVALID, "tokens need an embedding layer first");
    layer->output = layer->inputs[0];
    return 0;
}

static void drop(const struct layer_call *call, float rate, const float *from, float *to)
{
    device_dropout_stored(call->stream, call->stored,
                          &(struct dropout){
                              .examples = call->n,
                              .elements = layer_shape_elements(&call->layer->output),
                              .x = from,
                              .y = to,
                              .rate = rate,
                              .key = call->pass->seed,
                              .layer = call->number,
                              .step = (uint32_t)call->pass->step,
                              .first_example = call->pass->first_example,
                              .values = call->pass->values,
                          });
}

static void forward(const struct layer_call *call)
{
    drop(call, call->evaluation ? 0 : (float)call->layer->spec.rate, call->x[0], call->y);
}

static void backward(const struct layer_call *call)
{
    drop(call, (float)call->layer->spec.rate, call->dy, call->dx);
}

const struct layer_kind layer_dropout = {
    .type = LAYER_DROPOUT,
    .input_count = 1,
    .forgets_output = true,
    .forgets_input = true,
    .resolve = resolve,
    .forward = forward,
    .backward_input = backward,
};
