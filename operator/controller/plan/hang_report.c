/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/hang_report.h"

#include <string.h>

#include "common/python_stack.h"
#include "common/utf8.h"

#define STACK_LINE_MAX 2048
#define QUOTED_BYTES 300 /* of each stack; a note has 1024 */
#define QUOTED_PODS 3
#define REPORT_MS (30 * 60 * 1000) /* the pods have ended by then, or are on a node that is gone */

/* A job that failed long ago may still have its pods: an operator that is restarted does not know that it was reported. */
static bool deadline_made(const struct planning *planning, enum condition_type type)
{
    const struct condition *condition = &planning->next->conditions[type];
    return condition->status == CONDITION_TRUE && condition->reason &&
           planning->now_ms - condition->last_transition_ms < REPORT_MS &&
           strcmp(condition->reason, "ProgressDeadlineExceeded") == 0;
}

/* Returns the attempt that hung; 0: none, or it has been reported. */
static int64_t hung_attempt(const struct planning *planning)
{
    const struct job_status *next = planning->next;
    int64_t attempt = deadline_made(planning, CONDITION_FAILED)       ? next->attempt
                      : deadline_made(planning, CONDITION_RESTARTING) ? next->attempt - 1
                                                                      : 0;
    bool is_foreign = planning->job->framework != FRAMEWORK_COXSWAIN;
    return is_foreign && attempt > planning->input->memory.hang_reported_attempt ? attempt : 0;
}

static bool belongs(const struct pod_view *pod, int64_t attempt)
{
    return pod->member && pod->attempt == attempt && pod->role != ROLE_EVALUATOR;
}

struct pod_stack {
    const char *pod, *stack; /* stack NULL: none was printed */
    bool collective;         /* it waits in a collective operation */
};

struct pod_stacks {
    struct pod_stack list[HUNG_PODS_MAX];
    size_t count, printed, collective;
};

static void add(struct planning *planning, struct pod_stacks *stacks, const char *pod, const char *message)
{
    SCOPED_BUFFER line = BUFFER_INIT(STACK_LINE_MAX);
    if (stacks->count == HUNG_PODS_MAX)
        return;
    bool printed = python_stack_append(message, &line);
    const char *text = buffer_text(&line);
    struct pod_stack one = {.pod = pod, .collective = printed && python_stack_is_collective(text)};
    if (printed)
        one.stack = planning_format(planning, "%.*s", (int)utf8_fit(text, QUOTED_BYTES), text);
    stacks->printed += printed;
    stacks->collective += one.collective;
    stacks->list[stacks->count++] = one;
}

/* Returns whether the others wait for this one: they printed their stacks and it did not, or they wait in a collective operation in which it
 * is not. */
static bool is_missed(const struct pod_stacks *stacks, const struct pod_stack *one)
{
    return !one->stack || (stacks->collective > 0 && !one->collective);
}

static const char *describe_one(struct planning *planning, const struct pod_stack *one, bool missed)
{
    if (!one->stack)
        return planning_format(planning,
                               "pod %s printed no stack before it was killed, so its process is frozen or waits in the "
                               "kernel, or catches SIGTERM itself",
                               one->pod);
    const char *how = missed ? "is not in the collective operation of the others: it was" : "was";
    return planning_format(planning, "pod %s %s at %s", one->pod, how, one->stack);
}

static const char *describe(struct planning *planning, const struct pod_stacks *stacks)
{
    const char *text = "";
    size_t quoted = 0;
    for (int missed = 1; missed >= 0; missed--)
        for (size_t i = 0; i < stacks->count && quoted < QUOTED_PODS; i++) {
            const struct pod_stack *one = &stacks->list[i];
            if (is_missed(stacks, one) != missed)
                continue;
            text = planning_format(planning, "%s%s%s", text, quoted ? "; " : "", describe_one(planning, one, missed));
            quoted++;
        }
    return text;
}

void hang_report_update(struct planning *planning)
{
    const struct plan_input *input = planning->input;
    struct plan *plan = planning->plan;
    struct pod_stacks stacks = {.count = 0};
    plan->hung_attempt = hung_attempt(planning);
    if (plan->hung_attempt == 0 || planning->next->attempt != planning->old->attempt)
        return;
    for (size_t i = 0; i < input->pod_count; i++)
        if (belongs(input->pods[i], plan->hung_attempt) && pod_view_alive(input->pods[i]))
            return;
    for (size_t i = 0; i < input->memory.hung_count; i++)
        add(planning, &stacks, input->memory.hung[i].pod, input->memory.hung[i].message);
    for (size_t i = 0; i < input->pod_count; i++)
        if (belongs(input->pods[i], plan->hung_attempt))
            add(planning, &stacks, input->pods[i]->name, input->pods[i]->termination_message);
    plan->reports_hang = true;
    if (stacks.printed > 0)
        planning_event_of_action(planning, "HangStack", "RestartCrew", describe(planning, &stacks));
}
