/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/job_check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/contract/checkpoint_layout.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/image.h"
#include "worker/checkpoint/lineage.h"
#include "worker/checkpoint/pieces.h"
#include "worker/train/error_exit_code.h"
#include "worker/train/state_tensors.h"
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
    const char *path = trainer->files.init_path;
    if (path == NULL || trainer->resumed.shards > 0 || access(path, R_OK) == 0)
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

/* Opens the checkpoint from which the pods would go on: the newest one that is whole, as far as its headers tell, since reading all numbers
 * of a large one takes minutes. Damaged ones stay where they are. */
static bool open_newest(const char *directory, struct checkpoint_image *ret_image)
{
    struct lineage lineage;
    bool found = false;
    if (lineage_read(directory, &lineage, NULL) < 0)
        return false;
    for (unsigned i = 0; i < lineage.candidate_count && !found; i++) {
        char name[CHECKPOINT_NAME_MAX];
        struct error cause = ERROR_INIT;
        checkpoint_name_format(&lineage.candidates[i], name);
        SCOPED_FREE char *path = file_path_join(directory, name);
        found = checkpoint_image_open_headers(path, &lineage.candidates[i], ret_image, &cause) == 0;
        if (cause.kind == ERROR_SYSTEM || cause.kind == ERROR_UNSUPPORTED)
            break; /* the pods say more about it */
    }
    lineage_release(&lineage);
    return found;
}

/* Compares a parameter, or the optimizer's slot for it, without reading its numbers. */
static int compare_tensor(const struct checkpoint_image *image, const struct parameter_tensor *parameter,
                          const char *slot, struct error *error)
{
    char name[STATE_TENSOR_NAME_MAX];
    snprintf(name, sizeof name, "%s%s%s", slot ? slot : "", slot ? "/" : "", parameter->name);
    struct safetensors_tensor wanted = {.name = name, .dtype = SAFETENSORS_F32, .rank = parameter->rank};
    memcpy(wanted.shape, parameter->shape, parameter->rank * sizeof parameter->shape[0]);
    return checkpoint_read_rows(image, &wanted, 0, parameter->rank > 0 ? parameter->shape[0] : 1, NULL, error);
}

static int compare_tensors(const struct trainer *trainer, const struct checkpoint_image *image, struct error *error)
{
    const struct parameter_layout *layout = graph_layout(trainer->graph);
    const struct optimizer_spec *optimizer = &trainer->job->training.optimizer;
    unsigned slots = optimizer_slot_count(optimizer);
    for (unsigned pass = 0; pass <= slots; pass++)
        for (unsigned i = 0; i < layout->tensor_count; i++) {
            const struct parameter_tensor *parameter = &layout->tensors[i];
            bool is_there = !parameter->copy && (pass == 0 || parameter->offset >= layout->statistics);
            const char *slot = pass > 0 ? optimizer_slot_name(optimizer, pass - 1) : NULL;
            if (is_there && compare_tensor(image, parameter, slot, error) < 0)
                return -1;
        }
    return 0;
}

static int check_checkpoint(struct trainer *trainer, struct error *error)
{
    const char *directory = trainer->files.checkpoint_directory;
    struct checkpoint_image image = {.file_count = 0};
    if (!directory || !open_newest(directory, &image))
        return 0;
    int result = compare_tensors(trainer, &image, error);
    if (result < 0)
        error_wrap(error, "the checkpoint of step %lld in %s " CHECKPOINT_MISFIT, (long long)image.manifest.step,
                   directory);
    checkpoint_image_release(&image);
    return result;
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

/* `misfit`: why the newest checkpoint does not fit the job; empty: it fits. */
static int print_answer(const struct trainer *trainer, bool on_cpus, const char *misfit, struct error *error)
{
    SCOPED_JSON *answer = json_new_object();
    SCOPED_BUFFER text = BUFFER_INIT(ANSWER_MAX);
    json_set_integer(answer, "parameters", graph_layout(trainer->graph)->elements);
    json_set_integer(answer, "batch", trainer->plan.global_batch);
    json_set_integer(answer, "members", crew_members_here(&trainer->crew, trainer->identity));
    if (on_cpus)
        json_set_integer(answer, "memory", memory_plan_bytes(&trainer->memory.host));
    if (*misfit)
        json_set_string(answer, "misfit", misfit);
    if (trainer->training) {
        json_set_integer(answer, "steps", trainer->plan.total_steps);
        json_set_integer(answer, "examples", dataset_count(trainer->training));
        json_set_integer(answer, "heldOut", dataset_count(trainer->validation));
        json_set_integer(answer, "classes", dataset_format(trainer->training)->classes);
        json_set_integer(answer, "labels", (int64_t)json_count(dataset_facts(trainer->training)->classes));
    }
    if (json_print(answer, &text, error) < 0)
        return -1;
    return puts(buffer_text(&text)) < 0 || fflush(stdout) != 0 ? error_set_errno(error, "print the answer") : 0;
}

static int answer_nothing(struct error *error)
{
    return puts("{}") < 0 ? error_set_errno(error, "print the answer") : 0;
}

/* Prints what is known before the data is opened, which may take longer than the caller waits. */
static int answer_early(struct trainer *trainer, bool on_cpus, struct error *misfit, struct error *error)
{
    if (print_answer(trainer, on_cpus, "", error) < 0)
        return -1;
    return check_checkpoint(trainer, misfit) < 0 ? print_answer(trainer, on_cpus, misfit->message, error) : 0;
}

/* A checkpoint that does not fit is no error before the data was opened: the model may follow from data that is wrong. */
static int check(struct trainer *trainer, bool on_cpus, enum exit_code *ret_code, struct error *error)
{
    struct error misfit = ERROR_INIT;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        struct error cause = ERROR_INIT;
        if (stages[i].open == open_data && answer_early(trainer, on_cpus, &misfit, error) < 0)
            return -1;
        if (stages[i].open(trainer, &cause) == 0 || (cause.kind == ERROR_NO_SPACE && !on_cpus))
            continue; /* the memory of GPUs is not planned here */
        if (cause.kind == ERROR_UNSUPPORTED && !on_cpus)
            return answer_nothing(error); /* GPUs may support it */
        *ret_code = error_exit_code(&cause, stages[i].code);
        *error = cause;
        return -1;
    }
    if (*misfit.message == '\0')
        return print_answer(trainer, on_cpus, "", error);
    *ret_code = error_exit_code(&misfit, EXIT_CODE_BAD_JOB);
    *error = misfit;
    return -1;
}

int job_check_run(const struct arguments *arguments, const struct identity *identity, const struct job_document *job,
                  enum exit_code *ret_code, struct error *error)
{
    struct job_document checked = here(job, arguments);
    struct trainer trainer = {.arguments = arguments, .identity = identity, .job = &checked};
    if (job->model.program_path != NULL)
        return answer_nothing(error);
    if (job->devices.type == DEVICE_TYPE_GPU && !job_document_uses_plugin(job) &&
        devices_find_gpus((unsigned)job->devices.count, error) < 0) {
        *ret_code = EXIT_CODE_NO_DEVICE;
        return -1;
    }
    bool on_cpus = job->devices.type == DEVICE_TYPE_CPU && !job_document_uses_plugin(job);
    int result = check(&trainer, on_cpus, ret_code, error);
    trainer_release(&trainer);
    return result;
}
