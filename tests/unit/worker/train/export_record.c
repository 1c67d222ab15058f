/* SPDX-License-Identifier: Apache-2.0
 *
 * A chief's successor at the very end of a run: is it complete, or does an earlier job's file lie under the name of the
 * export?
 */
#include "worker/train/export_record.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/unit/worker/checkpoint/directory.h"
#include "worker/checkpoint/file.h"
#include "worker/train/best.h"
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

/* Sets up a job whose last checkpoint is complete, with an export of another job beside it. */
static void set_up(struct scene *scene)
{
    struct error error = ERROR_INIT;
    snprintf(scene->directory, sizeof scene->directory, "%s", test_directory());
    snprintf(scene->path, sizeof scene->path, "%s/w.safetensors", scene->directory);
    scene->trainer = (struct trainer){.identity = &identity,
                                      .job = &job,
                                      .plan.total_steps = LAST,
                                      .checkpoint_directory = scene->directory,
                                      .export_path = scene->path,
                                      .store = test_open(scene->directory, 1)};
    cr_assert_eq(checkpoint_store_begin(scene->trainer.store, true, &error), 0, "%s", error.message);
    cr_assert_eq(test_save(scene->trainer.store, LAST, &error), 0, "%s", error.message);
    cr_assert_eq(file_write(scene->path, "of another job", 14, &error), 0, "%s", error.message);
}

static void export_values(struct scene *scene)
{
    static const float values[] = {1, 2};
    const struct gathered_model model = {.layout = &layout, .parameters = values};
    struct error error = ERROR_INIT;
    cr_assert_eq(best_export(&scene->trainer, &model, &error), 0, "%s", error.message);
}

Test(export_record, an_earlier_jobs_file_is_no_export_of_this_one, .timeout = 60)
{
    static struct scene scene;
    set_up(&scene);
    cr_expect_not(saving_is_complete(&scene.trainer), "what lies there is another job's");
    export_values(&scene);
    cr_expect(saving_is_complete(&scene.trainer));
    cr_assert_eq(file_write(scene.path, "of a later job", 14, NULL), 0);
    cr_expect_not(saving_is_complete(&scene.trainer), "and so is this");
    checkpoint_store_free(scene.trainer.store);
}

/* A job that was asked for fewer steps than the checkpoint it goes on from has. */
Test(export_record, is_of_the_last_checkpoint_also_where_that_lies_behind_the_end, .timeout = 60)
{
    static struct scene scene;
    set_up(&scene);
    static const struct identity later = {.job_uid = "later"};
    scene.trainer.plan.total_steps = LAST - 2;
    scene.trainer.identity = &later; /* it has no step to save */
    cr_expect_not(saving_is_complete(&scene.trainer));
    export_values(&scene);
    cr_expect(saving_is_complete(&scene.trainer), "else each start exports once more");
    scene.trainer.export_path = NULL;
    cr_expect_not(saving_is_complete(&scene.trainer), "nothing tells");
    checkpoint_store_free(scene.trainer.store);
}

Test(export_record, another_jobs_record_and_one_of_another_step_say_nothing, .timeout = 60)
{
    static struct scene scene;
    set_up(&scene);
    export_values(&scene);
    cr_expect(export_record_holds(scene.directory, "job", LAST, scene.path));
    cr_expect_not(export_record_holds(scene.directory, "another", LAST, scene.path));
    cr_expect_not(export_record_holds(scene.directory, "job", LAST + 1, scene.path));
    checkpoint_store_free(scene.trainer.store);
}

Test(export_record, a_damaged_or_cut_record_says_nothing, .timeout = 60)
{
    static struct scene scene;
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    char path[TEST_PATH_MAX + 16];
    set_up(&scene);
    export_values(&scene);
    snprintf(path, sizeof path, "%s/export.json", scene.directory);
    cr_assert_eq(buffer_read_file(&text, path, NULL), 0);
    for (size_t i = 0; i < text.length; i++) {
        cr_assert_eq(file_write(path, text.data, i, NULL), 0);
        cr_expect_not(saving_is_complete(&scene.trainer), "cut after %zu bytes", i);
        text.data[i] ^= 1;
        cr_assert_eq(file_write(path, text.data, text.length, NULL), 0);
        cr_expect_not(saving_is_complete(&scene.trainer), "byte %zu", i);
        text.data[i] ^= 1;
    }
    checkpoint_store_free(scene.trainer.store);
}
