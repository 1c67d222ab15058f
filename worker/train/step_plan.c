/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/step_plan.h"

#include "common/extremes.h"
#include "worker/strategy/reduction_tree.h"

#define MICRO_BATCHES_PER_STAGE 4
_Static_assert(REDUCTION_LEAVES_MAX == SHARDS_MAX, "jobs are admitted by the latter");

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Copies of the model: every device has one, or every group of as many as there are stages. */
static int64_t count_replicas(const struct job_document *job, unsigned crew_size)
{
    int64_t devices = (int64_t)crew_size * job->devices.count;
    if (job->strategy.type != STRATEGY_PIPELINE)
        return devices;
    return job->strategy.stages == FIELD_UNSET ? 1 : int64_max(devices / job->strategy.stages, 1);
}

/* Returns the number of micro-batches of one replica, which is at most the number of examples, since micro-batches without examples would
 * pass through the stages empty. */
static int64_t count_micro_batches(const struct job_document *job, int64_t devices, int64_t replicas)
{
    if (job->strategy.micro_batches != FIELD_UNSET)
        return job->strategy.micro_batches;
    int64_t wanted = MICRO_BATCHES_PER_STAGE * (devices / replicas);
    int64_t examples = job->training.batch_size == FIELD_UNSET ? job->training.per_replica_batch_size
                                                               : divide_up(job->training.batch_size, replicas);
    return wanted < examples ? wanted : examples;
}

static int64_t choose_shards(const struct job_document *job, unsigned crew_size, int64_t recorded)
{
    int64_t replicas = count_replicas(job, crew_size), pieces = 1;
    if (job->training.logical_shards != FIELD_UNSET)
        return job->training.logical_shards;
    if (job->strategy.type == STRATEGY_PIPELINE)
        pieces = count_micro_batches(job, (int64_t)crew_size * job->devices.count, replicas);
    return int64_max(replicas * pieces * job->training.gradient_accumulation, recorded);
}

/* In mode Synchronous each device has a logical shard of a share; else there is a share for each worker. */
static int64_t count_shares(const struct job_document *job, const struct step_plan *plan)
{
    bool synchronous = job->strategy.mode == PARAMETER_SERVER_SYNCHRONOUS;
    return (synchronous ? plan->logical_shards : plan->replicas) / job->devices.count;
}

int step_plan_batches(const struct job_document *job, unsigned crew_size, int64_t recorded_shards,
                      struct step_plan *ret_plan, struct error *error)
{
    const struct training_spec *training = &job->training;
    int64_t replicas = count_replicas(job, crew_size);
    struct step_plan plan = {.replicas = replicas, .learning_rate_factor = 1};
    plan.global_batch = training->batch_size;
    if (plan.global_batch == FIELD_UNSET) {
        plan.global_batch = training->per_replica_batch_size * replicas;
        if (training->scale_learning_rate == SCALE_LINEAR)
            plan.learning_rate_factor = (double)replicas;
    }
    plan.logical_shards = choose_shards(job, crew_size, recorded_shards);
    if (plan.logical_shards < replicas)
        return error_set(error, ERROR_INVALID,
                         "training.logicalShards: %lld shards are too few for %u workers of %lld devices; give at "
                         "least one a device",
                         (long long)plan.logical_shards, crew_size, (long long)job->devices.count);
    if (plan.logical_shards > REDUCTION_LEAVES_MAX)
        return error_set(error, ERROR_INVALID, "training.logicalShards: %lld is above %d",
                         (long long)plan.logical_shards, REDUCTION_LEAVES_MAX);
    plan.shares = count_shares(job, &plan);
    /* Without the recorded shards: another member may not have seen the same checkpoint. */
    plan.max_shard_examples = divide_up(plan.global_batch, choose_shards(job, crew_size, 0));
    *ret_plan = plan;
    return 0;
}

static bool is_by_epochs(const struct job_document *job)
{
    return job->training.steps == FIELD_UNSET && job->training.steps_per_epoch == FIELD_UNSET;
}

/* PeerToPeer takes no common steps, and no short step at the end of an epoch: its steps are whole batches. */
static bool counts_epochs(const struct job_document *job)
{
    return is_by_epochs(job) && job->strategy.type != STRATEGY_PEER_TO_PEER;
}

static bool count_steps(const struct job_document *job, int64_t examples, int64_t batch, int64_t per_epoch,
                        int64_t *ret_total)
{
    int64_t epochs = job->training.epochs, all;
    *ret_total = job->training.steps;
    if (job->training.steps != FIELD_UNSET)
        return true;
    if (!is_by_epochs(job) || counts_epochs(job))
        return !__builtin_mul_overflow(epochs, per_epoch, ret_total);
    if (__builtin_mul_overflow(epochs, examples, &all))
        return false;
    *ret_total = all / batch + (all % batch > 0);
    return true;
}

int step_plan_steps(const struct job_document *job, int64_t examples, struct step_plan *plan, struct error *error)
{
    const struct training_spec *training = &job->training;
    if (examples < 1)
        return error_set(error, ERROR_INVALID, "the training data holds no example");
    int64_t per_epoch = training->steps_per_epoch;
    if (per_epoch == FIELD_UNSET)
        per_epoch = divide_up(examples, plan->global_batch);
    int64_t total;
    if (!count_steps(job, examples, plan->global_batch, per_epoch, &total))
        return error_set(error, ERROR_INVALID, "training.epochs: %lld epochs of %lld steps are too many",
                         (long long)training->epochs, (long long)per_epoch);
    plan->examples = examples;
    plan->epochs = counts_epochs(job) ? training->epochs : 0;
    plan->steps_per_epoch = per_epoch;
    plan->total_steps = total;
    plan->shift = 0;
    plan->evaluates_epochs = job->evaluation_every_steps == FIELD_UNSET;
    plan->evaluate_every = plan->evaluates_epochs ? per_epoch : job->evaluation_every_steps;
    return 0;
}

static int64_t find_last_step(const struct step_plan *plan, int64_t step, int64_t data_epoch, int64_t consumed)
{
    if (plan->epochs == 0)
        return plan->total_steps;
    if (data_epoch >= plan->epochs)
        return step;
    int64_t left = divide_up(int64_max(plan->examples - consumed, 0), plan->global_batch);
    return step + left + (plan->epochs - data_epoch - 1) * plan->steps_per_epoch;
}

void step_plan_go_on(struct step_plan *plan, int64_t step, int64_t data_epoch, int64_t consumed)
{
    int64_t last = find_last_step(plan, step, data_epoch, consumed);
    if (last == plan->total_steps) /* others may be reading it */
        return;
    plan->shift += plan->total_steps - last;
    plan->total_steps = last;
}

bool step_plan_is_over(const struct step_plan *plan, int64_t step, int64_t data_epoch, int64_t consumed)
{
    return step >= find_last_step(plan, step, data_epoch, consumed);
}

int64_t step_plan_largest_shard(const struct step_plan *plan)
{
    return divide_up(plan->global_batch, plan->logical_shards);
}

/* Shards differ by one example at most. */
int step_plan_filler(const struct step_plan *plan, int64_t call)
{
    int64_t shard = plan->global_batch / plan->logical_shards, larger = plan->global_batch % plan->logical_shards;
    int64_t computed =
        call * ((plan->logical_shards - larger) * divide_up(shard, call) + larger * divide_up(shard + 1, call));
    return (int)((computed - plan->global_batch) * 100 / computed);
}

int64_t step_plan_fitting_call(const struct step_plan *plan, int64_t call)
{
    int64_t shard = step_plan_largest_shard(plan);
    return divide_up(shard, divide_up(shard, call));
}

int64_t step_plan_place(const struct step_plan *plan, int64_t step)
{
    return step + plan->shift;
}

int64_t step_plan_schedule_steps(const struct step_plan *plan)
{
    return plan->total_steps + plan->shift;
}

bool step_plan_evaluates(const struct step_plan *plan, int64_t before, int64_t step)
{
    int64_t shift = plan->evaluates_epochs ? plan->shift : 0;
    return step == plan->total_steps ||
           (step + shift) / plan->evaluate_every != (before + shift) / plan->evaluate_every;
}
