/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/job_check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "worker/train/error_exit_code.h"
#include "worker/train/support.h"
#include "worker/train/trainer_stages.h"

#define ANSWER_MAX 4096

/* Returns whether the job's storage is a directory of this machine; NULL: an absolute path. */
static bool is_here(const struct arguments *arguments, const char *storage)
{
    bool found = storage == NULL;
    for (unsigned i = 0; i < arguments->storage_count && !found; i++) {
        size_t length = strcspn(arguments->storages[i], "=");
        found = strlen(storage) == length && strncmp(arguments->storages[i], storage, length) == 0;
    }
    return found;
}

/* The job on CPUs, without the storages that are elsewhere. */
static struct job_document here(const struct job_document *job, const struct arguments *arguments)
{
    struct job_document result = *job;
    result.devices.type = DEVICE_TYPE_CPU;
    if (!is_here(arguments, job->init_storage))
        result.init_path = NULL;
    if (!is_here(arguments, job->export_storage))
        result.export_path = NULL;
    result.checkpoint.enabled = job->checkpoint.enabled && is_here(arguments, job->checkpoint.storage);
    return result;
}

/* A job that continues from a checkpoint does not read them. */
static int check_init(struct trainer *trainer, struct error *error)
{
    const char *path = trainer->init_path;
    if (path == NULL || trainer->recorded_shards > 0 || access(path, R_OK) == 0)
        return 0;
    return error_set_errno(error, "init.path: read the initial weights in %s", path);
}

static int open_graph(struct trainer *trainer, struct error *error)
{
    struct graph_options options = trainer_graph_options(trainer, trainer->device);
    options.layout_only = true;
    if (graph_new(&options, &trainer->devices[0].graph, error) < 0)
        return -1;
    trainer->graph = trainer->devices[0].graph;
    return 0;
}

static int open_data(struct trainer *trainer, struct error *error)
{
    if (!is_here(trainer->arguments, trainer->job->data.storage))
        return 0;
    if (trainer_open_data(trainer, error) < 0)
        return -1;
    return support_check_validation(trainer->job, dataset_count(trainer->validation), error);
}

static const struct stage {
    int (*open)(struct trainer *trainer, struct error *error);
    enum exit_code code; /* of plain bad input found there */
} stages[] = {
    {trainer_open_crew, EXIT_CODE_BAD_JOB},
    {trainer_open_paths, EXIT_CODE_BAD_JOB},
    {trainer_open_plan, EXIT_CODE_BAD_JOB},
    {check_init, EXIT_CODE_BAD_JOB},
    {trainer_open_devices, EXIT_CODE_INTERNAL},
    {trainer_open_memory, EXIT_CODE_BAD_JOB},
    {open_graph, EXIT_CODE_BAD_JOB},
    {open_data, EXIT_CODE_BAD_DATA},
};

static int print_answer(const struct trainer *trainer, bool on_cpus, struct error *error)
{
    SCOPED_JSON *answer = json_new_object();
    SCOPED_BUFFER text;
    buffer_init(&text, ANSWER_MAX);
    json_set_integer(answer, "parameters", graph_layout(trainer->graph)->elements);
    json_set_integer(answer, "batch", trainer->plan.global_batch);
    json_set_integer(answer, "members", crew_members_here(&trainer->crew, trainer->identity));
    if (on_cpus)
        json_set_integer(answer, "memory", memory_plan_bytes(&trainer->memory.host));
    if (trainer->training) {
        json_set_integer(answer, "steps", trainer->plan.total_steps);
        json_set_integer(answer, "examples", dataset_count(trainer->training));
        json_set_integer(answer, "heldOut", dataset_count(trainer->validation));
        json_set_integer(answer, "classes", dataset_format(trainer->training)->classes);
        json_set_integer(answer, "labels", (int64_t)json_count(dataset_facts(trainer->training)->classes));
    }
    if (json_print(answer, &text, error) < 0)
        return -1;
    return puts(buffer_text(&text)) < 0 ? error_set_errno(error, "print the answer") : 0;
}

static int answer_nothing(struct error *error)
{
    return puts("{}") < 0 ? error_set_errno(error, "print the answer") : 0;
}

static int check(struct trainer *trainer, bool on_cpus, enum exit_code *ret_code, struct error *error)
{
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        struct error cause = ERROR_INIT;
        if (stages[i].open(trainer, &cause) == 0 || (cause.kind == ERROR_NO_SPACE && !on_cpus))
            continue; /* the memory of GPUs is not planned here */
        if (cause.kind == ERROR_UNSUPPORTED && !on_cpus)
            return answer_nothing(error); /* GPUs may support it */
        *ret_code = error_exit_code(&cause, stages[i].code);
        *error = cause;
        return -1;
    }
    return print_answer(trainer, on_cpus, error);
}

int job_check_run(const struct arguments *arguments, const struct identity *identity, const struct job_document *job,
                  enum exit_code *ret_code, struct error *error)
{
    struct job_document checked = here(job, arguments);
    struct trainer trainer = {.arguments = arguments, .identity = identity, .job = &checked};
    if (job->model.program_path != NULL)
        return answer_nothing(error);
    if (job->devices.type == DEVICE_TYPE_GPU && devices_find_gpus((unsigned)job->devices.count, error) < 0) {
        *ret_code = EXIT_CODE_NO_DEVICE;
        return -1;
    }
    int result = check(&trainer, job->devices.type == DEVICE_TYPE_CPU, ret_code, error);
    trainer_release(&trainer);
    return result;
}
