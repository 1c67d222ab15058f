/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/ending.h"

#include <string.h>

#include "common/contract/exit_code.h"
#include "common/failure_line.h"
#include "operator/controller/objects/object_storage.h"
#include "operator/controller/plan/node_blame.h"

static const char *const reasons[] = {
#define X(name, text) [name] = (text),
    ENDINGS(X)
#undef X
};

const char *ending_reason(enum ending_kind kind)
{
    return reasons[kind];
}

/* Returns whether the container's command could not be run, as the kubelet reports it; the exit code is then the container runtime's. */
static bool never_ran(const struct pod_view *pod)
{
    return strcmp(pod->end_reason, "StartError") == 0 || strcmp(pod->end_reason, "ContainerCannotRun") == 0;
}

static enum ending_kind own_code_kind(int code)
{
    static const enum ending_kind kinds[] = {
        [EXIT_CLASS_SUCCESS] = ENDING_SUCCESS,       [EXIT_CLASS_PERMANENT] = ENDING_PERMANENT,
        [EXIT_CLASS_RETRYABLE] = ENDING_FAILURE,     [EXIT_CLASS_COLLATERAL] = ENDING_COLLATERAL,
        [EXIT_CLASS_DISRUPTION] = ENDING_DISRUPTION, [EXIT_CLASS_IGNORED] = ENDING_COLLATERAL,
    };
    switch (code) {
#define X(name, number, class, meaning)                                                                                \
    case number:                                                                                                       \
        return kinds[EXIT_CLASS_##class];
        EXIT_CODES(X)
#undef X
    default:
        return code < 128 ? ENDING_PERMANENT : ENDING_FAILURE;
    }
}

static enum ending_kind foreign_code_kind(int code)
{
    return code == EXIT_CODE_RESTART_ASKED || code == EXIT_CODE_LOST_CREW ? ENDING_COLLATERAL : ENDING_FAILURE;
}

bool ending_is_success(const struct pod_view *pod, enum framework framework)
{
    bool unmolested = *pod->reason == '\0' || pod->phase == POD_SUCCEEDED;
    bool by_itself = unmolested && pod_view_finished(pod);
    return framework == FRAMEWORK_COXSWAIN ? pod_view_succeeded(pod) : by_itself;
}

bool ending_is_refusal(const struct pod_view *pod)
{
    return object_storage_is_fetch(pod->init_container) && pod->exit_code == STORAGE_EXIT_REFUSED;
}

/* Returns whether the container that ended is our worker, so that its exit code is one of EXIT_CODES. */
static bool is_our_worker(const struct pod_view *pod, enum framework framework)
{
    return framework == FRAMEWORK_COXSWAIN && *pod->init_container == '\0';
}

bool ending_is_divergence(const struct pod_view *pod, enum framework framework)
{
    return is_our_worker(pod, framework) && pod->exit_code == EXIT_CODE_NOT_FINITE;
}

/* It took more storage, or time (the template's activeDeadlineSeconds), than it was given. */
static bool took_too_much(const struct pod_view *pod)
{
    return strcmp(pod->reason, "Evicted") == 0 || strcmp(pod->reason, "DeadlineExceeded") == 0;
}

static enum ending_kind ended_kind(const struct pod_view *pod, enum framework framework)
{
    if (ending_is_success(pod, framework))
        return ENDING_SUCCESS;
    if (strcmp(pod->end_reason, "OOMKilled") == 0)
        return ENDING_OUT_OF_MEMORY;
    if (pod->disruption_target || pod_view_was_asked_to_end(pod))
        return ENDING_DISRUPTION;
    if (took_too_much(pod))
        return ENDING_FAILURE;
    if (never_ran(pod))
        return node_blame_is_device_setup(pod) ? ENDING_FAILURE : ENDING_PERMANENT;
    if (pod->exit_code == 0 && !*pod->init_container) /* for a reason that is not known here */
        return ENDING_DISRUPTION;
    if (pod->exit_code == EXIT_CODE_NONE) /* refused by its node, or lost with it */
        return ENDING_DISRUPTION;
    if (object_storage_is_fetch(pod->init_container) && pod->exit_code == EXIT_CODE_BAD_DATA)
        return ENDING_PERMANENT;
    if (ending_is_refusal(pod))
        return ENDING_PERMANENT;
    if (*pod->init_container) /* its image defines what its codes mean */
        return ENDING_FAILURE;
    return framework == FRAMEWORK_COXSWAIN ? own_code_kind(pod->exit_code) : foreign_code_kind(pod->exit_code);
}

struct ending ending_classify(const struct pod_view *pod, enum framework framework, int64_t start_failure_ms,
                              int64_t now_ms)
{
    if (pod_view_ended(pod))
        return (struct ending){.kind = ended_kind(pod, framework),
                               .at_ms = pod->finished_ms != FIELD_UNSET ? pod->finished_ms : now_ms,
                               .check_ms = FIELD_UNSET};
    if (pod_view_deleting(pod))
        return (struct ending){.kind = ENDING_DISRUPTION, .at_ms = pod->deletion_ms, .check_ms = FIELD_UNSET};
    if (!pod_view_waits_in_vain(pod))
        return (struct ending){.kind = ENDING_NONE, .check_ms = FIELD_UNSET};
    int64_t final_ms = (pod->waiting_ms != FIELD_UNSET ? pod->waiting_ms : now_ms) + start_failure_ms;
    if (now_ms < final_ms)
        return (struct ending){.kind = ENDING_NONE, .check_ms = final_ms};
    return (struct ending){.kind = ENDING_PERMANENT, .at_ms = now_ms, .check_ms = FIELD_UNSET};
}

/* Describes the container's end, such as "exited with code 139 (signal 11, Segmentation fault)". */
static void describe_exit(const struct pod_view *pod, enum framework framework, struct buffer *out)
{
    const char *meaning = is_our_worker(pod, framework) ? exit_code_meaning(pod->exit_code) : NULL;
    buffer_format(out, "code %d", pod->exit_code);
    if (meaning)
        buffer_format(out, ": %s", meaning);
    else if (pod->exit_code > 128 && pod->exit_code < 128 + 65)
        buffer_format(out, " (signal %d, %s)", pod->exit_code - 128, strsignal(pod->exit_code - 128));
}

static void append_clean(const char *before, const char *text, struct buffer *out)
{
    if (!*text)
        return;
    buffer_append_string(out, before, NULL);
    failure_line_clean(text, strlen(text), FAILURE_LINE_MAX, out);
}

/* "pod a-worker-0-1" or "init container fetch of pod a-worker-0-1". */
static void describe_pod(const struct pod_view *pod, struct buffer *out)
{
    if (*pod->init_container)
        buffer_format(out, "init container %s of ", pod->init_container);
    buffer_format(out, "pod %s", pod->name);
}

/* How it ended, of a pod that has not said why. */
static void describe_end(const struct pod_view *pod, enum ending_kind kind, enum framework framework,
                         struct buffer *out)
{
    describe_pod(pod, out);
    if (kind == ENDING_OUT_OF_MEMORY)
        buffer_format(out, " ran out of memory (limit %s)", *pod->memory_limit ? pod->memory_limit : "of its node");
    else if (never_ran(pod))
        buffer_format(out, " could not start (%s)", pod->end_reason);
    else if (pod->exit_code == 0)
        buffer_append_string(out, " was asked to end, and exited with code 0", NULL);
    else if (pod->exit_code != EXIT_CODE_NONE) {
        buffer_append_string(out, " exited with ", NULL);
        describe_exit(pod, framework, out);
    } else if (kind == ENDING_PERMANENT)
        buffer_format(out, " could not start (%s)", pod->waiting_reason);
    else
        buffer_append_string(out, pod_view_deleting(pod) ? " was deleted" : " was disrupted", NULL);
}

void ending_describe(const struct pod_view *pod, enum ending_kind kind, enum framework framework, struct buffer *out)
{
    SCOPED_BUFFER words = BUFFER_INIT(2 * FAILURE_LINE_MAX);
    if (kind != ENDING_OUT_OF_MEMORY)
        failure_line_append(pod->termination_message, pod->exit_code, &words);
    bool says_why = words.length > 0 && pod->exit_code > 0 && !never_ran(pod);
    if (says_why) {
        buffer_format(out, "%s (", buffer_text(&words));
        describe_pod(pod, out);
        buffer_append_string(out, ", exit ", NULL);
        describe_exit(pod, framework, out);
        buffer_append_byte(out, ')', NULL);
    } else {
        describe_end(pod, kind, framework, out);
    }
    append_clean(": ", pod->reason, out);
    append_clean(": ", pod->message, out);
    if (!says_why)
        append_clean(": ", buffer_text(&words), out);
    if (kind == ENDING_PERMANENT)
        append_clean(": ", pod->waiting_message, out);
}
