/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/first_job.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/job/enum_words.h"
#include "common/job/sweep_parameter.h"
#include "common/job/sweep_value.h"
#include "common/job/training_sweep.h"
#include "common/yaml.h"
#include "operator/cli/first_sweep.h"
#include "operator/cli/job_print.h"

/* The printed text parses to the same job. */
static void check_print(const struct json *job, const char *what)
{
    SCOPED_BUFFER text = BUFFER_INIT(1 << 16);
    SCOPED_JSON *documents = NULL;
    struct error error = ERROR_INIT;
    job_print(job, &text);
    cr_assert_eq(yaml_parse(buffer_text(&text), text.length, 1 << 16, &documents, &error), 0, "%s: %s\n%s", what,
                 error.message, buffer_text(&text));
    cr_expect(json_equal(json_first(documents), job), "%s:\n%s", what, buffer_text(&text));
}

/* The sweep of a job is valid, with the values of its first trials, too. */
static void check_sweep(const struct first_job *wish, const struct json *job, const char *what)
{
    SCOPED(training_sweep_release) struct training_sweep parsed = {.opaque = NULL};
    SCOPED_JSON *sweep = first_sweep_make(wish, job);
    struct error error = ERROR_INIT;
    cr_expect_eq(training_sweep_parse(sweep, &parsed, &error), 0, "%s: %s", what, error.message);
    cr_expect_null(json_at(sweep, "spec.template.coxswain.export"));
    for (int64_t trial = 0; trial < parsed.max_trials; trial++) {
        SCOPED_JSON *drawn = json_copy(job);
        SCOPED(training_job_release) struct training_job valid;
        for (unsigned i = 0; i < parsed.parameter_count; i++) {
            SCOPED_JSON *value = sweep_drawn_value(&parsed, i, trial);
            cr_expect_eq(sweep_parameter_put(&parsed.parameters[i], value, json_member(drawn, "spec"), &error), 0,
                         "%s: %s", what, error.message);
        }
        cr_expect_eq(training_job_parse(drawn, &valid, &error), 0, "%s: %s", what, error.message);
    }
    check_print(sweep, what);
}

/* `field`: what is refused, NULL: nothing is. */
static void check(const struct first_job *wish, const char *field)
{
    SCOPED_JSON *job = first_job_make(wish);
    SCOPED_JSON *violations = training_job_violations(job, NULL);
    const struct json *first = json_first(violations);
    char what[256];
    snprintf(what, sizeof what, "%s %s %s: %s: %s", wish->strategy ? wish->strategy : "",
             wish->model ? wish->model : "", wish->format ? wish->format : "", json_string_at(first, "field", ""),
             json_string_at(first, "message", ""));
    cr_expect_eq(json_count(violations), field ? 1u : 0u, "%s", what);
    cr_expect_str_eq(json_string_at(first, "field", ""), field ? field : "", "%s", what);
    check_print(job, what);
    if (!field)
        check_sweep(wish, job, what);
}

static bool reads_text(const char *model)
{
    return strncmp(model, "gpt", 3) == 0;
}

/* Every generated job is valid, unless model and data do not fit together. */
Test(first_job, every_strategy_with_every_model_and_format)
{
    for (size_t s = 0; strategy_type_words[s]; s++)
        for (size_t m = PRESET_NONE + 1; preset_words[m]; m++)
            for (size_t f = 0; data_format_words[f]; f++) {
                struct first_job wish = {.name = "mine",
                                         .strategy = strategy_type_words[s],
                                         .model = preset_words[m],
                                         .format = data_format_words[f]};
                bool text = f == DATA_FORMAT_BYTES || f == DATA_FORMAT_TOKENS;
                bool fits = f == DATA_FORMAT_SYNTHETIC || text == reads_text(wish.model);
                check(&wish, fits ? NULL : "spec.coxswain.data.format");
            }
}

Test(first_job, whatever_alone_is_said)
{
    check(&(struct first_job){.name = "mine"}, NULL);
    for (size_t s = 0; strategy_type_words[s]; s++)
        check(&(struct first_job){.name = "mine", .strategy = strategy_type_words[s]}, NULL);
    for (size_t f = 0; data_format_words[f]; f++)
        check(&(struct first_job){.name = "mine", .format = data_format_words[f], .data_claim = "d", .runs_claim = "r"},
              NULL);
    check(&(struct first_job){.name = "mine", .image = "registry.example/worker:1"}, NULL);
    check(&(struct first_job){.name = "mine", .strategy = "Pipeline", .gpus = 2}, NULL);
    check(&(struct first_job){.name = "mine", .strategy = "PeerToPeer", .gpus = 2}, NULL);
}

Test(first_job, what_no_job_may_be_is_found)
{
    check(&(struct first_job){.name = "mine", .strategy = "OneDevice", .workers = 2}, "spec.workers.replicas");
    check(&(struct first_job){.name = "mine", .strategy = "Fred"}, "spec.coxswain.strategy.type");
    check(&(struct first_job){.name = "mine", .model = "Fred"}, "spec.coxswain.model.preset");
    check(&(struct first_job){.name = "mine", .format = "Fred"}, "spec.coxswain.data.format");
    check(&(struct first_job){.name = "Mine"}, "metadata.name");
}

static void expect_text(const struct json *job, const char *path, const char *wanted)
{
    cr_expect_str_eq(json_string_at(job, path, ""), wanted, "%s", path);
}

Test(first_job, what_is_said_stands_in_it)
{
    struct data_files_found files = {.format = "NPY", .files = (char[]){"x.npy"}, .labels = (char[]){"y.npy"}};
    SCOPED_JSON *job = first_job_make(&(struct first_job){.name = "mine",
                                                          .image = "worker:1",
                                                          .strategy = "Mirrored",
                                                          .model = "mlp",
                                                          .format = "NPY",
                                                          .files = &files,
                                                          .data_claim = "pictures",
                                                          .workers = 1,
                                                          .gpus = 4});
    expect_text(job, "metadata.name", "mine");
    expect_text(job, "spec.image", "worker:1");
    expect_text(job, "spec.coxswain.strategy.type", "Mirrored");
    expect_text(job, "spec.devices.type", "GPU");
    cr_expect_eq(json_integer_at(job, "spec.devices.count", 0), 4);
    expect_text(job, "spec.coxswain.data.train.images", "x.npy");
    expect_text(job, "spec.coxswain.data.train.labels", "y.npy");
    const struct json *storage = json_first(json_at(job, "spec.storage"));
    expect_text(storage, "persistentVolumeClaim.claimName", "pictures");
    expect_text(json_next(storage), "persistentVolumeClaim.claimName", "runs");
    expect_text(job, "spec.coxswain.export.path", "mine/model.safetensors");
}

/* The lines that the sweep of a job begins with. */
static const char *explanation(const struct first_job *wish)
{
    static char text[1024];
    SCOPED_JSON *job = first_job_make(wish);
    SCOPED_JSON *sweep = first_sweep_make(wish, job);
    SCOPED_BUFFER out;
    buffer_init(&out, sizeof text);
    first_sweep_explain(sweep, &out);
    snprintf(text, sizeof text, "%s", buffer_text(&out));
    return text;
}

/* Returns what stands above the job; valid until the next call. */
static const char *job_explanation(const struct first_job *wish)
{
    static char text[1024];
    SCOPED_BUFFER out = BUFFER_INIT(sizeof text);
    SCOPED_JSON *job = first_job_make(wish);
    first_job_explain(job, &out);
    snprintf(text, sizeof text, "%s", buffer_text(&out));
    return text;
}

Test(first_job, a_job_of_a_text_takes_minutes_or_says_what_it_takes)
{
    const struct first_job bytes = {.name = "a", .format = "Bytes"}, gpus = {.name = "a", .format = "Bytes", .gpus = 1};
    const struct first_job tokens = {.name = "a", .format = "Tokens"}, digits = {.name = "a", .format = "IDX"};
    SCOPED_JSON *job = first_job_make(&bytes);
    cr_expect_eq(first_job_length(job), 3);
    cr_expect_str_eq(job_explanation(&bytes),
                     "#\n# Training takes about 3 minutes on two processors, enough to see the loss fall. For better "
                     "texts raise\n# training.steps; the time rises with it.\n");
    cr_expect(strstr(job_explanation(&tokens), "takes days on processors"));
    cr_expect_str_eq(job_explanation(&gpus), "");
    cr_expect_str_eq(job_explanation(&digits), "");
}

Test(first_job, a_sweep_of_texts_takes_minutes_or_says_what_it_takes)
{
    const struct first_job bytes = {.name = "a", .format = "Bytes"},
                           many = {.name = "a", .format = "Bytes", .workers = 24};
    SCOPED_JSON *job = first_job_make(&bytes);
    SCOPED_JSON *sweep = first_sweep_make(&bytes, job);
    SCOPED_JSON *large_job = first_job_make(&many);
    SCOPED_JSON *large = first_sweep_make(&many, large_job);
    cr_expect_eq(json_integer_at(job, "spec.coxswain.training.steps", 0), 400);
    cr_expect_eq(json_integer_at(sweep, "spec.template.coxswain.training.steps", 0), 200);
    cr_expect_eq(json_integer_at(sweep, "spec.template.coxswain.training.batchSize", 0), 16);
    cr_expect_eq(json_integer_at(large, "spec.template.coxswain.training.batchSize", 0), 24, "an example for each");
    cr_expect_str_eq(explanation(&bytes),
                     "#\n# Each trial takes only 200 steps: enough to compare values. Train the best job that\n"
                     "# `cox sweep best a` prints for longer (training.steps).\n"
                     "# All trials together take about 10 minutes on two processors; for less, lower maxTrials or\n"
                     "# training.steps.\n");
    cr_expect(strstr(explanation(&(struct first_job){.name = "a", .format = "Tokens"}), "takes days on processors"));
    cr_expect_not(strstr(explanation(&(struct first_job){.name = "a", .format = "Tokens", .gpus = 1}), "processors"));
    cr_expect_str_eq(explanation(&(struct first_job){.name = "a", .format = "IDX"}), "");
}

Test(first_job, trials_of_a_sweep_have_a_processor_for_each_pod)
{
    const struct {
        const char *strategy;
        int64_t parallelism;
    } cases[] = {{"OneDevice", 2}, {"Mirrored", 2}, {"MultiWorkerMirrored", 1}, {"ParameterServer", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct first_job wish = {.name = "a", .strategy = cases[i].strategy};
        SCOPED_JSON *job = first_job_make(&wish);
        SCOPED_JSON *sweep = first_sweep_make(&wish, job);
        cr_expect_eq(json_integer_at(sweep, "spec.parallelism", 0), cases[i].parallelism, "%s", cases[i].strategy);
    }
}

Test(first_job, the_weights_of_the_best_evaluation_are_exported)
{
    const struct data_shape table = {.examples = 150, .rank = 1, .sides = {4}, .classes = 3};
    const struct first_job iris = {.name = "iris", .format = "NPY", .shape = &table};
    SCOPED_JSON *job = first_job_make(&iris);
    SCOPED_JSON *sweep = first_sweep_make(&iris, job);
    cr_expect(json_boolean_at(job, "spec.coxswain.checkpoint.keepBest", false));
    expect_text(job, "spec.coxswain.export.weights", "Best");
    /* 120 examples in batches of 8 (an epoch has at least eight), 100 epochs. */
    int64_t every = json_integer_at(job, "spec.coxswain.evaluation.everySteps", 0);
    int64_t steps = json_integer_at(job, "spec.coxswain.training.epochs", 0) * 120 /
                    json_integer_at(job, "spec.coxswain.training.batchSize", 1);
    cr_expect(20 * every <= steps && 20 * every > steps - 20, "%lld of %lld", (long long)every, (long long)steps);
    expect_text(sweep, "spec.objective.metric", "validationLoss");
    expect_text(sweep, "spec.objective.value", "Best");
    SCOPED_JSON *text = first_job_make(&(struct first_job){.name = "a", .format = "Bytes"});
    cr_expect_eq(json_integer_at(text, "spec.coxswain.evaluation.everySteps", 0), 40);
    SCOPED_JSON *made_up = first_job_make(&(struct first_job){.name = "mine"});
    SCOPED_JSON *tried = first_sweep_make(&(struct first_job){.name = "mine"}, made_up);
    cr_expect_null(json_at(tried, "spec.objective.value"), "no volume keeps weights");
}

Test(first_job, made_up_data_needs_no_volume)
{
    SCOPED_JSON *job = first_job_make(&(struct first_job){.name = "mine"});
    cr_expect_null(json_at(job, "spec.storage"));
    cr_expect_null(json_at(job, "spec.coxswain.checkpoint"));
    SCOPED_JSON *kept = first_job_make(&(struct first_job){.name = "mine", .runs_claim = "mine"});
    cr_expect_eq(json_count(json_at(kept, "spec.storage")), 1u);
    cr_expect_not_null(json_at(kept, "spec.coxswain.checkpoint"));
}
