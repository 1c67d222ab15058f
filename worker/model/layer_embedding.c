/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/layer.h"

enum { TOKEN, POSITION };

static int resolve(struct layer *layer, struct error *error)
{
    const struct layer_spec *spec = &layer->spec;
    if (!layer->inputs[0].integral)
        return error_set(error, ERROR_INVALID, "an embedding must be the first layer of a model over tokens");
    if (spec->size == FIELD_UNSET || spec->units == FIELD_UNSET || spec->size < 1 || spec->units < 1)
        return error_set(error, ERROR_INVALID, "size (the vocabulary) and units (the width) must be given");
    int64_t positions = layer->inputs[0].dims[0];
    layer->output = (struct layer_shape){{positions, spec->units}, 2, false};
    layer->parameters[TOKEN] = (struct layer_parameter){
        "weight", {spec->size, spec->units}, 2, START_NORMAL, spec->units, spec->units, false, false};
    layer->parameters[POSITION] = (struct layer_parameter){
        "position", {positions, spec->units}, 2, START_NORMAL, spec->units, spec->units, false, false};
    layer->parameter_count = 2;
    return 0;
}

static void forward(const struct layer_call *call)
{
    const struct layer *layer = call->layer;
    device_embedding_forward_stored(call->stream, call->stored,
                                    &(struct embedding_forward){
                                        .b = call->n,
                                        .t = layer->output.dims[0],
                                        .c = layer->output.dims[1],
                                        .vocabulary = layer->spec.size,
                                        .tokens = call->x[0],
                                        .token = call->parameters[TOKEN],
                                        .position = call->parameters[POSITION] + call->first * layer->output.dims[1],
                                        .y = call->y,
                                    });
}

static void backward_parameters(const struct layer_call *call)
{
    const struct layer *layer = call->layer;
    device_embedding_backward_stored(call->stream, call->stored,
                                     &(struct embedding_backward){
                                         .b = call->n,
                                         .t = layer->output.dims[0],
                                         .c = layer->output.dims[1],
                                         .vocabulary = layer->spec.size,
                                         .tokens = call->x[0],
                                         .dy = call->dy,
                                         .dtoken = call->gradients[TOKEN],
                                         .dposition = call->gradients[POSITION],
                                         .accumulate = call->accumulate,
                                         .token_begun = call->lent_begun,
                                     });
}

const struct layer_kind layer_embedding = {
    .type = LAYER_EMBEDDING,
    .input_count = 1,
    .forgets_output = true,
    .resolve = resolve,
    .forward = forward,
    .backward_parameters = backward_parameters,
};
