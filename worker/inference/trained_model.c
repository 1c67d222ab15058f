/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/inference/trained_model.h"

#include <stdio.h>
#include <unistd.h>

#include "common/contract/checkpoint_layout.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/checkpoint/file.h"
#include "worker/inference/trained_weights.h"
#include "worker/model/program.h"
#include "worker/train/error_exit_code.h"
#include "worker/train/trainer_stages.h"

#define TOLD_MAX 4096
#define BATCH_MAX 64 /* a CPU gains little by more */

/* Removes what only training needs, so that those files need not exist, and the checkpoints, which are looked for separately. */
static struct job_document without_run(const struct job_document *job, bool weights_are_given)
{
    struct job_document result = *job;
    result.init_path = NULL;
    result.checkpoint.enabled = false;
    if (weights_are_given)
        result.export_path = NULL;
    return result;
}

static int64_t examples_at_once(const struct step_plan *plan, enum trained_passes passes)
{
    if (passes != TRAINED_IN_BATCHES && passes != TRAINED_BATCH_OUTPUTS)
        return 1;
    return plan->max_shard_examples < BATCH_MAX ? plan->max_shard_examples : BATCH_MAX;
}

static int open_graph(struct trainer *trainer, enum trained_passes passes, struct error *error)
{
    struct step_plan plan;
    unsigned workers = trainer->job->workers > 0 ? (unsigned)trainer->job->workers : 1;
    const struct device_options device = {.type = DEVICE_TYPE_CPU, .threads = trainer_threads(trainer)};
    if (step_plan_batches(trainer->job, workers, 0, &plan, error) < 0 ||
        device_open(&device, &trainer->devices[0].device, error) < 0)
        return -1;
    trainer->device_count = 1;
    trainer->device = trainer->devices[0].device;
    const struct graph_options options = {
        .device = trainer->device,
        .model = &trainer->job->model,
        .program = trainer->xla.program,
        .precision = passes == TRAINED_TOKEN_BY_TOKEN ? PRECISION_FLOAT32 : trainer->job->training.precision,
        .max_examples = examples_at_once(&plan, passes),
        .layout_only = passes == TRAINED_TOKEN_BY_TOKEN,
        .evaluation_only = true,
        .keeps_outputs = trainer->xla.program == NULL || passes != TRAINED_IN_BATCHES,
    };
    if (device_stream_new(trainer->device, &trainer->stream, error) < 0 ||
        graph_new(&options, &trainer->devices[0].graph, error) < 0)
        return -1;
    trainer->graph = trainer->devices[0].graph;
    return 0;
}

static int open_state(struct trainer *trainer, struct error *error)
{
    static const struct optimizer_spec without_slots = {.type = OPTIMIZER_SGD};
    return training_state_init(&trainer->state, trainer->device, graph_layout(trainer->graph), &without_slots,
                               trainer->job->training.seed, error);
}

static bool is_there(const char *path)
{
    return path != NULL && access(path, F_OK) == 0;
}

/* Where the checkpoints are needs to be known only where nothing goes before them. */
static int open_paths(struct trained_model *model, const struct job_document *job, struct error *error)
{
    struct trainer *trainer = &model->trainer;
    if (trainer_open_paths(trainer, error) < 0)
        return -1;
    if (trainer->arguments->inference.weights || is_there(trainer->files.export_path) ||
        trainer->files.checkpoint_directory)
        return 0;
    model->job.checkpoint = job->checkpoint;
    return trainer_resolve_checkpoint(trainer, error);
}

static int open_program(struct trainer *trainer, enum trained_passes passes, struct error *error)
{
    unsigned uses = passes == TRAINED_IN_BATCHES ? PROGRAM_EVALUATES : PROGRAM_PREDICTS;
    if (trainer->job->model.program_path != NULL && passes == TRAINED_TOKEN_BY_TOKEN)
        return error_set(
            error, ERROR_UNSUPPORTED,
            "--generate: a program cannot generate token by token; load the exported weights in the framework "
            "that the model comes from");
    return trainer_open_program_for(trainer, uses, error);
}

/* Whether the weights of the best evaluation are what the job trains for. */
static bool wants_best(const struct job_document *job)
{
    return job->checkpoint.keep_best && (job->export_path == NULL || job->export_weights == EXPORT_BEST);
}

/* Returns NULL if there are none. free() it. */
static char *find_weights(const struct trainer *trainer, const struct job_document *job)
{
    const char *checkpoints = trainer->files.checkpoint_directory;
    if (trainer->arguments->inference.weights)
        return memory_copy_string(trainer->arguments->inference.weights);
    if (is_there(trainer->files.export_path))
        return memory_copy_string(trainer->files.export_path);
    if (!is_there(checkpoints))
        return NULL;
    SCOPED_FREE char *best = file_path_join(checkpoints, CHECKPOINT_BEST);
    return memory_copy_string(wants_best(job) && is_there(best) ? best : checkpoints);
}

static int load_weights(struct trainer *trainer, const struct job_document *job, struct error *error)
{
    SCOPED_FREE char *path = find_weights(trainer, job);
    SCOPED_BUFFER told = BUFFER_INIT(TOLD_MAX);
    if (path == NULL)
        return error_set(
            error, ERROR_NOT_FOUND,
            "there are no weights: neither an export nor a checkpoint of the job was found in its storage; wait "
            "for the first checkpoint, or give a path with --weights");
    if (trained_weights_load(&trainer->state, path, &trainer->trained_on, &told, error) < 0)
        return -1;
    (void)fprintf(stderr, "weights: %s\n", buffer_text(&told));
    return 0;
}

int trained_model_open(struct trained_model *model, const struct arguments *arguments, const struct identity *identity,
                       const struct job_document *job, enum trained_passes passes, enum exit_code *ret_code,
                       struct error *error)
{
    struct trainer *trainer = &model->trainer;
    model->job = without_run(job, arguments->inference.weights != NULL);
    *trainer = (struct trainer){.arguments = arguments, .identity = identity, .job = &model->job};
    *ret_code = EXIT_CODE_BAD_JOB;
    int result = open_paths(model, job, error);
    if (result == 0)
        result = open_program(trainer, passes, error);
    if (result == 0)
        result = open_graph(trainer, passes, error);
    if (result == 0)
        result = open_state(trainer, error);
    if (result == 0) {
        *ret_code = EXIT_CODE_NO_CHECKPOINT;
        result = load_weights(trainer, job, error);
    }
    if (result < 0)
        *ret_code = error_exit_code(error, *ret_code);
    return result;
}

void trained_model_release(struct trained_model *model)
{
    trainer_release(&model->trainer);
}
