/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/pod_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/environment.h"
#include "common/contract/labels.h"
#include "common/contract/main_container.h"
#include "common/job/enum_words.h"
#include "operator/controller/observed/owner.h"

static const char *const phase_names[] = {
#define X(name, text) [name] = (text),
    POD_PHASES(X)
#undef X
};

static enum pod_phase phase_parse(const char *name)
{
    for (unsigned i = 0; i < sizeof phase_names / sizeof *phase_names; i++)
        if (strcmp(name, phase_names[i]) == 0)
            return (enum pod_phase)i;
    return POD_UNKNOWN;
}

static int64_t time_at(const struct json *object, const char *path)
{
    int64_t ms;
    return clock_parse(json_string_at(object, path, ""), &ms) ? ms : FIELD_UNSET;
}

static const char *label(const struct json *pod, const char *key)
{
    return json_string(json_member(json_at(pod, "metadata.labels"), key), "");
}

/* Labels are strings; -1 for what is no number, or none that an operator ever counted up to. */
#define COUNTER_MAX 1000000000000
static int64_t number_label(const struct json *pod, const char *key)
{
    const char *text = label(pod, key);
    char *end;
    long long number = strtoll(text, &end, 10);
    return *text != '\0' && *end == '\0' && number >= 0 && number <= COUNTER_MAX ? number : -1;
}

/* Returns the element of `list` in which `key` is `value`. */
static const struct json *find(const struct json *list, const char *key, const char *value)
{
    for (const struct json *item = json_first(list); item; item = json_next(item))
        if (strcmp(json_string(json_member(item, key), ""), value) == 0)
            return item;
    return NULL;
}

static const struct json *condition(const struct json *pod, const char *type)
{
    return find(json_at(pod, "status.conditions"), "type", type);
}

static bool condition_true(const struct json *pod, const char *type)
{
    return strcmp(json_string_at(condition(pod, type), "status", ""), "True") == 0;
}

#define GRACE_SECONDS_MAX 1000000000

static int64_t grace_ms(const struct json *pod)
{
    int64_t seconds = json_integer_at(pod, "metadata.deletionGracePeriodSeconds", 0);
    return seconds >= 0 && seconds <= GRACE_SECONDS_MAX ? 1000 * seconds : 0;
}

/* Few pods have ended, and nobody asks for the conditions of the others. */
static void read_conditions(const struct json *pod, const struct pod_view *view, struct buffer *out)
{
    if (!pod_view_ended(view) && !pod_view_deleting(view))
        return;
    const struct json *list = json_at(pod, "status.conditions");
    for (const struct json *item = json_first(list); item; item = json_next(item))
        buffer_format(out, "%s=%s\n", json_string_at(item, "type", ""), json_string_at(item, "status", ""));
}

bool pod_view_name_of_place(const struct pod_view *pod, char ret_name[POD_PLACE_NAME_MAX])
{
    int length = snprintf(ret_name, POD_PLACE_NAME_MAX, "%s-%s-%" PRId64 "-%" PRId64, pod->job_name,
                          role_name(pod->role), pod->index, pod->incarnation);
    return length > 0 && length < POD_PLACE_NAME_MAX;
}

/* A pod with another name was not made by an operator, or not for this place. */
static bool has_name_of_place(const struct pod_view *view)
{
    char name[POD_PLACE_NAME_MAX];
    return pod_view_name_of_place(view, name) && strcmp(view->name, name) == 0;
}

static bool is_told(const struct json *environment, const char *name, const char *value)
{
    return strcmp(json_string_at(find(environment, "name", name), "value", ""), value) == 0;
}

/* Returns whether the labels match the environment. Nobody can change the environment of a pod, which identifies and fences its process;
 * labels alone can be changed. */
static bool is_told_its_labels(const struct json *pod)
{
    static const char *const told[][2] = {{ENV_JOB_UID, LABEL_JOB_UID},
                                          {ENV_ROLE, LABEL_ROLE},
                                          {ENV_INDEX, LABEL_INDEX},
                                          {ENV_INCARNATION, LABEL_INCARNATION},
                                          {ENV_ATTEMPT, LABEL_ATTEMPT}};
    const struct json *environment = json_member(main_container(pod), "env");
    bool all = true;
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        all &= is_told(environment, told[i][0], label(pod, told[i][1]));
    return all;
}

static void read_metadata(const struct json *pod, struct pod_view *view)
{
    view->name = json_string_at(pod, "metadata.name", "");
    view->uid = json_string_at(pod, "metadata.uid", "");
    struct owner owner = owner_of(pod);
    view->job_name = owner.is_job ? owner.name : label(pod, LABEL_JOB_NAME);
    view->job_uid = label(pod, LABEL_JOB_UID);
    view->owner_uid = owner.uid;
    view->incarnation = number_label(pod, LABEL_INCARNATION);
    view->attempt = number_label(pod, LABEL_ATTEMPT);
    view->index = number_label(pod, LABEL_INDEX);
    view->member = role_parse(label(pod, LABEL_ROLE), &view->role) && view->index >= 0 && has_name_of_place(view);
    view->current = strcmp(label(pod, LABEL_CURRENT), "true") == 0;
    view->created_ms = time_at(pod, "metadata.creationTimestamp");
    view->deletion_ms = time_at(pod, "metadata.deletionTimestamp");
    view->grace_ms = grace_ms(pod);
    if (view->deletion_ms != FIELD_UNSET)
        view->deletion_ms -= view->grace_ms;
    view->adoptable = view->member && !owner_is_any(pod) && is_told_its_labels(pod);
}

/* Returns the message of the scheduler that has found no node for the pod. Volcano has one for all pods of a gang that does not fit; those
 * that would fit have the reason Schedulable. */
static const char *scheduler_refusal(const struct json *pod)
{
    const struct json *scheduled = condition(pod, "PodScheduled");
    bool would_fit = strcmp(json_string_at(scheduled, "reason", ""), "Schedulable") == 0;
    return would_fit ? "" : json_string_at(scheduled, "message", "");
}

static void read_status(const struct json *pod, struct pod_view *view)
{
    view->phase = phase_parse(json_string_at(pod, "status.phase", ""));
    view->ip = json_string_at(pod, "status.podIP", "");
    view->reason = json_string_at(pod, "status.reason", "");
    view->message = json_string_at(pod, "status.message", "");
    view->ready = condition_true(pod, "Ready");
    view->scheduled = condition_true(pod, "PodScheduled") || view->phase >= POD_RUNNING;
    view->unschedulable = view->scheduled ? "" : scheduler_refusal(pod);
    view->gated = !view->scheduled && json_count(json_at(pod, "spec.schedulingGates")) > 0;
    view->disruption_target = condition_true(pod, "DisruptionTarget");
    view->disrupted_by =
        view->disruption_target ? json_string_at(condition(pod, "DisruptionTarget"), "reason", "") : "";
}

static void later(int64_t *ms, int64_t than_ms)
{
    if (than_ms != FIELD_UNSET && than_ms > *ms)
        *ms = than_ms;
}

static int64_t turned_ms(const struct json *pod, const char *type)
{
    return condition_true(pod, type) ? time_at(condition(pod, type), "lastTransitionTime") : FIELD_UNSET;
}

static bool has_run(const struct json *status)
{
    return json_at(status, "state.running") || json_at(status, "state.terminated") ||
           json_at(status, "lastState.terminated");
}

/* The init container that has failed for good, or is the one that waits; NULL: the main container is what counts. One that
 * is restarted for ever beside the others (restartPolicy Always) does not end a pod, and is waited for only until it has
 * started once. */
static const struct json *telling_init(const struct json *pod, struct pod_view *view)
{
    const struct json *list = json_at(pod, "spec.initContainers"),
                      *states = json_at(pod, "status.initContainerStatuses");
    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        const struct json *status = find(states, "name", json_string_at(item, "name", ""));
        bool stays = strcmp(json_string_at(item, "restartPolicy", ""), "Always") == 0;
        if (!status || (stays && (view->phase != POD_PENDING || has_run(status))))
            continue;
        if (json_at(status, "state.waiting"))
            return item;
        if (json_integer_at(status, "state.terminated.exitCode", 0) != 0)
            return view->phase == POD_FAILED ? item : NULL;
        later(&view->startable_ms, time_at(status, "state.terminated.finishedAt"));
    }
    return NULL;
}

static void read_state(const struct json *state, struct pod_view *view)
{
    const struct json *ended = json_member(state, "terminated");
    view->waiting_reason = json_string_at(state, "waiting.reason", "");
    view->waiting_message = json_string_at(state, "waiting.message", "");
    view->exit_code = (int)json_integer_at(ended, "exitCode", EXIT_CODE_NONE);
    view->end_reason = json_string_at(ended, "reason", "");
    view->termination_message = json_string_at(ended, "message", "");
    view->finished_ms = time_at(ended, "finishedAt");
    view->started_ms = time_at(ended, "startedAt");
    if (view->started_ms == FIELD_UNSET)
        view->started_ms = time_at(state, "running.startedAt");
}

static bool has_begun(const struct json *pod)
{
    const struct json *states = json_at(pod, "status.initContainerStatuses");
    for (const struct json *item = json_first(states); item; item = json_next(item))
        if (has_run(item))
            return true;
    return false;
}

/* The program of a pod with a sidecar that uploads its files counts as successful only when that has ended successfully: an end with an error
 * is the pod's. */
static void read_uploads(const struct json *pod, struct pod_view *view)
{
    if (view->exit_code != 0)
        return;
    const struct json *list = json_at(pod, "status.initContainerStatuses");
    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        if (strncmp(json_string_at(item, "name", ""), SYNC_CONTAINER, strlen(SYNC_CONTAINER)) != 0)
            continue;
        const struct json *state = json_member(item, "state");
        if (!pod_view_alive(view) &&
            !json_member(state, "terminated")) /* it was not started again after its last error */
            state = json_member(item, "lastState");
        if (json_integer_at(state, "terminated.exitCode", EXIT_CODE_NONE) == 0)
            continue;
        bool failed = json_member(state, "terminated") != NULL;
        read_state(failed ? state : NULL, view);
        view->init_container = failed ? json_string_at(item, "name", "") : "";
        return;
    }
}

/* Kubernetes before 1.29 removes the restartPolicy of a sidecar, and would wait for the sidecar's end for ever. */
static void read_lost_sidecar(const struct json *pod, struct pod_view *view)
{
    static const char vain[] = "CreateContainerConfigError"; /* as a kubelet would say; see pod_view_waits_in_vain */
    const struct json *list = json_at(pod, "spec.initContainers");
    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        const char *name = json_string_at(item, "name", "");
        if (view->phase != POD_PENDING || strncmp(name, SYNC_CONTAINER, strlen(SYNC_CONTAINER)) != 0 ||
            json_member(item, "restartPolicy"))
            continue;
        view->init_container = name;
        view->waiting_reason = vain;
        view->waiting_message = "s3.sync needs sidecars, which this cluster does not have; Kubernetes 1.29 has them";
    }
}

static void read_container(const struct json *pod, struct pod_view *view)
{
    const struct json *containers = json_at(pod, "spec.containers"), *first = json_first(containers);
    view->container = first && json_next(first) ? json_string_at(main_container(pod), "name", "") : "";
    view->begun = has_begun(pod);
    view->startable_ms = turned_ms(pod, "PodScheduled");
    const struct json *init = telling_init(pod, view), *container = init ? init : main_container(pod);
    const char *list = init ? "status.initContainerStatuses" : "status.containerStatuses";
    const char *name = json_string_at(container, "name", "");
    view->init_container = init ? name : "";
    view->memory_limit = json_string_at(container, "resources.limits.memory", "");
    read_state(json_member(find(json_at(pod, list), "name", name), "state"), view);
    if (!init)
        read_uploads(pod, view);
    read_lost_sidecar(pod, view);
}

#define DOCUMENT_MAX (1 << 20)

static bool has_checkpoint(const struct json *pod)
{
    const struct json *environment = json_member(main_container(pod), "env");
    const char *text = json_string_at(find(environment, "name", ENV_JOB), "value", "");
    SCOPED_JSON *document = NULL;
    return json_parse(text, strlen(text), DOCUMENT_MAX, &document, NULL) == 0 &&
           *json_string_at(document, "checkpoint.storage", "") != '\0';
}

/* A process that has started is fenced by the incarnations of its successors, which are higher. One that has not started may still start
 * on its node, with a claim above theirs. */
static bool is_fenced(const struct json *pod, const struct pod_view *view)
{
    return pod_view_deleting(view) && *view->init_container == '\0' && view->started_ms != FIELD_UNSET &&
           has_checkpoint(pod);
}

void pod_view_read(const struct json *pod, struct pod_view *ret_view, struct buffer *conditions)
{
    *ret_view = (struct pod_view){.waiting_ms = FIELD_UNSET};
    read_metadata(pod, ret_view);
    read_status(pod, ret_view);
    read_container(pod, ret_view);
    ret_view->fenced = is_fenced(pod, ret_view);
    ret_view->node = json_string_at(pod, "spec.nodeName", "");
    const struct json *annotations = json_at(pod, "metadata.annotations");
    ret_view->avoided = json_string(json_member(annotations, ANNOTATION_AVOIDED_NODES), "");
    buffer_init(conditions, POD_TEXT_MAX);
    read_conditions(pod, ret_view, conditions);
    ret_view->conditions = buffer_text(conditions);
}

bool pod_view_is_of(const struct pod_view *pod, const char *job_uid)
{
    return strcmp(pod->owner_uid, job_uid) == 0;
}

bool pod_view_is_orphan_of(const struct pod_view *pod, const char *job_uid)
{
    return *pod->owner_uid == '\0' && strcmp(pod->job_uid, job_uid) == 0;
}

bool pod_view_is_of_another_job(const struct pod_view *pod, const char *job_uid)
{
    bool as_labelled = *pod->owner_uid == '\0' || strcmp(pod->owner_uid, pod->job_uid) == 0;
    return as_labelled && strcmp(pod->job_uid, job_uid) != 0;
}

bool pod_view_alive(const struct pod_view *pod)
{
    return pod->phase != POD_SUCCEEDED && pod->phase != POD_FAILED;
}

bool pod_view_ended(const struct pod_view *pod)
{
    return pod->exit_code != EXIT_CODE_NONE || !pod_view_alive(pod);
}

bool pod_view_deleting(const struct pod_view *pod)
{
    return pod->deletion_ms != FIELD_UNSET;
}

bool pod_view_succeeded(const struct pod_view *pod)
{
    return pod->exit_code == 0 || (pod->exit_code == EXIT_CODE_NONE && pod->phase == POD_SUCCEEDED);
}

/* Returns whether image, command or configuration keep a container from starting, as the kubelet reports it. */
bool pod_view_waits_in_vain(const struct pod_view *pod)
{
    static const char *const reasons_to_wait[] = {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "RegistryUnavailable",
        "ImageInspectError",
        "SignatureValidationFailed",
        "CreateContainerError",
        "CreateContainerConfigError",
        "RunContainerError",
        "PreCreateHookError",
        "PreStartHookError",
        "PostStartHookError",
        "ErrImagePullBackOff",
        NULL,
    };
    return words_find(reasons_to_wait, pod->waiting_reason) >= 0;
}

/* Clocks of nodes may be late, and the API keeps whole seconds. Little is lost by patience with them: what is deleted after
 * its end is gone at once. */
#define NODE_CLOCK_LATE_MS 30000

bool pod_view_was_asked_to_end(const struct pod_view *pod)
{
    return pod_view_deleting(pod) &&
           (pod->finished_ms == FIELD_UNSET || pod->finished_ms >= pod->deletion_ms - NODE_CLOCK_LATE_MS);
}

bool pod_view_was_disrupted(const struct pod_view *pod)
{
    return pod->disruption_target || (pod->phase == POD_FAILED && pod->exit_code == EXIT_CODE_NONE);
}

bool pod_view_finished(const struct pod_view *pod)
{
    return pod_view_succeeded(pod) && !pod->disruption_target && !pod_view_was_asked_to_end(pod);
}
