/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "common/memory.h"
#include "worker/optimizer/gradient_norm.h"
#include "worker/optimizer/optimizer.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/pipeline_parts.h"

/* ---- one gradient from those of all replicas */

static void combine_range(const struct pipeline *pipeline, const struct graph_bucket *range)
{
    const float *inputs[CREW_SIZE_MAX * REDUCTION_COVER_MAX];
    unsigned count = 0;
    for (unsigned s = 0; s < pipeline->share_count; s++)
        for (unsigned i = 0; i < pipeline->shares[s].cover_count; i++)
            inputs[count++] = pipeline->shares[s].gradients[i] + range->offset;
    reduction_plan_combine(pipeline->plan, inputs, pipeline->shares[0].gradients[0] + range->offset,
                           (size_t)range->elements);
}

/* The result lies in the first share's first gradient. */
int pipeline_reduce(struct pipeline *pipeline, struct error *error)
{
    (void)error;
    if (pipeline->shape.replicas == 1)
        return 0;
    for (unsigned u = 0; u < pipeline->shape.stages; u++)
        for (unsigned r = 0; r < pipeline->units[u].range_count; r++)
            combine_range(pipeline, &pipeline->units[u].ranges[r]);
    return 0;
}

/* ---- what the step came to */

static void sum_controls(const struct pipeline *pipeline, float *ret_controls)
{
    float controls[CREW_SIZE_MAX * REDUCTION_COVER_MAX][CONTROL_VOTES];
    const float *inputs[CREW_SIZE_MAX * REDUCTION_COVER_MAX];
    unsigned count = 0;
    for (unsigned s = 0; s < pipeline->share_count; s++) {
        pipeline_share_controls(&pipeline->shares[s], controls + count);
        count += pipeline->shares[s].cover_count;
    }
    for (unsigned i = 0; i < count; i++)
        inputs[i] = controls[i];
    reduction_plan_combine(pipeline->plan, inputs, ret_controls, CONTROL_VOTES);
}

static double target_count(const struct pipeline *pipeline)
{
    const struct example_format *format = graph_example_format(pipeline->base.options.graph);
    bool counts_tokens = format->target_type == ELEMENT_INT32;
    return (double)pipeline->examples * (counts_tokens ? (double)format->target_elements : 1.0);
}

static int measure_norm(struct pipeline *pipeline, double *ret_norm, struct error *error)
{
    const struct parameter_layout *layout = &pipeline->base.options.state->layout;
    int64_t elements = layout->elements - layout->statistics;
    gradient_norm_launch(pipeline->stream, pipeline->shares[0].gradients[0] + layout->statistics, elements,
                         pipeline->norm_blocks);
    if (device_stream_synchronise(pipeline->stream, error) < 0)
        return -1;
    *ret_norm = gradient_norm_finish(pipeline->norm_blocks, elements);
    return 0;
}

static int check_finite(const struct strategy_result *result, struct error *error)
{
    if (isfinite(result->loss) && isfinite(result->gradient_norm))
        return 0;
    return error_set(error, ERROR_NOT_FINITE,
                     "step %lld has loss %g and gradient norm %g; lower training.optimizer.learningRate, lengthen the "
                     "warm-up or set training.gradientClipNorm",
                     (long long)result->step, result->loss, result->gradient_norm);
}

static int update(struct pipeline *pipeline, double learning_rate, const struct strategy_result *result,
                  struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    struct training_state *state = options->state;
    double limit = options->gradient_clip_norm;
    struct optimizer_range range = {
        .elements = state->layout.elements,
        .statistics = state->layout.statistics,
        .parameters = state->parameters,
        .gradients = pipeline->shares[0].gradients[0],
        .step = result->step,
        .learning_rate = learning_rate,
        .gradient_scale = limit > 0 ? gradient_clip_factor(result->gradient_norm, limit) : 1.0,
    };
    memcpy(range.slots, state->slots, sizeof range.slots);
    optimizer_update(pipeline->stream, options->optimizer, &range);
    return device_stream_synchronise(pipeline->stream, error);
}

int pipeline_apply(struct pipeline *pipeline, double learning_rate, unsigned votes, struct strategy_result *ret_result,
                   struct error *error)
{
    struct training_progress *progress = &pipeline->base.options.state->progress;
    struct strategy_result result = {.step = progress->step + 1, .examples = pipeline->examples};
    float controls[CONTROL_VOTES];
    sum_controls(pipeline, controls);
    result.loss = (double)controls[CONTROL_LOSS] / target_count(pipeline);
    result.correct = (int64_t)controls[CONTROL_CORRECT];
    result.leaves[0] = (votes & STRATEGY_VOTE_LEAVE) != 0;
    result.leaving = result.leaves[0];
    result.checkpoint = (votes & STRATEGY_VOTE_CHECKPOINT) != 0;
    if (measure_norm(pipeline, &result.gradient_norm, error) < 0 || check_finite(&result, error) < 0 ||
        update(pipeline, learning_rate, &result, error) < 0)
        return -1;
    progress->step = result.step;
    pipeline_next_position(pipeline, &progress->data_epoch, &progress->examples_consumed);
    *ret_result = result;
    return 0;
}
