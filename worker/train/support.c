/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/support.h"

#include "common/buffer.h"
#include "worker/parameter_server/message.h"
#include "worker/parameter_server/variables.h"

/* The strategies that there are. */
static const struct strategy_support {
    enum strategy_type type;
    bool one_worker;
} strategies[] = {
    {.type = STRATEGY_ONE_DEVICE, .one_worker = true},
    {.type = STRATEGY_MIRRORED, .one_worker = true},
    {.type = STRATEGY_CENTRAL_STORAGE, .one_worker = true},
    {.type = STRATEGY_MULTI_WORKER_MIRRORED},
    {.type = STRATEGY_PARAMETER_SERVER},
    {.type = STRATEGY_PEER_TO_PEER},
    {.type = STRATEGY_PIPELINE},
};
#define STRATEGIES (sizeof strategies / sizeof *strategies)

static const struct strategy_support *find_strategy(enum strategy_type type)
{
    for (size_t i = 0; i < STRATEGIES; i++)
        if (strategies[i].type == type)
            return &strategies[i];
    return NULL;
}

static int refuse_strategy(enum strategy_type type, struct error *error)
{
    SCOPED_BUFFER names = BUFFER_INIT(1024);
    for (size_t i = 0; i < STRATEGIES; i++)
        buffer_format(&names, "%s%s", i ? ", " : "", strategy_type_name(strategies[i].type));
    return error_set(error, ERROR_UNSUPPORTED, "strategy.type: %s is not in this worker yet; it trains %s",
                     strategy_type_name(type), buffer_text(&names));
}

static int check_sharded(const struct job_document *job, const struct crew *crew, struct error *error)
{
    if (!job->strategy.sharded_optimizer)
        return 0;
    if (crew_is_elastic(crew))
        return error_set(error, ERROR_INVALID,
                         "strategy.shardedOptimizer: needs a fixed number of workers; leave it or elastic out");
    bool has_gpus = job->devices.type == DEVICE_TYPE_GPU && !job_document_uses_plugin(job);
    if (crew->size == 1 && (!has_gpus || job->devices.count == 1))
        return error_set(
            error, ERROR_INVALID,
            "strategy.shardedOptimizer: divides the optimizer's slots among workers or GPUs, and this job has only "
            "one; leave it out, take more workers, or at least two GPUs: devices {type: GPU, count: 2}");
    return 0;
}

/* The manifest's rules say both of a job with roles. */
static int check_servers(const struct job_document *job, const struct crew *crew, struct error *error)
{
    if (job->strategy.type != STRATEGY_PARAMETER_SERVER)
        return 0;
    if (crew->server_count == 0)
        return error_set(error, ERROR_INVALID,
                         "strategy.type: ParameterServer keeps its variables on ps, and the crew has none; name one or "
                         "more under ps in TF_CONFIG's cluster, or take OneDevice");
    return 0;
}

static int check_strategy(const struct job_document *job, unsigned crew_size, struct error *error)
{
    const struct strategy_support *strategy = find_strategy(job->strategy.type);
    if (strategy == NULL)
        return refuse_strategy(job->strategy.type, error);
    if (strategy->one_worker && crew_size != 1)
        return error_set(error, ERROR_INVALID, "strategy.type: %s has one worker, but the crew has %u",
                         strategy_type_name(strategy->type), crew_size);
    if (job->strategy.local_steps > 0 && crew_size == 1)
        return error_set(
            error, ERROR_INVALID,
            "strategy.localSteps: averages several workers, but the crew has one; leave it out or set more workers");
    return 0;
}

int support_check(const struct job_document *job, const struct crew *crew, struct error *error)
{
    return check_strategy(job, crew->size, error) < 0 || check_sharded(job, crew, error) < 0 ||
                   check_servers(job, crew, error) < 0
               ? -1
               : 0;
}

_Static_assert(PS_SERVERS_MAX == CREW_SERVERS_MAX, "jobs are admitted by the latter");
_Static_assert(VARIABLES_SHARES_MAX == SERVED_SHARDS_MAX, "jobs are admitted by the latter");

/* The devices of a worker make one sum of their logical shards, which is one of the tree's own where that halves down to it. */
static bool fits_the_tree(int64_t logical_shards, int64_t devices)
{
    int64_t shares = logical_shards / devices;
    return devices == 1 || (logical_shards % devices == 0 && shares > 0 && (shares & (shares - 1)) == 0);
}

int support_check_shards(const struct job_document *job, int64_t logical_shards, struct error *error)
{
    int64_t devices = job->devices.count;
    if (job->strategy.type != STRATEGY_PARAMETER_SERVER || job->strategy.mode != PARAMETER_SERVER_SYNCHRONOUS)
        return 0;
    if (!fits_the_tree(logical_shards, devices))
        return error_set(error, ERROR_INVALID,
                         "training.logicalShards: mode Synchronous with %lld devices per worker needs %lld times a "
                         "power of two logical shards, so that the results have the bits of one device; this job has "
                         "%lld (from logicalShards, from workers x devices x gradientAccumulation, or from the "
                         "checkpoint that it resumes); set logicalShards to %lld times 1, 2, 4 …, or take another mode",
                         (long long)devices, (long long)devices, (long long)logical_shards, (long long)devices);
    if (logical_shards / devices <= VARIABLES_SHARES_MAX)
        return 0;
    return error_set(error, ERROR_INVALID,
                     "training.logicalShards: a ps in mode Synchronous keeps at most %d shares of a batch, not the "
                     "%lld that logicalShards, workers x gradientAccumulation or the checkpoint to go on from give; "
                     "set logicalShards to %lld or less, or take another mode",
                     VARIABLES_SHARES_MAX, (long long)(logical_shards / devices),
                     (long long)(VARIABLES_SHARES_MAX * devices));
}

int support_check_statistics(const struct job_document *job, int64_t logical_shards, struct error *error)
{
    if (logical_shards > 1 && job_document_has_global_statistics(job))
        return error_set(error, ERROR_UNSUPPORTED,
                         "statistics: Global over several logical shards is computed by the worker's own operations on "
                         "CPUs only; write statistics: Shard for other devices and for devices.plugin");
    return 0;
}

int support_check_validation(const struct job_document *job, int64_t examples, struct error *error)
{
    if (job->export_path == NULL || job->export_weights != EXPORT_BEST || examples > 0)
        return 0;
    return error_set(
        error, ERROR_INVALID,
        "export.weights: Best is chosen by the loss on held-out examples; add data.validation, such as {last: 1000}");
}
