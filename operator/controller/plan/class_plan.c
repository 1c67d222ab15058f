/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/job/enum_words.h"
#include "common/job/training_class.h"
#include "operator/controller/plan/policies.h"

static const char *class_name(const struct planning *planning)
{
    return planning->job->training_class.name;
}

static const char *class_kind(const struct planning *planning)
{
    return training_class_kind_words[planning->job->training_class.kind];
}

/* Why the class cannot be taken now; NULL: that is not known yet. */
static const char *obstacle_of(struct planning *planning, const char **ret_reason)
{
    const struct class_input *class = &planning->input->class;
    const char *refusal = class->refusal;
    const char *plural = training_class_plural(planning->job->training_class.kind), *kind = class_kind(planning);
    *ret_reason = "TrainingClassUnknown";
    if (class->state == OPTIONAL_UNKNOWN && refusal && *refusal)
        return planning_format(planning,
                               "the operator has no access to %s; allow its ClusterRole to list and watch them: %s",
                               plural, refusal);
    if (class->state == OPTIONAL_UNKNOWN)
        return NULL;
    *ret_reason = "TrainingClassMissing";
    if (class->state == OPTIONAL_MISSING)
        return planning_format(planning,
                               "spec.trainingClass is given, but the cluster does not serve %s: install the "
                               "definition that came with this operator",
                               plural);
    if (!class->view)
        return planning_format(planning,
                               "%s %s does not exist: create it, or delete the job and name another in "
                               "spec.trainingClass",
                               kind, class_name(planning));
    *ret_reason = "TrainingClassInvalid";
    return planning_format(planning, "correct %s %s: %s", kind, class_name(planning), class->view->flaw);
}

static void wait_for_class(struct planning *planning)
{
    const char *reason, *message = obstacle_of(planning, &reason);
    const struct condition *before = &planning->old->conditions[CONDITION_SCHEDULED];
    bool told = before->status != CONDITION_ABSENT && strcmp(before->reason, reason) == 0;
    if (condition_is(planning->old, CONDITION_SUSPENDED, CONDITION_TRUE))
        condition_set(planning, CONDITION_SUSPENDED, CONDITION_FALSE, "Resumed", "spec.suspend is false");
    if (planning->input->class.state != OPTIONAL_READY)
        planning_await_api(planning, planning->input->class.state);
    if (!message)
        return;
    if (!told)
        planning_event(planning, true, reason, "TakeClass", message);
    condition_set(planning, CONDITION_SCHEDULED, CONDITION_FALSE, reason, message);
}

/* The copy outlives the cache's object; strings are the plan's. */
static void pin(struct planning *planning, const struct class_view *view)
{
    struct plan *plan = planning->plan;
    plan->class_defaults = json_copy(view->spec);
    planning->next->training_class = (struct pinned_class){
        .kind = planning->job->training_class.kind,
        .name = arena_copy_string(&plan->arena, class_name(planning)),
        .uid = arena_copy_string(&plan->arena, view->uid),
        .generation = view->generation,
        .defaults = plan->class_defaults,
    };
    const char *message =
        planning_format(planning, "the job has the defaults of %s %s", class_kind(planning), class_name(planning));
    planning_event(planning, false, "TrainingClassTaken", "TakeClass", message);
    if (planning->old->conditions[CONDITION_SCHEDULED].status != CONDITION_ABSENT)
        condition_set(planning, CONDITION_SCHEDULED, CONDITION_FALSE, "Pending", message);
}

/* Once it is in the status, the cache shows another job: one with the class's defaults. A job that an operator without classes has
 * started keeps what that operator made of it. */
bool class_plan(struct planning *planning)
{
    const struct class_view *view = planning->input->class.view;
    if (!training_job_awaits_class(planning->job) || planning->old->attempt > 0)
        return false;
    if (planning->input->class.state == OPTIONAL_READY && view && !view->flaw)
        pin(planning, view);
    else if (planning->job->suspend)
        return false;
    else
        wait_for_class(planning);
    return true;
}
