/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/execution.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/job/training_class.h"
#include "common/log.h"
#include "common/memory.h"
#include "operator/controller/execute/refusal.h"
#include "operator/controller/execute/status_patch.h"
#include "operator/controller/objects/child_metadata.h"
#include "operator/controller/objects/gang.h"
#include "operator/controller/objects/pod_build.h"
#include "operator/controller/objects/queue_build.h"
#include "operator/controller/objects/template_fields.h"
#include "operator/controller/observed/owner.h"
#include "operator/controller/plan/plan_job.h"
#include "operator/controller/plan/replicas.h"

#define JOBS ((struct kube_resource){API_GROUP, API_VERSION, TRAINING_JOB_PLURAL})

struct kube_call_options execution_call_options(struct execution *execution, kube_answered *answered, void *context)
{
    return (struct kube_call_options){.flow = execution->entry->key,
                                      .priority = KUBE_HIGH,
                                      .metadata_only = true,
                                      .answered = answered,
                                      .context = context};
}

void execution_note_failure(struct execution *execution, const struct error *error, const char *what)
{
    enum error_kind before = execution->failed.kind;
    if (before != ERROR_NONE && (before != ERROR_CONFLICT || error->kind == ERROR_CONFLICT))
        return;
    execution->failed = *error;
    error_wrap(&execution->failed, "%s", what);
}

static const char *version_of(const struct kube_answer *answer)
{
    return json_string_at(answer->object, "metadata.resourceVersion", NULL);
}

/* ---------------------------------------------------------------- the end of a plan */

static struct event_subject subject_of(const struct execution *execution)
{
    return (struct event_subject){
        .api_version = API_GROUP_VERSION,
        .kind = TRAINING_JOB_KIND,
        .name_space = execution->namespace,
        .name = execution->name,
        .uid = execution->uid,
    };
}

/* The UID is that of the kubelet's own events, by which kubectl describe node finds them. */
static struct event_subject subject_of_node(const char *name)
{
    return (struct event_subject){.api_version = "v1", .kind = "Node", .name = name, .uid = name};
}

void execution_warn(const struct execution *execution, const char *reason, const char *action, const char *note)
{
    struct event_subject subject = subject_of(execution);
    event_recorder_record(execution->executor.recorder, &subject, EVENT_WARNING, reason, action, note);
}

static bool is_true(const struct execution *execution, const struct plan_event *event, bool written)
{
    if (event->action_number > 0)
        return execution->deleted[event->action_number - 1];
    return written || event->of_action;
}

static void emit_events(struct execution *execution, bool written)
{
    struct event_subject subject = subject_of(execution);
    for (size_t i = 0; i < execution->plan.event_count; i++) {
        const struct plan_event *event = &execution->plan.events[i];
        if (!is_true(execution, event, written))
            continue;
        struct event_subject about = event->node ? subject_of_node(event->node) : subject;
        event_recorder_record(execution->executor.recorder, &about, event->warning ? EVENT_WARNING : EVENT_NORMAL,
                              event->reason, event->action, event->note);
    }
    if (job_entry_is_about(execution->entry, execution->uid))
        job_entry_note_reported(execution->entry, &execution->plan);
}

static void finish(struct execution *execution)
{
    struct executor executor = execution->executor;
    struct job_entry *entry = execution->entry;
    struct error failed = execution->failed;
    if (execution->created && !execution->refused && job_entry_is_about(entry, execution->uid))
        job_entry_clear_obstacle(entry);
    if (job_entry_is_about(entry, execution->uid))
        job_entry_end_document(entry, &execution->plan, execution->status_failed);
    plan_release(&execution->plan);
    json_free(execution->status_patch);
    free(execution);
    executor.done(executor.context, entry, failed.kind == ERROR_NONE ? NULL : &failed);
}

static void finish_later(void *context)
{
    finish(context);
}

/* Emits an event, because the status cannot report that it was refused: the job makes no progress,
 * and its old status looks healthy. */
static void tell_of_refused_status(struct execution *execution, const struct error *error)
{
    if (error->kind != ERROR_INVALID && error->kind != ERROR_FORBIDDEN && error->kind != ERROR_TOO_LARGE)
        return;
    SCOPED_FREE char *note = memory_format("the API server refuses the job's status: %s", error->message);
    execution_warn(execution, "StatusRefused", "WriteStatus", note);
}

/* Reports status fields that the API server dropped: its definition of TrainingJob is older than
 * this operator. */
static void heed_dropped_fields(struct execution *execution, const struct kube_answer *answer)
{
    struct job_entry *entry = execution->entry;
    if (!dropped_fields_in_vain(execution->status_patch, version_of(answer)) ||
        !job_entry_is_about(entry, execution->uid))
        return;
    SCOPED_FREE char *names = dropped_fields_note(&entry->dropped, execution->status_patch, clock_now_ms());
    if (!names)
        return;
    SCOPED_FREE char *note =
        memory_format("the API server does not keep %s: its definition of TrainingJob is older than "
                      "this operator; apply the one that came with it (deploy/crd)",
                      names);
    log_warning(note, "job", entry->key, NULL);
    execution_warn(execution, "StatusFieldDropped", "WriteStatus", note);
}

static void status_written(void *context, const struct kube_answer *answer)
{
    struct execution *execution = context;
    execution->status_failed = answer->error != NULL;
    if (!answer->error) {
        own_write_note(&execution->entry->job_write, version_of(answer));
        heed_dropped_fields(execution, answer);
        if (job_entry_is_about(execution->entry, execution->uid))
            job_entry_forget_finished(execution->entry, execution->plan.finished);
        emit_events(execution, true);
        if (execution->executor.notifier && execution->plan.restart_notice.id)
            notifier_send(execution->executor.notifier, execution->entry->key, &execution->plan.restart_notice);
    } else if (answer->error->kind != ERROR_NOT_FOUND) {
        execution_note_failure(execution, answer->error, "status");
        tell_of_refused_status(execution, answer->error);
    }
    finish(execution);
}

static void write_status(struct execution *execution)
{
    execution->status_sent = true;
    struct resource_path path = {JOBS, execution->namespace, execution->name, "status"};
    struct kube_call_options options = execution_call_options(execution, status_written, execution);
    options.priority = execution->status_priority;
    kube_client_patch(execution->executor.client, &path, execution->status_patch, &options);
}

/* Writes the status, or ends the plan, once every action is answered. */
static void conclude(struct execution *execution)
{
    if (execution->open > 0)
        return;
    if (execution->status_patch && !execution->status_sent) {
        write_status(execution);
        return;
    }
    emit_events(execution, false);
    finish(execution);
}

void execution_request_end(struct execution *execution)
{
    execution->open--;
    conclude(execution);
}

/* ---------------------------------------------------------------- creates */

/* Notes one obstacle for each plan, because all its pods are usually refused for one reason. An
 * invalid object replaces other obstacles, because it may end the job. */
static void obstruct(struct execution *execution, enum obstacle_kind kind, const char *plural, const char *message)
{
    bool is_wrong = obstacle_is_objects_fault(kind);
    if (!execution->refused || (is_wrong && !execution->refused_as_wrong))
        job_entry_set_obstacle(execution->entry, execution->uid, kind, plural, message, clock_now_ms());
    execution->refused = true;
    execution->refused_as_wrong |= is_wrong;
}

void execution_refuse(struct execution *execution, enum obstacle_kind kind, const char *message)
{
    obstruct(execution, kind, NULL, message);
}

static void refuse_creation(const struct creation *creation, enum obstacle_kind kind, const char *message)
{
    obstruct(creation->execution, kind, creation->resource.plural, message);
}

/* Returns the source of a creation that is a pod. */
static struct pod_source source_of(const struct creation *creation)
{
    const struct execution *execution = creation->execution;
    return (struct pod_source){creation->action->role, execution->storages, execution->storage_count, execution->class};
}

void creation_end(struct creation *creation)
{
    struct execution *execution = creation->execution;
    json_free(creation->secret);
    json_free(creation->service);
    json_free(creation->pod);
    free(creation->name);
    free(creation);
    execution_request_end(execution);
}

/* NULL for what is not cached. */
static uint64_t *own_write_of(struct execution *execution, const struct creation *creation)
{
    struct job_entry *entry = execution->entry;
    const struct {
        const char *plural;
        uint64_t *write;
    } writes[] = {
        {"pods", &entry->pod_write},
        {"services", &entry->service_write},
        {POD_GROUP_PLURAL, &entry->group_write},
        {WORKLOAD_PLURAL, &entry->workload_write},
    };
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++)
        if (strcmp(writes[i].plural, creation->resource.plural) == 0)
            return writes[i].write;
    return NULL;
}

/* Pods without an owner are adopted, or not, once the cache shows them. */
static bool is_jobs(const struct creation *creation, const struct owner *owner, const struct json *object)
{
    const char *label = creation->action ? "" : owner_label(object);
    return owner_is_job(owner->uid, label, creation->execution->uid);
}

/* Returns why the existing object cannot be used; NULL: it is the object that was to be created.
 * Free with free(). */
static char *why_taken(const struct creation *creation, const struct json *object)
{
    struct owner owner = owner_of(object);
    return is_jobs(creation, &owner, object)
               ? owner_label_lost(object, creation->resource.plural, creation->execution->uid)
               : owner_name_taken(creation->resource.plural, creation->name, &owner);
}

static bool is_absent(const struct kube_answer *answer)
{
    return answer->error && answer->error->kind == ERROR_NOT_FOUND && strcmp(answer->reason, "NotFound") == 0;
}

/* Returns whether the pod existed but no longer does. It may have been ours, and its process may
 * still run if the pod was deleted by force, so no pod of this name and incarnation may be created
 * again. */
static bool came_and_went(const struct creation *creation, const struct kube_answer *answer)
{
    return creation->action && is_absent(answer);
}

/* Notes whether it is known that the pod exists. While it is not known, no other pod is created in
 * its place. */
static void note_certainty(const struct creation *creation, const struct kube_answer *answer)
{
    struct execution *execution = creation->execution;
    if (!creation->action)
        return;
    if (!answer->error || is_absent(answer))
        job_entry_note_sure(execution->entry, execution->uid, creation->action);
    else
        job_entry_note_unsure(execution->entry, execution->uid, creation->action);
}

/* Handles the read that follows AlreadyExists or a lost answer: the object may be ours, created
 * before a crash or by the request whose answer was lost. */
static void owner_checked(void *context, const struct kube_answer *answer)
{
    struct creation *creation = context;
    struct execution *execution = creation->execution;
    SCOPED_FREE char *taken = answer->error ? NULL : why_taken(creation, answer->object);
    note_certainty(creation, answer);
    if (answer->error && creation->unsure.kind != ERROR_NONE) {
        creation_note_refusal(creation, &creation->unsure, NULL);
    } else if (came_and_went(creation, answer)) {
        job_entry_note_lost(execution->entry, execution->uid, creation->action, execution->plan.incarnation);
    } else if (answer->error) {
        execution_note_failure(execution, answer->error, creation->name);
    } else if (taken) {
        refuse_creation(creation, OBSTACLE_NAME_TAKEN, taken);
    } else {
        own_write_note(own_write_of(execution, creation), version_of(answer));
        execution->created = true;
    }
    creation_end(creation);
}

static void look(struct creation *creation, kube_answered *answered)
{
    struct execution *execution = creation->execution;
    struct resource_path path = {creation->resource, execution->namespace, creation->name, NULL};
    struct kube_call_options options = execution_call_options(execution, answered, creation);
    kube_client_get(execution->executor.client, &path, &options);
}

void creation_note_refusal(const struct creation *creation, const struct error *error, const struct json *status)
{
    SCOPED_FREE char *message = NULL;
    execution_note_failure(creation->execution, error, creation->name);
    if (error->kind == ERROR_CANCELLED)
        return;
    bool is_pod = creation->action != NULL;
    struct pod_source source = is_pod ? source_of(creation) : (struct pod_source){.storages = NULL};
    enum obstacle_kind kind =
        refusal_of_create(error, status, is_pod ? &source : NULL, creation->execution->plan.has_run, &message);
    refuse_creation(creation, kind, message);
}

/* Returns whether a pod may have been created although no answer said so. An operator whose cache
 * is outdated might not see it in a new list and promise another pod in its place, and both would
 * run. */
static bool may_be_done(const struct creation *creation, const struct kube_answer *answer)
{
    enum error_kind kind = answer->error->kind;
    bool unclear = kind == ERROR_UNAVAILABLE || kind == ERROR_TIMEOUT || kind == ERROR_CORRUPT;
    bool says_no = answer->status == 429 || answer->retry_after_ms >= 0;
    return creation->action && unclear && !says_no;
}

static void created(void *context, const struct kube_answer *answer)
{
    struct creation *creation = context;
    struct execution *execution = creation->execution;
    if (answer->error && may_be_done(creation, answer))
        creation->unsure = *answer->error;
    if (answer->error && (answer->error->kind == ERROR_ALREADY_EXISTS || creation->unsure.kind != ERROR_NONE)) {
        look(creation, owner_checked);
        return;
    }
    if (answer->error) {
        creation_note_refusal(creation, answer->error, answer->object);
    } else {
        own_write_note(own_write_of(execution, creation), version_of(answer));
        execution->created = true;
    }
    creation_end(creation);
}

void creation_send(struct creation creation, const struct json *object, kube_answered *answered)
{
    struct execution *execution = creation.execution;
    struct creation *sent = memory_allocate(1, sizeof *sent);
    *sent = creation;
    sent->name = memory_copy_string(json_string_at(object, "metadata.name", ""));
    struct resource_path path = {creation.resource, execution->namespace, NULL, NULL};
    struct kube_call_options options = execution_call_options(execution, answered, sent);
    options.priority = creation.priority;
    options.dry_run = creation.dry_run;
    options.strict = creation.strict;
    execution->open++;
    kube_client_create(execution->executor.client, &path, object, &options);
}

void execution_create(struct execution *execution, struct kube_resource resource, const struct json *object)
{
    creation_send((struct creation){.execution = execution, .resource = resource, .priority = KUBE_HIGH}, object,
                  created);
}

/* ---------------------------------------------------------------- fields that pods do not have */

/* Reports, once, unknown fields in the templates of a job that has run with them: they still have
 * no effect. */
static void ignore_fields(struct execution *execution, const char *place, const char *fields)
{
    if (!job_entry_is_about(execution->entry, execution->uid) || execution->entry->fields_ignored)
        return;
    execution->entry->fields_ignored = true;
    SCOPED_FREE char *note = memory_format(
        "%s: %s: the field has no effect, as in earlier pods of this job; leave it out of the next job", place, fields);
    execution_warn(execution, "TemplateFieldIgnored", "CreatePod", note);
}

bool execution_accepts_fields(struct execution *execution, const struct training_job *job)
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        SCOPED_FREE char *field = template_fields_unknown(job->roles[role].template);
        if (!field || job_role_count(job, (enum role)role) == 0)
            continue;
        SCOPED_FREE char *place = memory_format("spec.%s.template%s", role_section((enum role)role), execution->class);
        SCOPED_FREE char *words = memory_format("unknown field \"%s\"", field);
        if (execution->plan.first_pods) {
            SCOPED_FREE char *message = memory_format("%s: %s: correct it and create the job anew", place, words);
            execution_refuse(execution, OBSTACLE_TEMPLATE, message);
            return false;
        }
        ignore_fields(execution, place, words);
    }
    return true;
}

int execution_builder_init(struct execution *execution, const struct training_job *job, struct pod_builder *ret_builder,
                           struct error *error)
{
    if (pod_builder_init(ret_builder, job, &execution->executor.options->pods, error) < 0)
        return -1;
    ret_builder->has_run = !execution->plan.first_pods;
    return 0;
}

static void pod_created(void *context, const struct kube_answer *answer)
{
    struct creation *creation = context;
    struct execution *execution = creation->execution;
    const char *fields = answer->error ? refusal_unknown_fields(answer->error) : NULL;
    if (!creation->pod || !fields) {
        created(context, answer);
        return;
    }
    struct pod_source source = source_of(creation);
    SCOPED_FREE char *place = refusal_place(&source, fields);
    ignore_fields(execution, place, fields);
    struct creation again = {.execution = execution,
                             .resource = creation->resource,
                             .priority = creation->priority,
                             .action = creation->action};
    creation_send(again, creation->pod, created);
    creation_end(creation);
}

static void create_pod(struct execution *execution, const struct pod_builder *builder, const struct action *action)
{
    struct error error = ERROR_INIT;
    struct json *pod;
    if (pod_build(builder, action->role, action->index, &pod, &error) < 0) {
        execution_refuse(execution, OBSTACLE_REJECTED, error.message);
        return;
    }
    struct creation creation = {
        .execution = execution, .resource = KUBE_PODS, .priority = execution->pods_priority, .action = action};
    creation.strict = !execution->entry->fields_ignored;
    if (creation.strict && !execution->plan.first_pods)
        creation.pod = pod;
    creation_send(creation, pod, pod_created);
    if (!creation.pod)
        json_free(pod);
}

/* Limits of one batch of pods, so that a large crew neither delays other jobs for long nor fills
 * the memory. The other pods are planned again once these creates are answered. */
#define BUILDING_NS 200000000
#define BATCH_BYTES_MAX ((size_t)16 * 1024 * 1024)

static bool is_enough(const struct execution *execution, int64_t since_ns)
{
    return kube_client_held_bytes(execution->executor.client) >= BATCH_BYTES_MAX ||
           clock_monotonic_ns() - since_ns >= BUILDING_NS;
}

/* The builder is made when the first pod needs it. */
static void create_pods(struct execution *execution, const struct training_job *job)
{
    struct error error = ERROR_INIT;
    SCOPED(pod_builder_release) struct pod_builder builder = {0};
    int64_t since_ns = clock_monotonic_ns();
    for (size_t i = 0; i < execution->plan.action_count && !execution->refused; i++) {
        const struct action *action = &execution->plan.actions[i];
        if (action->type != ACTION_CREATE_POD)
            continue;
        if (builder.job && is_enough(execution, since_ns))
            break;
        if (!builder.job && !execution_accepts_fields(execution, job))
            break;
        execute_send_push_secret(execution, job);
        if (!builder.job && execution_builder_init(execution, job, &builder, &error) < 0) {
            execution_refuse(execution, OBSTACLE_REJECTED, error.message);
            break;
        }
        builder.placement = execution->plan.placement;
        builder.avoided_nodes = execution->plan.avoided_nodes;
        builder.avoided_node_count = execution->plan.avoided_node_count;
        create_pod(execution, &builder, action);
    }
}

static void note_unanswered_look(const struct creation *creation, const struct error *error)
{
    SCOPED_FREE char *message = NULL;
    execution_note_failure(creation->execution, error, creation->name);
    if (error->kind == ERROR_CANCELLED)
        return;
    enum obstacle_kind kind = refusal_of_look(error, creation->name, &message);
    refuse_creation(creation, kind, message);
}

/* Handles the answer whether a pod exists. If it does, the cache will show it; if not, the next
 * plan creates it; if there is no clear answer, the read is repeated later. */
static void pod_looked_for(void *context, const struct kube_answer *answer)
{
    struct creation *creation = context;
    SCOPED_FREE char *taken = answer->error ? NULL : why_taken(creation, answer->object);
    note_certainty(creation, answer);
    if (!answer->error && !taken)
        own_write_note(&creation->execution->entry->pod_write, version_of(answer));
    else if (answer->error && !is_absent(answer))
        note_unanswered_look(creation, answer->error);
    creation_end(creation);
}

static void look_for_pod(struct execution *execution, const struct training_job *job, const struct action *action)
{
    struct training_job crew = *job;
    crew.status.incarnation = action->incarnation;
    struct creation *creation = memory_allocate(1, sizeof *creation);
    *creation = (struct creation){.execution = execution,
                                  .resource = KUBE_PODS,
                                  .name = pod_name(&crew, action->role, action->index),
                                  .action = action};
    execution->open++;
    look(creation, pod_looked_for);
}

/* ---------------------------------------------------------------- the other actions */

/* Returns whether a patch was refused because its uid differs from the object's. The API server
 * reports this not as a conflict but as a change of an immutable field. */
static bool is_about_uid(const struct kube_answer *answer)
{
    const struct json *causes = json_at(answer->object, "details.causes");
    for (const struct json *cause = json_first(causes); cause; cause = json_next(cause))
        if (strcmp(json_string_at(cause, "field", ""), "metadata.uid") == 0)
            return true;
    return false;
}

bool execution_is_refused(const struct kube_answer *answer)
{
    enum error_kind kind = answer->error ? answer->error->kind : ERROR_NONE;
    return kind == ERROR_FORBIDDEN || (kind == ERROR_INVALID && !is_about_uid(answer));
}

/* Notes a failed write. If the object is gone or its name belongs to another one, nothing is left
 * to do, and the cache will show that. Until then the same plan would be made repeatedly, so the
 * error counts as a conflict, which waits. */
static void note_refused(struct execution *execution, const struct kube_answer *answer, const char *what)
{
    struct error error = *answer->error;
    if (error.kind == ERROR_NOT_FOUND || (error.kind == ERROR_INVALID && is_about_uid(answer)))
        error.kind = ERROR_CONFLICT;
    execution_note_failure(execution, &error, what);
}

void execution_write_answered(struct execution *execution, const struct kube_answer *answer, uint64_t *write,
                              const char *what)
{
    if (answer->error)
        note_refused(execution, answer, what);
    else
        own_write_note(write, version_of(answer));
    execution_request_end(execution);
}

static void pod_write_answered(void *context, const struct kube_answer *answer)
{
    struct execution *execution = context;
    execution_write_answered(execution, answer, &execution->entry->pod_write, "pod");
}

/* Handles the deletion of the job or of one of its children. */
static void delete_answered(void *context, const struct kube_answer *answer)
{
    execution_write_answered(context, answer, NULL, "delete");
}

/* Lies in the plan's arena. */
struct pod_request {
    struct execution *execution;
    size_t action;    /* of a delete: its place among the plan's */
    const char *node; /* of a look at one: its name */
};

static void pod_deleted(void *context, const struct kube_answer *answer)
{
    const struct pod_request *deletion = context;
    struct execution *execution = deletion->execution;
    execution->deleted[deletion->action] = !answer->error;
    pod_write_answered(execution, answer);
}

static void delete_pod(struct execution *execution, const struct action *action, int64_t grace_seconds)
{
    struct resource_path path = {KUBE_PODS, execution->namespace, action->pod->name, NULL};
    struct kube_delete_options what = {.uid = action->pod->uid, .grace_seconds = grace_seconds};
    struct pod_request *deletion = arena_allocate(&execution->plan.arena, 1, sizeof *deletion);
    *deletion = (struct pod_request){.execution = execution, .action = (size_t)(action - execution->plan.actions)};
    job_entry_note_deleting(execution->entry, execution->uid, action->pod);
    struct kube_call_options options = execution_call_options(execution, pod_deleted, deletion);
    execution->open++;
    kube_client_delete(execution->executor.client, &path, &what, &options);
}

/* Notes the state of a node. A node that cannot be read is read again later; meanwhile the plan
 * waits longer. */
static void node_read(void *context, const struct kube_answer *answer)
{
    const struct pod_request *request = context;
    struct execution *execution = request->execution;
    const char *name = request->node;
    if (!answer->error)
        job_entry_note_node(execution->entry, name, node_state_of(answer->object), clock_now_ms());
    else if (answer->error->kind == ERROR_NOT_FOUND)
        job_entry_note_node(execution->entry, name, NODE_DEAD, clock_now_ms());
    else if (answer->error->kind != ERROR_CANCELLED)
        job_entry_note_node(execution->entry, name, NODE_UNKNOWN, clock_now_ms());
    execution_request_end(execution);
}

static void look_at_node(struct execution *execution, const struct pod_view *pod)
{
    struct resource_path path = {KUBE_NODES, NULL, pod->node, NULL};
    struct pod_request *request = arena_allocate(&execution->plan.arena, 1, sizeof *request);
    *request =
        (struct pod_request){.execution = execution, .node = arena_copy_string(&execution->plan.arena, pod->node)};
    struct kube_call_options options = execution_call_options(execution, node_read, request);
    options.metadata_only = false;
    execution->open++;
    kube_client_get(execution->executor.client, &path, &options);
}

static void delete_job(struct execution *execution)
{
    struct resource_path path = {JOBS, execution->namespace, execution->name, NULL};
    struct kube_delete_options what = {.uid = execution->uid, .propagation = "Background", .grace_seconds = -1};
    struct kube_call_options options = execution_call_options(execution, delete_answered, execution);
    execution->open++;
    kube_client_delete(execution->executor.client, &path, &what, &options);
}

static void remove_current(struct execution *execution, const struct pod_view *pod)
{
    SCOPED_JSON *patch = json_new_object();
    struct json *metadata = json_set(patch, "metadata", json_new_object());
    json_set_string(metadata, "uid", pod->uid);
    json_set(json_set(metadata, "labels", json_new_object()), LABEL_CURRENT, json_new_null());
    struct resource_path path = {KUBE_PODS, execution->namespace, pod->name, NULL};
    struct kube_call_options options = execution_call_options(execution, pod_write_answered, execution);
    execution->open++;
    kube_client_patch(execution->executor.client, &path, patch, &options);
}

/* The adoption of a pod that has lost its owner reference. */
struct adoption {
    struct adoption *next;
    struct execution *execution;
    struct json *config; /* what is applied to it */
    char *name;
};

/* Notes that an adoption failed. A policy may refuse it permanently, and the job must continue
 * without the pod. */
static void note_no_adoption(struct adoption *adoption, const struct kube_answer *answer)
{
    struct job_entry *entry = adoption->execution->entry;
    if (execution_is_refused(answer) && job_entry_is_about(entry, adoption->execution->uid))
        job_entry_refuse_adoption(entry, json_string_at(adoption->config, "metadata.uid", ""), answer->error->message,
                                  clock_now_ms());
    note_refused(adoption->execution, answer, "adopt a pod");
}

static void adoption_free(struct adoption *adoption)
{
    json_free(adoption->config);
    free(adoption->name);
    free(adoption);
}

static void adopted(void *context, const struct kube_answer *answer)
{
    struct adoption *adoption = context;
    struct execution *execution = adoption->execution;
    if (answer->error)
        note_no_adoption(adoption, answer);
    else
        own_write_note(&execution->entry->pod_write, version_of(answer));
    adoption_free(adoption);
    execution_request_end(execution);
}

/* Uses server-side apply, which keeps other managers' fields. If two operators adopt a pod at the
 * same time, the API server refuses the second. */
static void apply_adoption(struct adoption *adoption)
{
    struct execution *execution = adoption->execution;
    struct resource_path path = {KUBE_PODS, execution->namespace, adoption->name, NULL};
    struct kube_call_options options = execution_call_options(execution, adopted, adoption);
    execution->open++;
    kube_client_apply(execution->executor.client, &path, adoption->config, MANAGER_ADOPTION, &options);
}

static bool is_living_job(const struct execution *execution, const struct json *job)
{
    return strcmp(json_string_at(job, "metadata.uid", ""), execution->uid) == 0 &&
           !json_at(job, "metadata.deletionTimestamp");
}

/* Adopts the pods only if the job still exists: somebody who deletes a job and keeps its pods wants
 * them to have no owner, and the cache may not show the deletion yet. */
static void owner_lives(void *context, const struct kube_answer *answer)
{
    struct execution *execution = context;
    struct error leaves = ERROR_INIT;
    bool lives = !answer->error && is_living_job(execution, answer->object);
    if (!answer->error && !lives) {
        error_set(&leaves, ERROR_CONFLICT, "the job is being deleted");
        execution_note_failure(execution, &leaves, "adopt a pod");
    }
    for (struct adoption *adoption = execution->adoptions, *next; adoption; adoption = next) {
        next = adoption->next;
        if (lives) {
            apply_adoption(adoption);
            continue;
        }
        if (answer->error)
            note_no_adoption(adoption, answer);
        adoption_free(adoption);
    }
    execution_request_end(execution);
}

/* Reads the job once for all adoptions of the plan. */
static void ask_for_owner(struct execution *execution)
{
    struct resource_path path = {JOBS, execution->namespace, execution->name, NULL};
    struct kube_call_options options = execution_call_options(execution, owner_lives, execution);
    execution->open++;
    kube_client_get(execution->executor.client, &path, &options);
}

static void adopt_pod(struct execution *execution, const struct training_job *job, const struct pod_view *pod)
{
    struct adoption *adoption = memory_allocate(1, sizeof *adoption);
    *adoption = (struct adoption){execution->adoptions, execution, json_new_object(), memory_copy_string(pod->name)};
    json_set_string(adoption->config, "apiVersion", "v1");
    json_set_string(adoption->config, "kind", "Pod");
    struct json *metadata = json_set_object(adoption->config, "metadata");
    json_set_string(metadata, "name", pod->name);
    json_set_string(metadata, "namespace", job->namespace);
    json_set_string(metadata, "uid", pod->uid);
    json_append(json_set_array(metadata, "ownerReferences"),
                child_owner_reference(TRAINING_JOB_KIND, job->name, job->uid));
    if (!execution->adoptions)
        ask_for_owner(execution);
    execution->adoptions = adoption;
}

static void create_group(struct execution *execution, const struct training_job *job)
{
    struct error error = ERROR_INIT;
    SCOPED(pod_builder_release) struct pod_builder builder = {0};
    SCOPED_JSON *group = NULL;
    struct kube_resource resource = execution->plan.gang.resource;
    if (!execution_accepts_fields(execution, job))
        return;
    if (execution_builder_init(execution, job, &builder, &error) < 0 ||
        gang_build(&builder, resource.version, &group, &error) < 0)
        execution_refuse(execution, OBSTACLE_REJECTED, error.message);
    else
        execution_create(execution, resource, group);
}

static void delete_child(struct execution *execution, struct kube_resource resource, const char *name, const char *uid)
{
    struct resource_path path = {resource, execution->namespace, name, NULL};
    struct kube_delete_options what = {.uid = uid, .grace_seconds = -1};
    struct kube_call_options options = execution_call_options(execution, delete_answered, execution);
    execution->open++;
    kube_client_delete(execution->executor.client, &path, &what, &options);
}

static void act(struct execution *execution, const struct training_job *job, const struct action *action)
{
    switch (action->type) {
    case ACTION_CREATE_SERVICE:
        execute_create_service(execution, job);
        return;
    case ACTION_CREATE_CERTIFICATE:
        execute_create_certificate(execution, job);
        return;
    case ACTION_LOOK_FOR_KEY:
    case ACTION_CREATE_KEY:
        execute_send_key(execution, job, action->type == ACTION_LOOK_FOR_KEY);
        return;
    case ACTION_CREATE_GROUP:
        create_group(execution, job);
        return;
    case ACTION_DELETE_GROUP:
        delete_child(execution, execution->plan.gang.resource, execution->name, execution->plan.gang.group->uid);
        return;
    case ACTION_CREATE_WORKLOAD:
    case ACTION_CREATE_SLICE:
        execute_create_workload(execution, job, action);
        return;
    case ACTION_DELETE_WORKLOAD:
        delete_child(execution, execution->plan.queue.resource, action->workload->name, action->workload->uid);
        return;
    case ACTION_RESIZE_WORKLOAD:
        execute_resize_workload(execution, job, action);
        return;
    case ACTION_RELEASE_WORKLOAD:
        execute_release_workload(execution, job, action->workload);
        return;
    case ACTION_CLEAR_ADMISSION:
        execute_clear_admission(execution, action->workload);
        return;
    case ACTION_REPORT_WORKLOAD:
        execute_report_workload(execution, job, action->workload);
        return;
    case ACTION_CREATE_POD: /* create_pods */
        return;
    case ACTION_LOOK_FOR_POD:
        look_for_pod(execution, job, action);
        return;
    case ACTION_ADOPT_POD:
        adopt_pod(execution, job, action->pod);
        return;
    case ACTION_REMOVE_CURRENT:
        remove_current(execution, action->pod);
        return;
    case ACTION_DELETE_POD:
        delete_pod(execution, action, action->grace_seconds);
        return;
    case ACTION_FORCE_DELETE_POD:
        delete_pod(execution, action, 0);
        return;
    case ACTION_LOOK_AT_NODE:
        look_at_node(execution, action->pod);
        return;
    case ACTION_DELETE_JOB:
        delete_job(execution);
        return;
    }
}

/* A status with a promise has high priority, because pods wait for it. */
static enum kube_priority status_priority(const struct plan *plan, const struct job_status *old)
{
    if (plan_only_informs(plan, old))
        return KUBE_LOW;
    return replicas_promised(&plan->status) ? KUBE_HIGH : KUBE_NORMAL;
}

/* Up to this number of pods, creates have high priority, because other requests wait only briefly
 * behind them. */
#define FEW_PODS 16

static enum kube_priority pods_priority(const struct plan *plan)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->action_count; i++)
        count += plan->actions[i].type == ACTION_CREATE_POD;
    return count <= FEW_PODS ? KUBE_HIGH : KUBE_NORMAL;
}

/* Returns the job with the attempt and incarnation of the pods to be created. */
static struct training_job job_of_pods(const struct training_job *job, const struct plan *plan)
{
    struct training_job copy = *job;
    copy.status.attempt = plan->attempt;
    copy.status.incarnation = plan->incarnation;
    return copy;
}

/* For messages about pods, once the job is another. */
static void copy_sources(struct execution *execution, const struct training_job *job)
{
    struct arena *arena = &execution->plan.arena;
    execution->storage_count = job->document.storage_count;
    execution->storages = arena_allocate(arena, execution->storage_count, sizeof *execution->storages);
    for (unsigned i = 0; i < execution->storage_count; i++)
        execution->storages[i] = arena_copy_string(arena, job->document.storage[i].name);
    SCOPED_FREE char *class = training_class_words(job);
    execution->class = arena_copy_string(arena, class);
}

void execute_plan(const struct executor *executor, struct job_entry *entry, const struct training_job *job,
                  struct plan *plan)
{
    struct execution *execution = memory_allocate(1, sizeof *execution);
    *execution = (struct execution){.executor = *executor, .entry = entry, .plan = *plan, .open = 1};
    *plan = (struct plan){0};
    execution->namespace = arena_copy_string(&execution->plan.arena, job->namespace);
    execution->name = arena_copy_string(&execution->plan.arena, job->name);
    execution->uid = arena_copy_string(&execution->plan.arena, job->uid);
    copy_sources(execution, job);
    execution->deleted = arena_allocate(&execution->plan.arena, execution->plan.action_count, sizeof(bool));
    execution->status_priority = status_priority(&execution->plan, &job->status);
    execution->pods_priority = pods_priority(&execution->plan);
    if (execution->plan.write_status)
        execution->status_patch = status_patch(job, &execution->plan.status);
    for (size_t i = 0; i < execution->plan.action_count; i++)
        act(execution, job, &execution->plan.actions[i]);
    struct training_job crew = job_of_pods(job, &execution->plan);
    create_pods(execution, &crew);
    execution->open--;
    if (execution->open == 0 && !execution->status_patch) {
        emit_events(execution, false);
        event_timer_start(kube_client_loop(executor->client), 0, finish_later, execution);
    } else {
        conclude(execution);
    }
}
