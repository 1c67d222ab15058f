/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/best.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/checkpoint_layout.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/train/export.h"
#include "worker/train/whole_model.h"

static char *best_path(const struct trainer *trainer)
{
    return file_path_join(trainer->checkpoint_directory, CHECKPOINT_BEST);
}

static bool keeps_best(const struct trainer *trainer)
{
    return trainer->job->checkpoint.keep_best && trainer->store && trainer->store_begun;
}

void best_begin(struct trainer *trainer)
{
    struct safetensors_file file;
    trainer->best_loss = INFINITY;
    if (!keeps_best(trainer))
        return;
    SCOPED_FREE char *path = best_path(trainer);
    if (safetensors_open(path, &file, NULL) < 0)
        return;
    const char *job = safetensors_metadata(&file, "job"), *loss = safetensors_metadata(&file, "validationLoss");
    if (job && loss && strcmp(job, trainer->identity->job_uid) == 0 && isfinite(strtod(loss, NULL)))
        trainer->best_loss = strtod(loss, NULL);
    safetensors_close(&file);
}

static int keep(struct trainer *trainer, const struct whole_model *model, double loss, struct error *error)
{
    char text[40];
    SCOPED_FREE char *path = best_path(trainer);
    SCOPED_JSON *metadata = json_new_object();
    json_set_string(metadata, "job", trainer->identity->job_uid);
    snprintf(text, sizeof text, "%lld", (long long)trainer->state.progress.step);
    json_set_string(metadata, "step", text);
    snprintf(text, sizeof text, "%.17g", loss);
    json_set_string(metadata, "validationLoss", text);
    if (checkpoint_store_check(trainer->store, error) < 0)
        return -1;
    return export_write(&(struct export){model->layout, model->parameters, EXPORT_OWN_NAMES, metadata}, path, error);
}

/* The chief knows what it has kept; where all take part they must hear of it. */
static int decide(struct trainer *trainer, double loss, bool *ret_wanted, struct error *error)
{
    *ret_wanted = keeps_best(trainer) && loss < trainer->best_loss;
    if (trainer->strategy == NULL || strategy_has_whole_model(trainer->strategy))
        return 0;
    return strategy_share(trainer->strategy, ret_wanted, sizeof *ret_wanted, error);
}

int best_consider(struct trainer *trainer, double loss, struct error *error)
{
    struct error cause = ERROR_INIT;
    struct whole_model model;
    bool wanted;
    if (decide(trainer, loss, &wanted, error) < 0)
        return -1;
    if (!wanted)
        return 0;
    if (whole_model_take(trainer, &model, error) < 0)
        return -1;
    if (trainer_is_chief(trainer) && keep(trainer, &model, loss, &cause) < 0)
        report_warn(trainer->report, "the best weights so far, of step %lld, could not be kept: %s",
                    (long long)trainer->state.progress.step, cause.message);
    else
        trainer->best_loss = loss;
    whole_model_release(&model);
    return 0;
}

/* Our own file, so names and shapes fit unless somebody has changed it. */
static int read_best(const struct trainer *trainer, const struct safetensors_file *file, float *parameters,
                     struct error *error)
{
    const struct parameter_layout *layout = graph_layout(trainer->graph);
    for (unsigned i = 0; i < layout->tensor_count; i++) {
        const struct parameter_tensor *tensor = &layout->tensors[i];
        const struct safetensors_tensor *found = safetensors_find(file, tensor->name);
        size_t bytes = (size_t)tensor->elements * sizeof(float);
        if (!found || found->dtype != SAFETENSORS_F32 || found->bytes != bytes)
            return error_set(error, ERROR_INVALID, "tensor %s is missing or of another size", tensor->name);
        memcpy(parameters + tensor->offset, found->data, bytes);
    }
    return 0;
}

static int export_best(struct trainer *trainer, struct error *error)
{
    struct safetensors_file file;
    SCOPED_FREE char *path = best_path(trainer);
    if (safetensors_open(path, &file, error) < 0)
        return error_wrap(error, "the best weights were never kept: is there validation data?");
    SCOPED_FREE float *parameters = memory_allocate((size_t)graph_layout(trainer->graph)->elements, sizeof *parameters);
    int result = read_best(trainer, &file, parameters, error);
    if (result == 0)
        result =
            export_write(&(struct export){graph_layout(trainer->graph), parameters, trainer->job->export_names, NULL},
                         trainer->export_path, error);
    if (result == 0)
        report_say(trainer->report, "exports the weights of step %s, the best with a validation loss of %s",
                   safetensors_metadata(&file, "step"), safetensors_metadata(&file, "validationLoss"));
    safetensors_close(&file);
    return result < 0 ? error_wrap(error, "%s", path) : 0;
}

int best_export(struct trainer *trainer, const struct whole_model *model, struct error *error)
{
    if (trainer->job->export_weights == EXPORT_BEST && trainer->job->checkpoint.keep_best && trainer->store)
        return export_best(trainer, error);
    return export_write(&(struct export){model->layout, model->parameters, trainer->job->export_names, NULL},
                        trainer->export_path, error);
}
