/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "common/contract/exit_code.h"
#include "common/job/enum_words.h"
#include "operator/controller/plan/back_off.h"
#include "operator/controller/plan/ending.h"
#include "operator/controller/plan/failure_policy.h"
#include "operator/controller/plan/limit.h"
#include "operator/controller/plan/node_avoidance.h"
#include "operator/controller/plan/policies.h"
#include "operator/controller/plan/restart_scope.h"
#include "operator/controller/plan/restart_wait.h"
#include "operator/controller/plan/take_back.h"

struct verdict {
    struct slot *cause; /* NULL: nothing happened */
    struct ending ending;
    size_t failed_count;
    bool whole_crew;
};

/* Agents of torchrun that have lost one of them wait this long in vain for each other, at most: 60 s for the store, and the time to
 * notice. */
#define RENDEZVOUS_MS 120000

/* Returns whether a failure follows from an earlier loss. In an elastic torchrun crew, one agent was lost, which was counted, and its
 * successor has come; then an agent of the attempt's beginning gives up (DistStoreError). This cannot repeat without end: an attempt
 * begins with a finite number of pods, the chief's stays one of them as long as the attempt lasts, and a first loss is never excused
 * here. */
static bool follows_a_loss(const struct planning *planning, const struct slot *slot, const struct ending *ending)
{
    const struct training_job *job = planning->job;
    const struct pod_view *pod = slot->occupant, *chief = crew_chief(&planning->crew, job)->occupant;
    if (job->framework != FRAMEWORK_PYTORCH || !job->elastic.enabled || ending->kind != ENDING_FAILURE ||
        ending->rule > 0 || pod->exit_code < 1 || pod->exit_code > 127 || !chief ||
        pod->incarnation != chief->incarnation)
        return false;
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct slot *other = &planning->crew.slots[i];
        const struct pod_view *successor = other->occupant;
        if (successor && other->role != ROLE_EVALUATOR && successor->attempt == pod->attempt &&
            successor->incarnation > pod->incarnation && ending->at_ms >= successor->created_ms &&
            ending->at_ms < successor->created_ms + RENDEZVOUS_MS)
            return true;
    }
    return false;
}

static bool has_worked(const struct planning *planning)
{
    const struct job_status *old = planning->old;
    return old->attempt > 1 || old->restart_count > 0 || old->progress.step > 0 ||
           condition_is(old, CONDITION_RUNNING, CONDITION_TRUE);
}

static struct ending slot_ending(struct planning *planning, const struct slot *slot)
{
    if (slot_lost(slot))
        return (struct ending){.kind = ENDING_DISRUPTION, .at_ms = planning->now_ms, .check_ms = FIELD_UNSET};
    if (!slot->occupant || slot->fresh || slot->done)
        return (struct ending){.kind = ENDING_NONE, .check_ms = FIELD_UNSET};
    struct ending ending = ending_classify(slot->occupant, planning->job->framework,
                                           planning->input->options->start_failure_ms, planning->now_ms);
    /* The credentials of a crew that has worked may be about to be replaced. */
    if (ending.kind == ENDING_PERMANENT && ending_is_refusal(slot->occupant) && has_worked(planning))
        ending.kind = ENDING_FAILURE;
    if (ending.kind != ENDING_NONE && ending.kind != ENDING_SUCCESS)
        failure_policy_apply(&planning->job->run_policy.failure_policy, slot->occupant, &ending);
    ending.follows = follows_a_loss(planning, slot, &ending);
    if (ending.follows)
        ending.kind = ENDING_COLLATERAL;
    return ending;
}

/* The earliest counts; what is known to follow from another's end does so only when there is nothing else. */
static bool blames_more(const struct ending *ending, const struct ending *than)
{
    bool collateral = ending->kind == ENDING_COLLATERAL;
    if (collateral != (than->kind == ENDING_COLLATERAL))
        return !collateral;
    if (ending->at_ms != than->at_ms)
        return ending->at_ms < than->at_ms;
    return ending->kind < than->kind;
}

/* Returns whether the crew does without the worker, because those that still work are enough. A rule of the user for its exit code still
 * applies. */
static bool is_let_go(const struct planning *planning, const struct slot *slot, const struct ending *ending)
{
    bool as_said = ending->kind == ENDING_PERMANENT && ending->rule > 0;
    return planning->finishing == FINISHING_WAITS && slot->role == ROLE_WORKER && !as_said;
}

static bool restarts_crew(const struct planning *planning, const struct slot *slot)
{
    const struct training_job *job = planning->job;
    bool finds_nobody = planning->finishing == FINISHING_SHORT && slot_required(slot) &&
                        job->run_policy.restart_scope == RESTART_SCOPE_AUTO;
    return finds_nobody || restart_scope_of(job, slot->role, slot->index) == RESTART_SCOPE_JOB;
}

static void consider(struct planning *planning, struct slot *slot, struct verdict *verdict)
{
    struct ending ending = slot_ending(planning, slot);
    if (ending.check_ms != FIELD_UNSET)
        planning_requeue(planning, ending.check_ms);
    if (ending.kind == ENDING_NONE || ending.kind == ENDING_SUCCESS || is_let_go(planning, slot, &ending))
        return;
    slot->failed = true;
    verdict->failed_count++;
    verdict->whole_crew |= restarts_crew(planning, slot);
    if (!verdict->cause || blames_more(&ending, &verdict->ending)) {
        verdict->cause = slot;
        verdict->ending = ending;
    }
}

static const char *action_of(const struct planning *planning, unsigned rule)
{
    return failure_action_words[planning->job->run_policy.failure_policy.rules[rule - 1].action];
}

static const char *describe(struct planning *planning, const struct verdict *verdict)
{
    const struct slot *cause = verdict->cause;
    SCOPED_BUFFER text = BUFFER_INIT(CONDITION_MESSAGE_MAX);
    buffer_format(&text, "%s %" PRId64 ": ", role_name(cause->role), cause->index);
    if (cause->occupant)
        ending_describe(cause->occupant, verdict->ending.kind, planning->job->framework, &text);
    else
        buffer_append_string(&text, "its pod has vanished", NULL);
    if (verdict->ending.rule > 0)
        buffer_format(&text, "; rule %u of failurePolicy says %s", verdict->ending.rule,
                      action_of(planning, verdict->ending.rule));
    if (verdict->failed_count > 1)
        buffer_format(&text, " (%zu pod%s ended with it)", verdict->failed_count - 1,
                      verdict->failed_count == 2 ? "" : "s");
    return planning_format(planning, "%s", buffer_text(&text));
}

/* The API keeps whole seconds: what may be less than a second more is none. */
static int64_t lasted_ms(int64_t from_ms, int64_t to_ms)
{
    return from_ms != FIELD_UNSET && to_ms - from_ms > 1000 ? to_ms - from_ms - 1000 : 0;
}

/* Since when no pod has been restarting; INT64_MAX: none ever was. */
static int64_t calm_ms(const struct planning *planning)
{
    const struct condition *restarting = &planning->old->conditions[CONDITION_RESTARTING];
    if (restarting->status == CONDITION_ABSENT)
        return INT64_MAX;
    return restarting->status == CONDITION_TRUE
               ? 0
               : lasted_ms(planning_time(planning, STATUS_TIME_RESTARTING), planning->now_ms);
}

/* Returns since when the crew runs. If a pod is not ready: since when the crew may have run before. */
static int64_t crew_from_ms(const struct planning *planning)
{
    const struct job_status *old = planning->old;
    if (condition_is(old, CONDITION_RUNNING, CONDITION_TRUE))
        return planning_time(planning, STATUS_TIME_RUNNING);
    bool calm = condition_is(old, CONDITION_RESTARTING, CONDITION_FALSE);
    return planning_time(planning, calm ? STATUS_TIME_RESTARTING : STATUS_TIME_START);
}

/* Returns how long a pod ran, by its node's clock, up to `until_ms`. Of a pod that has vanished, it is only known that it was no fresh
 * successor and that the crew was complete. */
static int64_t pod_ran_ms(const struct planning *planning, const struct pod_view *pod, int64_t until_ms)
{
    if (!pod)
        return calm_ms(planning);
    int64_t end_ms = pod->finished_ms != FIELD_UNSET ? pod->finished_ms : planning->now_ms;
    return lasted_ms(pod->started_ms, end_ms < until_ms ? end_ms : until_ms);
}

/* Returns how long things went well before the pod that is the cause ended. A pod that the crew can do without counts by itself, since
 * the crew may run for hours while such a pod fails again and again. A required pod has worked only while the others were there. A node
 * may be silent for minutes before its pod is reported as ended; therefore the time that the crew had run until then counts, unless it
 * has not run since one of its pods was restarted, or it is unknown since when the pod was there. */
static int64_t ran_ms(const struct planning *planning, const struct slot *cause)
{
    const struct job_status *old = planning->old;
    if (cause->occupant && !slot_required(cause))
        return pod_ran_ms(planning, cause->occupant, INT64_MAX);
    int64_t until_ms = planning->now_ms;
    if (!condition_is(old, CONDITION_RUNNING, CONDITION_TRUE)) {
        if (!cause->occupant || condition_is(old, CONDITION_RUNNING, CONDITION_ABSENT) ||
            condition_is(old, CONDITION_RESTARTING, CONDITION_TRUE))
            return 0;
        until_ms = planning_time(planning, STATUS_TIME_RUNNING);
    }
    int64_t crew_ms = lasted_ms(crew_from_ms(planning), until_ms);
    int64_t pod_ms = pod_ran_ms(planning, cause->occupant, until_ms);
    return pod_ms < crew_ms ? pod_ms : crew_ms;
}

/* A pod that ran for this long did not end because of an earlier event. */
#define COLLATERAL_GRACE_MS 60000

/* No exchange of a crew waits longer for another's part: what an end brings about has happened by then. */
#define CONSEQUENCES_MS 300000

/* Returns whether the pod cannot start for a reason outside of the crew: no node with room, an image, a quota. */
static bool is_kept_from_starting(const struct planning *planning, const struct slot *slot)
{
    const struct pod_view *pod = slot->occupant;
    if (!pod)
        return slot->promised && !create_backs_off(planning, slot);
    return !pod_view_ended(pod) && pod->started_ms == FIELD_UNSET &&
           planning->now_ms >= pod->created_ms + COLLATERAL_GRACE_MS;
}

/* For so long one follows from the other, and nothing has an own cause, that they only excuse each other. */
static bool is_a_circle(const struct planning *planning)
{
    const struct condition *restarting = &planning->old->conditions[CONDITION_RESTARTING];
    return restarting->status == CONDITION_TRUE && strcmp(restarting->reason, ending_reason(ENDING_COLLATERAL)) == 0 &&
           planning->now_ms >= planning_time(planning, STATUS_TIME_RESTARTING) + CONSEQUENCES_MS;
}

static bool another_is_missing(const struct planning *planning)
{
    bool circle = is_a_circle(planning);
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct slot *slot = &planning->crew.slots[i];
        bool missing = slot_required(slot) && !slot->failed && !slot_fulfilled(slot);
        if (missing && (!circle || is_kept_from_starting(planning, slot)))
            return true;
    }
    return false;
}

/* An end that follows from another one is not counted as long as there may be another one, but not again and again without a cause. */
static enum ending_kind charge(const struct planning *planning, const struct verdict *verdict)
{
    const struct job_status *old = planning->old;
    int64_t let_off = old->restart_count - old->restarts.failures - old->restarts.disruptions -
                      old->restarts.out_of_memory - old->restarts.ignored;
    bool repeats = verdict->ending.kind == ENDING_COLLATERAL && !verdict->ending.follows && let_off > 0 &&
                   ran_ms(planning, verdict->cause) < COLLATERAL_GRACE_MS && !another_is_missing(planning);
    return repeats ? ENDING_FAILURE : verdict->ending.kind;
}

static bool is_failed(const struct slot *slot)
{
    return slot->failed;
}

static bool belongs_to_crew(const struct slot *slot)
{
    return slot->role != ROLE_EVALUATOR || slot->failed;
}

/* Returns the words on what follows from an event. */
static const char *consequence(struct planning *planning, const struct verdict *verdict)
{
    if (limit_exceeded(planning->next, &planning->job->run_policy))
        return limit_wait_words(planning);
    if (verdict->whole_crew)
        return "the whole crew starts over";
    return verdict->cause->role == ROLE_EVALUATOR ? "it is replaced" : "the crew waits for its successor";
}

/* Adds to a message how to give the pod more memory, unless the job is about to fail. */
static const char *with_remedy(struct planning *planning, const struct verdict *verdict, const char *what)
{
    const struct pod_view *pod = verdict->cause->occupant;
    if (verdict->ending.kind != ENDING_OUT_OF_MEMORY || !pod ||
        limit_exceeded(planning->next, &planning->job->run_policy))
        return what;
    return planning_format(planning, "%s; suspend the job, %s in %s.template, and resume it", what,
                           *pod->memory_limit ? "raise resources.limits.memory" : "set resources.requests.memory",
                           role_section(verdict->cause->role));
}

/* `kind`: as which the end was counted. */
static int64_t delay_ms(struct planning *planning, const struct verdict *verdict, enum ending_kind kind)
{
    bool failed = kind == ENDING_FAILURE || kind == ENDING_OUT_OF_MEMORY;
    return restart_wait_ms(planning, ran_ms(planning, verdict->cause), failed);
}

static void restart(struct planning *planning, const struct verdict *verdict, enum ending_kind kind, const char *what)
{
    struct job_status *next = planning->next;
    if (verdict->whole_crew)
        next->attempt++;
    slot_wanted *lost = verdict->whole_crew ? belongs_to_crew : is_failed;
    planning_promise_successors(planning, lost);
    back_off_begin(planning, lost, delay_ms(planning, verdict, kind));
    const char *reason = ending_reason(verdict->ending.kind), *message = with_remedy(planning, verdict, what);
    condition_set(planning, CONDITION_RESTARTING, CONDITION_TRUE, reason, message);
    planning_event(planning, true, reason, verdict->whole_crew ? "RestartCrew" : "ReplacePod",
                   planning_format(planning, "%s; %s", message, consequence(planning, verdict)));
}

static const char *permanent_reason(const struct planning *planning, const struct verdict *verdict)
{
    const char *reason = verdict->ending.rule > 0 ? "FailurePolicy" : ending_reason(ENDING_PERMANENT);
    bool diverged =
        verdict->ending.rule == 0 && ending_is_divergence(verdict->cause->occupant, planning->job->framework);
    return diverged ? REASON_DIVERGED : reason;
}

/* Judges all ends since the last plan as one event, by the earliest cause. */
bool judge_plan(struct planning *planning)
{
    struct verdict verdict = {0};
    for (size_t i = 0; i < planning->crew.slot_count; i++)
        consider(planning, &planning->crew.slots[i], &verdict);
    if (!verdict.cause)
        return false;
    const char *what = describe(planning, &verdict);
    if (verdict.ending.kind == ENDING_PERMANENT) {
        planning_finish(planning, CONDITION_FAILED, permanent_reason(planning, &verdict), what);
        return true;
    }
    node_avoidance_count(planning, verdict.cause);
    enum ending_kind kind = charge(planning, &verdict);
    limit_count(planning->next, kind);
    if (verdict.ending.rule == 0) /* what the user says counts, counts */
        take_back_note(planning, verdict.cause, kind);
    if (limit_exceeded(planning->next, &planning->job->run_policy) && !take_back_may_follow(planning))
        limit_finish(planning, what);
    else
        restart(planning, &verdict, kind, what);
    return true;
}
