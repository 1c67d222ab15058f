/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/queue_plan.h"

#include <inttypes.h>
#include <string.h>

#include "common/contract/labels.h"
#include "operator/controller/objects/queue_build.h"
#include "operator/controller/observed/owner.h"
#include "operator/controller/plan/policies.h"

/* Returns `workload` if it counts: it is the job's, and is not being deleted. */
static const struct workload_view *counted(const struct workload_view *workload, const char *job_uid)
{
    return workload && owner_is_job(workload->owner_uid, workload->job_uid, job_uid) && !workload->deleting ? workload
                                                                                                            : NULL;
}

/* Kueue finishes a Workload a moment before it admits the one that replaces it. If that fails, the latter waits for all of its quota. */
#define REPLACED_MAX_MS 30000

static bool is_overdue(const struct queue_input *queue, int64_t now_ms)
{
    return queue->replaced_since_ms != FIELD_UNSET && now_ms - queue->replaced_since_ms >= REPLACED_MAX_MS;
}

struct queue_workloads queue_workloads_of(const struct queue_input *queue, const char *job_uid, int64_t now_ms)
{
    const struct workload_view *one = counted(queue->workload, job_uid), *other = counted(queue->slice, job_uid);
    if (!one || !other) {
        struct queue_workloads only = {.holder = one ? one : other};
        if (only.holder && only.holder->replaced)
            only = (struct queue_workloads){.surplus = only.holder};
        return only;
    }
    const struct workload_view *older = one->slice < other->slice ? one : other, *newer = older == one ? other : one;
    if (newer->replaced)
        return (struct queue_workloads){.holder = older, .surplus = newer};
    bool has_come = newer->admitted || (older->replaced && !newer->reserved && is_overdue(queue, now_ms));
    if (has_come)
        return (struct queue_workloads){.holder = newer, .surplus = older};
    return (struct queue_workloads){.holder = older, .growth = newer};
}

static struct queue_workloads workloads_of(const struct planning *planning)
{
    return queue_workloads_of(&planning->input->queue, planning->job->uid, planning->now_ms);
}

/* Returns the Workload by which the job has quota or asks for it; NULL: there is none. */
static const struct workload_view *own_workload(const struct planning *planning)
{
    return workloads_of(planning).holder;
}

static bool is_queued(const struct planning *planning)
{
    return planning->job->queue_name && planning->job->queue_name[0] != '\0';
}

/* Returns whether MultiKueue has created the job's Workload, and will delete it. */
static bool is_prebuilt(const struct planning *planning)
{
    return planning->job->queue_workload != NULL;
}

bool queue_is_delegated(const struct training_job *job)
{
    return job->managed_by && strcmp(job->managed_by, MANAGED_BY_MULTIKUEUE) == 0;
}

/* The Workload that MultiKueue has created has the labels of the one in the cluster of the queue, and no owner. */
bool queue_lacks_workload(const struct planning *planning)
{
    const struct queue_input *queue = &planning->input->queue;
    return is_queued(planning) && queue->state == OPTIONAL_READY &&
           ((!queue->workload && !own_workload(planning)) ||
            (is_prebuilt(planning) &&
             !owner_is_job(queue->workload->owner_uid, queue->workload->job_uid, planning->job->uid)));
}

static const char *looking(struct planning *planning)
{
    const char *refusal = planning->input->queue.refusal;
    return refusal && *refusal
               ? planning_format(planning, "the operator has no access to the Workloads of Kueue: %s", refusal)
               : "looking for the job's Workload";
}

/* Decides while the Workloads are not cached: a crew that runs continues to run. */
static bool admits_unseen(struct planning *planning, const char **ret_reason, const char **ret_message)
{
    bool missing = planning->input->queue.state == OPTIONAL_MISSING;
    bool runs = planning->old->attempt > 0 && !status_deletes_pods(planning->old);
    planning_await_api(planning, planning->input->queue.state);
    *ret_reason = missing ? "KueueMissing" : "Queued";
    *ret_message = missing
                       ? "the job is labelled with a queue, but the cluster does not serve the Workloads of Kueue in "
                         "a version that this operator knows: install it, or take the label off"
                       : looking(planning);
    return runs;
}

/* Returns why the Workload could not be created, by the API server's message; "": not known. */
static const char *refusal_of(const struct planning *planning)
{
    return planning->obstacle.kind == OBSTACLE_NONE ? "" : planning->obstacle.message;
}

bool queue_admits(struct planning *planning, const char **ret_reason, const char **ret_message)
{
    const struct queue_input *queue = &planning->input->queue;
    const struct workload_view *workload = own_workload(planning);
    if (!is_queued(planning) && !(workload && workload->evicted && workload->reserved))
        return true;
    if (is_queued(planning) && queue->state != OPTIONAL_READY)
        return admits_unseen(planning, ret_reason, ret_message);
    if (workload && workload->admitted && !workload->evicted)
        return true;
    bool evicted = workload && workload->evicted;
    const char *words = evicted ? workload->evicted_message : workload ? workload->waiting : refusal_of(planning);
    *ret_reason = evicted ? "Evicted" : "Queued";
    *ret_message = planning_format(planning, "%s queue %s%s%s", evicted ? "evicted from" : "waiting in",
                                   is_queued(planning) ? planning->job->queue_name : workload->queue_name,
                                   *words ? ": " : "", words);
    return false;
}

/* Returns whether the job's quota follows its number of workers while it runs. Kueue does not free the topology domains of pods that go. */
static bool changes_quota(const struct planning *planning, const struct workload_view *workload)
{
    const struct training_job *job = planning->job;
    return job->queue_elastic && job->elastic.enabled && !is_prebuilt(planning) && !queue_is_delegated(job) &&
           !workload->has_topology;
}

/* Returns for how many workers the job keeps quota, which it may have for more. Kueue allows no number below minCount. */
static int64_t workers_kept(const struct planning *planning, const struct workload_view *workload)
{
    int64_t wanted = planning->job->elastic.wanted_workers;
    return wanted > workload->least_workers ? wanted : workload->least_workers;
}

bool queue_take_admission(struct planning *planning)
{
    const struct workload_view *workload = own_workload(planning);
    const struct job_status *old = planning->old;
    if (!planning->job->elastic.enabled || !workload || !workload->admitted || workload->evicted ||
        workload->admitted_workers == 0)
        return false;
    int64_t admitted = workload->admitted_workers, wanted = planning->job->elastic.wanted_workers;
    if (changes_quota(planning, workload) && workers_kept(planning, workload) < admitted)
        admitted = workers_kept(planning, workload);
    bool is_new = admitted != old->admitted_workers || old->observed_generation != planning->job->generation;
    planning->next->admitted_workers = admitted;
    if (admitted < wanted && is_new)
        planning_event(
            planning, false, "AdmittedInPart", "Queue",
            planning_format(planning,
                            "queue %s admits %" PRId64 " of %" PRId64 " workers, so the job trains with these; %s",
                            workload->queue_name, admitted, wanted,
                            changes_quota(planning, workload) ? "it gets more as soon as there is quota for all"
                                                              : "to ask for all again, suspend and resume it"));
    return (admitted < wanted ? admitted : wanted) != planning->job->document.workers;
}

bool queue_pins_nodes(const struct planning *planning)
{
    const struct workload_view *workload = own_workload(planning);
    return workload && workload->admitted && workload->pins_nodes;
}

static void act_on(struct planning *planning, enum action_type type, const struct workload_view *workload)
{
    planning_act(planning, type, NULL);
    planning->plan->actions[planning->plan->action_count - 1].workload = workload;
}

void queue_dismiss(struct planning *planning)
{
    struct queue_workloads workloads = workloads_of(planning);
    const struct workload_view *all[] = {workloads.holder, workloads.growth, workloads.surplus};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] && !is_prebuilt(planning))
            act_on(planning, ACTION_DELETE_WORKLOAD, all[i]);
}

static void tell_of_change(struct planning *planning, const struct workload_view *workload)
{
    const char *name = planning->job->queue_name;
    planning->plan->queue_change_waits = true;
    if (planning->input->memory.queue_change_reported)
        return;
    const char *change = is_queued(planning) ? planning_format(planning, "the job's queue is now %s", name)
                                             : "the label " LABEL_QUEUE_NAME " was taken off";
    planning_event_of_action(planning, "QueueChangeWaits", "Queue",
                             planning_format(planning,
                                             "%s, but the job has quota of queue %s: it keeps that until it is evicted "
                                             "or suspended (spec.suspend) and resumed",
                                             change, workload->queue_name));
}

/* Deletes the Workload of a job that left its queue. While pods of the job are alive they keep its
 * quota and its admission; those in another cluster are not known here. */
static void leave_queue(struct planning *planning, const struct workload_view *workload)
{
    bool runs_elsewhere = queue_is_delegated(planning->job) && !workload->evicted && !planning->job->suspend;
    if (workload->reserved && (planning->crew.alive_count > 0 || runs_elsewhere))
        tell_of_change(planning, workload);
    else
        act_on(planning, ACTION_DELETE_WORKLOAD, workload);
}

static void ask_for(struct planning *planning, enum action_type type, const struct workload_view *workload,
                    int64_t workers, int64_t least)
{
    act_on(planning, type, workload);
    struct action *action = &planning->plan->actions[planning->plan->action_count - 1];
    action->workers = workers;
    action->least_workers = least;
}

/* An elastic job may be scaled while it waits. Kueue lets the number of a Workload be changed as long as it has no quota, and the Workload
 * keeps its place in the queue, which goes by its creation. */
static bool asks_for_others(const struct planning *planning, const struct workload_view *workload)
{
    int64_t workers = queue_pods(planning->job, ROLE_WORKER);
    bool was_slice = workload->slice > 0 && workload->least_workers != queue_least_workers(planning->job, workers);
    return planning->job->elastic.enabled && !workload->reserved && (workload->workers != workers || was_slice);
}

/* Returns whether Kueue may be asked to change the quota of a job that runs. */
static bool change_is_due(struct planning *planning)
{
    bool is_due = planning->now_ms >= planning->input->queue.change_retry_ms;
    if (!is_due)
        planning_requeue(planning, planning->input->queue.change_retry_ms);
    return is_due;
}

static bool has_worker_from(const struct planning *planning, int64_t index)
{
    for (size_t i = 0; i < planning->input->pod_count; i++) {
        const struct pod_view *pod = planning->input->pods[i];
        if (pod_view_is_of(pod, planning->job->uid) && pod_view_alive(pod) && pod->role == ROLE_WORKER &&
            pod->index >= index)
            return true;
    }
    return false;
}

/* Lowers the number of workers with quota, which frees it at once. First the status says that the job has fewer, so that no operator
 * creates pods above the new number, and their last pod is gone. */
static void give_quota_back(struct planning *planning, const struct workload_view *workload)
{
    int64_t kept = workers_kept(planning, workload), noted = planning->old->admitted_workers;
    if (!changes_quota(planning, workload) || !workload->admitted || workload->evicted || workload->finished ||
        workload->admitted_workers <= kept || noted == FIELD_UNSET || noted > kept || has_worker_from(planning, kept))
        return;
    if (change_is_due(planning))
        ask_for(planning, ACTION_RESIZE_WORKLOAD, workload, kept, workload->least_workers);
}

/* Returns whether the job may get more quota than it has while it runs, in addition. */
static bool may_grow(const struct planning *planning, const struct workload_view *holder)
{
    return holder && is_queued(planning) && changes_quota(planning, holder) && holder->admitted && !holder->evicted &&
           strcmp(holder->queue_name, planning->job->queue_name) == 0;
}

/* Asks for more workers with another Workload. One that waits is not deleted when fewer are wanted, because Kueue may be admitting it: as in
 * Kueue's own integrations it asks for the other number then. */
static void grow(struct planning *planning, const struct queue_workloads *workloads)
{
    const struct workload_view *holder = workloads->holder, *growth = workloads->growth;
    const struct queue_input *queue = &planning->input->queue;
    int64_t wanted = planning->job->elastic.wanted_workers;
    bool name_is_free = !(holder == queue->workload ? queue->slice : queue->workload);
    if (growth) {
        wanted = wanted > holder->admitted_workers ? wanted : holder->admitted_workers;
        if (growth->workers != wanted && (!growth->reserved || wanted < growth->workers))
            ask_for(planning, ACTION_RESIZE_WORKLOAD, growth, wanted, 0);
    } else if (wanted > holder->admitted_workers && holder->admitted_workers > 0 && name_is_free &&
               planning->finishing == FINISHING_NOT && change_is_due(planning)) {
        ask_for(planning, ACTION_CREATE_SLICE, holder, wanted, 0);
    }
}

/* Looks after the Workload that is to replace the one by which the job has quota, and the one that was replaced. */
static void keep_other_workload(struct planning *planning)
{
    struct queue_workloads workloads = workloads_of(planning);
    if (workloads.surplus)
        act_on(planning, ACTION_DELETE_WORKLOAD, workloads.surplus);
    if (may_grow(planning, workloads.holder))
        grow(planning, &workloads);
    else if (workloads.growth && !workloads.growth->reserved)
        act_on(planning, ACTION_DELETE_WORKLOAD, workloads.growth);
    const struct workload_view *replaced = workloads.growth ? workloads.holder : workloads.surplus;
    const struct workload_view *next = workloads.growth ? workloads.growth : workloads.holder;
    planning->plan->queue_replaces = replaced && replaced->replaced && next && !next->reserved;
    if (planning->plan->queue_replaces)
        planning_requeue(planning, planning->now_ms + REPLACED_MAX_MS);
}

const char *queue_growth_waits(struct planning *planning)
{
    struct queue_workloads workloads = workloads_of(planning);
    if (!workloads.growth || !may_grow(planning, workloads.holder))
        return NULL;
    int64_t more = workloads.growth->workers - workloads.holder->admitted_workers;
    if (more <= 0)
        return NULL;
    const char *words = workloads.growth->waiting;
    return planning_format(planning, "%" PRId64 " more worker%s in queue %s%s%s", more, more == 1 ? " waits" : "s wait",
                           workloads.growth->queue_name, *words ? ": " : "", words);
}

/* Handles a change of the number of workers, and of the queue's label by Kueue's rule: the queue can be changed as long as no
 * quota is reserved. After that the change is reported once, and takes effect when the job is
 * suspended or evicted. */
static void heed_change(struct planning *planning, const struct workload_view *workload)
{
    if (strcmp(workload->queue_name, planning->job->queue_name) == 0) {
        if (asks_for_others(planning, workload))
            ask_for(planning, ACTION_RESIZE_WORKLOAD, workload, queue_pods(planning->job, ROLE_WORKER),
                    queue_least_workers(planning->job, queue_pods(planning->job, ROLE_WORKER)));
        give_quota_back(planning, workload);
        return;
    }
    if (!workload->reserved) {
        act_on(planning, ACTION_DELETE_WORKLOAD, workload); /* and is made anew, for the other queue */
        return;
    }
    tell_of_change(planning, workload);
}

void queue_keep(struct planning *planning, bool suspended)
{
    const struct queue_input *queue = &planning->input->queue;
    const struct workload_view *workload = own_workload(planning);
    planning->plan->queue_change_waits = false;
    keep_other_workload(planning);
    if (workload && !is_queued(planning) && !is_prebuilt(planning))
        leave_queue(planning, workload);
    if (!is_queued(planning) || queue->state != OPTIONAL_READY)
        return;
    if (workload && !is_prebuilt(planning))
        heed_change(planning, workload);
    if (queue_lacks_workload(planning) && create_may_be_tried(planning))
        planning_act(planning, ACTION_CREATE_WORKLOAD, NULL);
    if (!workload || !suspended)
        return;
    if (workload->evicted && workload->reserved)
        act_on(planning, ACTION_RELEASE_WORKLOAD, workload);
    else if (!workload->reserved && workload->has_admission)
        act_on(planning, ACTION_CLEAR_ADMISSION, workload);
}

void queue_report(struct planning *planning)
{
    struct queue_workloads workloads = workloads_of(planning);
    const struct workload_view *workload = workloads.holder;
    if (status_terminal(planning->old) && (workloads.growth || workloads.surplus))
        act_on(planning, ACTION_DELETE_WORKLOAD, workloads.growth ? workloads.growth : workloads.surplus);
    if (!workload || workload->finished)
        return;
    struct pods_ready pods = queue_pods_ready(workload, planning->next);
    bool known = *workload->pods_ready_reason != '\0';
    bool differs = known ? workload->pods_ready != pods.ready || strcmp(workload->pods_ready_reason, pods.reason) != 0
                         : workload->admitted;
    bool ends = status_terminal(planning->old); /* the end is reported once it is durable */
    if (ends || (differs && !status_terminal(planning->next)))
        act_on(planning, ACTION_REPORT_WORKLOAD, workload);
}

/* Returns whether the job may run in the cluster that Kueue chooses. If not, `ret_reason` and `ret_message` say why. */
static bool may_run_elsewhere(struct planning *planning, const char **ret_reason, const char **ret_message)
{
    bool lacks_queue = !planning->job->suspend && !is_queued(planning) && !own_workload(planning);
    if (!planning->job->suspend && !lacks_queue)
        return queue_admits(planning, ret_reason, ret_message);
    *ret_reason = lacks_queue ? "Queued" : "Suspended";
    *ret_message = lacks_queue ? "spec.managedBy is " MANAGED_BY_MULTIKUEUE
                                 ", but the job has no label " LABEL_QUEUE_NAME ": add it"
                               : "spec.suspend is true";
    return false;
}

bool queue_delegate(struct planning *planning, const char **ret_reason, const char **ret_why)
{
    const char *invalid = planning->input->invalid;
    if (status_terminal(planning->old) || planning->job->deleted_ms != FIELD_UNSET)
        return true;
    if (invalid) {
        planning_event_of_action(planning, "InvalidSpec", "Queue", invalid);
        return true;
    }
    if (is_queued(planning) && planning->input->queue.state != OPTIONAL_READY)
        planning_await_api(planning, planning->input->queue.state);
    if (planning->job->suspend)
        queue_dismiss(planning);
    else
        queue_keep(planning, true); /* no pod is here */
    return may_run_elsewhere(planning, ret_reason, ret_why);
}
