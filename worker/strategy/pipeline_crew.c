/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/crew_arithmetic.h"
#include "worker/strategy/crew_communicator.h"
#include "worker/strategy/crew_group.h"
#include "worker/strategy/crew_restore.h"
#include "worker/strategy/device_sums.h"
#include "worker/strategy/pipeline_parts.h"
#include "worker/strategy/state_transfer.h"

void pipeline_forget_devices(struct pipeline *pipeline)
{
    for (unsigned i = 0; i < pipeline->lane_count; i++) {
        struct pipeline_lane *lane = &pipeline->lanes[i];
        device_sums_free(lane->sums);
        pipeline_direct_free(lane->direct);
        lane->sums = NULL;
        lane->direct = NULL;
        lane->devices = NULL;
    }
}

bool pipeline_sums_on_devices(const struct pipeline *pipeline)
{
    return pipeline->lane_count > 0 && pipeline->lanes[0].direct != NULL;
}

/* Until nothing of what NCCL had under way is read or written any more. */
static int settle(struct pipeline *pipeline, struct error *error)
{
    int result = 0;
    for (unsigned i = 0; i < pipeline->lane_count; i++) {
        if (device_sums_settle(pipeline->lanes[i].sums, result == 0 ? error : NULL) < 0)
            result = -1;
        if (pipeline_direct_settle(pipeline->lanes[i].direct, result == 0 ? error : NULL) < 0)
            result = -1;
    }
    return result;
}

int pipeline_disband(struct pipeline *pipeline, struct error *error)
{
    int result = crew_communicator_end(pipeline->devices, error);
    crew_group_close(&pipeline->base.options, &pipeline->group);
    return result < 0 ? -1 : settle(pipeline, error);
}

static int open_group(struct pipeline *pipeline, const struct world *world, struct error *error)
{
    struct collective_reduction reduction = {.combine = pipeline_add_ranks, .context = &pipeline->shape};
    for (unsigned rank = 0; rank < world->size; rank++)
        reduction.contributions[rank] = 1;
    return crew_group_open(&pipeline->base.options, world, COLLECTIVE_ALGORITHM_AUTO, &reduction, &pipeline->group,
                           error);
}

/* ---- the stages */

/* All ranks end because of a sum, and no rank ends before all have the sum: a rank without it would wait for a peer that never comes
 * back. */
static void leave_together(struct pipeline *pipeline)
{
    (void)collective_barrier(pipeline->group, NULL);
}

/* Both ends of a crossing must use the same format. */
static int agree_on_values(struct pipeline *pipeline, const struct world *world, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    enum precision precision = graph_precision(options->graph);
    double bytes = (double)stored_bytes(graph_stored_for(options->device, precision)), sum = bytes;
    if (precision != PRECISION_BFLOAT16 && precision != PRECISION_FLOAT16)
        return 0;
    if (pipeline_exchange_sum(pipeline, &sum, 1, error) < 0)
        return -1;
    if (sum == bytes * world->size)
        return 0;
    leave_together(pipeline);
    return error_set(
        error, ERROR_CONFLICT,
        "training.precision: some stages of this Pipeline store values in two bytes (GPUs) and some in four "
        "(CPUs), so they cannot exchange them; set devices.type to GPU or to CPU for all workers, or "
        "training.precision to float32");
}

static int cut_anew(struct pipeline *pipeline, const struct world *world, const unsigned *stage_of, struct error *error)
{
    pipeline_close_units(pipeline);
    partition_release(&pipeline->partition);
    pipeline->base.holds_state = false;
    pipeline->shards = world->logical_shards;
    return partition_from_list(pipeline->base.options.graph, pipeline->shape.stages, stage_of, &pipeline->partition,
                               error);
}

/* All end where one of them lacks room: it would not come back. */
static int agree_on_room(struct pipeline *pipeline, bool is_cut, struct error *error)
{
    struct error cause = ERROR_INIT;
    double lacking = is_cut && pipeline_check_room(pipeline, &cause) < 0;
    if (pipeline_exchange_sum(pipeline, &lacking, 1, error) < 0)
        return -1;
    if (lacking == 0)
        return 0;
    leave_together(pipeline);
    if (cause.kind != ERROR_NONE)
        return error_set(error, cause.kind, "%s", cause.message);
    return error_set(
        error, ERROR_NO_SPACE,
        "%.0f of the crew's other workers do not have enough memory for their stages; their logs say what would fit",
        lacking);
}

/* A rank that has trained knows the stages; otherwise the chief takes them from the job or a checkpoint, or measures. */
static int agree_on_stages(struct pipeline *pipeline, const struct world *world, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    unsigned root = world->source == WORLD_SOURCE_PEER ? world->source_rank : 0;
    unsigned layers = graph_layer_count(options->graph);
    SCOPED_FREE unsigned *stage_of = memory_allocate(layers, sizeof *stage_of);
    if (world->rank == root && !pipeline->partition.stage_of && pipeline_measure_partition(pipeline, error) < 0)
        return -1;
    if (pipeline->partition.stage_of)
        memcpy(stage_of, pipeline->partition.stage_of, layers * sizeof *stage_of);
    if (crew_group_tell(pipeline->group, root, stage_of, layers * sizeof *stage_of, error) < 0)
        return -1;
    bool stays = pipeline->units && pipeline->shards == world->logical_shards &&
                 memcmp(stage_of, pipeline->partition.stage_of, layers * sizeof *stage_of) == 0;
    if (!stays && cut_anew(pipeline, world, stage_of, error) < 0)
        return -1;
    if (agree_on_room(pipeline, !stays, error) < 0)
        return -1;
    return stays ? 0 : pipeline_open_units(pipeline, error);
}

/* Creates the sums of the lanes that hold the same stage, in any process. A stage may have no parameters of its own. */
static int make_sums(struct pipeline_lane *lane, const struct strategy_device *device, struct error *error)
{
    const struct pipeline *pipeline = lane->pipeline;
    const struct parameter_layout *layout = lane->store->layout;
    const struct device_sums_options sums = {.devices = device,
                                             .device_count = 1,
                                             .rank = lane->share->replica,
                                             .size = pipeline->shape.replicas,
                                             .first_rank = lane->stage,
                                             .stride = pipeline->shape.stages,
                                             .shards = pipeline->base.world.logical_shards,
                                             .elements = layout->elements - layout->copies};
    return sums.size > 1 && sums.elements > 0 ? device_sums_new(&sums, &lane->sums, error) : 0;
}

static int connect_lane(struct pipeline *pipeline, unsigned number, struct error *error)
{
    struct pipeline_lane *lane = &pipeline->lanes[number];
    lane->devices = crew_communicator_part(pipeline->devices, number);
    if (lane->direct != NULL)
        return 0;
    return pipeline_direct_new(lane, error) < 0 ? -1 : make_sums(lane, &pipeline->base.options.devices[number], error);
}

/* Lets data between stages, and gradients of replicas, go from GPU to GPU if all ranks can. */
static int connect_devices(struct pipeline *pipeline, const struct world *world, struct error *error)
{
    if (pipeline->devices == NULL)
        return 0;
    if (crew_communicator_form(pipeline->devices, pipeline->group, world, error) < 0)
        return -1;
    if (!crew_communicator_is_there(pipeline->devices))
        pipeline_forget_devices(pipeline);
    for (unsigned i = 0; crew_communicator_is_there(pipeline->devices) && i < pipeline->lane_count; i++)
        if (connect_lane(pipeline, i, error) < 0)
            return -1;
    return 0;
}

/* ---- the state */

/* Returns the lowest rank that holds the current stages of `rank`; -1 if none does. */
static int find_donor(const struct pipeline *pipeline, const struct world *world, unsigned rank)
{
    unsigned span = pipeline_span_of(&pipeline->shape);
    for (unsigned other = rank % span; other < world->size; other += span)
        if (!world->receives[other])
            return (int)other;
    return -1;
}

static bool a_stage_is_lost(const struct pipeline *pipeline, const struct world *world)
{
    if (world->source == WORLD_SOURCE_CHIEF)
        return true;
    for (unsigned rank = 0; rank < world->size; rank++)
        if (world->receives[rank] && find_donor(pipeline, world, rank) < 0)
            return true;
    return false;
}

static int give_state(struct pipeline *pipeline, unsigned rank, struct error *error)
{
    struct state_span spans[TRAINING_STATE_SPANS_MAX];
    unsigned count = training_state_spans(pipeline->base.options.state, spans);
    for (unsigned i = 0; i < count; i++)
        if (state_transfer_give(pipeline->group, rank, CHANNEL_STATE, spans[i].bytes, spans[i].length, error) < 0)
            return -1;
    return 0;
}

static int take_state(struct pipeline *pipeline, unsigned rank, struct error *error)
{
    struct state_span spans[TRAINING_STATE_SPANS_MAX];
    unsigned count = training_state_spans(pipeline->base.options.state, spans);
    for (unsigned i = 0; i < count; i++)
        if (state_transfer_take(pipeline->group, rank, CHANNEL_STATE, spans[i].bytes, spans[i].length, spans[i].name,
                                error) < 0)
            return -1;
    return training_state_to_device(pipeline->base.options.state, error);
}

/* From replica to replica of the same stages. */
static int copy_states(struct pipeline *pipeline, const struct world *world, struct error *error)
{
    unsigned own = world->rank;
    collective_set_label(pipeline->group, "state transfer");
    if (world->receives[own]) {
        pipeline->base.holds_state = false;
        pipeline->verge = (struct pipeline_verge){0};
        if (take_state(pipeline, (unsigned)find_donor(pipeline, world, own), error) < 0)
            return -1;
    } else if (training_state_to_host(pipeline->base.options.state, error) < 0) {
        return -1;
    }
    for (unsigned rank = 0; rank < world->size; rank++)
        if (world->receives[rank] && find_donor(pipeline, world, rank) == (int)own &&
            give_state(pipeline, rank, error) < 0)
            return -1;
    pipeline->base.holds_state = true;
    return 0;
}

static int start_afresh(struct pipeline *pipeline, struct error *error)
{
    pipeline->verge = (struct pipeline_verge){0};
    pipeline->base.holds_state = false;
    return pipeline_make_state(pipeline, error);
}

/* ---- forming */

static int form(struct pipeline *pipeline, struct error *error)
{
    struct strategy *base = &pipeline->base;
    if (pipeline_disband(pipeline, error) < 0)
        return -1;
    struct member_standing standing = {.holds_state = base->holds_state,
                                       .applied_step = base->holds_state ? base->options.state->progress.step : 0};
    struct world world;
    if (member_agree(base->options.crew.member, &standing, &world, error) < 0 ||
        strategy_devices_set_arithmetic(&base->options, &world, error) < 0)
        return -1;
    if (world.size != pipeline->shape.size)
        return error_set(error, ERROR_INVALID, "a pipeline of %u workers cannot go on with %u", pipeline->shape.size,
                         world.size);
    base->world = world;
    if (open_group(pipeline, &world, error) < 0 || agree_on_values(pipeline, &world, error) < 0 ||
        agree_on_stages(pipeline, &world, error) < 0 || connect_devices(pipeline, &world, error) < 0 ||
        pipeline_catch_up(pipeline, &world, error) < 0)
        return -1;
    if (!a_stage_is_lost(pipeline, &world))
        return copy_states(pipeline, &world, error);
    return start_afresh(pipeline, error) < 0 ? -1 : crew_restore_parts(base, pipeline->group, error);
}

int pipeline_form(struct pipeline *pipeline, struct error *error)
{
    for (;;) {
        struct error cause = ERROR_INIT;
        if (form(pipeline, &cause) == 0)
            return 0;
        if (cause.kind == ERROR_UNAVAILABLE)
            continue;
        if (error)
            *error = cause;
        return -1;
    }
}
