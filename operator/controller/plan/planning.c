/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/planning.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/utf8.h"

/* A list in the arena that doubles when it is full. */
static void *grown(struct arena *arena, void *list, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return list;
    *capacity = *capacity ? 2 * *capacity : 16;
    void *larger = arena_allocate(arena, *capacity, size);
    if (count > 0)
        memcpy(larger, list, count * size);
    return larger;
}

static struct action *action_add(struct plan *plan)
{
    plan->actions =
        grown(&plan->arena, plan->actions, plan->action_count, &plan->action_capacity, sizeof *plan->actions);
    return &plan->actions[plan->action_count++];
}

void planning_act(struct planning *planning, enum action_type type, const struct pod_view *pod)
{
    *action_add(planning->plan) = (struct action){.type = type, .pod = pod};
}

void planning_create_pod(struct planning *planning, enum role role, int64_t index)
{
    *action_add(planning->plan) = (struct action){
        .type = ACTION_CREATE_POD, .role = role, .index = index, .incarnation = planning->plan->incarnation};
}

void planning_look_for_pod(struct planning *planning, const struct slot *slot)
{
    *action_add(planning->plan) = (struct action){
        .type = ACTION_LOOK_FOR_POD, .role = slot->role, .index = slot->index, .incarnation = slot->unsure_incarnation};
}

/* JAX catches SIGTERM to save at a step that all processes reach together, and does not end. Where the whole crew starts over
 * there is no such step any more, so its survivors are not waited for, unless the template says how long. */
#define JAX_RESTART_GRACE_SECONDS 5

static int64_t grace_seconds(const struct training_job *job, const struct pod_view *pod)
{
    bool starts_over = pod->attempt < job->status.attempt && pod->role != ROLE_EVALUATOR;
    bool own = json_at(job->roles[pod->role].template, "spec.terminationGracePeriodSeconds") != NULL;
    return job->framework == FRAMEWORK_JAX && starts_over && !own ? JAX_RESTART_GRACE_SECONDS : -1;
}

void planning_delete_pod(struct planning *planning, const struct pod_view *pod)
{
    if (!pod_view_deleting(pod))
        *action_add(planning->plan) =
            (struct action){.type = ACTION_DELETE_POD, .pod = pod, .grace_seconds = grace_seconds(planning->job, pod)};
}

static struct plan_event *event_add(struct plan *plan)
{
    plan->events = grown(&plan->arena, plan->events, plan->event_count, &plan->event_capacity, sizeof *plan->events);
    return &plan->events[plan->event_count++];
}

void planning_event(struct planning *planning, bool warning, const char *reason, const char *action, const char *note)
{
    *event_add(planning->plan) =
        (struct plan_event){.warning = warning, .reason = reason, .action = action, .note = note};
}

void planning_event_of_action(struct planning *planning, const char *reason, const char *action, const char *note)
{
    *event_add(planning->plan) =
        (struct plan_event){.warning = true, .of_action = true, .reason = reason, .action = action, .note = note};
}

void planning_event_of_newest(struct planning *planning, const char *reason, const char *action, const char *note)
{
    planning_event_of_action(planning, reason, action, note);
    planning->plan->events[planning->plan->event_count - 1].action_number = planning->plan->action_count;
}

void planning_event_of_node(struct planning *planning, const char *node, const char *reason, const char *action,
                            const char *note)
{
    planning_event(planning, true, reason, action, note);
    planning->plan->events[planning->plan->event_count - 1].node = node;
}

void planning_hold(struct planning *planning, const char *reason, const char *message)
{
    if (planning->hold_reason)
        return;
    planning->hold_reason = reason;
    planning->hold_message = message;
}

void planning_requeue(struct planning *planning, int64_t at_ms)
{
    if (at_ms < planning->plan->requeue_ms)
        planning->plan->requeue_ms = at_ms;
}

/* While an API is looked for, or its cache filled, nothing tells when that is done. */
#define LOOK_AGAIN_MS 500

void planning_await_api(struct planning *planning, enum optional_state state)
{
    planning_requeue(planning, planning->now_ms + (state == OPTIONAL_MISSING ? OPTIONAL_RETRY_MS : LOOK_AGAIN_MS));
}

const char *planning_format(struct planning *planning, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    size_t size = (size_t)vsnprintf(NULL, 0, format, again) + 1;
    va_end(again);
    char *text = arena_allocate(&planning->plan->arena, size, 1);
    vsnprintf(text, size, format, arguments);
    va_end(arguments);
    return text;
}

int64_t planning_time(const struct planning *planning, enum status_time time)
{
    int64_t ms = status_time_of(planning->old, time);
    return ms == FIELD_UNSET ? FIELD_UNSET : ms + planning->input->moved_ms[time];
}

bool planning_has_run(const struct planning *planning)
{
    const struct job_status *old = planning->old;
    if (old->attempt > 1 || old->restart_count > 0 || old->progress.step > 0 ||
        condition_is(old, CONDITION_RUNNING, CONDITION_TRUE))
        return true;
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct slot *slot = &planning->crew.slots[i];
        if (slot->done || slot_ready(slot) || (slot->occupant && pod_view_ended(slot->occupant)))
            return true;
    }
    return false;
}

void condition_set(struct planning *planning, enum condition_type type, enum condition_status status,
                   const char *reason, const char *message)
{
    struct condition *condition = &planning->next->conditions[type];
    if (condition->status != status)
        condition->last_transition_ms = planning->now_ms;
    condition->status = status;
    condition->reason = reason;
    size_t length = utf8_fit(message, CONDITION_MESSAGE_MAX);
    condition->message = message[length] == '\0' ? message : planning_format(planning, "%.*s", (int)length, message);
    condition->observed_generation = planning->job->generation;
}

void condition_warn(struct planning *planning, enum condition_type type, const char *reason, const char *action,
                    const char *message)
{
    if (!condition_is(planning->old, type, CONDITION_TRUE))
        planning_event(planning, true, reason, action, message);
    condition_set(planning, type, CONDITION_TRUE, reason, message);
}

int64_t condition_figure_scale(int64_t number)
{
    int64_t power = 1;
    while (power <= number / 10)
        power *= 10;
    return power;
}

bool status_deletes_pods(const struct job_status *status)
{
    const struct condition *condition = &status->conditions[CONDITION_SUSPENDED];
    return condition->status == CONDITION_TRUE ||
           (condition->status == CONDITION_FALSE && strcmp(condition->reason, SUSPENDING) == 0);
}

void planning_begin(struct planning *planning)
{
    struct job_status *next = planning->next;
    next->start_ms = planning->now_ms;
    next->suspended_ms = 0;
    next->workers = planning->job->document.workers;
    next->selector =
        planning_format(planning, LABEL_JOB_UID "=%s," LABEL_ROLE "=worker," LABEL_CURRENT "=true", planning->job->uid);
}

void planning_finish(struct planning *planning, enum condition_type type, const char *reason, const char *message)
{
    condition_set(planning, type, CONDITION_TRUE, reason, message);
    planning->next->completion_ms = planning->now_ms;
    planning->next->backoff_until_ms = FIELD_UNSET;
    bool failed = type == CONDITION_FAILED;
    planning_event(planning, failed, failed ? reason : "Succeeded", "Finish", message);
}

void planning_promise_again(struct planning *planning)
{
    planning->next->incarnation = planning->old->incarnation + 1;
}

/* A promise of an index beyond those of the last scaling, and a crew that starts over, acknowledge the new number. */
void planning_promise(struct planning *planning, slot_wanted *wanted)
{
    planning_promise_again(planning);
    if (planning->next->attempt > planning->old->attempt)
        planning->next->workers = planning->job->document.workers;
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        struct slot *slot = &planning->crew.slots[i];
        if (wanted && !wanted(slot))
            continue;
        slot->wanted = true;
        if (slot->fresh)
            planning->next->workers = planning->job->document.workers;
    }
}

/* A pod that never ran leaves the next one as late as it was. */
static bool has_run(const struct slot *slot)
{
    return slot->failed || (slot->occupant && slot->occupant->started_ms != FIELD_UNSET);
}

void planning_promise_successors(struct planning *planning, slot_wanted *wanted)
{
    planning_promise(planning, wanted);
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        struct slot *slot = &planning->crew.slots[i];
        slot->restarting |= (!wanted || wanted(slot)) && has_run(slot);
    }
}
