/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/replica_ahead.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/model/graph.h"
#include "worker/optimizer/gradient_norm.h"
#include "worker/optimizer/optimizer.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/replica_parts.h"
#include "worker/strategy/replica_update.h"

/* While steps take longer an update waits until the passes before it are over: for as long as it is not queued, a process that
 * is to leave can save the last boundary. */
#define LONG_STEP_NS 250000000

struct replica_ahead {
    struct replica *replica;
    struct repeated_stream launches;
    struct repeated_launches passes[2]; /* of each of the replica's batches */
    struct repeated_launches update;
    struct step_values *values;  /* device memory, like the next two */
    struct loss_sums *pass_sums; /* the replica's own are where the host sees them */
    double *norm_blocks;
    double *norm; /* shared memory */
    struct device_event *updated;
    bool under_way;    /* passes of the step behind the state's, */
    uint64_t writings; /* of the state when they were queued; another number: it was overwritten since */
    bool is_quick;     /* the last step was */
    int64_t ended_ns;
    atomic_bool unheard;             /* an update is queued, and what it comes to not looked at: */
    struct training_progress before; /* as it was before that */
};

/* ---------------------------------------------------------------- passes */

static struct training_state *state_of(const struct replica_ahead *ahead)
{
    return ahead->replica->options.state;
}

/* Which step's passes come next; those that are under way, or over, were made with the scale that the host knows. */
static void begin_step(const struct replica_ahead *ahead, struct update_factors factors, int64_t pass)
{
    const struct replica *replica = ahead->replica;
    device_begin_step(replica->stream,
                      &(struct begin_step){.factors = factors,
                                           .pass = (uint32_t)pass,
                                           .loss_scale = strategy_loss_scale_for_passes(&replica->options),
                                           .good_steps = (int32_t)state_of(ahead)->progress.scaling.good_steps,
                                           .values = ahead->values});
}

static int queue_shards(void *context, struct error *error)
{
    const struct replica_ahead *ahead = context;
    return replica_queue_shards(ahead->replica, error);
}

static int queue_passes(struct replica_ahead *ahead, struct error *error)
{
    struct replica *replica = ahead->replica;
    if (replica_take_batch(replica, error) < 0)
        return -1;
    struct batch *batch = &replica->batches[replica->current];
    replica_batch_begin_use(replica, batch);
    if (repeated_launches_queue(&ahead->passes[replica->current], &ahead->launches, replica_key(replica, batch),
                                queue_shards, ahead, error) < 0)
        return -1;
    replica_batch_end_use(replica, batch);
    device_event_record(replica->passed, replica->stream);
    ahead->writings = state_of(ahead)->writings;
    ahead->under_way = true;
    return 0;
}

/* The host alone may have told otherwise since they were queued. */
static bool passes_are_under_way(const struct replica_ahead *ahead)
{
    const struct training_progress *progress = &state_of(ahead)->progress;
    const struct replica *replica = ahead->replica;
    return ahead->under_way && ahead->writings == state_of(ahead)->writings &&
           replica_batch_is(&replica->batches[replica->current], progress->data_epoch, progress->examples_consumed);
}

/* Those of the step that is wanted, and the batch behind it. */
static int take_passes(struct replica_ahead *ahead, struct error *error)
{
    struct replica *replica = ahead->replica;
    if (!passes_are_under_way(ahead)) {
        begin_step(ahead, (struct update_factors){0}, state_of(ahead)->progress.step + 1);
        if (queue_passes(ahead, error) < 0)
            return -1;
    }
    const struct batch *batch = &replica->batches[replica->current];
    replica->examples = batch->size;
    replica_record_share(replica, batch);
    if (replica_read_ahead(replica, error) < 0)
        return -1;
    return ahead->is_quick ? 0 : replica_await_passes(replica, error);
}

/* A failure here occurs again, and is reported, when the next step is taken. */
static void queue_next_passes(struct replica_ahead *ahead)
{
    if (queue_passes(ahead, NULL) == 0)
        (void)replica_read_ahead(ahead->replica, NULL);
}

/* ---------------------------------------------------------------- update */

static void queue_judgement(struct replica_ahead *ahead)
{
    struct replica *replica = ahead->replica;
    const struct parameter_layout *layout = graph_layout(replica->options.graph);
    int64_t trained = layout->elements - layout->statistics;
    gradient_norm_launch(replica->stream, replica->gradients[0] + layout->statistics, trained, ahead->norm_blocks);
    device_judge_step(replica->stream, &(struct judge_step){.blocks = gradient_norm_blocks(trained),
                                                            .block_sums = ahead->norm_blocks,
                                                            .passes = replica->end - replica->first,
                                                            .sums = ahead->pass_sums,
                                                            .limit = replica->options.gradient_clip_norm,
                                                            .values = ahead->values,
                                                            .ret_norm = ahead->norm,
                                                            .ret_sums = replica->seen});
}

/* The launches are the same in each step; the values that they read are not. */
static int queue_change(void *context, struct error *error)
{
    (void)error;
    struct replica_ahead *ahead = context;
    struct replica *replica = ahead->replica;
    const struct strategy_options *options = &replica->options;
    const struct parameter_layout *layout = graph_layout(options->graph);
    struct optimizer_range range = {.elements = layout->elements,
                                    .statistics = layout->statistics,
                                    .parameters = options->state->parameters,
                                    .gradients = replica->gradients[0],
                                    .values = ahead->values};
    memcpy(range.slots, options->state->slots, sizeof(range.slots));
    queue_judgement(ahead);
    optimizer_update(replica->stream, options->optimizer, &range);
    return 0;
}

static int queue_update(struct replica_ahead *ahead, double learning_rate, int64_t step, struct error *error)
{
    struct replica *replica = ahead->replica;
    const struct optimizer_spec *optimizer = replica->options.optimizer;
    int64_t counted = step - state_of(ahead)->progress.scaling.skipped_steps;
    begin_step(ahead, optimizer_factors(optimizer, learning_rate, counted), step + 1);
    if (repeated_launches_queue(&ahead->update, &ahead->launches, replica_key(replica, NULL), queue_change, ahead,
                                error) < 0)
        return -1;
    device_event_record(ahead->updated, replica->stream);
    return 0;
}

/* ---------------------------------------------------------------- a step */

static void take_time(struct replica_ahead *ahead)
{
    int64_t now = clock_monotonic_ns();
    ahead->is_quick = ahead->ended_ns > 0 && now - ahead->ended_ns < LONG_STEP_NS;
    ahead->ended_ns = now;
}

/* Reads the device's results. The device has skipped an update that this function refuses or skips, and has changed its loss scale in the
 * same way. */
static int hear(struct replica_ahead *ahead, unsigned votes, struct strategy_result *result, struct error *error)
{
    struct replica *replica = ahead->replica;
    const struct replica_update update = {
        .replicas = &replica, .count = 1, .controls = replica->controls[0], .size = 1};
    if (device_event_wait(ahead->updated, error) < 0)
        return -1;
    take_time(ahead);
    replica_sum_controls(replica, 0, votes);
    replica_update_read(&update, result);
    result->gradient_norm = *ahead->norm;
    if (strategy_judge(&replica->options, result, error) < 0)
        return -1;
    replica_update_rescale(&update, result->skipped);
    return 0;
}

/* Reading the next batch may take forever, so the step can be abandoned meanwhile: the device completes the update without the host. */
static void queue_next_passes_at_boundary(struct replica_ahead *ahead, const struct training_progress *before)
{
    const struct strategy_options *options = &ahead->replica->options;
    ahead->before = *before;
    atomic_store(&ahead->unheard, true);
    strategy_release_step(options);
    queue_next_passes(ahead);
    strategy_hold_step(options);
    atomic_store(&ahead->unheard, false);
}

void replica_ahead_stand_at_boundary(struct replica_ahead *ahead)
{
    struct strategy_result result = {.step = state_of(ahead)->progress.step};
    if (atomic_load(&ahead->unheard) && hear(ahead, 0, &result, NULL) < 0)
        state_of(ahead)->progress = ahead->before;
}

int replica_ahead_step(struct replica_ahead *ahead, double learning_rate, unsigned votes,
                       struct strategy_result *ret_result, struct error *error)
{
    struct replica *replica = ahead->replica;
    const struct strategy_options *options = &replica->options;
    struct training_progress before = options->state->progress;
    const struct replica_update update = {.replicas = &replica, .count = 1};
    struct strategy_result result = {.step = before.step + 1};
    if (take_passes(ahead, error) < 0)
        return -1;
    ahead->under_way = false;
    strategy_leave_boundary(options);
    if (queue_update(ahead, learning_rate, result.step, error) < 0)
        return -1;
    replica_update_advance(&update, result.step);
    if (options->total_steps != NULL && result.step < *options->total_steps && !(votes & STRATEGY_VOTE_LEAVE))
        queue_next_passes_at_boundary(ahead, &before);
    if (hear(ahead, votes, &result, error) < 0) {
        ahead->under_way = false;
        options->state->progress = before;
        return -1;
    }
    *ret_result = result;
    return 0;
}

int replica_ahead_settle(struct replica_ahead *ahead, struct error *error)
{
    return device_stream_synchronise(ahead->replica->stream, error);
}

/* ---------------------------------------------------------------- life cycle */

static int allocate(struct replica_ahead *ahead, struct error *error)
{
    const struct replica *replica = ahead->replica;
    struct device *device = replica->options.device;
    const struct parameter_layout *layout = graph_layout(replica->options.graph);
    size_t blocks = (size_t)gradient_norm_blocks(layout->elements - layout->statistics);
    size_t passes = replica->end - replica->first;
    if (device_allocate(device, MEMORY_DEVICE, sizeof(*ahead->values), (void **)&ahead->values, error) < 0 ||
        device_allocate(device, MEMORY_DEVICE, passes * sizeof(*ahead->pass_sums), (void **)&ahead->pass_sums, error) <
            0 ||
        device_allocate(device, MEMORY_DEVICE, blocks * sizeof(double), (void **)&ahead->norm_blocks, error) < 0 ||
        device_allocate(device, MEMORY_SHARED, sizeof(double), (void **)&ahead->norm, error) < 0)
        return -1;
    return device_event_new(device, &ahead->updated, error);
}

int replica_ahead_new(struct replica *replica, struct replica_ahead **ret_ahead, struct error *error)
{
    struct replica_ahead *ahead = memory_allocate(1, sizeof(*ahead));
    ahead->replica = replica;
    if (allocate(ahead, error) < 0) {
        replica_ahead_free(ahead);
        return -1;
    }
    ahead->launches = repeated_stream_of(&replica->options, replica->stream);
    replica->sums = ahead->pass_sums;
    replica->values = ahead->values;
    replica->is_whole_step = true;
    *ret_ahead = ahead;
    return 0;
}

void replica_ahead_free(struct replica_ahead *ahead)
{
    if (ahead == NULL)
        return;
    struct replica *replica = ahead->replica;
    struct device *device = replica->options.device;
    (void)device_stream_synchronise(replica->stream, NULL);
    replica->sums = replica->seen;
    replica->values = NULL;
    replica->is_whole_step = false;
    repeated_launches_release(&ahead->passes[0]);
    repeated_launches_release(&ahead->passes[1]);
    repeated_launches_release(&ahead->update);
    device_free(device, ahead->values);
    device_free(device, ahead->pass_sums);
    device_free(device, ahead->norm_blocks);
    device_free(device, ahead->norm);
    device_event_free(ahead->updated);
    free(ahead);
}
