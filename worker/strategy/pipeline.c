/* SPDX-License-Identifier: Apache-2.0
 *
 * Pipeline: the model's layers on different devices, and the batch in
 * micro-batches that follow one another through them. A micro-batch is a logical
 * shard, so that the gradients are summed in the same tree as on one device.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/data/dataset.h"
#include "worker/data/sampler.h"
#include "worker/model/layer_cost.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/crew_communicator.h"
#include "worker/strategy/crew_group.h"
#include "worker/strategy/device_pairs.h"
#include "worker/strategy/pipeline_parts.h"

#define PROFILE_EXAMPLES 8

/* ---------------------------------------------------------------- stages */

int pipeline_measure_partition(struct pipeline *pipeline, struct error *error)
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

/* As the layers say, else as the checkpoint to go on from was, else not yet. */
static int take_known_partition(struct pipeline *pipeline, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    unsigned stages = pipeline->shape.stages;
    if (partition_is_given(options->graph))
        return partition_given(options->graph, stages, &pipeline->partition, error);
    if (options->pipeline.recorded_stages && options->pipeline.recorded_layers == graph_layer_count(options->graph))
        (void)partition_from_list(options->graph, stages, options->pipeline.recorded_stages, &pipeline->partition,
                                  NULL);
    return 0;
}

static int take_shape(struct pipeline *pipeline, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    unsigned devices = options->device_count > 0 ? options->device_count : 1;
    unsigned size = options->crew.size > 0 ? options->crew.size : 1, all = size * devices;
    unsigned stages = options->pipeline.stages > 0 ? options->pipeline.stages : all;
    if (all % stages != 0 || stages > STAGES_MAX)
        return error_set(error, ERROR_INVALID, "strategy.stages: %u stages do not divide %u devices (at most %d)",
                         stages, all, STAGES_MAX);
    if (stages % devices != 0 && devices % stages != 0)
        return error_set(error, ERROR_INVALID,
                         "strategy.stages: %u stages and %u devices a worker: one must divide the other, so that a "
                         "worker holds whole stages or whole replicas",
                         stages, devices);
    pipeline->shape = (struct pipeline_shape){
        .stages = stages, .replicas = all / stages, .devices = devices, .size = size, .rank = options->crew.rank};
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
        return error_set(
            error, ERROR_INVALID,
            "micro-batches have %lld examples, but this worker planned memory for %lld; do all workers have "
            "the same job document?",
            (long long)largest, (long long)graph_max_examples(options->graph));
    return 0;
}

static struct device *device_of(const struct pipeline *pipeline, unsigned unit)
{
    const struct strategy_options *options = &pipeline->base.options;
    return options->devices ? options->devices[unit].device : options->device;
}

unsigned pipeline_most_micro_batches(const struct pipeline *pipeline)
{
    return (pipeline->base.world.logical_shards + pipeline->shape.replicas - 1) / pipeline->shape.replicas;
}

/* Returns the store for the lane's stage, which it has alone or shares with the others of its share. The layout follows when units have
 * graphs. */
static struct pipeline_store *place_stage(struct pipeline *pipeline, unsigned lane, unsigned share, unsigned stage)
{
    bool parted = pipeline_is_parted(pipeline);
    unsigned number = parted ? lane : share;
    struct pipeline_store *store = &pipeline->stores[number];
    pipeline->store_count = number + 1;
    store->share = &pipeline->shares[share];
    store->part = parted ? lane : 0;
    store->device = parted ? device_of(pipeline, lane) : pipeline->base.options.device;
    store->holds[stage] = true;
    return store;
}

static void connect_pair(struct pipeline *pipeline, struct device *one, struct device *other)
{
    if (!device_pair_try(&pipeline->base.options, one, other))
        crew_communicator_avoid(pipeline->devices);
}

/* Lets data that crosses between GPUs of this process go directly from one to the other if possible. */
static void connect_lanes(struct pipeline *pipeline)
{
    if (!pipeline_is_parted(pipeline) || pipeline->plan_only)
        return;
    for (unsigned b = 0; b < pipeline->lane_count; b++)
        for (unsigned a = 0; a < b; a++)
            if (pipeline->lanes[a].share == pipeline->lanes[b].share)
                connect_pair(pipeline, pipeline->lanes[a].device, pipeline->lanes[b].device);
}

static int make_lanes(struct pipeline *pipeline, struct error *error)
{
    const struct pipeline_shape *shape = &pipeline->shape;
    unsigned first = shape->rank * shape->devices;
    pipeline->lanes = memory_allocate(shape->devices, sizeof *pipeline->lanes);
    pipeline->shares = memory_allocate(shape->devices, sizeof *pipeline->shares);
    pipeline->stores = memory_allocate(shape->devices, sizeof *pipeline->stores);
    for (unsigned i = 0; i < shape->devices; i++) {
        unsigned share = (first + i) / shape->stages - first / shape->stages, stage = (first + i) % shape->stages;
        struct pipeline_store *store = place_stage(pipeline, i, share, stage);
        pipeline->share_count = share + 1;
        pipeline->lane_count++;
        if (pipeline_lane_init(pipeline, &pipeline->lanes[i], stage, store, device_of(pipeline, i), error) < 0)
            return -1;
    }
    connect_lanes(pipeline);
    return 0;
}

/* The parts of every lane's stage. */
static int make_units(struct pipeline *pipeline, struct error *error)
{
    const struct graph_partition *partition = &pipeline->partition;
    pipeline->units = memory_allocate((size_t)pipeline->lane_count * partition->parts, sizeof *pipeline->units);
    for (unsigned s = 0; s < pipeline->share_count; s++)
        pipeline->shares[s].units = memory_allocate(partition->parts, sizeof(struct pipeline_unit *));
    for (unsigned i = 0; i < pipeline->lane_count; i++)
        for (unsigned p = 0; p < partition->parts; p++) {
            const struct pipeline_lane *lane = &pipeline->lanes[i];
            struct pipeline_unit *unit = &pipeline->units[pipeline->unit_count];
            if (partition->stage_of_part[p] != lane->stage)
                continue;
            pipeline->unit_count++;
            if (pipeline_unit_init(pipeline, unit, lane, p, error) < 0)
                return -1;
            lane->share->units[p] = unit;
            lane->store->layout = graph_layout(unit->graph);
        }
    return 0;
}

static int start_lanes(struct pipeline *pipeline, struct error *error)
{
    for (unsigned i = 0; i < pipeline->lane_count; i++)
        if (pipeline_lane_start(&pipeline->lanes[i], error) < 0)
            return -1;
    return 0;
}

/* Where stores have stages of their own, those of the process are in no unit's layout. */
static int make_layout(struct pipeline *pipeline, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    bool holds[STAGES_MAX] = {false};
    if (!pipeline_is_parted(pipeline))
        return 0;
    for (unsigned i = 0; i < pipeline->lane_count; i++)
        holds[pipeline->lanes[i].stage] = true;
    const struct graph_options held = {
        .device = options->device,
        .model = options->pipeline.model,
        .precision = graph_precision(options->graph),
        .max_examples = graph_max_examples(options->graph),
        .partition = &pipeline->partition,
        .held = holds,
        .slots = 1,
        .layout_only = true,
    };
    return graph_new(&held, &pipeline->held, error);
}

const struct parameter_layout *pipeline_layout(const struct pipeline *pipeline)
{
    return graph_layout(pipeline->held != NULL ? pipeline->held : pipeline->units[0].graph);
}

static int make_state_in_parts(const struct pipeline *pipeline, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    SCOPED_FREE struct state_part *parts = memory_allocate(pipeline->store_count, sizeof *parts);
    for (unsigned i = 0; i < pipeline->store_count; i++)
        parts[i] = (struct state_part){.device = pipeline->stores[i].device, .layout = pipeline->stores[i].layout};
    return training_state_init_parts(options->state, parts, pipeline->store_count, pipeline_layout(pipeline),
                                     options->optimizer, (int64_t)options->sampler->seed, error);
}

bool pipeline_makes_state(const struct pipeline *pipeline)
{
    const struct pipeline_shape *shape = &pipeline->shape;
    return strategy_makes_state(STRATEGY_PIPELINE, shape->size, pipeline->base.options.device, shape->devices);
}

/* That of the stages here: its layout is known only now. */
int pipeline_make_state(const struct pipeline *pipeline, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    if (!pipeline_makes_state(pipeline))
        return 0;
    training_state_release(options->state);
    if (pipeline_is_parted(pipeline))
        return make_state_in_parts(pipeline, error);
    return training_state_init(options->state, options->device, pipeline_layout(pipeline), options->optimizer,
                               (int64_t)options->sampler->seed, error);
}

static unsigned first_replica(const struct pipeline *pipeline)
{
    return pipeline->shape.rank * pipeline->shape.devices / pipeline->shape.stages;
}

static void measure_shares(struct pipeline *pipeline)
{
    for (unsigned s = 0; s < pipeline->share_count; s++)
        pipeline_share_measure(pipeline, &pipeline->shares[s], first_replica(pipeline) + s);
}

static int make_shares(struct pipeline *pipeline, struct error *error)
{
    measure_shares(pipeline);
    for (unsigned i = 0; i < pipeline->store_count; i++)
        if (pipeline_store_init(&pipeline->stores[i], error) < 0)
            return -1;
    for (unsigned s = 0; s < pipeline->share_count; s++)
        if (pipeline_share_init(pipeline, &pipeline->shares[s], error) < 0)
            return -1;
    return 0;
}

static int make_update(struct pipeline *pipeline, struct error *error)
{
    if (reduction_plan_new(pipeline->base.world.logical_shards, pipeline->shape.replicas, &pipeline->plan, error) < 0)
        return -1;
    return pipeline_blocks_new(pipeline, &pipeline->blocks, error);
}

int pipeline_outline(struct pipeline *pipeline, struct error *error)
{
    pipeline->plan_only = true;
    if (make_lanes(pipeline, error) < 0 || make_units(pipeline, error) < 0 || make_layout(pipeline, error) < 0)
        return -1;
    measure_shares(pipeline);
    return 0;
}

/* The memory plan does not include what a crew's process holds of earlier stages, so that is freed first. */
int pipeline_check_room(const struct pipeline *pipeline, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    if (pipeline->shape.size > 1)
        training_state_release(options->state);
    if (options->calls.check_stages == NULL)
        return 0;
    return options->calls.check_stages(options->calls.context, pipeline->partition.stage_of, pipeline->partition.layers,
                                       error);
}

int pipeline_open_units(struct pipeline *pipeline, struct error *error)
{
    if (check_shards(pipeline, error) < 0 || make_lanes(pipeline, error) < 0 || make_units(pipeline, error) < 0 ||
        make_layout(pipeline, error) < 0 || pipeline_make_state(pipeline, error) < 0 ||
        make_shares(pipeline, error) < 0 || make_update(pipeline, error) < 0 ||
        pipeline_passing_open(pipeline, error) < 0)
        return -1;
    return start_lanes(pipeline, error);
}

void pipeline_close_units(struct pipeline *pipeline)
{
    pthread_mutex_lock(&pipeline->lock);
    pipeline->over = true;
    pthread_cond_broadcast(&pipeline->changed);
    pthread_mutex_unlock(&pipeline->lock);
    for (unsigned i = 0; i < pipeline->lane_count; i++)
        pipeline_lane_stop(&pipeline->lanes[i]);
    pipeline_forget_devices(pipeline);
    for (unsigned i = 0; i < pipeline->unit_count; i++)
        pipeline_unit_release(&pipeline->units[i]);
    for (unsigned i = 0; i < pipeline->lane_count; i++)
        pipeline_lane_release(&pipeline->lanes[i]);
    for (unsigned s = 0; s < pipeline->share_count; s++)
        pipeline_share_release(pipeline, &pipeline->shares[s]);
    for (unsigned i = 0; i < pipeline->store_count; i++)
        pipeline_store_release(&pipeline->stores[i]);
    pipeline_blocks_free(pipeline, pipeline->blocks);
    reduction_plan_free(pipeline->plan);
    free(pipeline->units);
    free(pipeline->lanes);
    free(pipeline->shares);
    free(pipeline->stores);
    graph_free(pipeline->held);
    pipeline->units = NULL;
    pipeline->lanes = NULL;
    pipeline->shares = NULL;
    pipeline->stores = NULL;
    pipeline->held = NULL;
    pipeline->unit_count = pipeline->lane_count = pipeline->share_count = pipeline->store_count = 0;
    pipeline->blocks = NULL;
    pipeline->plan = NULL;
    pipeline->run = 0;
    pipeline->over = false;
    pipeline->verge = (struct pipeline_verge){0};
}

/* ---------------------------------------------------------------- a step */

static int read_shares(struct pipeline *pipeline, bool ahead, int64_t data_epoch, int64_t position, struct error *error)
{
    int64_t begun = clock_monotonic_ns();
    for (unsigned s = 0; s < pipeline->share_count; s++)
        if (pipeline_share_read(pipeline, &pipeline->shares[s], ahead, data_epoch, position, error) < 0)
            return -1;
    pipeline->read_ns += clock_monotonic_ns() - begun;
    return 0;
}

/* Reads the next batch while the units work on this one. */
static int run_batch(struct pipeline *pipeline, struct error *error)
{
    const struct training_progress *progress = &pipeline->base.options.state->progress;
    int64_t data_epoch = progress->data_epoch, position = progress->examples_consumed;
    pipeline->examples = pipeline_batch_size(pipeline, position);
    pipeline->read_ns = 0;
    if (read_shares(pipeline, false, data_epoch, position, error) < 0)
        return -1;
    for (unsigned s = 0; s < pipeline->share_count; s++)
        pipeline_share_cut(pipeline, &pipeline->shares[s]);
    pipeline_start(pipeline, false, (float)(1.0 / pipeline_target_count(pipeline)));
    pipeline_next_position(pipeline, &data_epoch, &position);
    int read = read_shares(pipeline, true, data_epoch, position, error);
    return pipeline_await(pipeline, read == 0 ? error : NULL) < 0 ? -1 : read;
}

static int check_formed(const struct pipeline *pipeline, struct error *error)
{
    if (pipeline->shape.size > 1 && pipeline->group == NULL)
        return error_set(error, ERROR_UNAVAILABLE, "the crew is not formed");
    return 0;
}

static int pipeline_step(struct strategy *base, double learning_rate, unsigned votes,
                         struct strategy_result *ret_result, struct error *error)
{
    struct pipeline *pipeline = (struct pipeline *)base;
    char label[32];
    pipeline->verge.step = 0;
    if (check_formed(pipeline, error) < 0)
        return -1;
    snprintf(label, sizeof label, "step %lld", (long long)base->options.state->progress.step + 1);
    if (pipeline->group)
        collective_set_label(pipeline->group, label);
    if (run_batch(pipeline, error) < 0 || pipeline_reduce(pipeline, error) < 0 ||
        pipeline_apply(pipeline, learning_rate, votes, ret_result, error) < 0)
        return -1;
    crew_communicator_note_step(pipeline->devices);
    return 0;
}

static void pipeline_break_off(struct strategy *base)
{
    struct collective *group = ((struct pipeline *)base)->group;
    if (group)
        collective_break_off(group, ERROR_UNAVAILABLE, "this worker leaves");
}

/* ---------------------------------------------------------------- evaluation */

/* Whether the loss of the share's examples is computed in this process. */
static bool ends_here(const struct pipeline *pipeline, const struct pipeline_share *share)
{
    return share->units[pipeline->partition.part_of[pipeline->partition.layers - 1]] != NULL;
}

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
    for (unsigned i = 0; ends_here(pipeline, share) && i < share->piece_count; i++) {
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
    if (check_formed(pipeline, error) < 0)
        return -1;
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
    struct pipeline *pipeline = (struct pipeline *)base;
    if (pipeline->shape.size == 1)
        return 0;
    return check_formed(pipeline, error) < 0 ? -1 : pipeline_exchange_sum(pipeline, values, count, error);
}

static struct collective *pipeline_group(struct strategy *base)
{
    return ((struct pipeline *)base)->group;
}

static int pipeline_meet(struct strategy *base, struct error *error)
{
    struct pipeline *pipeline = (struct pipeline *)base;
    if (pipeline->shape.size == 1)
        return 0;
    return check_formed(pipeline, error) < 0 ? -1 : crew_group_meet(pipeline->group, error);
}

static int pipeline_share_bytes(struct strategy *base, void *bytes, size_t length, struct error *error)
{
    struct pipeline *pipeline = (struct pipeline *)base;
    if (pipeline->shape.size == 1)
        return 0;
    return check_formed(pipeline, error) < 0 ? -1 : crew_group_tell(pipeline->group, 0, bytes, length, error);
}

/* ---------------------------------------------------------------- which process has what */

/* The processes of a replica evaluate the same blocks together. */
static void pipeline_evaluation_part(const struct strategy *base, unsigned *ret_index, unsigned *ret_count)
{
    const struct pipeline_shape *shape = &((const struct pipeline *)base)->shape;
    *ret_index = shape->rank / pipeline_span_of(shape);
    *ret_count = shape->size / pipeline_span_of(shape);
}

static unsigned pipeline_writers(const struct strategy *base)
{
    return pipeline_span_of(&((const struct pipeline *)base)->shape);
}

/* The place in a replica: processes of the same place hold the same stages. */
static unsigned pipeline_kin(const struct strategy *base, unsigned rank)
{
    return rank % pipeline_span_of(&((const struct pipeline *)base)->shape);
}

static int pipeline_gather(struct strategy *base, float *whole, struct error *error)
{
    struct pipeline *pipeline = (struct pipeline *)base;
    return check_formed(pipeline, error) < 0 ? -1 : pipeline_exchange_gather(pipeline, whole, error);
}

static const unsigned *pipeline_stages(const struct strategy *base, unsigned *ret_layers)
{
    const struct pipeline *pipeline = (const struct pipeline *)base;
    *ret_layers = pipeline->partition.layers;
    return pipeline->partition.stage_of;
}

/* ---------------------------------------------------------------- life cycle */

static int pipeline_reform(struct strategy *base, struct error *error)
{
    struct pipeline *pipeline = (struct pipeline *)base;
    if (pipeline->shape.size > 1)
        return pipeline_form(pipeline, error);
    if (!base->holds_state && base->options.calls.restore(base->options.calls.context, error) < 0)
        return -1;
    base->holds_state = true;
    return 0;
}

void pipeline_free(struct pipeline *pipeline)
{
    pipeline_close_units(pipeline);
    crew_communicator_free(pipeline->devices);
    partition_release(&pipeline->partition);
    pthread_cond_destroy(&pipeline->changed);
    pthread_mutex_destroy(&pipeline->lock);
    free(pipeline);
}

static void pipeline_close(struct strategy *base)
{
    struct pipeline *pipeline = (struct pipeline *)base;
    struct error cause = ERROR_INIT;
    if (pipeline_disband(pipeline, &cause) < 0 && base->options.calls.on_warning != NULL)
        base->options.calls.on_warning(base->options.calls.context, cause.message);
    pipeline_free(pipeline);
}

/* A crew's units are made when it has agreed on the stages, and its layers are measured with the arithmetic that it has agreed on. */
static int open_lone(struct pipeline *pipeline, struct error *error)
{
    if (pipeline->shape.size > 1 && pipeline->base.options.sums.may_use_devices)
        pipeline->devices = crew_communicator_new(&pipeline->base.options);
    if (pipeline->shape.size > 1)
        return 0;
    if (!pipeline->partition.stage_of && pipeline_measure_partition(pipeline, error) < 0)
        return -1;
    return pipeline_check_room(pipeline, error) < 0 ? -1 : pipeline_open_units(pipeline, error);
}

int pipeline_new(const struct strategy_options *options, struct pipeline **ret_pipeline, struct error *error)
{
    struct pipeline *pipeline = memory_allocate(1, sizeof *pipeline);
    pipeline->base.options = *options;
    pipeline->base.world = (struct world){.size = 1, .logical_shards = options->logical_shards};
    pthread_mutex_init(&pipeline->lock, NULL);
    pthread_cond_init(&pipeline->changed, NULL);
    if (take_shape(pipeline, error) < 0 || take_known_partition(pipeline, error) < 0) {
        pipeline_free(pipeline);
        return -1;
    }
    *ret_pipeline = pipeline;
    return 0;
}

static int pipeline_open(const struct strategy_options *options, struct strategy **ret_strategy, struct error *error)
{
    struct pipeline *pipeline;
    if (pipeline_new(options, &pipeline, error) < 0)
        return -1;
    if (open_lone(pipeline, error) < 0) {
        pipeline_close(&pipeline->base);
        return -1;
    }
    *ret_strategy = &pipeline->base;
    return 0;
}

static const struct strategy_crew_operations pipeline_crew = {
    .break_off = pipeline_break_off,
    .meet = pipeline_meet,
    .group = pipeline_group,
    .writers = pipeline_writers,
};

static const struct strategy_model_operations pipeline_model = {
    .evaluate = pipeline_evaluate,
    .evaluation_part = pipeline_evaluation_part,
    .kin = pipeline_kin,
    .gather = pipeline_gather,
    .stages = pipeline_stages,
    .describe = pipeline_describe,
};

const struct strategy_operations pipeline_strategy = {
    .type = STRATEGY_PIPELINE,
    .open = pipeline_open,
    .reform = pipeline_reform,
    .step = pipeline_step,
    .sum = pipeline_sum,
    .share = pipeline_share_bytes,
    .close = pipeline_close,
    .memory_plan = pipeline_memory_plan,
    .crew = &pipeline_crew,
    .model = &pipeline_model,
};
