/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/hang_report.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/operator/controller/plan/scene.h"

#define STACK(function)                                                                                                \
    "step 5\nCurrent thread 0x7f (most recent call first):\n  File \"/a/train.py\", line 7 in " function "\n"

static struct hung_pod hung[3];

/* The crew of attempt 1 hung, and the status says so. */
SCENE_SUITE(hang_report)
{
    scene_init_running(&scene, 3);
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene.job.run_policy.progress_deadline_seconds = 100;
    scene.input.log.unread_since_ms = FIELD_UNSET;
    scene_turn(&scene);
    scene.input.now_ms += 100000;
    scene.input.answers = (struct answers_input){.asked_ms = scene.input.now_ms, .since_ms = SCENE_NOW, .found = true};
    expect_turn("attempt=2 Restarting:True=ProgressDeadlineExceeded");
    cr_assert_eq(scene.plan.hung_attempt, 1, "from the decision on");
    hung[0] = (struct hung_pod){"digits-worker-0-1", STACK("all_reduce")};
    hung[1] = (struct hung_pod){"digits-worker-1-1", STACK("read")};
    hung[2] = (struct hung_pod){"digits-worker-2-1", STACK("all_reduce")};
    scene.input.memory.hung = hung;
    scene.input.memory.hung_count = 3;
}

static const char *note(void)
{
    for (size_t i = 0; i < scene.plan.event_count; i++)
        if (strcmp(scene.plan.events[i].reason, "HangStack") == 0)
            return scene.plan.events[i].note;
    return "";
}

static void pods_gone(void)
{
    scene.input.pod_count = scene.pod_count = 0;
}

Test(hang_report, the_pod_that_the_others_wait_for_is_named_first)
{
    pods_gone();
    scene_plan(&scene);
    cr_expect_str_eq(note(), "pod digits-worker-1-1 is not in the collective operation of the others: it was at read "
                             "(train.py:7); pod digits-worker-0-1 was at all_reduce (train.py:7); pod "
                             "digits-worker-2-1 was at all_reduce (train.py:7)");
    cr_expect(scene.plan.reports_hang);
    scene.input.now_ms += 3600000;
    scene_plan(&scene);
    cr_expect_str_eq(note(), "", "it is too old, and another operator may have said it");
    scene.input.now_ms -= 3600000;
    scene.input.memory.hang_reported_attempt = 1;
    scene_plan(&scene);
    cr_expect_str_eq(note(), "", "it is said once");
    cr_expect_eq(scene.plan.hung_attempt, 0);
}

Test(hang_report, a_pod_without_a_stack_is_frozen)
{
    pods_gone();
    hung[1].message = "step 5\n";
    scene_plan(&scene);
    cr_expect_eq(strncmp(note(), "pod digits-worker-1-1 printed no stack before it was killed, ", 60), 0, "%s", note());
    for (size_t i = 0; i < 3; i++)
        hung[i].message = "step 5\n";
    scene_plan(&scene);
    cr_expect_str_eq(note(), "", "nobody has printed a stack: nothing is known");
}

Test(hang_report, nobody_is_named_where_all_wait_for_each_other)
{
    pods_gone();
    hung[1].message = STACK("all_reduce");
    scene_plan(&scene);
    cr_expect_eq(strncmp(note(), "pod digits-worker-0-1 was at all_reduce (train.py:7); ", 50), 0, "%s", note());
}

Test(hang_report, pods_that_still_end_are_waited_for)
{
    scene_plan(&scene);
    cr_expect_eq(scene.plan.hung_attempt, 1, "their messages are to be kept");
    cr_expect_not(scene.plan.reports_hang);
    for (size_t i = 0; i < 3; i++)
        scene_end_pod(&scene, &scene.pods[i], 143);
    scene.pods[1].termination_message = STACK("read");
    scene.input.memory.hung_count = 0;
    scene_plan(&scene);
    cr_expect(strstr(note(), "pod digits-worker-1-1 was at read (train.py:7)"), "%s", note());
}

Test(hang_report, other_restarts_and_our_own_workers_have_no_report)
{
    pods_gone();
    scene.job.framework = FRAMEWORK_COXSWAIN;
    scene_plan(&scene);
    cr_expect_eq(scene.plan.hung_attempt, 0);
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene.job.status.conditions[CONDITION_RESTARTING].reason = "PodFailed";
    scene_plan(&scene);
    cr_expect_eq(scene.plan.hung_attempt, 0);
    cr_expect_str_eq(note(), "");
}

Test(hang_report, a_job_that_fails_for_a_hang_has_one_too)
{
    pods_gone();
    scene.job.status.attempt = 1;
    scene.job.status.conditions[CONDITION_RESTARTING].status = CONDITION_FALSE;
    scene.job.status.conditions[CONDITION_FAILED] = (struct condition){
        .status = CONDITION_TRUE, .reason = "ProgressDeadlineExceeded", .message = "", .last_transition_ms = SCENE_NOW};
    scene_plan(&scene);
    cr_expect(strstr(note(), "digits-worker-1-1 is not in the collective"), "%s", note());
}
