/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/memory_budget.h"

#include <stdio.h>

#include "common/buffer.h"
#include "worker/optimizer/optimizer.h"
#include "worker/optimizer/slot_pieces.h"
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

static bool is_pipeline(const struct question *question)
{
    return question->job->strategy.type == STRATEGY_PIPELINE;
}

/* A Pipeline's, of their own stages alone. */
static bool makes_state_itself(const struct question *question)
{
    const struct trainer *trainer = question->trainer;
    return strategy_makes_state(question->job->strategy.type, trainer->crew.size, trainer->device,
                                trainer->device_count);
}

/* ---------------------------------------------------------------- what there will be */

static bool is_near(const struct question *question)
{
    return device_memory_is_shared(question->trainer->device);
}

static struct memory_plan *near_plan(const struct question *question, struct memory_plans *plans)
{
    return memory_plans_of(plans, question->trainer->device);
}

/* Adds the passes of `count` devices, and `more` of the first one. */
static void add_passes(const struct question *question, const struct memory_plan *pass, int64_t count, int64_t more,
                       struct memory_plans *plans)
{
    int64_t here = is_near(question) ? count + more : 1 + more;
    struct memory_plan *plan = near_plan(question, plans);
    plan->bytes[MEMORY_ACTIVATIONS] += here * pass->bytes[MEMORY_ACTIVATIONS];
    plan->bytes[MEMORY_WORKSPACE] += here * pass->bytes[MEMORY_WORKSPACE];
}

static void add_streams(const struct question *question, int64_t count, struct memory_plans *plans)
{
    if (!is_near(question))
        plans->device.bytes[MEMORY_STREAMS] += count * device_stream_bytes(question->trainer->device);
}

/* Slots of a worker, and of its first device: all of them, or its own shard's and a neighbour's. Where devices have memory of their
 * own they keep these between them, of which no other has more than the first. */
static void slot_elements(const struct question *question, int64_t *ret_here, int64_t *ret_device)
{
    const struct parameter_layout *layout = graph_layout(question->graph);
    const struct crew *crew = &question->trainer->crew;
    struct shard_plan shards;
    *ret_here = *ret_device = layout->elements;
    if (!question->job->strategy.sharded_optimizer)
        return;
    shard_plan_init(&shards, layout, crew->size, is_near(question) ? 1 : question->trainer->device_count,
                    !is_near(question));
    *ret_here = shard_kept_elements(&shards, crew->rank);
    *ret_device = slot_pieces_elements(&shards, crew->rank, 0);
}

/* Where the device has memory of its own there is a copy for the host, and a stream that copies. */
static void add_state(const struct question *question, struct memory_plans *plans)
{
    const struct job_document *job = question->job;
    int64_t slots = optimizer_slot_count(&job->training.optimizer) + (job->strategy.local_steps > 0), here, device;
    bool in_pieces = job->strategy.sharded_optimizer && question->trainer->device_count > 1;
    slot_elements(question, &here, &device);
    struct memory_plan state = {
        .bytes = {[MEMORY_PARAMETERS] = graph_layout(question->graph)->elements * (int64_t)sizeof(float),
                  [MEMORY_OPTIMIZER] = slots * here * (int64_t)sizeof(float)}};
    memory_plan_add(&plans->host, &state);
    state.bytes[MEMORY_OPTIMIZER] = slots * device * (int64_t)sizeof(float);
    if (!is_near(question))
        memory_plan_add(&plans->device, &state);
    add_streams(question, 1 + in_pieces, plans);
}

/* Returns whether this is one of the processes of a Pipeline's crew that together hold all of its stages once. */
static bool writes_stages(const struct question *question)
{
    int64_t stages = question->job->strategy.stages, devices = question->trainer->device_count;
    return makes_state_itself(question) && (stages == FIELD_UNSET || question->trainer->crew.rank * devices < stages);
}

/* The chief's copy of the state, and of each rank's that has a part of it. */
static void add_snapshot(const struct question *question, struct memory_plan *plan)
{
    const struct trainer *trainer = question->trainer;
    bool chief = trainer_is_chief(trainer) || writes_stages(question);
    if (trainer->files.checkpoint_directory == NULL || is_parameter_server(question))
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
    if (trainer_is_chief(trainer) && trainer->files.checkpoint_directory != NULL && question->job->checkpoint.keep_best)
        plan->bytes[MEMORY_SNAPSHOT] += 2 * graph_layout(question->graph)->elements * (int64_t)sizeof(float);
}

/* A ps: its part of the variables; a gradient for each share of a batch, and their sum, where it waits for all; for each worker that
 * does not share memory, values on their way out, or those that an update would overwrite meanwhile, and an update on its way in. */
static void add_server(const struct question *question, struct memory_plan *plan)
{
    const struct trainer *trainer = question->trainer;
    const struct crew *crew = &trainer->crew;
    struct placement placement;
    placement_init(&placement, graph_layout(question->graph), crew->server_count);
    int64_t own = placement.elements[crew->rank] * (int64_t)sizeof(float);
    placement_release(&placement);
    int64_t slots = optimizer_slot_count(&question->job->training.optimizer);
    plan->bytes[MEMORY_PARAMETERS] += own;
    plan->bytes[MEMORY_OPTIMIZER] += own * slots;
    if (question->job->strategy.mode == PARAMETER_SERVER_SYNCHRONOUS)
        plan->bytes[MEMORY_GRADIENTS] += own * (question->steps.shares + 1);
    if (trainer->files.checkpoint_directory != NULL)
        plan->bytes[MEMORY_SNAPSHOT] += own * (1 + slots);
    if (crew_members_here(crew, trainer->identity) == 1)
        plan->bytes[MEMORY_EXCHANGE] += 2 * (crew->size - crew_has_own_chief(crew)) * own;
}

/* Beside what the host has: values and gradients once more on each device, which a stream copies and one computes. The chief's
 * copy for evaluations is in its device's memory, too, and has a stream. */
static void add_ps_device(const struct question *question, const struct memory_plan *pass, bool computes, bool keeps,
                          struct memory_plans *plans)
{
    if (is_near(question))
        return;
    plans->device.bytes[MEMORY_PARAMETERS] += (computes + keeps) * pass->bytes[MEMORY_PARAMETERS];
    plans->device.bytes[MEMORY_GRADIENTS] += computes * pass->bytes[MEMORY_GRADIENTS];
    add_streams(question, 2 * computes + keeps, plans);
}

/* Values of a worker, gradients of each of its devices, and both packed once more on their way; the chief's copy for evaluations and
 * its model for them. */
static void add_ps_worker(const struct question *question, const struct memory_plan *pass, struct memory_plans *plans)
{
    const struct trainer *trainer = question->trainer;
    bool chief = trainer_is_chief(trainer), evaluates = trainer->crew.part == CREW_EVALUATES;
    bool computes = !evaluates && !(chief && crew_has_own_chief(&trainer->crew));
    int64_t devices = trainer->device_count;
    struct memory_plan *plan = &plans->host;
    add_passes(question, pass, devices, chief && computes, plans);
    add_ps_device(question, pass, computes, chief || evaluates, plans);
    plan->bytes[MEMORY_INPUT] += pass->bytes[MEMORY_INPUT] * (devices + computes * devices + (chief && computes));
    plan->bytes[MEMORY_PARAMETERS] += pass->bytes[MEMORY_PARAMETERS] * (computes + (chief || evaluates));
    plan->bytes[MEMORY_GRADIENTS] += computes * devices * pass->bytes[MEMORY_GRADIENTS];
    plan->bytes[MEMORY_EXCHANGE] += computes * pass->bytes[MEMORY_GRADIENTS];
}

static void add_strategy(const struct question *question, struct memory_plans *plans)
{
    const struct trainer *trainer = question->trainer;
    const struct step_plan *steps = &question->steps;
    const struct job_document *job = question->job;
    const struct strategy_options options = {
        .type = job->strategy.type,
        .spec = &job->strategy,
        .device = trainer->device,
        .graph = question->graph,
        .devices = trainer->devices,
        .device_count = trainer->device_count,
        .optimizer = &job->training.optimizer,
        .global_batch = steps->global_batch,
        .logical_shards = (unsigned)steps->logical_shards,
        .sums = {.in_any_order = job->training.determinism == DETERMINISM_RUN,
                 .communicator = trainer->communicators[0].version > 0 ? trainer->communicators : NULL},
        .crew = {.size = trainer->crew.size, .rank = trainer->crew.rank, .expected = trainer->crew.expected},
        .pipeline = {.model = &job->model,
                     .stages = job->strategy.stages == FIELD_UNSET ? 0 : (unsigned)job->strategy.stages,
                     .recompute = job->strategy.recompute,
                     .recorded_stages = trainer->stages,
                     .recorded_layers = trainer->stage_layers},
    };
    strategy_memory_plan(&options, plans);
}

/* A model on each device, and what the strategy adds; evaluations have a batch of their own. A Pipeline's stages have their part of
 * the model, and evaluate with it. */
static void add_trainer(const struct question *question, const struct memory_plan *pass, struct memory_plans *plans)
{
    if (!is_pipeline(question)) {
        add_passes(question, pass, question->trainer->device_count, 0, plans);
        plans->host.bytes[MEMORY_INPUT] += pass->bytes[MEMORY_INPUT];
    }
    add_strategy(question, plans);
}

static void add_all(const struct question *question, struct memory_plans *plans)
{
    struct memory_plan pass;
    const struct crew *crew = &question->trainer->crew;
    graph_memory_plan(question->graph, 0, &pass);
    if (crew->part == CREW_SERVES) {
        add_server(question, &plans->host);
        return;
    }
    add_best(question, &plans->host);
    if (is_parameter_server(question)) {
        add_ps_worker(question, &pass, plans);
        return;
    }
    if (makes_state_itself(question)) {
        add_trainer(question, &pass, plans);
        add_snapshot(question, &plans->host);
        return;
    }
    add_state(question, plans);
    add_snapshot(question, &plans->host);
    add_trainer(question, &pass, plans);
}

/* The GPU that has least to give: what it has in all, and what is taken of it, here and by other processes. */
static int read_room(const struct trainer *trainer, int64_t *ret_total, int64_t *ret_taken, struct error *error)
{
    int64_t least = INT64_MAX;
    for (unsigned i = 0; i < trainer->device_count; i++) {
        int64_t total, free;
        if (device_memory_room(trainer->devices[i].device, &total, &free, error) < 0)
            return -1;
        if (free >= least)
            continue;
        least = free;
        *ret_total = total;
        *ret_taken = total - free;
    }
    return 0;
}

/* Before anything of the plan was there: a trainer that has one already knows. */
static int add_taken(const struct question *question, struct memory_plans *plans, struct error *error)
{
    const struct memory_plans *first = &question->trainer->memory;
    int64_t total = 0;
    if (first->host.bytes[MEMORY_PROGRAM] > 0) {
        plans->host.bytes[MEMORY_PROGRAM] = first->host.bytes[MEMORY_PROGRAM];
        plans->device.bytes[MEMORY_PROGRAM] = first->device.bytes[MEMORY_PROGRAM];
        return 0;
    }
    plans->host.bytes[MEMORY_PROGRAM] += host_memory_resident();
    return is_near(question) ? 0 : read_room(question->trainer, &total, &plans->device.bytes[MEMORY_PROGRAM], error);
}

int memory_budget_plan(const struct trainer *trainer, const struct job_document *job, struct memory_plans *ret_plans,
                       struct error *error)
{
    struct question question = {.trainer = trainer, .job = job};
    struct memory_plans plans = {0};
    if (step_plan_batches(job, trainer_batch_workers(trainer), trainer->resumed.shards, &question.steps, error) < 0 ||
        add_taken(&question, &plans, error) < 0)
        return -1;
    const struct graph_options options = {
        .device = trainer->device,
        .model = &job->model,
        .program = trainer->xla.program,
        .precision = job->training.precision,
        .max_examples = question.steps.max_shard_examples,
        .logit_rows = trainer->identity->logit_rows,
        .recompute = job->strategy.recompute,
        .plan_only = true,
        .layout_only = is_pipeline(&question) || trainer->crew.part == CREW_SERVES,
        .evaluation_only = trainer->crew.part == CREW_EVALUATES,
    };
    if (graph_new(&options, &question.graph, error) < 0)
        return -1;
    add_all(&question, &plans);
    plans.host.bytes[MEMORY_INPUT] += dataset_memory(trainer->training) + dataset_memory(trainer->validation);
    graph_free(question.graph);
    *ret_plans = plans;
    return 0;
}

/* ---------------------------------------------------------------- what would make it fit */

/* The available memory: the host's, and that of each device with memory of its own. */
struct room {
    int64_t host, device;
};

#define VALUE_MAX 32

static bool say_number(int64_t number, char value[VALUE_MAX])
{
    snprintf(value, VALUE_MAX, "%lld", (long long)number);
    return true;
}

static bool halve(int64_t *number, char value[VALUE_MAX])
{
    if (*number == FIELD_UNSET || *number < 2)
        return false;
    *number = (*number + 1) / 2;
    return say_number(*number, value);
}

static bool halve_batch(struct job_document *job, const struct trainer *trainer, char value[VALUE_MAX])
{
    (void)trainer;
    return halve(&job->training.batch_size, value);
}

static bool halve_replica_batch(struct job_document *job, const struct trainer *trainer, char value[VALUE_MAX])
{
    (void)trainer;
    return halve(&job->training.per_replica_batch_size, value);
}

static bool accumulate(struct job_document *job, const struct trainer *trainer, char value[VALUE_MAX])
{
    (void)trainer;
    if (job->training.logical_shards != FIELD_UNSET || job->strategy.micro_batches != FIELD_UNSET)
        return false;
    job->training.gradient_accumulation *= 2;
    return job->training.gradient_accumulation <= ACCUMULATION_MAX &&
           say_number(job->training.gradient_accumulation, value);
}

static bool add_shards(struct job_document *job, const struct trainer *trainer, char value[VALUE_MAX])
{
    (void)trainer;
    if (job->training.logical_shards == FIELD_UNSET)
        return false;
    job->training.logical_shards *= 2;
    return job->training.logical_shards <= REDUCTION_LEAVES_MAX && say_number(job->training.logical_shards, value);
}

static bool store_bfloat16(struct job_document *job, const struct trainer *trainer, char value[VALUE_MAX])
{
    (void)trainer;
    bool changes = job->training.precision == PRECISION_FLOAT32 || job->training.precision == PRECISION_TF32;
    job->training.precision = PRECISION_BFLOAT16;
    snprintf(value, VALUE_MAX, "bfloat16");
    return changes;
}

static bool shard_optimizer(struct job_document *job, const struct trainer *trainer, char value[VALUE_MAX])
{
    bool several = trainer->crew.size > 1 || (trainer->device_count > 1 && !device_memory_is_shared(trainer->device));
    bool could = job->strategy.type == STRATEGY_MULTI_WORKER_MIRRORED && several;
    if (!could || job->strategy.sharded_optimizer || job->strategy.local_steps > 0 ||
        job->strategy.collective != COLLECTIVE_AUTO)
        return false;
    job->strategy.sharded_optimizer = true;
    snprintf(value, VALUE_MAX, "true");
    return true;
}

static bool compute_again(struct job_document *job, const struct trainer *trainer, char value[VALUE_MAX])
{
    (void)trainer;
    if (job->strategy.recompute)
        return false;
    job->strategy.recompute = true;
    snprintf(value, VALUE_MAX, "true");
    return true;
}

/* Each tries the next value of a field; false: there is none. */
static const struct remedy {
    const char *field;
    bool (*next)(struct job_document *job, const struct trainer *trainer, char value[VALUE_MAX]);
} remedies[] = {
    {"training.batchSize", halve_batch},           {"training.perReplicaBatchSize", halve_replica_batch},
    {"training.gradientAccumulation", accumulate}, {"training.logicalShards", add_shards},
    {"training.precision", store_bfloat16},        {"strategy.shardedOptimizer", shard_optimizer},
    {"strategy.recompute", compute_again},
};

static bool fits(const struct memory_plans *plans, struct room room)
{
    return memory_plan_bytes(&plans->host) <= room.host && memory_plan_bytes(&plans->device) <= room.device;
}

/* The first value with which the plan fits. */
static bool find_remedy(const struct trainer *trainer, const struct remedy *remedy, struct room room,
                        char value[VALUE_MAX])
{
    struct job_document job = *trainer->job;
    struct memory_plans plans;
    while (remedy->next(&job, trainer, value))
        if (support_check(&job, &trainer->crew, NULL) < 0 || memory_budget_plan(trainer, &job, &plans, NULL) < 0)
            return false;
        else if (fits(&plans, room))
            return true;
    return false;
}

static void list_remedies(const struct trainer *trainer, struct room room, struct buffer *text)
{
    for (size_t i = 0; i < sizeof remedies / sizeof *remedies; i++) {
        char value[VALUE_MAX];
        if (find_remedy(trainer, &remedies[i], room, value))
            buffer_format(text, "%s: %s, or with ", remedies[i].field, value);
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

/* Whether the host's memory is enough is judged by the share of one of the crew's members there. */
static int check_host(const struct trainer *trainer, const struct memory_plan *plan, struct host_memory_limit limit,
                      int64_t here, struct room room, struct error *error)
{
    int64_t bytes = memory_plan_bytes(plan);
    if (bytes <= room.host)
        return 0;
    SCOPED_BUFFER purposes = BUFFER_INIT(TEXT_MAX), remedy = BUFFER_INIT(TEXT_MAX);
    char share[64] = "";
    memory_plan_print(plan, &purposes);
    list_remedies(trainer, room, &remedy);
    if (here > 1)
        snprintf(share, sizeof share, " for %lld members of the crew", (long long)here);
    return error_set(error, ERROR_NO_SPACE,
                     "the memory plan needs %lld MiB, but %s %lld MiB%s: %s; it would fit with %s%s of %lld MiB",
                     (long long)mebibytes_up(bytes), limiters[limit.limiter].words, (long long)(limit.bytes / MIB),
                     share, buffer_text(&purposes), buffer_text(&remedy), limiters[limit.limiter].remedy,
                     (long long)mebibytes_up(bytes * here));
}

static int check_device(const struct trainer *trainer, const struct memory_plan *plan, struct room room,
                        struct error *error)
{
    int64_t bytes = memory_plan_bytes(plan);
    if (bytes <= room.device)
        return 0;
    SCOPED_BUFFER purposes = BUFFER_INIT(TEXT_MAX), remedy = BUFFER_INIT(TEXT_MAX);
    memory_plan_print(plan, &purposes);
    list_remedies(trainer, room, &remedy);
    return error_set(error, ERROR_NO_SPACE,
                     "the memory plan needs %lld MiB of a GPU, which has %lld MiB: %s; it would fit with %sa GPU of "
                     "%lld MiB",
                     (long long)mebibytes_up(bytes), (long long)(room.device / MIB), buffer_text(&purposes),
                     buffer_text(&remedy), (long long)mebibytes_up(bytes));
}

int memory_budget_check(const struct trainer *trainer, const struct memory_plans *plans, struct host_memory_limit limit,
                        struct error *error)
{
    bool own = limit.limiter == HOST_MEMORY_OF_PROCESS;
    int64_t here = own ? 1 : crew_members_here(&trainer->crew, trainer->identity), taken;
    struct room room = {.host = limit.bytes / here, .device = INT64_MAX};
    if (!device_memory_is_shared(trainer->device) && read_room(trainer, &room.device, &taken, error) < 0)
        return -1;
    if (check_device(trainer, &plans->device, room, error) < 0)
        return -1;
    return check_host(trainer, &plans->host, limit, here, room, error);
}
