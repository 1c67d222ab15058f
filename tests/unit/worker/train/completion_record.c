/* SPDX-License-Identifier: Apache-2.0
 *
 * A chief's successor at the very end of a run: is it complete, or does an earlier job's file lie under the name of the
 * export?
 */
#include "worker/train/completion_record.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "tests/unit/worker/checkpoint/directory.h"
#include "worker/checkpoint/file.h"
#include "worker/report/report.h"
#include "worker/train/best.h"
#include "worker/train/export.h"
#include "worker/train/gathered_model.h"
#include "worker/train/saving.h"

#define LAST 5

static const struct parameter_tensor tensor = {.name = "w", .shape = {2}, .rank = 1, .elements = 2};
static const struct parameter_layout layout = {.tensors = &tensor, .tensor_count = 1, .elements = 2};
static const struct identity identity = {.job_uid = "job"};
static const struct job_document job;

struct scene {
    char directory[TEST_PATH_MAX], path[TEST_PATH_MAX + 16];
    struct trainer trainer;
};

/* A process of that job, which has evaluated. */
static void begin(struct scene *scene, const struct identity *job_identity)
{
    const struct report_options options = {.job_uid = job_identity->job_uid, .role = "worker", .http_port = -1};
    struct error error = ERROR_INIT;
    if (scene->trainer.report != NULL)
        report_free(scene->trainer.report);
    scene->trainer.identity = job_identity;
    cr_assert_eq(report_open(&options, &scene->trainer.report, &error), 0, "%s", error.message);
    report_evaluation(scene->trainer.report, LAST, 0.25, 0.5, NAN, NAN);
}

/* Sets up a job whose last checkpoint is complete, with an export of another job beside it. */
static void set_up(struct scene *scene)
{
    struct error error = ERROR_INIT;
    snprintf(scene->directory, sizeof scene->directory, "%s", test_directory());
    snprintf(scene->path, sizeof scene->path, "%s/w.safetensors", scene->directory);
    scene->trainer = (struct trainer){.identity = &identity,
                                      .job = &job,
                                      .plan.total_steps = LAST,
                                      .files.checkpoint_directory = scene->directory,
                                      .files.export_path = scene->path,
                                      .files.store = test_open(scene->directory, 1)};
    cr_assert_eq(checkpoint_store_begin(scene->trainer.files.store, true, &error), 0, "%s", error.message);
    cr_assert_eq(test_save(scene->trainer.files.store, LAST, &error), 0, "%s", error.message);
    cr_assert_eq(file_write(scene->path, "of another job", 14, &error), 0, "%s", error.message);
    begin(scene, &identity);
}

/* Exports, and records that the job is complete, with a validation loss. */
static void end(struct scene *scene)
{
    static const float values[] = {1, 2};
    const struct gathered_model model = {.layout = &layout, .parameters = values};
    struct error error = ERROR_INIT;
    struct exported exported;
    cr_assert_eq(best_export(&scene->trainer, &model, &exported, &error), 0, "%s", error.message);
    saving_complete(&scene->trainer, &exported);
}

static bool is_complete(const struct scene *scene)
{
    struct status_document last;
    return saving_is_complete(&scene->trainer, &last);
}

static void tear_down(struct scene *scene)
{
    checkpoint_store_free(scene->trainer.files.store);
    report_free(scene->trainer.report);
}

Test(completion_record, an_earlier_jobs_file_is_no_export_of_this_one, .timeout = 60)
{
    static struct scene scene;
    set_up(&scene);
    cr_expect_not(is_complete(&scene), "what lies there is another job's");
    end(&scene);
    cr_expect(is_complete(&scene));
    cr_assert_eq(file_write(scene.path, "of a later job", 14, NULL), 0);
    cr_expect_not(is_complete(&scene), "and so is this");
    tear_down(&scene);
}

/* A job that was asked for fewer steps than the checkpoint it goes on from has. */
Test(completion_record, is_of_the_last_checkpoint_also_where_that_lies_behind_the_end, .timeout = 60)
{
    static struct scene scene;
    set_up(&scene);
    static const struct identity later = {.job_uid = "later"};
    scene.trainer.plan.total_steps = LAST - 2;
    begin(&scene, &later); /* it has no step to save */
    cr_expect_not(is_complete(&scene));
    end(&scene);
    cr_expect(is_complete(&scene), "else each start exports once more");
    tear_down(&scene);
}

Test(completion_record, another_jobs_record_and_one_of_another_step_say_nothing, .timeout = 60)
{
    static struct scene scene;
    static const struct identity another = {.job_uid = "another"};
    struct error error = ERROR_INIT;
    set_up(&scene);
    end(&scene);
    cr_expect(is_complete(&scene));
    scene.trainer.identity = &another;
    cr_expect_not(is_complete(&scene));
    scene.trainer.identity = &identity;
    cr_assert_eq(test_save(scene.trainer.files.store, LAST + 1, &error), 0, "%s", error.message);
    cr_expect_not(is_complete(&scene), "the record is of the step before");
    tear_down(&scene);
}

/* A chief that was killed between its last save and the record: its successor still has to evaluate. */
Test(completion_record, a_last_checkpoint_alone_does_not_complete_a_job, .timeout = 60)
{
    static struct scene scene;
    struct status_document last;
    set_up(&scene);
    scene.trainer.files.export_path = NULL;
    cr_expect_not(is_complete(&scene));
    saving_complete(&scene.trainer, NULL);
    cr_assert(saving_is_complete(&scene.trainer, &last));
    const struct status_metric *loss = status_document_metric(&last, "validationLoss");
    cr_assert_not_null(loss);
    cr_expect_eq(loss->value, 0.25);
    cr_expect_eq(loss->step, LAST);
    tear_down(&scene);
}

/* A successor that has nothing to do reports what its predecessor did. */
Test(completion_record, a_completed_job_keeps_its_metrics, .timeout = 60)
{
    static struct scene scene;
    struct status_document last, now;
    set_up(&scene);
    end(&scene);
    cr_assert(saving_is_complete(&scene.trainer, &last));
    report_free(scene.trainer.report);
    const struct report_options options = {.job_uid = "job", .role = "worker", .incarnation = 7, .http_port = -1};
    cr_assert_eq(report_open(&options, &scene.trainer.report, NULL), 0);
    report_completed(scene.trainer.report, &last);
    report_get_status(scene.trainer.report, &now);
    cr_expect_eq(now.phase, STATUS_DONE);
    cr_expect_eq(now.incarnation, 7, "its own");
    const struct status_metric *accuracy = status_document_metric(&now, "validationAccuracy");
    cr_assert_not_null(accuracy);
    cr_expect_eq(accuracy->value, 0.5);
    tear_down(&scene);
}

Test(completion_record, a_damaged_or_cut_record_says_nothing, .timeout = 60)
{
    static struct scene scene;
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    char path[TEST_PATH_MAX + 16];
    set_up(&scene);
    end(&scene);
    snprintf(path, sizeof path, "%s/completion.json", scene.directory);
    cr_assert_eq(buffer_read_file(&text, path, NULL), 0);
    for (size_t i = 0; i < text.length; i++) {
        cr_assert_eq(file_write(path, text.data, i, NULL), 0);
        cr_expect_not(is_complete(&scene), "cut after %zu bytes", i);
        text.data[i] ^= 1;
        cr_assert_eq(file_write(path, text.data, text.length, NULL), 0);
        cr_expect_not(is_complete(&scene), "byte %zu", i);
        text.data[i] ^= 1;
    }
    tear_down(&scene);
}
