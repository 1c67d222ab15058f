/* SPDX-License-Identifier: Apache-2.0
 *
 * What an earlier job of the same name has left: how the waiting for it is told.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/unit/operator/controller/plan/scene.h"

#define WAITING "waiting until 1 pod of an earlier job of the same name is gone"

SCENE_SUITE(leftovers)
{
    scene_init(&scene, 3);
    scene.input.service = NULL;
}

static void expect_told(const char *message)
{
    expect_plan("incarnation=0 Scheduled:False=WaitingForPredecessor");
    cr_expect_str_eq(scene.plan.status.conditions[CONDITION_SCHEDULED].message, message);
}

static struct pod_view *leave_orphan(const char *job_uid)
{
    struct pod_view *pod = scene_add_pod(&scene, ROLE_WORKER, 0, 3);
    pod->owner_uid = "";
    pod->job_uid = job_uid;
    return pod;
}

Test(leftovers, what_the_garbage_collector_takes_is_only_waited_for)
{
    scene_leave_pod(&scene, "the-job-before");
    expect_told(WAITING);
}

Test(leftovers, a_pod_without_an_owner_must_be_deleted_by_a_user)
{
    const struct pod_view *pod = leave_orphan("the-job-before");
    char message[512];
    snprintf(message, sizeof message,
             WAITING "; %s has no owner and stays until a user deletes it: kubectl -n default delete pods -l "
                     "coxswain.dev/job-uid=the-job-before",
             pod->name);
    expect_told(message);
}

Test(leftovers, without_the_jobs_uid_by_name)
{
    const struct pod_view *pod = leave_orphan("");
    char message[512];
    snprintf(message, sizeof message,
             WAITING "; %s has no owner and stays until a user deletes it: kubectl -n default delete pods %s",
             pod->name, pod->name);
    expect_told(message);
}

Test(leftovers, a_pod_that_is_being_deleted_needs_no_user)
{
    leave_orphan("the-job-before")->deletion_ms = SCENE_NOW;
    expect_told(WAITING);
}
