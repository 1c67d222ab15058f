/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/graph.h"
#include "worker/model/normalisation.h"

enum { WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VARIANCE };

static int resolve(struct layer *layer, struct error *error)
{
    if (normalisation_resolve(layer, error) < 0)
        return -1;
    int64_t c = normalisation_width(layer);
    layer->parameters[RUNNING_MEAN] = (struct layer_parameter){"running_mean", {c}, 1, START_ZERO, 0, 0, true, false};
    layer->parameters[RUNNING_VARIANCE] = (struct layer_parameter){"running_var", {c}, 1, START_ONE, 0, 0, true, false};
    layer->parameter_count = 4;
    return 0;
}

static struct batch_norm_peers peers_of(const struct layer_call *call)
{
    bool global = call->layer->spec.statistics == STATISTICS_GLOBAL;
    return (struct batch_norm_peers){
        .exchange = global ? call->pass->exchange : NULL, .shard = call->pass->shard, .layer = call->number};
}

/* Returns the sum's other input. */
static const float *past_of(const struct layer_call *sum)
{
    return sum->x[0] ? sum->x[0] : sum->x[1];
}

static void infer(const struct layer_call *call, const struct layer_call *sum)
{
    const struct layer_call *last = sum ? sum : call;
    device_batch_norm_inference_stored(
        call->stream, call->stored,
        &(struct batch_norm_inference){.rows = normalisation_rows(call->layer, call->n),
                                       .c = normalisation_width(call->layer),
                                       .x = call->x[0],
                                       .weight = call->parameters[WEIGHT],
                                       .bias = call->parameters[BIAS],
                                       .running_mean = call->parameters[RUNNING_MEAN],
                                       .running_variance = call->parameters[RUNNING_VARIANCE],
                                       .y = last->y,
                                       .activation = last->layer->applies_relu ? ACTIVATION_RELU : ACTIVATION_NONE,
                                       .past = sum ? past_of(sum) : NULL});
}

void batch_norm_run(const struct layer_call *call, const struct layer_call *sum)
{
    const struct layer_call *last = sum ? sum : call;
    int64_t c = normalisation_width(call->layer);
    if (call->evaluation) {
        infer(call, sum);
        return;
    }
    device_batch_norm_forward_stored(
        call->stream, call->stored,
        &(struct batch_norm_forward){.rows = normalisation_rows(call->layer, call->n),
                                     .c = c,
                                     .x = call->x[0],
                                     .weight = call->parameters[WEIGHT],
                                     .bias = call->parameters[BIAS],
                                     .y = last->y,
                                     .mean = call->kept,
                                     .rstd = call->kept + c,
                                     .variance = call->kept + 2 * c,
                                     .workspace = call->workspace,
                                     .activation = last->layer->applies_relu ? ACTIVATION_RELU : ACTIVATION_NONE,
                                     .peers = peers_of(call),
                                     .past = sum ? past_of(sum) : NULL});
}

static void forward(const struct layer_call *call)
{
    batch_norm_run(call, NULL);
}

static void backward(const struct layer_call *call)
{
    double momentum = call->layer->spec.momentum;
    const bool masks = call->layer->masks_gradient;
    int64_t c = normalisation_width(call->layer);
    device_batch_norm_backward_stored(call->stream, call->stored,
                                      &(struct batch_norm_backward){
                                          .rows = normalisation_rows(call->layer, call->n),
                                          .c = c,
                                          .x = call->x[0],
                                          .weight = call->parameters[WEIGHT],
                                          .mean = call->kept,
                                          .rstd = call->kept + c,
                                          .variance = call->kept + 2 * c,
                                          .dy = call->dy,
                                          .dx = call->dx,
                                          .dweight = call->gradients[WEIGHT],
                                          .dbias = call->gradients[BIAS],
                                          .running_mean = call->parameters[RUNNING_MEAN],
                                          .running_variance = call->parameters[RUNNING_VARIANCE],
                                          .mean_step = call->gradients[RUNNING_MEAN],
                                          .variance_step = call->gradients[RUNNING_VARIANCE],
                                          .momentum = (float)(momentum > 0 ? momentum : NORMALISATION_MOMENTUM),
                                          .share = call->share,
                                          .workspace = call->workspace,
                                          .accumulate = call->accumulate,
                                          .peers = peers_of(call),
                                          .bias = call->parameters[BIAS],
                                          .activation = masks ? ACTIVATION_RELU : ACTIVATION_NONE,
                                          .relu_output = call->relu_output,
                                          .others = call->others,
                                          .masked = call->masked,
                                      });
}

static int64_t kept(const struct layer *layer, int64_t n)
{
    (void)n;
    return 3 * normalisation_width(layer);
}

static int64_t workspace(const struct layer *layer, int64_t n)
{
    return batch_norm_workspace(normalisation_rows(layer, n), normalisation_width(layer));
}

const struct layer_kind layer_batch_norm = {
    .type = LAYER_BATCH_NORM,
    .input_count = 1,
    .can_apply_relu = true,
    .can_mask_gradient = true,
    .forgets_output = true,
    .resolve = resolve,
    .forward = forward,
    .backward_parameters = backward,
    .kept = kept,
    .workspace = workspace,
};
