/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/lock.h"
#include "common/memory.h"
#include "worker/strategy/pipeline_parts.h"

static unsigned slot_of(const struct pipeline_unit *unit, unsigned micro_batch)
{
    return micro_batch % unit->slots;
}

/* ---- between two units of this process: the maker counts up `posted`, the reader `taken` */

static int await(struct pipeline *pipeline, const unsigned *counter, unsigned least, struct error *error)
{
    pthread_mutex_lock(&pipeline->lock);
    while (*counter < least && !pipeline->failed)
        pthread_cond_wait(&pipeline->changed, &pipeline->lock);
    bool failed = *counter < least;
    pthread_mutex_unlock(&pipeline->lock);
    return failed ? error_set(error, ERROR_CANCELLED, "another stage has failed") : 0;
}

static void advance(struct pipeline *pipeline, unsigned *counter, unsigned value)
{
    SCOPED_LOCK(&pipeline->lock);
    *counter = value;
    pthread_cond_broadcast(&pipeline->changed);
}

/* One direction of crossings (values or gradients), as seen by a unit. */
struct direction {
    const struct graph_crossing *crossings;
    unsigned count;
    unsigned first; /* number of its first crossing among both directions' */
    const void **in;
    struct pipeline_passage *(*passages)(struct pipeline_unit *unit);
    const void *(*out)(const struct graph *graph, unsigned crossing, unsigned slot);
};

static struct pipeline_passage *value_passages(struct pipeline_unit *unit)
{
    return unit->values_out;
}

static struct pipeline_passage *gradient_passages(struct pipeline_unit *unit)
{
    return unit->gradients_out;
}

static struct direction direction_of(const struct pipeline_unit *unit, enum pipeline_work work)
{
    const struct pipeline *pipeline = unit->pipeline;
    if (work == PIPELINE_FORWARD)
        return (struct direction){pipeline->values, pipeline->value_count, 0,
                                  unit->values,     value_passages,        graph_value_out};
    return (struct direction){pipeline->gradients, pipeline->gradient_count, pipeline->value_count,
                              unit->gradients,     gradient_passages,        graph_gradient_out};
}

static struct pipeline_unit *peer_of(const struct pipeline_unit *unit, unsigned part)
{
    return unit->share->units[part];
}

/* ---- between processes */

static unsigned crossing_count(const struct pipeline *pipeline)
{
    return pipeline->value_count + pipeline->gradient_count;
}

static unsigned channel_of(const struct pipeline_unit *unit, const struct direction *direction, unsigned crossing)
{
    return unit->share->replica * crossing_count(unit->pipeline) + direction->first + crossing;
}

static size_t bytes_of(const struct pipeline_unit *unit, const struct graph_crossing *crossing, unsigned micro_batch)
{
    return (size_t)graph_crossing_floats(crossing, unit->share->pieces[micro_batch].count) * sizeof(float);
}

static unsigned rank_of(const struct pipeline_unit *unit, unsigned part)
{
    const struct pipeline *pipeline = unit->pipeline;
    return pipeline_rank_of(&pipeline->shape, pipeline->partition.stage_of_part[part], unit->share->replica);
}

static unsigned departure_number(const struct pipeline_unit *unit, const struct direction *direction, unsigned crossing,
                                 unsigned micro_batch)
{
    return (direction->first + crossing) * unit->slots + slot_of(unit, micro_batch);
}

static struct transfer *departure_of(const struct pipeline_unit *unit, const struct direction *direction,
                                     unsigned crossing, unsigned micro_batch)
{
    return &unit->departures[departure_number(unit, direction, crossing, micro_batch)];
}

size_t pipeline_passing_bytes(const struct pipeline *pipeline, const struct graph_crossing *crossing)
{
    return (size_t)graph_crossing_floats(crossing, graph_max_examples(pipeline->base.options.graph)) * sizeof(float);
}

/* Returns the memory into which the value arrives; allocates it the first time. */
static int open_arrival(struct pipeline_unit *unit, const struct direction *direction, unsigned crossing,
                        enum device_memory kind, void **ret_arrival, struct error *error)
{
    size_t most = pipeline_passing_bytes(unit->pipeline, &direction->crossings[crossing]);
    void **arrival = &unit->arrivals[direction->first + crossing];
    if (*arrival == NULL && device_allocate(unit->device, kind, most, arrival, error) < 0)
        return -1;
    direction->in[crossing] = *ret_arrival = *arrival;
    return 0;
}

static int receive(struct pipeline_unit *unit, const struct direction *direction, unsigned crossing,
                   unsigned micro_batch, struct error *error)
{
    const struct graph_crossing *what = &direction->crossings[crossing];
    void *arrival;
    if (open_arrival(unit, direction, crossing, MEMORY_SHARED, &arrival, error) < 0)
        return -1;
    return transfer_receive(unit->pipeline->group, rank_of(unit, what->from), channel_of(unit, direction, crossing),
                            arrival, bytes_of(unit, what, micro_batch), error);
}

/* Behind what makes it, where the host cannot send it from where it is. */
static int copy_out(struct pipeline_unit *unit, const struct direction *direction, unsigned crossing,
                    unsigned micro_batch, struct error *error)
{
    const struct graph_crossing *what = &direction->crossings[crossing];
    void **outgoing = &unit->outgoing[departure_number(unit, direction, crossing, micro_batch)];
    size_t most = pipeline_passing_bytes(unit->pipeline, what);
    if (*outgoing == NULL && device_allocate(unit->device, MEMORY_SHARED, most, outgoing, error) < 0)
        return -1;
    device_copy(unit->stream, &(struct copy){.bytes = (int64_t)bytes_of(unit, what, micro_batch),
                                             .from = direction->out(unit->graph, crossing, slot_of(unit, micro_batch)),
                                             .to = *outgoing});
    return 0;
}

static void send(struct pipeline_unit *unit, const struct direction *direction, unsigned crossing, unsigned micro_batch)
{
    const struct graph_crossing *what = &direction->crossings[crossing];
    const struct pipeline *pipeline = unit->pipeline;
    const void *copy = unit->outgoing[departure_number(unit, direction, crossing, micro_batch)];
    transfer_send_start(pipeline->group, rank_of(unit, what->to), channel_of(unit, direction, crossing),
                        copy != NULL ? copy : direction->out(unit->graph, crossing, slot_of(unit, micro_batch)),
                        bytes_of(unit, what, micro_batch), departure_of(unit, direction, crossing, micro_batch));
}

/* ---- either way */

bool pipeline_passing_has_arrival(const struct pipeline_unit *unit, const struct pipeline_unit *maker, unsigned number)
{
    unsigned values = unit->pipeline->value_count;
    return unit->store != maker->store && number >= values && graph_stage_adds_gradient(unit->graph, number - values);
}

static int open_arrivals(struct pipeline_unit *unit, const struct direction *direction, struct error *error)
{
    void *arrival;
    for (unsigned i = 0; i < direction->count; i++) {
        const struct pipeline_unit *maker = peer_of(unit, direction->crossings[i].from);
        if (direction->crossings[i].to == unit->part && maker != NULL &&
            pipeline_passing_has_arrival(unit, maker, direction->first + i) &&
            open_arrival(unit, direction, i, MEMORY_DEVICE, &arrival, error) < 0)
            return -1;
    }
    return 0;
}

int pipeline_passing_open(struct pipeline *pipeline, struct error *error)
{
    for (unsigned u = 0; u < pipeline->unit_count; u++)
        for (enum pipeline_work work = PIPELINE_FORWARD; work <= PIPELINE_BACKWARD; work++) {
            const struct direction direction = direction_of(&pipeline->units[u], work);
            if (open_arrivals(&pipeline->units[u], &direction, error) < 0)
                return -1;
        }
    return 0;
}

/* Takes data that another unit of this process has made. */
static int take(struct pipeline_unit *unit, const struct direction *direction, unsigned crossing, unsigned micro_batch,
                const struct pipeline_unit *maker, struct error *error)
{
    const void *from = direction->out(maker->graph, crossing, slot_of(maker, micro_batch));
    void *arrival;
    if (!pipeline_passing_has_arrival(unit, maker, direction->first + crossing)) {
        direction->in[crossing] = from;
        return 0;
    }
    if (open_arrival(unit, direction, crossing, MEMORY_DEVICE, &arrival, error) < 0)
        return -1;
    int64_t bytes = (int64_t)bytes_of(unit, &direction->crossings[crossing], micro_batch);
    device_copy(unit->stream, &(struct copy){.bytes = bytes, .from = from, .to = arrival});
    return 0;
}

static int await_incoming(struct pipeline_unit *unit, const struct direction *direction, unsigned crossing,
                          unsigned micro_batch, struct error *error)
{
    struct pipeline_unit *maker = peer_of(unit, direction->crossings[crossing].from);
    struct pipeline_direct *direct = unit->lane->direct;
    if (maker == NULL && direct != NULL) {
        direction->in[crossing] = pipeline_direct_arrival(direct, direction->first + crossing, micro_batch);
        return pipeline_direct_await(direct, direction->first + crossing, micro_batch, error);
    }
    if (maker == NULL)
        return receive(unit, direction, crossing, micro_batch, error);
    if (await(unit->pipeline, &direction->passages(maker)[crossing].posted, micro_batch + 1, error) < 0)
        return -1;
    return take(unit, direction, crossing, micro_batch, maker, error);
}

/* The slot's last value must have been copied before it is overwritten. */
static int await_taken(struct pipeline_unit *unit, const struct direction *direction, unsigned crossing,
                       unsigned micro_batch, struct error *error)
{
    struct pipeline_direct *direct = unit->lane->direct;
    bool leaves = peer_of(unit, direction->crossings[crossing].to) == NULL;
    if (micro_batch < unit->slots)
        return 0;
    if (leaves && direct != NULL)
        return pipeline_direct_await(direct, direction->first + crossing, micro_batch, error);
    if (leaves)
        return transfer_wait(unit->pipeline->group, departure_of(unit, direction, crossing, micro_batch), error);
    return await(unit->pipeline, &direction->passages(unit)[crossing].taken, micro_batch - unit->slots + 1, error);
}

int pipeline_passing_before(struct pipeline_unit *unit, struct pipeline_action action, struct error *error)
{
    struct direction direction = direction_of(unit, action.work);
    for (unsigned i = 0; i < direction.count; i++) {
        if (direction.crossings[i].to == unit->part &&
            await_incoming(unit, &direction, i, action.micro_batch, error) < 0)
            return -1;
        if (direction.crossings[i].from == unit->part &&
            await_taken(unit, &direction, i, action.micro_batch, error) < 0)
            return -1;
    }
    return 0;
}

int pipeline_passing_behind(struct pipeline_unit *unit, struct pipeline_action action, struct error *error)
{
    struct direction direction = direction_of(unit, action.work);
    if (device_memory_is_shared(unit->device) || unit->lane->direct != NULL)
        return 0;
    for (unsigned i = 0; i < direction.count; i++)
        if (direction.crossings[i].from == unit->part && peer_of(unit, direction.crossings[i].to) == NULL &&
            copy_out(unit, &direction, i, action.micro_batch, error) < 0)
            return -1;
    return 0;
}

static void hand_on(struct pipeline_unit *unit, const struct direction *direction, unsigned crossing,
                    unsigned micro_batch)
{
    bool leaves = peer_of(unit, direction->crossings[crossing].to) == NULL;
    if (leaves && unit->lane->direct == NULL)
        send(unit, direction, crossing, micro_batch);
    else if (!leaves)
        advance(unit->pipeline, &direction->passages(unit)[crossing].posted, micro_batch + 1);
}

void pipeline_passing_after(struct pipeline_unit *unit, struct pipeline_action action)
{
    struct direction direction = direction_of(unit, action.work);
    for (unsigned i = 0; i < direction.count; i++) {
        const struct graph_crossing *crossing = &direction.crossings[i];
        struct pipeline_unit *maker = crossing->to == unit->part ? peer_of(unit, crossing->from) : NULL;
        if (maker)
            advance(unit->pipeline, &direction.passages(maker)[i].taken, action.micro_batch + 1);
        if (crossing->from == unit->part)
            hand_on(unit, &direction, i, action.micro_batch);
    }
}

int pipeline_passing_finish(struct pipeline_unit *unit, struct error *error)
{
    for (unsigned i = 0; unit->pipeline->group && i < crossing_count(unit->pipeline) * unit->slots; i++)
        if (transfer_wait(unit->pipeline->group, &unit->departures[i], error) < 0)
            return -1;
    return 0;
}

void pipeline_passing_reset(struct pipeline_unit *unit)
{
    memset(unit->values_out, 0, unit->pipeline->value_count * sizeof *unit->values_out);
    memset(unit->gradients_out, 0, unit->pipeline->gradient_count * sizeof *unit->gradients_out);
    /* Sends that a failed run has left under way ended with its group. */
    for (unsigned i = 0; i < crossing_count(unit->pipeline) * unit->slots; i++)
        unit->departures[i].pending = false;
}

void pipeline_passing_init(struct pipeline_unit *unit)
{
    struct pipeline *pipeline = unit->pipeline;
    pipeline->values = graph_values(unit->graph, &pipeline->value_count);
    pipeline->gradients = graph_gradients(unit->graph, &pipeline->gradient_count);
    unit->values_out = memory_allocate(pipeline->value_count + 1, sizeof *unit->values_out);
    unit->gradients_out = memory_allocate(pipeline->gradient_count + 1, sizeof *unit->gradients_out);
    unit->values = memory_allocate(pipeline->value_count + 1, sizeof(void *));
    unit->gradients = memory_allocate(pipeline->gradient_count + 1, sizeof(void *));
    unit->arrivals = memory_allocate(crossing_count(pipeline) + 1, sizeof(void *));
    unit->departures = memory_allocate((size_t)crossing_count(pipeline) * unit->slots + 1, sizeof *unit->departures);
    unit->outgoing = memory_allocate((size_t)crossing_count(pipeline) * unit->slots + 1, sizeof(void *));
}

void pipeline_passing_release(struct pipeline_unit *unit)
{
    for (unsigned i = 0; unit->arrivals && i < crossing_count(unit->pipeline); i++)
        if (unit->arrivals[i])
            device_free(unit->device, unit->arrivals[i]);
    for (unsigned i = 0; unit->departures && i < crossing_count(unit->pipeline) * unit->slots; i++) {
        transfer_release(&unit->departures[i]);
        device_free(unit->device, unit->outgoing[i]);
    }
    free(unit->outgoing);
    free(unit->arrivals);
    free(unit->departures);
    free(unit->values_out);
    free(unit->gradients_out);
    free(unit->values);
    free(unit->gradients);
}
