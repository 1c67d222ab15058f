/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/status_change.h"

#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(status_change)
{
    scene_init_running(&scene, 2);
}

Test(status_change, how_urgent_a_write_is)
{
    const struct job_status *old = &scene.job.status;
    struct job_status new = *old;
    cr_assert_eq(status_compare(old, &new), STATUS_SAME);
    new.progress.step = 5;
    cr_assert_eq(status_compare(old, &new), STATUS_PROGRESS);
    new.replicas[ROLE_WORKER].ready = 1;
    cr_assert_eq(status_compare(old, &new), STATUS_COUNTS);
    new.replicas[ROLE_WORKER].pending = "1";
    cr_assert_eq(status_compare(old, &new), STATUS_COUNTS);
    new = *old;
    new.replicas[ROLE_WORKER].completed = "1";
    cr_assert_eq(status_compare(old, &new), STATUS_COUNTS);
    new.incarnation++;
    cr_assert_eq(status_compare(old, &new), STATUS_DECISION);
    new = *old;
    new.conditions[CONDITION_RUNNING].status = CONDITION_FALSE;
    cr_assert_eq(status_compare(old, &new), STATUS_DECISION);
    new = *old;
    new.conditions[CONDITION_RUNNING].message = "other words";
    cr_assert_eq(status_compare(old, &new), STATUS_COUNTS);
    new = *old;
    new.observed_generation++;
    cr_assert_eq(status_compare(old, &new), STATUS_DECISION);
}

Test(status_change, mere_counts_wait_for_their_like)
{
    scene.pods[1].ready = false;
    scene.job.status.conditions[CONDITION_RUNNING].status = CONDITION_FALSE;
    expect_plan("write_status=0");
    cr_assert(scene.plan.counts_wait);
    cr_assert_eq(scene.plan.requeue_ms, SCENE_NOW + 1000);
    scene.input.memory.counts_since_ms = SCENE_NOW;
    scene.input.now_ms += 1000;
    expect_plan("write_status=1");
}

/* When the numbers of a crew that ran since `ran_ms` are written, in ms from now. */
static int64_t wait_after(int64_t ran_ms)
{
    scene_renew();
    scene.pods[1].ready = false;
    for (int type = 0; type < CONDITION_TYPE_COUNT; type++)
        scene.job.status.conditions[type].last_transition_ms = SCENE_NOW - ran_ms;
    scene.job.status.conditions[CONDITION_RUNNING].status = CONDITION_FALSE;
    scene_plan(&scene);
    int64_t wait_ms = scene.plan.requeue_ms - SCENE_NOW;
    return wait_ms;
}

Test(status_change, counts_that_go_on_changing_are_written_ever_more_rarely)
{
    cr_assert_eq(wait_after(-500), 1000, "the clock was set back");
    cr_assert_eq(wait_after(100), 1000);
    cr_assert_eq(wait_after(1000), 3000);
    cr_assert_eq(wait_after(3000), 5000);
    cr_assert_eq(wait_after(INT64_C(1000000000000)), 5000);
}

Test(status_change, what_pods_or_limits_wait_for_does_not_only_tell)
{
    scene_release(&scene);
    scene_init(&scene, 2);
    scene_plan(&scene); /* promises its pods */
    scene_expect("write_status=1 only_informs=0");
    scene_run(&scene);
    scene.job.status.conditions[CONDITION_RUNNING].status = CONDITION_FALSE;
    scene_plan(&scene); /* that it runs */
    scene_expect("write_status=1 only_informs=1");
    scene.plan.status.restart_count++;
    cr_assert_not(plan_only_informs(&scene.plan, &scene.job.status));
    scene.plan.status = scene.job.status;
    scene.plan.status.conditions[CONDITION_FAILED].status = CONDITION_TRUE;
    cr_assert_not(plan_only_informs(&scene.plan, &scene.job.status));
}

/* Returns in how many ms changed counts are written, if they have differed since `since_ms` ago and pods last changed `changed_ms` ago;
 * 0: now. */
static int64_t gathers_for(int64_t since_ms, int64_t changed_ms, const char *promise)
{
    scene_renew();
    scene.pods[1].ready = false;
    scene.job.status.conditions[CONDITION_RUNNING].status = CONDITION_FALSE;
    scene.job.status.replicas[ROLE_WORKER].pending = promise;
    scene.input.memory.counts_since_ms = SCENE_NOW - since_ms;
    scene.input.memory.pods_changed_ms = SCENE_NOW - changed_ms;
    scene_plan(&scene);
    int64_t wait_ms = scene.plan.write_status ? 0 : scene.plan.requeue_ms - SCENE_NOW;
    return wait_ms;
}

Test(status_change, counts_wait_while_pods_change)
{
    cr_assert_eq(gathers_for(1000, 1000, NULL), 0);
    cr_assert_eq(gathers_for(1000, 200, NULL), 800, "what they do next is told with it");
    cr_assert_eq(gathers_for(2500, 0, NULL), 500, "not for ever");
    cr_assert_eq(gathers_for(3000, 0, NULL), 0);
    cr_assert_eq(gathers_for(1000, -5000, NULL), 0, "the clock was set back");
    cr_assert_eq(gathers_for(1000, 0, "1"), 0, "a kept promise is cleared soon");
}

/* Rule 8: at most pods + 7 writes. Here the status writes of a healthy life; to these come the Service, the pods and two
 * events. */
static int writes_of_a_life(bool unrecorded, int start, int end)
{
    scene_release(&scene);
    int writes = 0;
    scene_init(&scene, 8);
    scene.options.unrecorded_crews = unrecorded;
    scene.input.memory.born_ms = unrecorded ? SCENE_NOW : FIELD_UNSET;
    for (int step = 0; step < end + 40; step++) {
        bool changes = step == 4 || step == 5;
        scene.input.now_ms = SCENE_NOW + step * 250;
        if (step == 4)
            for (int64_t i = 0; i < 8; i++) {
                struct pod_view *pod = scene_add_pod(&scene, ROLE_WORKER, i, 1);
                pod->attempt = 1;
                pod->ready = pod->scheduled = false;
                pod->phase = POD_PENDING;
            }
        for (size_t i = 0; i < scene.pod_count; i++) {
            bool was_ready = scene.pods[i].ready;
            scene.pods[i].scheduled |= step >= 5;
            scene.pods[i].ready = step >= start + (int)i % 3 && scene.pods[i].exit_code == EXIT_CODE_NONE;
            if (step == end + (int)(7 - i) % 3)
                scene_end_pod(&scene, &scene.pods[i], 0);
            changes |= scene.pods[i].ready != was_ready || step == end + (int)(7 - i) % 3;
        }
        if (changes)
            scene.input.memory.pods_changed_ms = scene.input.now_ms;
        scene_plan(&scene);
        scene.input.memory.counts_since_ms = !scene.plan.counts_wait ? FIELD_UNSET
                                             : scene.input.memory.counts_since_ms == FIELD_UNSET
                                                 ? scene.input.now_ms
                                                 : scene.input.memory.counts_since_ms;
        if (scene.plan.write_status) {
            writes++;
            scene_accept(&scene);
        }
    }
    scene_expect("job.state=Succeeded job.worker.succeeded=8");
    return writes;
}

Test(status_change, a_healthy_life_takes_few_status_writes)
{
    cr_assert_eq(writes_of_a_life(false, 20, 40), 4);
    cr_assert_eq(writes_of_a_life(true, 20, 40), 3);
    cr_assert_eq(writes_of_a_life(true, 8, 40), 2, "a crew that runs within two seconds was never anything else");
}
