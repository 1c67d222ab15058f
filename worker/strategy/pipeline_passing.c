/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

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
    pthread_mutex_lock(&pipeline->lock);
    *counter = value;
    pthread_cond_broadcast(&pipeline->changed);
    pthread_mutex_unlock(&pipeline->lock);
}

/* What one direction of crossings looks like, seen from a unit. */
struct direction {
    const struct graph_crossing *crossings;
    unsigned count;
    const float **in;
    struct pipeline_passage *(*passages)(struct pipeline_unit *unit);
    const float *(*out)(const struct graph *graph, unsigned crossing, unsigned slot);
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
        return (struct direction){pipeline->values, pipeline->value_count, unit->values, value_passages,
                                  graph_value_out};
    return (struct direction){pipeline->gradients, pipeline->gradient_count, unit->gradients, gradient_passages,
                              graph_gradient_out};
}

static int await_incoming(struct pipeline_unit *unit, const struct direction *direction, unsigned crossing,
                          unsigned micro_batch, struct error *error)
{
    struct pipeline_unit *maker =
        pipeline_unit_here(unit->pipeline, direction->crossings[crossing].from, unit->share->replica);
    if (await(unit->pipeline, &direction->passages(maker)[crossing].posted, micro_batch + 1, error) < 0)
        return -1;
    direction->in[crossing] = direction->out(maker->graph, crossing, slot_of(maker, micro_batch));
    return 0;
}

/* The slot's last value must have been copied before it is overwritten. */
static int await_taken(struct pipeline_unit *unit, const struct direction *direction, unsigned crossing,
                       unsigned micro_batch, struct error *error)
{
    if (micro_batch < unit->slots)
        return 0;
    return await(unit->pipeline, &direction->passages(unit)[crossing].taken, micro_batch - unit->slots + 1, error);
}

int pipeline_passing_before(struct pipeline_unit *unit, struct pipeline_action action, struct error *error)
{
    struct direction direction = direction_of(unit, action.work);
    for (unsigned i = 0; i < direction.count; i++) {
        if (direction.crossings[i].to == unit->stage &&
            await_incoming(unit, &direction, i, action.micro_batch, error) < 0)
            return -1;
        if (direction.crossings[i].from == unit->stage &&
            await_taken(unit, &direction, i, action.micro_batch, error) < 0)
            return -1;
    }
    return 0;
}

int pipeline_passing_after(struct pipeline_unit *unit, struct pipeline_action action, struct error *error)
{
    struct direction direction = direction_of(unit, action.work);
    (void)error;
    for (unsigned i = 0; i < direction.count; i++) {
        const struct graph_crossing *crossing = &direction.crossings[i];
        if (crossing->to == unit->stage) {
            struct pipeline_unit *maker = pipeline_unit_here(unit->pipeline, crossing->from, unit->share->replica);
            advance(unit->pipeline, &direction.passages(maker)[i].taken, action.micro_batch + 1);
        }
        if (crossing->from == unit->stage)
            advance(unit->pipeline, &direction.passages(unit)[i].posted, action.micro_batch + 1);
    }
    return 0;
}

void pipeline_passing_reset(struct pipeline_unit *unit)
{
    memset(unit->values_out, 0, unit->pipeline->value_count * sizeof *unit->values_out);
    memset(unit->gradients_out, 0, unit->pipeline->gradient_count * sizeof *unit->gradients_out);
}
