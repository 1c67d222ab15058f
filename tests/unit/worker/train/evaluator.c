/* SPDX-License-Identifier: Apache-2.0
 *
 * An evaluator of asynchronous parameter servers, in which checkpoints of the same step may replace each other.
 */
#include "worker/train/evaluator.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/worker/checkpoint/directory.h"
#include "tests/unit/worker/strategy/learner.h"
#include "worker/train/state_tensors.h"

static void save(struct checkpoint_store *store, struct learner *learner, float value)
{
    struct manifest_file file = {.name = "rank-00000.safetensors"};
    struct manifest manifest = {
        .step = 4, .workers = 1, .logical_shards = 1, .seed = 5, .files = &file, .file_count = 1};
    struct state_tensors tensors;
    struct error error = ERROR_INIT;
    char *directory, path[256];
    for (int64_t i = 0; i < learner->state.layout.elements; i++)
        learner->state.parameters[i] = value;
    cr_assert_eq(checkpoint_shards_begin(store, &directory, &error), 0, "%s", error.message);
    snprintf(path, sizeof path, "%s/%s", directory, file.name);
    state_tensors_init(&tensors, &learner->state);
    cr_assert_eq(safetensors_write(path, tensors.tensors, tensors.count, NULL, DISK_FILE_CACHED, &file.crc32c,
                                   &file.bytes, &error),
                 0, "%s", error.message);
    state_tensors_release(&tensors);
    cr_assert_eq(checkpoint_shards_commit(store, directory, &manifest, true, &error), 0, "%s", error.message);
    free(directory);
}

struct scene {
    char directory[64];
    struct learner learner;
    struct trainer trainer;
    struct checkpoint_store *store;
};

static void set_up(struct scene *scene)
{
    struct learner *learner = &scene->learner;
    struct error error = ERROR_INIT;
    snprintf(scene->directory, sizeof scene->directory, "/tmp/coxswain-evaluator-XXXXXX");
    cr_assert(mkdtemp(scene->directory));
    cr_assert(learner_open_job(learner, LEARNER_SMALL_JOB, &error) == 0 &&
                  learner_open_model(learner, 1, 24, false, &error) == 0 && learner_open_state(learner, &error) == 0,
              "%s", error.message);
    const struct checkpoint_options options = {.directory = scene->directory, .job_uid = "", .keep = 1};
    const struct report_options report = {.job_uid = "", .role = "evaluator", .http_port = -1, .unit = "examples"};
    scene->trainer = (struct trainer){.job = &learner->job,
                                      .graph = learner->graph,
                                      .device = learner->devices[0].device,
                                      .validation = learner->dataset,
                                      .state = learner->state,
                                      .files.checkpoint_directory = scene->directory};
    cr_assert_eq(report_open(&report, &scene->trainer.report, NULL), 0);
    cr_assert_eq(device_stream_new(scene->trainer.device, &scene->trainer.stream, &error), 0, "%s", error.message);
    cr_assert_eq(checkpoint_store_open(&options, &scene->store, &error), 0, "%s", error.message);
    cr_assert_eq(checkpoint_store_begin(scene->store, false, &error), 0, "%s", error.message);
}

static void tear_down(struct scene *scene)
{
    checkpoint_store_free(scene->store);
    device_stream_free(scene->trainer.stream);
    report_free(scene->trainer.report);
    learner_close(&scene->learner);
    test_directory_remove(scene->directory);
}

static void expect_look(struct scene *scene, struct evaluator_memory *memory, int scores)
{
    struct error error = ERROR_INIT;
    cr_expect_eq(evaluator_look(&scene->trainer, memory, &error), scores, "%s", error.message);
}

Test(evaluator, a_checkpoint_that_replaces_another_of_its_step_is_scored_too, .timeout = 60)
{
    static struct scene scene;
    struct evaluator_memory memory = EVALUATOR_MEMORY_INIT;
    set_up(&scene);
    expect_look(&scene, &memory, 0);
    save(scene.store, &scene.learner, 1);
    expect_look(&scene, &memory, 1);
    expect_look(&scene, &memory, 0);
    save(scene.store, &scene.learner, 2);
    expect_look(&scene, &memory, 1);
    expect_look(&scene, &memory, 0);
    cr_expect_eq(memory.scored.step, 4);
    tear_down(&scene);
}

/* The last byte of its tensors, and back again. */
static void spoil(const struct scene *scene)
{
    char pattern[128];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/step-*/rank-00000.safetensors", scene->directory);
    cr_assert(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1);
    FILE *file = fopen(found.gl_pathv[0], "r+");
    cr_assert(file != NULL && fseek(file, -1, SEEK_END) == 0);
    int byte = fgetc(file);
    cr_assert(fseek(file, -1, SEEK_END) == 0 && fputc(byte ^ 1, file) != EOF && fclose(file) == 0);
    globfree(&found);
}

/* An evaluator that read a bad checkpoint again at every look would do nothing else. */
Test(evaluator, a_bad_checkpoint_is_read_again_after_a_while_only, .timeout = 60)
{
    static struct scene scene;
    struct evaluator_memory memory = EVALUATOR_MEMORY_INIT;
    set_up(&scene);
    save(scene.store, &scene.learner, 1);
    spoil(&scene);
    expect_look(&scene, &memory, 0);
    cr_expect_eq(memory.bad.step, 4);
    spoil(&scene);
    expect_look(&scene, &memory, 0);
    memory.again_ns = 0;
    expect_look(&scene, &memory, 1);
    save(scene.store, &scene.learner, 2);
    spoil(&scene);
    expect_look(&scene, &memory, 0);
    save(scene.store, &scene.learner, 3); /* another is looked at at once */
    expect_look(&scene, &memory, 1);
    tear_down(&scene);
}
