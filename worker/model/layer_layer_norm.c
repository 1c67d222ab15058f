/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/normalisation.h"

enum { WEIGHT, BIAS };

void layer_norm_run(const struct layer_call *call, const struct layer_call *sum)
{
    int64_t r = normalisation_rows(call->layer, call->n);
    device_layer_norm_forward_stored(call->stream, call->stored,
                                     &(struct layer_norm_forward){
                                         .rows = r,
                                         .c = normalisation_width(call->layer),
                                         .x = sum != NULL ? sum->x[0] : call->x[0],
                                         .weight = call->parameters[WEIGHT],
                                         .bias = call->parameters[BIAS],
                                         .y = call->y,
                                         .mean = call->kept,
                                         .rstd = call->kept + r,
                                         .past = sum != NULL ? sum->x[1] : NULL,
                                         .sum = sum != NULL ? sum->y : NULL,
                                     });
}

static void forward(const struct layer_call *call)
{
    layer_norm_run(call, NULL);
}

static void backward(const struct layer_call *call)
{
    int64_t r = normalisation_rows(call->layer, call->n);
    device_layer_norm_backward_stored(call->stream, call->stored,
                                      &(struct layer_norm_backward){
                                          .rows = r,
                                          .c = normalisation_width(call->layer),
                                          .x = call->x[0],
                                          .weight = call->parameters[WEIGHT],
                                          .mean = call->kept,
                                          .rstd = call->kept + r,
                                          .dy = call->dy,
                                          .dx = call->dx,
                                          .dweight = call->gradients[WEIGHT],
                                          .dbias = call->gradients[BIAS],
                                          .workspace = call->workspace,
                                          .accumulate = call->accumulate,
                                          .add = call->add_dx,
                                      });
}

static int64_t kept(const struct layer *layer, int64_t n)
{
    return 2 * normalisation_rows(layer, n);
}

static int64_t workspace(const struct layer *layer, int64_t n)
{
    return layer_norm_workspace(normalisation_rows(layer, n), normalisation_width(layer));
}

const struct layer_kind layer_layer_norm = {
    .type = LAYER_LAYER_NORM,
    .input_count = 1,
    .adds_gradient = true,
    .forgets_output = true,
    .repeats = true,
    .resolve = normalisation_resolve,
    .forward = forward,
    .backward_parameters = backward,
    .kept = kept,
    .workspace = workspace,
};
