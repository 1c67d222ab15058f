/* SPDX-License-Identifier: Apache-2.0
 *
 * The best weights on a slow disk, and two chiefs that write the same file.
 */
#include "worker/train/best.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/contract/checkpoint_layout.h"
#include "common/memory.h"
#include "common/scope.h"
#include "tests/unit/worker/checkpoint/held_disk.h"
#include "tests/unit/worker/strategy/learner.h"
#include "worker/checkpoint/file.h"
#include "worker/strategy/strategy_table.h"
#include "worker/train/export.h"
#include "worker/train/gathered_model.h"
#include "worker/train/saving.h"

static const struct strategy_operations plain_operations = {0};
static const struct identity identity = {.job_uid = "uid", .incarnation = 1};

struct scene {
    char directory[64];
    struct learner learner;
    struct strategy strategy;
    struct trainer trainer;
};

static void open_store(const char *directory, int64_t incarnation, struct checkpoint_store **ret_store)
{
    const struct checkpoint_options options = {
        .directory = directory, .job_uid = "uid", .incarnation = incarnation, .keep = 1};
    struct error error = ERROR_INIT;
    cr_assert_eq(checkpoint_store_open(&options, ret_store, &error), 0, "%s", error.message);
    cr_assert_eq(checkpoint_store_begin(*ret_store, false, &error), 0, "%s", error.message);
}

static void set_up(struct scene *scene)
{
    const struct report_options report = {.job_uid = "", .role = "worker", .http_port = -1, .unit = "examples"};
    struct learner *learner = &scene->learner;
    struct error error = ERROR_INIT;
    snprintf(scene->directory, sizeof scene->directory, "/tmp/coxswain-best-XXXXXX");
    cr_assert(mkdtemp(scene->directory));
    cr_assert(learner_open_job(learner, LEARNER_SMALL_JOB, &error) == 0 &&
                  learner_open_model(learner, 1, 24, false, &error) == 0 && learner_open_state(learner, &error) == 0,
              "%s", error.message);
    learner->job.checkpoint.keep_best = true;
    scene->strategy.operations = &plain_operations;
    scene->trainer = (struct trainer){.identity = &identity,
                                      .job = &learner->job,
                                      .crew = {.size = 1},
                                      .graph = learner->graph,
                                      .state = learner->state,
                                      .strategy = &scene->strategy,
                                      .files.store_begun = true,
                                      .files.checkpoint_directory = scene->directory,
                                      .files.export_path = memory_format("%s/export.safetensors", scene->directory)};
    cr_assert_eq(report_open(&report, &scene->trainer.report, NULL), 0);
    open_store(scene->directory, 1, &scene->trainer.files.store);
    best_begin(&scene->trainer);
}

static void tear_down(struct scene *scene)
{
    best_free(scene->trainer.files.best);
    checkpoint_store_free(scene->trainer.files.store);
    report_free(scene->trainer.report);
    learner_close(&scene->learner);
    free(scene->trainer.files.export_path);
    file_remove_directory(scene->directory, NULL);
}

static void fill(struct scene *scene, float value)
{
    for (int64_t i = 0; i < scene->trainer.state.layout.elements; i++)
        scene->trainer.state.parameters[i] = value;
}

/* Evaluates after step `step`, with that number in all parameters. Half of the answers are right. */
static void evaluate(struct scene *scene, int64_t step, double loss)
{
    const struct evaluation_metrics metrics = {.loss = loss, .accuracy = 0.5, .perplexity = NAN, .rmse = NAN};
    struct error error = ERROR_INIT;
    fill(scene, (float)step);
    scene->trainer.state.progress.step = step;
    cr_assert_eq(best_consider(&scene->trainer, &metrics, &error), 0, "%s", error.message);
}

/* The value that all tensors consist of. */
static float value_in(const char *path)
{
    struct safetensors_file file;
    struct error error = ERROR_INIT;
    cr_assert_eq(safetensors_open(path, &file, &error), 0, "%s", error.message);
    float first = *(const float *)file.tensors[0].data;
    for (unsigned t = 0; t < file.count; t++)
        for (size_t i = 0; i < file.tensors[t].bytes / sizeof(float); i++)
            cr_assert_eq(((const float *)file.tensors[t].data)[i], first, "a mixture");
    safetensors_close(&file);
    return first;
}

static float kept_value(const struct scene *scene)
{
    SCOPED_FREE char *path = file_path_join(scene->directory, CHECKPOINT_BEST);
    return value_in(path);
}

Test(best, training_goes_on_while_they_are_written_and_the_best_come_next, .timeout = 60)
{
    static struct scene scene;
    set_up(&scene);
    held_disk_hold();
    evaluate(&scene, 1, 3);
    evaluate(&scene, 2, 2);
    evaluate(&scene, 3, 1);
    evaluate(&scene, 4, 1.5);
    held_disk_let_go();
    best_wait(&scene.trainer);
    held_disk_end();
    cr_expect_eq(kept_value(&scene), 3);
    tear_down(&scene);
}

static pthread_mutex_t file_of_best = PTHREAD_MUTEX_INITIALIZER;

static int open_when_let(const char *path, int flags, mode_t mode)
{
    if (strstr(path, CHECKPOINT_BEST)) {
        pthread_mutex_lock(&file_of_best);
        pthread_mutex_unlock(&file_of_best);
    }
    return open(path, flags, mode);
}

static void save(struct scene *scene, int64_t step)
{
    static const float value = 1;
    const struct safetensors_tensor tensor = {
        .name = "w", .dtype = SAFETENSORS_F32, .shape = {1}, .rank = 1, .data = &value, .bytes = sizeof value};
    const struct manifest manifest = {.step = step, .workers = 1, .logical_shards = 1};
    enum checkpoint_start start;
    cr_assert_eq(checkpoint_save(scene->trainer.files.store, &manifest, &tensor, 1, &start, NULL), 0);
    cr_assert_eq(checkpoint_wait(scene->trainer.files.store, NULL), 0);
}

/* A worker that is asked to leave does not wait for the best values once the checkpoint is complete. */
Test(best, no_checkpoint_waits_for_them, .timeout = 60)
{
    static struct scene scene;
    set_up(&scene);
    int (*plain_open)(const char *, int, mode_t) = file_calls.open;
    save(&scene, 1);
    pthread_mutex_lock(&file_of_best);
    file_calls.open = open_when_let;
    evaluate(&scene, 1, 3);
    cr_expect_eq(saving_finish(&scene.trainer, NULL), 0);
    cr_expect_not(best_wait_for(&scene.trainer, 1));
    pthread_mutex_unlock(&file_of_best);
    cr_expect(best_wait_for(&scene.trainer, 60000));
    file_calls.open = plain_open;
    cr_expect_eq(kept_value(&scene), 1);
    tear_down(&scene);
}

/* ---- a disk that fails */

static int fail_to_sync(int descriptor)
{
    (void)descriptor;
    errno = EIO;
    return -1;
}

Test(best, those_that_could_not_be_written_do_not_count, .timeout = 60)
{
    static struct scene scene;
    set_up(&scene);
    evaluate(&scene, 1, 3);
    best_wait(&scene.trainer);
    file_calls.fsync = fail_to_sync;
    evaluate(&scene, 2, 1);
    best_wait(&scene.trainer);
    file_calls.fsync = fsync;
    evaluate(&scene, 3, 2);
    best_wait(&scene.trainer);
    cr_expect_eq(kept_value(&scene), 3);
    tear_down(&scene);
}

static void expect_told(struct report *report, int64_t step, double loss)
{
    struct status_document status;
    report_get_status(report, &status);
    const struct status_metric *best = status_document_metric(&status, "bestValidationLoss");
    const struct status_metric *accuracy = status_document_metric(&status, "bestValidationAccuracy");
    cr_assert(best && accuracy);
    cr_expect_eq(best->value, loss);
    cr_expect_eq(best->step, step);
    cr_expect_eq(accuracy->value, 0.5);
}

Test(best, tells_which_evaluation_it_keeps_also_after_a_restart, .timeout = 60)
{
    const struct report_options options = {.job_uid = "", .role = "worker", .http_port = -1, .unit = "examples"};
    static struct scene scene;
    set_up(&scene);
    struct report *report = scene.trainer.report, *other;
    evaluate(&scene, 1, 3);
    evaluate(&scene, 2, 1);
    evaluate(&scene, 3, 2);
    expect_told(report, 2, 1);
    best_wait(&scene.trainer);
    file_calls.fsync = fail_to_sync;
    evaluate(&scene, 4, 0.5);
    best_wait(&scene.trainer);
    file_calls.fsync = fsync;
    expect_told(report, 2, 1);
    best_free(scene.trainer.files.best);
    scene.trainer.files.best = NULL;
    cr_assert_eq(report_open(&options, &other, NULL), 0);
    scene.trainer.report = other;
    best_begin(&scene.trainer);
    expect_told(other, 2, 1);
    report_free(other);
    scene.trainer.report = report;
    tear_down(&scene);
}

/* ---- two chiefs: something happens while the first one writes */

static void (*meanwhile)(void);
static struct scene *scene_of_both;

static int sync_after_the_other(int descriptor)
{
    void (*other)(void) = meanwhile;
    meanwhile = NULL;
    if (other)
        other();
    return fsync(descriptor);
}

static ssize_t write_after_the_other(int descriptor, const void *bytes, size_t length)
{
    static unsigned writes;
    void (*other)(void) = meanwhile;
    if (other && ++writes == 3) { /* in the middle of the tensors */
        meanwhile = NULL;
        other();
    }
    return write(descriptor, bytes, length);
}

static void claim_directory(void)
{
    struct checkpoint_store *newer;
    open_store(scene_of_both->directory, 2, &newer);
    checkpoint_store_free(newer);
}

/* The export of ones is refused: something has happened on the way to it. */
static void expect_stale_export(struct scene *scene)
{
    struct error error = ERROR_INIT;
    struct gathered_model model;
    struct exported exported;
    fill(scene, 1);
    cr_assert_eq(gathered_model_take(&scene->trainer, &model, &error), 0, "%s", error.message);
    cr_expect_eq(best_export(&scene->trainer, &model, &exported, &error), -1);
    cr_expect_eq(error.kind, ERROR_STALE, "%s", error.message);
    gathered_model_release(&model);
}

Test(best, a_chief_that_was_superseded_while_it_wrote_changes_no_export, .timeout = 60)
{
    static struct scene scene;
    set_up(&scene);
    scene_of_both = &scene;
    meanwhile = claim_directory;
    file_calls.fsync = sync_after_the_other;
    expect_stale_export(&scene);
    file_calls.fsync = fsync;
    cr_expect_neq(access(scene.trainer.files.export_path, F_OK), 0);
    tear_down(&scene);
}

Test(best, a_superseded_chief_leaves_the_best_of_the_next_one, .timeout = 60)
{
    static struct scene scene;
    set_up(&scene);
    scene_of_both = &scene;
    evaluate(&scene, 1, 3);
    best_wait(&scene.trainer);
    meanwhile = claim_directory;
    file_calls.fsync = sync_after_the_other;
    evaluate(&scene, 2, 2);
    best_wait(&scene.trainer);
    file_calls.fsync = fsync;
    cr_expect_eq(kept_value(&scene), 1);
    tear_down(&scene);
}

static void export_sevens(void)
{
    const struct trainer *trainer = &scene_of_both->trainer;
    SCOPED_FREE float *sevens = memory_allocate((size_t)trainer->state.layout.elements, sizeof *sevens);
    struct error error = ERROR_INIT;
    for (int64_t i = 0; i < trainer->state.layout.elements; i++)
        sevens[i] = 7;
    const struct export export = {.layout = &trainer->state.layout, .parameters = sevens, .names = EXPORT_OWN_NAMES};
    cr_assert_eq(export_write(&export, trainer->files.export_path, NULL, &error), 0, "%s", error.message);
}

Test(best, the_later_of_two_exports_to_one_file_writes_it_whole, .timeout = 60)
{
    static struct scene scene;
    set_up(&scene);
    scene_of_both = &scene;
    meanwhile = export_sevens;
    file_calls.write = write_after_the_other;
    expect_stale_export(&scene);
    file_calls.write = write;
    cr_expect_eq(value_in(scene.trainer.files.export_path), 7);
    tear_down(&scene);
}
