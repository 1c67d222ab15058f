/* SPDX-License-Identifier: Apache-2.0
 *
 * Pipeline: the model's layers on different devices, and the batch in
 * micro-batches that follow one another through them. A micro-batch is a logical
 * shard, so that the gradients are summed in the same tree as on one device.
 */
#include <string.h>

#include "common/memory.h"
#include "worker/data/dataset.h"
#include "worker/model/layer_cost.h"
#include "worker/optimizer/gradient_norm.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/pipeline_parts.h"

#define PROFILE_EXAMPLES 8

/* ---------------------------------------------------------------- stages */

static int partition_by_measure(struct pipeline *pipeline, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    SCOPED_FREE double *costs = memory_allocate(graph_layer_count(options->graph), sizeof *costs);
    int64_t examples = graph_max_examples(options->graph);
    if (examples > PROFILE_EXAMPLES)
        examples = PROFILE_EXAMPLES;
    if (layer_costs_measure(options->graph, options->device, examples, costs, error) < 0)
        return -1;
    return partition_by_cost(options->graph, pipeline->shape.stages, costs, &pipeline->partition, error);
}

static int choose_partition(struct pipeline *pipeline, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    if (partition_is_given(options->graph))
        return partition_given(options->graph, pipeline->shape.stages, &pipeline->partition, error);
    return partition_by_measure(pipeline, error);
}

static int take_shape(struct pipeline *pipeline, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    unsigned devices = options->device_count > 0 ? options->device_count : 1;
    unsigned stages = options->stages > 0 ? options->stages : devices;
    if (devices % stages != 0 || stages > STAGES_MAX)
        return error_set(error, ERROR_INVALID, "strategy.stages: %u stages do not divide %u devices", stages, devices);
    pipeline->shape = (struct pipeline_shape){.stages = stages, .replicas = devices / stages, .devices = devices};
    return 0;
}

static int check_shards(const struct pipeline *pipeline, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    unsigned shards = pipeline->base.world.logical_shards;
    int64_t largest = (options->global_batch + shards - 1) / shards;
    if (dataset_count(options->dataset) < 1)
        return error_set(error, ERROR_INVALID, "there are no training examples");
    if (shards < pipeline->shape.replicas)
        return error_set(error, ERROR_INVALID, "%u micro-batches are too few for %u replicas; give each at least one",
                         shards, pipeline->shape.replicas);
    if (largest > graph_max_examples(options->graph))
        return error_set(error, ERROR_INVALID,
                         "a micro-batch of %lld examples does not fit a graph planned for %lld; do all workers have "
                         "the same job document?",
                         (long long)largest, (long long)graph_max_examples(options->graph));
    return 0;
}

static struct device *device_of(const struct pipeline *pipeline, unsigned unit)
{
    const struct strategy_options *options = &pipeline->base.options;
    return options->devices ? options->devices[unit].device : options->device;
}

static int open_units(struct pipeline *pipeline, struct error *error)
{
    const struct pipeline_shape *shape = &pipeline->shape;
    unsigned first = shape->rank * shape->devices;
    pipeline->units = memory_allocate(shape->devices, sizeof *pipeline->units);
    pipeline->shares = memory_allocate(shape->devices, sizeof *pipeline->shares);
    for (unsigned i = 0; i < shape->devices; i++)
        pipeline->holds[(first + i) % shape->stages] = true;
    for (unsigned i = 0; i < shape->devices; i++) {
        unsigned share = (first + i) / shape->stages - first / shape->stages;
        pipeline->share_count = share + 1;
        pipeline->unit_count++;
        if (pipeline_unit_init(pipeline, &pipeline->units[i], (first + i) % shape->stages, &pipeline->shares[share],
                               device_of(pipeline, i), error) < 0)
            return -1;
    }
    for (unsigned s = 0; s < pipeline->share_count; s++)
        if (pipeline_share_init(pipeline, &pipeline->shares[s], first / shape->stages + s, error) < 0)
            return -1;
    return 0;
}

static int open_update(struct pipeline *pipeline, struct error *error)
{
    struct device *device = pipeline->base.options.device;
    int64_t blocks = gradient_norm_blocks(pipeline->base.options.state->layout.elements);
    if (reduction_plan_new(pipeline->base.world.logical_shards, pipeline->shape.replicas, &pipeline->plan, error) < 0 ||
        device_stream_new(device, &pipeline->stream, error) < 0)
        return -1;
    return device_allocate(device, MEMORY_SHARED, (size_t)blocks * sizeof(double), (void **)&pipeline->norm_blocks,
                           error);
}

/* ---------------------------------------------------------------- a step */

static int read_shares(struct pipeline *pipeline, bool ahead, int64_t data_epoch, int64_t position, struct error *error)
{
    for (unsigned s = 0; s < pipeline->share_count; s++)
        if (pipeline_share_read(pipeline, &pipeline->shares[s], ahead, data_epoch, position, error) < 0)
            return -1;
    return 0;
}

static double target_count(const struct pipeline *pipeline)
{
    const struct example_format *format = graph_example_format(pipeline->base.options.graph);
    bool counts_tokens = format->target_type == ELEMENT_INT32;
    return (double)pipeline->examples * (counts_tokens ? (double)format->target_elements : 1.0);
}

/* Reads the next batch while the units work on this one. */
static int run_batch(struct pipeline *pipeline, struct error *error)
{
    const struct training_progress *progress = &pipeline->base.options.state->progress;
    int64_t data_epoch = progress->data_epoch, position = progress->examples_consumed;
    pipeline->examples = pipeline_batch_size(pipeline, position);
    if (read_shares(pipeline, false, data_epoch, position, error) < 0)
        return -1;
    for (unsigned s = 0; s < pipeline->share_count; s++)
        pipeline_share_cut(pipeline, &pipeline->shares[s]);
    pipeline_start(pipeline, false, (float)(1.0 / target_count(pipeline)));
    pipeline_next_position(pipeline, &data_epoch, &position);
    int read = read_shares(pipeline, true, data_epoch, position, error);
    return pipeline_await(pipeline, read == 0 ? error : NULL) < 0 ? -1 : read;
}

static int pipeline_step(struct strategy *base, double learning_rate, unsigned votes,
                         struct strategy_result *ret_result, struct error *error)
{
    struct pipeline *pipeline = (struct pipeline *)base;
    if (run_batch(pipeline, error) < 0 || pipeline_reduce(pipeline, error) < 0)
        return -1;
    return pipeline_apply(pipeline, learning_rate, votes, ret_result, error);
}

/* ---------------------------------------------------------------- evaluation */

/* As many examples as the batch's memory holds, in pieces of the graph's maximum, as evaluation.c cuts them. */
static int evaluate_part(struct pipeline *pipeline, const struct dataset *dataset, int64_t first, int64_t count,
                         struct loss_sums *total, struct error *error)
{
    struct pipeline_share *share = &pipeline->shares[0];
    struct pipeline_batch *batch = &share->batches[!share->current];
    batch->filled = false;
    for (int64_t i = 0; i < count; i++)
        share->indices[i] = first + i;
    if (share->reads && dataset_read(dataset, share->indices, count, batch->inputs, batch->targets, error) < 0)
        return -1;
    for (unsigned s = 0; s < pipeline->share_count; s++)
        pipeline->shares[s].piece_count = 0;
    pipeline_share_cut_evenly(share, count, graph_max_examples(pipeline->base.options.graph));
    share->batch = batch;
    pipeline_start(pipeline, true, 0);
    if (pipeline_await(pipeline, error) < 0)
        return -1;
    for (unsigned i = 0; i < share->piece_count; i++) {
        total->loss += share->sums[i].loss;
        total->correct += share->sums[i].correct;
        total->count += share->sums[i].count;
    }
    return 0;
}

static int pipeline_evaluate(struct strategy *base, const struct dataset *dataset, int64_t first, int64_t count,
                             struct loss_sums *ret_sums, struct error *error)
{
    struct pipeline *pipeline = (struct pipeline *)base;
    int64_t most = graph_max_examples(base->options.graph);
    most = pipeline->shares[0].max_examples / most * most;
    struct loss_sums total = {0};
    for (int64_t at = first; at < first + count; at += most) {
        int64_t length = first + count - at < most ? first + count - at : most;
        if (evaluate_part(pipeline, dataset, at, length, &total, error) < 0)
            return -1;
    }
    *ret_sums = total;
    return 0;
}

/* ---------------------------------------------------------------- small host values */

static int pipeline_sum(struct strategy *base, double *values, unsigned count, struct error *error)
{
    (void)base, (void)values, (void)count, (void)error;
    return 0;
}

static int pipeline_share_bytes(struct strategy *base, void *bytes, size_t length, struct error *error)
{
    (void)base, (void)bytes, (void)length, (void)error;
    return 0;
}

/* ---------------------------------------------------------------- life cycle */

static int pipeline_reform(struct strategy *base, struct error *error)
{
    if (!base->holds_state && base->options.restore(base->options.context, error) < 0)
        return -1;
    base->holds_state = true;
    return 0;
}

static void end_units(struct pipeline *pipeline)
{
    pthread_mutex_lock(&pipeline->lock);
    pipeline->over = true;
    pthread_cond_broadcast(&pipeline->changed);
    pthread_mutex_unlock(&pipeline->lock);
    for (unsigned i = 0; i < pipeline->unit_count; i++)
        pipeline_unit_release(&pipeline->units[i]);
    for (unsigned s = 0; s < pipeline->share_count; s++)
        pipeline_share_release(pipeline, &pipeline->shares[s]);
}

static void pipeline_close(struct strategy *base)
{
    struct pipeline *pipeline = (struct pipeline *)base;
    end_units(pipeline);
    if (pipeline->stream)
        device_stream_free(pipeline->stream);
    device_free(base->options.device, pipeline->norm_blocks);
    reduction_plan_free(pipeline->plan);
    partition_release(&pipeline->partition);
    pthread_cond_destroy(&pipeline->changed);
    pthread_mutex_destroy(&pipeline->lock);
    free(pipeline->units);
    free(pipeline->shares);
    free(pipeline);
}

static int pipeline_open(const struct strategy_options *options, struct strategy **ret_strategy, struct error *error)
{
    struct pipeline *pipeline = memory_allocate(1, sizeof *pipeline);
    pipeline->base.options = *options;
    pipeline->base.end_shard = options->logical_shards;
    pipeline->base.world = (struct world){.size = 1, .logical_shards = options->logical_shards};
    pthread_mutex_init(&pipeline->lock, NULL);
    pthread_cond_init(&pipeline->changed, NULL);
    if (take_shape(pipeline, error) < 0 || check_shards(pipeline, error) < 0 || choose_partition(pipeline, error) < 0 ||
        open_units(pipeline, error) < 0 || open_update(pipeline, error) < 0) {
        pipeline_close(&pipeline->base);
        return -1;
    }
    *ret_strategy = &pipeline->base;
    return 0;
}

const struct strategy_operations pipeline_strategy = {
    .type = STRATEGY_PIPELINE,
    .open = pipeline_open,
    .reform = pipeline_reform,
    .step = pipeline_step,
    .sum = pipeline_sum,
    .share = pipeline_share_bytes,
    .evaluate = pipeline_evaluate,
    .close = pipeline_close,
};
