/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/best.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/contract/checkpoint_layout.h"
#include "common/lock.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/checkpoint/snapshot.h"
#include "worker/train/export.h"
#include "worker/train/export_objects.h"
#include "worker/train/gathered_model.h"
#include "worker/train/hugging_face.h"
#include "worker/train/trained_on.h"

static char *best_path(const struct trainer *trainer)
{
    return file_path_join(trainer->files.checkpoint_directory, CHECKPOINT_BEST);
}

/* An evaluation. */
struct mark {
    int64_t step;
    double loss;           /* INFINITY: there was none */
    double accuracy, rmse; /* NAN: the model has none */
};

/* Weights on their way to the disk. */
struct kept {
    struct snapshot values; /* one tensor: all parameters, as the layout has them */
    struct mark mark;
};

struct best {
    struct trainer *trainer;
    pthread_t thread;
    bool thread_runs;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    struct kept kept[2]; /* the thread has kept[at_work] while it writes; the other one waits for it, or is free */
    unsigned at_work;
    bool writes, waits, stopping;
    struct mark stored, promised; /* with the lowest losses: on the disk, and on their way there */
};

static bool keeps_best(const struct trainer *trainer)
{
    return trainer->job->checkpoint.keep_best && trainer->files.store && trainer->files.store_begun;
}

/* Whether an evaluation is part of this training: of this job, or of an earlier one from whose checkpoint it continues. */
static bool is_of_this_training(const struct trainer *trainer, const struct safetensors_file *file, int64_t step)
{
    SCOPED(trained_on_release) struct trained_on then = {0};
    const char *job = safetensors_metadata(file, "job");
    if (job && strcmp(job, trainer->identity->job_uid) == 0)
        return true;
    trained_on_read(&then, safetensors_all_metadata(file));
    return job && step <= trainer->state.progress.step && trained_on_check(&then, trainer->training, NULL) == 0;
}

static struct mark read_mark(const struct trainer *trainer)
{
    struct safetensors_file file;
    struct mark mark = {.loss = INFINITY, .accuracy = NAN, .rmse = NAN};
    SCOPED_FREE char *path = best_path(trainer);
    if (safetensors_open_kept(path, &file, NULL) < 0)
        return mark;
    const char *loss = safetensors_metadata(&file, "validationLoss"), *step = safetensors_metadata(&file, "step"),
               *accuracy = safetensors_metadata(&file, "validationAccuracy"),
               *rmse = safetensors_metadata(&file, "validationRMSE");
    struct mark found = {.step = step ? strtoll(step, NULL, 10) : 0,
                         .loss = loss ? strtod(loss, NULL) : INFINITY,
                         .accuracy = accuracy ? strtod(accuracy, NULL) : NAN,
                         .rmse = rmse ? strtod(rmse, NULL) : NAN};
    if (isfinite(found.loss) && is_of_this_training(trainer, &file, found.step))
        mark = found;
    safetensors_close(&file);
    return mark;
}

/* Reports the evaluation that a final export will have, unless its weights cannot be written. */
static void report_promised(const struct best *best)
{
    report_best(best->trainer->report, best->promised.step, best->promised.loss, best->promised.accuracy,
                best->promised.rmse);
}

void best_begin(struct trainer *trainer)
{
    if (!keeps_best(trainer) || trainer->files.best != NULL)
        return;
    struct best *best = memory_allocate(1, sizeof *best);
    best->trainer = trainer;
    best->stored = best->promised = read_mark(trainer);
    report_promised(best);
    pthread_mutex_init(&best->mutex, NULL);
    condition_init(&best->changed);
    trainer->files.best = best;
}

/* ---- in the background */

static int write_kept(const struct best *best, const struct kept *kept, struct error *error)
{
    const struct trainer *trainer = best->trainer;
    char text[40];
    SCOPED_FREE char *path = best_path(trainer);
    SCOPED_JSON *metadata = json_new_object();
    json_set_string(metadata, "job", trainer->identity->job_uid);
    snprintf(text, sizeof text, "%lld", (long long)kept->mark.step);
    json_set_string(metadata, "step", text);
    snprintf(text, sizeof text, "%.17g", kept->mark.loss);
    json_set_string(metadata, "validationLoss", text);
    snprintf(text, sizeof text, "%.17g", kept->mark.accuracy);
    json_set_string(metadata, "validationAccuracy", isfinite(kept->mark.accuracy) ? text : NULL);
    snprintf(text, sizeof text, "%.17g", kept->mark.rmse);
    json_set_string(metadata, "validationRMSE", isfinite(kept->mark.rmse) ? text : NULL);
    trained_on_describe(metadata, trainer->training);
    const struct export export = {.layout = graph_layout(trainer->graph),
                                  .parameters = kept->values.tensors[0].data,
                                  .names = EXPORT_OWN_NAMES,
                                  .metadata = metadata,
                                  .store = trainer->files.store};
    return export_write(&export, path, NULL, error) < 0
               ? -1
               : checkpoint_store_publish(trainer->files.store, CHECKPOINT_BEST, error);
}

static void tell_failure(const struct best *best, int64_t step, const struct error *cause)
{
    report_warn(best->trainer->report, "the best weights so far, of step %lld, could not be kept: %s", (long long)step,
                cause->message);
}

/* Called with the lock held; releases it while writing. */
static void write_next(struct best *best)
{
    struct error cause = ERROR_INIT;
    best->at_work = 1 - best->at_work;
    const struct kept *kept = &best->kept[best->at_work];
    best->waits = false;
    best->writes = true;
    pthread_mutex_unlock(&best->mutex);
    int result = write_kept(best, kept, &cause);
    if (result < 0)
        tell_failure(best, kept->mark.step, &cause);
    pthread_mutex_lock(&best->mutex);
    best->writes = false;
    if (result == 0)
        best->stored = kept->mark;
    else if (!best->waits) {
        best->promised = best->stored;
        report_promised(best);
    }
    pthread_cond_broadcast(&best->changed);
}

static void *write_all(void *context)
{
    struct best *best = context;
    SCOPED_LOCK(&best->mutex);
    while (best->waits || !best->stopping)
        if (best->waits)
            write_next(best);
        else
            pthread_cond_wait(&best->changed, &best->mutex);
    return NULL;
}

static int start_thread(struct best *best, struct error *error)
{
    if (best->thread_runs)
        return 0;
    errno = pthread_create(&best->thread, NULL, write_all, best);
    if (errno != 0)
        return error_set_errno(error, "start a thread");
    best->thread_runs = true;
    return 0;
}

/* Replaces weights that wait to be written. */
static int keep(struct best *best, const struct gathered_model *model, struct mark mark, struct error *error)
{
    const struct safetensors_tensor all = {.name = "parameters",
                                           .dtype = SAFETENSORS_F32,
                                           .rank = 1,
                                           .shape = {model->layout->elements},
                                           .data = model->parameters,
                                           .bytes = (size_t)model->layout->elements * sizeof(float)};
    if (start_thread(best, error) < 0)
        return -1;
    SCOPED_LOCK(&best->mutex);
    struct kept *kept = &best->kept[1 - best->at_work];
    best->waits = false;
    snapshot_describe(&kept->values, &all, 1);
    int result = snapshot_copy(&kept->values, error);
    kept->mark = mark;
    best->waits = result == 0;
    best->promised = best->waits ? mark : best->writes ? best->kept[best->at_work].mark : best->stored;
    report_promised(best);
    pthread_cond_broadcast(&best->changed);
    return result;
}

void best_wait(struct trainer *trainer)
{
    struct best *best = trainer->files.best;
    if (best == NULL)
        return;
    SCOPED_LOCK(&best->mutex);
    while (best->waits || best->writes)
        pthread_cond_wait(&best->changed, &best->mutex);
}

bool best_wait_for(struct trainer *trainer, int64_t ms)
{
    struct best *best = trainer->files.best;
    int64_t deadline_ns = clock_monotonic_ns() + ms * 1000000;
    bool in_time = true;
    if (best == NULL)
        return true;
    SCOPED_LOCK(&best->mutex);
    while (in_time && (best->waits || best->writes))
        in_time = condition_wait_until(&best->changed, &best->mutex, deadline_ns);
    return !best->waits && !best->writes;
}

void best_free(struct best *best)
{
    if (best == NULL)
        return;
    pthread_mutex_lock(&best->mutex);
    best->stopping = true;
    pthread_cond_broadcast(&best->changed);
    pthread_mutex_unlock(&best->mutex);
    if (best->thread_runs)
        pthread_join(best->thread, NULL);
    for (unsigned i = 0; i < 2; i++)
        snapshot_release(&best->kept[i].values);
    pthread_cond_destroy(&best->changed);
    pthread_mutex_destroy(&best->mutex);
    free(best);
}

/* ---- in the loop */

static bool is_better(struct best *best, double loss)
{
    if (best == NULL)
        return false;
    SCOPED_LOCK(&best->mutex);
    return loss < best->promised.loss;
}

/* Only the chief knows what it has kept; if all ranks hand over their parts, it shares its
 * decision. */
static int decide(struct trainer *trainer, double loss, bool *ret_wanted, struct error *error)
{
    *ret_wanted = is_better(trainer->files.best, loss);
    if (trainer->strategy == NULL || strategy_has_gathered_model(trainer->strategy))
        return 0;
    return strategy_share(trainer->strategy, ret_wanted, sizeof *ret_wanted, error);
}

int best_consider(struct trainer *trainer, const struct evaluation_metrics *metrics, struct error *error)
{
    struct mark mark = {trainer->state.progress.step, metrics->loss, metrics->accuracy, metrics->rmse};
    struct error cause = ERROR_INIT;
    struct gathered_model model;
    bool wanted;
    if (decide(trainer, metrics->loss, &wanted, error) < 0)
        return -1;
    if (!wanted)
        return 0;
    if (gathered_model_take(trainer, &model, error) < 0)
        return -1;
    if (trainer_is_chief(trainer) && keep(trainer->files.best, &model, mark, &cause) < 0)
        tell_failure(trainer->files.best, trainer->state.progress.step, &cause);
    gathered_model_release(&model);
    return 0;
}

/* ---- the export */

/* This is our own file, so names and shapes fit unless it was modified. */
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
    return safetensors_check(file, error);
}

/* Uploads what export_write and hugging_face_write_config have written, if the export goes to a bucket. */
static int upload_export(const struct trainer *trainer, const struct export *export, const struct exported *exported,
                         struct error *error)
{
    const struct export_upload upload = {export, trainer->files.export_path};
    if (!trainer->files.export_objects)
        return 0;
    if (hugging_face_has_config(trainer->job, trainer->files.export_path) &&
        (export_check_current(&upload, error) < 0 ||
         export_objects_put_beside(trainer->files.export_objects, HUGGING_FACE_CONFIG, error) < 0))
        return -1;
    return export_objects_put(trainer->files.export_objects, export_check_current, &upload, exported->bytes,
                              exported->crc32c, error);
}

static int write_export(const struct trainer *trainer, const struct parameter_layout *layout, const float *parameters,
                        struct exported *ret_exported, struct error *error)
{
    SCOPED_JSON *metadata = json_new_object();
    trained_on_describe(metadata, trainer->training);
    const struct export export = {.layout = layout,
                                  .parameters = parameters,
                                  .metadata = metadata,
                                  .names = trainer->job->export_names,
                                  .store = trainer->files.store,
                                  .claim = {.job_uid = trainer->identity->job_uid,
                                            .attempt = trainer->identity->attempt,
                                            .incarnation = trainer->identity->incarnation,
                                            .objects = trainer->files.export_objects}};
    if (export_write(&export, trainer->files.export_path, ret_exported, error) < 0 ||
        hugging_face_write_config(trainer->job, trainer->files.export_path, error) < 0)
        return -1;
    return upload_export(trainer, &export, ret_exported, error);
}

static int export_best(struct trainer *trainer, struct exported *ret_exported, struct error *error)
{
    struct safetensors_file file;
    SCOPED_FREE char *path = best_path(trainer);
    if (safetensors_open_kept(path, &file, error) < 0)
        return error_wrap(error, "the best weights were never kept: is there validation data?");
    SCOPED_FREE float *parameters = memory_allocate((size_t)graph_layout(trainer->graph)->elements, sizeof *parameters);
    int result = read_best(trainer, &file, parameters, error);
    if (result == 0)
        result = write_export(trainer, graph_layout(trainer->graph), parameters, ret_exported, error);
    if (result == 0)
        report_say(trainer->report, "exports the weights of step %s, the best with a validation loss of %s",
                   safetensors_metadata(&file, "step"), safetensors_metadata(&file, "validationLoss"));
    safetensors_close(&file);
    return result < 0 ? error_wrap(error, "%s", path) : 0;
}

int best_export(struct trainer *trainer, const struct gathered_model *model, struct exported *ret_exported,
                struct error *error)
{
    best_wait(trainer);
    if (trainer->job->export_weights == EXPORT_BEST && trainer->job->checkpoint.keep_best && trainer->files.store)
        return export_best(trainer, ret_exported, error);
    return write_export(trainer, model->layout, model->parameters, ret_exported, error);
}
