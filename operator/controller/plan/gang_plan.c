/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/job/enum_words.h"
#include "operator/controller/objects/gang.h"
#include "operator/controller/observed/owner.h"
#include "operator/controller/plan/policies.h"

static bool is_ours(const struct planning *planning, const struct group_view *group)
{
    return owner_is_job(group->owner_uid, group->job_uid, planning->job->uid);
}

static const char *looking(struct planning *planning, const struct gang_kind *kind)
{
    const char *refusal = planning->input->gang.refusal;
    if (refusal && *refusal)
        return planning_format(planning, "the operator has no access to %s of %s: %s", POD_GROUP_PLURAL, kind->group,
                               refusal);
    return planning_format(planning, "looking for %s of %s", POD_GROUP_PLURAL, kind->group);
}

/* An outage that a create has found is reported by the API's state from now on. Other creates that failed still wait for their time. */
static void forget_outage(struct planning *planning)
{
    const char *plural = planning->obstacle.plural;
    if (planning->obstacle.kind != OBSTACLE_OUTAGE || !plural || strcmp(plural, POD_GROUP_PLURAL) != 0)
        return;
    planning->obstacle = (struct obstacle){.kind = OBSTACLE_NONE};
    planning->plan->obstacle_over = true;
}

static void wait_for_api(struct planning *planning, const struct gang_kind *kind)
{
    bool missing = planning->input->gang.state == OPTIONAL_MISSING;
    if (missing)
        forget_outage(planning);
    const char *scheduler = gang_scheduler_words[planning->job->run_policy.gang.scheduler];
    planning_await_api(planning, planning->input->gang.state);
    planning_hold(planning, missing ? "GangSchedulerMissing" : "PodGroupPending",
                  missing
                      ? planning_format(planning,
                                        "runPolicy.gang.scheduler is %s, but the cluster does not serve %s of %s in "
                                        "a version that this operator knows: install it or set scheduler to None",
                                        scheduler, POD_GROUP_PLURAL, kind->group)
                      : looking(planning, kind));
}

static void wait_for_group(struct planning *planning, const char *message)
{
    const char *words = planning->input->gang.group ? planning->input->gang.group->words : "";
    planning_hold(planning, "PodGroupPending", *words ? planning_format(planning, "%s: %s", message, words) : message);
}

/* The group of another life of the name goes with its owner. */
bool gang_plan(struct planning *planning)
{
    const struct gang_input *gang = &planning->input->gang;
    const struct gang_kind *kind = gang_kind_of(planning->job->run_policy.gang.scheduler);
    if (!kind)
        return false;
    if (gang->state != OPTIONAL_READY) {
        wait_for_api(planning, kind);
    } else if (!gang->group) {
        if (create_may_be_tried(planning))
            planning_act(planning, ACTION_CREATE_GROUP, NULL);
        wait_for_group(planning, "the PodGroup is being created");
    } else if (gang->group->deleting || !is_ours(planning, gang->group)) {
        wait_for_group(planning, "waiting until the PodGroup of an earlier job of the same name is gone");
    } else if (kind->waits && (*gang->group->phase == '\0' || strcmp(gang->group->phase, "Pending") == 0)) {
        wait_for_group(planning, "the PodGroup waits for room in its queue");
    }
    return false;
}

void gang_dismiss(struct planning *planning)
{
    const struct group_view *group = planning->input->gang.group;
    if (group && is_ours(planning, group) && !group->deleting)
        planning_act(planning, ACTION_DELETE_GROUP, NULL);
}
