/* SPDX-License-Identifier: Apache-2.0
 *
 * An evaluator of asynchronous parameter servers, whose checkpoints may replace each other.
 */
#include "worker/train/evaluator.h"

#include <criterion/criterion.h>
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

Test(evaluator, a_checkpoint_that_replaces_another_of_its_step_is_scored_too, .timeout = 60)
{
    static const char text[] = "{\"name\":\"test\",\"strategy\":{\"type\":\"OneDevice\"},"
                               "\"model\":{\"preset\":\"mlp\",\"width\":8},"
                               "\"data\":{\"format\":\"synthetic\",\"examples\":90},"
                               "\"training\":{\"steps\":7,\"batchSize\":24,\"seed\":5,"
                               "\"optimizer\":{\"type\":\"sgd\",\"learningRate\":\"0.02\"}}}";
    char directory[] = "/tmp/coxswain-evaluator-XXXXXX";
    static struct learner learner;
    struct error error = ERROR_INIT;
    struct checkpoint_store *store;
    struct evaluator_scored scored = {.step = -1};
    cr_assert(mkdtemp(directory));
    cr_assert(learner_open_job(&learner, text, &error) == 0 &&
                  learner_open_model(&learner, 1, 24, false, &error) == 0 && learner_open_state(&learner, &error) == 0,
              "%s", error.message);
    const struct checkpoint_options options = {.directory = directory, .job_uid = "", .keep = 1};
    const struct report_options report = {.job_uid = "", .role = "evaluator", .http_port = -1, .unit = "examples"};
    struct trainer trainer = {.job = &learner.job,
                              .graph = learner.graph,
                              .device = learner.devices[0].device,
                              .validation = learner.dataset,
                              .state = learner.state,
                              .checkpoint_directory = directory};
    cr_assert_eq(report_open(&report, &trainer.report, NULL), 0);
    cr_assert_eq(device_stream_new(trainer.device, &trainer.stream, &error), 0, "%s", error.message);
    cr_assert_eq(checkpoint_store_open(&options, &store, &error), 0, "%s", error.message);
    cr_assert_eq(checkpoint_store_begin(store, false, &error), 0, "%s", error.message);
    cr_expect_eq(evaluator_look(&trainer, &scored, &error), 0, "there is none");
    save(store, &learner, 1);
    cr_expect_eq(evaluator_look(&trainer, &scored, &error), 1, "%s", error.message);
    cr_expect_eq(evaluator_look(&trainer, &scored, &error), 0, "it is scored already");
    save(store, &learner, 2);
    cr_expect_eq(evaluator_look(&trainer, &scored, &error), 1, "%s", error.message);
    cr_expect_eq(evaluator_look(&trainer, &scored, &error), 0, "it is scored already");
    cr_expect_eq(scored.step, 4);
    checkpoint_store_free(store);
    device_stream_free(trainer.stream);
    report_free(trainer.report);
    learner_close(&learner);
    test_directory_remove(directory);
}
