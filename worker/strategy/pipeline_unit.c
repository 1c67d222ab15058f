/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/subnormals.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/pipeline_parts.h"

/* ---- one micro-batch */

static float *slot_memory(const struct pipeline_share *share, unsigned subtree, unsigned slot)
{
    return slot == 0 ? share->gradients[subtree] : share->partial[slot];
}

static void merge_slots(const struct pipeline_unit *unit, unsigned subtree, unsigned slot, unsigned merges)
{
    for (; merges > 0; merges--, slot--)
        for (unsigned r = 0; r < unit->range_count; r++) {
            const struct graph_bucket *range = &unit->ranges[r];
            device_axpy(unit->stream,
                        &(struct axpy){range->elements, 1.0f, slot_memory(unit->share, subtree, slot) + range->offset,
                                       slot_memory(unit->share, subtree, slot - 1) + range->offset});
        }
}

/* Where a micro-batch stands in the reduction tree. */
struct leaf {
    unsigned subtree, slot, merges;
    bool accumulate; /* a right child is added to its sibling by the pass itself */
};

static struct leaf find_leaf(const struct pipeline_share *share, unsigned micro_batch)
{
    struct leaf leaf = {0};
    unsigned shard = share->first + micro_batch;
    while (shard >= share->cover[leaf.subtree].first + share->cover[leaf.subtree].count)
        leaf.subtree++;
    const struct reduction_subtree *subtree = &share->cover[leaf.subtree];
    reduction_leaf_place(subtree->count, shard - subtree->first, &leaf.slot, &leaf.merges);
    leaf.accumulate = leaf.merges > 0;
    leaf.slot -= leaf.accumulate;
    leaf.merges -= leaf.accumulate;
    return leaf;
}

static struct graph_stage_pass prepare(const struct pipeline_unit *unit, struct pipeline_action action,
                                       const struct leaf *leaf)
{
    const struct pipeline *pipeline = unit->pipeline;
    const struct pipeline_share *share = unit->share;
    const struct example_format *format = graph_example_format(unit->graph);
    const struct pipeline_piece *piece = &share->pieces[action.micro_batch];
    return (struct graph_stage_pass){
        .pass =
            {
                .parameters = pipeline->base.options.state->parameters,
                .inputs = (char *)share->batch->inputs + (size_t)piece->offset * example_input_bytes(format),
                .targets = (char *)share->batch->targets + (size_t)piece->offset * example_target_bytes(format),
                .examples = piece->count,
                .scale = pipeline->scale,
                .gradients = slot_memory(share, leaf->subtree, leaf->slot),
                .accumulate = leaf->accumulate,
                .sums = &share->sums[action.micro_batch],
                .seed = (uint64_t)pipeline->base.options.state->progress.seed,
                .step = pipeline->base.options.state->progress.step + 1,
                .first_example = piece->first,
            },
        .slot = action.micro_batch % unit->slots,
        .values = unit->values,
        .gradients = unit->gradients,
    };
}

static int launch(struct pipeline_unit *unit, struct pipeline_action action, struct error *error)
{
    struct leaf leaf = {0};
    if (!unit->pipeline->evaluates)
        leaf = find_leaf(unit->share, action.micro_batch);
    struct graph_stage_pass pass = prepare(unit, action, &leaf);
    if (unit->pipeline->evaluates)
        return graph_stage_evaluate(unit->graph, unit->stream, &pass, error);
    if (action.work == PIPELINE_FORWARD)
        return graph_stage_forward(unit->graph, unit->stream, &pass, error);
    if (graph_stage_backward(unit->graph, unit->stream, &pass, error) < 0)
        return -1;
    merge_slots(unit, leaf.subtree, leaf.slot, leaf.merges);
    return 0;
}

static int act(struct pipeline_unit *unit, struct pipeline_action action, struct error *error)
{
    if (pipeline_passing_before(unit, action, error) < 0)
        return -1;
    struct pipeline_span span = {.action = action, .start_ns = clock_monotonic_ns()};
    if (launch(unit, action, error) < 0 || device_stream_synchronise(unit->stream, error) < 0)
        return -1;
    span.end_ns = clock_monotonic_ns();
    if (!unit->pipeline->evaluates)
        unit->spans[unit->span_count++] = span;
    pipeline_passing_after(unit, action);
    return 0;
}

/* ---- a run */

static unsigned plan_actions(struct pipeline_unit *unit)
{
    const struct pipeline *pipeline = unit->pipeline;
    unsigned pieces = unit->share->piece_count;
    unit->actions = memory_resize(unit->actions, 2 * (size_t)pieces + 1, sizeof *unit->actions);
    if (!pipeline->evaluates) {
        unit->spans = memory_resize(unit->spans, 2 * (size_t)pieces + 1, sizeof *unit->spans);
        unit->span_count = 0;
        pipeline_schedule(pipeline->partition.depth[unit->stage], pipeline->partition.depths, pieces, unit->actions);
        return 2 * pieces;
    }
    for (unsigned i = 0; i < pieces; i++)
        unit->actions[i] = (struct pipeline_action){PIPELINE_FORWARD, i};
    return pieces;
}

static int run(struct pipeline_unit *unit, struct error *error)
{
    unsigned count = plan_actions(unit);
    for (unsigned i = 0; i < count; i++)
        if (act(unit, unit->actions[i], error) < 0)
            return -1;
    return pipeline_passing_finish(unit, error);
}

static void finish_run(struct pipeline_unit *unit, int result)
{
    struct pipeline *pipeline = unit->pipeline;
    if (result < 0)
        (void)device_stream_synchronise(unit->stream, NULL);
    if (result < 0 && pipeline->group) /* other units may be waiting for other processes */
        collective_abort(pipeline->group, ERROR_UNAVAILABLE, "a stage of this process has failed");
    pthread_mutex_lock(&pipeline->lock);
    pipeline->failed |= result < 0;
    pipeline->working--;
    pthread_cond_broadcast(&pipeline->changed);
    pthread_mutex_unlock(&pipeline->lock);
}

static void *serve(void *context)
{
    struct pipeline_unit *unit = context;
    struct pipeline *pipeline = unit->pipeline;
    uint64_t done = 0;
    subnormals_flush();
    for (;;) {
        pthread_mutex_lock(&pipeline->lock);
        while (pipeline->run == done && !pipeline->over)
            pthread_cond_wait(&pipeline->changed, &pipeline->lock);
        bool over = pipeline->over;
        done = pipeline->run;
        pthread_mutex_unlock(&pipeline->lock);
        if (over)
            return NULL;
        error_clear(&unit->error);
        finish_run(unit, run(unit, &unit->error));
    }
}

void pipeline_start(struct pipeline *pipeline, bool evaluates, float scale)
{
    for (unsigned i = 0; i < pipeline->unit_count; i++)
        pipeline_passing_reset(&pipeline->units[i]);
    pthread_mutex_lock(&pipeline->lock);
    pipeline->evaluates = evaluates;
    pipeline->scale = scale;
    pipeline->failed = false;
    pipeline->working = pipeline->unit_count;
    pipeline->run++;
    pthread_cond_broadcast(&pipeline->changed);
    pthread_mutex_unlock(&pipeline->lock);
}

/* What happened first: not a unit's word that another has failed. */
int pipeline_await(struct pipeline *pipeline, struct error *error)
{
    pthread_mutex_lock(&pipeline->lock);
    while (pipeline->working > 0)
        pthread_cond_wait(&pipeline->changed, &pipeline->lock);
    bool failed = pipeline->failed;
    pthread_mutex_unlock(&pipeline->lock);
    if (!failed)
        return 0;
    const struct error *cause = NULL;
    for (unsigned i = 0; i < pipeline->unit_count; i++) {
        const struct error *own = &pipeline->units[i].error;
        if (own->kind != ERROR_NONE && (cause == NULL || cause->kind == ERROR_CANCELLED))
            cause = own;
    }
    return cause ? error_set(error, cause->kind, "%s", cause->message)
                 : error_set(error, ERROR_INTERNAL, "a stage has failed");
}

/* ---- life cycle */

static int plan_graph(struct pipeline *pipeline, struct pipeline_unit *unit, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    unsigned most = (pipeline->base.world.logical_shards + pipeline->shape.replicas - 1) / pipeline->shape.replicas;
    unit->slots = pipeline_slots(pipeline->partition.depth[unit->stage], pipeline->partition.depths, most);
    const struct graph_options graph = {
        .device = unit->device,
        .model = options->model,
        .max_examples = graph_max_examples(options->graph),
        .partition = &pipeline->partition,
        .stage = unit->stage,
        .held = pipeline->holds,
        .slots = unit->slots,
        .recompute = options->recompute,
    };
    if (graph_new(&graph, &unit->graph, error) < 0)
        return error_wrap(error, "stage %u", unit->stage);
    unit->range_count = graph_stage_ranges(unit->graph, NULL);
    unit->ranges = memory_allocate(unit->range_count + 1, sizeof *unit->ranges);
    graph_stage_ranges(unit->graph, unit->ranges);
    return 0;
}

int pipeline_unit_init(struct pipeline *pipeline, struct pipeline_unit *unit, unsigned stage,
                       struct pipeline_share *share, struct device *device, struct error *error)
{
    *unit = (struct pipeline_unit){.pipeline = pipeline, .share = share, .stage = stage, .device = device};
    if (device_stream_new(device, &unit->stream, error) < 0 || plan_graph(pipeline, unit, error) < 0)
        return -1;
    pipeline_passing_init(unit);
    errno = pthread_create(&unit->thread, NULL, serve, unit);
    if (errno != 0)
        return error_set_errno(error, "start the thread of stage %u", stage);
    unit->has_thread = true;
    return 0;
}

/* After `over` is set and told. */
void pipeline_unit_release(struct pipeline_unit *unit)
{
    if (unit->has_thread)
        pthread_join(unit->thread, NULL);
    if (unit->stream)
        device_stream_free(unit->stream);
    pipeline_passing_release(unit);
    graph_free(unit->graph);
    free(unit->ranges);
    free(unit->actions);
    free(unit->spans);
    *unit = (struct pipeline_unit){0};
}
