/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/replica_set.h"

#include <string.h>

#include "common/memory.h"
#include "worker/device/device.h"
#include "worker/model/graph.h"
#include "worker/optimizer/optimizer.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/device_reduction.h"
#include "worker/strategy/replica_parts.h"
#include "worker/strategy/replica_update.h"
#include "worker/strategy/statistics_exchange.h"

/* Elements that are summed at a time, so that they stay in a near cache. */
#define BLOCK 2048

struct replica_set {
    struct strategy_options options;
    enum replica_variables variables;
    unsigned count;
    struct replica *replicas[STRATEGY_DEVICES_MAX];
    struct device_stream *streams[STRATEGY_DEVICES_MAX];
    struct training_state mirrors[STRATEGY_DEVICES_MAX]; /* from the second on */

    /* The devices' contributions in order, and the additions that sum them. */
    float **inputs, **input_controls;
    unsigned *owners;
    unsigned input_count;
    struct reduction_merge *merges;
    unsigned merge_count;
    unsigned outputs[REDUCTION_COVER_MAX], output_count;
    const float *gradients[REDUCTION_COVER_MAX], *controls[REDUCTION_COVER_MAX];
    struct device_reduction *reduction;     /* when the set is the whole crew */
    struct statistics_exchange *statistics; /* NULL: no layer needs it */
};

/* ---------------------------------------------------------------- life cycle */

static struct strategy_device device_of(const struct strategy_options *options, unsigned index)
{
    if (options->devices == NULL)
        return (struct strategy_device){options->device, options->graph};
    return options->devices[index];
}

/* One set of variables, which not all devices reach. */
static bool has_copies(const struct replica_set *set)
{
    return set->variables == VARIABLES_CENTRAL && set->count > 1 &&
           !device_memory_is_shared(device_of(&set->options, 0).device);
}

/* Allocates a copy of the parameters only. */
static int make_copy(const struct replica_set *set, const struct strategy_device *device, struct training_state *copy,
                     struct error *error)
{
    const struct parameter_layout *layout = graph_layout(device->graph);
    *copy = (struct training_state){
        .device = device->device, .layout = *layout, .progress.seed = set->options.state->progress.seed};
    return device_allocate(device->device, MEMORY_DEVICE, (size_t)layout->elements * sizeof(float),
                           (void **)&copy->parameters, error);
}

/* Sets the options of device `index`'s replica: its own device, model and state. */
static int own_options(struct replica_set *set, unsigned index, struct strategy_options *ret_options,
                       struct error *error)
{
    struct strategy_device device = device_of(&set->options, index);
    *ret_options = set->options;
    ret_options->device = device.device;
    ret_options->graph = device.graph;
    if (index == 0 || (set->variables == VARIABLES_CENTRAL && !has_copies(set)))
        return 0;
    ret_options->state = &set->mirrors[index];
    if (has_copies(set))
        return make_copy(set, &device, &set->mirrors[index], error);
    return training_state_init(&set->mirrors[index], device.device, graph_layout(device.graph), set->options.optimizer,
                               set->options.state->progress.seed, error);
}

static int make_replicas(struct replica_set *set, unsigned shards, unsigned first, unsigned end, struct error *error)
{
    for (unsigned i = 0; i < set->count; i++) {
        struct strategy_options options;
        unsigned from, to;
        reduction_rank_leaves(end - first, i, set->count, &from, &to);
        if (own_options(set, i, &options, error) < 0 ||
            replica_new(&options, shards, first + from, first + to, &set->replicas[i], error) < 0 ||
            replica_record(set->replicas[i], error) < 0)
            return error_wrap(error, "device %u", i);
        set->streams[i] = set->replicas[i]->stream;
        set->input_count += set->replicas[i]->cover_count;
    }
    return 0;
}

static void collect_inputs(struct replica_set *set, struct reduction_subtree *subtrees)
{
    unsigned next = 0;
    for (unsigned device = 0; device < set->count; device++) {
        struct replica *replica = set->replicas[device];
        for (unsigned i = 0; i < replica->cover_count; i++, next++) {
            subtrees[next] = replica->cover[i];
            set->inputs[next] = replica->gradients[i];
            set->input_controls[next] = replica->controls[i];
            set->owners[next] = device;
        }
    }
}

/* Merges all contributions of this process into one, as a ring, and a process without a member, need it. */
static void merge_outputs(struct replica_set *set)
{
    for (unsigned i = 1; i < set->output_count; i++)
        set->merges[set->merge_count++] = (struct reduction_merge){set->outputs[0], set->outputs[i]};
    set->output_count = 1;
}

static void plan_sums(struct replica_set *set, unsigned shards, unsigned first, unsigned end)
{
    SCOPED_FREE struct reduction_subtree *subtrees = memory_allocate(set->input_count, sizeof(*subtrees));
    set->inputs = memory_allocate(set->input_count, sizeof(*set->inputs));
    set->input_controls = memory_allocate(set->input_count, sizeof(*set->input_controls));
    set->owners = memory_allocate(set->input_count, sizeof(*set->owners));
    set->merges = memory_allocate(set->input_count, sizeof(*set->merges));
    collect_inputs(set, subtrees);
    set->merge_count = reduction_merges(shards, first, end, subtrees, set->merges, set->outputs);
    set->output_count = set->input_count - set->merge_count;
    if (set->options.crew.collective == COLLECTIVE_RING || set->options.crew.member == NULL)
        merge_outputs(set);
    for (unsigned i = 0; i < set->output_count; i++) {
        set->gradients[i] = set->inputs[set->outputs[i]];
        set->controls[i] = set->input_controls[set->outputs[i]];
    }
}

static int plan_reduction(struct replica_set *set, struct error *error)
{
    if (set->options.crew.member != NULL || set->options.sums.gradients_stay)
        return 0;
    const struct device_reduction_options options = {.algorithm = set->options.crew.collective,
                                                     .devices = set->count,
                                                     .owners = set->owners,
                                                     .inputs = set->input_count,
                                                     .merges = set->merges};
    return device_reduction_new(&options, &set->reduction, error);
}

static int check_devices(const struct replica_set *set, unsigned shards, struct error *error)
{
    if (shards < set->count)
        return error_set(error, ERROR_INVALID,
                         "training.logicalShards: a worker's %u shards are too few for its %u devices; give at least "
                         "one a device",
                         shards, set->count);
    return 0;
}

/* Layers with global statistics; a lone shard is the batch. */
static int make_exchange(struct replica_set *set, unsigned shards, unsigned first, unsigned end, struct error *error)
{
    const struct graph *graph = set->options.graph;
    if (shards == 1 || !graph_has_global_statistics(graph))
        return 0;
    set->statistics = statistics_exchange_new(shards, first, end, graph_layer_count(graph));
    for (unsigned i = 0; i < set->count; i++)
        if (replica_use_exchange(set->replicas[i], statistics_exchange_base(set->statistics), error) < 0)
            return -1;
    return 0;
}

static unsigned count_devices(const struct strategy_options *options)
{
    return options->devices == NULL ? 1 : options->device_count;
}

enum device_memory replica_set_gradients_place(const struct strategy_options *options)
{
    return count_devices(options) > 1 ? MEMORY_SHARED : MEMORY_DEVICE;
}

/* Plans the host memory of a mirror: its state, or, for a device with memory of its own, the copy that goes there. */
static void plan_mirror(const struct strategy_options *options, struct memory_plan *host)
{
    struct memory_plan state;
    graph_memory_plan(options->graph, optimizer_slot_count(options->optimizer), &state);
    host->bytes[MEMORY_PARAMETERS] += state.bytes[MEMORY_PARAMETERS];
    host->bytes[MEMORY_OPTIMIZER] += state.bytes[MEMORY_OPTIMIZER];
}

void replica_set_memory_plan(const struct strategy_options *options, enum replica_variables variables,
                             enum device_memory gradients, unsigned shards, unsigned first, unsigned end,
                             struct memory_plans *plans)
{
    bool side_by_side = shards > 1 && graph_has_global_statistics(options->graph);
    struct memory_plan most = {0};
    for (unsigned i = 0; i < count_devices(options); i++) {
        unsigned from, to;
        struct memory_plans own = {0};
        struct strategy_options replica = *options;
        replica.device = device_of(options, i).device;
        reduction_rank_leaves(end - first, i, count_devices(options), &from, &to);
        replica_memory_plan(&replica, gradients, shards, first + from, first + to, side_by_side, &own);
        if (i > 0 && variables == VARIABLES_MIRRORED)
            plan_mirror(options, &own.host);
        memory_plan_add(&plans->host, &own.host);
        if (memory_plan_bytes(&own.device) > memory_plan_bytes(&most))
            most = own.device;
    }
    memory_plan_add(&plans->device, &most);
}

bool replica_set_uses_group(const struct replica_set *set)
{
    return set->statistics != NULL;
}

void replica_set_join(struct replica_set *set, struct collective *group, unsigned rank, unsigned size)
{
    if (set->statistics)
        statistics_exchange_join(set->statistics, group, rank, size);
}

int replica_set_new(const struct strategy_options *options, enum replica_variables variables, unsigned shards,
                    unsigned first, unsigned end, struct replica_set **ret_set, struct error *error)
{
    struct replica_set *set = memory_allocate(1, sizeof(*set));
    set->options = *options;
    set->variables = variables;
    set->count = count_devices(options);
    int result = check_devices(set, end - first, error);
    if (result == 0)
        result = make_replicas(set, shards, first, end, error);
    if (result == 0) {
        plan_sums(set, shards, first, end);
        result = plan_reduction(set, error);
    }
    if (result == 0)
        result = make_exchange(set, shards, first, end, error);
    if (result < 0) {
        replica_set_free(set);
        return -1;
    }
    *ret_set = set;
    return 0;
}

void replica_set_free(struct replica_set *set)
{
    if (set == NULL)
        return;
    device_reduction_free(set->reduction);
    for (unsigned i = 0; i < set->count; i++) {
        replica_free(set->replicas[i]);
        training_state_release(&set->mirrors[i]);
    }
    free(set->inputs);
    free(set->input_controls);
    free(set->owners);
    free(set->merges);
    statistics_exchange_free(set->statistics);
    free(set);
}

/* ---------------------------------------------------------------- state */

static int copy_to_mirror(struct replica_set *set, struct training_state *mirror, struct error *error)
{
    struct state_span from[TRAINING_STATE_SPANS_MAX], to[TRAINING_STATE_SPANS_MAX];
    unsigned spans = training_state_spans(set->options.state, from);
    training_state_spans(mirror, to);
    for (unsigned i = 0; i < spans; i++)
        memcpy(to[i].bytes, from[i].bytes, from[i].length);
    return training_state_to_device(mirror, error);
}

void replica_set_tell_progress(struct replica_set *set)
{
    for (unsigned i = 1; has_copies(set) && i < set->count; i++)
        set->mirrors[i].progress = set->options.state->progress;
}

int replica_set_give_parameters(struct replica_set *set, struct error *error)
{
    const struct training_state *state = set->options.state;
    if (!has_copies(set))
        return 0;
    for (unsigned i = 1; i < set->count; i++)
        device_copy(set->streams[i], &(struct copy){.bytes = state->layout.elements * (int64_t)sizeof(float),
                                                    .from = state->host.parameters,
                                                    .to = set->mirrors[i].parameters});
    for (unsigned i = 1; i < set->count; i++)
        if (device_stream_synchronise(set->streams[i], error) < 0)
            return -1;
    replica_set_tell_progress(set);
    return 0;
}

/* By way of the host. */
static int give_parameters(struct replica_set *set, struct error *error)
{
    return training_state_parameters_to_host(set->options.state, error) < 0 ? -1
                                                                            : replica_set_give_parameters(set, error);
}

float *replica_set_parameters(const struct replica_set *set, unsigned device)
{
    return set->replicas[device]->options.state->parameters;
}

int replica_set_spread(struct replica_set *set, struct error *error)
{
    if (has_copies(set))
        return give_parameters(set, error);
    if (set->variables == VARIABLES_CENTRAL || set->count == 1)
        return 0;
    if (training_state_to_host(set->options.state, error) < 0)
        return -1;
    for (unsigned i = 1; i < set->count; i++)
        if (copy_to_mirror(set, &set->mirrors[i], error) < 0)
            return -1;
    return 0;
}

/* ---------------------------------------------------------------- a step */

unsigned replica_set_contributions(const struct replica_set *set)
{
    return set->output_count;
}

const float *const *replica_set_gradients(const struct replica_set *set)
{
    return set->gradients;
}

const float *const *replica_set_controls(const struct replica_set *set)
{
    return set->controls;
}

static int start_passes(struct replica_set *set, int64_t *ret_examples, struct error *error)
{
    for (unsigned i = 0; i < set->count; i++)
        if (replica_launch_passes(set->replicas[i], ret_examples, error) < 0)
            return -1;
    for (unsigned i = 0; i < set->count; i++)
        if (replica_read_ahead(set->replicas[i], error) < 0)
            return -1;
    return 0;
}

int replica_set_start_passes(struct replica_set *set, int64_t *ret_examples, struct error *error)
{
    if (set->statistics)
        statistics_exchange_begin(set->statistics);
    int result = start_passes(set, ret_examples, error);
    if (result < 0 && set->statistics)
        statistics_exchange_abandon(set->statistics);
    return result;
}

/* All additions for one block, then the next block. */
static void merge(const struct replica_set *set, float *const *vectors, int64_t first, int64_t elements)
{
    for (int64_t start = first; start < first + elements; start += BLOCK) {
        int64_t left = first + elements - start, count = left < BLOCK ? left : BLOCK;
        for (unsigned m = 0; m < set->merge_count; m++) {
            float *into = vectors[set->merges[m].into] + start;
            const float *from = vectors[set->merges[m].from] + start;
            for (int64_t i = 0; i < count; i++)
                into[i] += from[i];
        }
    }
}

/* Reports a replica's own failure before its consequences in other replicas. */
int replica_set_await_passes(struct replica_set *set, struct error *error)
{
    for (unsigned i = 0; i < set->count; i++)
        if (replica_await_passes(set->replicas[i], error) < 0)
            return -1;
    return 0;
}

void replica_set_time_passes(struct replica_set *set)
{
    for (unsigned i = 0; i < set->count; i++)
        replica_time_passes(set->replicas[i]);
}

int64_t replica_set_passed_ns(const struct replica_set *set)
{
    int64_t last_ns = 0;
    for (unsigned i = 0; i < set->count; i++) {
        int64_t own_ns = replica_passed_ns(set->replicas[i]);
        last_ns = own_ns > last_ns ? own_ns : last_ns;
    }
    return last_ns;
}

/* If passes exchange values with other processes, a bucket that is final early must not be sent before they are over: it would delay
 * those values if the other ranks are behind, and the gradients of a failed pass are useless. */
int replica_set_wait_bucket(struct replica_set *set, unsigned index, struct error *error)
{
    if (set->statistics && replica_set_await_passes(set, error) < 0)
        return -1;
    for (unsigned i = 0; i < set->count; i++)
        if (replica_wait_bucket(set->replicas[i], index, error) < 0)
            return -1;
    struct graph_bucket bucket = graph_bucket(set->options.graph, index);
    merge(set, set->inputs, bucket.offset, bucket.elements);
    return 0;
}

bool replica_set_bucket_is_final(const struct replica_set *set, unsigned index)
{
    for (unsigned i = 0; i < set->count; i++)
        if (!replica_bucket_is_final(set->replicas[i], index))
            return false;
    return true;
}

struct device_event *replica_set_bucket_event(const struct replica_set *set, unsigned device, unsigned index)
{
    return replica_bucket_event(set->replicas[device], index);
}

float *const *replica_set_device_gradients(const struct replica_set *set, unsigned device)
{
    return set->replicas[device]->gradients;
}

bool replica_set_has_passed(const struct replica_set *set)
{
    for (unsigned i = 0; i < set->count; i++)
        if (!replica_has_passed(set->replicas[i]))
            return false;
    return true;
}

int replica_set_finish_passes(struct replica_set *set, unsigned rank, unsigned votes, struct error *error)
{
    if (replica_set_await_passes(set, error) < 0)
        return -1;
    for (unsigned i = 0; i < set->count; i++)
        if (replica_finish_passes(set->replicas[i], rank, i == 0 ? votes : 0, error) < 0)
            return -1;
    merge(set, set->input_controls, 0, CONTROL_WORDS_MAX);
    return 0;
}

void replica_set_settle(struct replica_set *set)
{
    for (unsigned i = 0; i < set->count; i++)
        replica_settle(set->replicas[i]);
}

int replica_set_reduce(struct replica_set *set, struct error *error)
{
    return device_reduction_run(set->reduction, set->streams, set->inputs, graph_layout(set->options.graph), error);
}

static struct replica_update update_of(struct replica_set *set)
{
    return (struct replica_update){.replicas = set->replicas,
                                   .count = set->count,
                                   .shares_variables = set->variables == VARIABLES_CENTRAL && !has_copies(set),
                                   .first_updates = has_copies(set),
                                   .gradient = set->options.sums.gradients_stay ? NULL : set->inputs[0]};
}

int replica_set_update(struct replica_set *set, double learning_rate, const float *controls, unsigned size,
                       struct strategy_result *ret_result, struct error *error)
{
    struct replica_update update = update_of(set);
    update.learning_rate = learning_rate;
    update.controls = controls;
    update.size = size;
    return replica_update(&update, ret_result, error);
}

int replica_set_apply(struct replica_set *set, double learning_rate, const float *controls, unsigned size,
                      struct strategy_result *ret_result, struct error *error)
{
    if (replica_set_update(set, learning_rate, controls, size, ret_result, error) < 0)
        return -1;
    return has_copies(set) ? give_parameters(set, error) : 0;
}

struct device_stream *const *replica_set_streams(const struct replica_set *set, unsigned *ret_count)
{
    *ret_count = set->count;
    return set->streams;
}

int replica_set_synchronise(const struct replica_set *set, struct error *error)
{
    for (unsigned i = 0; i < set->count; i++)
        if (device_stream_synchronise(set->streams[i], error) < 0)
            return -1;
    return 0;
}

void replica_set_read_controls(const struct replica_set *set, const float *controls, unsigned size,
                               struct strategy_result *result)
{
    const struct replica_update update = {.replicas = set->replicas, .controls = controls, .size = size};
    replica_update_read(&update, result);
}

void replica_set_advance(struct replica_set *set, int64_t step, bool skipped)
{
    const struct replica_update update = update_of(set);
    replica_update_advance(&update, step);
    replica_update_rescale(&update, skipped);
}
