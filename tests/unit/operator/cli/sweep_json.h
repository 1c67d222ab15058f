/* SPDX-License-Identifier: Apache-2.0
 *
 * A sweep and its trials for tests of what shows them, written as YAML.
 */
#ifndef TESTS_CLI_SWEEP_JSON_H
#define TESTS_CLI_SWEEP_JSON_H

#include <criterion/criterion.h>
#include <string.h>

#include "common/memory.h"
#include "common/yaml.h"
#include "operator/cli/sweep_view.h"

#define SWEEP_SPEC                                                                                                     \
    "metadata: {name: s, namespace: n}\n"                                                                              \
    "spec:\n"                                                                                                          \
    "  parallelism: 2\n"                                                                                               \
    "  maxTrials: 6\n"                                                                                                 \
    "  parameters:\n"                                                                                                  \
    "  - {path: coxswain.training.optimizer.learningRate, uniform: {min: 0, max: 1}}\n"                                \
    "  - {env: WORDS, values: [one, 'two, \"2\"']}\n"                                                                  \
    "  template: {coxswain: {model: {preset: mlp}}}\n"
#define SWEEP_RUNS                                                                                                     \
    SWEEP_SPEC "status:\n"                                                                                             \
               "  conditions: [{type: Running, status: 'True', reason: TrialsRunning}]\n"                              \
               "  trials: {total: 6, running: 2, succeeded: 1, failed: 1}\n"                                           \
               "  best: {trial: s-0, objective: '0.25', parameters: [{name: "                                          \
               "coxswain.training.optimizer.learningRate, value: '0.5'}, {name: WORDS, value: one}]}\n"

/* 2026-11-20T14:01:00Z */
#define SWEEP_NOW 1795183260000

static inline struct json *sweep_json(const char *yaml)
{
    struct error error = ERROR_INIT;
    struct json *documents = NULL;
    cr_assert(yaml_parse(yaml, strlen(yaml), 1024 * 1024, &documents, &error) == 0, "%s: %s", yaml, error.message);
    struct json *value = json_detach(documents, json_first(documents));
    json_free(documents);
    return value;
}

/* Release with training_sweep_release. */
static inline struct training_sweep sweep_of(const char *yaml)
{
    struct training_sweep sweep;
    struct error error = ERROR_INIT;
    SCOPED_JSON *object = sweep_json(yaml);
    cr_assert(training_sweep_parse(object, &sweep, &error) == 0, "%s", error.message);
    return sweep;
}

/* A trial with these values, and this status in YAML. Free with trial_line_free. */
static inline struct trial_line *trial_of(const struct training_sweep *sweep, int number, const char *rate,
                                          const char *words, const char *status)
{
    SCOPED_FREE char *yaml = memory_format(
        "metadata: {name: s-%d, labels: {coxswain.dev/trial: '%d'}}\n"
        "spec: {coxswain: {training: {optimizer: {learningRate: %s}}}, workers: {template: {spec: {containers: [{name: "
        "trainer, env: [{name: WORDS, value: '%s'}]}]}}}}\nstatus: %s\n",
        number, number, rate, words, status);
    SCOPED_JSON *job = sweep_json(yaml);
    return trial_line_new(sweep, job);
}

#define TRIAL_SUCCEEDED                                                                                                \
    "{conditions: [{type: Succeeded, status: 'True'}], startTime: '2026-11-20T14:00:00Z', completionTime: "            \
    "'2026-11-20T14:00:40Z', progress: {metrics: [{name: validationLoss, value: '0.25'}]}}"
#define TRIAL_FAILED "{conditions: [{type: Failed, status: 'True', message: out of memory}]}"
#define TRIAL_RUNS                                                                                                     \
    "{conditions: [{type: Running, status: 'True'}], startTime: '2026-11-20T14:00:30Z', progress: {step: 30, "         \
    "totalSteps: 60, metrics: [{name: validationLoss, value: '0.1'}]}}"

/* The trials of SWEEP_RUNS. */
struct scene {
    struct training_sweep sweep;
    struct trial_line *lines[4];
    struct sweep_view view;
};

static inline void scene_init(struct scene *scene)
{
    scene->sweep = sweep_of(SWEEP_RUNS);
    scene->view = (struct sweep_view){.sweep = &scene->sweep};
    scene->lines[0] = trial_of(&scene->sweep, 2, "0.75", "one", TRIAL_RUNS);
    scene->lines[1] = trial_of(&scene->sweep, 0, "0.5", "one", TRIAL_SUCCEEDED);
    scene->lines[2] = trial_of(&scene->sweep, 1, "0.125", "two, \"2\"", TRIAL_FAILED);
    scene->lines[3] = trial_of(&scene->sweep, 3, "1e-05", "one", "{}");
    for (int i = 0; i < 4; i++)
        sweep_view_add(&scene->view, scene->lines[i]);
    sweep_view_complete(&scene->view);
}

static inline void scene_release(struct scene *scene)
{
    sweep_view_release(&scene->view);
    for (int i = 0; i < 4; i++)
        trial_line_free(scene->lines[i]);
    training_sweep_release(&scene->sweep);
}

#endif
