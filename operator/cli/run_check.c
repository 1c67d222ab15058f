/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/run_check.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/contract/environment.h"
#include "common/contract/exit_code.h"
#include "common/contract/labels.h"
#include "common/gpu_list.h"
#include "common/job/job_roles.h"
#include "common/job/sweep_parameter.h"
#include "common/job/sweep_template.h"
#include "common/job/sweep_value.h"
#include "operator/cli/trained_run.h"
#include "operator/cli/worker_child.h"

#define ANSWERS_MAX (16 * 1024)
#define LINE_MAX_BYTES 256
#define TURN_MS 10
#define MIB ((double)(1 << 20))
/* From here on nearly every model's loss rises to infinity. */
#define SGD_RATE_SUSPICIOUS 10.0
#define ADAMW_RATE_SUSPICIOUS 1.0
/* More than a day at a thousand a second. */
#define STEPS_SUSPICIOUS 100000000

/* ---------------------------------------------------------------- the machine */

static int64_t available_memory(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[LINE_MAX_BYTES];
    int64_t bytes = -1;
    while (file && bytes < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, "MemAvailable:", 13) == 0)
            bytes = strtoll(line + 13, NULL, 10) * 1024;
    if (file)
        fclose(file);
    return bytes;
}

struct run_machine run_machine_read(void)
{
    cpu_set_t set;
    return (struct run_machine){.memory = available_memory(),
                                .processors = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1};
}

/* ---------------------------------------------------------------- warnings */

static void warn_of_rate(const struct optimizer_spec *optimizer, struct buffer *warnings)
{
    double most = optimizer->type == OPTIMIZER_SGD ? SGD_RATE_SUSPICIOUS : ADAMW_RATE_SUSPICIOUS;
    if (optimizer->learning_rate >= most)
        buffer_format(warnings,
                      "training.optimizer.learningRate: %g is very high for %s, whose rates are usually below %g; the "
                      "loss may become infinite\n",
                      optimizer->learning_rate, optimizer_type_name(optimizer->type), most);
    if (optimizer->learning_rate * optimizer->weight_decay >= 1)
        buffer_format(warnings,
                      "training.optimizer.weightDecay: %g at a learning rate of %g removes the whole weight in each "
                      "step; their product should be far below 1\n",
                      optimizer->weight_decay, optimizer->learning_rate);
}

static void warn_of_processors(const struct training_job *job, int64_t trials, int processors, struct buffer *warnings)
{
    const char *plural = processors == 1 ? "" : "s";
    int64_t pods = 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        pods += job->roles[role].count * trials;
    if (pods > processors && trials > 1)
        buffer_format(warnings,
                      "the %lld trials that run side by side have %lld pods, which share %d processor%s, so each trial "
                      "may train more slowly; lower parallelism or workers.replicas\n",
                      (long long)trials, (long long)pods, processors, plural);
    else if (pods > processors)
        buffer_format(warnings,
                      "the job's %lld pods share %d processor%s, so it may train more slowly than with %d worker%s\n",
                      (long long)pods, processors, plural, processors, plural);
}

static void warn_of_memory(const struct json *answer, int64_t trials, int64_t available, struct buffer *warnings)
{
    int64_t processes = json_integer_at(answer, "members", 1) * trials;
    double needed = json_number_at(answer, "memory", 0) * (double)processes;
    if (available < 0 || needed <= (double)available)
        return;
    if (trials > 1)
        buffer_format(warnings, "the %lld trials that run side by side plan %.0f MiB of memory in %lld processes",
                      (long long)trials, needed / MIB, (long long)processes);
    else
        buffer_format(warnings, "the job's %lld processes plan %.0f MiB of memory", (long long)processes, needed / MIB);
    buffer_format(warnings,
                  ", but only %.0f MiB are available now; end other programs, or lower %straining.batchSize or "
                  "workers.replicas\n",
                  (double)available / MIB, trials > 1 ? "parallelism, " : "");
}

void run_check_warn(const struct training_job *job, const struct json *answer, int64_t trials,
                    struct run_machine machine, struct buffer *warnings)
{
    int64_t batch = json_integer_at(answer, "batch", 0), examples = json_integer_at(answer, "examples", 0);
    int64_t steps = json_integer_at(answer, "steps", 0);
    int64_t classes = json_integer_at(answer, "classes", 0), labels = json_integer_at(answer, "labels", 0);
    if (examples > 0 && batch > examples)
        buffer_format(warnings,
                      "a batch of %lld is more than the %lld training examples, so each step takes all of them; for "
                      "more than one step an epoch, lower training.batchSize\n",
                      (long long)batch, (long long)examples);
    if (labels > 0 && classes > labels)
        buffer_format(
            warnings,
            "the model has %lld classes, but the labels only %lld different values; for a model without unused "
            "outputs make model.classes %lld, or the units of the last one of model.layers\n",
            (long long)classes, (long long)labels, (long long)labels);
    if (steps >= STEPS_SUSPICIOUS)
        buffer_format(warnings, "%lld steps take more than a day even at a thousand a second; training.%s says so\n",
                      (long long)steps, job->document.training.steps == FIELD_UNSET ? "epochs" : "steps");
    warn_of_rate(&job->document.training.optimizer, warnings);
    warn_of_memory(answer, trials, machine.memory, warnings);
    warn_of_processors(job, trials, machine.processors, warnings);
}

/* ---------------------------------------------------------------- the worker */

/* Returns whether the pods run something before coxswain-worker, or instead of it. */
static bool is_changed(const struct json *spec)
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        const struct json *pod = json_at(json_member(spec, role_section((enum role)role)), "template.spec");
        if (json_count(json_member(pod, "initContainers")) > 0)
            return true;
        for (const struct json *item = json_first(json_member(pod, "containers")); item; item = json_next(item))
            if (json_member(item, "command"))
                return true;
    }
    return false;
}

struct check {
    const struct manifest *manifest;
    const struct storage_place *place;
    bool continues; /* from the checkpoints in the job's folder */
    struct event_loop *loop;
    const bool *interrupted;
    const struct training_sweep *sweep; /* of which the job is a trial; NULL: it is none */
};

/* Describes the job as its pods see it, in a crew on this machine. */
static struct json *document_of(const struct training_job *job, bool continues)
{
    struct job_document document = job->document; /* a view: nothing of it is released */
    document.checkpoint.enabled &= continues;
    if (!document.checkpoint.enabled)
        document.export_weights = EXPORT_LAST; /* the best ones are beside the checkpoints */
    document.job_name = job->name;
    document.crew = (struct crew_spec){.host_pattern = "localhost", .port = PORT_CREW};
    for (int role = 0; role < ROLE_COUNT; role++)
        if (job->roles[role].count > 0)
            document.crew.roles[document.crew.role_count++] = (struct crew_role){.name = role_name((enum role)role),
                                                                                 .count = job->roles[role].count,
                                                                                 .min_count = FIELD_UNSET,
                                                                                 .max_count = FIELD_UNSET};
    return job_document_to_json(&document);
}

static int start(const struct check *check, const struct training_job *job, const struct json *object,
                 struct worker_child *ret_child, struct error *error)
{
    SCOPED_JSON *document = document_of(job, check->continues);
    SCOPED(worker_call_release) struct worker_call call = {.count = 0};
    worker_call_add(&call, "--check-job", NULL);
    for (const struct json *item = json_first(json_at(object, "spec.storage")); item; item = json_next(item))
        if (!json_member(item, "download")) /* which brings the files later */
            worker_call_add_storage(&call, check->place, object, check->manifest->name_space,
                                    json_string_at(item, "name", ""));
    return worker_child_start(document, NULL, call.words, ret_child, error);
}

/* Returns the status as waitpid gives it; -1: the child was ended because of the time or the user. */
static int await(pid_t child, struct event_loop *loop, const bool *interrupted)
{
    int64_t end_ms = clock_monotonic_ms() + RUN_CHECK_SECONDS * 1000;
    int status = -1;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (event_loop_turn(loop, TURN_MS, NULL) == 0 && !*interrupted && clock_monotonic_ms() < end_ms)
            continue;
        kill(child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
        return -1;
    }
    return status;
}

/* Whether a pod would end with this code, too. */
static bool is_refusal(int status)
{
    int code = status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_CODE_INTERNAL;
    return code == EXIT_CODE_BAD_JOB || code == EXIT_CODE_BAD_DATA || code == EXIT_CODE_NO_MEMORY ||
           code == EXIT_CODE_NO_DEVICE;
}

/* How many trials run at a time. */
static int64_t trials_of(const struct training_sweep *sweep)
{
    int64_t all = sweep ? sweep_trial_count(sweep) : 1;
    return sweep && sweep->parallelism < all ? sweep->parallelism : all;
}

#define BATCH_PATH "coxswain.training.batchSize"
#define REPLICA_BATCH_PATH "coxswain.training.perReplicaBatchSize"

static bool is_batch(const struct sweep_parameter *parameter)
{
    return parameter->path &&
           (strcmp(parameter->path, BATCH_PATH) == 0 || strcmp(parameter->path, REPLICA_BATCH_PATH) == 0);
}

/* Whether trials of a sweep take batches of different sizes. */
static bool searches_batch(const struct training_sweep *sweep)
{
    for (unsigned i = 0; i < sweep->parameter_count; i++)
        if (is_batch(&sweep->parameters[i]))
            return true;
    return false;
}

/* What the worker knows of the first trial. */
struct batch_limit {
    int64_t examples, batch, replicas; /* batch: the first trial's, about which run_check_warn warns */
};

static void warn_of_batch(const struct batch_limit *limit, const char *path, unsigned index, int64_t value,
                          struct buffer *warnings)
{
    int64_t batch = strcmp(path, REPLICA_BATCH_PATH) == 0 ? value * limit->replicas : value;
    if (batch > limit->examples && batch != limit->batch)
        buffer_format(warnings,
                      "spec.parameters[%u] (%s): with the value %lld a batch is more than the %lld training examples, "
                      "so each step takes all of them; leave the value out, or lower it\n",
                      index, path, (long long)value, (long long)limit->examples);
}

void run_check_warn_of_batches(const struct training_sweep *sweep, const struct training_job *trial,
                               const struct json *answer, struct buffer *warnings)
{
    const struct training_spec *training = &trial->document.training;
    struct batch_limit limit = {json_integer_at(answer, "examples", 0), json_integer_at(answer, "batch", 0), 1};
    if (training->per_replica_batch_size > 0)
        limit.replicas = limit.batch / training->per_replica_batch_size;
    for (unsigned i = 0; i < sweep->parameter_count && limit.examples > 0; i++) {
        const struct sweep_parameter *parameter = &sweep->parameters[i];
        if (!is_batch(parameter))
            continue;
        if (parameter->has_integer)
            warn_of_batch(&limit, parameter->path, i, parameter->integer.max, warnings);
        for (const struct json *value = json_first(parameter->values); value; value = json_next(value))
            warn_of_batch(&limit, parameter->path, i, json_integer(value, 0), warnings);
    }
}

static void warn_of_goal(const struct training_sweep *sweep, struct buffer *warnings)
{
    const char *metric = sweep && sweep->objective.metric ? sweep->objective.metric : "";
    if (sweep && sweep->objective.goal == GOAL_MINIMIZE && strcasestr(metric, "accuracy"))
        buffer_format(warnings,
                      "objective.goal: with Minimize the trial with the lowest %s is the best; write goal: Maximize\n",
                      metric);
}

static void warn_of_stopping(const struct training_sweep *sweep, int64_t steps, struct buffer *warnings)
{
    if (sweep && sweep->has_early_stopping && steps > 0 && sweep->early_stopping.min_steps >= steps)
        buffer_format(warnings,
                      "earlyStopping.minSteps: a trial takes %lld steps, so none is stopped or paused after %lld; "
                      "lower minSteps\n",
                      (long long)steps, (long long)sweep->early_stopping.min_steps);
    if (sweep && sweep->has_early_stopping && searches_batch(sweep))
        buffer_append_string(warnings,
                             "earlyStopping: rungs count steps, so trials with larger batches have seen more examples "
                             "at each rung, and those with smaller ones look worse than they are; raise minSteps, or "
                             "search the batch size without earlyStopping\n",
                             NULL);
}

/* Returns the newest answer that the worker has printed whole; NULL: none. */
static struct json *newest_answer(const struct worker_child *child)
{
    SCOPED_BUFFER output = BUFFER_INIT(ANSWERS_MAX);
    struct json *answer = NULL;
    if (worker_child_output(child, &output, NULL) < 0)
        return NULL;
    for (const char *line = buffer_text(&output), *end; (end = strchr(line, '\n')); line = end + 1) {
        struct json *newer;
        if (json_parse(line, (size_t)(end - line), ANSWERS_MAX, &newer, NULL) < 0)
            continue;
        json_free(answer);
        answer = newer;
    }
    return answer;
}

/* A worker that was ended because of the time has answered what it knew by then. */
static int ask_worker(const struct check *check, const struct training_job *job, struct worker_child *child,
                      struct buffer *warnings, struct error *error)
{
    int status = await(child->pid, check->loop, check->interrupted);
    if (is_refusal(status))
        return worker_child_failure(child, "coxswain-worker refuses the job and printed no error", error);
    SCOPED_JSON *answer = newest_answer(child);
    if (*check->interrupted || !answer)
        return 0;
    if (json_at(answer, "misfit"))
        return error_set(error, ERROR_INVALID, "%s", json_string_at(answer, "misfit", ""));
    if (status == -1)
        buffer_format(warnings, "the data was not checked, since opening it takes longer than %d s\n",
                      RUN_CHECK_SECONDS);
    run_check_warn(job, answer, trials_of(check->sweep), run_machine_read(), warnings);
    if (check->sweep)
        run_check_warn_of_batches(check->sweep, job, answer, warnings);
    warn_of_goal(check->sweep, warnings);
    warn_of_stopping(check->sweep, json_integer_at(answer, "steps", 0), warnings);
    return 0;
}

/* ---------------------------------------------------------------- jobs and sweeps */

static int check_by_worker(const struct check *check, const struct training_job *job, const struct json *object,
                           struct buffer *warnings, struct error *error)
{
    struct worker_child child;
    struct error cause = ERROR_INIT;
    if (job->framework != FRAMEWORK_COXSWAIN || is_changed(json_member(object, "spec")))
        return 0;
    if (start(check, job, object, &child, &cause) < 0) {
        if (cause.kind != ERROR_NOT_FOUND)
            return 0;
        *error = cause;
        return -1;
    }
    int result = ask_worker(check, job, &child, warnings, error);
    worker_child_release(&child);
    return result;
}

/* Whether the pods request GPUs of this machine; resource claims and other domains' resources are for others. */
static bool requests_gpus(const struct training_job *job)
{
    enum device_type type = job->document.devices.type;
    const char *resource = job_device_resource(job, ROLE_WORKER, type);
    return type == DEVICE_TYPE_GPU && resource &&
           strncmp(resource, GPU_RESOURCE_DOMAIN, strlen(GPU_RESOURCE_DOMAIN)) == 0;
}

int run_check_gpus(const struct training_job *job, unsigned gpus, bool are_named, struct error *error)
{
    int64_t wanted = requests_gpus(job) ? job_least_devices(job) : 0;
    const char *source = are_named ? " by " ENV_VISIBLE_GPUS : "";
    if (wanted <= gpus)
        return 0;
    if (gpus == 0)
        return error_set(error, ERROR_UNSUPPORTED,
                         "devices.type: the job needs %lld GPU%s, and this command may use none of this machine%s; "
                         "write CPU or Auto, or see docs/gpus.md",
                         (long long)wanted, wanted == 1 ? "" : "s", source);
    return error_set(error, ERROR_UNSUPPORTED,
                     "devices.count: the job's pods need %lld GPUs together, and this command may use %u of this "
                     "machine%s; lower devices.count or workers.replicas",
                     (long long)wanted, gpus, source);
}

/* A trial that waits takes time of the budget. */
void run_check_warn_of_gpus(const struct training_job *job, int64_t trials, unsigned gpus, struct buffer *warnings)
{
    int64_t each = requests_gpus(job) ? job_least_devices(job) : 0, all = each * trials;
    if (all > gpus)
        buffer_format(warnings,
                      "parallelism: the %lld trials that run side by side need %lld GPUs, and this command may use %u, "
                      "so some wait for others to end; for none that waits make parallelism %lld\n",
                      (long long)trials, (long long)all, gpus, (long long)(gpus / each));
}

static int check_job(const struct check *check, const struct json *object, struct buffer *warnings, struct error *error)
{
    SCOPED(training_job_release) struct training_job job;
    SCOPED(gpu_list_release) struct gpu_list gpus;
    gpu_list_read_machine(&gpus);
    if (training_job_parse(object, &job, NULL) < 0)
        return 0;
    if (check_by_worker(check, &job, object, warnings, error) < 0)
        return -1;
    if (run_check_gpus(&job, gpus.count, getenv(ENV_VISIBLE_GPUS) != NULL, error) < 0)
        return -1;
    run_check_warn_of_gpus(&job, trials_of(check->sweep), gpus.count, warnings);
    return 0;
}

/* A job as the sweep makes it; without the values of its parameters. */
static struct json *template_of(const struct manifest *manifest)
{
    struct json *job = json_new_object();
    json_set_string(job, "apiVersion", json_string_at(manifest->effective, "apiVersion", ""));
    json_set_string(job, "kind", TRAINING_JOB_KIND);
    json_set(job, "metadata", json_copy(json_member(manifest->effective, "metadata")));
    json_set(job, "spec", json_copy(json_at(manifest->effective, "spec.template")));
    return job;
}

/* Gives a job the values of a trial. */
static int put_values(const struct training_sweep *sweep, int64_t trial, struct json *job, struct error *error)
{
    struct json *values[SWEEP_PARAMETERS_MAX] = {NULL};
    int result = 0;
    for (unsigned i = 0; i < sweep->parameter_count; i++) {
        int condition = sweep_condition_of(sweep, i);
        if (sweep_applies(sweep, i, condition < 0 ? NULL : values[condition]))
            values[i] = sweep_drawn_value(sweep, i, trial);
        if (values[i] && result == 0)
            result = sweep_parameter_put(&sweep->parameters[i], values[i], json_member(job, "spec"), error);
    }
    for (unsigned i = 0; i < sweep->parameter_count; i++)
        json_free(values[i]);
    return result;
}

int run_check_trial(const struct manifest *manifest, const struct training_sweep *sweep, int64_t trial,
                    struct json **ret_job, struct error *error)
{
    struct json *job = template_of(manifest);
    if (put_values(sweep, trial, job, error) == 0) {
        *ret_job = job;
        return 0;
    }
    json_free(job);
    return -1;
}

/* Whether a job of our own worker reports the sweep's metric, as far as is known: the class of the template may not be in the file. */
static bool reports_metric(const struct training_sweep *sweep, const struct training_job *job)
{
    return job->framework != FRAMEWORK_COXSWAIN || json_member(sweep->template, "trainingClass") ||
           sweep_metric_is_measured(&job->document, sweep->objective.metric);
}

/* The operator starts no trial of a sweep whose first one is no valid job, such as one whose path is to a field that the layer does not
 * have, or one that the sweep cannot pause or go on from. */
static int check_first_trial(const struct training_sweep *sweep, const struct json *trial, struct error *error)
{
    SCOPED(training_job_release) struct training_job job;
    SCOPED_BUFFER values = BUFFER_INIT(RUN_WARNINGS_MAX);
    if (training_job_parse(trial, &job, error) < 0) {
        sweep_parameters_print(sweep, json_member(trial, "spec"), &values);
        return error_wrap(error, "spec.template, with the values of the first trial (%.200s)", buffer_text(&values));
    }
    const char *fault = sweep_template_fault(sweep, json_member(trial, "spec"));
    if (fault)
        return error_set(error, ERROR_INVALID, "%s", fault);
    if (reports_metric(sweep, &job))
        return 0;
    return error_set(error, ERROR_INVALID,
                     "spec.objective.metric: the jobs of the template do not report %s; take validationLoss with "
                     "data.validation, or loss",
                     sweep->objective.metric);
}

/* Early stopping goes by what scripts report while they run. */
static void warn_of_silent_scripts(const struct training_sweep *sweep, struct buffer *warnings)
{
    enum framework framework = spec_framework(sweep->template);
    const char *section = framework_section(framework);
    const struct json *progress = json_member(json_member(sweep->template, section), "progress");
    bool may_report = framework == FRAMEWORK_COXSWAIN || progress || json_member(sweep->template, "trainingClass");
    if (sweep->has_early_stopping && !may_report)
        buffer_format(warnings,
                      "earlyStopping: no trial is stopped or paused, because %s has no progress: say there how the "
                      "operator learns the step and the metric while the script runs (docs/frameworks.md)\n",
                      section);
}

/* A template need not be sound without values, and a trial may fail by its own ones: the sweep is refused if neither can be trained. */
static int check_sweep(const struct check *check, struct buffer *warnings, struct error *error)
{
    SCOPED_JSON *template = template_of(check->manifest);
    SCOPED_JSON *trial = NULL;
    SCOPED(training_sweep_release) struct training_sweep sweep;
    SCOPED_BUFFER unused;
    struct error cause = ERROR_INIT;
    buffer_init(&unused, RUN_WARNINGS_MAX);
    struct check of_trial = *check;
    of_trial.sweep = &sweep;
    if (training_sweep_parse(check->manifest->effective, &sweep, NULL) < 0)
        return 0;
    if (run_check_trial(check->manifest, &sweep, 0, &trial, error) < 0 || check_first_trial(&sweep, trial, error) < 0)
        return -1;
    warn_of_silent_scripts(&sweep, warnings);
    if (check_job(&of_trial, trial, warnings, &cause) == 0)
        return 0;
    if (check_job(check, template, &unused, error) < 0) {
        *error = cause;
        return -1;
    }
    buffer_format(warnings, "the first trial would fail with its values: %s\n", cause.message);
    return 0;
}

int run_check(const struct manifest *manifest, const struct storage_place *place, bool continues,
              struct event_loop *loop, const bool *interrupted, struct buffer *warnings, struct error *error)
{
    const struct check check = {manifest, place, continues && !manifest->is_sweep, loop, interrupted, NULL};
    return manifest->is_sweep ? check_sweep(&check, warnings, error)
                              : check_job(&check, manifest->effective, warnings, error);
}
