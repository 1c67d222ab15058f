/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/memory.h"
#include "operator/controller/execute/execution.h"
#include "operator/controller/execute/refusal.h"
#include "operator/controller/objects/child_metadata.h"
#include "operator/controller/objects/pod_build.h"
#include "operator/controller/objects/queue_build.h"
#include "operator/controller/observed/owner.h"

/* A Workload that waits for the value of its priority class. */
struct workload_creation {
    struct execution *execution;
    struct json *workload;
    bool of_kueue, is_slice;
};

static void workload_written(void *context, const struct kube_answer *answer)
{
    struct execution *execution = context;
    execution_write_answered(execution, answer, &execution->entry->workload_write, "Workload");
}

/* As long as Kueue's feature gate is off, it refuses each try. */
#define CHANGE_RETRY_MS 600000

static const char no_growth[] = "the job cannot ask its queue for more workers";

/* A job that runs may not change its quota, which must not keep it from anything else. */
static void note_no_change(struct execution *execution, const char *reason, const char *what, const char *why)
{
    if (job_entry_is_about(execution->entry, execution->uid))
        execution->entry->quota_retry_ms = clock_now_ms() + CHANGE_RETRY_MS;
    SCOPED_FREE char *note = memory_format("%s: %s", what, why);
    execution_warn(execution, reason, "Queue", note);
}

/* Handles the answer to such a change. */
static void change_answered(struct execution *execution, const struct kube_answer *answer, const char *reason,
                            const char *what)
{
    bool exists = answer->error && answer->error->kind == ERROR_ALREADY_EXISTS;
    if (!exists && !execution_is_refused(answer)) {
        workload_written(execution, answer);
        return;
    }
    note_no_change(execution, reason, what, answer->error->message);
    execution_request_end(execution);
}

static void slice_created(void *context, const struct kube_answer *answer)
{
    change_answered(context, answer, "GrowthRefused", no_growth);
}

/* A slice is created beside the Workload of a job that runs. */
static void workload_create(struct execution *execution, struct json *workload, bool is_slice)
{
    if (is_slice) {
        struct resource_path path = {execution->plan.queue.resource, execution->namespace, NULL, NULL};
        struct kube_call_options options = execution_call_options(execution, slice_created, execution);
        execution->open++;
        kube_client_create(execution->executor.client, &path, workload, &options);
    } else {
        execution_create(execution, execution->plan.queue.resource, workload);
    }
    json_free(workload);
}

static void note_no_priority(struct execution *execution, const struct error *error, bool of_kueue)
{
    SCOPED_FREE char *message = NULL;
    execution_note_failure(execution, error, of_kueue ? "WorkloadPriorityClass" : "priorityClassName");
    if (error->kind == ERROR_CANCELLED)
        return;
    enum obstacle_kind kind = refusal_of_priority(error, of_kueue, &message);
    execution_refuse(execution, kind, message);
}

static void priority_answered(void *context, const struct kube_answer *answer)
{
    struct workload_creation creation = *(struct workload_creation *)context;
    struct execution *execution = creation.execution;
    free(context);
    if (answer->error && creation.is_slice) {
        note_no_change(execution, "GrowthRefused", no_growth, answer->error->message);
        json_free(creation.workload);
    } else if (answer->error) {
        note_no_priority(execution, answer->error, creation.of_kueue);
        json_free(creation.workload);
    } else {
        json_set_integer(json_member(creation.workload, "spec"), "priority",
                         json_integer_at(answer->object, "value", 0));
        workload_create(execution, creation.workload, creation.is_slice);
    }
    execution_request_end(execution);
}

static void ask_priority(struct execution *execution, const struct queue_priority *class, struct json *workload,
                         bool is_slice)
{
    struct workload_creation *creation = memory_allocate(1, sizeof *creation);
    *creation = (struct workload_creation){execution, workload, class->of_kueue, is_slice};
    struct kube_resource of_kueue = {KUEUE_GROUP, execution->plan.queue.resource.version, PRIORITY_PLURAL};
    struct resource_path path = {class->of_kueue ? of_kueue : KUBE_PRIORITY_CLASSES, NULL, class->name, NULL};
    struct kube_call_options options = execution_call_options(execution, priority_answered, creation);
    options.metadata_only = false;
    execution->open++;
    kube_client_get(execution->executor.client, &path, &options);
}

static void own_prebuilt(struct execution *execution, const struct json *workload)
{
    struct resource_path path = {execution->plan.queue.resource, execution->namespace, execution->name, NULL};
    struct kube_call_options options = execution_call_options(execution, workload_written, execution);
    SCOPED_JSON *patch = json_new_object();
    struct json *metadata = json_set_object(patch, "metadata");
    json_set_string(metadata, "uid", json_string_at(workload, "metadata.uid", ""));
    json_set_string(metadata, "resourceVersion", json_string_at(workload, "metadata.resourceVersion", ""));
    json_set_string(json_set_object(metadata, "labels"), LABEL_JOB_UID, execution->uid);
    json_append(json_set_array(metadata, "ownerReferences"),
                child_owner_reference(TRAINING_JOB_KIND, execution->name, execution->uid));
    kube_client_patch(execution->executor.client, &path, patch, &options);
}

static void prebuilt_answered(void *context, const struct kube_answer *answer)
{
    struct execution *execution = context;
    if (answer->error && answer->error->kind == ERROR_NOT_FOUND) {
        execution_refuse(execution, OBSTACLE_OUTAGE, "MultiKueue has not created the job's Workload yet");
        execution_request_end(execution);
    } else if (answer->error) {
        execution_write_answered(execution, answer, NULL, "Workload");
    } else if (owner_is_any(answer->object) && strcmp(owner_of(answer->object).uid, execution->uid) != 0) {
        struct owner owner = owner_of(answer->object);
        SCOPED_FREE char *taken = owner_name_taken(WORKLOAD_PLURAL, execution->name, &owner);
        execution_refuse(execution, OBSTACLE_NAME_TAKEN, taken);
        execution_request_end(execution);
    } else {
        own_prebuilt(execution, answer->object);
    }
}

static void take_prebuilt(struct execution *execution, const struct training_job *job)
{
    if (strcmp(job->queue_workload, job->name) != 0) {
        execution_refuse(execution, OBSTACLE_OUTAGE,
                         "the label " LABEL_QUEUE_WORKLOAD
                         " names a Workload that is not called like the job; it is for copies "
                         "that MultiKueue creates: take it off");
        return;
    }
    struct resource_path path = {execution->plan.queue.resource, execution->namespace, execution->name, NULL};
    struct kube_call_options options = execution_call_options(execution, prebuilt_answered, execution);
    execution->open++;
    kube_client_get(execution->executor.client, &path, &options);
}

static void build_workload(struct execution *execution, const struct training_job *job, const struct action *action)
{
    struct error error = ERROR_INIT;
    SCOPED(pod_builder_release) struct pod_builder builder = {0};
    struct json *workload = NULL;
    const char *version = execution->plan.queue.resource.version;
    struct queue_priority class = queue_priority_of(job);
    bool is_slice = action->type == ACTION_CREATE_SLICE;
    if (execution_builder_init(execution, job, &builder, &error) < 0 ||
        queue_build_workload(&builder, version, 0, &workload, &error) < 0) {
        execution_refuse(execution, OBSTACLE_REJECTED, error.message);
        return;
    }
    if (is_slice)
        queue_make_slice(workload, job, action->workload, action->workers);
    if (class.name)
        ask_priority(execution, &class, workload, is_slice);
    else
        workload_create(execution, workload, is_slice);
}

void execute_create_workload(struct execution *execution, const struct training_job *job, const struct action *action)
{
    if (job->queue_workload)
        take_prebuilt(execution, job);
    else if (execution_accepts_fields(execution, job))
        build_workload(execution, job, action);
}

static void apply_workload(struct execution *execution, const char *uid, const char *subresource, struct json *config,
                           const char *manager, kube_answered *answered)
{
    struct json *metadata = json_member(config, "metadata");
    struct resource_path path = {execution->plan.queue.resource, execution->namespace,
                                 json_string_at(metadata, "name", ""), subresource};
    struct kube_call_options options = execution_call_options(execution, answered, execution);
    json_set_string(metadata, "uid", uid);
    execution->open++;
    kube_client_apply(execution->executor.client, &path, config, manager, &options);
    json_free(config);
}

void execute_report_workload(struct execution *execution, const struct training_job *job,
                             const struct workload_view *workload)
{
    const struct plan *plan = &execution->plan;
    apply_workload(execution, workload->uid, "status",
                   queue_build_status(job, plan->queue.resource.version, workload, &plan->status, plan->now_ms),
                   MANAGER_QUEUE_STATUS, workload_written);
}

static void quota_lowered(void *context, const struct kube_answer *answer)
{
    change_answered(
        context, answer, "QuotaKept",
        "the job keeps the quota of the workers that are gone, because Kueue's feature gate "
        "ElasticJobsViaWorkloadSlices is off, or the change of its Workload was refused for another reason");
}

void execute_resize_workload(struct execution *execution, const struct training_job *job, const struct action *action)
{
    const struct workload_view *workload = action->workload;
    apply_workload(execution, workload->uid, NULL,
                   queue_build_size(job, execution->plan.queue.resource.version, workload->name, action->workers,
                                    action->least_workers),
                   MANAGER_QUEUE_SIZE, workload->reserved ? quota_lowered : workload_written);
}

void execute_release_workload(struct execution *execution, const struct training_job *job,
                              const struct workload_view *workload)
{
    const struct plan *plan = &execution->plan;
    apply_workload(execution, workload->uid, "status",
                   queue_build_release(job, plan->queue.resource.version, workload, plan->now_ms),
                   MANAGER_QUEUE_RELEASE, workload_written);
}

/* Uses a merge patch, because server-side apply cannot remove another manager's field. */
void execute_clear_admission(struct execution *execution, const struct workload_view *workload)
{
    SCOPED_JSON *patch = json_new_object();
    json_set_string(json_set_object(patch, "metadata"), "uid", workload->uid);
    json_set(json_set_object(patch, "status"), "admission", json_new_null());
    struct resource_path path = {execution->plan.queue.resource, execution->namespace, workload->name, "status"};
    struct kube_call_options options = execution_call_options(execution, workload_written, execution);
    execution->open++;
    kube_client_patch(execution->executor.client, &path, patch, &options);
}
