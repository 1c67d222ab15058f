/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/back_off.h"

#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

static struct pod_view *evaluator;

/* Two workers and an evaluator, after enough restarts that the next failure causes a delay. */
SCENE_SUITE(back_off)
{
    scene_init_running(&scene, 2);
    scene.job.roles[ROLE_EVALUATOR].count = 1;
    evaluator = scene_add_pod(&scene, ROLE_EVALUATOR, 0, 1);
    scene.job.status.restart_count = 7;
}

static void end(struct pod_view *pod)
{
    scene_end_pod(&scene, pod, 139);
    scene_turn(&scene);
    pod->current = false;
}

static bool creates(enum role role)
{
    scene_plan(&scene);
    for (size_t i = 0; i < scene.plan.action_count; i++)
        if (scene.plan.actions[i].type == ACTION_CREATE_POD && scene.plan.actions[i].role == role)
            return true;
    return false;
}

static int64_t until(enum role role)
{
    return scene.job.status.replicas[role].backoff_until_ms;
}

Test(back_off, is_of_the_slot_that_failed)
{
    end(evaluator);
    const struct job_status *status = &scene.job.status;
    scene_expect("job.evaluator.backing_off=0 job.worker.backing_off=none");
    cr_assert_geq(until(ROLE_EVALUATOR), scene.input.now_ms + 64000);
    cr_assert_eq(status->backoff_until_ms, until(ROLE_EVALUATOR), "for operators that know no more");
}

/* A worker that waits for something else is none of its business. */
Test(back_off, the_evaluators_back_off_holds_no_promised_worker)
{
    scene.pod_count = scene.input.pod_count = 2;
    scene.list[1] = evaluator;
    scene.job.status.replicas[ROLE_WORKER].pending = "1";
    end(evaluator);
    cr_assert_str_eq(scene.job.status.replicas[ROLE_WORKER].pending, "1");
    cr_assert(creates(ROLE_WORKER));
    cr_assert_not(creates(ROLE_EVALUATOR));
    cr_assert_leq(scene.plan.requeue_ms, until(ROLE_EVALUATOR));
    scene.input.now_ms = until(ROLE_EVALUATOR);
    cr_assert(creates(ROLE_EVALUATOR));
}

Test(back_off, is_neither_ended_nor_prolonged_by_that_of_another_role)
{
    end(&scene.pods[1]);
    int64_t worker_ms = until(ROLE_WORKER);
    scene.input.now_ms += 2000;
    end(evaluator);
    cr_assert_eq(until(ROLE_WORKER), worker_ms);
    cr_assert_gt(until(ROLE_EVALUATOR), worker_ms, "it is doubled each time");
    cr_assert_eq(scene.job.status.backoff_until_ms, until(ROLE_EVALUATOR));
    scene.input.now_ms = worker_ms;
    cr_assert(creates(ROLE_WORKER));
    cr_assert_not(creates(ROLE_EVALUATOR));
}

Test(back_off, is_not_cut_short_by_a_pod_that_worked_for_long)
{
    scene.input.now_ms += 600000;
    evaluator->started_ms = scene.input.now_ms;
    end(evaluator);
    int64_t evaluator_ms = until(ROLE_EVALUATOR);
    end(&scene.pods[1]);
    cr_assert_null(scene.job.status.replicas[ROLE_WORKER].backing_off, "it worked for ten minutes");
    cr_assert_eq(until(ROLE_EVALUATOR), evaluator_ms);
    cr_assert(creates(ROLE_WORKER));
    cr_assert_not(creates(ROLE_EVALUATOR));
}

/* A pod whose own delay is over, but which something else delays, does not begin its delay again. */
Test(back_off, that_is_over_is_not_begun_again_by_the_next)
{
    scene.job.elastic.enabled = true;
    scene.job.elastic.min_workers = 1;
    end(&scene.pods[1]);
    cr_assert_str_eq(scene.job.status.replicas[ROLE_WORKER].backing_off, "1");
    scene.input.now_ms = until(ROLE_WORKER);
    scene.pods[0].started_ms = scene.input.now_ms;
    end(&scene.pods[0]);
    scene_expect("job.worker.backing_off=0 job.worker.pending=0-1");
}

Test(back_off, goes_with_its_slot)
{
    scene.job.elastic.enabled = true;
    scene.job.elastic.min_workers = 1;
    end(&scene.pods[1]);
    scene.job.document.workers = 1;
    expect_plan("worker.backing_off=none worker.backoff_until_ms=0 backoff_until_ms=unset");
}

/* Or a definition of the resource that knows no more has dropped the rest. */
Test(back_off, that_an_older_operator_wrote_holds_for_all_lost_pods)
{
    end(&scene.pods[1]);
    int64_t until_ms = scene.job.status.backoff_until_ms;
    scene.job.status.replicas[ROLE_WORKER].backing_off = NULL;
    scene.job.status.replicas[ROLE_WORKER].backoff_until_ms = 0;
    cr_assert_not(creates(ROLE_WORKER));
    cr_assert_eq(scene.plan.status.backoff_until_ms, until_ms);
    cr_assert_leq(scene.plan.requeue_ms, until_ms);
    scene.input.now_ms = until_ms;
    cr_assert(creates(ROLE_WORKER));
}

/* An older operator told of one time for all. */
static void forget_names(void)
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        scene.job.status.replicas[role].backing_off = NULL;
        scene.job.status.replicas[role].backoff_until_ms = 0;
    }
}

Test(back_off, that_an_older_operator_wrote_outlasts_the_next_event)
{
    end(&scene.pods[1]);
    int64_t until_ms = scene.job.status.backoff_until_ms;
    forget_names();
    evaluator->started_ms = scene.input.now_ms - 600000;
    end(evaluator);
    const struct job_status *status = &scene.job.status;
    scene_expect("job.worker.backing_off=1 job.evaluator.backing_off=none (it worked for ten minutes)");
    cr_assert_eq(until(ROLE_WORKER), until_ms);
    cr_assert_eq(status->backoff_until_ms, until_ms);
    cr_assert_not(creates(ROLE_WORKER));
    scene.input.now_ms = until_ms;
    cr_assert(creates(ROLE_WORKER));
}

Test(back_off, that_an_older_operator_wrote_is_neither_ended_nor_prolonged_by_a_longer_one)
{
    end(&scene.pods[1]);
    int64_t until_ms = scene.job.status.backoff_until_ms;
    forget_names();
    scene.input.now_ms += 2000;
    end(evaluator);
    cr_assert_eq(until(ROLE_WORKER), until_ms);
    cr_assert_gt(until(ROLE_EVALUATOR), until_ms);
    scene.input.now_ms = until_ms;
    cr_assert(creates(ROLE_WORKER));
    cr_assert_not(creates(ROLE_EVALUATOR));
}
