/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/sharded_optimizer.h"

#include "common/memory.h"
#include "worker/device/device.h"
#include "worker/optimizer/gradient_norm.h"
#include "worker/optimizer/optimizer.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/crew_communicator.h"
#include "worker/strategy/device_sums.h"
#include "worker/strategy/sharded_parts.h"

static const struct shard_plan *plan_of(const struct sharded_optimizer *optimizer)
{
    return &optimizer->options.state->shards;
}

void sharded_optimizer_use(struct sharded_optimizer *optimizer, struct device_sums *sums,
                           struct crew_communicator *devices)
{
    optimizer->device_sums = sums;
    optimizer->devices = devices;
}

void sharded_optimizer_begin(struct sharded_optimizer *optimizer)
{
    optimizer->summed_step = 0;
}

collective_ticket sharded_optimizer_reduce(struct sharded_optimizer *optimizer, struct collective *group,
                                           const float *const *contributions, float *result, int64_t offset,
                                           int64_t elements)
{
    struct collective_shards here = optimizer->shards;
    here.offset = (size_t)offset;
    sharded_optimizer_begin(optimizer);
    return collective_reduce_scatter_start(group, contributions, result, (size_t)elements, &here);
}

/* ---------------------------------------------------------------- the norm */

static double *sums_of(const struct sharded_optimizer *optimizer, unsigned owner, struct shard_stripe stripe)
{
    return optimizer->sums + owner * optimizer->owner_blocks + stripe.slot / SQUARE_SUM_BLOCK;
}

static int measure_own(struct sharded_optimizer *optimizer, struct error *error)
{
    const struct shard_plan *plan = plan_of(optimizer);
    const float *gradient = replica_set_gradients(optimizer->replicas)[0];
    unsigned own = optimizer->options.state->shard_rank, count;
    struct device_stream *const *streams = replica_set_streams(optimizer->replicas, &count);
    for (int64_t i = 0; i < shard_stripes(plan, own); i++) {
        struct shard_stripe stripe = shard_stripe(plan, own, i);
        gradient_norm_launch(streams[i % count], gradient + stripe.first, stripe.elements,
                             sums_of(optimizer, own, stripe));
    }
    return replica_set_synchronise(optimizer->replicas, error);
}

/* The blocks in order, as one rank alone would add them. */
static double add_blocks(struct sharded_optimizer *optimizer)
{
    const struct shard_plan *plan = plan_of(optimizer);
    for (unsigned owner = 0; owner < plan->size; owner++) {
        for (int64_t i = 0; i < shard_stripes(plan, owner); i++) {
            struct shard_stripe stripe = shard_stripe(plan, owner, i);
            const double *from = sums_of(optimizer, owner, stripe);
            double *to = optimizer->ordered + (stripe.first - plan->statistics) / SQUARE_SUM_BLOCK;
            for (int64_t block = 0; block < gradient_norm_blocks(stripe.elements); block++)
                to[block] = from[block];
        }
    }
    return gradient_norm_finish(optimizer->ordered, plan->elements - plan->statistics);
}

static int measure_norm(struct sharded_optimizer *optimizer, struct collective *group, double *ret_norm,
                        struct error *error)
{
    const unsigned size = plan_of(optimizer)->size;
    const struct collective_shards places = {.stripe = (size_t)optimizer->owner_blocks * 2}; /* floats */
    unsigned owners[CREW_SIZE_MAX];
    for (unsigned rank = 0; rank < size; rank++)
        owners[rank] = rank;
    if (measure_own(optimizer, error) < 0 ||
        collective_all_gather(group, (float *)optimizer->sums, places.stripe * size, &places, owners, error) < 0)
        return -1;
    *ret_norm = add_blocks(optimizer);
    return 0;
}

/* ---------------------------------------------------------------- the update */

/* Stripes one behind the other in the slots, from `slot` on. */
static void update_shard(const struct sharded_optimizer *optimizer, unsigned owner, int64_t slot,
                         struct optimizer_range range)
{
    const struct training_state *state = optimizer->options.state;
    const float *gradient = replica_set_gradients(optimizer->replicas)[0];
    unsigned count;
    struct device_stream *const *streams = replica_set_streams(optimizer->replicas, &count);
    for (int64_t i = 0; i < shard_stripes(plan_of(optimizer), owner); i++) {
        struct shard_stripe stripe = shard_stripe(plan_of(optimizer), owner, i);
        range.elements = stripe.elements;
        range.parameters = state->parameters + stripe.first;
        range.gradients = gradient + stripe.first;
        for (unsigned s = 0; s < state->optimizer_slots; s++)
            range.slots[s] = state->slots[s] + slot + stripe.slot;
        optimizer_update(streams[i % count], optimizer->options.optimizer, &range);
    }
}

/* Running statistics have no slots; they go with the first stripe. */
static void update_statistics(const struct sharded_optimizer *optimizer, struct optimizer_range range)
{
    const struct training_state *state = optimizer->options.state;
    unsigned count, own = state->shard_rank;
    range.elements = range.statistics = state->shards.statistics;
    range.parameters = state->parameters;
    range.gradients = replica_set_gradients(optimizer->replicas)[0];
    if (range.elements > 0 && (own == 0 || shard_mirrored(&state->shards, own) == 0))
        optimizer_update(replica_set_streams(optimizer->replicas, &count)[0], optimizer->options.optimizer, &range);
}

int sharded_optimizer_update(struct sharded_optimizer *optimizer, const struct sharded_verdict *verdict,
                             struct error *error)
{
    const struct strategy_options *options = &optimizer->options;
    const struct shard_plan *plan = plan_of(optimizer);
    unsigned own = options->state->shard_rank;
    double limit = options->gradient_clip_norm;
    const struct optimizer_range range = {
        .step = verdict->step,
        .learning_rate = verdict->learning_rate,
        .gradient_scale = limit > 0 ? gradient_clip_factor(verdict->norm, limit) : 1.0,
    };
    strategy_leave_boundary(options);
    optimizer->torn = true;
    update_statistics(optimizer, range);
    update_shard(optimizer, own, 0, range);
    update_shard(optimizer, shard_mirrored(plan, own), shard_elements(plan, own), range);
    if (replica_set_synchronise(optimizer->replicas, error) < 0)
        return -1;
    optimizer->verdict = *verdict;
    replica_set_advance(optimizer->replicas, verdict->step);
    return 0;
}

int sharded_optimizer_gather(struct sharded_optimizer *optimizer, struct collective *group, const unsigned *givers,
                             struct error *error)
{
    struct training_state *state = optimizer->options.state;
    if (training_state_parameters_to_host(state, error) < 0 ||
        collective_all_gather(group, state->host.parameters, (size_t)state->layout.elements, &optimizer->shards, givers,
                              error) < 0 ||
        training_state_parameters_to_device(state, error) < 0)
        return -1;
    optimizer->torn = false;
    return 0;
}

bool sharded_optimizer_is_whole(const struct sharded_optimizer *optimizer)
{
    return !optimizer->torn;
}

static int give_parameters(struct sharded_optimizer *optimizer, struct collective *group, struct error *error)
{
    if (optimizer->device_sums == NULL)
        return sharded_optimizer_gather(optimizer, group, NULL, error);
    if (device_sums_start_gather(optimizer->device_sums, optimizer->devices, optimizer->options.state->parameters,
                                 error) < 0)
        return -1;
    if (device_sums_wait(optimizer->device_sums, optimizer->devices, error) < 0)
        return -1;
    optimizer->torn = false;
    return 0;
}

int sharded_optimizer_apply(struct sharded_optimizer *optimizer, struct collective *group, const struct world *world,
                            double learning_rate, const float *controls, struct strategy_result *ret_result,
                            struct error *error)
{
    struct strategy_result result = {.step = optimizer->options.state->progress.step + 1};
    replica_set_read_controls(optimizer->replicas, controls, world->size, &result);
    optimizer->summed_step = result.step;
    if (measure_norm(optimizer, group, &result.gradient_norm, error) < 0 || strategy_result_check(&result, error) < 0)
        return -1;
    const struct sharded_verdict verdict = {result.step, result.gradient_norm, learning_rate};
    if (sharded_optimizer_update(optimizer, &verdict, error) < 0 || give_parameters(optimizer, group, error) < 0)
        return -1;
    *ret_result = result;
    return 0;
}

/* ---------------------------------------------------------------- life cycle */

int sharded_optimizer_new(const struct strategy_options *options, struct replica_set *replicas,
                          struct sharded_optimizer **ret_optimizer, struct error *error)
{
    const struct shard_plan *plan = &options->state->shards;
    struct sharded_optimizer *optimizer = memory_allocate(1, sizeof *optimizer);
    optimizer->options = *options;
    optimizer->replicas = replicas;
    optimizer->shards = (struct collective_shards){.head = (size_t)plan->statistics, .stripe = (size_t)plan->stripe};
    optimizer->owner_blocks = shard_stripes(plan, 0) * (plan->stripe / SQUARE_SUM_BLOCK);
    size_t places = (size_t)(optimizer->owner_blocks * plan->size);
    if (device_allocate(options->device, MEMORY_SHARED, places * sizeof(double), (void **)&optimizer->sums, error) <
        0) {
        free(optimizer);
        return -1;
    }
    optimizer->ordered = memory_allocate(places, sizeof(double));
    *ret_optimizer = optimizer;
    return 0;
}

void sharded_optimizer_free(struct sharded_optimizer *optimizer)
{
    if (optimizer == NULL)
        return;
    device_free(optimizer->options.device, optimizer->sums);
    free(optimizer->ordered);
    free(optimizer);
}

void sharded_optimizer_forget(struct sharded_optimizer *optimizer)
{
    optimizer->summed_step = 0;
    optimizer->verdict = (struct sharded_verdict){0};
    optimizer->torn = false;
}
