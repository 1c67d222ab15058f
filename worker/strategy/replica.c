/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/replica.h"

#include <stdatomic.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/data/dataset.h"
#include "worker/data/sampler.h"
#include "worker/data/step_record.h"
#include "worker/device/shard_exchange.h"
#include "worker/model/graph.h"
#include "worker/optimizer/gradient_norm.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/replica_lanes.h"

/* ---------------------------------------------------------------- examples */

void replica_next_position(const struct replica *replica, int64_t *data_epoch, int64_t *position)
{
    sampler_advance(replica->options.sampler, replica->options.global_batch, data_epoch, position);
}

/* ---------------------------------------------------------------- passes */

double replica_target_count(const struct replica *replica, int64_t examples)
{
    return (double)(examples * example_targets(graph_example_format(replica->options.graph)));
}

static float *slot_memory(struct replica *replica, unsigned subtree, unsigned slot)
{
    return slot == 0 ? replica->gradients[subtree] : replica->partial[slot];
}

static void merge_slots(struct replica *replica, unsigned subtree, unsigned slot, unsigned merges)
{
    int64_t elements = graph_layout(replica->options.graph)->elements;
    for (; merges > 0; merges--, slot--)
        device_axpy(replica->stream, &(struct axpy){.count = elements,
                                                    .factor = 1.0f,
                                                    .x = slot_memory(replica, subtree, slot),
                                                    .y = slot_memory(replica, subtree, slot - 1)});
}

struct graph_pass replica_pass(const struct replica *replica, unsigned shard)
{
    const struct batch *batch = &replica->batches[replica->current];
    const struct batch_shard part = replica_batch_shard(replica, batch, shard);
    return (struct graph_pass){.parameters = replica->options.state->parameters,
                               .inputs = part.inputs,
                               .targets = part.targets,
                               .batch_is_near = replica->copies != NULL,
                               .examples = part.count,
                               .scale = (float)(1.0 / replica_target_count(replica, batch->size)),
                               .loss_scale = strategy_loss_scale_for_passes(&replica->options),
                               .sums = &replica->sums[shard - replica->first],
                               .seed = (uint64_t)replica->options.state->progress.seed,
                               .step = replica->options.state->progress.step + 1,
                               .values = replica->values,
                               .is_whole_step = replica->is_whole_step,
                               .first_example = part.first,
                               .exchange = replica->exchange,
                               .shard = shard};
}

/* On the stream's thread: the only shard's pass is over. */
static void leave_exchange(void *context)
{
    const struct replica *replica = context;
    if (replica->exchange->leave != NULL)
        replica->exchange->leave(replica->exchange, replica->first);
}

/* One shard. A leaf that is a right child is added to its sibling by the pass itself, which saves a slot. */
static int start_pass(struct replica *replica, unsigned subtree, unsigned leaf, struct error *error)
{
    unsigned slot, merges;
    reduction_leaf_place(replica->cover[subtree].count, leaf, &slot, &merges);
    bool accumulate = merges > 0;
    if (accumulate) {
        slot--;
        merges--;
    }
    struct graph_pass pass = replica_pass(replica, replica->cover[subtree].first + leaf);
    pass.gradients = slot_memory(replica, subtree, slot);
    pass.accumulate = accumulate;
    pass.weights_stand = subtree > 0 || leaf > 0;
    bool last = subtree + 1 == replica->cover_count && leaf + 1 == replica->cover[subtree].count;
    pass.is_whole_step |= !last || merges > 0; /* bucket events are needed only once, at the end */
    if (graph_forward_backward(replica->options.graph, replica->stream, &pass, error) < 0)
        return -1;
    if (replica->exchange != NULL)
        device_stream_call(replica->stream, leave_exchange, replica);
    merge_slots(replica, subtree, slot, merges);
    replica->buckets_are_final = merges == 0;
    return 0;
}

void replica_record_share(const struct replica *replica, const struct batch *batch)
{
    int64_t first, count = replica_batch_share(replica, batch->size, &first);
    step_record_share(replica->options.sampler, replica->options.state->progress.step + 1, batch->data_epoch,
                      batch->position + first, count);
}

int replica_queue_shards(struct replica *replica, struct error *error)
{
    if (replica->lanes != NULL)
        return replica_lanes_start(replica, error);
    for (unsigned subtree = 0; subtree < replica->cover_count; subtree++)
        for (unsigned leaf = 0; leaf < replica->cover[subtree].count; leaf++)
            if (start_pass(replica, subtree, leaf, error) < 0)
                return -1;
    return 0;
}

/* That of the state's position, which may have been read ahead. */
int replica_take_batch(struct replica *replica, struct error *error)
{
    const struct training_progress *progress = &replica->options.state->progress;
    if (replica_batch_is(&replica->batches[!replica->current], progress->data_epoch, progress->examples_consumed))
        replica->current = !replica->current;
    return replica_batch_read(replica, &replica->batches[replica->current], progress->data_epoch,
                              progress->examples_consumed, error);
}

struct repeated_key replica_key(const struct replica *replica, const struct batch *batch)
{
    const struct training_state *state = replica->options.state;
    struct repeated_key key = {.parameters = state->parameters, .seed = state->progress.seed};
    if (batch != NULL) {
        key.inputs = batch->near_inputs;
        key.examples = batch->size;
    }
    return key;
}

static int queue_shards(void *context, struct error *error)
{
    return replica_queue_shards(context, error);
}

/* All of them with one call, once they have been recorded. */
static int queue_repeatedly(struct replica *replica, const struct batch *batch, struct error *error)
{
    if (replica->told == NULL)
        return replica_queue_shards(replica, error);
    int64_t step = replica->options.state->progress.step + 1;
    device_begin_step(replica->stream,
                      &(struct begin_step){.pass = (uint32_t)step,
                                           .loss_scale = strategy_loss_scale_for_passes(&replica->options),
                                           .values = replica->told});
    return repeated_launches_queue(&replica->passes[replica->current], &replica->launches, replica_key(replica, batch),
                                   queue_shards, replica, error);
}

static int queue_passes(struct replica *replica, struct error *error)
{
    if (replica_take_batch(replica, error) < 0)
        return -1;
    struct batch *batch = &replica->batches[replica->current];
    replica_batch_begin_use(replica, batch);
    if (queue_repeatedly(replica, batch, error) < 0)
        return -1;
    replica_batch_end_use(replica, batch);
    device_event_record(replica->passed, replica->stream);
    return 0;
}

int replica_launch_passes(struct replica *replica, int64_t *ret_examples, struct error *error)
{
    if (queue_passes(replica, error) < 0)
        return -1;
    const struct batch *batch = &replica->batches[replica->current];
    replica_record_share(replica, batch);
    replica->examples = batch->size;
    *ret_examples = replica->examples;
    return 0;
}

int replica_read_ahead(struct replica *replica, struct error *error)
{
    const struct training_progress *progress = &replica->options.state->progress;
    int64_t data_epoch = progress->data_epoch, position = progress->examples_consumed;
    replica_next_position(replica, &data_epoch, &position);
    return replica_batch_read(replica, &replica->batches[!replica->current], data_epoch, position, error);
}

int replica_start_passes(struct replica *replica, int64_t *ret_examples, struct error *error)
{
    if (replica_launch_passes(replica, ret_examples, error) < 0)
        return -1;
    return replica_read_ahead(replica, error);
}

struct device_event *replica_bucket_event(const struct replica *replica, unsigned index)
{
    return replica->buckets_are_final ? graph_bucket_event(replica->options.graph, index) : replica->passed;
}

/* Fails if another shard's pass has failed; gradients and sums are then useless. */
static int check_exchange(struct replica *replica, struct error *error)
{
    return replica->exchange != NULL ? replica->exchange->check(replica->exchange, error) : 0;
}

int replica_wait_bucket(struct replica *replica, unsigned index, struct error *error)
{
    return device_event_wait(replica_bucket_event(replica, index), error) < 0 ? -1 : check_exchange(replica, error);
}

bool replica_bucket_is_final(const struct replica *replica, unsigned index)
{
    return device_event_is_done(replica_bucket_event(replica, index));
}

bool replica_has_passed(const struct replica *replica)
{
    return device_event_is_done(replica->passed);
}

/* The same order of additions as the gradients have. */
static void sum_controls(struct replica *replica, unsigned subtree)
{
    float slots[REDUCTION_DEPTH_MAX][CONTROL_VOTES];
    for (unsigned leaf = 0; leaf < replica->cover[subtree].count; leaf++) {
        unsigned slot, merges;
        reduction_leaf_place(replica->cover[subtree].count, leaf, &slot, &merges);
        const struct loss_sums *sums = &replica->seen[replica->cover[subtree].first + leaf - replica->first];
        slots[slot][CONTROL_LOSS] = (float)sums->loss;
        slots[slot][CONTROL_CORRECT] = (float)sums->correct;
        slots[slot][CONTROL_COUNT] = (float)sums->count;
        for (; merges > 0; merges--, slot--)
            for (unsigned i = 0; i < CONTROL_VOTES; i++)
                slots[slot - 1][i] += slots[slot][i];
    }
    memset(replica->controls[subtree], 0, sizeof(replica->controls[subtree]));
    memcpy(replica->controls[subtree], slots[0], sizeof(slots[0]));
}

void replica_sum_controls(struct replica *replica, unsigned rank, unsigned votes)
{
    for (unsigned subtree = 0; subtree < replica->cover_count; subtree++)
        sum_controls(replica, subtree);
    replica->controls[0][CONTROL_VOTES + rank] = (float)votes;
}

int replica_await_passes(struct replica *replica, struct error *error)
{
    if (device_event_wait(replica->passed, error) < 0)
        return -1;
    return replica->lanes != NULL ? replica_lanes_check(replica->lanes, error) : 0;
}

/* On a thread of the device. */
static void note_passed(void *context)
{
    atomic_store(&((struct replica *)context)->passed_ns, clock_monotonic_ns());
}

void replica_time_passes(struct replica *replica)
{
    atomic_store(&replica->passed_ns, 0);
    device_stream_call(replica->stream, note_passed, replica);
}

/* A caller that has awaited the passes may get here before the device has recorded the time. */
int64_t replica_passed_ns(const struct replica *replica)
{
    int64_t noted_ns = atomic_load(&replica->passed_ns);
    return noted_ns > 0 ? noted_ns : clock_monotonic_ns();
}

int replica_finish_passes(struct replica *replica, unsigned rank, unsigned votes, struct error *error)
{
    if (replica_await_passes(replica, error) < 0 || check_exchange(replica, error) < 0)
        return -1;
    replica_sum_controls(replica, rank, votes);
    return 0;
}

void replica_settle(struct replica *replica)
{
    (void)device_event_wait(replica->passed, NULL);
}

/* ---------------------------------------------------------------- life cycle */

static int check_shape(const struct replica *replica, struct error *error)
{
    int64_t largest = replica_largest_shard(&replica->options, replica->shards);
    if (dataset_count(replica->options.dataset) < 1)
        return error_set(error, ERROR_INVALID, "there are no training examples");
    if (largest > graph_max_examples(replica->options.graph))
        return error_set(
            error, ERROR_INVALID,
            "logical shards have %lld examples, but this worker planned memory for %lld; do all workers have "
            "the same job document?",
            (long long)largest, (long long)graph_max_examples(replica->options.graph));
    return 0;
}

static unsigned partial_slots(const struct reduction_subtree *cover, unsigned count)
{
    unsigned most = 0;
    for (unsigned subtree = 0; subtree < count; subtree++) {
        for (unsigned leaf = 0; leaf < cover[subtree].count; leaf++) {
            unsigned slot, merges;
            reduction_leaf_place(cover[subtree].count, leaf, &slot, &merges);
            slot -= merges > 0;
            most = slot > most ? slot : most;
        }
    }
    return most;
}

/* Collectives, and other devices, read and write gradients on the host, unless the crew's devices have them from each other. */
static int allocate_gradients(struct replica *replica, struct error *error)
{
    struct device *device = replica->options.device;
    bool alone = replica->options.crew.member == NULL && replica->options.device_count <= 1;
    enum device_memory kind = alone || replica->options.sums.gradients_stay ? MEMORY_DEVICE : MEMORY_SHARED;
    size_t bytes = (size_t)graph_layout(replica->options.graph)->elements * sizeof(float);
    for (unsigned i = 0; i < replica->cover_count; i++)
        if (device_allocate(device, kind, bytes, (void **)&replica->gradients[i], error) < 0)
            return -1;
    for (unsigned slot = partial_slots(replica->cover, replica->cover_count); slot > 0; slot--)
        if (device_allocate(device, MEMORY_DEVICE, bytes, (void **)&replica->partial[slot], error) < 0)
            return -1;
    return 0;
}

static int allocate_sums(struct replica *replica, struct error *error)
{
    struct device *device = replica->options.device;
    int64_t blocks = gradient_norm_blocks(graph_layout(replica->options.graph)->elements);
    size_t shards = replica->end - replica->first;
    if (device_allocate(device, MEMORY_SHARED, shards * sizeof(*replica->sums), (void **)&replica->sums, error) < 0)
        return -1;
    replica->seen = replica->sums;
    return device_allocate(device, MEMORY_SHARED, (size_t)blocks * sizeof(double), (void **)&replica->norm_blocks,
                           error);
}

/* Two batches where the host writes them, and where that is far two near the device, copied by a stream of their own. */
static void plan_batches(const struct strategy_options *options, int64_t examples, struct memory_plans *plans)
{
    const struct example_format *format = graph_example_format(options->graph);
    int64_t bytes = 2 * examples * (int64_t)(example_input_bytes(format) + example_target_bytes(format));
    plans->host.bytes[MEMORY_INPUT] += bytes;
    if (device_memory_is_shared(options->device))
        return;
    plans->device.bytes[MEMORY_INPUT] += bytes;
    plans->device.bytes[MEMORY_STREAMS] += 2 * device_stream_bytes(options->device);
}

void replica_memory_plan(const struct strategy_options *options, enum device_memory gradients, unsigned shards,
                         unsigned first, unsigned end, bool side_by_side, struct memory_plans *plans)
{
    struct reduction_subtree cover[REDUCTION_COVER_MAX];
    struct memory_plan pass, *near = memory_plans_of(plans, options->device);
    struct memory_plan *contributed = gradients == MEMORY_SHARED ? &plans->host : near;
    unsigned sums = reduction_cover(shards, first, end, cover);
    int64_t lanes = side_by_side && end - first > 1 ? end - first : 0;
    graph_memory_plan(options->graph, 0, &pass);
    plan_batches(options, (end - first) * replica_largest_shard(options, shards), plans);
    near->bytes[MEMORY_ACTIVATIONS] += lanes * pass.bytes[MEMORY_ACTIVATIONS];
    near->bytes[MEMORY_WORKSPACE] += lanes * pass.bytes[MEMORY_WORKSPACE];
    near->bytes[MEMORY_GRADIENTS] += lanes * pass.bytes[MEMORY_GRADIENTS];
    if (lanes > 0)
        return;
    contributed->bytes[MEMORY_GRADIENTS] += sums * pass.bytes[MEMORY_GRADIENTS];
    near->bytes[MEMORY_GRADIENTS] += partial_slots(cover, sums) * pass.bytes[MEMORY_GRADIENTS];
}

int replica_new(const struct strategy_options *options, unsigned shards, unsigned first, unsigned end,
                struct replica **ret_replica, struct error *error)
{
    struct replica *replica = memory_allocate(1, sizeof(*replica));
    replica->options = *options;
    replica->shards = shards;
    replica->first = first;
    replica->end = end;
    replica->cover_count = reduction_cover(shards, first, end, replica->cover);
    for (unsigned i = 0; i < replica->cover_count; i++)
        replica->control_pointers[i] = replica->controls[i];
    if (check_shape(replica, error) < 0 || device_stream_new(options->device, &replica->stream, error) < 0 ||
        device_event_new(options->device, &replica->passed, error) < 0 || allocate_gradients(replica, error) < 0 ||
        replica_batches_allocate(replica, error) < 0 || allocate_sums(replica, error) < 0) {
        replica_free(replica);
        return -1;
    }
    *ret_replica = replica;
    return 0;
}

int replica_use_exchange(struct replica *replica, struct shard_exchange *exchange, struct error *error)
{
    if (!device_memory_is_shared(replica->options.device))
        return error_set(error, ERROR_UNSUPPORTED,
                         "statistics: Global (of the model, or of a BatchNorm layer) with several logical shards works "
                         "on CPUs only; set it to Shard");
    replica->exchange = exchange;
    if (replica->end - replica->first == 1)
        return 0;
    for (unsigned slot = 0; slot < REDUCTION_DEPTH_MAX; slot++) { /* lanes have gradients of their own */
        device_free(replica->options.device, replica->partial[slot]);
        replica->partial[slot] = NULL;
    }
    return replica_lanes_new(replica, &replica->lanes, error);
}

int replica_record(struct replica *replica, struct error *error)
{
    replica->launches = repeated_stream_of(&replica->options, replica->stream);
    if (!replica->launches.records)
        return 0;
    if (device_allocate(replica->options.device, MEMORY_DEVICE, sizeof(*replica->told), (void **)&replica->told,
                        error) < 0)
        return -1;
    replica->values = replica->told;
    return 0;
}

void replica_free(struct replica *replica)
{
    if (replica == NULL)
        return;
    struct device *device = replica->options.device;
    replica_lanes_free(replica->lanes);
    device_stream_free(replica->stream);
    repeated_launches_release(&replica->passes[0]);
    repeated_launches_release(&replica->passes[1]);
    device_free(device, replica->told);
    device_event_free(replica->passed);
    for (unsigned i = 0; i < REDUCTION_COVER_MAX; i++)
        device_free(device, replica->gradients[i]);
    for (unsigned i = 0; i < REDUCTION_DEPTH_MAX; i++)
        device_free(device, replica->partial[i]);
    replica_batches_free(replica);
    device_free(device, replica->seen);
    device_free(device, replica->norm_blocks);
    free(replica);
}

const float *const *replica_controls(const struct replica *replica)
{
    return replica->control_pointers;
}
