/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/controller.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/job/training_class.h"
#include "common/log.h"
#include "common/memory.h"
#include "operator/controller/clock_watch.h"
#include "operator/controller/execute/execute.h"
#include "operator/controller/execute/job_entry.h"
#include "operator/controller/execute/log_reader.h"
#include "operator/controller/execute/node_taints.h"
#include "operator/controller/execute/progress_answers.h"
#include "operator/controller/execute/progress_poll.h"
#include "operator/controller/objects/gang.h"
#include "operator/controller/objects/queue_build.h"
#include "operator/controller/observed/job_record.h"
#include "operator/controller/plan/notice.h"
#include "operator/controller/plan/plan_job.h"
#include "operator/controller/plan/progress_status.h"
#include "operator/controller/plan/queue_plan.h"
#include "operator/controller/plan/replicas.h"
#include "operator/controller/reconcile_metrics.h"
#include "operator/controller/work_queue.h"
#include "operator/kube/informer.h"

#define JOBS ((struct kube_resource){API_GROUP, API_VERSION, TRAINING_JOB_PLURAL})

/* Waiting requests take memory: beyond this number no further job is planned, unless only a few jobs have made them all. */
#define WAITING_MAX 512
#define EXECUTING_MIN 64
#define HELD_BYTES_MAX ((size_t)32 * 1024 * 1024)

/* While this many requests wait, a status that only informs users waits for further changes, for a limited time. */
#define BUSY_WAITING 32
#define TELL_RETRY_MS 500
#define TELL_MAX_MS 5000

/* An own write that the cache does not show brings its event as a rule; this is for when it does not. */
#define UNSEEN_RETRY_MS 2000

/* When the notifier's queue is full, the notification about a job's end is sent again after this time. */
#define NOTICE_RETRY_MS 30000

/* How long a clock that was set may go unnoticed. */
#define CLOCK_LOOK_MS 500

struct controller {
    struct kube_client *client;
    struct controller_options options;
    struct informer *jobs, *pods, *services;
    struct informer *nodes;     /* caches only those with a node_trouble; empty if the operator may not watch nodes */
    struct node_taints *taints; /* NULL: sick nodes get no taint */
    bool nodes_refused;         /* the API server does not let it watch nodes, or has none; logged once */
    struct optional_api *groups[GANG_SCHEDULER_COUNT]; /* PodGroups, by scheduler */
    struct optional_api *workloads, *flavors;          /* Kueue's */
    struct optional_api *classes[TRAINING_CLASS_KIND_COUNT];
    struct hash_map entries; /* "namespace/name" -> struct job_entry */
    struct work_queue *queue;
    struct progress_poller *poller;
    struct log_reader *logs;
    struct progress_pace reports; /* of scripts that send them */
    struct event_recorder *recorder;
    struct executor executor;
    size_t executing; /* jobs with a plan under way */
    struct clock_watch clock;
    struct event_timer *clock_look; /* the next one */
    struct reconcile_metrics metrics;
    uint64_t lag_probe; /* a status write that the watch has not shown; 0: none */
    int64_t lag_since_ns;
    bool stopped;
};

/* ---------------------------------------------------------------- entries */

static struct job_entry *entry_of(struct controller *controller, const char *key)
{
    struct job_entry *entry = hash_map_get(&controller->entries, key);
    if (!entry) {
        entry = job_entry_new(key);
        hash_map_set(&controller->entries, entry->key, entry);
    }
    return entry;
}

/* "namespace/pod" and the label of the job's name make the job's key. */
static struct job_entry *entry_of_pod(struct controller *controller, const char *pod_key, const struct pod_record *pod)
{
    struct pod_room room;
    size_t length = strcspn(pod_key, "/");
    SCOPED_FREE char *key = memory_format("%.*s/%s", (int)length, pod_key, pod_record_view(pod, &room).job_name);
    return entry_of(controller, key);
}

static void forget_requests(struct job_entry *entry)
{
    progress_forget(entry);
    log_reader_forget(entry);
}

static void set_job(struct job_entry *entry, const char *uid)
{
    if (!job_entry_is_about(entry, uid))
        forget_requests(entry);
    job_entry_set_job(entry, uid);
}

static void forget(struct controller *controller, struct job_entry *entry)
{
    forget_requests(entry);
    work_queue_remove(controller->queue, entry);
    hash_map_remove(&controller->entries, entry->key);
    job_entry_free(entry);
}

/* ---------------------------------------------------------------- a clock that is set */

static int64_t clock_set_by(struct controller *controller)
{
    int64_t before_ms = clock_elapsed_ns() / 1000000, now_ms = clock_now_ms();
    return clock_watch_look(&controller->clock, before_ms, now_ms, clock_elapsed_ns() / 1000000);
}

/* Restarts all waits for a time. Returns true if the clock was set and every job was therefore queued. */
static bool heed_clock(struct controller *controller)
{
    int64_t by_ms = clock_set_by(controller);
    const char *key;
    void *entry;
    if (by_ms == 0)
        return false;
    SCOPED_FREE char *by = memory_format("%" PRId64, by_ms);
    log_warning("the machine's clock was set, correcting the times of jobs", "by_ms", by, NULL);
    progress_poller_clock_set(controller->poller, by_ms);
    log_reader_clock_set(controller->logs, by_ms);
    controller->reports.free_ms += by_ms;
    controller->options.plan.watching_since_ms += by_ms;
    for (size_t at = 0; hash_map_next(&controller->entries, &at, &key, &entry);) {
        const struct job_record *record = informer_get(controller->jobs, key);
        struct training_job job = {0};
        if (record)
            job = job_record_view(record);
        job_entry_clock_set(entry, by_ms, record ? &job.status : NULL);
        work_queue_clock_was_set(controller->queue, entry);
    }
    return true;
}

static void look_at_clock(void *context)
{
    struct controller *controller = context;
    heed_clock(controller);
    controller->clock_look =
        event_timer_start(kube_client_loop(controller->client), CLOCK_LOOK_MS, look_at_clock, controller);
}

/* ---------------------------------------------------------------- reconcile */

static bool is_synced(const struct controller *controller)
{
    return informer_synced(controller->jobs) && informer_synced(controller->pods) &&
           informer_synced(controller->services);
}

static struct optional_api *groups_of(const struct controller *controller, const struct training_job *job)
{
    return controller->groups[job->run_policy.gang.scheduler];
}

static bool sees_own_writes(const struct controller *controller, const struct job_entry *entry,
                            const struct training_job *job)
{
    const struct optional_api *groups = groups_of(controller, job);
    return (!groups || optional_api_has_seen(groups, entry->group_write)) &&
           optional_api_has_seen(controller->workloads, entry->workload_write) &&
           informer_has_seen(controller->jobs, entry->job_write) &&
           informer_has_seen(controller->pods, entry->pod_write) &&
           informer_has_seen(controller->services, entry->service_write);
}

static bool is_over(const struct job_status *status)
{
    return status->completion_ms != FIELD_UNSET;
}

static void gang_fill(const struct controller *controller, const struct job_entry *entry,
                      const struct training_job *job, struct gang_input *gang)
{
    struct optional_api *groups = groups_of(controller, job);
    if (!groups)
        return;
    gang->state = optional_api_need(groups);
    gang->refusal = optional_api_refusal(groups);
    gang->resource = optional_api_resource(groups);
    gang->group = optional_api_get(groups, entry->key);
}

static const char *find_flavor(void *context, const char *name)
{
    const struct controller *controller = context;
    return optional_api_get(controller->flavors, name);
}

static enum optional_state queue_state(struct controller *controller)
{
    enum optional_state workloads = optional_api_need(controller->workloads);
    enum optional_state flavors = optional_api_need(controller->flavors);
    return workloads == OPTIONAL_READY ? flavors : workloads;
}

static const char *queue_refusal(const struct controller *controller)
{
    const char *workloads = optional_api_refusal(controller->workloads);
    return *workloads ? workloads : optional_api_refusal(controller->flavors);
}

/* Where the pods belong is only worked out when some are to be made. */
static void queue_fill(struct controller *controller, const struct job_entry *entry, const struct training_job *job,
                       struct queue_input *queue, struct plan *plan)
{
    if (job->queue_name) {
        queue->state = queue_state(controller);
        queue->refusal = queue_refusal(controller);
    }
    queue->resource = optional_api_resource(controller->workloads);
    queue->change_retry_ms = entry->quota_retry_ms;
    queue->replaced_since_ms = entry->replaced_since_ms;
    SCOPED_FREE char *slice = queue_slice_name(entry->key);
    queue->workload = optional_api_get(controller->workloads, entry->key); /* of a label that was taken off, too */
    queue->slice = optional_api_get(controller->workloads, slice);
    const struct workload_view *holder = queue_workloads_of(queue, job->uid, clock_now_ms()).holder;
    if (!job->queue_name || !holder || !holder->admitted || !replicas_promised(&job->status))
        return;
    SCOPED_FREE char *missing = NULL;
    plan->placement = queue_placement(holder, find_flavor, controller, &missing);
    queue->missing_flavor = missing ? arena_copy_string(&plan->arena, missing) : NULL;
}

/* A job whose class is pinned needs it no more. */
static void class_fill(struct controller *controller, const struct training_job *job, struct class_input *class)
{
    if (!training_job_awaits_class(job))
        return;
    struct optional_api *classes = controller->classes[job->training_class.kind];
    bool namespaced = job->training_class.kind == TRAINING_CLASS_NAMESPACED;
    SCOPED_FREE char *key =
        memory_format("%s%s%s", namespaced ? job->namespace : "", namespaced ? "/" : "", job->training_class.name);
    class->state = optional_api_need(classes);
    class->refusal = optional_api_refusal(classes);
    class->view = optional_api_get(classes, key);
}

static struct saves_input saves_of(const struct status_document *document)
{
    if (!document || document->failed_saves == STATUS_UNKNOWN)
        return (struct saves_input){.failure = NULL};
    if (document->failed_saves == 0)
        return (struct saves_input){.succeeded = true};
    bool told = document->save_failure != SAVE_FINE;
    return (struct saves_input){.failure = save_failure_name(told ? document->save_failure : SAVE_FAILED),
                                .message = document->save_message};
}

static struct strangers_input strangers_of(const struct status_document *document)
{
    if (!document)
        return (struct strangers_input){.reported = false};
    return (struct strangers_input){.reported = true,
                                    .members_missing =
                                        document->phase == STATUS_JOINING || document->phase == STATUS_WAITING,
                                    .per_minute = document->refused_per_minute,
                                    .from = document->refused_from,
                                    .why = document->refused_reason};
}

/* A crew that evaluates or saves takes no step, so that the report is of no use then. */
static struct straggler_input straggler_of(const struct status_document *document)
{
    bool any = document && *document->straggler_role;
    if (!document || (any && document->phase != STATUS_TRAINING))
        return (struct straggler_input){.reported = false};
    return (struct straggler_input){.reported = true,
                                    .role = any ? document->straggler_role : NULL,
                                    .index = document->straggler_index,
                                    .own_ms = document->straggler_ms,
                                    .due_ms = document->straggler_due_ms,
                                    .seconds = document->straggler_seconds};
}

static int64_t takes_reports_since(const struct controller *controller, int64_t now_ms)
{
    int64_t since_ms = push_reachable_since(controller->options.plan.pods.push, now_ms);
    bool before = since_ms != FIELD_UNSET && since_ms < controller->options.plan.watching_since_ms;
    return before ? controller->options.plan.watching_since_ms : since_ms;
}

static struct answers_input answers_of(const struct controller *controller, const struct job_entry *entry,
                                       const struct training_job *job, int64_t now_ms)
{
    return progress_answers_is_pushed(entry, job, controller->options.plan.pods.push)
               ? progress_answers_of_push(entry, job, takes_reports_since(controller, now_ms), now_ms)
               : progress_answers_of(entry, job);
}

/* Says so once if the operator takes no reports, and nothing else tells of the job's progress. */
static void check_push(const struct controller *controller, struct job_entry *entry, const struct training_job *job)
{
    const struct push_endpoint *push = controller->options.plan.pods.push;
    if (entry->log.flaw || job->document.progress.log_pattern_count > 0 || !push_is_wanted(job) ||
        push_is_possible(job, push))
        return;
    entry->log.flaw =
        memory_copy_string(push ? push->refusal : "progress.push needs an operator with --progress-address");
    entry->log.flaw_reported = false;
}

static bool nodes_are_known(const struct controller *controller)
{
    return informer_synced(controller->nodes) || controller->nodes_refused;
}

/* The list lies in the arena. Conditions concern only jobs that avoid some, and on some clouds one is True on every healthy node. */
static void troubles_fill(const struct controller *controller, struct plan_input *input, struct arena *arena)
{
    const char *key;
    const void *item;
    bool avoids_conditions = input->job->run_policy.avoided_condition_count > 0;
    size_t count = informer_count(controller->nodes);
    const struct node_trouble **list = NULL;
    input->troubles_unknown = !nodes_are_known(controller);
    for (size_t at = 0; informer_next(controller->nodes, &at, &key, &item);) {
        const struct node_trouble *trouble = item;
        if (*trouble->removal_taint == '\0' && !avoids_conditions)
            continue;
        if (!list)
            list = arena_allocate(arena, count, sizeof *list);
        list[input->trouble_count++] = trouble;
    }
    input->troubles = list;
}

/* The views of its pods lie in the arena. */
static void input_fill(const struct controller *controller, struct job_entry *entry, const struct training_job *job,
                       struct plan_input *input, struct arena *arena)
{
    int64_t now_ms = clock_now_ms();
    *input = (struct plan_input){
        .job = job,
        .pods = job_entry_views(entry, arena),
        .pod_count = entry->pod_count,
        .memory = entry->memory,
        .service = informer_get(controller->services, entry->key),
        .crew_message = progress_crew_waits(entry, job),
        .chief_voice = progress_chief_voice(entry, job),
        .log = {log_reader_unread_since(entry, job, now_ms), entry->log.flaw, entry->log.flaw_reported},
        .answers = answers_of(controller, entry, job, now_ms),
        .saves = saves_of(entry->document),
        .strangers = strangers_of(entry->document),
        .straggler = straggler_of(entry->document),
        .now_ms = now_ms,
        .options = &controller->options.plan,
    };
    for (unsigned i = 0; i < STATUS_TIME_COUNT; i++)
        input->moved_ms[i] = status_moves_by(entry->status_moves, &job->status, (enum status_time)i);
    gang_fill(controller, entry, job, &input->gang);
    troubles_fill(controller, input, arena);
}

static void take_document(struct job_entry *entry, const struct training_job *job, struct plan_input *input,
                          struct progress *progress, struct arena *arena)
{
    if (!entry->document_fresh || is_over(&job->status))
        return;
    if (job_entry_sent_before(entry, job) && !entry->document_is_evaluators) {
        entry->document_fresh = false;
        return;
    }
    *progress =
        progress_from_document(entry->document, &job->status.progress, job->framework == FRAMEWORK_COXSWAIN, arena);
    input->progress = progress;
    input->progress_is_evaluators = entry->document_is_evaluators;
    input->progress_due = true;
    entry->document_fresh = false;
}

/* `since_ms` is when `is` began to hold. */
static void note_since(int64_t *since_ms, bool is, int64_t now_ms)
{
    if (!is)
        *since_ms = FIELD_UNSET;
    else if (*since_ms == FIELD_UNSET)
        *since_ms = now_ms;
}

/* Notes what the next plan must know of this one. */
static void note_plan(struct job_entry *entry, const struct plan *plan, int64_t now_ms)
{
    note_since(&entry->memory.counts_since_ms, plan->counts_wait, now_ms);
    note_since(&entry->memory.behind_since_ms, plan->behind, now_ms);
    note_since(&entry->replaced_since_ms, plan->queue_replaces, now_ms);
    job_entry_forget_reported(entry, plan);
    job_entry_note_hang(entry, plan->hung_attempt);
    if (plan->obstacle_over)
        job_entry_clear_obstacle(entry);
}

static bool tells_later(const struct controller *controller, struct job_entry *entry, const struct job_status *old,
                        const struct plan *plan, int64_t now_ms)
{
    bool waits = plan_only_informs(plan, old) && kube_client_waiting(controller->client) >= BUSY_WAITING;
    note_since(&entry->informing_since_ms, waits, now_ms);
    return waits && now_ms >= entry->informing_since_ms && now_ms - entry->informing_since_ms < TELL_MAX_MS;
}

/* The same is planned again, with what will have happened by then. */
static void tell_later(const struct controller *controller, struct job_entry *entry, const struct plan_input *input)
{
    entry->document_fresh |= input->progress != NULL;
    entry->document_planned = false;
    work_queue_add_at(controller->queue, entry, input->now_ms + TELL_RETRY_MS);
}

static void carry_out(struct controller *controller, struct job_entry *entry, const struct training_job *job,
                      struct plan *plan)
{
    entry->executing = true;
    controller->executing++;
    execute_plan(&controller->executor, entry, job, plan);
}

/* Sends the notification about the job's end, which the status already records. If the notifier's queue is full, the job is looked at
 * again later; once the notification's time is over it counts as failed, because a TTL waits for it. */
static void send_end_notice(struct controller *controller, struct job_entry *entry, const struct plan *plan)
{
    if (!controller->executor.notifier || !plan->end_notice.id ||
        notifier_send(controller->executor.notifier, entry->key, &plan->end_notice))
        return;
    if (plan->now_ms < plan->end_notice.until_ms) {
        work_queue_add_at(controller->queue, entry, plan->now_ms + NOTICE_RETRY_MS);
        return;
    }
    entry->memory.notice = NOTICE_FAILED;
    work_queue_add_at(controller->queue, entry, plan->now_ms);
}

static void reconcile_job(struct controller *controller, struct job_entry *entry, const struct training_job *job,
                          const char *invalid)
{
    struct plan plan = {0};
    struct plan_input input;
    struct arena views = {0};
    struct progress progress;
    if (!plan_is_managed_by(job->managed_by, controller->options.plan.controller_name)) {
        node_taints_note(controller->taints, job);
        return;
    }
    set_job(entry, job->uid);
    job_entry_see_lists(entry, informer_counts(controller->pods).lists, &job->status);
    if (!is_over(&job->status))
        progress_read_failure_line(entry, job);
    check_push(controller, entry, job);
    input_fill(controller, entry, job, &input, &views);
    input.invalid = invalid;
    queue_fill(controller, entry, job, &input.queue, &plan);
    class_fill(controller, job, &input.class);
    take_document(entry, job, &input, &progress, &plan.arena);
    node_taints_note(controller->taints, job);
    int64_t start_ns = clock_monotonic_ns();
    plan_job(&input, &plan);
    plan.write_status = plan.write_status && !dropped_fields_cover(&entry->dropped, job, &plan.status, input.now_ms);
    note_plan(entry, &plan, input.now_ms);
    send_end_notice(controller, entry, &plan);
    if (input.progress)
        job_entry_note_document(entry, &plan);
    work_queue_add_at(controller->queue, entry, plan.requeue_ms);
    if (!is_over(&job->status)) {
        work_queue_add_at(controller->queue, entry, progress_poll(controller->poller, entry, job, input.now_ms));
        work_queue_add_at(controller->queue, entry, log_reader_look(controller->logs, entry, job, input.now_ms));
    }
    if (tells_later(controller, entry, &job->status, &plan, input.now_ms)) {
        tell_later(controller, entry, &input);
    } else if (plan_has_work(&plan)) {
        entry->informing_since_ms = FIELD_UNSET;
        carry_out(controller, entry, job, &plan);
    }
    plan_release(&plan);
    arena_release(&views);
    durations_observe(&controller->metrics.planning, clock_monotonic_ns() - start_ns);
}

/* The garbage collector asks its pods to end; those of a dead node do not answer. */
static void reconcile_without_job(struct controller *controller, struct job_entry *entry)
{
    struct plan plan = {0};
    struct arena views = {0};
    size_t length = strcspn(entry->key, "/");
    SCOPED_FREE char *namespace = memory_format("%.*s", (int)length, entry->key);
    const struct training_job gone = {.namespace = namespace,
                                      .name = entry->key + length + 1,
                                      .uid = "",
                                      .run_policy.force_delete_after_seconds = FIELD_UNSET};
    struct plan_input input = {.job = &gone,
                               .pods = job_entry_views(entry, &views),
                               .pod_count = entry->pod_count,
                               .memory = entry->memory,
                               .now_ms = clock_now_ms(),
                               .options = &controller->options.plan};
    plan_without_job(&input, &plan);
    work_queue_add_at(controller->queue, entry, plan.requeue_ms);
    if (plan_has_work(&plan))
        carry_out(controller, entry, &gone, &plan);
    plan_release(&plan);
    arena_release(&views);
}

static void reconcile(void *context, struct job_entry *entry)
{
    struct controller *controller = context;
    if (controller->stopped || !is_synced(controller) || heed_clock(controller))
        return;
    const struct job_record *record = informer_get(controller->jobs, entry->key);
    if (!record) {
        if (entry->pod_count == 0)
            forget(controller, entry);
        else if (informer_has_seen(controller->pods, entry->pod_write))
            reconcile_without_job(controller, entry);
        else
            work_queue_add_at(controller->queue, entry, clock_now_ms() + UNSEEN_RETRY_MS);
        return;
    }
    struct training_job job = job_record_view(record);
    if (!sees_own_writes(controller, entry, &job)) {
        controller->metrics.waited++;
        work_queue_add_at(controller->queue, entry, clock_now_ms() + UNSEEN_RETRY_MS);
        return;
    }
    reconcile_job(controller, entry, &job, job_record_invalid(record));
}

static bool may_take(void *context)
{
    const struct controller *controller = context;
    bool few = controller->executing < EXECUTING_MIN || kube_client_waiting(controller->client) < WAITING_MAX;
    return few && kube_client_held_bytes(controller->client) < HELD_BYTES_MAX;
}

static void log_failure(const struct job_entry *entry, const struct error *failed)
{
    if (failed->kind == ERROR_CONFLICT || failed->kind == ERROR_CANCELLED)
        log_debug("a request to the API server failed, planning the job again", "job", entry->key, "why",
                  failed->message, NULL);
    else
        log_warning("the API server refused a write", "job", entry->key, "kind", error_kind_name(failed->kind), "why",
                    failed->message, NULL);
}

/* One write at a time: a sample is enough. */
static void probe_lag(struct controller *controller, const struct job_entry *entry)
{
    if (controller->lag_probe > 0 || entry->job_write == 0 || controller->stopped)
        return;
    if (informer_has_seen(controller->jobs, entry->job_write))
        return;
    controller->lag_probe = entry->job_write;
    controller->lag_since_ns = clock_monotonic_ns();
}

static void observe_lag(struct controller *controller)
{
    if (controller->lag_probe == 0 || !informer_has_seen(controller->jobs, controller->lag_probe))
        return;
    durations_observe(&controller->metrics.watch_lag, clock_monotonic_ns() - controller->lag_since_ns);
    controller->lag_probe = 0;
}

static void executed(void *context, struct job_entry *entry, const struct error *failed)
{
    struct controller *controller = context;
    controller->executing--;
    if (failed) {
        controller->metrics.failed++;
        log_failure(entry, failed);
        if (!controller->stopped)
            work_queue_failed(controller->queue, entry);
        return;
    }
    probe_lag(controller, entry);
    entry->dirty = true; /* what was written may call for more */
    if (!controller->stopped)
        work_queue_done(controller->queue, entry);
}

/* Only the notification about the end is waited for, and the job may have been replaced by another of its name. */
static void notified(void *context, const char *key, const char *id, bool delivered)
{
    struct controller *controller = context;
    struct job_entry *entry = hash_map_get(&controller->entries, key);
    if (controller->stopped || !entry || !entry->job_uid || !notice_is_about_end(id, entry->job_uid))
        return;
    entry->memory.notice = delivered ? NOTICE_DELIVERED : NOTICE_FAILED;
    work_queue_add(controller->queue, entry);
}

static void progress_came(void *context, struct job_entry *entry)
{
    struct controller *controller = context;
    if (!controller->stopped)
        work_queue_add(controller->queue, entry);
}

/* ---------------------------------------------------------------- informers */

static void *parse_job(void *context, const struct json *object)
{
    (void)context;
    return job_record_read(object);
}

static void free_job(void *item)
{
    job_record_free(item);
}

static void *parse_pod(void *context, const struct json *object)
{
    (void)context;
    struct pod_room room;
    struct pod_record *pod = pod_record_read(object);
    if (*pod_record_view(pod, &room).job_name != '\0')
        return pod;
    free(pod);
    return NULL;
}

static void *parse_service(void *context, const struct json *object)
{
    (void)context;
    return service_view_new(object);
}

static void look(void *context, const char *key)
{
    struct controller *controller = context;
    work_queue_add(controller->queue, entry_of(controller, key));
}

/* A job that appears after the first complete list was created while this operator was the only one to act, if a lease ensures that
 * (main.c holds it before it starts a controller, and exits when it is lost). */
static void job_added(void *context, const char *key, const void *item)
{
    struct controller *controller = context;
    struct job_entry *entry = entry_of(controller, key);
    struct training_job job = job_record_view(item);
    set_job(entry, job.uid);
    if (controller->options.holds_lease && informer_synced(controller->jobs))
        entry->memory.born_ms = clock_now_ms();
    entry->born_lists = informer_counts(controller->pods).lists;
    job_entry_see_status(entry, &job.status);
    work_queue_add(controller->queue, entry);
}

static void log_transition(const char *key, enum condition_type old, enum condition_type state)
{
    if (old != state)
        log_info("job changed state", "job", key, "state", job_state_name(state), NULL);
}

static void job_changed(void *context, const char *key, const void *old, const void *item)
{
    struct job_entry *entry = entry_of(context, key);
    struct training_job job = job_record_view(item);
    struct training_job before = job_record_view(old);
    log_transition(key, job_status_state(&before.status), job_status_state(&job.status));
    job_entry_see_status(entry, &job.status);
    observe_lag(context);
    look(context, key);
}

/* A job of the same name may follow: nothing of this one's memory must count for it. */
static void job_forgotten(void *context, const char *key, const void *item)
{
    (void)item;
    struct controller *controller = context;
    struct job_entry *entry = entry_of(controller, key);
    set_job(entry, NULL);
    work_queue_add(controller->queue, entry);
}

static void look_at_pods(struct controller *controller, struct job_entry *entry)
{
    entry->memory.pods_changed_ms = clock_now_ms();
    work_queue_add(controller->queue, entry);
}

static void pod_added(void *context, const char *key, const void *item)
{
    struct controller *controller = context;
    struct job_entry *entry = entry_of_pod(controller, key, item);
    job_entry_add_pod(entry, item);
    job_entry_note_wait(entry, item, clock_now_ms());
    look_at_pods(controller, entry);
}

static void pod_changed(void *context, const char *key, const void *old, const void *item)
{
    struct controller *controller = context;
    struct job_entry *before = entry_of_pod(controller, key, old), *entry = entry_of_pod(controller, key, item);
    if (before == entry) {
        job_entry_change_pod(entry, old, item);
    } else {
        job_entry_remove_pod(before, old);
        job_entry_add_pod(entry, item);
        look_at_pods(controller, before);
    }
    job_entry_note_wait(entry, item, clock_now_ms());
    look_at_pods(controller, entry);
}

static void pod_deleted(void *context, const char *key, const void *item)
{
    struct controller *controller = context;
    struct job_entry *entry = entry_of_pod(controller, key, item);
    job_entry_note_vanished(entry, item, clock_now_ms());
    job_entry_remove_pod(entry, item);
    look_at_pods(controller, entry);
}

/* Services and PodGroups have their job's name. */
static void child_changed(void *context, const char *key, const void *old, const void *item)
{
    (void)old;
    (void)item;
    look(context, key);
}

static void child_event(void *context, const char *key, const void *item)
{
    (void)item;
    look(context, key);
}

/* A Workload has its job's name, or the other one that queue_slice_name gives. */
static void look_for_workload(void *context, const char *key)
{
    size_t length = strlen(key), suffix = strlen(QUEUE_SLICE_SUFFIX);
    look(context, key);
    if (length <= suffix || strcmp(key + length - suffix, QUEUE_SLICE_SUFFIX) != 0)
        return;
    SCOPED_FREE char *job = memory_format("%.*s", (int)(length - suffix), key);
    look(context, job);
}

static void workload_changed(void *context, const char *key, const void *old, const void *item)
{
    (void)old;
    (void)item;
    look_for_workload(context, key);
}

static void workload_event(void *context, const char *key, const void *item)
{
    (void)item;
    look_for_workload(context, key);
}

static void look_at_all(struct controller *controller)
{
    const char *key;
    void *entry;
    for (size_t at = 0; hash_map_next(&controller->entries, &at, &key, &entry);)
        work_queue_add(controller->queue, entry);
}

static void all_synced(void *context)
{
    struct controller *controller = context;
    if (!is_synced(controller))
        return;
    log_info("caches are complete, jobs are reconciled from now on", NULL);
    look_at_all(controller);
}

/* Jobs have waited for what was refused or not listed yet. */
static void shown_again(void *context)
{
    look_at_all(context);
}

static void trouble(void *context, const struct error *error)
{
    (void)context;
    log_warning("watching failed, trying again", "why", error->message, NULL);
}

static struct informer_options base_options(struct controller *controller, struct kube_resource resource)
{
    return (struct informer_options){
        .resource = resource,
        .name_space = controller->options.name_space,
        .on_synced = all_synced,
        .on_access_restored = shown_again,
        .on_failure = trouble,
        .context = controller,
    };
}

/* For objects that belong to a job and have its label: every change of one makes the operator look at the job. */
static struct informer_options child_options(struct controller *controller, struct kube_resource resource,
                                             void *(*parse)(void *context, const struct json *object))
{
    struct informer_options options = base_options(controller, resource);
    options.label_selector = LABEL_JOB_UID;
    options.parse = parse;
    options.item_free = free;
    options.on_added = child_event;
    options.on_changed = child_changed;
    options.on_deleted = child_event;
    return options;
}

static void *parse_group(void *context, const struct json *object)
{
    (void)context;
    return group_view_new(object);
}

/* They are looked for when a job needs them. */
static void prepare_groups(struct controller *controller)
{
    for (int scheduler = GANG_NONE + 1; scheduler < GANG_SCHEDULER_COUNT; scheduler++) {
        const struct gang_kind *kind = gang_kind_of((enum gang_scheduler)scheduler);
        struct optional_api_options options = {.group = kind->group, .plural = POD_GROUP_PLURAL};
        memcpy(options.versions, kind->versions, sizeof options.versions);
        options.informer = child_options(controller, (struct kube_resource){0}, parse_group);
        controller->groups[scheduler] = optional_api_new(controller->client, &options);
    }
}

static void *parse_workload(void *context, const struct json *object)
{
    (void)context;
    return workload_view_new(object);
}

static void *parse_flavor(void *context, const struct json *object)
{
    (void)context;
    return flavor_view_new(object);
}

/* For objects that many jobs may wait for: flavors and classes. */
static void shared_event(void *context, const char *key, const void *item)
{
    (void)key;
    (void)item;
    look_at_all(context);
}

static void shared_changed(void *context, const char *key, const void *old, const void *item)
{
    (void)old;
    shared_event(context, key, item);
}

static void prepare_queue(struct controller *controller)
{
    struct optional_api_options workloads = {
        .group = KUEUE_GROUP, .plural = WORKLOAD_PLURAL, .versions = {"v1beta2", "v1beta1"}};
    struct optional_api_options flavors = workloads;
    workloads.informer = child_options(controller, (struct kube_resource){0}, parse_workload);
    workloads.informer.on_added = workloads.informer.on_deleted = workload_event;
    workloads.informer.on_changed = workload_changed;
    flavors.plural = FLAVOR_PLURAL;
    flavors.informer = base_options(controller, (struct kube_resource){0});
    flavors.informer.name_space = NULL;
    flavors.informer.parse = parse_flavor;
    flavors.informer.item_free = free;
    flavors.informer.on_added = shared_event;
    controller->workloads = optional_api_new(controller->client, &workloads);
    controller->flavors = optional_api_new(controller->client, &flavors);
}

static void *parse_class(void *context, const struct json *object)
{
    (void)context;
    return class_view_new(object);
}

static void free_class(void *item)
{
    class_view_free(item);
}

/* They are looked for when a job needs them: the definition may be missing, and so may the right to see them. */
static void prepare_classes(struct controller *controller)
{
    for (int kind = 0; kind < TRAINING_CLASS_KIND_COUNT; kind++) {
        struct optional_api_options options = {.group = API_GROUP,
                                               .plural = training_class_plural((enum training_class_kind)kind),
                                               .versions = {API_VERSION}};
        options.informer = base_options(controller, (struct kube_resource){0});
        if (kind == TRAINING_CLASS_CLUSTER)
            options.informer.name_space = NULL;
        options.informer.parse = parse_class;
        options.informer.item_free = free_class;
        options.informer.on_added = shared_event;
        options.informer.on_changed = shared_changed;
        options.informer.on_deleted = shared_event; /* jobs that wait for it say what was wrong with it */
        controller->classes[kind] = optional_api_new(controller->client, &options);
    }
}

static void *parse_node(void *context, const struct json *object)
{
    (void)context;
    return node_trouble_new(object);
}

/* Queues the jobs that have pods on the node. */
static void node_trouble_added(void *context, const char *node, const void *item)
{
    struct controller *controller = context;
    const char *key;
    void *value;
    (void)item;
    if (!nodes_are_known(controller)) /* once they are, all jobs are queued */
        return;
    for (size_t at = 0; hash_map_next(&controller->entries, &at, &key, &value);)
        if (job_entry_has_pod_on(value, node))
            work_queue_add(controller->queue, value);
}

/* Queues all jobs: pods of any job may have avoided the node, and may use it now. */
static void node_trouble_changed(void *context, const char *node, const void *old, const void *item)
{
    const struct node_trouble *before = old, *after = item;
    (void)node;
    if (strcmp(before->conditions, after->conditions) != 0 || strcmp(before->removal_taint, after->removal_taint) != 0)
        look_at_all(context);
}

/* A cluster's administrator may not let the operator see nodes, and the embedded control plane has none: jobs that have waited for the
 * list of nodes go on without it. */
static void node_watch_failed(void *context, const struct error *error)
{
    struct controller *controller = context;
    const struct error *refusal = informer_refusal(controller->nodes);
    if (!refusal)
        log_debug("watching nodes failed, trying again", "why", error->message, NULL);
    if (!refusal || controller->nodes_refused)
        return;
    controller->nodes_refused = true;
    if (refusal->kind != ERROR_NOT_FOUND)
        log_info(
            controller->taints
                ? "nodes cannot be watched, so pods stay on nodes that are about to be removed, and sick nodes get "
                  "no taint; allow the operator to list and watch nodes"
                : "nodes cannot be watched, so pods stay on nodes that are about to be removed; allow the operator "
                  "to list and watch nodes",
            "why", refusal->message, NULL);
    look_at_all(controller);
}

static void start_nodes(struct controller *controller)
{
    struct informer_options nodes = base_options(controller, KUBE_NODES);
    nodes.name_space = NULL;
    nodes.parse = parse_node;
    nodes.item_free = free;
    nodes.on_added = node_trouble_added;
    nodes.on_changed = node_trouble_changed;
    nodes.on_deleted = shared_event;
    nodes.on_synced = shown_again;
    nodes.on_access_restored = NULL;
    nodes.on_failure = node_watch_failed;
    controller->nodes = informer_start(controller->client, &nodes);
    struct node_taints_options taints = {.client = controller->client,
                                         .recorder = controller->recorder,
                                         .nodes = controller->nodes,
                                         .window_ms = controller->options.sick_node_ms};
    if (taints.window_ms > 0)
        controller->taints = node_taints_start(&taints);
}

static void start_informers(struct controller *controller)
{
    struct informer_options jobs = base_options(controller, JOBS);
    jobs.parse = parse_job;
    jobs.item_free = free_job;
    jobs.on_added = job_added;
    jobs.on_changed = job_changed;
    jobs.on_deleted = job_forgotten;
    struct informer_options pods = child_options(controller, KUBE_PODS, parse_pod);
    pods.on_added = pod_added;
    pods.on_changed = pod_changed;
    pods.on_deleted = pod_deleted;
    struct informer_options services = child_options(controller, KUBE_SERVICES, parse_service);
    controller->jobs = informer_start(controller->client, &jobs);
    controller->pods = informer_start(controller->client, &pods);
    controller->services = informer_start(controller->client, &services);
    start_nodes(controller);
}

/* ---------------------------------------------------------------- life cycle */

/* If the notifier cannot be started, this is logged, and jobs run without notifications. */
static void start_notifier(struct controller *controller)
{
    struct error error = ERROR_INIT;
    struct notifier_options options = {
        .sink = controller->options.notification_sink, .done = notified, .context = controller};
    if (options.sink &&
        notifier_new(kube_client_loop(controller->client), &options, &controller->executor.notifier, &error) < 0)
        log_error("notifications cannot be sent", "why", error.message, NULL);
    controller->options.plan.notifies = controller->executor.notifier != NULL;
}

struct controller *controller_start(struct kube_client *client, struct http_client *pods_client,
                                    const struct controller_options *options)
{
    struct controller *controller = memory_allocate(1, sizeof *controller);
    controller->client = client;
    controller->options = *options;
    controller->options.plan.watching_since_ms = clock_now_ms();
    controller->options.plan.unrecorded_crews = options->holds_lease;
    hash_map_init_keys_in_values(&controller->entries);
    controller->queue = work_queue_new(kube_client_loop(client), reconcile, controller);
    work_queue_set_gate(controller->queue, may_take);
    controller->poller = progress_poller_new(pods_client, progress_came, controller);
    controller->logs = log_reader_new(client, progress_came, controller);
    struct event_recorder_options events = {.controller = API_GROUP "/operator", .instance = options->instance};
    controller->recorder = event_recorder_new(client, &events);
    controller->executor = (struct executor){
        .client = client,
        .recorder = controller->recorder,
        .options = &controller->options.plan,
        .done = executed,
        .context = controller,
    };
    start_notifier(controller);
    prepare_groups(controller);
    prepare_queue(controller);
    prepare_classes(controller);
    start_informers(controller);
    look_at_clock(controller);
    return controller;
}

void controller_stop(struct controller *controller)
{
    const char *key;
    void *entry;
    controller->stopped = true;
    event_timer_cancel(controller->clock_look);
    node_taints_stop(controller->taints);
    for (size_t at = 0; hash_map_next(&controller->entries, &at, &key, &entry);)
        forget_requests(entry);
    informer_free(controller->jobs);
    informer_free(controller->pods);
    informer_free(controller->services);
    informer_free(controller->nodes);
    for (int scheduler = GANG_NONE + 1; scheduler < GANG_SCHEDULER_COUNT; scheduler++)
        optional_api_stop(controller->groups[scheduler]);
    optional_api_stop(controller->workloads);
    optional_api_stop(controller->flavors);
    for (int kind = 0; kind < TRAINING_CLASS_KIND_COUNT; kind++)
        optional_api_stop(controller->classes[kind]);
    event_recorder_stop(controller->recorder);
    notifier_free(controller->executor.notifier);
    controller->executor.notifier = NULL;
}

void controller_free(struct controller *controller)
{
    const char *key;
    void *entry;
    event_recorder_free(controller->recorder);
    node_taints_free(controller->taints);
    for (size_t at = 0; hash_map_next(&controller->entries, &at, &key, &entry);) {
        work_queue_remove(controller->queue, entry);
        job_entry_free(entry);
    }
    hash_map_release(&controller->entries, NULL);
    work_queue_free(controller->queue);
    progress_poller_free(controller->poller);
    log_reader_free(controller->logs);
    for (int scheduler = GANG_NONE + 1; scheduler < GANG_SCHEDULER_COUNT; scheduler++)
        optional_api_free(controller->groups[scheduler]);
    optional_api_free(controller->workloads);
    optional_api_free(controller->flavors);
    for (int kind = 0; kind < TRAINING_CLASS_KIND_COUNT; kind++)
        optional_api_free(controller->classes[kind]);
    free(controller);
}

void controller_take_report(struct controller *controller, const struct push_path *path, const char *body,
                            size_t length, struct push_answer *ret_answer)
{
    SCOPED_FREE char *key = memory_format("%s/%s", path->name_space, path->job);
    if (!controller_synced(controller)) {
        *ret_answer = (struct push_answer){.status = 503, .retry_after_s = 1};
        error_set(&ret_answer->words, ERROR_UNAVAILABLE, "the operator is starting; try again");
        return;
    }
    const struct job_record *record = informer_get(controller->jobs, key);
    struct job_entry *entry = record ? entry_of(controller, key) : NULL;
    struct training_job job = {0};
    if (record)
        job = job_record_view(record);
    int64_t due_ms =
        push_intake_take(&controller->reports, entry, record ? &job : NULL, path, body, length, ret_answer);
    if (due_ms != PLAN_NEVER && due_ms <= clock_now_ms())
        work_queue_add(controller->queue, entry);
    else if (due_ms != PLAN_NEVER)
        work_queue_add_at(controller->queue, entry, due_ms);
}

bool controller_synced(const struct controller *controller)
{
    return !controller->stopped && is_synced(controller);
}

static const struct {
    const char *resource;
    size_t offset;
} watched[] = {
    {TRAINING_JOB_PLURAL, offsetof(struct controller, jobs)},
    {"pods", offsetof(struct controller, pods)},
    {"services", offsetof(struct controller, services)},
};
#define WATCHED_COUNT (sizeof watched / sizeof *watched)

static const struct error *refusal_of(const struct controller *controller, size_t i)
{
    return informer_refusal(*(struct informer *const *)((const char *)controller + watched[i].offset));
}

const struct error *controller_refusal(const struct controller *controller)
{
    const struct error *refusal = NULL;
    for (size_t i = 0; i < WATCHED_COUNT && !refusal && !controller->stopped; i++)
        refusal = refusal_of(controller, i);
    return refusal;
}

/* An API that no job has asked for within this time is not reported. */
#define NEED_MS 60000
static void write_optional(const struct optional_api *api, struct buffer *out)
{
    struct kube_resource resource = optional_api_resource(api);
    buffer_format(out, "coxswain_watch_refused{resource=\"%s.%s\"} %d\n", resource.plural, resource.group,
                  optional_api_is_missed(api, NEED_MS));
}

static void write_refusals(const struct controller *controller, struct buffer *out)
{
    buffer_format(out, "# HELP coxswain_watch_refused Whether the API server forbids the operator to watch this "
                       "resource (1: jobs that need it make no progress).\n"
                       "# TYPE coxswain_watch_refused gauge\n");
    for (size_t i = 0; i < WATCHED_COUNT; i++)
        buffer_format(out, "coxswain_watch_refused{resource=\"%s\"} %d\n", watched[i].resource,
                      refusal_of(controller, i) != NULL);
    for (int scheduler = GANG_NONE + 1; scheduler < GANG_SCHEDULER_COUNT; scheduler++)
        write_optional(controller->groups[scheduler], out);
    write_optional(controller->workloads, out);
    write_optional(controller->flavors, out);
    for (int kind = 0; kind < TRAINING_CLASS_KIND_COUNT; kind++)
        write_optional(controller->classes[kind], out);
}

static void write_jobs(const struct controller *controller, struct buffer *out)
{
    size_t counts[CONDITION_TYPE_COUNT + 1] = {0}; /* the last: of jobs without a condition that is True */
    const char *key;
    const void *item;
    for (size_t at = 0; informer_next(controller->jobs, &at, &key, &item);) {
        struct training_job job = job_record_view(item);
        if (plan_is_managed_by(job.managed_by, controller->options.plan.controller_name))
            counts[job_status_state(&job.status)]++;
    }
    buffer_format(out, "# HELP coxswain_jobs Jobs of this operator by state.\n# TYPE coxswain_jobs gauge\n");
    for (size_t state = 0; state < sizeof counts / sizeof *counts; state++)
        buffer_format(out, "coxswain_jobs{state=\"%s\"} %zu\n", job_state_name((enum condition_type)state),
                      counts[state]);
}

static void write_events(struct event_recorder_counts counts, struct buffer *out)
{
    buffer_format(out,
                  "# HELP coxswain_event_writes_total Writes of Kubernetes Events, by result.\n"
                  "# TYPE coxswain_event_writes_total counter\n"
                  "coxswain_event_writes_total{result=\"written\"} %" PRIu64 "\n"
                  "coxswain_event_writes_total{result=\"failed\"} %" PRIu64 "\n"
                  "coxswain_event_writes_total{result=\"dropped\"} %" PRIu64 "\n",
                  counts.written, counts.failed, counts.dropped);
}

static void write_polls(struct progress_counts counts, struct buffer *out)
{
    buffer_format(out,
                  "# HELP coxswain_status_polls_total Requests for the status of chiefs and evaluators, by result.\n"
                  "# TYPE coxswain_status_polls_total counter\n"
                  "coxswain_status_polls_total{result=\"answered\"} %" PRIu64 "\n"
                  "coxswain_status_polls_total{result=\"refused\"} %" PRIu64 "\n"
                  "coxswain_status_polls_total{result=\"unanswered\"} %" PRIu64 "\n",
                  counts.answered, counts.refused, counts.unanswered);
}

int controller_write_metrics(const struct controller *controller, struct buffer *out, struct error *error)
{
    if (controller->stopped)
        return 0;
    write_jobs(controller, out);
    buffer_format(out,
                  "# HELP coxswain_pods_cached Pods of all jobs.\n# TYPE coxswain_pods_cached gauge\n"
                  "coxswain_pods_cached %zu\n"
                  "# HELP coxswain_queue_depth Jobs that wait to be reconciled.\n# TYPE coxswain_queue_depth gauge\n"
                  "coxswain_queue_depth %zu\n",
                  informer_count(controller->pods), work_queue_depth(controller->queue));
    write_refusals(controller, out);
    write_events(event_recorder_counts(controller->recorder), out);
    write_polls(progress_poller_counts(controller->poller), out);
    if (controller->executor.notifier)
        notifier_write_metrics(controller->executor.notifier, out);
    return reconcile_metrics_write(&controller->metrics, out, error);
}
