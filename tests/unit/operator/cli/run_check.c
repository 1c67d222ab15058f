/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/run_check.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "job_json.h"
#include "sweep_json.h"

#define QUIET ((struct run_machine){.memory = -1, .processors = 64})

static const char job_text[] =
    "{\"apiVersion\":\"coxswain.dev/"
    "v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"},"
    "\"spec\":{\"workers\":{\"replicas\":3},\"coxswain\":{\"strategy\":{\"type\":\"MultiWorkerMirrored\"},"
    "\"model\":{\"preset\":\"mlp\"},\"data\":{\"format\":\"Synthetic\",\"examples\":100},"
    "\"training\":{\"epochs\":2,\"batchSize\":10,\"optimizer\":%s}}}}";

/* The warnings about so many trials at a time, with this optimizer, as the worker has measured one. */
static const char *warnings_of_trials(int64_t trials, const char *optimizer, const char *answer_text,
                                      struct run_machine machine)
{
    static char text[RUN_WARNINGS_MAX];
    struct training_job job;
    struct json *object, *answer;
    struct error error = ERROR_INIT;
    struct buffer found;
    snprintf(text, sizeof text, job_text, optimizer);
    cr_assert_eq(json_parse(text, strlen(text), sizeof text, &object, NULL), 0);
    cr_assert_eq(json_parse(answer_text, strlen(answer_text), sizeof text, &answer, NULL), 0);
    cr_assert_eq(training_job_parse(object, &job, &error), 0, "%s", error.message);
    buffer_init(&found, RUN_WARNINGS_MAX);
    run_check_warn(&job, answer, trials, machine, &found);
    snprintf(text, sizeof text, "%s", buffer_text(&found));
    buffer_release(&found);
    training_job_release(&job);
    json_free(object);
    json_free(answer);
    return text;
}

static const char *warnings(const char *optimizer, const char *answer_text, struct run_machine machine)
{
    return warnings_of_trials(1, optimizer, answer_text, machine);
}

Test(run_check, says_nothing_about_a_usual_job)
{
    cr_assert_str_eq(warnings("{\"type\":\"SGD\",\"learningRate\":0.1,\"weightDecay\":0.0001}",
                              "{\"batch\":10,\"examples\":100,\"steps\":20,\"memory\":1000,\"members\":3}",
                              (struct run_machine){.memory = 3000, .processors = 3}),
                     "");
}

Test(run_check, warns_of_rates_that_diverge)
{
    const struct {
        const char *optimizer, *begin;
    } cases[] = {
        {"{\"type\":\"SGD\",\"learningRate\":10}", "training.optimizer.learningRate: 10 is very high for SGD"},
        {"{\"type\":\"AdamW\",\"learningRate\":1}", "training.optimizer.learningRate: 1 is very high for AdamW"},
        {"{\"type\":\"SGD\",\"learningRate\":0.1,\"weightDecay\":10}", "training.optimizer.weightDecay: 10 at a "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = warnings(cases[i].optimizer, "{}", QUIET);
        cr_expect_eq(strncmp(found, cases[i].begin, strlen(cases[i].begin)), 0, "%s", found);
    }
    cr_expect_str_eq(warnings("{\"type\":\"SGD\",\"learningRate\":9.9}", "{}", QUIET), "");
    cr_expect_str_eq(warnings("{\"type\":\"AdamW\",\"learningRate\":0.9}", "{}", QUIET), "");
}

Test(run_check, warns_of_what_the_data_and_the_machine_do_not_have)
{
    cr_expect(strstr(warnings("{}", "{\"batch\":500,\"examples\":100}", QUIET),
                     "a batch of 500 is more than the 100 training examples"));
    cr_expect(strstr(warnings("{}", "{\"steps\":100000000}", QUIET),
                     "more than a day even at a thousand a second; training.epochs"));
    cr_expect_str_eq(warnings("{}", "{\"classes\":3,\"labels\":3}", QUIET), "");
    cr_expect_str_eq(warnings("{}", "{\"classes\":4,\"labels\":0}", QUIET), "");
    cr_expect(strstr(warnings("{}", "{\"classes\":4,\"labels\":3}", QUIET),
                     "the model has 4 classes, but the labels only 3 different values; "));
    const struct run_machine small = {.memory = (int64_t)3 << 30, .processors = 2};
    cr_expect_str_eq(warnings("{}", "{\"memory\":2147483648,\"members\":3}", small),
                     "the job's 3 processes plan 6144 MiB of memory, but only 3072 MiB are available now; end other "
                     "programs, or lower training.batchSize or workers.replicas\n"
                     "the job's 3 pods share 2 processors, so it may train more slowly than with 2 workers\n");
}

Test(run_check, warns_of_trials_that_fit_the_machine_only_one_at_a_time)
{
    static const char answer[] = "{\"memory\":2147483648,\"members\":3}";
    const struct run_machine machine = {.memory = (int64_t)7 << 30, .processors = 3};
    cr_expect_str_eq(warnings("{}", answer, machine), "");
    cr_expect_str_eq(
        warnings_of_trials(4, "{}", answer, machine),
        "the 4 trials that run side by side plan 24576 MiB of memory in 12 processes, but only 7168 MiB are "
        "available now; end other programs, or lower parallelism, training.batchSize or workers.replicas\n"
        "the 4 trials that run side by side have 12 pods, which share 3 processors, so each trial may "
        "train more slowly; lower parallelism or workers.replicas\n");
}

Test(run_check, warns_of_each_value_of_a_sweep_that_is_a_larger_batch_than_there_are_examples)
{
    struct training_sweep sweep = sweep_of(
        "metadata: {name: s}\n"
        "spec: {maxTrials: 1, template: {}, parameters: [{path: a, values: [900]}, {path: coxswain.training.batchSize, "
        "values: [200, 600, 300, 700]}, {path: coxswain.training.perReplicaBatchSize, integer: {min: 1, max: "
        "150}}]}\n");
    SCOPED_JSON *answer = json_of("{'batch':600,'examples':250}");
    SCOPED_BUFFER warnings = BUFFER_INIT(RUN_WARNINGS_MAX);
    struct training_job trial = {.document.training.per_replica_batch_size = 300};
    run_check_warn_of_batches(&sweep, &trial, answer, &warnings);
    static const char rest[] = " a batch is more than the 250 training examples, so each step takes all of them; leave "
                               "the value out, or lower it\n";
    SCOPED_FREE char *expected =
        memory_format("spec.parameters[1] (coxswain.training.batchSize): with the value 300%sspec.parameters[1] "
                      "(coxswain.training.batchSize): with the value 700%sspec.parameters[2] "
                      "(coxswain.training.perReplicaBatchSize): with the value 150%s",
                      rest, rest, rest);
    cr_expect_str_eq(buffer_text(&warnings), expected);
    training_sweep_release(&sweep);
}

Test(run_check, knows_this_machine)
{
    const struct run_machine machine = run_machine_read();
    cr_assert_gt(machine.processors, 0);
    cr_assert_gt(machine.memory, 0);
}

static struct training_job job_with_devices(const char *devices)
{
    struct training_job job;
    struct error error = ERROR_INIT;
    char text[2048];
    struct json *object;
    snprintf(text, sizeof text, job_text, "{\"type\":\"SGD\",\"learningRate\":0.1}");
    cr_assert_eq(json_parse(text, strlen(text), sizeof text, &object, NULL), 0);
    struct json *parsed;
    cr_assert_eq(json_parse(devices, strlen(devices), sizeof text, &parsed, NULL), 0);
    json_set(json_member(object, "spec"), "devices", parsed);
    cr_assert_eq(training_job_parse(object, &job, &error), 0, "%s", error.message);
    json_free(object);
    return job;
}

Test(run_check, refuses_more_gpus_than_the_machine_has)
{
    static const struct {
        const char *devices;
        unsigned gpus;
        bool are_named;
        const char *message; /* NULL: the job can start */
    } cases[] = {
        {"{\"type\":\"GPU\",\"count\":2}", 6, false, NULL},
        {"{\"type\":\"GPU\",\"count\":2}", 5, true,
         "devices.count: the job's pods need 6 GPUs together, and this command may use 5 of this machine by "
         "CUDA_VISIBLE_DEVICES; lower devices.count or workers.replicas"},
        {"{\"type\":\"GPU\"}", 0, false,
         "devices.type: the job needs 3 GPUs, and this command may use none of this machine; write CPU or Auto, or see "
         "docs/gpus.md"},
        {"{\"type\":\"GPU\",\"resourceName\":\"nvidia.com/mig-1g.10gb\"}", 2, false,
         "devices.count: the job's pods need 3 GPUs together, and this command may use 2 of this machine; lower "
         "devices.count or workers.replicas"},
        {"{\"type\":\"GPU\",\"resourceName\":\"amd.com/gpu\"}", 0, false, NULL},
        {"{\"type\":\"Auto\",\"count\":2}", 0, false, NULL},
        {"{\"type\":\"CPU\",\"count\":2}", 0, false, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCOPED(training_job_release) struct training_job job = job_with_devices(cases[i].devices);
        struct error error = ERROR_INIT;
        int result = run_check_gpus(&job, cases[i].gpus, cases[i].are_named, &error);
        cr_expect_eq(result, cases[i].message ? -1 : 0, "case %zu: %s", i, error.message);
        cr_expect_str_eq(error.message, cases[i].message ? cases[i].message : "", "case %zu", i);
    }
}

static void expect_warning_of_gpus(const char *devices, int64_t trials, unsigned gpus, const char *expected)
{
    SCOPED(training_job_release) struct training_job job = job_with_devices(devices);
    SCOPED_BUFFER found = BUFFER_INIT(RUN_WARNINGS_MAX);
    run_check_warn_of_gpus(&job, trials, gpus, &found);
    cr_expect_str_eq(buffer_text(&found), expected);
}

Test(run_check, warns_of_trials_that_wait_for_gpus)
{
    expect_warning_of_gpus("{\"type\":\"GPU\"}", 2, 6, "");
    expect_warning_of_gpus("{\"type\":\"GPU\"}", 4, 7,
                           "parallelism: the 4 trials that run side by side need 12 GPUs, and this command may use 7, "
                           "so some wait for others to end; for none that waits make parallelism 2\n");
    expect_warning_of_gpus("{\"type\":\"CPU\"}", 4, 0, "");
}
