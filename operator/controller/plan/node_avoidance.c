/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/node_avoidance.h"

#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "operator/controller/plan/conditions.h"
#include "operator/controller/plan/node_blame.h"

#define FAILURES_DEFAULT 3
#define WINDOW_SECONDS_DEFAULT 3600
#define UNSCHEDULABLE_SECONDS_DEFAULT 300

static int64_t setting(int64_t given, int64_t otherwise)
{
    return given == FIELD_UNSET ? otherwise : given;
}

static int64_t limit_of(const struct planning *planning)
{
    return setting(planning->job->run_policy.node_avoidance.failures, FAILURES_DEFAULT);
}

static int64_t window_ms(const struct planning *planning)
{
    return 1000 * setting(planning->job->run_policy.node_avoidance.window_seconds, WINDOW_SECONDS_DEFAULT);
}

/* A failure may be the first of a group that is avoided for a window after the group's last. One in the future was noted by
 * another clock. */
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
};

/* Judges the node of the status's failure `at`; only at its newest failure, so that each node is found once. */
static struct avoided avoided_at(const struct planning *planning, const struct job_status *status, unsigned at)
{
    const struct node_failure *last = &status->node_failures[at];
    struct avoided avoided = {.until_ms = last->at_ms + window_ms(planning)};
    for (unsigned i = 0; i < status->node_failure_count; i++) {
        const struct node_failure *failure = &status->node_failures[i];
        if (!is_kept(planning, failure) || strcmp(failure->node, last->node) != 0)
            continue;
        if (i > at)
            return (struct avoided){0};
        avoided.count += last->at_ms - failure->at_ms < window_ms(planning);
    }
    if (limit_of(planning) > 0 && avoided.count >= limit_of(planning) && planning->now_ms < avoided.until_ms)
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

/* Gives the next status a list of its own, of the failures that are kept, with room for one more. */
static void renew_list(struct planning *planning)
{
    struct job_status *next = planning->next;
    struct node_failure *list = arena_allocate(&planning->plan->arena, NODE_FAILURES_MAX, sizeof *list);
    unsigned count = 0, skipped = 0;
    for (unsigned i = 0; i < next->node_failure_count; i++)
        skipped += is_kept(planning, &next->node_failures[i]);
    skipped = skipped >= NODE_FAILURES_MAX ? skipped - NODE_FAILURES_MAX + 1 : 0;
    for (unsigned i = 0; i < next->node_failure_count; i++)
        if (is_kept(planning, &next->node_failures[i]) && (skipped == 0 || skipped-- == 0))
            list[count++] = next->node_failures[i];
    next->node_failures = list;
    next->node_failure_count = count;
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

static bool is_counted_now(const struct planning *planning, const char *node)
{
    const struct job_status *next = planning->next;
    for (unsigned i = 0; i < next->node_failure_count; i++)
        if (next->node_failures[i].at_ms == planning->now_ms && strcmp(next->node_failures[i].node, node) == 0)
            return true;
    return false;
}

static void count(struct planning *planning, const struct pod_view *pod, const char *reason)
{
    struct job_status *next = planning->next;
    if (is_counted_now(planning, pod->node))
        return;
    bool was_avoided = avoided_node(planning, next, pod->node).last != NULL;
    renew_list(planning);
    next->node_failures[next->node_failure_count++] = (struct node_failure){
        .node = planning_format(planning, "%s", pod->node),
        .at_ms = planning->now_ms,
        .reason = planning_format(planning, "%s (pod %s)", reason, pod->name),
    };
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
            count(planning, slot->occupant, blame.reason);
    }
}

/* Keeps the failures that `stays` selects. */
typedef bool failure_stays(struct planning *planning, const struct node_failure *failure);
static void forget(struct planning *planning, failure_stays *stays)
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

static bool was_not_charged(struct planning *planning, const struct node_failure *failure)
{
    return failure->at_ms != planning->old->charged_ms;
}

void node_avoidance_take_back(struct planning *planning)
{
    forget(planning, was_not_charged);
}

/* ---------------------------------------------------------------- giving up */

/* When the newest of the avoided nodes began to be avoided, at the latest; FIELD_UNSET: none is. */
static int64_t avoiding_since_ms(const struct planning *planning)
{
    int64_t since_ms = FIELD_UNSET;
    for (unsigned i = 0; i < planning->old->node_failure_count; i++) {
        const struct node_failure *failure = &planning->old->node_failures[i];
        if (is_kept(planning, failure) && avoided_at(planning, planning->old, i).last && failure->at_ms > since_ms)
            since_ms = failure->at_ms;
    }
    return since_ms;
}

static bool finds_no_node(const struct slot *slot)
{
    const struct pod_view *pod = slot->occupant;
    return pod && pod_view_alive(pod) && !pod_view_deleting(pod) && !pod->scheduled && *pod->unschedulable;
}

static bool is_not_avoided(struct planning *planning, const struct node_failure *failure)
{
    return !failure->node || !avoided_node(planning, planning->old, failure->node).last;
}

/* The API keeps whole seconds of a pod's creation. */
static bool avoids(const struct slot *slot, int64_t since_ms)
{
    return slot->occupant->created_ms + 999 >= since_ms;
}

bool node_avoidance_plan(struct planning *planning)
{
    int64_t since_ms = avoiding_since_ms(planning);
    int64_t patience_ms =
        1000 * setting(planning->job->run_policy.node_avoidance.unschedulable_seconds, UNSCHEDULABLE_SECONDS_DEFAULT);
    const struct pod_view *stuck = NULL;
    for (size_t i = 0; since_ms != FIELD_UNSET && i < planning->crew.slot_count; i++) {
        const struct slot *slot = &planning->crew.slots[i];
        if (!finds_no_node(slot) || !avoids(slot, since_ms))
            continue;
        int64_t due_ms = slot->occupant->created_ms + patience_ms;
        if (planning->now_ms >= due_ms)
            stuck = slot->occupant;
        else
            planning_requeue(planning, due_ms);
    }
    if (!stuck)
        return false;
    forget(planning, is_not_avoided);
    planning_promise(planning, finds_no_node);
    planning_event(planning, true, "NodeAvoidanceEnded", "AvoidNode",
                   planning_format(planning,
                                   "pod %s has found no node for %" PRId64
                                   " s while the job avoids nodes: they are avoided no longer, and pods without a node "
                                   "are created again",
                                   stuck->name, patience_ms / 1000));
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

void node_avoidance_update(struct planning *planning)
{
    struct job_status *next = planning->next;
    struct plan *plan = planning->plan;
    const char *words = "";
    if (next->node_failure_count == 0 && !condition_is(planning->old, CONDITION_AVOIDING_NODES, CONDITION_TRUE))
        return;
    plan->avoided_nodes = arena_allocate(&plan->arena, next->node_failure_count + 1, sizeof *plan->avoided_nodes);
    for (unsigned i = 0; i < next->node_failure_count && !status_terminal(next); i++) {
        if (!is_kept(planning, &next->node_failures[i]))
            continue;
        struct avoided avoided = avoided_at(planning, next, i);
        if (!avoided.last)
            continue;
        plan->avoided_nodes[plan->avoided_node_count++] = planning_format(planning, "%s", avoided.last->node);
        words = planning_format(planning, "%s%s%s", words, *words ? "; " : "", describe(planning, &avoided));
        planning_requeue(planning, avoided.until_ms);
    }
    set_condition(planning, words);
}
