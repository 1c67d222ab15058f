/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/sweep_execute.h"

#include <stdlib.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/memory.h"
#include "operator/controller/execute/dropped_fields.h"
#include "operator/controller/execute/job_entry.h"
#include "operator/controller/execute/refusal.h"
#include "operator/controller/execute/status_patch.h"
#include "operator/controller/observed/owner.h"
#include "operator/controller/sweep/trial_build.h"

#define JOBS ((struct kube_resource){API_GROUP, API_VERSION, TRAINING_JOB_PLURAL})
#define SWEEPS ((struct kube_resource){API_GROUP, API_VERSION, TRAINING_SWEEP_PLURAL})

/* One plan that is being executed. */
struct sweep_execution {
    struct sweep_executor executor;
    struct sweep_entry *entry;
    struct sweep_plan plan;
    char *namespace, *name, *uid;
    struct json *status_patch; /* NULL: no status write */
    size_t open;               /* requests that are not answered yet, and the call itself while it sends them */
    bool moved;
    struct error failed;
};

/* The request of one action. */
struct trial_request {
    struct sweep_execution *execution;
    int64_t trial;
    char *name;
};

static const char *version_of(const struct kube_answer *answer)
{
    return json_string_at(answer->object, "metadata.resourceVersion", NULL);
}

/* ---------------------------------------------------------------- the end of a plan */

static void emit_events(const struct sweep_execution *execution)
{
    struct event_subject subject = {.api_version = API_GROUP_VERSION,
                                    .kind = TRAINING_SWEEP_KIND,
                                    .name_space = execution->namespace,
                                    .name = execution->name,
                                    .uid = execution->uid};
    for (size_t i = 0; i < execution->plan.event_count; i++) {
        const struct sweep_event *event = &execution->plan.events[i];
        event_recorder_record(execution->executor.recorder, &subject, event->warning ? EVENT_WARNING : EVENT_NORMAL,
                              event->reason, event->action, event->note);
    }
}

static void finish(struct sweep_execution *execution)
{
    struct sweep_executor executor = execution->executor;
    struct sweep_entry *entry = execution->entry;
    struct error failed = execution->failed;
    bool moved = execution->moved;
    sweep_plan_release(&execution->plan);
    json_free(execution->status_patch);
    free(execution->namespace);
    free(execution->name);
    free(execution->uid);
    free(execution);
    executor.done(executor.context, entry, failed.kind == ERROR_NONE ? NULL : &failed, moved);
}

static void note_failure(struct sweep_execution *execution, const struct error *error, const char *what)
{
    if (execution->failed.kind != ERROR_NONE)
        return;
    execution->failed = *error;
    error_wrap(&execution->failed, "%s", what);
}

/* A write that the API server keeps nothing of, as its definition is older than this operator, must not be repeated at once. */
static void status_written(void *context, const struct kube_answer *answer)
{
    struct sweep_execution *execution = context;
    if (answer->error) {
        note_failure(execution, answer->error, "status");
    } else {
        own_write_note(&execution->entry->sweep_write, version_of(answer));
        execution->moved |= !dropped_fields_in_vain(execution->status_patch, version_of(answer));
        emit_events(execution);
    }
    finish(execution);
}

static void conclude(struct sweep_execution *execution)
{
    if (--execution->open > 0)
        return;
    if (!execution->status_patch) {
        finish(execution);
        return;
    }
    struct resource_path path = {SWEEPS, execution->namespace, execution->name, "status"};
    struct kube_call_options options = {
        .flow = execution->entry->key, .metadata_only = true, .answered = status_written, .context = execution};
    kube_client_patch(execution->executor.client, &path, execution->status_patch, &options);
}

/* ---------------------------------------------------------------- trials */

static struct trial_request *request_new(struct sweep_execution *execution, const struct training_sweep *sweep,
                                         int64_t trial)
{
    struct trial_request *request = memory_allocate(1, sizeof *request);
    execution->open++;
    *request = (struct trial_request){execution, trial, trial_name(sweep, trial)};
    return request;
}

static void request_end(struct trial_request *request)
{
    struct sweep_execution *execution = request->execution;
    free(request->name);
    free(request);
    conclude(execution);
}

static struct kube_call_options options_of(struct trial_request *request, kube_answered *answered)
{
    return (struct kube_call_options){
        .flow = request->execution->entry->key, .metadata_only = true, .answered = answered, .context = request};
}

static void note(const struct trial_request *request, enum trial_note_kind kind, const char *message)
{
    struct sweep_execution *execution = request->execution;
    if (execution->entry->uid && strcmp(execution->entry->uid, execution->uid) == 0)
        sweep_entry_note(execution->entry, request->trial, kind, message);
    execution->moved = true;
}

static bool is_own(const struct trial_request *request, const struct kube_answer *answer)
{
    return strcmp(owner_of(answer->object).uid, request->execution->uid) == 0;
}

/* The watch does not show a job without the label, so that nothing can be decided about it. */
static void heed_existing(struct trial_request *request, const struct kube_answer *answer)
{
    struct sweep_execution *execution = request->execution;
    struct error error = ERROR_INIT;
    if (json_member(json_at(answer->object, "metadata.labels"), LABEL_SWEEP_NAME)) {
        own_write_note(&execution->entry->trial_write, version_of(answer));
        execution->moved = true;
        return;
    }
    error_set(&error, ERROR_INVALID,
              "it is a trial of this sweep, but has lost the label by which it is found: kubectl -n %s label tj "
              "%s " LABEL_SWEEP_NAME "=%s",
              execution->namespace, request->name, execution->name);
    sweep_entry_set_obstacle(execution->entry, error.message);
    note_failure(execution, &error, request->name);
}

static void existing_read(void *context, const struct kube_answer *answer)
{
    struct trial_request *request = context;
    struct sweep_execution *execution = request->execution;
    if (answer->error) {
        note_failure(execution, answer->error, request->name);
    } else if (is_own(request, answer)) {
        heed_existing(request, answer);
    } else {
        struct owner owner = owner_of(answer->object);
        struct error error = ERROR_INIT;
        SCOPED_FREE char *message = owner_name_taken(TRAINING_JOB_PLURAL, request->name, &owner);
        error_set(&error, ERROR_ALREADY_EXISTS, "%s", message);
        sweep_entry_set_obstacle(execution->entry, message);
        note_failure(execution, &error, request->name);
    }
    request_end(request);
}

static void read_job(struct trial_request *request, kube_answered *answered)
{
    struct sweep_execution *execution = request->execution;
    struct resource_path path = {JOBS, execution->namespace, request->name, NULL};
    struct kube_call_options options = options_of(request, answered);
    kube_client_get(execution->executor.client, &path, &options);
}

static void refuse(struct trial_request *request, const struct kube_answer *answer)
{
    SCOPED_FREE char *message = NULL;
    struct sweep_execution *execution = request->execution;
    enum obstacle_kind kind = refusal_of_create(answer->error, answer->object, NULL, false, &message);
    if (obstacle_is_objects_fault(kind)) {
        SCOPED_FREE char *fault = refusal_of_trial(answer->error);
        note(request, TRIAL_NOTE_REFUSED, fault);
        return;
    }
    if (answer->error->kind != ERROR_CANCELLED)
        sweep_entry_set_obstacle(execution->entry, message);
    note_failure(execution, answer->error, request->name);
}

/* That it exists may be our own doing: the answer to an earlier create was lost, or the operator was killed. */
static void created(void *context, const struct kube_answer *answer)
{
    struct trial_request *request = context;
    struct sweep_execution *execution = request->execution;
    if (answer->error && answer->error->kind == ERROR_ALREADY_EXISTS) {
        read_job(request, existing_read);
        return;
    }
    if (answer->error) {
        refuse(request, answer);
    } else {
        own_write_note(&execution->entry->trial_write, version_of(answer));
        sweep_entry_set_obstacle(execution->entry, NULL);
        execution->moved = true;
    }
    request_end(request);
}

static void looked(void *context, const struct kube_answer *answer)
{
    struct trial_request *request = context;
    bool is_gone = answer->error ? answer->error->kind == ERROR_NOT_FOUND : !is_own(request, answer);
    if (is_gone)
        note(request, TRIAL_NOTE_ABSENT, NULL);
    else if (answer->error)
        note_failure(request->execution, answer->error, request->name);
    else
        heed_existing(request, answer);
    request_end(request);
}

/* One that is gone by now is found missing by a later plan. */
static void suspended(void *context, const struct kube_answer *answer)
{
    struct trial_request *request = context;
    struct sweep_execution *execution = request->execution;
    if (!answer->error)
        own_write_note(&execution->entry->trial_write, version_of(answer));
    else if (answer->error->kind != ERROR_NOT_FOUND)
        note_failure(execution, answer->error, request->name);
    execution->moved = true;
    request_end(request);
}

static void send_create(struct trial_request *request, const struct training_sweep *sweep)
{
    struct error error = ERROR_INIT;
    SCOPED_JSON *object = NULL;
    if (trial_build(sweep, request->trial, &object, &error) < 0) {
        note(request, TRIAL_NOTE_REFUSED, error.message); /* as an earlier operator did not find */
        request_end(request);
        return;
    }
    struct resource_path path = {JOBS, request->execution->namespace, NULL, NULL};
    struct kube_call_options options = options_of(request, created);
    options.strict = true;
    kube_client_create(request->execution->executor.client, &path, object, &options);
}

static void send_suspend(struct trial_request *request, const struct training_sweep *sweep, bool suspend)
{
    SCOPED_JSON *patch = trial_suspend_patch(sweep, request->trial, suspend);
    struct resource_path path = {JOBS, request->execution->namespace, request->name, NULL};
    struct kube_call_options options = options_of(request, suspended);
    kube_client_patch(request->execution->executor.client, &path, patch, &options);
}

/* ERROR_CONFLICT: a newer sweep has its name. */
static void deleted(void *context, const struct kube_answer *answer)
{
    struct sweep_execution *execution = context;
    if (answer->error && answer->error->kind != ERROR_NOT_FOUND && answer->error->kind != ERROR_CONFLICT)
        note_failure(execution, answer->error, "delete after ttlSecondsAfterFinished");
    conclude(execution);
}

static void send_delete(struct sweep_execution *execution)
{
    struct resource_path path = {SWEEPS, execution->namespace, execution->name, NULL};
    struct kube_delete_options what = {.uid = execution->uid, .propagation = "Background", .grace_seconds = -1};
    struct kube_call_options options = {
        .flow = execution->entry->key, .metadata_only = true, .answered = deleted, .context = execution};
    execution->open++;
    kube_client_delete(execution->executor.client, &path, &what, &options);
}

static void send(struct sweep_execution *execution, const struct training_sweep *sweep,
                 const struct sweep_action *action)
{
    if (action->type == SWEEP_DELETE) {
        send_delete(execution);
        return;
    }
    struct trial_request *request = request_new(execution, sweep, action->trial);
    switch (action->type) {
    case SWEEP_CREATE_TRIAL:
        send_create(request, sweep);
        return;
    case SWEEP_LOOK_FOR_TRIAL:
        read_job(request, looked);
        return;
    case SWEEP_SUSPEND_TRIAL:
    case SWEEP_RESUME_TRIAL:
        send_suspend(request, sweep, action->type == SWEEP_SUSPEND_TRIAL);
        return;
    case SWEEP_DELETE:
        return;
    }
}

void sweep_execute(const struct sweep_executor *executor, struct sweep_entry *entry, const struct training_sweep *sweep,
                   struct sweep_plan *plan)
{
    struct sweep_execution *execution = memory_allocate(1, sizeof *execution);
    *execution = (struct sweep_execution){
        .executor = *executor,
        .entry = entry,
        .plan = *plan,
        .namespace = memory_copy_string(sweep->namespace),
        .name = memory_copy_string(sweep->name),
        .uid = memory_copy_string(sweep->uid),
        .open = 1,
    };
    if (plan->write_status) {
        bool first = sweep->status.observed_generation == 0; /* zeros are written, too, for kubectl's columns */
        SCOPED_JSON *before = first ? json_new_object() : sweep_status_to_json(&sweep->status);
        SCOPED_JSON *after = sweep_status_to_json(&plan->status);
        execution->status_patch = status_patch_between(sweep->resource_version, before, after);
    }
    *plan = (struct sweep_plan){0};
    for (size_t i = 0; i < execution->plan.action_count; i++)
        send(execution, sweep, &execution->plan.actions[i]);
    conclude(execution);
}
