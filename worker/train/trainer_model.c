/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/trainer_stages.h"

#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/device/host_memory.h"
#include "worker/model/program.h"
#include "worker/strategy/local_rounds.h"
#include "worker/strategy/sharded_optimizer.h"
#include "worker/train/compilation.h"
#include "worker/train/compute_threads.h"
#include "worker/train/export.h"
#include "worker/train/memory_budget.h"
#include "worker/train/support.h"
#include "worker/xla/client.h"

#define KEPT_BYTES_MAX ((int64_t)512 << 20) /* of decoded examples that stay in memory */

struct graph_options trainer_graph_options(const struct trainer *trainer, struct device *device)
{
    return (struct graph_options){
        .device = device,
        .model = &trainer->job->model,
        .program = trainer->xla.program,
        .precision = trainer->job->training.precision,
        .max_examples = trainer->plan.max_shard_examples,
        .logit_rows = trainer->identity->logit_rows,
        .recompute = trainer->job->strategy.recompute,
    };
}

/* Unless the job says where first weights come from, they are the program's own. */
static int take_weights(struct trainer *trainer, const char *folder, struct error *error)
{
    const char *name = program_weights(trainer->xla.program);
    if (trainer->files.init_path != NULL || name == NULL)
        return 0;
    size_t size = strlen(folder) + strlen(name) + 2;
    trainer->files.init_path = memory_allocate(size, 1);
    return snprintf(trainer->files.init_path, size, "%s/%s", folder, name) < 0
               ? error_set(error, ERROR_INTERNAL, "cannot format a path")
               : 0;
}

/* Returns how many TPUs to open: to train, those of the job; to use a model, one, if this machine has TPUs and no plugin is named. 0: the
 * plugin that is named computes, on its first device. */
static unsigned tpus_for(const struct trainer *trainer, unsigned uses)
{
    SCOPED_BUFFER here = BUFFER_INIT(4096);
    if (trainer->job->devices.type != DEVICE_TYPE_TPU)
        return 0;
    if (uses & PROGRAM_TRAINS)
        return (unsigned)trainer->job->devices.count;
    xla_append_tpus(&here);
    return trainer->identity->pjrt_cpu_devices > 0 || (trainer->identity->pjrt_plugin == NULL && here.length > 0);
}

/* Returns what this process computes of a program. First values are computed where the state is; servers compute nothing else. */
static unsigned uses_of(const struct trainer *trainer)
{
    bool serves = trainer->crew.part == CREW_SERVES;
    bool has_state = serves || (trainer->crew.part == CREW_TRAINS && !trainer_serves_parameters(trainer));
    unsigned first = has_state && trainer->files.init_path == NULL ? PROGRAM_INITIALISES : 0;
    return first | (serves && first != 0 ? 0 : PROGRAM_TRAINS | PROGRAM_EVALUATES);
}

int trainer_open_program_for(struct trainer *trainer, unsigned uses, struct error *error)
{
    const struct model_spec *model = &trainer->job->model;
    SCOPED_FREE char *folder = NULL;
    if (model->program_path == NULL)
        return 0;
    struct xla_options options;
    xla_options_init(&options, trainer->identity->pjrt_plugin, tpus_for(trainer, uses),
                     trainer->identity->pjrt_cpu_devices);
    if (storage_map_resolve(trainer->files.storage, model->program_storage, model->program_path, &folder, error) < 0 ||
        program_open(folder, uses, xla_options_platform(&options), &trainer->xla.program, error) < 0 ||
        take_weights(trainer, folder, error) < 0)
        return error_wrap(error, "model.program");
    bool computes =
        trainer->crew.part != CREW_SERVES || (program_uses(trainer->xla.program) & PROGRAM_INITIALISES) != 0;
    if (computes && compilation_run(trainer, folder, uses, &options, trainer_threads(trainer), error) < 0)
        return -1;
    program_drop_artifacts(trainer->xla.program);
    return 0;
}

int trainer_open_program(struct trainer *trainer, struct error *error)
{
    if (trainer_open_program_for(trainer, uses_of(trainer), error) < 0)
        return -1;
    if (trainer->xla.program != NULL && program_example_format(trainer->xla.program)->ignores &&
        trainer_serves_parameters(trainer))
        return error_set(error, ERROR_UNSUPPORTED,
                         "model.program: ParameterServer counts all targets, and target.ignored says that some do not "
                         "count; take another strategy.type");
    if (trainer->xla.program == NULL || trainer->files.init_path != NULL || program_has_start(trainer->xla.program))
        return 0;
    return error_set(error, ERROR_INVALID,
                     "model.program: program.json has neither weights nor entries.initialise, so that its parameters "
                     "have no first values; export it with one of them, or set init.path");
}

/* A call takes a logical shard, and the shards are those of the checkpoint that the run goes on from. */
int trainer_lower_model(struct trainer *trainer, struct error *error)
{
    const struct job_document *job = trainer->job;
    struct xla_options options;
    if (job->model.program_path != NULL || !job_document_uses_plugin(job))
        return 0;
    if (support_check_statistics(job, trainer->plan.logical_shards, error) < 0)
        return -1;
    bool trains = trainer->crew.part == CREW_TRAINS && !trainer_keeps_to_the_host(trainer);
    unsigned uses = PROGRAM_EVALUATES | (trains ? PROGRAM_TRAINS : 0);
    xla_options_init(&options, trainer->identity->pjrt_plugin, tpus_for(trainer, PROGRAM_TRAINS),
                     trainer->identity->pjrt_cpu_devices);
    if (compilation_lower(job, step_plan_largest_shard(&trainer->plan), uses, &trainer->xla.program, error) < 0)
        return -1;
    if (trainer->crew.part != CREW_SERVES &&
        compilation_run(trainer, NULL, uses, &options, trainer_threads(trainer), error) < 0)
        return -1;
    program_drop_artifacts(trainer->xla.program);
    return 0;
}

int trainer_open_graphs(struct trainer *trainer, struct error *error)
{
    bool accelerated = trainer->job->devices.type == DEVICE_TYPE_TPU || trainer->job->devices.type == DEVICE_TYPE_GPU;
    bool staged = trainer->job->strategy.type == STRATEGY_PIPELINE; /* its stages have graphs of their own */
    for (unsigned i = 0; i < (staged ? 1 : trainer->device_count); i++) {
        struct graph_options options = trainer_graph_options(trainer, trainer->devices[i].device);
        options.program_device = accelerated ? i : 0;
        options.layout_only = staged || trainer->crew.part == CREW_SERVES;
        options.evaluation_only = trainer->crew.part == CREW_EVALUATES;
        if (graph_new(&options, &trainer->devices[i].graph, error) < 0)
            return -1;
    }
    trainer->graph = trainer->devices[0].graph;
    return 0;
}

/* Lets the datasets read with as many threads as the process computes with, and keep decoded examples in half of the memory that the memory
 * plan leaves free. */
static void set_data_limits(struct trainer *trainer)
{
    struct dataset *datasets[] = {trainer->training, trainer->validation};
    struct host_memory_limit limit = host_memory_limit_read("");
    int64_t left = limit.bytes / crew_members_here(&trainer->crew, trainer->identity);
    left = (left - memory_plan_bytes(&trainer->memory.host)) / 2;
    left = left < KEPT_BYTES_MAX ? left : KEPT_BYTES_MAX;
    for (size_t i = 0; i < sizeof datasets / sizeof *datasets; i++) {
        if (!datasets[i])
            continue;
        dataset_set_readers(datasets[i], compute_threads(trainer->arguments, trainer->identity, &trainer->crew));
        left -= left > 0 ? dataset_keep(datasets[i], left) : 0;
    }
}

/* Adds the examples that are in memory to the plan, whose rest is not allocated yet, and checks it again. */
static int plan_data(struct trainer *trainer, struct error *error)
{
    struct memory_plans plans;
    if (dataset_memory(trainer->training) + dataset_memory(trainer->validation) == 0)
        return 0;
    if (memory_budget_plan(trainer, trainer->job, &plans, error) < 0)
        return -1;
    trainer->memory = plans;
    return memory_budget_check(trainer, &trainer->memory, host_memory_limit_read(""), error);
}

int trainer_open_data(struct trainer *trainer, struct error *error)
{
    const struct example_format *format = graph_example_format(trainer->graph);
    const struct data_spec *spec = &trainer->job->data;
    if (trainer->crew.part == CREW_SERVES) /* sees no examples */
        return 0;
    if (dataset_open(spec, trainer->files.storage, SPLIT_TRAIN, format, &trainer->training, error) < 0)
        return error_wrap(error, "training data");
    if (dataset_open_validation(spec, trainer->files.storage, trainer->training, &trainer->validation, error) < 0)
        return error_wrap(error, "validation data");
    if (plan_data(trainer, error) < 0)
        return -1;
    set_data_limits(trainer);
    int64_t count = dataset_count(trainer->training);
    trainer->sampler = (struct sampler){.seed = (uint64_t)trainer->job->training.seed, .count = count};
    return step_plan_steps(trainer->job, count, &trainer->plan, error);
}

int trainer_open_state(struct trainer *trainer, struct error *error)
{
    if (trainer->files.export_path && export_check(graph_layout(trainer->graph), trainer->job->export_names, error) < 0)
        return -1;
    if (trainer->validation && support_check_validation(trainer->job, dataset_count(trainer->validation), error) < 0)
        return -1;
    if (strategy_makes_state(trainer->job->strategy.type, trainer->crew.size, trainer->device, trainer->device_count))
        return 0;
    /* The servers hold the slots; only a process that evaluates and exports needs a copy of the parameters. */
    static const struct optimizer_spec without_slots = {.type = OPTIMIZER_SGD};
    bool needed = trainer->crew.part == CREW_EVALUATES || trainer_is_chief(trainer);
    if (trainer_serves_parameters(trainer))
        return needed ? training_state_init(&trainer->state, trainer->device, graph_layout(trainer->graph),
                                            &without_slots, trainer->job->training.seed, error)
                      : 0;
    if (trainer->job->strategy.sharded_optimizer)
        return sharded_optimizer_init_state(&trainer->state, trainer->devices, trainer->device_count,
                                            &trainer->job->training.optimizer, trainer->job->training.seed,
                                            trainer->crew.rank, trainer->crew.size, error);
    if (training_state_init(&trainer->state, trainer->device, graph_layout(trainer->graph),
                            &trainer->job->training.optimizer, trainer->job->training.seed, error) < 0)
        return -1;
    if (trainer->job->strategy.local_steps > 0)
        return training_state_add_slot(&trainer->state, LOCAL_ROUNDS_SLOT, error);
    return 0;
}
