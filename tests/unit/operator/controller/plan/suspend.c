/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(suspend)
{
    scene_init_running(&scene, 2);
    scene.job.suspend = true;
}

Test(suspend, says_so_before_it_deletes_and_is_true_when_all_are_gone)
{
    expect_turn("actions=0 Suspended:False=Suspending");
    expect_plan("delete_pod=2");
    scene.pods[0].deletion_ms = scene.pods[1].deletion_ms = SCENE_NOW;
    scene.list[0] = &scene.pods[1];
    scene.input.pod_count = 1;
    expect_plan(
        "actions=0 (deletion is asked for once) worker.active=1 (a pod that terminates is active) Suspended:True=");
    scene.input.pod_count = 0;
    expect_plan("Suspended:True=Suspended restart_count=0 (nothing was lost) state=Suspended");
}

Test(suspend, resume_counts_the_time_and_starts_a_new_attempt)
{
    scene_turn(&scene);
    scene.input.pod_count = 0;
    scene_turn(&scene);
    scene.input.now_ms += 5000;
    scene.job.suspend = false;
    expect_plan("suspended_ms=5000 attempt=2 incarnation=2 worker.pending=0-1");
    cr_assert_eq(scene.plan.status.start_ms, SCENE_NOW);
}

/* The plan has something else to do first. */
Test(suspend, is_taken_back_for_a_pod_that_came_too_late_while_another_is_adopted)
{
    scene_turn(&scene);
    scene.input.pod_count = 0;
    scene_turn(&scene);
    scene.input.now_ms += 5000;
    scene_end_pod(&scene, &scene.pods[0], 143);
    scene.pods[0].owner_uid = "";
    scene.pods[0].adoptable = true;
    scene.input.pod_count = 2;
    expect_plan("adopt_pod=1 worker.active=1 Suspended:False=Suspending suspended_ms=5000");
}

Test(suspend, a_change_of_mind_waits_for_the_old_pods)
{
    scene_turn(&scene);
    scene.pods[0].deletion_ms = scene.pods[1].deletion_ms = SCENE_NOW;
    scene.job.suspend = false;
    expect_turn("attempt=2");
    expect_plan("create_pod=0 restart_count=0");
    scene.input.pod_count = 0;
    expect_plan("create_pod=2");
}

Test(suspend, from_the_start_creates_nothing)
{
    scene_release(&scene);
    scene_init(&scene, 2);
    scene.job.suspend = true;
    expect_turn("actions=0 Suspended:True=Suspended");
    scene.job.suspend = false;
    scene.input.now_ms += 3600000;
    expect_plan("attempt=1");
    cr_assert_eq(scene.plan.status.start_ms, scene.input.now_ms);
    cr_assert_eq(scene.plan.status.suspended_ms, 0, "what passed before the start is not the job's time");
}

Test(suspend, a_pod_that_appears_after_all_takes_the_word_back_until_it_is_gone)
{
    scene_turn(&scene);
    scene.input.pod_count = 0;
    scene_turn(&scene);
    scene.input.now_ms += 5000;
    scene.input.pod_count = 1;
    expect_turn("Suspended:False=Suspending suspended_ms=5000");
    expect_plan("delete_pod=1");
    scene.input.pod_count = 0;
    expect_plan("Suspended:True=Suspended");
}

Test(suspend, a_promised_pod_is_given_a_moment_to_appear)
{
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene.job.suspend = false;
    scene_turn(&scene);
    scene.job.suspend = true;
    scene.input.pod_count = 0;
    expect_turn("Suspended:False=Suspending (the create may be on the wire)");
    expect_plan("Suspended:True=Suspended");
}

/* Many programs end with 0 when they are asked to. Clocks of nodes may be late. */
Test(suspend, a_pod_that_is_ended_and_exits_0_has_not_finished)
{
    const int seconds[] = {-1, 0, 10, 31};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        scene_release(&scene);
        scene_init_running(&scene, 1);
        scene.job.suspend = true;
        scene_turn(&scene);
        scene_end_pod(&scene, &scene.pods[0], 0);
        scene.pods[0].deletion_ms = scene.pods[0].finished_ms + seconds[i] * 1000;
        scene.pods[0].grace_ms = 30000;
        scene.input.now_ms += 40000;
        scene_plan(&scene);
        cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE),
                         seconds[i] > 30 ? "ChiefSucceeded" : "", "it ended %d s before", seconds[i]);
    }
}

Test(suspend, leaves_out_by_how_much_the_clock_was_set_meanwhile)
{
    const int64_t moves[] = {3600000, -3600000};
    for (size_t i = 0; i < 2; i++) {
        scene_renew();
        scene_turn(&scene);
        scene.input.pod_count = 0;
        scene_turn(&scene);
        scene.input.moved_ms[STATUS_TIME_SUSPENDED] = moves[i];
        scene.input.now_ms += moves[i] + 5000;
        scene.job.suspend = false;
        scene_plan(&scene);
        cr_assert_eq(scene.plan.status.suspended_ms, 5000, "set by %lld", (long long)moves[i]);
        cr_assert_eq(scene.plan.status.attempt, 2);
    }
}

Test(suspend, a_clock_set_back_unseen_counts_nothing)
{
    scene_turn(&scene);
    scene.input.pod_count = 0;
    scene_turn(&scene);
    scene.input.now_ms -= 3600000;
    scene.job.suspend = false;
    expect_plan("suspended_ms=0 (the API refuses less) attempt=2");
}
