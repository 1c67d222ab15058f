/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/node_avoidance.h"

#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "operator/controller/plan/node_blame.h"
#include "operator/controller/plan/node_leave.h"
#include "operator/controller/plan/policies.h"
#include "operator/controller/plan/queue_plan.h"

#define FAILURES_DEFAULT 3
#define WINDOW_SECONDS_DEFAULT 3600
#define UNSCHEDULABLE_SECONDS_DEFAULT 300

static int64_t setting(int64_t given, int64_t otherwise)
{
    return given == FIELD_UNSET ? otherwise : given;
}

/* Where Kueue chooses the nodes, none is avoided: a pod that excludes the node chosen for it would wait for ever. */
static int64_t limit_of(const struct planning *planning)
{
    if (queue_pins_nodes(planning))
        return 0;
    return setting(planning->job->run_policy.node_avoidance.failures, FAILURES_DEFAULT);
}

static int64_t window_ms(const struct planning *planning)
{
    return 1000 * setting(planning->job->run_policy.node_avoidance.window_seconds, WINDOW_SECONDS_DEFAULT);
}

/* The first failure of a group is at most a window older than the last one, and the node is avoided for a window after the last one. A
 * failure in the future was noted by another clock. */
static bool is_kept(const struct planning *planning, const struct node_failure *failure)
{
    return failure->node && failure->at_ms <= planning->now_ms &&
           planning->now_ms < failure->at_ms + 2 * window_ms(planning);
}

/* A node that is avoided: why, and until when. */
struct avoided {
    const struct node_failure *last; /* the newest failure; NULL: the node is not avoided */
    int64_t count;                   /* of failures within a window up to the last */
    int64_t until_ms;
    bool is_sure; /* one of these failures alone suffices */
};

/* Judges the node of the status's failure `at`; only at its newest failure, so that each node is found once. */
static struct avoided avoided_at(const struct planning *planning, const struct job_status *status, unsigned at)
{
    const struct node_failure *last = &status->node_failures[at];
    struct avoided avoided = {.until_ms = last->at_ms + window_ms(planning)};
    if (!is_kept(planning, last))
        return (struct avoided){0};
    for (unsigned i = 0; i < status->node_failure_count; i++) {
        const struct node_failure *failure = &status->node_failures[i];
        if (!is_kept(planning, failure) || strcmp(failure->node, last->node) != 0)
            continue;
        if (i > at)
            return (struct avoided){0};
        bool counts = last->at_ms - failure->at_ms < window_ms(planning);
        avoided.count += counts;
        avoided.is_sure |= counts && failure->sure;
    }
    if (limit_of(planning) > 0 && (avoided.is_sure || avoided.count >= limit_of(planning)) &&
        planning->now_ms < avoided.until_ms)
        avoided.last = last;
    return avoided;
}

static struct avoided avoided_node(const struct planning *planning, const struct job_status *status, const char *node)
{
    for (unsigned i = status->node_failure_count; i-- > 0;)
        if (is_kept(planning, &status->node_failures[i]) && strcmp(status->node_failures[i].node, node) == 0)
            return avoided_at(planning, status, i);
    return (struct avoided){0};
}

/* ---------------------------------------------------------------- counting */

/* Gives the next status a list of its own, of the failures that `stays` selects. */
typedef bool failure_stays(const struct planning *planning, const struct node_failure *failure);
static void keep_failures(struct planning *planning, failure_stays *stays)
{
    struct job_status *next = planning->next;
    struct node_failure *list = arena_allocate(&planning->plan->arena, next->node_failure_count + 1, sizeof *list);
    unsigned kept = 0;
    for (unsigned i = 0; i < next->node_failure_count; i++)
        if (stays(planning, &next->node_failures[i]))
            list[kept++] = next->node_failures[i];
    next->node_failures = list;
    next->node_failure_count = kept;
}

/* Adds a failure to the next status. If the list is full, the oldest one is dropped. */
static void add_failure(struct planning *planning, const struct node_failure *failure)
{
    struct job_status *next = planning->next;
    keep_failures(planning, is_kept);
    for (; next->node_failure_count >= NODE_FAILURES_MAX; next->node_failure_count--)
        next->node_failures++;
    next->node_failures[next->node_failure_count++] = *failure; /* keep_failures leaves room for one */
}

static const char *time_text(struct planning *planning, int64_t ms)
{
    char text[CLOCK_TEXT_MAX];
    clock_format_seconds(ms, text);
    return planning_format(planning, "%s", text);
}

static const char *describe(struct planning *planning, const struct avoided *avoided)
{
    return planning_format(planning, "node %s until %s: %" PRId64 " failure%s within %" PRId64 " s, the last: %s",
                           avoided->last->node, time_text(planning, avoided->until_ms), avoided->count,
                           avoided->count == 1 ? "" : "s", window_ms(planning) / 1000, avoided->last->reason);
}

static void tell(struct planning *planning, const struct avoided *avoided)
{
    const char *what = describe(planning, avoided);
    planning_event(planning, true, "NodeAvoided", "AvoidNode", planning_format(planning, "new pods avoid %s", what));
    const char *note = planning_format(planning, "new pods of TrainingJob %s/%s avoid %s", planning->job->namespace,
                                       planning->job->name, what);
    planning_event_of_node(planning, avoided->last->node, "AvoidedByTrainingJob", "AvoidNode", note);
}

/* Pods that end together are often found by several plans. A pod that existed when a failure was counted, and ends within this time
 * after it, counts as part of that failure: both were on the same node, or the program lost its peer. The API keeps whole seconds of a
 * pod's creation. */
#define TOGETHER_MS 60000

static bool ends_with_another(const struct planning *planning, const struct pod_view *pod, bool by_program)
{
    const struct job_status *next = planning->next;
    for (unsigned i = 0; i < next->node_failure_count; i++) {
        const struct node_failure *failure = &next->node_failures[i];
        if (!is_kept(planning, failure) || planning->now_ms >= failure->at_ms + TOGETHER_MS)
            continue;
        bool same_node = strcmp(failure->node, pod->node) == 0, existed = pod->created_ms + 999 < failure->at_ms;
        if ((existed && (same_node || by_program)) || (same_node && failure->at_ms == planning->now_ms))
            return true;
    }
    return false;
}

static void count(struct planning *planning, const struct pod_view *pod, const struct node_blame *blame)
{
    struct job_status *next = planning->next;
    if (ends_with_another(planning, pod, blame->by_program))
        return;
    bool was_avoided = avoided_node(planning, next, pod->node).last != NULL;
    struct node_failure failure = {
        .node = planning_format(planning, "%s", pod->node),
        .at_ms = planning->now_ms,
        .reason = planning_format(planning, "%s (pod %s)", blame->reason, pod->name),
        .sure = blame->is_sure,
    };
    add_failure(planning, &failure);
    struct avoided avoided = avoided_node(planning, next, pod->node);
    if (avoided.last && !was_avoided)
        tell(planning, &avoided);
}

void node_avoidance_count(struct planning *planning, const struct slot *cause)
{
    if (limit_of(planning) == 0)
        return;
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct slot *slot = &planning->crew.slots[i];
        if (!slot->failed || !slot->occupant)
            continue;
        struct node_blame blame = node_blame_of(slot->occupant, planning->job->framework);
        if (blame.reason && (!blame.by_program || slot == cause))
            count(planning, slot->occupant, &blame);
    }
}

void node_avoidance_blame(struct planning *planning, const struct pod_view *pod, const char *reason)
{
    if (limit_of(planning) > 0 && *pod->node)
        count(planning, pod, &(struct node_blame){.reason = reason, .is_sure = true});
}

static bool was_not_charged(const struct planning *planning, const struct node_failure *failure)
{
    return failure->at_ms != planning->old->charged_ms;
}

void node_avoidance_take_back(struct planning *planning)
{
    keep_failures(planning, was_not_charged);
}

/* ---------------------------------------------------------------- giving up */

/* Returns whether new pods avoid the node, because of its failures or because they would have to leave it. */
static bool is_avoided(struct planning *planning, const char *node)
{
    return avoided_node(planning, planning->next, node).last || node_leave_reason_at(planning, node);
}

static bool finds_no_node(const struct slot *slot)
{
    const struct pod_view *pod = slot->occupant;
    return pod && pod_view_alive(pod) && !pod_view_deleting(pod) && !pod->scheduled && !pod->gated &&
           *pod->unschedulable;
}

/* Takes the next name from a list of names with commas between them. */
static const char *next_name(struct planning *planning, const char **list)
{
    size_t length = strcspn(*list, ",");
    const char *name = planning_format(planning, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return name;
}

static bool is_not_avoided(const struct planning *planning, const struct node_failure *failure)
{
    return !failure->node || !avoided_node(planning, planning->old, failure->node).last;
}

static bool avoids_failures(struct planning *planning, const struct pod_view *pod)
{
    for (const char *list = pod->avoided; *list;)
        if (avoided_node(planning, planning->old, next_name(planning, &list)).last)
            return true;
    return false;
}

static bool excludes_usable_node(struct planning *planning, const struct pod_view *pod)
{
    for (const char *list = pod->avoided; *list;)
        if (!is_avoided(planning, next_name(planning, &list)))
            return true;
    return false;
}

static bool has_waited(struct planning *planning, const struct pod_view *pod)
{
    int64_t patience_ms =
        1000 * setting(planning->job->run_policy.node_avoidance.unschedulable_seconds, UNSCHEDULABLE_SECONDS_DEFAULT);
    if (planning->now_ms >= pod->created_ms + patience_ms)
        return true;
    planning_requeue(planning, pod->created_ms + patience_ms);
    return false;
}

static void give_up(struct planning *planning)
{
    const struct pod_view *stuck = NULL;
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct slot *slot = &planning->crew.slots[i];
        if (finds_no_node(slot) && avoids_failures(planning, slot->occupant) && has_waited(planning, slot->occupant))
            stuck = slot->occupant;
    }
    if (!stuck)
        return;
    keep_failures(planning, is_not_avoided);
    planning_event(planning, true, "NodeAvoidanceEnded", "AvoidNode",
                   planning_format(planning,
                                   "pod %s has found no node for %" PRId64
                                   " s while the job avoids nodes that failed pods: they are avoided no longer",
                                   stuck->name, (planning->now_ms - stuck->created_ms) / 1000));
}

static bool is_outdated(const struct slot *slot)
{
    return slot->excludes_usable_node;
}

/* A pod's affinity cannot be changed: a pod that has no node, and excludes nodes that new pods may use, is created again. Because nodes
 * come and go, that happens only to pods that are at least this old. */
#define RENEW_MS 30000

static bool may_be_renewed(struct planning *planning, const struct slot *slot)
{
    int64_t due_ms = slot->occupant->created_ms + RENEW_MS;
    if (planning->now_ms < due_ms)
        planning_requeue(planning, due_ms);
    return planning->now_ms >= due_ms;
}

bool node_avoidance_plan(struct planning *planning)
{
    bool outdated = false;
    give_up(planning);
    if (planning->input->troubles_unknown)
        return false;
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        struct slot *slot = &planning->crew.slots[i];
        slot->excludes_usable_node =
            finds_no_node(slot) && excludes_usable_node(planning, slot->occupant) && may_be_renewed(planning, slot);
        outdated |= slot->excludes_usable_node;
    }
    if (outdated)
        planning_promise(planning, is_outdated);
    return false;
}

/* ---------------------------------------------------------------- what the plan and the status say */

static void set_condition(struct planning *planning, const char *words)
{
    bool was = condition_is(planning->old, CONDITION_AVOIDING_NODES, CONDITION_TRUE);
    if (*words)
        condition_set(planning, CONDITION_AVOIDING_NODES, CONDITION_TRUE, "NodeFailures",
                      planning_format(planning, "new pods avoid %s", words));
    else if (was)
        condition_set(planning, CONDITION_AVOIDING_NODES, CONDITION_FALSE, "NoNodeAvoided",
                      "new pods may be placed on every node again");
}

/* Adds the nodes that pods would have to leave again, as far as an affinity may exclude so many. */
static void avoid_nodes_to_leave(struct planning *planning)
{
    struct plan *plan = planning->plan;
    for (size_t i = 0; i < planning->input->trouble_count && plan->avoided_node_count < NODES_AVOIDED_MAX; i++) {
        const struct node_trouble *trouble = planning->input->troubles[i];
        if (node_leave_reason(planning, trouble) && !avoided_node(planning, planning->next, trouble->name).last)
            plan->avoided_nodes[plan->avoided_node_count++] = planning_format(planning, "%s", trouble->name);
    }
}

void node_avoidance_update(struct planning *planning)
{
    struct job_status *next = planning->next;
    struct plan *plan = planning->plan;
    const char *words = "";
    size_t most = next->node_failure_count + planning->input->trouble_count;
    if (most > 0)
        plan->avoided_nodes = arena_allocate(&plan->arena, most, sizeof *plan->avoided_nodes);
    for (unsigned i = 0; i < next->node_failure_count && !status_terminal(next); i++) {
        struct avoided avoided = avoided_at(planning, next, i);
        if (!avoided.last)
            continue;
        plan->avoided_nodes[plan->avoided_node_count++] = planning_format(planning, "%s", avoided.last->node);
        words = planning_format(planning, "%s%s%s", words, *words ? "; " : "", describe(planning, &avoided));
        planning_requeue(planning, avoided.until_ms);
    }
    avoid_nodes_to_leave(planning);
    set_condition(planning, words);
}
