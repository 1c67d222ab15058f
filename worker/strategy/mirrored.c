/* SPDX-License-Identifier: Apache-2.0
 *
 * Mirrored and CentralStorage: one process, several devices. With Mirrored each
 * device has the whole state and makes the same update; with CentralStorage there
 * is one state, and the devices share out the one update. Mirrored's gradients may go
 * between the devices (own_sums.h). A lone worker of MultiWorkerMirrored or PeerToPeer
 * is Mirrored, the former also with a sharded optimizer.
 */
#include "common/memory.h"
#include "worker/model/graph.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/own_sums.h"
#include "worker/strategy/replica_set.h"
#include "worker/strategy/sharded_optimizer.h"
#include "worker/strategy/strategy_table.h"

struct mirrored {
    struct strategy base;
    struct replica_set *replicas;
    struct sharded_optimizer *shards; /* beside them, with a sharded optimizer */
    struct own_sums sums;
};

static void mirrored_close(struct strategy *base)
{
    struct mirrored *strategy = (struct mirrored *)base;
    own_sums_close(&strategy->sums);
    sharded_optimizer_free(strategy->shards);
    replica_set_free(strategy->replicas);
    free(strategy);
}

static bool has_shards(const struct mirrored *strategy)
{
    return strategy->base.options.state->shards.size > 0;
}

static int make_shards(struct mirrored *strategy, struct error *error)
{
    if (!has_shards(strategy))
        return 0;
    if (sharded_optimizer_new(&strategy->base.options, strategy->replicas, &strategy->shards, error) < 0)
        return -1;
    sharded_optimizer_use(strategy->shards, strategy->sums.sums, strategy->sums.devices);
    return 0;
}

static int open_with(const struct strategy_options *options, enum replica_variables variables,
                     struct strategy **ret_strategy, struct error *error)
{
    unsigned shards = options->logical_shards;
    struct mirrored *strategy = memory_allocate(1, sizeof(*strategy));
    struct strategy_options *own = &strategy->base.options;
    *own = *options;
    strategy->base.world = (struct world){.size = 1, .logical_shards = shards};
    if (own_sums_connect(&strategy->sums, own, error) < 0 ||
        replica_set_new(own, variables, shards, 0, shards, &strategy->replicas, error) < 0 ||
        own_sums_open(&strategy->sums, own, shards, has_shards(strategy) ? &own->state->shards : NULL, error) < 0 ||
        make_shards(strategy, error) < 0) {
        mirrored_close(&strategy->base);
        return -1;
    }
    *ret_strategy = &strategy->base;
    return 0;
}

static int mirrored_open(const struct strategy_options *options, struct strategy **ret_strategy, struct error *error)
{
    bool shards = options->state->shards.size > 0;
    return open_with(options, shards ? VARIABLES_CENTRAL : VARIABLES_MIRRORED, ret_strategy, error);
}

static int central_open(const struct strategy_options *options, struct strategy **ret_strategy, struct error *error)
{
    return open_with(options, VARIABLES_CENTRAL, ret_strategy, error);
}

static void mirrored_memory_plan(const struct strategy_options *options, struct memory_plans *plans)
{
    bool shards = options->spec != NULL && options->spec->sharded_optimizer;
    struct shard_plan plan;
    shard_plan_init(&plan, graph_layout(options->graph), 1, options->device_count, true);
    own_sums_memory_plan(options, shards ? VARIABLES_CENTRAL : VARIABLES_MIRRORED, options->logical_shards,
                         shards ? &plan : NULL, plans);
}

static void central_memory_plan(const struct strategy_options *options, struct memory_plans *plans)
{
    own_sums_memory_plan(options, VARIABLES_CENTRAL, options->logical_shards, NULL, plans);
}

static int mirrored_reform(struct strategy *base, struct error *error)
{
    if (!base->holds_state && base->options.calls.restore(base->options.calls.context, error) < 0)
        return -1;
    base->holds_state = true;
    return replica_set_spread(((struct mirrored *)base)->replicas, error);
}

/* Through the host the devices add up a slice each, and where slots are shared out a device may be for other elements than those. */
static int reduce(struct mirrored *strategy, unsigned votes, struct error *error)
{
    if (own_sums_reduce(&strategy->sums, strategy->replicas, votes, error) < 0)
        return -1;
    if (strategy->shards == NULL || own_sums_by_library(&strategy->sums))
        return 0;
    return replica_set_synchronise(strategy->replicas, error);
}

static int mirrored_step(struct strategy *base, double learning_rate, unsigned votes,
                         struct strategy_result *ret_result, struct error *error)
{
    struct mirrored *strategy = (struct mirrored *)base;
    struct replica_set *replicas = strategy->replicas;
    int64_t examples;
    if (strategy->shards != NULL)
        sharded_optimizer_begin(strategy->shards);
    if (replica_set_start_passes(replicas, &examples, error) < 0 || reduce(strategy, votes, error) < 0)
        return -1;
    const float *controls = replica_set_controls(replicas)[0];
    if (strategy->shards != NULL)
        return sharded_optimizer_apply(strategy->shards, NULL, &base->world, learning_rate, controls, ret_result,
                                       error);
    return replica_set_apply(replicas, learning_rate, controls, 1, ret_result, error);
}

/* With a single process, every sum is already complete. */
static int mirrored_sum(struct strategy *base, double *values, unsigned count, struct error *error)
{
    (void)base, (void)values, (void)count, (void)error;
    return 0;
}

static int mirrored_share(struct strategy *base, void *bytes, size_t length, struct error *error)
{
    (void)base, (void)bytes, (void)length, (void)error;
    return 0;
}

const struct strategy_operations mirrored_strategy = {
    .type = STRATEGY_MIRRORED,
    .open = mirrored_open,
    .memory_plan = mirrored_memory_plan,
    .reform = mirrored_reform,
    .step = mirrored_step,
    .sum = mirrored_sum,
    .share = mirrored_share,
    .close = mirrored_close,
};

const struct strategy_operations central_storage_strategy = {
    .type = STRATEGY_CENTRAL_STORAGE,
    .open = central_open,
    .memory_plan = central_memory_plan,
    .reform = mirrored_reform,
    .step = mirrored_step,
    .sum = mirrored_sum,
    .share = mirrored_share,
    .close = mirrored_close,
};
