/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/replica_update.h"

#include <math.h>
#include <string.h>

#include "worker/model/graph.h"
#include "worker/optimizer/gradient_norm.h"
#include "worker/optimizer/optimizer.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/replica_parts.h"

static const struct parameter_layout *layout_of(const struct replica_update *update)
{
    return graph_layout(update->replicas[0]->options.graph);
}

static const float *gradient_of(const struct replica_update *update, unsigned index)
{
    return update->gradient != NULL ? update->gradient : update->replicas[index]->gradients[0];
}

/* All targets of the batch by those that count; 1 if all do. Passes divide by the number of all, since the other one is known
 * only after them. */
static double count_factor(const struct replica_update *update, double targets)
{
    double counted = (double)update->controls[CONTROL_COUNT];
    bool ignores = graph_example_format(update->replicas[0]->options.graph)->ignores;
    return ignores && counted > 0 ? targets / counted : 1;
}

void replica_update_read(const struct replica_update *update, struct strategy_result *result)
{
    result->examples = update->replicas[0]->examples;
    double targets = replica_target_count(update->replicas[0], result->examples);
    result->count_factor = count_factor(update, targets);
    result->loss = (double)update->controls[CONTROL_LOSS] / targets * result->count_factor;
    result->correct = (int64_t)update->controls[CONTROL_CORRECT];
    strategy_result_votes(result, update->controls + CONTROL_VOTES, update->size);
}

static int synchronise(const struct replica_update *update, struct error *error)
{
    for (unsigned i = 0; i < update->count; i++)
        if (device_stream_synchronise(update->replicas[i]->stream, error) < 0)
            return -1;
    return 0;
}

/* Where slice `index` begins: at a block of the norm, which counts from behind the running statistics. */
static int64_t slice_start(const struct parameter_layout *layout, unsigned index, unsigned count)
{
    int64_t blocks = gradient_norm_blocks(layout->elements - layout->statistics);
    int64_t start = layout->statistics + blocks * index / count * SQUARE_SUM_BLOCK;
    if (index == 0)
        return 0;
    return start < layout->elements ? start : layout->elements;
}

void replica_slice(const struct parameter_layout *layout, unsigned index, unsigned count, int64_t *ret_first,
                   int64_t *ret_end)
{
    *ret_first = slice_start(layout, index, count);
    *ret_end = index + 1 == count ? layout->elements : slice_start(layout, index + 1, count);
}

/* The replicas share the work on the blocks' sums. The sums are added in order, so the norm does not depend on which replica computed
 * which. */
static int measure_norm(const struct replica_update *update, struct strategy_result *result, struct error *error)
{
    const struct parameter_layout *layout = layout_of(update);
    double *sums = update->replicas[0]->norm_blocks;
    for (unsigned i = 0; i < update->count; i++) {
        int64_t first, end;
        replica_slice(layout, i, update->count, &first, &end);
        first = first > layout->statistics ? first : layout->statistics;
        if (first < end)
            gradient_norm_launch(update->replicas[i]->stream, gradient_of(update, i) + first, end - first,
                                 sums + (first - layout->statistics) / SQUARE_SUM_BLOCK);
    }
    if (synchronise(update, error) < 0)
        return -1;
    result->gradient_norm = gradient_norm_finish(sums, layout->elements - layout->statistics) /
                            strategy_loss_scale(&update->replicas[0]->options) * result->count_factor;
    return 0;
}

static void start_update(const struct replica_update *update, unsigned index, const struct strategy_result *result)
{
    const struct replica *replica = update->replicas[index];
    const struct training_state *state = replica->options.state;
    double limit = replica->options.gradient_clip_norm;
    int64_t first = 0, end = layout_of(update)->elements;
    if (update->shares_variables)
        replica_slice(layout_of(update), index, update->count, &first, &end);
    struct optimizer_range range = {.offset = first,
                                    .elements = end - first,
                                    .statistics = layout_of(update)->statistics,
                                    .parameters = state->parameters,
                                    .gradients = gradient_of(update, index),
                                    .step = result->step - state->progress.scaling.skipped_steps,
                                    .learning_rate = update->learning_rate,
                                    .gradient_scale =
                                        (limit > 0 ? gradient_clip_factor(result->gradient_norm, limit) : 1.0) /
                                        strategy_loss_scale(&replica->options) * result->count_factor};
    memcpy(range.slots, state->slots, sizeof(range.slots));
    if (first < end)
        optimizer_update(replica->stream, replica->options.optimizer, &range);
}

void replica_update_advance(const struct replica_update *update, int64_t step)
{
    struct training_progress *progress = &update->replicas[0]->options.state->progress;
    progress->step = step;
    replica_next_position(update->replicas[0], &progress->data_epoch, &progress->examples_consumed);
    for (unsigned i = 1; i < update->count; i++)
        update->replicas[i]->options.state->progress = *progress;
}

void replica_update_rescale(const struct replica_update *update, bool skipped)
{
    const struct graph *graph = update->replicas[0]->options.graph;
    struct loss_scaling scaling = update->replicas[0]->options.state->progress.scaling;
    loss_scaling_follow(&scaling, graph_precision(graph), skipped);
    for (unsigned i = 0; i < update->count; i++)
        update->replicas[i]->options.state->progress.scaling = scaling;
}

int replica_update(const struct replica_update *update, struct strategy_result *ret_result, struct error *error)
{
    struct strategy_result result = {.step = update->replicas[0]->options.state->progress.step + 1};
    replica_update_read(update, &result);
    if (measure_norm(update, &result, error) < 0 || strategy_judge(&update->replicas[0]->options, &result, error) < 0)
        return -1;
    strategy_leave_boundary(&update->replicas[0]->options);
    for (unsigned i = 0; !result.skipped && i < (update->first_updates ? 1 : update->count); i++)
        start_update(update, i, &result);
    if (synchronise(update, error) < 0)
        return -1;
    replica_update_advance(update, result.step);
    replica_update_rescale(update, result.skipped);
    *ret_result = result;
    return 0;
}

int replica_apply(struct replica *replica, double learning_rate, const float *controls, unsigned size,
                  struct strategy_result *ret_result, struct error *error)
{
    const struct replica_update update = {.replicas = &replica,
                                          .count = 1,
                                          .gradient = replica->gradients[0],
                                          .learning_rate = learning_rate,
                                          .controls = controls,
                                          .size = size};
    return replica_update(&update, ret_result, error);
}
