/* SPDX-License-Identifier: Apache-2.0
 *
 * OneDevice: everything on one device, shard after shard, summed in the same
 * tree as any crew sums them. The reference for all other strategies.
 */
#include "common/memory.h"
#include "worker/device/device.h"
#include "worker/model/graph.h"
#include "worker/strategy/replica.h"
#include "worker/strategy/replica_ahead.h"
#include "worker/strategy/statistics_exchange.h"
#include "worker/strategy/strategy_table.h"

struct one_device {
    struct strategy base;
    struct replica *replica;
    struct replica_ahead *ahead;            /* takes its steps; NULL: the host does */
    struct statistics_exchange *statistics; /* NULL: no layer needs it */
};

static void one_device_close(struct strategy *base)
{
    struct one_device *strategy = (struct one_device *)base;
    replica_ahead_free(strategy->ahead);
    replica_free(strategy->replica);
    statistics_exchange_free(strategy->statistics);
    free(strategy);
}

/* Layers with global statistics; a lone shard is the batch. */
static int make_exchange(struct one_device *strategy, struct error *error)
{
    const struct strategy_options *options = &strategy->base.options;
    unsigned shards = options->logical_shards;
    if (shards == 1 || !graph_has_global_statistics(options->graph))
        return 0;
    strategy->statistics = statistics_exchange_new(shards, 0, shards, graph_layer_count(options->graph));
    return replica_use_exchange(strategy->replica, statistics_exchange_base(strategy->statistics), error);
}

static bool goes_ahead(const struct strategy_options *options)
{
    return !device_memory_is_shared(options->device) && !options->waits_for_device;
}

static int one_device_open(const struct strategy_options *options, struct strategy **ret_strategy, struct error *error)
{
    struct one_device *strategy = memory_allocate(1, sizeof(*strategy));
    strategy->base.options = *options;
    strategy->base.world = (struct world){.size = 1, .logical_shards = options->logical_shards};
    if (replica_new(options, options->logical_shards, 0, options->logical_shards, &strategy->replica, error) < 0 ||
        make_exchange(strategy, error) < 0 ||
        (goes_ahead(options) && replica_ahead_new(strategy->replica, &strategy->ahead, error) < 0)) {
        one_device_close(&strategy->base);
        return -1;
    }
    *ret_strategy = &strategy->base;
    return 0;
}

static void one_device_memory_plan(const struct strategy_options *options, struct memory_plans *plans)
{
    replica_memory_plan(options, MEMORY_DEVICE, options->logical_shards, 0, options->logical_shards,
                        graph_has_global_statistics(options->graph), plans);
}

static int one_device_reform(struct strategy *base, struct error *error)
{
    if (!base->holds_state && base->options.calls.restore(base->options.calls.context, error) < 0)
        return -1;
    base->holds_state = true;
    return 0;
}

static int run_passes(struct one_device *strategy, unsigned votes, struct error *error)
{
    int64_t examples;
    if (strategy->statistics != NULL)
        statistics_exchange_begin(strategy->statistics);
    int result = replica_start_passes(strategy->replica, &examples, error);
    if (result < 0 && strategy->statistics != NULL)
        statistics_exchange_abandon(strategy->statistics);
    return result < 0 ? -1 : replica_finish_passes(strategy->replica, 0, votes, error);
}

static int one_device_step(struct strategy *base, double learning_rate, unsigned votes,
                           struct strategy_result *ret_result, struct error *error)
{
    struct one_device *strategy = (struct one_device *)base;
    struct replica *replica = strategy->replica;
    if (strategy->ahead != NULL)
        return replica_ahead_step(strategy->ahead, learning_rate, votes, ret_result, error);
    if (run_passes(strategy, votes, error) < 0)
        return -1;
    return replica_apply(replica, learning_rate, replica_controls(replica)[0], 1, ret_result, error);
}

static int one_device_settle(struct strategy *base, struct error *error)
{
    const struct one_device *strategy = (const struct one_device *)base;
    return strategy->ahead != NULL ? replica_ahead_settle(strategy->ahead, error) : 0;
}

static void one_device_stand_at_boundary(struct strategy *base)
{
    struct replica_ahead *ahead = ((struct one_device *)base)->ahead;
    if (ahead != NULL)
        replica_ahead_stand_at_boundary(ahead);
}

static int one_device_sum(struct strategy *base, double *values, unsigned count, struct error *error)
{
    (void)base, (void)values, (void)count, (void)error;
    return 0;
}

static int one_device_share(struct strategy *base, void *bytes, size_t length, struct error *error)
{
    (void)base, (void)bytes, (void)length, (void)error;
    return 0;
}

const struct strategy_operations one_device_strategy = {
    .type = STRATEGY_ONE_DEVICE,
    .open = one_device_open,
    .memory_plan = one_device_memory_plan,
    .reform = one_device_reform,
    .step = one_device_step,
    .settle = one_device_settle,
    .stand_at_boundary = one_device_stand_at_boundary,
    .sum = one_device_sum,
    .share = one_device_share,
    .close = one_device_close,
};
