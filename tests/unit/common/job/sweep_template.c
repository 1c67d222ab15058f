/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/sweep_template.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/memory.h"
#include "common/yaml.h"

static struct json *value_of(const char *yaml)
{
    struct error error = ERROR_INIT;
    struct json *documents = NULL;
    cr_assert(yaml_parse(yaml, strlen(yaml), 65536, &documents, &error) == 0, "%s: %s", yaml, error.message);
    struct json *value = json_detach(documents, json_first(documents));
    json_free(documents);
    return value;
}

/* `template` and the members that come before it, in YAML; `words` NULL: there is no fault. */
static void expect_fault(const char *spec, const char *template, const char *words)
{
    SCOPED_FREE char *yaml = memory_format(
        "metadata: {name: s}\nspec: {maxTrials: 4, parameters: [{path: coxswain.training.batchSize, values: [1]}], %s, "
        "template: %s}\n",
        spec, template);
    SCOPED_JSON *object = value_of(yaml);
    struct training_sweep sweep;
    struct error error = ERROR_INIT;
    cr_assert(training_sweep_parse(object, &sweep, &error) == 0, "%s: %s", yaml, error.message);
    const char *fault = sweep_template_fault(&sweep, sweep.template);
    cr_expect(words ? fault && strstr(fault, words) : !fault, "%s: %s", yaml, fault ? fault : "no fault");
    training_sweep_release(&sweep);
}

Test(sweep_template, trials_that_pause_need_checkpoints)
{
    static const char pause[] = "earlyStopping: {type: ASHA, minSteps: 1, action: Pause}";
    expect_fault(pause, "{coxswain: {}}", "checkpoint: is missing, and with earlyStopping.action Pause");
    expect_fault(pause, "{coxswain: {checkpoint: {storage: runs}}}", NULL);
    expect_fault(pause, "{pytorch: {}}", NULL);
    expect_fault("earlyStopping: {type: ASHA, minSteps: 1}", "{coxswain: {}}", NULL);
}

Test(sweep_template, a_population_needs_checkpoints_that_all_trials_reach)
{
    static const char population[] = "algorithm: {type: PBT, population: 2}";
    expect_fault(population, "{coxswain: {}}", "checkpoint: is missing, and with PBT");
    expect_fault(population, "{pytorch: {}}", "PBT is for Coxswain's own worker");
    expect_fault(population, "{storage: [{name: a, emptyDir: {}}], coxswain: {checkpoint: {storage: a}}}", "emptyDir");
    expect_fault(population, "{storage: [{name: a, hostPath: {path: /a}}], coxswain: {checkpoint: {storage: a}}}",
                 NULL);
}

Test(sweep_template, each_trial_needs_a_folder_of_its_own)
{
    expect_fault("parallelism: 1", "{coxswain: {checkpoint: {storage: a, path: b}}}", "a folder of its own");
}

static void expect_final(const char *spec, const char *template, const char *metric)
{
    SCOPED_FREE char *yaml =
        memory_format("metadata: {name: s}\nspec: {maxTrials: 4, parameters: [{path: a, values: [1]}], %s, template: "
                      "{coxswain: {%s}}}\n",
                      spec, template);
    SCOPED_JSON *object = value_of(yaml);
    struct training_sweep sweep;
    struct error error = ERROR_INIT;
    cr_assert(training_sweep_parse(object, &sweep, &error) == 0, "%s: %s", yaml, error.message);
    cr_expect_str_eq(sweep_final_metric(&sweep), metric, "%s: %s", yaml, sweep_final_metric(&sweep));
    training_sweep_release(&sweep);
}

Test(sweep_template, the_objective_is_that_of_the_weights_that_are_exported)
{
    static const char kept[] = "checkpoint: {storage: a, keepBest: true}";
    static const char best[] = "checkpoint: {storage: a, keepBest: true}, export: {weights: Best}";
    static const char accuracy[] = "objective: {metric: validationAccuracy, goal: Maximize}";
    expect_final("parallelism: 1", kept, "validationLoss");
    expect_final("parallelism: 1", best, "bestValidationLoss");
    expect_final(accuracy, best, "bestValidationAccuracy");
    expect_final("objective: {value: Best}", kept, "bestValidationLoss");
    expect_final("objective: {value: Last}", best, "validationLoss");
    expect_final("objective: {metric: loss}", best, "loss");
    expect_fault("objective: {value: Best}", "{coxswain: {checkpoint: {storage: a}}}",
                 "needs coxswain.checkpoint.keepBest");
    expect_fault("objective: {value: Best}", "{coxswain: {checkpoint: {storage: a, keepBest: true}}}", NULL);
    expect_fault("objective: {value: Best, metric: loss}", "{coxswain: {checkpoint: {storage: a, keepBest: true}}}",
                 "validationLoss, validationAccuracy or validationRMSE as the metric");
}

/* `coxswain`: what differs from a job that has accuracies. */
static void expect_measured(const char *data, const char *metric, bool measured)
{
    SCOPED_FREE char *yaml = memory_format(
        "metadata: {name: a}\nspec: {coxswain: {strategy: {type: OneDevice}, data: %s, training: {steps: 1, batchSize: "
        "1, optimizer: {type: SGD}}}}\n",
        data);
    SCOPED_JSON *object = value_of(yaml);
    struct training_job job;
    struct error error = ERROR_INIT;
    cr_assert(training_job_parse(object, &job, &error) == 0, "%s: %s", yaml, error.message);
    cr_expect_eq(sweep_metric_is_measured(&job.document, metric), measured, "%s: %s", yaml, metric);
    training_job_release(&job);
}

Test(sweep_template, what_the_worker_measures)
{
    static const char classes[] = "{format: Synthetic, examples: 9, validation: {last: 3}}, model: {preset: mlp}",
                      text[] = "{format: Bytes, train: {text: /a}, validation: {last: 3}}, model: {preset: gpt-bytes, "
                               "context: 64}",
                      numbers[] =
                          "{format: Synthetic, examples: 9, validation: {last: 3}}, model: {inputShape: [28, 28, 1], "
                          "layers: [{type: Flatten}, {type: Dense, units: 1}], loss: MeanSquaredError}",
                      alone[] = "{format: Synthetic, examples: 9}, model: {preset: mlp}";
    expect_measured(classes, "validationAccuracy", true);
    expect_measured(classes, "validationLoss", true);
    expect_measured(text, "validationAccuracy", false);
    expect_measured(text, "validationLoss", true);
    expect_measured(numbers, "validationAccuracy", false);
    expect_measured(numbers, "validationRMSE", true);
    expect_measured(classes, "validationRMSE", false);
    expect_measured(alone, "validationLoss", false);
    expect_measured(alone, "loss", true);
    expect_measured(classes, "bleu", false);
}
