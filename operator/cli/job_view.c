/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/exit_code.h"
#include "common/contract/labels.h"
#include "common/contract/status_document.h"
#include "common/job/training_job.h"
#include "common/memory.h"
#include "operator/cli/chief_line.h"
#include "operator/cli/job_condition.h"
#include "operator/cli/pod_container.h"
#include "operator/cli/why.h"

void job_view_init(struct job_view *view, const char *name_space, const char *name)
{
    *view = (struct job_view){.step = -1,
                              .total_steps = -1,
                              .seconds_left = -1,
                              .loss = NAN,
                              .examples_per_second = NAN,
                              .accuracy = NAN,
                              .validation_loss = NAN,
                              .rmse = NAN,
                              .validation_step = -1,
                              .stale_step = -1,
                              .goodput = NAN,
                              .recovery = {.step = -1},
                              .loss_stride = 1};
    snprintf(view->name, sizeof view->name, "%s", name);
    snprintf(view->name_space, sizeof view->name_space, "%s", name_space);
    snprintf(view->unit, sizeof view->unit, "examples");
    job_score_init(&view->best);
    buffer_init(&view->events, VIEW_EVENTS_MAX);
}

void job_view_release(struct job_view *view)
{
    buffer_release(&view->events);
    free(view->pods);
    view->pods = NULL;
    view->pod_count = view->pod_room = 0;
}

/* Returns whether the pod has the seat whose log is followed: the chief's, else worker 0's. */
static bool job_view_shows_log(const struct job_view *view, const struct pod_line *line)
{
    const char *role = job_view_pod(view, "chief", 0) ? "chief" : "worker";
    return strcmp(line->role, role) == 0 && line->index == 0;
}

/* ---------------------------------------------------------------- the job */

/* The status tells the last loss before the log tells the earlier ones, and a new chief may repeat steps. */
static void drop_losses_from(struct job_view *view, int64_t step)
{
    while (step >= 0 && view->loss_count > 0 && view->loss_steps[view->loss_count - 1] >= step)
        view->loss_count--;
}

/* Keeps every loss_stride-th value, of the view's step; when there is no more room, every second one of them goes. */
static void keep_loss(struct job_view *view, double loss)
{
    drop_losses_from(view, view->step);
    if (++view->loss_skipped < view->loss_stride)
        return;
    view->loss_skipped = 0;
    if (view->loss_count == VIEW_LOSSES_MAX) {
        for (unsigned i = 0; i < VIEW_LOSSES_MAX / 2; i++) {
            view->losses[i] = view->losses[2 * i];
            view->loss_steps[i] = view->loss_steps[2 * i];
        }
        view->loss_count = VIEW_LOSSES_MAX / 2;
        view->loss_stride *= 2;
    }
    view->loss_steps[view->loss_count] = view->step;
    view->losses[view->loss_count++] = loss;
}

/* Where the step is not newer, the log has told a loss that is as new, unless there are no steps at all. */
static void take_loss(struct job_view *view, double loss, int64_t step, bool is_newer_step)
{
    if (is_newer_step || step < 0 || !isfinite(view->loss))
        view->loss = loss;
    if (is_newer_step)
        keep_loss(view, loss);
}

struct job_score job_view_score(const struct job_view *view)
{
    return view->best.best_step >= 0
               ? view->best
               : (struct job_score){
                     .accuracy = view->accuracy, .loss = view->validation_loss, .rmse = view->rmse, .best_step = -1};
}

/* The operator's figures are some seconds old: an evaluation that the log has told since then is newer. */
static void take_metric(struct job_view *view, const struct json *metric, int64_t step, bool is_newer_step)
{
    const char *name = json_string_at(metric, "name", "");
    double value = strtod(json_string_at(metric, "value", "nan"), NULL);
    bool newer = step > view->validation_step;
    if (strcmp(name, METRIC_VALIDATION_ACCURACY) == 0)
        view->accuracy = newer ? value : view->accuracy;
    else if (strcmp(name, METRIC_VALIDATION_RMSE) == 0)
        view->rmse = newer ? value : view->rmse;
    else if (strcmp(name, METRIC_VALIDATION_LOSS) == 0)
        view->validation_loss = newer ? value : view->validation_loss;
    else if (strcmp(name, "loss") == 0)
        take_loss(view, value, step, is_newer_step);
}

/* Also from the status of pods that are gone: the best weights outlive them. */
static void take_best(struct job_view *view, const struct json *job)
{
    struct job_score score = job_score(job);
    if (score.best_step >= 0)
        view->best = score;
}

static void take_progress(struct job_view *view, const struct json *progress)
{
    int64_t step = json_integer_at(progress, "step", -1);
    bool is_newer_step = step > view->step;
    view->total_steps = json_integer_at(progress, "totalSteps", view->total_steps);
    if (step == view->stale_step)
        return;
    if (is_newer_step) {
        view->step = step;
        view->seconds_left = json_integer_at(progress, "secondsRemaining", view->seconds_left);
        view->examples_per_second = strtod(json_string_at(progress, "examplesPerSecond", "nan"), NULL);
    }
    for (const struct json *item = json_first(json_member(progress, "metrics")); item; item = json_next(item))
        take_metric(view, item, step, is_newer_step);
}

/* Training goes on meanwhile: nothing else would tell before it ends, and what it has learnt is lost. */
static void take_failing_checkpoints(struct job_view *view, const struct json *condition)
{
    bool failing = strcmp(json_string_at(condition, "status", ""), "True") == 0;
    bool saved = strcmp(json_string_at(condition, "reason", ""), "Saved") == 0;
    if (failing && !view->checkpoints_failing)
        buffer_format(&view->events, "warning: %s\n",
                      json_string_at(condition, "message", "no checkpoint can be stored"));
    else if (saved && view->checkpoints_failing)
        buffer_format(&view->events, "%s\n", json_string_at(condition, "message", "checkpoints are saved again"));
    view->checkpoints_failing = failing;
}

static void take_conditions(struct job_view *view, const struct json *conditions)
{
    for (const struct json *item = json_first(conditions); item; item = json_next(item)) {
        const char *type = json_string_at(item, "type", "");
        if (strcmp(type, "CheckpointsFailing") == 0)
            take_failing_checkpoints(view, item);
        bool final = strcmp(type, "Failed") == 0 || strcmp(type, "Succeeded") == 0;
        if (!final || strcmp(json_string_at(item, "status", ""), "True") != 0)
            continue;
        snprintf(view->reason, sizeof view->reason, "%s", json_string_at(item, "reason", ""));
        snprintf(view->message, sizeof view->message, "%s", json_string_at(item, "message", ""));
    }
}

/* Shows why pods failed, except for what is in the chief's log, which is shown anyway, or is quoted by the job's own end. Called when the
 * job's state has changed. */
static void tell_failure_line(struct job_view *view)
{
    for (unsigned i = 0; i < view->pod_count; i++) {
        struct pod_line *line = &view->pods[i];
        if (!*line->failure_line || line->failure_line_printed || (line->earlier && !view->was_over) ||
            (job_view_shows_log(view, line) && !line->failure_line_own))
            continue;
        line->failure_line_printed = true;
        if (!strstr(view->message, line->failure_line))
            buffer_format(&view->events, "%s-%lld | %s\n", line->role, (long long)line->index, line->failure_line);
    }
}

static bool is_script(const struct json *job)
{
    return spec_framework(json_member(job, "spec")) != FRAMEWORK_COXSWAIN;
}

/* A crew that hangs restarts although no pod has failed, so nothing else says why. */
static void tell_state(struct job_view *view, const struct json *job, const char *state)
{
    const struct json *restarting = job_condition(job, "Restarting");
    bool hung = strcmp(state, "Restarting") == 0 &&
                strcmp(json_string_at(restarting, "reason", ""), "ProgressDeadlineExceeded") == 0;
    buffer_format(&view->events, "%s is %s", view->name, state);
    if (hung)
        buffer_format(&view->events, ": %s", json_string_at(restarting, "message", ""));
    if (job_condition_true(job, "Suspended") && json_boolean_at(job, "spec.suspend", false))
        buffer_format(&view->events, "; to let it go on: cox resume %s", view->name);
    buffer_append_byte(&view->events, '\n', NULL);
}

/* What the job waits for, once for each reason: figures in the message, such as a quota's, may change often. */
static void tell_hold(struct job_view *view, const struct json *job)
{
    SCOPED_BUFFER sentence = BUFFER_INIT(WHY_MAX);
    const char *reason = why_print_hold(job, &sentence);
    if (*reason && strcmp(reason, view->hold) != 0)
        buffer_format(&view->events, "%s\n", buffer_text(&sentence));
    snprintf(view->hold, sizeof view->hold, "%s", reason);
}

bool job_view_succeeded(const struct job_view *view)
{
    return strcmp(view->state, "Succeeded") == 0;
}

bool job_view_over(const struct job_view *view)
{
    return job_view_succeeded(view) || strcmp(view->state, "Failed") == 0;
}

/* The state and the step of a job that continues are those of pods that are gone. */
static void take_first_sight(struct job_view *view, const struct json *job)
{
    view->was_over = job_is_over(job);
    if (view->since_ms > 0 && !view->was_over)
        view->stale_step = json_integer_at(job, "status.progress.step", -1);
}

void job_view_take_job(struct job_view *view, const struct json *job)
{
    const char *state = job_state(job);
    view->deleted = false;
    snprintf(view->strategy, sizeof view->strategy, "%s", json_string_at(job, "spec.coxswain.strategy.type", ""));
    view->loss_alone =
        is_script(job) || strcmp(json_string_at(job, "spec.coxswain.model.loss", ""), "MeanSquaredError") == 0;
    view->workers = json_integer_at(job, "spec.workers.replicas", 1);
    view->restarts = json_integer_at(job, "status.restarts.total", view->restarts);
    view->suspended = json_boolean_at(job, "spec.suspend", false) && !job_is_over(job);
    if (!view->seen)
        take_first_sight(view, job);
    take_progress(view, json_at(job, "status.progress"));
    take_best(view, job);
    take_conditions(view, json_at(job, "status.conditions"));
    if (*state && strcmp(state, view->state) != 0) {
        if (view->seen || view->since_ms == 0 || view->was_over)
            tell_state(view, job, state);
        snprintf(view->state, sizeof view->state, "%s", state);
        tell_failure_line(view);
    }
    tell_hold(view, job);
    view->seen = true;
}

/* ---------------------------------------------------------------- pods */

static struct pod_line *pod_named(struct job_view *view, const char *name)
{
    for (unsigned i = 0; i < view->pod_count; i++) {
        if (strcmp(view->pods[i].name, name) == 0)
            return &view->pods[i];
    }
    return NULL;
}

static bool is_ready(const struct json *pod)
{
    for (const struct json *item = json_first(json_at(pod, "status.conditions")); item; item = json_next(item)) {
        if (strcmp(json_string_at(item, "type", ""), "Ready") == 0)
            return strcmp(json_string_at(item, "status", ""), "True") == 0;
    }
    return false;
}

/* The last line of Coxswain's worker, which is its termination message, too. */
static bool is_exit_line(const char *line)
{
    int code, end = 0;
    return sscanf(line, "exit %d (%*[^)])%n", &code, &end) == 1 && end > 0;
}

/* How the trainer ended, in a word or two. */
static void describe_end(struct pod_line *line, const struct json *terminated)
{
    int code = (int)json_integer_at(terminated, "exitCode", -1);
    SCOPED_BUFFER words = BUFFER_INIT(sizeof line->failure_line);
    const char *message = json_string_at(terminated, "message", "");
    if (code > 0 && code != EXIT_CODE_LEFT)
        failure_line_append(message, code, &words);
    line->failure_line_own = is_exit_line(message);
    snprintf(line->failure_line, sizeof line->failure_line, "%s", buffer_text(&words));
    if (code == 0)
        snprintf(line->words, sizeof line->words, "done");
    else if (code == 137)
        snprintf(line->words, sizeof line->words, "killed");
    else
        snprintf(line->words, sizeof line->words, "ended with %d", code);
}

void pod_line_describe(struct pod_line *line, const struct json *pod)
{
    const char *trainer = pod_trainer(pod);
    const struct json *container = pod_container_status(pod, trainer);
    const struct json *terminated = json_at(container, "state.terminated");
    const char *phase = json_string_at(pod, "status.phase", "Pending");
    const char *process = json_string_at(container, "containerID", "");
    const char *waiting = json_string_at(container, "state.waiting.reason", "");
    snprintf(line->address, sizeof line->address, "%s", json_string_at(pod, "status.podIP", ""));
    snprintf(line->container, sizeof line->container, "%s", trainer);
    line->container_ended = pod_container_ended(pod, trainer);
    line->ready = is_ready(pod);
    line->ended = strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
    line->process = strncmp(process, "process://", 10) == 0 ? strtoll(process + 10, NULL, 10) : 0;
    if (terminated)
        describe_end(line, terminated);
    else if (line->ended)
        snprintf(line->words, sizeof line->words, "ended");
    else if (line->ready)
        snprintf(line->words, sizeof line->words, "ready");
    else if (strstr(waiting, "Error") || strstr(waiting, "BackOff"))
        snprintf(line->words, sizeof line->words, "%s", waiting);
    else
        snprintf(line->words, sizeof line->words, "%s", strcmp(phase, "Running") == 0 ? "running" : "starting");
}

/* Leaves out the two steps on the way to "ready", which are of no interest. */
static void say_pod(struct job_view *view, const struct pod_line *line, const char *before)
{
    bool routine = strcmp(line->words, "starting") == 0 || strcmp(line->words, "running") == 0;
    if (!routine && strcmp(line->words, before) != 0)
        buffer_format(&view->events, "%s %lld: %s (%s)\n", line->role, (long long)line->index, line->words, line->name);
}

static int pod_compare(const void *left, const void *right)
{
    const struct pod_line *a = left, *b = right;
    int roles = strcmp(a->role, b->role);
    if (roles != 0)
        return roles;
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    /* Names of one place differ in the number at their end: of two digits it is the later one. */
    size_t lengths[] = {strlen(a->name), strlen(b->name)};
    return lengths[0] != lengths[1] ? (lengths[0] < lengths[1] ? -1 : 1) : strcmp(a->name, b->name);
}

static void pod_remove(struct job_view *view, struct pod_line *line)
{
    const struct pod_line *end = view->pods + view->pod_count--;
    memmove(line, line + 1, (size_t)(end - line - 1) * sizeof *line);
}

static struct pod_line *pod_add(struct job_view *view)
{
    if (view->pod_count == view->pod_room) {
        view->pod_room = view->pod_room ? 2 * view->pod_room : 16;
        view->pods = memory_resize(view->pods, view->pod_room, sizeof *view->pods);
    }
    struct pod_line *line = &view->pods[view->pod_count++];
    *line = (struct pod_line){.index = 0};
    return line;
}

/* Creation times have whole seconds. */
static bool is_earlier(const struct job_view *view, const struct json *pod)
{
    int64_t created_ms;
    return view->since_ms > 0 && clock_parse(json_string_at(pod, "metadata.creationTimestamp", ""), &created_ms) &&
           created_ms / 1000 < view->since_ms / 1000;
}

void job_view_take_pod(struct job_view *view, const char *name, const struct json *pod)
{
    struct pod_line *line = pod_named(view, name);
    if (!pod) {
        if (line)
            pod_remove(view, line);
        return;
    }
    if (!line)
        line = pod_add(view);
    char before[sizeof line->words];
    memcpy(before, line->words, sizeof before);
    const struct json *labels = json_at(pod, "metadata.labels");
    snprintf(line->name, sizeof line->name, "%s", name);
    snprintf(line->role, sizeof line->role, "%s", json_string(json_member(labels, LABEL_ROLE), "pod"));
    line->index = strtoll(json_string(json_member(labels, LABEL_INDEX), "0"), NULL, 10);
    line->earlier = is_earlier(view, pod);
    pod_line_describe(line, pod);
    if (!line->earlier)
        say_pod(view, line, before);
    qsort(view->pods, view->pod_count, sizeof *view->pods, pod_compare);
}

const struct pod_line *job_view_pod(const struct job_view *view, const char *role, int64_t index)
{
    const struct pod_line *found = NULL;
    for (unsigned i = 0; i < view->pod_count; i++) {
        const struct pod_line *line = &view->pods[i];
        if (strcmp(line->role, role) == 0 && line->index == index && (!found || found->ended))
            found = line;
    }
    return found;
}

/* ---------------------------------------------------------------- the chief's log */

/* "warning: worker 1 is a straggler: its part …" (with parameter servers without "warning: ") and, later, "worker 1 keeps up again". */
#define STRAGGLER_BEGINS " is a straggler: "
#define STRAGGLER_ENDS " keeps up again"
/* For so long what the chief tells itself is better than what its lines say. */
#define DOCUMENT_FRESH_MS 3000

/* "… 12.3 ms  20812 examples/s  8s left" */
static void take_rate(struct job_view *view, const char *line, int64_t now_ms)
{
    double rate;
    char unit[sizeof view->unit];
    bool told = view->document_ms > 0 && now_ms - view->document_ms < DOCUMENT_FRESH_MS;
    if (chief_line_rate(line, &rate, unit)) {
        view->examples_per_second = told ? view->examples_per_second : rate;
        memcpy(view->unit, unit, sizeof unit);
    }
    if (told)
        return;
    const char *left = strstr(line, "/s  ");
    char *end;
    int64_t seconds = 0;
    if (!left || !strstr(left, " left"))
        return;
    for (const char *at = left + 4; *at && *at != ' '; at = end + 1) {
        int64_t number = strtoll(at, &end, 10);
        if (end == at)
            return;
        seconds += number * (*end == 'd' ? 86400 : *end == 'h' ? 3600 : *end == 'm' ? 60 : 1);
    }
    view->seconds_left = seconds;
}

static void take_document_step(struct job_view *view, const struct status_document *document, int64_t now_ms)
{
    view->step = document->step;
    view->last_step_ms = now_ms;
    view->doing[0] = '\0';
    const struct status_metric *loss = status_document_metric(document, "loss");
    if (!loss)
        return;
    view->loss = loss->value;
    keep_loss(view, view->loss);
}

/* Which step a new chief began with, only its log tells: the document has what is done by now. */
void job_view_take_document(struct job_view *view, const struct status_document *document, int64_t now_ms)
{
    if (document->step < 0 || document->total_steps < 0)
        return;
    view->document_ms = now_ms;
    view->total_steps = document->total_steps;
    if (document->examples_per_second > 0)
        view->examples_per_second = document->examples_per_second;
    if (document->seconds_remaining >= 0)
        view->seconds_left = document->seconds_remaining;
    if (!view->log_is_new && document->step > view->step)
        take_document_step(view, document, now_ms);
}

/* A new chief's first step ends what its predecessor's loss began. */
static void take_first_step(struct job_view *view, int64_t step, int64_t now_ms)
{
    if (view->log_is_new && view->step >= 0)
        view->recovery = (struct view_recovery){step, view->step >= step ? view->step - step + 1 : 0, now_ms};
    view->log_is_new = false;
}

static bool take_step(struct job_view *view, const char *line, int64_t now_ms)
{
    struct chief_step told;
    if (!chief_line_step(line, &told))
        return false;
    int64_t step = told.step;
    if (view->first_step_ms == 0)
        view->first_step_ms = now_ms;
    bool told_before = !view->log_is_new && step <= view->step;
    take_first_step(view, step, now_ms);
    if (told_before)
        return true;
    view->last_step_ms = now_ms;
    view->step = step;
    view->total_steps = told.total_steps;
    view->loss = told.loss;
    view->doing[0] = '\0';
    keep_loss(view, told.loss);
    take_rate(view, line, now_ms);
    return true;
}

static bool take_validation(struct job_view *view, const char *line)
{
    struct chief_validation told;
    if (!chief_line_validation(line, &told))
        return false;
    view->validation_step = told.step;
    view->validation_loss = told.loss;
    view->accuracy = told.accuracy;
    view->rmse = told.rmse;
    return true;
}

static bool take_recovery(struct job_view *view, const char *line, int64_t now_ms)
{
    int64_t step;
    if (!chief_line_whole_again(line, &step))
        return false;
    view->recovery = (struct view_recovery){step, strstr(line, "one step was repeated") != NULL, now_ms};
    view->doing[0] = '\0';
    buffer_format(&view->events, "chief: %s\n", line);
    return true;
}

/* The chief's error line says the same as the summary does, with paths inside its pod. */
static bool take_failure_line(struct job_view *view, const char *line)
{
    static const char *const known[] = {"held-out examples: ", "loss ",         "goodput ",
                                        "checkpoints  ",       "TensorBoard  ", "weights      "};
    if (view->step < 0 || view->step != view->total_steps)
        return false;
    (void)sscanf(line, "goodput %lf", &view->goodput);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strncmp(line, known[i], strlen(known[i])) == 0)
            return true;
    }
    return false;
}

/* Where pods share processors, keeps back the line about a straggler until it has been one for a while. If it keeps up again before that,
 * neither line is shown. Returns whether the line is kept back or dropped. */
static bool take_straggler(struct job_view *view, const char *line, int64_t now_ms)
{
    bool begins = strstr(line, STRAGGLER_BEGINS) != NULL;
    bool ends = strstr(line, STRAGGLER_ENDS) != NULL, waits = *view->straggler != '\0';
    if (waits && !ends && now_ms - view->straggler_ms >= VIEW_STRAGGLER_MS) {
        buffer_format(&view->events, "chief: %s\n", view->straggler);
        view->straggler[0] = '\0';
    }
    if (!view->shares_processors || !(begins || (ends && waits)))
        return false;
    snprintf(view->straggler, sizeof view->straggler, "%s", begins ? line : "");
    view->straggler_ms = now_ms;
    return true;
}

void job_view_begin_log(struct job_view *view)
{
    view->straggler[0] = '\0';
    view->log_is_new = true;
    view->trained_examples = 0;
}

void job_view_take_log(struct job_view *view, const char *line, int64_t now_ms)
{
    int64_t checkpoint_step; /* the view has it from the status */
    if (take_straggler(view, line, now_ms) || take_step(view, line, now_ms) || take_validation(view, line) ||
        take_recovery(view, line, now_ms) || chief_line_checkpoint(line, &checkpoint_step) ||
        chief_line_trained(line, &view->trained_examples, &view->trained_seconds) || take_failure_line(view, line) ||
        is_exit_line(line))
        return;
    snprintf(view->doing, sizeof view->doing, "%s", line);
    if (view->since_ms == 0 || !view->was_over)
        buffer_format(&view->events, "chief: %s\n", line);
}
