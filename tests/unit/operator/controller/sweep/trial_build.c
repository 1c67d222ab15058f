/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/trial_build.h"

#include <string.h>

#include "common/contract/labels.h"
#include "common/memory.h"
#include "sweep_scene.h"

static void expect_refused(const char *yaml, const char *words)
{
    struct training_sweep sweep = sweep_from(yaml);
    struct json *object = NULL;
    struct error error = ERROR_INIT;
    cr_assert(trial_build(&sweep, 0, &object, &error) < 0, "%s", yaml);
    cr_expect_eq(error.kind, ERROR_INVALID);
    cr_expect(strstr(error.message, words), "%s", error.message);
    training_sweep_release(&sweep);
}

static struct json *built(const char *yaml, int64_t trial)
{
    struct training_sweep sweep = sweep_from(yaml);
    struct json *object = NULL;
    struct error error = ERROR_INIT;
    cr_assert(trial_build(&sweep, trial, &object, &error) == 0, "%s", error.message);
    training_sweep_release(&sweep);
    return object;
}

Test(trial_build, names_and_numbers)
{
    struct training_sweep sweep = {.name = "s"};
    SCOPED_FREE char *name = trial_name(&sweep, 12);
    cr_expect_str_eq(name, "s-12");
    cr_expect_eq(trial_number(&sweep, "s-12"), 12);
    cr_expect_eq(trial_number(&sweep, "s-0"), 0);
    cr_expect_eq(trial_number(&sweep, "s-012"), -1);
    cr_expect_eq(trial_number(&sweep, "s-"), -1);
    cr_expect_eq(trial_number(&sweep, "s-1x"), -1);
    cr_expect_eq(trial_number(&sweep, "s--1"), -1);
    cr_expect_eq(trial_number(&sweep, "t-1"), -1);
    cr_expect_eq(trial_number(&sweep, "s"), -1);
}

Test(trial_build, a_job_with_owner_labels_and_values)
{
    SCOPED_JSON *object =
        built("metadata: {name: s, namespace: n, uid: u, labels: {kueue.x-k8s.io/queue-name: q, other: x}}\n"
              "spec:\n"
              "  algorithm: {type: Grid}\n"
              "  parameters: [{path: coxswain.training.optimizer.learningRate, values: [0.5, 0.25]},\n"
              "    {path: coxswain.model.layers.1.units, values: [4]}, {path: workers.replicas, values: [1]}]\n"
              "  template:\n"
              "    coxswain:\n"
              "      strategy: {type: OneDevice}\n"
              "      model: {inputShape: [28, 28, 1], layers: [{type: Flatten}, {type: Dense}, {type: ReLU}, {type: "
              "Dense, units: 10}]}\n"
              "      data: {format: Synthetic, examples: 1000}\n"
              "      training: {steps: 10, batchSize: 100, optimizer: {type: SGD, learningRate: 7}}\n",
              1);
    const struct json *owner = json_first(json_at(object, "metadata.ownerReferences"));
    const struct json *labels = json_at(object, "metadata.labels");
    cr_expect_str_eq(json_string_at(object, "metadata.name", ""), "s-1");
    cr_expect_str_eq(json_string_at(object, "metadata.namespace", ""), "n");
    cr_expect_str_eq(json_string_at(owner, "kind", ""), TRAINING_SWEEP_KIND);
    cr_expect_str_eq(json_string_at(owner, "uid", ""), "u");
    cr_expect(json_boolean_at(owner, "controller", false));
    cr_expect_str_eq(json_string(json_member(labels, LABEL_SWEEP_NAME), ""), "s");
    cr_expect_str_eq(json_string(json_member(labels, LABEL_TRIAL), ""), "1");
    cr_expect_str_eq(json_string(json_member(labels, LABEL_QUEUE_NAME), ""), "q");
    cr_expect_null(json_member(labels, "other"));
    cr_expect_eq(json_number_at(object, "spec.coxswain.training.optimizer.learningRate", 0), 0.25);
    cr_expect_eq(json_integer_at(json_element(json_at(object, "spec.coxswain.model.layers"), 1), "units", 0), 4);
    cr_expect_eq(json_integer_at(object, "spec.workers.replicas", 0), 1);
}

Test(trial_build, a_parameter_that_is_not_tried_leaves_the_template_alone)
{
    static const char yaml[] =
        SWEEP_HEAD "  algorithm: {type: Grid}\n"
                   "  parameters: [{path: coxswain.training.optimizer.type, values: [AdamW, SGD]},\n"
                   "    {path: coxswain.training.optimizer.momentum, values: [0.5], when: {parameter: "
                   "coxswain.training.optimizer.type, values: [SGD]}}]\n";
    SCOPED_JSON *without = built(yaml, 0), *with = built(yaml, 1);
    cr_expect_null(json_at(without, "spec.coxswain.training.optimizer.momentum"));
    cr_expect_eq(json_number_at(with, "spec.coxswain.training.optimizer.momentum", 0), 0.5);
}

#define FOREIGN                                                                                                        \
    "metadata: {name: s, namespace: n, uid: u}\n"                                                                      \
    "spec:\n"                                                                                                          \
    "  maxTrials: 1\n"                                                                                                 \
    "  parameters: [{env: LR, values: [0.5]}]\n"                                                                       \
    "  template:\n"                                                                                                    \
    "    image: i\n"                                                                                                   \
    "    pytorch: {}\n"

static const struct json *variable_of(const struct json *object, const char *role, size_t container)
{
    const struct json *containers = json_at(json_member(json_member(object, "spec"), role), "template.spec.containers");
    return json_first(json_member(json_element(containers, container), "env"));
}

Test(trial_build, a_variable_reaches_the_trainers_of_all_roles)
{
    SCOPED_JSON *object = built(FOREIGN "    chief: {}\n", 0);
    static const char *const roles[] = {"chief", "workers"};
    for (int i = 0; i < 2; i++) {
        cr_expect_str_eq(json_string_at(variable_of(object, roles[i], 0), "name", ""), "LR");
        cr_expect_str_eq(json_string_at(variable_of(object, roles[i], 0), "value", ""), "0.5");
    }
    cr_expect_null(json_at(object, "spec.evaluator"));
}

Test(trial_build, a_variable_replaces_that_of_the_trainer)
{
    SCOPED_JSON *object = built(FOREIGN "    workers: {template: {spec: {containers: [{name: sidecar}, {name: trainer, "
                                        "env: [{name: LR, valueFrom: {}}]}]}}}\n",
                                0);
    cr_expect_null(variable_of(object, "workers", 0));
    cr_expect_str_eq(json_string_at(variable_of(object, "workers", 1), "value", ""), "0.5");
    cr_expect_null(json_member(variable_of(object, "workers", 1), "valueFrom"));
}

static int64_t backoff_limit_of(const char *template)
{
    SCOPED_FREE char *yaml = memory_format("%s%s", FOREIGN, template);
    SCOPED_JSON *object = built(yaml, 0);
    return json_integer_at(object, "spec.runPolicy.backoffLimit", -1);
}

Test(trial_build, a_script_that_fails_is_not_started_again)
{
    cr_expect_eq(backoff_limit_of(""), 0);
    cr_expect_eq(backoff_limit_of("    runPolicy: {cleanPodPolicy: All}\n"), 0);
    cr_expect_eq(backoff_limit_of("    runPolicy: {backoffLimit: 3}\n"), 3);
    cr_expect_eq(backoff_limit_of("    workers: {replicas: 2, minReplicas: 1, maxReplicas: 3}\n"), -1);
    expect_refused(FOREIGN "    runPolicy: never\n", "runPolicy");
}

Test(trial_build, what_makes_no_job)
{
    expect_refused(SWEEP_HEAD "  maxTrials: 1\n  parameters: [{path: coxswain.training.steps.x, values: [1]}]\n",
                   "path coxswain.training.steps.x leads nowhere");
    expect_refused(SWEEP_HEAD "  maxTrials: 1\n  parameters: [{path: coxswain.training.steps.x.y, values: [1]}]\n",
                   "leads nowhere");
    expect_refused(SWEEP_HEAD "  maxTrials: 1\n  parameters: [{path: coxswain.training.batchSize, values: [0]}]\n",
                   "spec.template, with the values of trial s-0 (batchSize 0): spec.coxswain.training.batchSize");
    expect_refused("metadata: {name: s}\nspec:\n  maxTrials: 1\n  template: {a: [1, 2]}\n"
                   "  parameters: [{path: a.2, values: [0]}]\n",
                   "path a.2 leads nowhere: a has 2 elements in the template, counted from 0; correct the path");
    expect_refused("metadata: {name: s}\nspec:\n  maxTrials: 1\n  template: {a: {b: [{c: 1}]}}\n"
                   "  parameters: [{path: a.b.1.c, values: [0]}]\n",
                   "path a.b.1.c leads nowhere: a.b has 1 element in the template");
    expect_refused("metadata: {name: s}\nspec:\n  maxTrials: 1\n  template: {a: [1, 2]}\n"
                   "  parameters: [{path: a.b, values: [0]}]\n",
                   "no place for \"b\"");
}

#define PAUSING                                                                                                        \
    SWEEP_HEAD "      checkpoint: {storage: runs}\n    storage: [{name: runs, hostPath: {path: /runs}}]\n"             \
               "  maxTrials: 20\n  parameters: [{path: coxswain.training.batchSize, integer: {min: 10, max: 50}}]\n"

/* The trials of a sweep that was deleted and created again begin at step 0, not with an earlier trial's weights. */
Test(trial_build, checkpoints_lie_in_a_folder_of_this_sweep)
{
    SCOPED_JSON *object = yaml_value(PAUSING);
    struct training_sweep sweep = sweep_of(object);
    struct json *job = NULL;
    cr_assert_eq(trial_build(&sweep, 3, &job, NULL), 0);
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.checkpoint.path", ""), "s-3-u");
    json_free(job);
    training_sweep_release(&sweep);
}

static void expect_export(const char *path, const char *wanted)
{
    SCOPED_FREE char *yaml =
        memory_format(SWEEP_HEAD "      export: {storage: runs, path: %s}\n"
                                 "    storage: [{name: runs, hostPath: {path: /runs}}]\n"
                                 "  maxTrials: 4\n"
                                 "  parameters: [{path: coxswain.training.batchSize, values: [10]}]\n",
                      path);
    SCOPED_JSON *job = built(yaml, 3);
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.export.path", ""), wanted);
}

Test(trial_build, each_trial_exports_to_a_file_of_its_own)
{
    expect_export("model.safetensors", "s-3-u/model.safetensors");
    expect_export("best/model.safetensors", "best/s-3-u/model.safetensors");
    expect_export("a/b/model", "a/b/s-3-u/model");
}

/* `results` in YAML; `step` NULL: the trial does not wait. */
static void expect_pause(const char *yaml, const char *early_stopping, const char *metric, const char *results,
                         const char *step)
{
    SCOPED_JSON *object = yaml_value(yaml);
    json_set(json_member(object, "spec"), "earlyStopping", yaml_value(early_stopping));
    json_set_string(json_set_object(json_member(object, "spec"), "objective"), "metric", metric);
    if (strcmp(metric, "loss") != 0)
        json_set_string(json_at(object, "spec.objective"), "goal", "Minimize");
    json_set(json_set_object(object, "status"), "results", yaml_value(results));
    struct training_sweep sweep = sweep_of(object);
    struct json *job = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(trial_build(&sweep, 0, &job, &error), 0, "%s", error.message);
    const char *built = json_string(json_member(json_at(job, "metadata.annotations"), ANNOTATION_PAUSE_STEP), NULL);
    cr_expect_eq(step == NULL, built == NULL, "%s: %s, not %s", early_stopping, built, step);
    if (step && built)
        cr_expect_str_eq(built, step, "%s", early_stopping);
    json_free(job);
    training_sweep_release(&sweep);
}

Test(trial_build, a_trial_that_may_pause_waits_at_the_next_rung)
{
    static const char asha[] = "{type: ASHA, minSteps: 2, reductionFactor: 2, action: Pause}",
                      stops[] = "{type: ASHA, minSteps: 2, reductionFactor: 2}",
                      brackets[] = "{type: Hyperband, minSteps: 2, reductionFactor: 3, brackets: 2, action: Pause}";
    expect_pause(PAUSING, asha, "loss", "[]", "2");
    expect_pause(PAUSING, asha, "loss", "[{state: Running, rungs: '0.5'}]", "4");
    expect_pause(PAUSING, asha, "loss", "[{state: Running, rungs: ',0.5'}]", "8");
    expect_pause(PAUSING, brackets, "loss", "[{state: Running, rungs: '1,1,1'}]", "54");
    expect_pause(PAUSING, stops, "loss", "[]", NULL);
    expect_pause(PAUSING, asha, "validationLoss", "[]", NULL); /* the template holds nothing out */
    expect_pause(PAUSING, asha, "bleu", "[]", NULL);
}

Test(trial_build, only_crews_that_take_common_steps_wait)
{
    static const char asha[] = "{type: ASHA, minSteps: 2, action: Pause}", held_out[] = "validationAccuracy";
#define WITH(strategy, format, more)                                                                                   \
    "metadata: {name: s, namespace: n, uid: u}\nspec: {maxTrials: 4, parameters: [{path: "                             \
    "coxswain.training.batchSize, integer: {min: 10, max: 50}}], template: {workers: {replicas: 2}, storage: [{name: " \
    "runs, hostPath: {path: /runs}}], coxswain: {strategy: {type: " strategy "}, model: {preset: mlp}, data: "         \
    "{format: " format ", examples: 1000, validation: {last: 100}}, training: {steps: 10, batchSize: 100, optimizer: " \
    "{type: SGD}}, checkpoint: {storage: runs}}" more "}}"
    expect_pause(WITH("MultiWorkerMirrored", "Synthetic", ""), asha, held_out, "[]", "2");
    expect_pause(WITH("MultiWorkerMirrored", "Synthetic", ""), asha, "validationLoss", "[]", "2");
    expect_pause(WITH("ParameterServer", "Synthetic", ", parameterServers: {replicas: 1}, chief: {}"), asha, held_out,
                 "[]", NULL);
    expect_pause(WITH("PeerToPeer", "Synthetic", ""), asha, held_out, "[]", NULL);
}

Test(trial_build, a_job_that_the_sweep_suspends_no_longer_waits)
{
    SCOPED_JSON *object = yaml_value(PAUSING "  objective: {metric: loss}\n"
                                             "  earlyStopping: {type: ASHA, minSteps: 2, action: Pause}\n"
                                             "status: {results: [{state: Running, rungs: '0.5'}]}\n");
    struct training_sweep sweep = sweep_of(object);
    SCOPED_JSON *suspend = trial_suspend_patch(&sweep, 0, true);
    SCOPED_JSON *resume = trial_suspend_patch(&sweep, 0, false);
    const struct json *gone = json_member(json_at(suspend, "metadata.annotations"), ANNOTATION_PAUSE_STEP);
    const struct json *next = json_member(json_at(resume, "metadata.annotations"), ANNOTATION_PAUSE_STEP);
    cr_expect(json_boolean_at(suspend, "spec.suspend", false));
    cr_expect(gone && !json_string(gone, NULL));
    cr_expect_not(json_boolean_at(resume, "spec.suspend", true));
    cr_expect_str_eq(json_string(next, ""), "8");
    training_sweep_release(&sweep);
}
