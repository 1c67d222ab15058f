/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/own_sums.h"

#include "worker/strategy/crew_communicator.h"
#include "worker/strategy/device_sums.h"

int own_sums_connect(struct own_sums *own, struct strategy_options *options, struct error *error)
{
    const struct world alone = {.size = 1, .logical_shards = options->logical_shards};
    if (!options->sums.may_use_devices || options->sums.communicator == NULL)
        return 0;
    own->devices = crew_communicator_new(options);
    if (crew_communicator_form(own->devices, NULL, &alone, error) < 0)
        return -1;
    options->sums.gradients_stay = crew_communicator_is_there(own->devices);
    return 0;
}

static struct device_sums_options options_of(const struct strategy_options *options,
                                             const struct strategy_device *devices, unsigned shards,
                                             const struct shard_plan *plan)
{
    return (struct device_sums_options){.devices = devices,
                                        .device_count = options->device_count,
                                        .size = 1,
                                        .shards = shards,
                                        .in_any_order = options->sums.in_any_order,
                                        .plan = plan};
}

int own_sums_open(struct own_sums *own, const struct strategy_options *options, unsigned shards,
                  const struct shard_plan *plan, struct error *error)
{
    const struct device_sums_options sums = options_of(options, options->devices, shards, plan);
    return options->sums.gradients_stay ? device_sums_new(&sums, &own->sums, error) : 0;
}

bool own_sums_by_library(const struct own_sums *own)
{
    return own->sums != NULL;
}

void own_sums_close(struct own_sums *own)
{
    (void)crew_communicator_end(own->devices, NULL);
    (void)device_sums_settle(own->sums, NULL);
    device_sums_free(own->sums);
    crew_communicator_free(own->devices);
    *own = (struct own_sums){0};
}

void own_sums_memory_plan(const struct strategy_options *options, enum replica_variables variables, unsigned shards,
                          const struct shard_plan *plan, struct memory_plans *plans)
{
    const struct strategy_device first = {options->device, options->graph};
    const struct device_sums_options sums = options_of(options, &first, shards, plan);
    enum device_memory gradients =
        options->sums.communicator != NULL ? MEMORY_DEVICE : replica_set_gradients_place(options);
    replica_set_memory_plan(options, variables, gradients, shards, 0, shards, plans);
    if (options->sums.communicator != NULL)
        device_sums_memory_plan(&sums, plans);
}

int own_sums_reduce(struct own_sums *own, struct replica_set *replicas, unsigned votes, struct error *error)
{
    if (own->sums == NULL)
        return replica_set_finish_passes(replicas, 0, votes, error) < 0 ? -1 : replica_set_reduce(replicas, error);
    if (device_sums_start(own->sums, own->devices, replicas, error) < 0 ||
        replica_set_finish_passes(replicas, 0, votes, error) < 0)
        return -1;
    return device_sums_wait(own->sums, own->devices, error);
}

int own_sums_spread(struct own_sums *own, struct replica_set *replicas, struct error *error)
{
    float *parameters[STRATEGY_DEVICES_MAX];
    unsigned devices;
    if (own->sums == NULL)
        return replica_set_spread(replicas, error);
    (void)replica_set_streams(replicas, &devices);
    for (unsigned device = 0; device < devices; device++)
        parameters[device] = replica_set_parameters(replicas, device);
    replica_set_tell_progress(replicas);
    if (device_sums_start_spread(own->sums, own->devices, parameters, error) < 0)
        return -1;
    return device_sums_wait(own->sums, own->devices, error);
}
