/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/plan_job.h"

#include <string.h>

#include "operator/controller/plan/conditions.h"
#include "operator/controller/plan/finishing.h"
#include "operator/controller/plan/first_crew.h"
#include "operator/controller/plan/hang_report.h"
#include "operator/controller/plan/join.h"
#include "operator/controller/plan/node_avoidance.h"
#include "operator/controller/plan/notice.h"
#include "operator/controller/plan/policies.h"
#include "operator/controller/plan/progress_deadline.h"
#include "operator/controller/plan/progress_status.h"
#include "operator/controller/plan/queue_plan.h"
#include "operator/controller/plan/replicas.h"
#include "operator/controller/plan/saves.h"
#include "operator/controller/plan/script_progress.h"
#include "operator/controller/plan/status_change.h"
#include "operator/controller/plan/straggler.h"

/* While a job is being deleted, a finalizer keeps it, or Kubernetes waits for the end of its pods (kubectl delete --cascade=foreground).
 * New objects would soon have no owner, and an end of a pod does not count any more. */
static bool deleting_plan(struct planning *planning)
{
    return planning->job->deleted_ms != FIELD_UNSET;
}

static bool (*const policies[])(struct planning *planning) = {
    dead_node_plan,      deleting_plan, adopt_plan,      ttl_plan,
    clean_plan,          invalid_plan,  leftovers_plan,  class_plan,
    completion_plan,     deadline_plan, suspend_plan,    start_plan,
    take_back_plan,      limit_plan,    pause_plan,      progress_deadline_plan,
    judge_plan,          scale_plan,    node_leave_plan, straggler_plan,
    node_avoidance_plan, replace_plan,  gang_plan,       certificate_plan,
    crew_key_plan,       create_plan,
};

/* Clears the promise of each pod that exists. After the job is over, promises stay, so that a late create can be distinguished from a pod
 * that may go on. */
static void clear_kept_promises(struct planning *planning)
{
    if (status_terminal(planning->old))
        return;
    for (size_t i = 0; i < planning->crew.slot_count; i++)
        planning->crew.slots[i].wanted &= planning->crew.slots[i].occupant == NULL;
}

/* A pod that came and went before its promise was cleared must not come again under the same name and incarnation. */
static void break_gone_promises(struct planning *planning)
{
    const struct plan_input *input = planning->input;
    if (status_terminal(planning->old) || input->memory.gone_incarnation != planning->old->incarnation)
        return;
    for (size_t i = 0; i < input->memory.gone_count; i++) {
        struct slot *slot = crew_slot_at(&planning->crew, input->memory.gone[i].role, input->memory.gone[i].index);
        if (slot && slot->promised && !slot->occupant)
            slot->promised = slot->wanted = slot->fresh = false;
    }
}

static void note_unsure(struct planning *planning)
{
    for (size_t i = 0; i < planning->input->memory.unsure_count; i++) {
        const struct unsure_pod *pod = &planning->input->memory.unsure[i];
        struct slot *slot = crew_slot_at(&planning->crew, pod->role, pod->index);
        if (slot)
            slot->unsure_incarnation = pod->incarnation;
    }
}

/* Numbers wait for a moment before they are written, and a pod may be removed before. */
static void note_finished(struct planning *planning)
{
    const struct plan_input *input = planning->input;
    for (size_t i = 0; i < input->memory.finished_count; i++) {
        const struct finished_pod *pod = &input->memory.finished[i];
        struct slot *slot = crew_slot_at(&planning->crew, pod->role, pod->index);
        if (slot && !slot->promised && !slot->occupant && !slot->fresh && pod->attempt == planning->old->attempt)
            slot->done = true;
    }
    planning->plan->finished = input->memory.finished_count;
}

/* A request whose answer was lost may have been carried out. */
static void take_obstacle(struct planning *planning)
{
    const struct plan_input *input = planning->input;
    bool matters = !input->service || crew_unfilled(&planning->crew) || queue_lacks_workload(planning);
    if (matters)
        planning->obstacle = input->memory.obstacle;
    planning->plan->obstacle_over = !matters && input->memory.obstacle.kind != OBSTACLE_NONE;
}

/* The pace is reported while the crew works and its chief answers. After a success, the last values stay as the result. */
static void update_progress(struct planning *planning)
{
    struct job_status *next = planning->next;
    bool succeeded = condition_is(next, CONDITION_SUCCEEDED, CONDITION_TRUE);
    planning->plan->took_progress = planning->input->progress != NULL;
    if (planning->plan->took_progress)
        next->progress = *planning->input->progress;
    script_progress_update(planning);
    if (succeeded && !status_terminal(planning->old))
        progress_complete(&next->progress);
    else if (!succeeded &&
             (planning->input->chief_voice != CHIEF_HEARD || !condition_is(next, CONDITION_RUNNING, CONDITION_TRUE)))
        progress_rest(&next->progress);
}

static void update_status(struct planning *planning)
{
    planning->next->observed_generation = planning->job->generation;
    if (!planning->job->elastic.enabled && planning->old->attempt > 0 && !planning->input->invalid)
        planning->next->workers = planning->job->document.workers;
    scale_down(planning);
    suspend_take_back(planning);
    absence_update(planning);
    replicas_update(planning);
    finishing_update(planning);
    conditions_update(planning);
    update_progress(planning);
    progress_deadline_update(planning);
    saves_update(planning);
    join_update(planning);
    straggler_update(planning);
    node_avoidance_update(planning);
    notice_update(planning);
    hang_report_update(planning);
}

/* When a condition last turned. */
static int64_t newest_transition(const struct job_status *status)
{
    int64_t newest_ms = FIELD_UNSET;
    for (int type = 0; type < CONDITION_TYPE_COUNT; type++)
        if (status->conditions[type].status != CONDITION_ABSENT &&
            status->conditions[type].last_transition_ms > newest_ms)
            newest_ms = status->conditions[type].last_transition_ms;
    return newest_ms;
}

/* A kept promise is to be cleared soon: it is what a successor of this operator would keep once more. */
static bool promises_differ(const struct planning *planning)
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        const char *old = planning->old->replicas[role].pending, *next = planning->next->replicas[role].pending;
        if (strcmp(old ? old : "", next ? next : "") != 0)
            return true;
    }
    return false;
}

/* A crew that starts slowly shows its numbers after one second, four, nine and so on. */
#define COUNT_WAIT_GROWTH 3
static int64_t count_wait_ms(const struct planning *planning, int64_t since_ms)
{
    const struct plan_options *options = planning->input->options;
    int64_t newest_ms = newest_transition(planning->old);
    if (newest_ms == FIELD_UNSET || newest_ms >= since_ms || promises_differ(planning))
        return options->count_write_ms;
    int64_t age_ms = since_ms - newest_ms;
    int64_t wait_ms = age_ms < options->count_write_max_ms ? COUNT_WAIT_GROWTH * age_ms : options->count_write_max_ms;
    if (wait_ms < options->count_write_ms)
        return options->count_write_ms;
    return wait_ms < options->count_write_max_ms ? wait_ms : options->count_write_max_ms;
}

/* While pods change, what they change next would be another write; that the whole crew runs is then told at once. */
static int64_t count_quiet_ms(const struct planning *planning, int64_t since_ms)
{
    const struct plan_input *input = planning->input;
    bool is_set_back = input->memory.pods_changed_ms != FIELD_UNSET && input->memory.pods_changed_ms > input->now_ms;
    bool matters = promises_differ(planning) && !planning->plan->begun;
    if (input->memory.pods_changed_ms == FIELD_UNSET || is_set_back || matters)
        return since_ms;
    int64_t quiet_ms = input->memory.pods_changed_ms + input->options->count_write_ms;
    int64_t latest_ms = since_ms + input->options->count_gather_max_ms;
    return quiet_ms < latest_ms ? quiet_ms : latest_ms;
}

/* Changes of mere numbers are gathered for a moment: pods start and end together. */
static void decide_count_write(struct planning *planning)
{
    const struct plan_input *input = planning->input;
    int64_t since_ms = input->memory.counts_since_ms == FIELD_UNSET ? input->now_ms : input->memory.counts_since_ms;
    int64_t due_ms = since_ms + count_wait_ms(planning, since_ms), quiet_ms = count_quiet_ms(planning, since_ms);
    due_ms = quiet_ms > due_ms ? quiet_ms : due_ms;
    bool set_back = input->now_ms < since_ms; /* the clock, since then */
    planning->plan->write_status = input->progress_due || input->now_ms >= due_ms || set_back;
    planning->plan->counts_wait = !planning->plan->write_status;
    if (planning->plan->counts_wait)
        planning_requeue(planning, due_ms);
}

/* The start of the first crew is written together with its result, like counts. */
static enum status_change change_of(const struct planning *planning)
{
    if (planning->plan->begun)
        return first_crew_starts(planning->next) ? STATUS_COUNTS : STATUS_DECISION;
    return status_compare(planning->old, planning->next);
}

static void decide_write(struct planning *planning)
{
    switch (change_of(planning)) {
    case STATUS_SAME:
        break;
    case STATUS_PROGRESS:
        planning->plan->write_status = planning->input->progress_due;
        break;
    case STATUS_COUNTS:
        decide_count_write(planning);
        break;
    case STATUS_DECISION:
        planning->plan->write_status = true;
        break;
    }
}

/* The Workload asks for what the class gives, so the class is taken first. */
static void delegate(struct planning *planning)
{
    const char *reason, *why;
    take_obstacle(planning);
    if (!ttl_plan(planning) && !class_plan(planning) && !queue_delegate(planning, &reason, &why)) {
        suspend_elsewhere(planning, reason, why);
        replicas_update(planning);
        conditions_update(planning);
        progress_rest(&planning->next->progress);
    }
    decide_write(planning);
}

/* Returns whether the job is being deleted and was never started, or its status is older than its pods: its status is then not written any
 * more. */
static bool is_given_up(const struct planning *planning)
{
    bool unseen = first_crew_may_lie_ahead(planning->old) && planning->crew.alive_count == 0;
    return planning->job->deleted_ms != FIELD_UNSET && (unseen || planning->crew.ahead);
}

void plan_job(const struct plan_input *input, struct plan *ret_plan)
{
    ret_plan->requeue_ms = PLAN_NEVER;
    ret_plan->status = input->job->status;
    ret_plan->gang = input->gang;
    ret_plan->queue = input->queue;
    ret_plan->now_ms = input->now_ms;
    ret_plan->foreign = input->memory.foreign_reported;
    ret_plan->queue_change_waits = input->memory.queue_change_reported;
    bool is_delegated = queue_is_delegated(input->job);
    if (!plan_is_managed_by(input->job->managed_by, input->options->controller_name))
        return;
    struct planning planning = {
        .input = input,
        .job = input->job,
        .old = &input->job->status,
        .next = &ret_plan->status,
        .plan = ret_plan,
        .crew = crew_assemble(input->job, input->pods, input->pod_count, &ret_plan->arena),
        .now_ms = input->now_ms,
    };
    struct training_job begun;
    if (is_given_up(&planning))
        return;
    if (is_delegated) {
        delegate(&planning);
        return;
    }
    if (first_crew_may_begin(&planning))
        first_crew_begin(&planning, &begun);
    ret_plan->attempt = planning.old->attempt;
    ret_plan->incarnation = planning.old->incarnation;
    ret_plan->first_pods = first_crew_is_unmade(&planning);
    ret_plan->has_run = planning_has_run(&planning);
    if (!status_terminal(planning.old) && catch_up_plan(&planning))
        return;
    clear_kept_promises(&planning);
    break_gone_promises(&planning);
    note_unsure(&planning);
    note_finished(&planning);
    planning.finishing = finishing_of(&planning);
    if (planning.finishing == FINISHING_WAITS && !status_terminal(planning.old))
        finishing_promise_nobody(&planning);
    take_obstacle(&planning);
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        if (policies[i](&planning))
            break;
    update_status(&planning);
    if (input->job->deleted_ms == FIELD_UNSET)
        queue_report(&planning);
    decide_write(&planning);
}

void plan_without_job(const struct plan_input *input, struct plan *ret_plan)
{
    ret_plan->requeue_ms = PLAN_NEVER;
    ret_plan->now_ms = input->now_ms;
    struct planning planning = {.input = input, .job = input->job, .plan = ret_plan, .now_ms = input->now_ms};
    dead_node_plan(&planning);
}

static bool counts_on(const struct job_status *old, const struct job_status *next)
{
    return old->restart_count != next->restart_count || old->incarnation != next->incarnation ||
           old->attempt != next->attempt || old->charged_ms != next->charged_ms ||
           old->suspended_ms != next->suspended_ms || old->backoff_until_ms != next->backoff_until_ms;
}

bool plan_only_informs(const struct plan *plan, const struct job_status *old)
{
    const struct job_status *next = &plan->status;
    bool waited_for = plan->begun ? !first_crew_is_whole(next) : replicas_promised(next) || counts_on(old, next);
    waited_for |= plan->class_defaults != NULL;
    return plan->action_count == 0 && plan->write_status && !waited_for && !status_terminal(next);
}
