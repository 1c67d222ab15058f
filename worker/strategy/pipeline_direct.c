/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/memory.h"
#include "worker/strategy/crew_communicator.h"
#include "worker/strategy/pipeline_parts.h"

/* Where a micro-batch crosses: a slot of the part that makes it, and one here if it comes here. */
struct place {
    void *arrival;               /* NULL: it goes from here */
    struct device_event *made;   /* if it does; on the lane's stream */
    struct device_event *passed; /* on ours; NULL: neither end is here */
};

struct pipeline_direct {
    struct pipeline *pipeline;
    const struct pipeline_lane *lane;
    struct device_stream *stream;
    struct place *places; /* `most` for each crossing, values first */
    unsigned crossings, most;
    struct communicator_operation *operations; /* of the tick at hand */
    struct place **moved;                      /* by each of them */
    unsigned operation_count;
    unsigned tick;             /* the first tick with a group that is not queued yet */
    unsigned next[STAGES_MAX]; /* action of each stage, then */
};

/* ---------------------------------------------------------------- places */

static unsigned stage_of(const struct pipeline_direct *direct, unsigned part)
{
    return direct->pipeline->partition.stage_of_part[part];
}

/* Whether it goes from the lane to another process, or comes from there. */
static bool passes(const struct pipeline_direct *direct, const struct graph_crossing *crossing)
{
    const struct pipeline_shape *shape = &direct->pipeline->shape;
    unsigned from = stage_of(direct, crossing->from), to = stage_of(direct, crossing->to), own = direct->lane->stage;
    unsigned replica = direct->lane->share->replica;
    return (from == own || to == own) && pipeline_rank_of(shape, from, replica) != pipeline_rank_of(shape, to, replica);
}

static const struct graph_crossing *crossing_of(const struct pipeline_direct *direct, unsigned crossing)
{
    const struct pipeline *pipeline = direct->pipeline;
    return crossing < pipeline->value_count ? &pipeline->values[crossing]
                                            : &pipeline->gradients[crossing - pipeline->value_count];
}

static unsigned slots_of(const struct pipeline_direct *direct, unsigned part)
{
    const struct pipeline *pipeline = direct->pipeline;
    return pipeline_slots(pipeline->partition.depth[part], pipeline->partition.depths,
                          pipeline_most_micro_batches(pipeline));
}

static unsigned slot_of(const struct pipeline_direct *direct, unsigned crossing, unsigned micro_batch)
{
    return micro_batch % slots_of(direct, crossing_of(direct, crossing)->from);
}

static struct place *place_of(const struct pipeline_direct *direct, unsigned crossing, unsigned micro_batch)
{
    return &direct->places[crossing * direct->most + slot_of(direct, crossing, micro_batch)];
}

static int open_place(struct pipeline_direct *direct, const struct graph_crossing *crossing, struct place *place,
                      struct error *error)
{
    struct device *device = direct->lane->device;
    size_t bytes = pipeline_passing_bytes(direct->pipeline, crossing);
    if (device_event_new(device, &place->passed, error) < 0)
        return -1;
    if (stage_of(direct, crossing->from) == direct->lane->stage)
        return device_event_new(device, &place->made, error);
    return device_allocate(device, MEMORY_DEVICE, bytes, &place->arrival, error);
}

/* Opens all places at once, because an allocation while a group is under way may wait for that group. */
static int open_places(struct pipeline_direct *direct, struct error *error)
{
    for (unsigned i = 0; i < direct->crossings; i++) {
        const struct graph_crossing *crossing = crossing_of(direct, i);
        for (unsigned slot = 0; slot < slots_of(direct, crossing->from); slot++)
            if (passes(direct, crossing) &&
                open_place(direct, crossing, &direct->places[i * direct->most + slot], error) < 0)
                return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- a tick */

static void plan_crossing(struct pipeline_direct *direct, unsigned number, struct pipeline_action action)
{
    const struct pipeline *pipeline = direct->pipeline;
    const struct graph_crossing *crossing = crossing_of(direct, number);
    const struct pipeline_share *share = direct->lane->share;
    unsigned from = stage_of(direct, crossing->from), to = stage_of(direct, crossing->to);
    unsigned slot = slot_of(direct, number, action.micro_batch);
    if (crossing->from != action.part || !passes(direct, crossing))
        return;
    struct place *place = place_of(direct, number, action.micro_batch);
    struct communicator_operation operation = {
        .kind = COMMUNICATOR_RECEIVE,
        .peer = pipeline_device_of(&pipeline->shape, from, share->replica),
        .vector = place->arrival,
        .elements = (size_t)graph_crossing_floats(crossing, share->pieces[action.micro_batch].count)};
    if (from == direct->lane->stage) {
        const struct graph *graph = share->units[action.part]->graph;
        operation.kind = COMMUNICATOR_SEND;
        operation.peer = pipeline_device_of(&pipeline->shape, to, share->replica);
        operation.vector = (float *)(action.work == PIPELINE_FORWARD
                                         ? graph_value_out(graph, number, slot)
                                         : graph_gradient_out(graph, number - pipeline->value_count, slot));
        device_event_record(place->made, direct->lane->stream);
        device_stream_wait(direct->stream, place->made);
    }
    direct->moved[direct->operation_count] = place;
    direct->operations[direct->operation_count++] = operation;
}

/* Both lanes list the data between them in the same order: by stages, then by crossings. */
static void plan_tick(struct pipeline_direct *direct)
{
    const struct pipeline *pipeline = direct->pipeline;
    const struct pipeline_timetable *timetable = &direct->lane->share->timetable;
    direct->operation_count = 0;
    for (unsigned stage = 0; stage < timetable->stages; stage++) {
        unsigned next = direct->next[stage];
        if (next == timetable->counts[stage] || timetable->tick_of[stage][next] != direct->tick)
            continue;
        struct pipeline_action action = timetable->actions[stage][next];
        bool forward = action.work == PIPELINE_FORWARD;
        unsigned first = forward ? 0 : pipeline->value_count, end = forward ? pipeline->value_count : direct->crossings;
        for (unsigned number = first; number < end; number++)
            plan_crossing(direct, number, action);
        direct->next[stage]++;
    }
}

int pipeline_direct_exchange(struct pipeline_direct *direct, unsigned tick, struct error *error)
{
    for (; direct->tick < tick; direct->tick++) {
        plan_tick(direct);
        if (crew_communicator_queue(direct->lane->devices, &direct->stream, direct->operations, direct->operation_count,
                                    error) < 0)
            return -1;
        for (unsigned i = 0; i < direct->operation_count; i++)
            device_event_record(direct->moved[i]->passed, direct->stream);
    }
    return 0;
}

/* ---------------------------------------------------------------- a run */

void pipeline_direct_begin(struct pipeline_direct *direct)
{
    direct->tick = 0;
    for (unsigned stage = 0; stage < STAGES_MAX; stage++)
        direct->next[stage] = 0;
}

int pipeline_direct_await(struct pipeline_direct *direct, unsigned crossing, unsigned micro_batch, struct error *error)
{
    return crew_communicator_await(direct->lane->devices, place_of(direct, crossing, micro_batch)->passed, error);
}

const void *pipeline_direct_arrival(const struct pipeline_direct *direct, unsigned crossing, unsigned micro_batch)
{
    return place_of(direct, crossing, micro_batch)->arrival;
}

int pipeline_direct_finish(struct pipeline_direct *direct, struct error *error)
{
    if (pipeline_direct_exchange(direct, direct->lane->share->timetable.ticks, error) < 0)
        return -1;
    for (unsigned i = 0; i < direct->crossings * direct->most; i++)
        if (direct->places[i].passed != NULL &&
            crew_communicator_await(direct->lane->devices, direct->places[i].passed, error) < 0)
            return -1;
    return 0;
}

int pipeline_direct_settle(struct pipeline_direct *direct, struct error *error)
{
    return direct != NULL ? device_stream_synchronise(direct->stream, error) : 0;
}

/* ---------------------------------------------------------------- life cycle */

int pipeline_direct_new(struct pipeline_lane *lane, struct error *error)
{
    struct pipeline *pipeline = lane->pipeline;
    struct pipeline_direct *direct = memory_allocate(1, sizeof *direct);
    direct->pipeline = pipeline;
    direct->lane = lane;
    direct->crossings = pipeline->value_count + pipeline->gradient_count;
    direct->most = pipeline_slots(0, pipeline->partition.depths, pipeline_most_micro_batches(pipeline));
    direct->places = memory_allocate((size_t)direct->crossings * direct->most + 1, sizeof *direct->places);
    direct->operations = memory_allocate(direct->crossings + 1, sizeof *direct->operations);
    direct->moved = memory_allocate(direct->crossings + 1, sizeof(struct place *));
    if (device_stream_new(direct->lane->device, &direct->stream, error) < 0 || open_places(direct, error) < 0) {
        pipeline_direct_free(direct);
        return -1;
    }
    lane->direct = direct;
    return 0;
}

void pipeline_direct_free(struct pipeline_direct *direct)
{
    if (direct == NULL)
        return;
    device_stream_free(direct->stream);
    for (unsigned i = 0; i < direct->crossings * direct->most; i++) {
        device_event_free(direct->places[i].made);
        device_event_free(direct->places[i].passed);
        device_free(direct->lane->device, direct->places[i].arrival);
    }
    free(direct->places);
    free(direct->operations);
    free(direct->moved);
    free(direct);
}
