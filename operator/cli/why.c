/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/why.h"

#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/environment.h"
#include "common/contract/labels.h"
#include "common/job/enum_words.h"
#include "common/job/training_sweep.h"
#include "operator/cli/command_line.h"
#include "operator/cli/job_condition.h"
#include "operator/cli/pod_place.h"

/* As long as an operator may take to see a new job. */
#define OPERATOR_GRACE_MS 10000

static bool is(const struct json *object, const char *path, const char *word)
{
    return strcmp(json_string_at(object, path, ""), word) == 0;
}

static const char *name_of(const struct json *object)
{
    return json_string_at(object, "metadata.name", "");
}

static int64_t time_at(const struct json *object, const char *path, int64_t otherwise)
{
    int64_t ms;
    return clock_parse(json_string_at(object, path, ""), &ms) ? ms : otherwise;
}

static void print_duration(int64_t ms, struct buffer *out)
{
    char text[24];
    clock_format_duration(ms > 0 ? ms : 0, text, sizeof text);
    buffer_append_string(out, text, NULL);
}

/* One line of what may be several. */
static void print_words(const char *words, struct buffer *out)
{
    size_t length = strlen(words);
    while (length > 0 && strchr("\n .", words[length - 1]))
        length--;
    for (size_t i = 0; i < length; i++)
        buffer_append_byte(out, words[i] == '\n' ? ' ' : words[i], NULL);
}

/* ---------------------------------------------------------------- the job */

/* Each of these says the sentence and returns true, or has nothing to say. */

/* At a change of its spec (suspend, workers) an operator that is there looks at once. */
static bool nobody_looks(const struct why_input *input, struct buffer *out)
{
    const char *manager = json_string_at(input->job, "spec.managedBy", "");
    if (strcmp(manager, MANAGED_BY_MULTIKUEUE) == 0) {
        if (job_condition_true(input->job, "Suspended") || job_condition_true(input->job, "Succeeded") ||
            job_condition_true(input->job, "Failed"))
            return false;
        buffer_format(out,
                      "is run by MultiKueue in another cluster (spec.managedBy): kubectl describe workload %s says in "
                      "which; there cox why says more",
                      json_string_at(input->job, "metadata.name", ""));
        return true;
    }
    bool seen = *job_state(input->job) || job_condition(input->job, "Scheduled");
    if (seen && !job_has_news(input->job))
        return false;
    if (*manager && strcmp(manager, MANAGED_BY_OPERATOR) != 0) {
        buffer_format(out, "waits for the controller %s (spec.managedBy), which has not seen %s yet", manager,
                      seen ? "its last change" : "it");
        return true;
    }
    buffer_format(out, "waits for an operator: none has seen %s yet", seen ? "its last change" : "it");
    if (seen || input->now_ms - time_at(input->job, "metadata.creationTimestamp", input->now_ms) > OPERATOR_GRACE_MS)
        buffer_format(out, "; check that coxswain-operator runs, holds its Lease, and watches namespace %s",
                      json_string_at(input->job, "metadata.namespace", ""));
    return true;
}

static const struct json *pod_that_lives(const struct why_input *input)
{
    for (const struct json *pod = json_first(input->pods); pod; pod = json_next(pod))
        if (!is(pod, "status.phase", "Succeeded") && !is(pod, "status.phase", "Failed"))
            return pod;
    return NULL;
}

/* Then it goes after its pods. */
static bool is_foreground(const struct json *finalizers)
{
    for (const struct json *item = json_first(finalizers); item; item = json_next(item))
        if (strcmp(json_string(item, ""), "foregroundDeletion") == 0)
            return true;
    return false;
}

/* Kubernetes keeps the object until the owner of each finalizer has removed it. */
static bool it_is_being_deleted(const struct why_input *input, struct buffer *out)
{
    int64_t since_ms = time_at(input->job, "metadata.deletionTimestamp", 0);
    if (since_ms == 0)
        return false;
    const struct json *finalizers = json_at(input->job, "metadata.finalizers");
    buffer_append_string(out, "is being deleted, for ", NULL);
    print_duration(input->now_ms - since_ms, out);
    if (json_count(finalizers) == 0) {
        buffer_append_string(out, ", and will be gone soon", NULL);
        return true;
    }
    buffer_format(out, ", and waits for its finalizer%s ", json_count(finalizers) > 1 ? "s" : "");
    for (const struct json *item = json_first(finalizers); item; item = json_next(item))
        buffer_format(out, "%s%s", item == json_first(finalizers) ? "" : ", ", json_string(item, ""));
    const struct json *pod = is_foreground(finalizers) ? pod_that_lives(input) : NULL;
    if (pod)
        buffer_format(out, ": the end of pod %s", name_of(pod));
    return true;
}

static bool it_is_over(const struct why_input *input, struct buffer *out)
{
    static const char *const ends[][2] = {{"Failed", "it has failed"}, {"Succeeded", "it has succeeded"}};
    for (size_t i = 0; i < 2; i++) {
        if (!job_condition_true(input->job, ends[i][0]))
            continue;
        bool diverged = strcmp(job_state_shown(input->job), sweep_trial_state_words[TRIAL_DIVERGED]) == 0;
        buffer_format(out, "waits for nothing: %s: ", diverged ? "it has diverged" : ends[i][1]);
        print_words(json_string_at(job_condition(input->job, ends[i][0]), "message", ""), out);
        return true;
    }
    return false;
}

/* Appends the command that continues an interrupted run, as far as it is known. */
static void print_again(const struct why_input *input, struct buffer *out)
{
    if (input->again)
        buffer_format(out, ", and goes on with: %s", input->again);
    else
        buffer_append_string(out, ", and goes on with the same `cox run` command", NULL);
}

static bool it_was_interrupted(const struct why_input *input, struct buffer *out)
{
    int64_t step = json_integer_at(input->job, "status.progress.step", -1);
    int64_t saved = json_integer_at(input->job, "status.progress.lastCheckpointStep", -1);
    if (!job_condition_true(input->job, JOB_INTERRUPTED))
        return false;
    buffer_format(out, "waits for a user to run it again: it was %s",
                  json_boolean_at(input->job, "spec.suspend", false) ? "suspended" : "interrupted");
    if (step >= 0)
        buffer_format(out, " after step %" PRId64, step);
    if (saved >= 0)
        buffer_format(out, " (its newest checkpoint is of step %" PRId64 ")", saved);
    print_again(input, out);
    return true;
}

/* Its crew has saved, and waits until its sweep suspends it or lets it go on (ANNOTATION_PAUSE_STEP). */
static bool it_waits_at_a_rung(const struct why_input *input, struct buffer *out)
{
    const struct json *labels = json_at(input->job, "metadata.labels");
    const struct json *running = job_condition(input->job, "Running");
    const char *step = json_string_at(running, "message", "");
    if (!is(running, "status", "False") || strncmp(step, PAUSE_MESSAGE, strlen(PAUSE_MESSAGE)) != 0 ||
        json_boolean_at(input->job, "spec.suspend", false))
        return false;
    step += strlen(PAUSE_MESSAGE);
    buffer_format(out, "waits at a rung, after step %.*s, until its sweep %s has decided whether it continues",
                  (int)strcspn(step, ","), step, json_string(json_member(labels, LABEL_SWEEP_NAME), ""));
    return true;
}

/* The sweep's result for the trial that the job is; NULL: the sweep is not known, or has none yet. */
static const struct json *result_of_trial(const struct why_input *input)
{
    int64_t number;
    const char *label = json_string(json_member(json_at(input->job, "metadata.labels"), LABEL_TRIAL), "");
    const struct json *result = json_first(json_at(input->sweep, "status.results"));
    if (!number_parse(label, &number))
        return NULL;
    while (result && number-- > 0)
        result = json_next(result);
    return result;
}

/* Explains what a suspended trial waits for, if its sweep has suspended it, or is itself suspended. */
static bool its_sweep_suspended_it(const struct why_input *input, struct buffer *out)
{
    const struct json *result = result_of_trial(input);
    const char *sweep = json_string_at(input->sweep, "metadata.name", ""), *name = name_of(input->job);
    int64_t step = json_integer_at(result, "step", -1);
    bool is_over = input->sweep && job_is_over(input->sweep);
    bool is_stopped = json_boolean_at(input->sweep, "spec.suspend", false);
    if (is(result, "state", sweep_trial_state_words[TRIAL_STOPPED]))
        buffer_format(out, "waits for nothing: its sweep %s stopped it early, after step %" PRId64, sweep, step);
    else if (is(result, "state", sweep_trial_state_words[TRIAL_PAUSED]) && is_over) {
        buffer_format(out, "waits for nothing: its sweep %s is over, and it had paused after step %" PRId64, sweep,
                      step);
        if (!input->kept)
            buffer_format(out, " (cox resume %s lets it train to its end)", name);
    } else if (result && !is_over && input->kept) {
        buffer_format(out, "waits for a user to run its sweep %s again: its run was interrupted", sweep);
        print_again(input, out);
    } else if (result && is_stopped && !is_over)
        buffer_format(out, "waits for a user to resume its sweep %s, which is suspended (cox sweep resume %s)", sweep,
                      sweep);
    else if (is(result, "state", sweep_trial_state_words[TRIAL_PAUSED]))
        buffer_format(out,
                      "waits, paused after step %" PRId64 ", until it is among the best trials of its sweep %s at that "
                      "rung",
                      step, sweep);
    else
        return false;
    return true;
}

static bool it_is_suspended(const struct why_input *input, struct buffer *out)
{
    if (!json_boolean_at(input->job, "spec.suspend", false))
        return false;
    const struct json *pod = pod_that_lives(input);
    if (pod)
        buffer_format(out, "waits for the end of pod %s: it is being suspended", name_of(pod));
    else if (!its_sweep_suspended_it(input, out))
        buffer_format(out, "waits for a user to resume it: it is suspended (cox resume %s)", name_of(input->job));
    return true;
}

static int64_t back_off_left_ms(const struct why_input *input)
{
    return time_at(input->job, "status.controllerState.backoffUntil", 0) - input->now_ms;
}

/* A crew does not wait for its evaluator. Only the operator's own memory has the time: where another version of the operator
 * keeps it elsewhere, the sentence about the condition Restarting is printed instead. */
static int64_t crew_back_off_left_ms(const struct why_input *input)
{
    int64_t until_ms = 0;
    const struct json *roles = json_at(input->job, "status.controllerState.roles");
    for (const struct json *role = json_first(roles); role; role = json_next(role)) {
        int64_t own_ms = time_at(role, "backoffUntil", 0);
        if (own_ms > until_ms && !is(role, "role", "evaluator"))
            until_ms = own_ms;
    }
    return until_ms - input->now_ms;
}

static bool it_backs_off(const struct why_input *input, struct buffer *out)
{
    int64_t left_ms = crew_back_off_left_ms(input);
    if (left_ms <= 0 || job_condition_true(input->job, "Running"))
        return false;
    buffer_append_string(out, "waits for the end of its back-off in ", NULL);
    print_duration(left_ms, out);
    int64_t restarts = json_integer_at(input->job, "status.restarts.total", 0);
    buffer_format(out, ", after %" PRId64 " restart%s; the last: ", restarts, restarts == 1 ? "" : "s");
    print_words(json_string_at(job_condition(input->job, "Restarting"), "message", ""), out);
    return true;
}

/* Words for reasons of the condition Scheduled why pods cannot be created, and of Suspended if all of them wait for a queue. */
static const char *const holds[][2] = {
    {"QuotaExceeded", "room in the namespace's quota"},
    {"Queued", "its queue to admit it"},
    {"Evicted", "its queue to admit it again"},
    {"KueueMissing", "Kueue"},
    {"PodGroupPending", "the gang scheduler"},
    {"TrainingClassMissing", "its class"},
    {"TrainingClassInvalid", "its class"},
    {"TrainingClassUnknown", "its class"},
    {"InvalidSpec", "a spec that the operator accepts"},
    {"WaitingForPredecessor", "the end of an earlier job of the same name"},
};

static void print_hold(const char *reason, struct buffer *out)
{
    for (size_t i = 0; i < sizeof holds / sizeof *holds; i++) {
        if (strcmp(reason, holds[i][0]) == 0) {
            buffer_format(out, "waits for %s: ", holds[i][1]);
            return;
        }
    }
    buffer_format(out, "waits (%s): ", reason);
}

/* False: there is no condition. */
static bool print_condition(const struct json *condition, struct buffer *out)
{
    if (!condition)
        return false;
    print_hold(json_string_at(condition, "reason", ""), out);
    print_words(json_string_at(condition, "message", ""), out);
    return true;
}

static const struct json *hold_of_queue(const struct json *job)
{
    const struct json *suspended = job_condition(job, "Suspended");
    return is(suspended, "status", "True") && !is(suspended, "reason", "Suspended") ? suspended : NULL;
}

static const struct json *hold_of_pods(const struct json *job)
{
    static const char *const ordinary[] = {"Pending", "Unschedulable", "Suspended", "AllScheduled", ""};
    const struct json *scheduled = job_condition(job, "Scheduled");
    const char *reason = json_string_at(scheduled, "reason", "");
    for (size_t i = 0; i < sizeof ordinary / sizeof *ordinary; i++)
        if (strcmp(reason, ordinary[i]) == 0)
            return NULL;
    return is(scheduled, "status", "False") ? scheduled : NULL;
}

/* The job's Workload has its name. Kueue counts from 0. */
static void print_position(const struct why_input *input, struct buffer *out)
{
    for (const struct json *item = json_first(json_member(input->pending, "items")); item; item = json_next(item))
        if (strcmp(name_of(item), name_of(input->job)) == 0)
            buffer_format(out,
                          "; it is number %" PRId64 " in its LocalQueue and number %" PRId64 " in the ClusterQueue",
                          json_integer_at(item, "positionInLocalQueue", 0) + 1,
                          json_integer_at(item, "positionInClusterQueue", 0) + 1);
}

static bool its_queue_keeps_it(const struct why_input *input, struct buffer *out)
{
    if (!print_condition(hold_of_queue(input->job), out))
        return false;
    print_position(input, out);
    return true;
}

static bool pods_cannot_be_created(const struct why_input *input, struct buffer *out)
{
    return print_condition(hold_of_pods(input->job), out);
}

const char *why_print_hold(const struct json *job, struct buffer *out)
{
    const struct json *queue = hold_of_queue(job), *hold = queue ? queue : hold_of_pods(job);
    if (!hold || job_is_over(job))
        return "";
    buffer_format(out, "%s ", name_of(job));
    print_condition(hold, out);
    return json_string_at(hold, "reason", "");
}

/* ---------------------------------------------------------------- its pods */

static const struct json *pod_condition(const struct json *pod, const char *type)
{
    const struct json *conditions = json_at(pod, "status.conditions");
    for (const struct json *item = json_first(conditions); item; item = json_next(item))
        if (is(item, "type", type))
            return item;
    return NULL;
}

static bool is_unschedulable(const struct json *pod, struct buffer *out)
{
    const struct json *scheduled = pod_condition(pod, "PodScheduled");
    if (!is(scheduled, "status", "False"))
        return false;
    buffer_format(out, "waits for a node for pod %s: ", name_of(pod));
    print_words(json_string_at(scheduled, "message", "the scheduler has not placed it"), out);
    return true;
}

static bool is_terminating(const struct why_input *input, const struct json *pod, struct buffer *out)
{
    int64_t deadline_ms = time_at(pod, "metadata.deletionTimestamp", 0);
    if (deadline_ms == 0)
        return false;
    int64_t asked_ms = deadline_ms - 1000 * json_integer_at(pod, "metadata.deletionGracePeriodSeconds", 0);
    buffer_format(out, "waits for the end of pod %s, which was asked to end ", name_of(pod));
    print_duration(input->now_ms - asked_ms, out);
    buffer_append_string(out, " ago", NULL);
    if (input->now_ms > deadline_ms)
        buffer_format(out, " and should be gone: see whether its node %s is alive",
                      json_string_at(pod, "spec.nodeName", "?"));
    return true;
}

static const struct json *waiting_container(const struct json *pod)
{
    static const char *const lists[] = {"status.initContainerStatuses", "status.containerStatuses"};
    for (size_t i = 0; i < 2; i++)
        for (const struct json *item = json_first(json_at(pod, lists[i])); item; item = json_next(item)) {
            const char *reason = json_string_at(item, "state.waiting.reason", "");
            if (*reason && strcmp(reason, "ContainerCreating") != 0 && strcmp(reason, "PodInitializing") != 0)
                return item;
        }
    return NULL;
}

static bool cannot_start(const struct json *pod, struct buffer *out)
{
    const struct json *container = waiting_container(pod);
    if (!container)
        return false;
    buffer_format(out, "waits for container %s of pod %s to start: %s", json_string_at(container, "name", ""),
                  name_of(pod), json_string_at(container, "state.waiting.reason", ""));
    const char *message = json_string_at(container, "state.waiting.message", "");
    buffer_append_string(out, *message ? ": " : "", NULL);
    print_words(message, out);
    return true;
}

/* The init containers of storage[].s3 and storage[].download. */
static bool is_downloading(const struct json *pod, struct buffer *out)
{
    for (const struct json *item = json_first(json_at(pod, "status.initContainerStatuses")); item;
         item = json_next(item)) {
        const char *name = json_string_at(item, "name", "");
        if (json_at(item, "state.running") &&
            (strncmp(name, "coxswain-download-", 18) == 0 || strncmp(name, "coxswain-fetch-", 15) == 0)) {
            buffer_format(out, "waits for pod %s, which downloads files: kubectl logs %s -c %s shows how far it is",
                          name_of(pod), name_of(pod), name);
            return true;
        }
    }
    return false;
}

static int64_t event_time(const struct json *event)
{
    static const char *const places[] = {"series.lastObservedTime", "eventTime", "deprecatedLastTimestamp",
                                         "metadata.creationTimestamp"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int64_t ms = time_at(event, places[i], 0);
        if (ms > 0)
            return ms;
    }
    return 0;
}

/* The newest complaint about it. */
static const struct json *warning_about(const struct why_input *input, const struct json *pod)
{
    const struct json *newest = NULL;
    for (const struct json *event = json_first(input->events); event; event = json_next(event))
        if (is(event, "type", "Warning") && is(event, "regarding.name", name_of(pod)) &&
            (!newest || event_time(event) >= event_time(newest)))
            newest = event;
    return newest;
}

static bool is_being_made(const struct why_input *input, const struct json *pod, struct buffer *out)
{
    if (!is(pod, "status.phase", "Pending"))
        return false;
    const struct json *warning = warning_about(input, pod);
    buffer_format(out, "waits for pod %s to start", name_of(pod));
    if (warning) {
        buffer_format(out, ": %s: ", json_string_at(warning, "reason", ""));
        print_words(json_string_at(warning, "note", ""), out);
    }
    return true;
}

static bool is_not_ready(const struct why_input *input, const struct json *pod, struct buffer *out)
{
    if (!is(pod, "status.phase", "Running") || is(pod_condition(pod, "Ready"), "status", "True"))
        return false;
    buffer_format(out, "waits for pod %s to be ready", name_of(pod));
    const char *message = json_string_at(job_condition(input->job, "Running"), "message", "");
    buffer_append_string(out, *message ? "; " : "", NULL);
    print_words(message, out);
    return true;
}

static bool a_pod_keeps_it(const struct why_input *input, const struct json *pod, struct buffer *out)
{
    return is_terminating(input, pod, out) || cannot_start(pod, out) || is_downloading(pod, out) ||
           is_unschedulable(pod, out) || is_being_made(input, pod, out) || is_not_ready(input, pod, out);
}

/* In which order pods are looked at: those that the crew has; of these those for which there is room, but not for the rest of the gang
 * (so Volcano says); those that it must be rid of. */
static int turn_of(const struct json *pod)
{
    if (!pod_is_current(pod))
        return 2;
    return is(pod_condition(pod, "PodScheduled"), "reason", "Schedulable") ? 1 : 0;
}

static bool pods_keep_it(const struct why_input *input, struct buffer *out)
{
    for (int turn = 0; turn <= 2; turn++)
        for (const struct json *pod = json_first(input->pods); pod; pod = json_next(pod)) {
            bool over = is(pod, "status.phase", "Succeeded") || is(pod, "status.phase", "Failed");
            if (!over && turn_of(pod) == turn && a_pod_keeps_it(input, pod, out))
                return true;
        }
    return false;
}

/* ---------------------------------------------------------------- nothing in particular */

/* Prints the back-off of a pod that the running crew can do without. */
static void print_back_off(const struct why_input *input, struct buffer *out)
{
    int64_t left_ms = back_off_left_ms(input);
    if (left_ms <= 0)
        return;
    buffer_append_string(out, "; a pod that the crew can run without is replaced in ", NULL);
    print_duration(left_ms, out);
    buffer_append_string(out, ": ", NULL);
    print_words(json_string_at(job_condition(input->job, "Restarting"), "message", ""), out);
}

/* The time is the operator's own memory; where another version keeps it elsewhere, nothing is printed. */
static void print_progress_deadline(const struct why_input *input, struct buffer *out)
{
    int64_t deadline_ms = 1000 * json_integer_at(input->job, "spec.runPolicy.progressDeadlineSeconds", 0);
    int64_t from_ms = time_at(input->job, "status.controllerState.progressedAt", 0);
    int64_t since_ms = input->now_ms - from_ms;
    if (deadline_ms == 0 || from_ms == 0 || since_ms < deadline_ms / 2)
        return;
    buffer_append_string(out, "; no new step for ", NULL);
    print_duration(since_ms, out);
    buffer_append_string(out, ", and progressDeadlineSeconds allows ", NULL);
    print_duration(deadline_ms, out);
    if (since_ms < deadline_ms)
        return;
    buffer_append_string(out, ": ", NULL);
    print_words(json_string_at(job_condition(input->job, "Running"), "message", ""), out);
}

/* Nothing that it waits for, and yet what its owner must know. */
static void print_failing_saves(const struct why_input *input, struct buffer *out)
{
    const struct json *condition = job_condition(input->job, "CheckpointsFailing");
    if (!is(condition, "status", "True"))
        return;
    buffer_format(out, "; but it cannot save (%s): ", json_string_at(condition, "reason", ""));
    print_words(json_string_at(condition, "message", ""), out);
}

/* Appends a condition's message, after `before`, if the condition holds and the job is not over. */
static void print_remark(const struct why_input *input, const char *type, const char *before, struct buffer *out)
{
    const struct json *condition = job_condition(input->job, type);
    if (!is(condition, "status", "True") || job_is_over(input->job))
        return;
    buffer_append_string(out, before, NULL);
    print_words(json_string_at(condition, "message", ""), out);
}

/* It has quota for fewer workers than it asks for. */
static void print_growth(const struct why_input *input, struct buffer *out)
{
    const struct json *condition = job_condition(input->job, "Scheduled");
    if (!is(condition, "reason", "GrowthQueued"))
        return;
    buffer_append_string(out, "; ", NULL);
    print_words(json_string_at(condition, "message", ""), out);
}

/* Its pods run, and members cannot reach each other. */
static bool strangers_keep_members_out(const struct why_input *input, struct buffer *out)
{
    const struct json *condition = job_condition(input->job, "JoinBlocked");
    if (!is(condition, "status", "True"))
        return false;
    buffer_append_string(out, "waits for members to join: ", NULL);
    print_words(json_string_at(condition, "message", ""), out);
    return true;
}

/* Reports a running job, and what it waits for although it can do without. */
static bool it_runs(const struct why_input *input, struct buffer *out)
{
    if (!job_condition_true(input->job, "Running"))
        return false;
    SCOPED_BUFFER wait = BUFFER_INIT(WHY_MAX / 2);
    bool waits =
        pods_cannot_be_created(input, &wait) || pods_keep_it(input, &wait) || strangers_keep_members_out(input, &wait);
    int64_t step = json_integer_at(input->job, "status.progress.step", -1);
    int64_t total = json_integer_at(input->job, "status.progress.totalSteps", -1);
    int64_t left = json_integer_at(input->job, "status.progress.secondsRemaining", -1);
    buffer_append_string(out, waits ? "runs" : "waits for nothing: it runs", NULL);
    if (step >= 0 && total > 0)
        buffer_format(out, ", step %" PRId64 " of %" PRId64, step, total);
    if (left >= 0) {
        buffer_append_string(out, ", ", NULL);
        print_duration(1000 * left, out);
        buffer_append_string(out, " left", NULL);
    }
    if (waits)
        buffer_format(out, ", and %s", buffer_text(&wait));
    print_growth(input, out);
    print_back_off(input, out);
    print_progress_deadline(input, out);
    print_failing_saves(input, out);
    return true;
}

static bool what_the_conditions_say(const struct why_input *input, struct buffer *out)
{
    static const char *const types[] = {"Restarting", "Running", "Scheduled"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct json *condition = job_condition(input->job, types[i]);
        const char *wanted = i == 0 ? "True" : "False";
        if (!is(condition, "status", wanted) || !*json_string_at(condition, "message", ""))
            continue;
        buffer_format(out, "waits (%s): ", json_string_at(condition, "reason", ""));
        print_words(json_string_at(condition, "message", ""), out);
        return true;
    }
    buffer_append_string(out, "waits for its pods to be created", NULL);
    return true;
}

void why_print(const struct why_input *input, struct buffer *out)
{
    static bool (*const answers[])(const struct why_input *input, struct buffer *out) = {
        it_was_interrupted, it_is_being_deleted,     nobody_looks, it_is_over, it_is_suspended,
        it_waits_at_a_rung, its_queue_keeps_it,      it_backs_off, it_runs,    pods_cannot_be_created,
        pods_keep_it,       what_the_conditions_say,
    };
    buffer_format(out, "%s ", name_of(input->job));
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (answers[i](input, out)) {
            print_remark(input, "Straggling", "; but its ", out);
            print_remark(input, "AvoidingNodes", "; ", out);
            return;
        }
}
