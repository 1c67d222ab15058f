/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/support.h"

#include <stdio.h>

#include "common/buffer.h"
#include "worker/parameter_server/variables.h"

/* The strategies that there are. */
static const struct strategy_support {
    enum strategy_type type;
    bool one_worker, one_device;
} strategies[] = {
    {.type = STRATEGY_ONE_DEVICE, .one_worker = true, .one_device = true},
    {.type = STRATEGY_MIRRORED, .one_worker = true},
    {.type = STRATEGY_CENTRAL_STORAGE, .one_worker = true},
    {.type = STRATEGY_MULTI_WORKER_MIRRORED},
    {.type = STRATEGY_PARAMETER_SERVER, .one_device = true},
    {.type = STRATEGY_PEER_TO_PEER, .one_device = true},
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
    SCOPED_BUFFER names;
    buffer_init(&names, 1024);
    for (size_t i = 0; i < STRATEGIES; i++)
        buffer_format(&names, "%s%s", i ? ", " : "", strategy_type_name(strategies[i].type));
    return error_set(error, ERROR_UNSUPPORTED, "strategy.type: %s is not in this worker yet; it trains %s",
                     strategy_type_name(type), buffer_text(&names));
}

/* The document's rules refuse the first; a state in shards under any other strategy would be written past its end. */
static int check_sharded(const struct job_document *job, const struct crew *crew, struct error *error)
{
    const struct strategy_spec *strategy = &job->strategy;
    if (!strategy->sharded_optimizer)
        return 0;
    if (strategy->type != STRATEGY_MULTI_WORKER_MIRRORED || strategy->local_steps > 0 ||
        strategy->collective != COLLECTIVE_AUTO)
        return error_set(error, ERROR_INVALID,
                         "strategy.shardedOptimizer: is for MultiWorkerMirrored with collective Auto and no "
                         "localSteps; leave it or the others out");
    if (crew_is_elastic(crew))
        return error_set(error, ERROR_INVALID,
                         "strategy.shardedOptimizer: needs a fixed number of workers; leave it or elastic out");
    if (crew->size == 1)
        return error_set(error, ERROR_INVALID,
                         "strategy.shardedOptimizer: a lone worker has nobody to share slots with; leave it out or "
                         "take more workers");
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
    if (job->strategy.ps_backup && crew->server_count < 2)
        return error_set(error, ERROR_INVALID,
                         "strategy.psBackup: a backup needs a second ps; set the role ps to a count of 2 or more");
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
    if (strategy->one_device && job->devices.count != 1)
        return error_set(error, ERROR_UNSUPPORTED, "devices.count: this worker computes %s on one device, not on %lld",
                         strategy_type_name(strategy->type), (long long)job->devices.count);
    if (job->strategy.local_steps > 0 && crew_size == 1)
        return error_set(error, ERROR_INVALID,
                         "strategy.localSteps: a lone worker has nobody to average with; leave "
                         "it out or take more workers");
    if (job->strategy.local_steps > 0 && job->devices.count != 1)
        return error_set(error, ERROR_UNSUPPORTED,
                         "strategy.localSteps: this worker takes them on one device; set devices.count to 1");
    if (strategy->type == STRATEGY_PARAMETER_SERVER && job->checkpoint.keep_best)
        return error_set(
            error, ERROR_UNSUPPORTED,
            "checkpoint.keepBest: not with ParameterServer yet, whose checkpoints are the servers'; leave it "
            "out");
    if (strategy->type == STRATEGY_PARAMETER_SERVER && job->strategy.mode != PARAMETER_SERVER_SYNCHRONOUS &&
        job->training.gradient_accumulation != 1)
        return error_set(
            error, ERROR_UNSUPPORTED,
            "training.gradientAccumulation: with ParameterServer only in mode Synchronous; lower batchSize "
            "instead");
    return 0;
}

/* Whether there is a GPU and a library is known when the devices are opened. */
static int check_nccl(const struct job_document *job, struct error *error)
{
    if (job->strategy.type != STRATEGY_MULTI_WORKER_MIRRORED)
        return error_set(error, ERROR_UNSUPPORTED,
                         "strategy.collective: NCCL sums between the workers of MultiWorkerMirrored only so far; take "
                         "Auto");
    if (job->strategy.local_steps > 0)
        return error_set(error, ERROR_UNSUPPORTED,
                         "strategy.collective: NCCL does not average localSteps yet; take Auto");
    if (job->devices.count != 1)
        return error_set(
            error, ERROR_UNSUPPORTED,
            "strategy.collective: NCCL sums between workers with one GPU each so far; set devices.count to "
            "1 and take more workers, or take Auto");
    if (job->devices.type == DEVICE_TYPE_CPU)
        return error_set(error, ERROR_UNSUPPORTED,
                         "strategy.collective: NCCL sums on GPUs, and devices.type is CPU; take Auto, or GPU");
    return 0;
}

/* All others keep the order of the tree. */
static int check_collective(const struct job_document *job, struct error *error)
{
    if (job->strategy.collective == COLLECTIVE_NCCL)
        return check_nccl(job, error);
    if (job->strategy.collective == COLLECTIVE_RING && job->training.determinism == DETERMINISM_CREW)
        return error_set(error, ERROR_INVALID,
                         "strategy.collective: Ring adds in an order that follows the crew's size, and so do its bits; "
                         "set training.determinism to Run, or collective to Auto");
    return 0;
}

/* All shards of a batch must be computed at once, by those who hear of each other. */
static bool can_be_global(const struct job_document *job)
{
    static const enum strategy_type types[] = {STRATEGY_ONE_DEVICE, STRATEGY_MIRRORED, STRATEGY_CENTRAL_STORAGE,
                                               STRATEGY_MULTI_WORKER_MIRRORED};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (job->strategy.type == types[i])
            return job->training.gradient_accumulation == 1 && job->strategy.local_steps <= 0;
    return false;
}

static int refuse_statistics(const char *field, struct error *error)
{
    return error_set(error, ERROR_UNSUPPORTED,
                     "%s: Global needs a strategy that computes a batch at once (OneDevice, Mirrored, CentralStorage, "
                     "MultiWorkerMirrored without localSteps) and no gradientAccumulation; write Shard",
                     field);
}

static int check_statistics(const struct job_document *job, struct error *error)
{
    char field[64];
    if (can_be_global(job))
        return 0;
    if (job->model.statistics == STATISTICS_GLOBAL)
        return refuse_statistics("model.statistics", error);
    for (unsigned i = 0; i < job->model.layer_count; i++) {
        snprintf(field, sizeof field, "model.layers[%u].statistics", i);
        if (job->model.layers[i].statistics == STATISTICS_GLOBAL)
            return refuse_statistics(field, error);
    }
    return 0;
}

int support_check(const struct job_document *job, const struct crew *crew, struct error *error)
{
    if (check_strategy(job, crew->size, error) < 0 || check_sharded(job, crew, error) < 0 ||
        check_servers(job, crew, error) < 0 || check_collective(job, error) < 0)
        return -1;
    if (job->training.precision != PRECISION_FLOAT32)
        return error_set(error, ERROR_UNSUPPORTED, "training.precision: this worker computes in float32 only");
    return check_statistics(job, error);
}

int support_check_shards(const struct job_document *job, int64_t logical_shards, struct error *error)
{
    if (job->strategy.type != STRATEGY_PARAMETER_SERVER || job->strategy.mode != PARAMETER_SERVER_SYNCHRONOUS ||
        logical_shards <= VARIABLES_SHARES_MAX)
        return 0;
    return error_set(error, ERROR_INVALID,
                     "training.logicalShards: a ps in mode Synchronous keeps at most %d shares of a batch, not the "
                     "%lld that logicalShards, workers x gradientAccumulation or the checkpoint to go on from give; "
                     "set logicalShards to %d or less, or take another mode",
                     VARIABLES_SHARES_MAX, (long long)logical_shards, VARIABLES_SHARES_MAX);
}

int support_check_validation(const struct job_document *job, int64_t examples, struct error *error)
{
    if (job->export_to == NULL || job->export_weights != EXPORT_BEST || examples > 0)
        return 0;
    return error_set(error, ERROR_INVALID,
                     "export.weights: Best needs held-out examples to tell by; add data.validation, such as "
                     "{last: 1000}");
}
