/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/evaluator.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "common/clock.h"
#include "common/contract/checkpoint_layout.h"
#include "common/crc32c.h"
#include "worker/checkpoint/bucket.h"
#include "worker/checkpoint/checkpoint_name.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/image.h"
#include "worker/train/abandonment.h"
#include "worker/train/evaluation.h"
#include "worker/train/leaving.h"
#include "worker/train/state_tensors.h"
#include "worker/train/stop.h"

#define LOOK_EVERY_NS 200000000L
#define LOOK_IN_BUCKET_NS ((int64_t)2000000000)
#define BAD_AGAIN_NS ((int64_t)30000000000) /* reading a bad checkpoint costs as much as reading a good one */

static int score(struct trainer *trainer, const struct checkpoint_image *image, struct error *error)
{
    const struct evaluation_examples all = {.dataset = trainer->validation,
                                            .count = dataset_count(trainer->validation)};
    struct loss_sums sums;
    if (state_tensors_restore(&trainer->state, image, error) < 0)
        return error_wrap(error, "checkpoint of step %lld " CHECKPOINT_MISFIT, (long long)image->manifest.step);
    if (evaluation_run(trainer->graph, trainer->device, trainer->stream, trainer->state.parameters, &all, &sums,
                       error) < 0)
        return -1;
    struct evaluation_metrics metrics = evaluation_metrics_of(trainer->graph, trainer->validation, &sums);
    report_evaluation(trainer->report, image->manifest.step, metrics.loss, metrics.accuracy, metrics.perplexity,
                      metrics.rmse);
    return 0;
}

/* Computes the digest from the checksums of the checkpoint's files. */
static struct evaluator_sight identify(const struct trainer *trainer, const struct manifest *manifest)
{
    struct evaluator_sight one = {
        .step = manifest->step,
        .over = step_plan_is_over(&trainer->plan, manifest->step, manifest->data_epoch, manifest->examples_consumed)};
    for (unsigned i = 0; i < manifest->file_count; i++)
        one.digest = crc32c(one.digest, &manifest->files[i].crc32c, sizeof manifest->files[i].crc32c);
    return one;
}

static bool is_same(const struct evaluator_sight *one, const struct evaluator_sight *other)
{
    return one->step == other->step && one->digest == other->digest;
}

static bool find_newest(const struct trainer *trainer, struct evaluator_sight *ret_sight,
                        struct checkpoint_name *ret_name)
{
    struct manifest manifest;
    if (checkpoint_newest_manifest(trainer->files.checkpoint_directory, &manifest, NULL) < 0)
        return false;
    *ret_name = (struct checkpoint_name){
        .step = manifest.step, .attempt = manifest.attempt, .incarnation = manifest.incarnation};
    *ret_sight = identify(trainer, &manifest);
    manifest_release(&manifest);
    return true;
}

/* Warns about a bad checkpoint once. One that has vanished was retired or replaced: a newer one
 * exists. */
static void pass_over(struct trainer *trainer, struct evaluator_memory *memory, const struct evaluator_sight *sight,
                      const struct error *cause)
{
    struct evaluator_sight newest;
    struct checkpoint_name name;
    if (!find_newest(trainer, &newest, &name) || !is_same(&newest, sight))
        return;
    if (!is_same(&memory->bad, sight))
        report_warn(trainer->report, "the checkpoint of step %lld cannot be evaluated: %s", (long long)sight->step,
                    cause->message);
    memory->bad = *sight;
    memory->again_ns = clock_monotonic_ns() + BAD_AGAIN_NS;
}

/* Copies the manifests of the checkpoints in a bucket, at most every two seconds. A failure is reported, and counts as no new checkpoint. */
static void look_in_bucket(struct trainer *trainer, struct evaluator_memory *memory)
{
    struct error cause = ERROR_INIT;
    if (!trainer->files.bucket || clock_monotonic_ns() < memory->bucket_ns)
        return;
    if (bucket_refresh(trainer->files.bucket, false, &cause) < 0)
        report_warn(trainer->report, "cannot look for new checkpoints in the bucket: %s", cause.message);
    memory->bucket_ns = clock_monotonic_ns() + LOOK_IN_BUCKET_NS;
}

static int open_image(const struct trainer *trainer, const struct checkpoint_name *name, const char *path,
                      struct checkpoint_image *ret_image, struct error *error)
{
    return trainer->files.bucket && bucket_fetch(trainer->files.bucket, name, error) < 0
               ? -1
               : checkpoint_image_open(path, name, ret_image, error);
}

int evaluator_look(struct trainer *trainer, struct evaluator_memory *memory, struct error *error)
{
    struct evaluator_sight newest;
    struct checkpoint_name name;
    struct error cause = ERROR_INIT;
    look_in_bucket(trainer, memory);
    if (!find_newest(trainer, &newest, &name) || is_same(&newest, &memory->scored) ||
        (is_same(&newest, &memory->bad) && clock_monotonic_ns() < memory->again_ns))
        return 0;
    char text[CHECKPOINT_NAME_MAX];
    checkpoint_name_format(&name, text);
    SCOPED_FREE char *path = file_path_join(trainer->files.checkpoint_directory, text);
    struct checkpoint_image image;
    if (open_image(trainer, &name, path, &image, &cause) < 0) {
        memory->bucket_ns = 0; /* the chief may have removed this checkpoint since the bucket was listed */
        look_in_bucket(trainer, memory);
        pass_over(trainer, memory, &newest, &cause);
        return 0;
    }
    int result = score(trainer, &image, error);
    if (result == 0)
        memory->scored = identify(trainer, &image.manifest);
    checkpoint_image_release(&image);
    if (trainer->files.bucket)
        bucket_drop(trainer->files.bucket, &name, NULL);
    return result < 0 ? -1 : 1;
}

static int check(const struct trainer *trainer, struct error *error)
{
    if (trainer->files.checkpoint_directory == NULL)
        return error_set(error, ERROR_INVALID,
                         "an evaluator scores checkpoints, but the job saves none; add a checkpoint section");
    if (dataset_count(trainer->validation) == 0)
        return error_set(error, ERROR_INVALID,
                         "an evaluator needs held-out examples; add data.validation, such as {last: 1000}");
    return 0;
}

static int follow(struct trainer *trainer, struct error *error)
{
    struct evaluator_memory memory = EVALUATOR_MEMORY_INIT;
    while (!memory.scored.over) {
        if (stop_is_asked())
            return error_set(error, ERROR_CANCELLED, "left on request; the crew goes on without an evaluator");
        if (evaluator_look(trainer, &memory, error) < 0)
            return -1;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_NS}, NULL);
    }
    return 0;
}

static void abandon(void *context)
{
    leaving_end(context, "an evaluation", "half", "the crew goes on without an evaluator");
}

static void ask(void *context)
{
    abandonment_ask(((struct trainer *)context)->abandonment);
}

int evaluator_run(struct trainer *trainer, struct error *error)
{
    const struct abandonment_options options = {
        .patience_ms = trainer->identity->grace_ms / 2, .abandon = abandon, .context = trainer};
    if (check(trainer, error) < 0 || abandonment_new(&options, &trainer->abandonment, error) < 0)
        return -1;
    report_phase(trainer->report, STATUS_EVALUATING, NULL);
    abandonment_step_begins(trainer->abandonment);
    stop_notify(ask, trainer);
    int result = follow(trainer, error);
    leaving_close(trainer);
    return result;
}
