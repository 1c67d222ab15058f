/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/progress_deadline.h"

#include <inttypes.h>

#include "operator/controller/plan/back_off.h"
#include "operator/controller/plan/limit.h"
#include "operator/controller/plan/policies.h"
#include "operator/controller/plan/progress_status.h"
#include "operator/controller/plan/restart_wait.h"

static bool runs(const struct slot *slot)
{
    const struct pod_view *pod = slot->occupant;
    return pod && *pod->init_container == '\0' && (pod->ready || pod->started_ms != FIELD_UNSET) &&
           !pod_view_ended(pod) && !pod_view_deleting(pod);
}

static bool is_done(const struct slot *slot)
{
    return slot->done || (slot->occupant && pod_view_succeeded(slot->occupant));
}

/* Returns whether all required pods run, except for those that have finished and for the workers that an elastic crew can do without. A
 * ready condition does not count: a frozen process may fail its probe. */
static bool crew_runs(const struct planning *planning)
{
    const struct training_job *job = planning->job;
    int64_t spare = job_role_count(job, ROLE_WORKER) - job_role_minimum(job, ROLE_WORKER);
    bool any = false;
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct slot *slot = &planning->crew.slots[i];
        any |= slot_required(slot) && runs(slot);
        if (!slot_required(slot) || runs(slot) || is_done(slot))
            continue;
        bool dispensable = slot->role == ROLE_WORKER && slot->index > 0;
        if (!dispensable || (planning->finishing != FINISHING_WAITS && spare-- <= 0))
            return false;
    }
    return any;
}

/* The crew waits there until the sweep decides, which takes long while no operator runs. */
static bool waits_at_a_rung(const struct training_job *job, const struct progress *progress)
{
    return job->pause_step != FIELD_UNSET && progress->step != FIELD_UNSET && progress->step >= job->pause_step;
}

/* Returns since when the crew is without a new step; FIELD_UNSET: no deadline applies. */
static int64_t counts_from_ms(const struct planning *planning)
{
    int64_t from_ms = planning_time(planning, STATUS_TIME_PROGRESSED);
    const struct answers_input *answers = &planning->input->answers;
    if (planning->job->run_policy.progress_deadline_seconds == FIELD_UNSET || from_ms == FIELD_UNSET ||
        status_deletes_pods(planning->old) || !crew_runs(planning) ||
        waits_at_a_rung(planning->job, &planning->old->progress))
        return FIELD_UNSET;
    bool says_nothing = answers->asked_ms != FIELD_UNSET && !answers->found;
    return says_nothing && answers->since_ms > from_ms ? answers->since_ms : from_ms;
}

static int64_t due_ms(const struct planning *planning, int64_t from_ms)
{
    return from_ms + 1000 * planning->job->run_policy.progress_deadline_seconds;
}

/* A chief that has finished makes no more steps, and its last report has been read. */
static bool is_seen(const struct planning *planning, int64_t after_ms)
{
    const struct slot *chief = crew_chief(&planning->crew, planning->job);
    if (chief && is_done(chief))
        return planning->input->log.unread_since_ms == FIELD_UNSET;
    return planning->input->answers.asked_ms != FIELD_UNSET && planning->input->answers.asked_ms >= after_ms;
}

static bool has_moved(const struct planning *planning)
{
    const struct plan_input *input = planning->input;
    return input->progress && !input->progress_is_evaluators &&
           progress_moved(&planning->old->progress, input->progress);
}

bool progress_deadline_is_blind(struct planning *planning)
{
    int64_t from_ms = counts_from_ms(planning);
    if (from_ms == FIELD_UNSET)
        return false;
    int64_t blind_ms = due_ms(planning, from_ms) + PROGRESS_DEADLINE_BLIND_MS;
    if (planning->now_ms < blind_ms)
        planning_requeue(planning, blind_ms);
    return planning->now_ms >= blind_ms && !has_moved(planning) && !is_seen(planning, due_ms(planning, from_ms));
}

void progress_deadline_update(struct planning *planning)
{
    struct job_status *next = planning->next;
    int64_t seconds = planning->job->run_policy.progress_deadline_seconds;
    bool applies = seconds != FIELD_UNSET && !status_terminal(next) && next->attempt == planning->old->attempt &&
                   !status_deletes_pods(next) && planning->job->deleted_ms == FIELD_UNSET && crew_runs(planning) &&
                   !waits_at_a_rung(planning->job, &next->progress);
    if (!applies) {
        next->progressed_ms = FIELD_UNSET;
    } else if (next->progressed_ms == FIELD_UNSET || (!planning->input->progress_is_evaluators &&
                                                      progress_moved(&planning->old->progress, &next->progress))) {
        next->progressed_ms = planning->now_ms;
        planning_requeue(planning, planning->now_ms + 1000 * seconds);
    }
}

/* ---------------------------------------------------------------- the crew starts over */

#define NAMED_MAX 4

static const char *names(struct planning *planning)
{
    const char *text = "";
    size_t count = 0;
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct slot *slot = &planning->crew.slots[i];
        if (slot_required(slot) && runs(slot) && count++ < NAMED_MAX)
            text = planning_format(planning, "%s%s%s", text, *text ? ", " : "", slot->occupant->name);
    }
    return count > NAMED_MAX ? planning_format(planning, "%s and %zu more", text, count - NAMED_MAX) : text;
}

static const char *last_step(struct planning *planning)
{
    const struct progress *progress = &planning->old->progress;
    if (progress->step == FIELD_UNSET)
        return progress->metric_count > 0 ? "the metrics stay the same" : "no step was reported at all";
    if (progress->total_steps == FIELD_UNSET)
        return planning_format(planning, "the last one is step %" PRId64, progress->step);
    return planning_format(planning, "the last one is step %" PRId64 " of %" PRId64, progress->step,
                           progress->total_steps);
}

static const char *describe(struct planning *planning, int64_t from_ms)
{
    const char *waits = planning->input->crew_message; /* names the member that it waits for */
    return planning_format(
        planning,
        "no new step for %" PRId64 " s, and progressDeadlineSeconds is %" PRId64 ": %s%s%s; pods that ran: %s",
        (planning->now_ms - from_ms) / 1000, planning->job->run_policy.progress_deadline_seconds, last_step(planning),
        waits ? "; the chief reports: " : "", waits ? waits : "", names(planning));
}

static bool belongs_to_crew(const struct slot *slot)
{
    return slot->role != ROLE_EVALUATOR;
}

/* The crew worked from when it was complete to its last step. */
static int64_t worked_ms(const struct planning *planning, int64_t from_ms)
{
    int64_t running_ms = planning_time(planning, STATUS_TIME_RUNNING);
    bool known = condition_is(planning->old, CONDITION_RUNNING, CONDITION_TRUE) && running_ms != FIELD_UNSET;
    return known && from_ms > running_ms ? from_ms - running_ms : 0;
}

static void start_over(struct planning *planning, int64_t from_ms, const char *what)
{
    planning->next->attempt++;
    planning_promise_successors(planning, belongs_to_crew);
    back_off_begin(planning, belongs_to_crew, restart_wait_ms(planning, worked_ms(planning, from_ms), true));
    condition_set(planning, CONDITION_RESTARTING, CONDITION_TRUE, "ProgressDeadlineExceeded", what);
    planning_event(planning, true, "ProgressDeadlineExceeded", "RestartCrew",
                   planning_format(planning, "%s; the whole crew starts over", what));
}

bool progress_deadline_plan(struct planning *planning)
{
    int64_t from_ms = counts_from_ms(planning);
    if (from_ms == FIELD_UNSET || has_moved(planning))
        return false;
    int64_t end_ms = due_ms(planning, from_ms);
    if (planning->now_ms < end_ms)
        planning_requeue(planning, end_ms);
    if (planning->now_ms < end_ms || !is_seen(planning, end_ms))
        return false;
    const char *what = describe(planning, from_ms);
    limit_count(planning->next, ENDING_FAILURE);
    if (limit_exceeded(planning->next, &planning->job->run_policy))
        planning_finish(planning, CONDITION_FAILED, "ProgressDeadlineExceeded",
                        planning_format(planning, "%s; backoffLimit %" PRId64 " exceeded", what,
                                        planning->job->run_policy.backoff_limit));
    else
        start_over(planning, from_ms, what);
    return true;
}
