/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/memory_budget.h"

#include <stdio.h>

#include "common/buffer.h"
#include "worker/optimizer/optimizer.h"
#include "worker/parameter_server/placement.h"
#include "worker/strategy/reduction_tree.h"
#include "worker/train/support.h"

#define MIB (1024 * 1024)
#define TEXT_MAX ERROR_MESSAGE_MAX
#define ACCUMULATION_MAX 4096

/* A job, its batches and its model, which has no memory of its own. */
struct question {
    const struct trainer *trainer;
    const struct job_document *job;
    struct step_plan steps;
    struct graph *graph;
};

static bool is_parameter_server(const struct question *question)
{
    return question->job->strategy.type == STRATEGY_PARAMETER_SERVER;
}

/* ---------------------------------------------------------------- what there will be */

static void add_passes(const struct memory_plan *pass, int64_t count, struct memory_plan *plan)
{
    plan->bytes[MEMORY_ACTIVATIONS] += count * pass->bytes[MEMORY_ACTIVATIONS];
    plan->bytes[MEMORY_WORKSPACE] += count * pass->bytes[MEMORY_WORKSPACE];
}

/* Slots of a worker: all of them, or its own shard's and a neighbour's. */
static int64_t slot_elements(const struct question *question)
{
    const struct parameter_layout *layout = graph_layout(question->graph);
    const struct crew *crew = &question->trainer->crew;
    struct shard_plan shards;
    if (!question->job->strategy.sharded_optimizer)
        return layout->elements;
    shard_plan_init(&shards, layout, crew->size, !device_memory_is_shared(question->trainer->device));
    return shard_elements(&shards, crew->rank) + shard_elements(&shards, shard_mirrored(&shards, crew->rank));
}

static void add_state(const struct question *question, struct memory_plan *plan)
{
    const struct job_document *job = question->job;
    int64_t slots = optimizer_slot_count(&job->training.optimizer) + (job->strategy.local_steps > 0);
    plan->bytes[MEMORY_PARAMETERS] += graph_layout(question->graph)->elements * (int64_t)sizeof(float);
    plan->bytes[MEMORY_OPTIMIZER] += slots * slot_elements(question) * (int64_t)sizeof(float);
}

/* The chief's copy of the state, and of each rank's that has a part of it. */
static void add_snapshot(const struct question *question, struct memory_plan *plan)
{
    const struct trainer *trainer = question->trainer;
    bool chief = trainer_is_chief(trainer);
    if (trainer->checkpoint_directory == NULL || is_parameter_server(question))
        return;
    if (chief)
        plan->bytes[MEMORY_SNAPSHOT] += plan->bytes[MEMORY_PARAMETERS];
    if (chief || question->job->strategy.sharded_optimizer)
        plan->bytes[MEMORY_SNAPSHOT] += plan->bytes[MEMORY_OPTIMIZER];
}

/* The best weights: those that are being written, and yet better ones that wait. */
static void add_best(const struct question *question, struct memory_plan *plan)
{
    const struct trainer *trainer = question->trainer;
    if (trainer_is_chief(trainer) && trainer->checkpoint_directory != NULL && question->job->checkpoint.keep_best)
        plan->bytes[MEMORY_SNAPSHOT] += 2 * graph_layout(question->graph)->elements * (int64_t)sizeof(float);
}

/* What servers hold of the values: this one, and the one before it, whose backup it is. */
static void read_placement(const struct question *question, int64_t *ret_own, int64_t *ret_guest)
{
    const struct crew *crew = &question->trainer->crew;
    struct placement placement;
    placement_init(&placement, graph_layout(question->graph), crew->server_count);
    unsigned before = (crew->rank + crew->server_count - 1) % crew->server_count;
    *ret_own = placement.elements[crew->rank] * (int64_t)sizeof(float);
    *ret_guest = question->job->strategy.ps_backup ? placement.elements[before] * (int64_t)sizeof(float) : 0;
    placement_release(&placement);
}

/* A ps: its part of the variables; a gradient for each share of a batch, and their sum, where it waits for all. */
static void add_server_state(const struct question *question, int64_t own, int64_t guest, struct memory_plan *plan)
{
    int64_t slots = optimizer_slot_count(&question->job->training.optimizer);
    plan->bytes[MEMORY_PARAMETERS] += own + guest;
    plan->bytes[MEMORY_OPTIMIZER] += (own + guest) * slots;
    if (question->job->strategy.mode == PARAMETER_SERVER_SYNCHRONOUS)
        plan->bytes[MEMORY_GRADIENTS] += (own + guest) * (question->steps.shares + 1);
    if (question->trainer->checkpoint_directory != NULL)
        plan->bytes[MEMORY_SNAPSHOT] += own * (1 + slots);
}

/* For each worker that does not share memory: values on their way out, or those of them that an update would overwrite meanwhile,
 * and an update on its way in. With a backup, for each worker an update on its way there; and both states, as one server sends
 * them and the other receives them. */
static void add_server_exchange(const struct question *question, int64_t own, int64_t guest, struct memory_plan *plan)
{
    const struct trainer *trainer = question->trainer;
    const struct crew *crew = &trainer->crew;
    int64_t slots = optimizer_slot_count(&question->job->training.optimizer);
    int64_t workers = crew->size - crew_has_own_chief(crew);
    if (crew_members_here(crew, trainer->identity) == 1)
        plan->bytes[MEMORY_EXCHANGE] += 2 * workers * own;
    if (guest > 0)
        plan->bytes[MEMORY_EXCHANGE] += workers * own + 2 * (own + guest) * (1 + slots);
}

static void add_server(const struct question *question, struct memory_plan *plan)
{
    int64_t own, guest;
    read_placement(question, &own, &guest);
    add_server_state(question, own, guest, plan);
    add_server_exchange(question, own, guest, plan);
}

/* Values of a worker, gradients of each of its devices, and both packed once more on their way; the chief's copy for evaluations and
 * its model for them. */
static void add_ps_worker(const struct question *question, const struct memory_plan *pass, struct memory_plan *plan)
{
    const struct trainer *trainer = question->trainer;
    bool chief = trainer_is_chief(trainer), evaluates = trainer->crew.part == CREW_EVALUATES;
    bool computes = !evaluates && !(chief && crew_has_own_chief(&trainer->crew));
    int64_t devices = trainer->device_count;
    add_passes(pass, devices + (chief && computes), plan);
    plan->bytes[MEMORY_INPUT] += pass->bytes[MEMORY_INPUT] * (devices + computes * devices + (chief && computes));
    plan->bytes[MEMORY_PARAMETERS] += pass->bytes[MEMORY_PARAMETERS] * (computes + (chief || evaluates));
    plan->bytes[MEMORY_GRADIENTS] += computes * devices * pass->bytes[MEMORY_GRADIENTS];
    plan->bytes[MEMORY_EXCHANGE] += computes * pass->bytes[MEMORY_GRADIENTS];
}

/* A model on each device, and what the strategy adds; evaluations have a batch of their own. */
static void add_trainer(const struct question *question, const struct memory_plan *pass, struct memory_plan *plan)
{
    const struct trainer *trainer = question->trainer;
    const struct step_plan *steps = &question->steps;
    const struct strategy_options options = {
        .type = question->job->strategy.type,
        .graph = question->graph,
        .devices = trainer->devices,
        .device_count = trainer->device_count,
        .spec = &question->job->strategy,
        .optimizer = &question->job->training.optimizer,
        .global_batch = steps->global_batch,
        .logical_shards = (unsigned)steps->logical_shards,
        .crew_size = trainer->crew.size,
        .crew_rank = trainer->crew.rank,
        .expected = trainer->crew.expected,
    };
    add_passes(pass, trainer->device_count, plan);
    plan->bytes[MEMORY_INPUT] += pass->bytes[MEMORY_INPUT];
    strategy_memory_plan(&options, plan);
}

static void add_all(const struct question *question, struct memory_plan *plan)
{
    struct memory_plan pass;
    const struct crew *crew = &question->trainer->crew;
    graph_memory_plan(question->graph, 0, &pass);
    if (crew->part == CREW_SERVES) {
        add_server(question, plan);
        return;
    }
    add_best(question, plan);
    if (is_parameter_server(question)) {
        add_ps_worker(question, &pass, plan);
        return;
    }
    if (question->job->strategy.type == STRATEGY_PIPELINE && crew->size > 1)
        return;
    add_state(question, plan);
    add_snapshot(question, plan);
    if (question->job->strategy.type != STRATEGY_PIPELINE)
        add_trainer(question, &pass, plan);
}

int memory_budget_plan(const struct trainer *trainer, const struct job_document *job, struct memory_plan *ret_plan,
                       struct error *error)
{
    struct question question = {.trainer = trainer, .job = job};
    struct memory_plan plan = {.bytes = {[MEMORY_PROGRAM] = host_memory_resident()}};
    if (step_plan_batches(job, trainer_batch_workers(trainer), trainer->recorded_shards, &question.steps, error) < 0)
        return -1;
    const struct graph_options options = {
        .device = trainer->device,
        .model = &job->model,
        .precision = job->training.precision,
        .max_examples = question.steps.max_shard_examples,
        .plan_only = true,
        .layout_only = job->strategy.type == STRATEGY_PIPELINE || trainer->crew.part == CREW_SERVES,
        .evaluation_only = trainer->crew.part == CREW_EVALUATES,
    };
    if (graph_new(&options, &question.graph, error) < 0)
        return -1;
    add_all(&question, &plan);
    graph_free(question.graph);
    *ret_plan = plan;
    return 0;
}

/* ---------------------------------------------------------------- what would make it fit */

static bool halve(int64_t *value)
{
    if (*value == FIELD_UNSET || *value < 2)
        return false;
    *value = (*value + 1) / 2;
    return true;
}

static bool halve_batch(struct job_document *job, int64_t *ret_value)
{
    bool halved = halve(&job->training.batch_size);
    *ret_value = job->training.batch_size;
    return halved;
}

static bool halve_replica_batch(struct job_document *job, int64_t *ret_value)
{
    bool halved = halve(&job->training.per_replica_batch_size);
    *ret_value = job->training.per_replica_batch_size;
    return halved;
}

static bool accumulate(struct job_document *job, int64_t *ret_value)
{
    if (job->training.logical_shards != FIELD_UNSET || job->strategy.micro_batches != FIELD_UNSET)
        return false;
    *ret_value = job->training.gradient_accumulation *= 2;
    return *ret_value <= ACCUMULATION_MAX;
}

static bool add_shards(struct job_document *job, int64_t *ret_value)
{
    if (job->training.logical_shards == FIELD_UNSET)
        return false;
    *ret_value = job->training.logical_shards *= 2;
    return *ret_value <= REDUCTION_LEAVES_MAX;
}

/* Each tries the next value of a field; false: there is none. */
static const struct remedy {
    const char *field;
    bool (*next)(struct job_document *job, int64_t *ret_value);
} remedies[] = {
    {"training.batchSize", halve_batch},
    {"training.perReplicaBatchSize", halve_replica_batch},
    {"training.gradientAccumulation", accumulate},
    {"training.logicalShards", add_shards},
};

/* The first value with which the plan fits. */
static bool find_remedy(const struct trainer *trainer, const struct remedy *remedy, int64_t limit, int64_t *ret_value)
{
    struct job_document job = *trainer->job;
    struct memory_plan plan;
    while (remedy->next(&job, ret_value))
        if (support_check(&job, &trainer->crew, NULL) < 0 || memory_budget_plan(trainer, &job, &plan, NULL) < 0)
            return false;
        else if (memory_plan_bytes(&plan) <= limit)
            return true;
    return false;
}

static void list_remedies(const struct trainer *trainer, int64_t limit, struct buffer *text)
{
    for (size_t i = 0; i < sizeof remedies / sizeof *remedies; i++) {
        int64_t value;
        if (find_remedy(trainer, &remedies[i], limit, &value))
            buffer_format(text, "%s: %lld, or with ", remedies[i].field, (long long)value);
    }
}

static const struct {
    const char *words, *remedy;
} limiters[] = {
    [HOST_MEMORY_OF_MACHINE] = {"the machine's memory is", "a machine"},
    [HOST_MEMORY_OF_CGROUP] = {"the cgroup's limit is", "a memory limit (resources.limits.memory)"},
    [HOST_MEMORY_OF_PROCESS] = {"the limit on its data is", "a limit (ulimit -d)"},
};

static int64_t mebibytes_up(int64_t bytes)
{
    return (bytes + MIB - 1) / MIB;
}

int memory_budget_check(const struct trainer *trainer, const struct memory_plan *plan, struct host_memory_limit limit,
                        struct error *error)
{
    bool own = limit.limiter == HOST_MEMORY_OF_PROCESS;
    int64_t here = own ? 1 : crew_members_here(&trainer->crew, trainer->identity), bytes = memory_plan_bytes(plan);
    if (bytes <= limit.bytes / here)
        return 0;
    SCOPED_BUFFER purposes, remedy;
    char share[64] = "";
    buffer_init(&purposes, TEXT_MAX);
    buffer_init(&remedy, TEXT_MAX);
    memory_plan_print(plan, &purposes);
    list_remedies(trainer, limit.bytes / here, &remedy);
    if (here > 1)
        snprintf(share, sizeof share, " for %lld members of the crew", (long long)here);
    return error_set(error, ERROR_NO_SPACE,
                     "the memory plan needs %lld MiB, but %s %lld MiB%s: %s; it would fit with %s%s of %lld MiB",
                     (long long)mebibytes_up(bytes), limiters[limit.limiter].words, (long long)(limit.bytes / MIB),
                     share, buffer_text(&purposes), buffer_text(&remedy), limiters[limit.limiter].remedy,
                     (long long)mebibytes_up(bytes * here));
}
