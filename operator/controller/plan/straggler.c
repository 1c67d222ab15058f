/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/straggler.h"

#include <inttypes.h>
#include <string.h>

#include "operator/controller/plan/node_avoidance.h"
#include "operator/controller/plan/policies.h"
#include "operator/controller/plan/queue_plan.h"

#define HOUR_MS (3600 * (int64_t)1000)
#define MAX_PER_HOUR_DEFAULT 2

static struct slot *slot_of(const struct planning *planning)
{
    const struct straggler_input *straggler = &planning->input->straggler;
    enum role role;
    if (!straggler->reported || !straggler->role || !role_parse(straggler->role, &role))
        return NULL;
    return crew_slot_at(&planning->crew, role, straggler->index);
}

/* Rounded down to one significant digit. */
static int64_t times_slower(const struct straggler_input *straggler)
{
    double times = straggler->due_ms > 0 ? straggler->own_ms / straggler->due_ms : 0;
    int64_t whole = times < 1e6 ? (int64_t)(times + 0.5) : 1000000, scale = condition_figure_scale(whole);
    return whole / scale * scale;
}

static const char *describe(struct planning *planning, const struct slot *slot)
{
    const struct straggler_input *straggler = &planning->input->straggler;
    return planning_format(planning,
                           "%s %" PRId64 " takes %" PRId64 " times as long as expected for its part of a step",
                           role_name(slot->role), slot->index, times_slower(straggler));
}

/* ---------------------------------------------------------------- replacement */

static bool is_recent(const struct planning *planning, const struct straggler_replacement *one)
{
    return one->at_ms <= planning->now_ms && planning->now_ms < one->at_ms + HOUR_MS;
}

/* Returns the slot whose pod the entry is about and that has not ended; NULL: the pod has ended, or is gone. */
static const struct slot *slot_to_end(const struct planning *planning, const struct straggler_replacement *one)
{
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct pod_view *pod = planning->crew.slots[i].occupant;
        if (pod && one->pod && strcmp(pod->name, one->pod) == 0 && !pod_view_ended(pod))
            return &planning->crew.slots[i];
    }
    return NULL;
}

/* Returns whether a pod is still to be deleted, or has not ended since. */
static bool carry_out(struct planning *planning)
{
    bool any = false;
    for (unsigned i = 0; i < planning->old->straggler_replacement_count; i++) {
        const struct slot *slot = slot_to_end(planning, &planning->old->straggler_replacements[i]);
        if (slot)
            planning_delete_pod(planning, slot->occupant);
        any |= slot != NULL;
    }
    return any;
}

static bool crew_is_whole(const struct planning *planning)
{
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct slot *slot = &planning->crew.slots[i];
        if (slot_required(slot) && (!slot_fulfilled(slot) || slot->failed || slot_restarting(slot)))
            return false;
    }
    return condition_is(planning->old, CONDITION_RUNNING, CONDITION_TRUE);
}

/* Returns since when the crew is complete; an elastic one runs on while a pod is replaced. */
static int64_t complete_ms(const struct planning *planning)
{
    int64_t running_ms = planning_time(planning, STATUS_TIME_RUNNING);
    int64_t restarting_ms = planning_time(planning, STATUS_TIME_RESTARTING);
    return restarting_ms != FIELD_UNSET && restarting_ms > running_ms ? restarting_ms : running_ms;
}

/* Returns for how long the chief had named the member when it answered last. A report from before the crew was complete is about
 * another process. */
static int64_t named_ms(const struct planning *planning)
{
    int64_t asked_ms = planning->input->answers.asked_ms;
    if (asked_ms == FIELD_UNSET)
        return 0;
    int64_t reported_ms = 1000 * planning->input->straggler.seconds, whole_ms = asked_ms - complete_ms(planning);
    return reported_ms < whole_ms ? reported_ms : whole_ms;
}

static bool is_within_limit(const struct planning *planning)
{
    int64_t limit = planning->job->run_policy.straggler_replacement.max_per_hour, recent = 0;
    for (unsigned i = 0; i < planning->old->straggler_replacement_count; i++)
        recent += is_recent(planning, &planning->old->straggler_replacements[i]);
    return recent < (limit == FIELD_UNSET ? MAX_PER_HOUR_DEFAULT : limit);
}

/* Where Kueue chooses the node, the successor would be sent to the same one. */
static bool is_due(const struct planning *planning, const struct slot *slot)
{
    int64_t after_seconds = planning->job->run_policy.straggler_replacement.after_seconds;
    return after_seconds > 0 && slot && slot_ready(slot) && !queue_pins_nodes(planning) && crew_is_whole(planning) &&
           named_ms(planning) >= 1000 * after_seconds && is_within_limit(planning);
}

/* Gives the next status a list of its own, with room for one more entry. Entries stay for an hour; the pod of an entry may take longer to
 * end. */
static void drop_old(struct planning *planning)
{
    struct job_status *next = planning->next;
    unsigned kept = 0, count = next->straggler_replacement_count;
    struct straggler_replacement *list = arena_allocate(&planning->plan->arena, count + 1, sizeof *list);
    for (unsigned i = 0; i < count; i++) {
        const struct straggler_replacement *one = &next->straggler_replacements[i];
        if (one->pod && (is_recent(planning, one) || slot_to_end(planning, one)))
            list[kept++] = *one;
    }
    next->straggler_replacements = list;
    next->straggler_replacement_count = kept;
}

static void add_replacement(struct planning *planning, const struct pod_view *pod)
{
    struct job_status *next = planning->next;
    drop_old(planning);
    next->straggler_replacements[next->straggler_replacement_count++] =
        (struct straggler_replacement){.pod = planning_format(planning, "%s", pod->name), .at_ms = planning->now_ms};
}

bool straggler_plan(struct planning *planning)
{
    const struct slot *slot = slot_of(planning);
    bool no_successors = planning->finishing != FINISHING_NOT || planning->input->invalid;
    if (status_terminal(planning->next) || no_successors || carry_out(planning) || !is_due(planning, slot))
        return false;
    const struct pod_view *pod = slot->occupant;
    add_replacement(planning, pod);
    node_avoidance_blame(planning, pod, "its worker is a straggler");
    planning_event(planning, true, "StragglerReplaced", "ReplacePod",
                   planning_format(planning,
                                   "pod %s is ended, so that it can save and be replaced: %s, for %" PRId64 " s",
                                   pod->name, describe(planning, slot), named_ms(planning) / 1000));
    return false;
}

/* ---------------------------------------------------------------- what the status says */

void straggler_update(struct planning *planning)
{
    const struct slot *slot = slot_of(planning);
    bool was = condition_is(planning->old, CONDITION_STRAGGLING, CONDITION_TRUE);
    bool trains = condition_is(planning->next, CONDITION_RUNNING, CONDITION_TRUE);
    if (planning->next->straggler_replacement_count > 0)
        drop_old(planning);
    if (status_terminal(planning->next) || !planning->input->straggler.reported || (!trains && !was))
        return;
    if (trains && slot) {
        condition_warn(planning, CONDITION_STRAGGLING, "StragglerFound", "Train", describe(planning, slot));
    } else if (was) {
        condition_set(planning, CONDITION_STRAGGLING, CONDITION_FALSE, "NoStraggler",
                      "no member of the crew is much slower than the others");
    }
}
