/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/restoring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/contract/checkpoint_layout.h"
#include "worker/checkpoint/bucket.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/image.h"
#include "worker/model/program.h"
#include "worker/train/finished_examples.h"
#include "worker/train/initial_weights.h"
#include "worker/train/resumed_order.h"
#include "worker/train/state_tensors.h"
#include "worker/train/trained_on.h"

static void tell_quarantined(void *context, const char *name, const char *reason)
{
    struct trainer *trainer = context;
    report_warn(trainer->report, "checkpoint %s is damaged and was moved aside: %s", name, reason);
}

static bool is_another_batch(const struct trainer *trainer, const struct manifest *manifest)
{
    int64_t then = resumed_order_batch(manifest);
    return then != 0 && then != trainer->plan.global_batch;
}

static bool counts_steps(const struct trainer *trainer)
{
    return trainer->job->training.epochs == FIELD_UNSET || trainer->job->training.steps_per_epoch != FIELD_UNSET;
}

/* PeerToPeer's step is all examples in batches. */
static void count_in_batches(struct trainer *trainer, const struct manifest *manifest)
{
    struct training_progress *progress = &trainer->state.progress;
    if (trainer->job->strategy.type != STRATEGY_PEER_TO_PEER || !is_another_batch(trainer, manifest) ||
        counts_steps(trainer))
        return;
    bool is_over = progress->data_epoch >= trainer->job->training.epochs;
    progress->step = is_over ? trainer->plan.total_steps
                             : (progress->data_epoch * trainer->sampler.count + progress->examples_consumed) /
                                   trainer->plan.global_batch;
}

static int take_state(struct trainer *trainer, const struct checkpoint_image *image, const char *instead,
                      struct error *error)
{
    if (state_tensors_restore(&trainer->state, image, error) < 0)
        return error_wrap(error, "checkpoint of step %lld " CHECKPOINT_MISFIT " (%s)", (long long)image->manifest.step,
                          instead);
    finished_examples_read(image->manifest.model, trainer->resumed.finished);
    count_in_batches(trainer, &image->manifest);
    return 0;
}

/* Warns if an earlier job has taken all steps already: its score is then not one of this job's settings. */
static void warn_of_nothing_left(struct trainer *trainer, const struct manifest *manifest)
{
    bool is_theirs = manifest->job_uid != NULL && strcmp(manifest->job_uid, trainer->identity->job_uid) != 0;
    if (is_theirs &&
        step_plan_is_over(&trainer->plan, manifest->step, manifest->data_epoch, manifest->examples_consumed))
        report_warn(trainer->report,
                    "nothing is left to train: this job ends at step %lld, and the checkpoint of step %lld is an "
                    "earlier job's, with that job's settings. Take another checkpoint.path to train anew",
                    (long long)trainer->plan.total_steps, (long long)manifest->step);
}

static int start_from_checkpoint(struct trainer *trainer, const struct checkpoint_image *image, struct error *error)
{
    if (take_state(trainer, image, "use another checkpoint.path to start anew", error) < 0)
        return -1;
    report_say(trainer->report, "resumes from the checkpoint of step %lld", (long long)image->manifest.step);
    warn_of_nothing_left(trainer, &image->manifest);
    if (trainer->state.progress.step != image->manifest.step)
        checkpoint_store_forget_step(trainer->files.store);
    return 0;
}

static int start_from_file(struct trainer *trainer, struct error *error)
{
    struct safetensors_file file;
    if (safetensors_open(trainer->files.init_path, &file, error) < 0)
        return error_wrap(error, "init.path");
    int result = initial_weights_load(&trainer->state, graph_layout(trainer->graph), &file, error);
    safetensors_close(&file);
    if (result < 0)
        return error_wrap(error, "init.path %s", trainer->files.init_path);
    report_say(trainer->report, "starts from the weights in %s", trainer->files.init_path);
    return 0;
}

bool restoring_initialises(const struct trainer *trainer)
{
    return trainer->files.init_path == NULL && trainer->xla.program != NULL &&
           !program_is_of_layers(trainer->xla.program);
}

static int start_from_seed(struct trainer *trainer, struct error *error)
{
    if (!restoring_initialises(trainer))
        return 0; /* training_state_init has drawn them */
    if (initial_weights_compute(&trainer->state, trainer->xla.program, error) < 0)
        return -1;
    report_say(trainer->report, RESTORING_INITIALISES, (long long)trainer->state.progress.seed);
    return 0;
}

/* Warns if the arithmetic has changed: results are bitwise equal only with the same arithmetic. Checkpoints of older workers name the
 * device's alone. */
static void compare_arithmetic(struct trainer *trainer, const struct manifest *manifest)
{
    char now[ARITHMETIC_MAX];
    const char *then = json_string_at(manifest->model, "arithmetic", NULL),
               *device = device_arithmetic(trainer->device);
    trainer_name_arithmetic(trainer, now);
    if (then == NULL)
        return;
    if (strlen(device) != arithmetic_length(then) || memcmp(then, device, strlen(device)) != 0)
        report_warn(
            trainer->report,
            "the checkpoint of step %lld was computed with %.*s arithmetic, and this worker has %s: the bits may "
            "differ from here on",
            (long long)manifest->step,
            (int)(arithmetic_length(then) < ARITHMETIC_MAX ? arithmetic_length(then) : ARITHMETIC_MAX - 1), then,
            device);
    enum arithmetic_part part = arithmetic_difference(then, now);
    if (part < ARITHMETIC_PARTS && strchr(then, '/') != NULL && strchr(now, '/') != NULL)
        report_warn(
            trainer->report,
            "the checkpoint of step %lld was computed with %s than this worker's: the bits may differ from here on",
            (long long)manifest->step, arithmetic_difference_words(part));
}

static void compare_batch(const struct trainer *trainer, const struct manifest *manifest)
{
    if (is_another_batch(trainer, manifest))
        report_say(trainer->report, "the checkpoint's steps had a global batch of %lld, those to come have %lld: %s",
                   (long long)resumed_order_batch(manifest), (long long)trainer->plan.global_batch,
                   counts_steps(trainer) ? "both count in training.steps"
                                         : "what is left of training.epochs follows from the place in the data");
}

/* Whether what is left of the training can follow on these steps. */
static int check_data(const struct trainer *trainer, const struct manifest *manifest, struct error *error)
{
    SCOPED(trained_on_release) struct trained_on then = {0};
    trained_on_read(&then, manifest->model);
    if (trained_on_check(&then, trainer->training, error) < 0 ||
        resumed_order_check(manifest, &trainer->sampler, error) < 0)
        return error_wrap(error, "checkpoint of step %lld " CHECKPOINT_MISFIT, (long long)manifest->step);
    return 0;
}

/* Says so where the steps to come do not continue those of the checkpoint exactly. */
static int compare(struct trainer *trainer, const struct manifest *manifest, struct error *error)
{
    compare_arithmetic(trainer, manifest);
    compare_batch(trainer, manifest);
    return check_data(trainer, manifest, error);
}

int restoring_open_checkpoint(struct trainer *trainer, bool *ret_found, struct checkpoint_image *ret_image,
                              struct error *error)
{
    struct error cause = ERROR_INIT;
    *ret_found = false;
    if (trainer->files.store == NULL)
        return 0;
    if (checkpoint_restore(trainer->files.store, tell_quarantined, trainer, ret_image, &cause) == 0) {
        *ret_found = compare(trainer, &ret_image->manifest, error) == 0;
        if (!*ret_found)
            checkpoint_image_release(ret_image);
        return *ret_found ? 0 : -1;
    }
    if (cause.kind == ERROR_NOT_FOUND && !trainer->job->checkpoint.required)
        return 0;
    return error_set(error, cause.kind, "%s", cause.message);
}

int restoring_find_init(struct trainer *trainer, struct error *error)
{
    struct stat found;
    struct checkpoint_name name;
    struct lineage lineage;
    char text[CHECKPOINT_NAME_MAX];
    if (!trainer->files.init_path || checkpoint_image_is_at(trainer->files.init_path, &name) ||
        stat(trainer->files.init_path, &found) < 0 || !S_ISDIR(found.st_mode))
        return 0;
    if (lineage_read(trainer->files.init_path, &lineage, error) < 0)
        return error_wrap(error, "init.path");
    bool has_one = lineage.candidate_count > 0;
    if (has_one)
        checkpoint_name_format(&lineage.candidates[0], text);
    lineage_release(&lineage);
    if (!has_one)
        return error_set(error, ERROR_NOT_FOUND, "init.path %s: is a folder without checkpoints",
                         trainer->files.init_path);
    char *newest = file_path_join(trainer->files.init_path, text);
    free(trainer->files.init_path);
    trainer->files.init_path = newest;
    return 0;
}

int restoring_open_init(struct trainer *trainer, bool *ret_found, struct checkpoint_image *ret_image,
                        struct error *error)
{
    struct checkpoint_name name;
    *ret_found = false;
    if (restoring_find_init(trainer, error) < 0)
        return -1;
    if (!trainer->files.init_path || !checkpoint_image_is_at(trainer->files.init_path, &name))
        return 0;
    if (checkpoint_image_open(trainer->files.init_path, &name, ret_image, error) < 0)
        return error_wrap(error, "init.path %s", trainer->files.init_path);
    *ret_found = compare(trainer, &ret_image->manifest, error) == 0;
    if (*ret_found)
        return 0;
    checkpoint_image_release(ret_image);
    return error_wrap(error, "init.path %s", trainer->files.init_path);
}

/* If the job has no checkpoint of its own. */
static int start_from_init(struct trainer *trainer, struct error *error)
{
    struct checkpoint_image image = {0};
    bool found;
    if (restoring_open_init(trainer, &found, &image, error) < 0)
        return -1;
    if (!found)
        return trainer->files.init_path ? start_from_file(trainer, error) : start_from_seed(trainer, error);
    int result = take_state(trainer, &image, RESTORING_FORK_ADVICE, error);
    if (result == 0)
        report_say(trainer->report, RESTORING_FORKS, (long long)image.manifest.step, trainer->files.init_path);
    checkpoint_image_release(&image);
    return result < 0 ? error_wrap(error, "init.path %s", trainer->files.init_path) : 0;
}

/* `ret_name`: of the checkpoint that was found; may be NULL. */
static int try_checkpoint(struct trainer *trainer, bool *ret_found, struct checkpoint_name *ret_name,
                          struct error *error)
{
    struct checkpoint_image image = {0};
    if (restoring_open_checkpoint(trainer, ret_found, &image, error) < 0)
        return -1;
    if (!*ret_found)
        return 0;
    int result = start_from_checkpoint(trainer, &image, error);
    if (ret_name)
        *ret_name = image.name;
    checkpoint_image_release(&image);
    *ret_found = result == 0;
    return result;
}

int restoring_state(void *context, struct error *error)
{
    struct trainer *trainer = context;
    bool found;
    trainer->resumed.by_us = true;
    report_phase(trainer->report, STATUS_RESTORING, NULL);
    if (try_checkpoint(trainer, &found, NULL, error) < 0)
        return -1;
    return found ? 0 : start_from_init(trainer, error);
}

/* ---- the state of a crew that shares it out */

/* In the chief: chooses the newest whole checkpoint, or "" if there is none. */
static int choose_base(struct trainer *trainer, char base[STRATEGY_BASE_MAX], struct error *error)
{
    struct checkpoint_name name;
    bool found;
    base[0] = '\0';
    if (trainer->files.store)
        checkpoint_give_up_parts(trainer->files.store);
    if (try_checkpoint(trainer, &found, &name, error) < 0)
        return -1;
    if (found) {
        char text[CHECKPOINT_NAME_MAX];
        checkpoint_name_format(&name, text);
        snprintf(base, STRATEGY_BASE_MAX, "%s", text);
    }
    return 0;
}

/* In the other ranks: reads the checkpoint that the chief has named. */
static int take_base(struct trainer *trainer, const char *base, struct error *error)
{
    struct checkpoint_name name;
    struct checkpoint_image image = {0};
    if (base[0] == '\0')
        return 0;
    if (trainer->files.checkpoint_directory == NULL || checkpoint_name_parse(base, &name) < 0)
        return error_set(error, ERROR_INVALID,
                         "the chief continues from checkpoint %s, but this worker has no checkpoint directory to read "
                         "it from; give all workers the same checkpoint.path",
                         base);
    SCOPED_FREE char *path = file_path_join(trainer->files.checkpoint_directory, base);
    if ((trainer->files.bucket && (bucket_refresh(trainer->files.bucket, false, error) < 0 ||
                                   bucket_fetch(trainer->files.bucket, &name, error) < 0)) ||
        checkpoint_image_open(path, &name, &image, error) < 0)
        return error_wrap(error, "checkpoint %s, which the chief has chosen", base);
    int result = state_tensors_restore(&trainer->state, &image, error);
    checkpoint_image_release(&image);
    if (trainer->files.bucket)
        bucket_drop(trainer->files.bucket, &name, NULL); /* room for this rank's parts */
    return result;
}

/* Every rank that was in training says what that costs: nothing, where the newest checkpoint is of the last step. */
static void tell_lost_steps(struct trainer *trainer)
{
    int64_t step = trainer->state.progress.step, lost = trainer->applied_step - step;
    const char *what = trainer->job->strategy.sharded_optimizer
                           ? "a shard of the optimizer was lost with its worker and the next one, which mirrored it"
                           : "a stage was lost with the only worker that held it";
    if (lost > 0)
        report_warn(trainer->report, "%s: back to step %lld, %lld step%s lost", what, (long long)step, (long long)lost,
                    lost == 1 ? " is" : "s are");
    else if (trainer->applied_step > 0)
        report_say(trainer->report, "%s: back to step %lld, no step is lost", what, (long long)step);
    trainer->applied_step = step;
}

int restoring_part(void *context, bool chooses, char base[STRATEGY_BASE_MAX], struct error *error)
{
    struct trainer *trainer = context;
    report_phase(trainer->report, STATUS_RESTORING, NULL);
    trainer->resumed.by_us = chooses;
    if ((chooses ? choose_base(trainer, base, error) : take_base(trainer, base, error)) < 0)
        return -1;
    if (base[0] == '\0' && start_from_init(trainer, error) < 0)
        return -1;
    tell_lost_steps(trainer);
    return 0;
}
