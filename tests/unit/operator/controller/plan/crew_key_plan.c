/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(crew_key_plan)
{
    scene_init_running(&scene, 3);
    scene.key_in_doubt = true;
    scene.input.memory.key_look = (struct crew_key_look){0};
    scene.input.now_ms += 60000;
}

static void look(bool there)
{
    cr_assert_eq(scene_count(&scene, ACTION_LOOK_FOR_KEY), 1);
    scene.input.memory.key_look = (struct crew_key_look){scene.plan.incarnation, scene.input.now_ms, there};
    scene_plan(&scene);
}

/* Worker 1 is killed, and its successor promised. */
static void lose_worker(void)
{
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene_turn(&scene);
    scene.pods[1].current = false;
    scene_plan(&scene);
}

Test(crew_key_plan, a_crew_that_lives_is_not_asked_about)
{
    expect_plan("actions=0");
}

Test(crew_key_plan, a_successor_comes_once_the_key_is_known_to_be_there)
{
    lose_worker();
    cr_assert_eq(scene_count(&scene, ACTION_CREATE_POD), 0);
    look(true);
    scene_expect("create_pod=1 look_for_key=0 attempt=1");
}

Test(crew_key_plan, without_the_key_the_crew_starts_over_and_is_not_split)
{
    lose_worker();
    look(false);
    scene_expect("create_pod=0 create_key=0 (while somebody may have the old one) attempt=2 worker.pending=0-2 "
                 "Restarting:True=CrewKeyRenewed failures=1 (only what was before)");
    scene_accept(&scene);
    expect_plan("delete_pod=2 (who lives)");
    scene.input.pod_count = 0; /* they are gone */
    scene_plan(&scene);
    look(false);
    cr_assert_eq(scene.plan.action_count, 1);
    cr_assert_eq(scene.plan.actions[0].type, ACTION_CREATE_KEY);
    scene.input.memory.key_look.there = true;
    expect_plan("create_pod=3 attempt=2 (once)");
}

Test(crew_key_plan, a_pod_that_may_have_started_meanwhile_may_have_the_old_key)
{
    lose_worker();
    for (int i = 0; i < 3; i += 2) {
        scene.pods[i].scheduled = scene.pods[i].ready = false;
        scene.pods[i].phase = POD_PENDING;
        scene.pods[i].startable_ms = FIELD_UNSET;
    }
    scene_plan(&scene);
    look(false);
    scene_expect("create_key=0 attempt=2");
}

Test(crew_key_plan, a_pod_that_does_not_start_is_asked_about_now_and_then)
{
    struct pod_view *pod = &scene.pods[2];
    pod->phase = POD_PENDING;
    pod->ready = false;
    pod->startable_ms = scene.input.now_ms;
    expect_plan("look_for_key=0");
    cr_assert_eq(scene.plan.requeue_ms, scene.input.now_ms + 20000);
    scene.input.now_ms += 20000;
    scene_plan(&scene);
    look(true);
    cr_assert_eq(scene.plan.action_count, 0);
    cr_assert_eq(scene.plan.requeue_ms, scene.input.now_ms + 60000);
    scene.input.now_ms += 60000;
    scene_plan(&scene);
    look(false);
    cr_assert_eq(scene.plan.status.attempt, 2);
}

Test(crew_key_plan, a_pod_whose_init_containers_run_has_its_key)
{
    struct pod_view *pod = &scene.pods[2];
    pod->phase = POD_PENDING;
    pod->ready = false;
    pod->begun = true;
    pod->startable_ms = scene.input.now_ms - 60000;
    expect_plan("look_for_key=0");
}

Test(crew_key_plan, crews_without_a_key_are_left_alone)
{
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene.job.run_policy.restart_scope = RESTART_SCOPE_POD;
    lose_worker();
    scene_expect("look_for_key=0 create_pod=1");
}

Test(crew_key_plan, a_successor_of_the_operator_asks_once)
{
    lose_worker();
    scene.input.memory.inherited_incarnation = scene.job.status.incarnation;
    expect_turn("actions=0 (it promises anew first)");
    scene_plan(&scene);
    look(true);
    cr_assert_eq(scene_count(&scene, ACTION_CREATE_POD), 1);
}
