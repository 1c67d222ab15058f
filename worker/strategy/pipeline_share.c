/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/memory.h"
#include "worker/data/dataset.h"
#include "worker/data/sampler.h"
#include "worker/data/step_record.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/pipeline_parts.h"

/* ---- examples */

int64_t pipeline_batch_size(const struct pipeline *pipeline, int64_t position)
{
    return sampler_batch(pipeline->base.options.sampler, pipeline->base.options.global_batch, position);
}

void pipeline_next_position(const struct pipeline *pipeline, int64_t *data_epoch, int64_t *position)
{
    sampler_advance(pipeline->base.options.sampler, pipeline->base.options.global_batch, data_epoch, position);
}

double pipeline_target_count(const struct pipeline *pipeline)
{
    return (double)(pipeline->examples * example_targets(graph_example_format(pipeline->base.options.graph)));
}

static bool holds(const struct pipeline_batch *batch, int64_t data_epoch, int64_t position)
{
    return batch->filled && batch->data_epoch == data_epoch && batch->position == position;
}

static int read_batch(const struct pipeline *pipeline, struct pipeline_share *share, struct pipeline_batch *batch,
                      int64_t data_epoch, int64_t position, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    unsigned shards = pipeline->base.world.logical_shards;
    int64_t size = pipeline_batch_size(pipeline, position), from, last;
    sampler_shard(size, shards, share->first, &from);
    int64_t to = sampler_shard(size, shards, share->end - 1, &last) + last;
    batch->filled = false;
    for (int64_t i = from; i < to; i++)
        share->indices[i - from] = sampler_index(options->sampler, data_epoch, position + i);
    const struct dataset_epoch epoch = {options->sampler->seed, data_epoch};
    if (dataset_read_in_epoch(options->dataset, epoch, share->indices, to - from, batch->inputs, batch->targets,
                              error) < 0)
        return -1;
    *batch = (struct pipeline_batch){true, data_epoch, position, batch->inputs, batch->targets};
    return 0;
}

static void record_share(const struct pipeline *pipeline, const struct pipeline_share *share, int64_t data_epoch,
                         int64_t position)
{
    const struct strategy_options *options = &pipeline->base.options;
    unsigned shards = pipeline->base.world.logical_shards;
    int64_t size = pipeline_batch_size(pipeline, position), from, last;
    sampler_shard(size, shards, share->first, &from);
    int64_t to = sampler_shard(size, shards, share->end - 1, &last) + last;
    step_record_share(options->sampler, options->state->progress.step + 1, data_epoch, position + from, to - from);
}

int pipeline_share_read(struct pipeline *pipeline, struct pipeline_share *share, bool ahead, int64_t data_epoch,
                        int64_t position, struct error *error)
{
    if (!ahead && holds(&share->batches[!share->current], data_epoch, position))
        share->current = !share->current;
    struct pipeline_batch *batch = &share->batches[ahead ? !share->current : share->current];
    if (!ahead)
        share->batch = batch;
    if (!ahead && share->begins)
        record_share(pipeline, share, data_epoch, position);
    if (!share->reads || holds(batch, data_epoch, position))
        return 0;
    return read_batch(pipeline, share, batch, data_epoch, position, error);
}

/* ---- micro-batches */

static void reserve_pieces(struct pipeline_share *share, unsigned count)
{
    share->piece_count = count;
    if (count <= share->piece_capacity)
        return;
    share->pieces = memory_resize(share->pieces, count, sizeof *share->pieces);
    share->piece_capacity = count;
}

void pipeline_share_cut(struct pipeline *pipeline, struct pipeline_share *share)
{
    unsigned shards = pipeline->base.world.logical_shards;
    int64_t own_first, first;
    reserve_pieces(share, share->end - share->first);
    sampler_shard(pipeline->examples, shards, share->first, &own_first);
    for (unsigned i = 0; i < share->piece_count; i++) {
        share->pieces[i].count = sampler_shard(pipeline->examples, shards, share->first + i, &first);
        share->pieces[i].offset = first - own_first;
        share->pieces[i].first = first;
    }
}

void pipeline_share_cut_evenly(struct pipeline_share *share, int64_t examples, int64_t most)
{
    reserve_pieces(share, (unsigned)((examples + most - 1) / most));
    for (unsigned i = 0; i < share->piece_count; i++) {
        int64_t offset = i * most;
        share->pieces[i] =
            (struct pipeline_piece){.offset = offset, .count = examples - offset < most ? examples - offset : most};
    }
}

struct pipeline_course pipeline_course_of(const struct pipeline *pipeline)
{
    return (struct pipeline_course){.partition = &pipeline->partition,
                                    .values = pipeline->values,
                                    .gradients = pipeline->gradients,
                                    .value_count = pipeline->value_count,
                                    .gradient_count = pipeline->gradient_count,
                                    .most = pipeline_most_micro_batches(pipeline)};
}

void pipeline_share_plan(const struct pipeline *pipeline, struct pipeline_share *share, bool evaluates)
{
    const struct pipeline_course course = pipeline_course_of(pipeline);
    struct pipeline_timetable *timetable = &share->timetable;
    if (timetable->stages > 0 && timetable->micro_batches == share->piece_count && timetable->evaluates == evaluates)
        return;
    pipeline_timetable_release(timetable);
    pipeline_timetable_init(timetable, &course, share->piece_count, evaluates);
}

/* ---- what a step adds up to */

void pipeline_share_controls(const struct pipeline_share *share, float (*ret_controls)[CONTROL_VOTES])
{
    for (unsigned subtree = 0; subtree < share->cover_count; subtree++) {
        float slots[REDUCTION_DEPTH_MAX][CONTROL_VOTES];
        for (unsigned leaf = 0; leaf < share->cover[subtree].count; leaf++) {
            unsigned slot, merges;
            reduction_leaf_place(share->cover[subtree].count, leaf, &slot, &merges);
            const struct loss_sums *sums = &share->sums[share->cover[subtree].first + leaf - share->first];
            slots[slot][CONTROL_LOSS] = (float)sums->loss;
            slots[slot][CONTROL_CORRECT] = (float)sums->correct;
            slots[slot][CONTROL_COUNT] = 0; /* its models ignore no targets */
            for (; merges > 0; merges--, slot--)
                for (unsigned i = 0; i < CONTROL_VOTES; i++)
                    slots[slot - 1][i] += slots[slot][i];
        }
        memcpy(ret_controls[subtree], slots[0], sizeof slots[0]);
    }
}

/* ---- life cycle */

unsigned pipeline_share_partial_sums(const struct pipeline_share *share)
{
    unsigned most = 0;
    for (unsigned subtree = 0; subtree < share->cover_count; subtree++)
        for (unsigned leaf = 0; leaf < share->cover[subtree].count; leaf++) {
            unsigned slot, merges;
            reduction_leaf_place(share->cover[subtree].count, leaf, &slot, &merges);
            slot -= merges > 0;
            most = slot > most ? slot : most;
        }
    return most;
}

bool pipeline_copies_gradients(const struct pipeline *pipeline)
{
    bool several = pipeline->shape.size > 1 || pipeline->shape.replicas > 1;
    return several && !device_memory_is_shared(pipeline->base.options.device);
}

/* Sets the gradients that the host reads: the gradients themselves, if the device's memory is shared with the host; else copies, if they
 * are exchanged through the host. */
static int find_host_gradients(const struct pipeline *pipeline, struct pipeline_share *share, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    size_t bytes = (size_t)options->state->layout.elements * sizeof(float);
    for (unsigned i = 0; i < share->cover_count && device_memory_is_shared(options->device); i++)
        share->host_gradients[i] = pipeline->stores[share - pipeline->shares].gradients[i];
    for (unsigned i = 0; i < share->cover_count && pipeline_copies_gradients(pipeline); i++)
        if (device_allocate(options->device, MEMORY_SHARED, bytes, (void **)&share->host_gradients[i], error) < 0)
            return -1;
    return 0;
}

/* Room for an evaluation's batch, too, which is one logical shard at a time. */
static int allocate_batches(const struct pipeline *pipeline, struct pipeline_share *share, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    const struct example_format *format = graph_example_format(options->graph);
    int64_t own = share->end - share->first;
    share->indices = memory_allocate((size_t)share->max_examples, sizeof *share->indices);
    size_t examples = share->reads ? (size_t)share->max_examples : 0;
    for (unsigned i = 0; i < 2; i++)
        if (device_allocate(options->device, MEMORY_SHARED, examples * example_input_bytes(format),
                            &share->batches[i].inputs, error) < 0 ||
            device_allocate(options->device, MEMORY_SHARED, examples * example_target_bytes(format),
                            &share->batches[i].targets, error) < 0)
            return -1;
    return device_allocate(options->device, MEMORY_SHARED, (size_t)own * sizeof *share->sums, (void **)&share->sums,
                           error);
}

void pipeline_share_measure(const struct pipeline *pipeline, struct pipeline_share *share, unsigned replica)
{
    const struct strategy_options *options = &pipeline->base.options;
    unsigned shards = pipeline->base.world.logical_shards;
    share->replica = replica;
    reduction_rank_leaves(shards, replica, pipeline->shape.replicas, &share->first, &share->end);
    share->cover_count = reduction_cover(shards, share->first, share->end, share->cover);
    share->max_examples = (share->end - share->first) * ((options->global_batch + shards - 1) / shards);
    if (share->max_examples < graph_max_examples(options->graph))
        share->max_examples = graph_max_examples(options->graph);
    for (unsigned p = 0; p < pipeline->partition.parts; p++)
        if (share->units[p]) {
            share->begins |= share->units[p]->part == 0;
            share->reads |=
                graph_stage_reads_inputs(share->units[p]->graph) || graph_stage_has_loss(share->units[p]->graph);
        }
}

int pipeline_share_init(struct pipeline *pipeline, struct pipeline_share *share, struct error *error)
{
    if (find_host_gradients(pipeline, share, error) < 0)
        return -1;
    return allocate_batches(pipeline, share, error);
}

void pipeline_share_release(struct pipeline *pipeline, struct pipeline_share *share)
{
    struct device *device = pipeline->base.options.device;
    for (unsigned i = 0; i < REDUCTION_COVER_MAX && !device_memory_is_shared(device); i++)
        device_free(device, share->host_gradients[i]);
    for (unsigned i = 0; i < 2; i++) {
        device_free(device, share->batches[i].inputs);
        device_free(device, share->batches[i].targets);
    }
    device_free(device, share->sums);
    pipeline_timetable_release(&share->timetable);
    free(share->units);
    free(share->indices);
    free(share->pieces);
    *share = (struct pipeline_share){0};
}
