/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <string.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(judge)
{
    scene_init_running(&scene, 3);
    scene.input.now_ms += 60000;
}

Test(judge, pods_that_end_together_are_one_event)
{
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene_end_pod(&scene, &scene.pods[2], 139);
    scene.pods[2].finished_ms += 1000;
    expect_plan("failures=1 restart_count=1 incarnation=2 attempt=1 worker.pending=1-2");
    const struct job_status *status = &scene.plan.status;
    cr_assert(strstr(status->conditions[CONDITION_RESTARTING].message, "digits-worker-1-1"));
    cr_assert_eq(scene_count(&scene, ACTION_CREATE_POD), 0, "nothing is created before the status is durable");
}

/* The pod of worker 1 was killed for lack of memory: what the condition Restarting says. */
static const char *without_memory(const char *limit)
{
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene.pods[1].end_reason = "OOMKilled";
    scene.pods[1].memory_limit = limit;
    scene_turn(&scene);
    return scene.plan.status.conditions[CONDITION_RESTARTING].message;
}

Test(judge, a_lack_of_memory_is_told_with_its_remedy)
{
    cr_expect_str_eq(without_memory("2Gi"),
                     "worker 1: pod digits-worker-1-1 ran out of memory (limit 2Gi); suspend the job, raise "
                     "resources.limits.memory in workers.template, and resume it");
}

Test(judge, without_a_limit_the_request_can_be_raised)
{
    cr_expect_str_eq(without_memory(""),
                     "worker 1: pod digits-worker-1-1 ran out of memory (limit of its node); suspend the job, set "
                     "resources.requests.memory in workers.template, and resume it");
}

Test(judge, a_job_that_fails_has_no_remedy)
{
    scene.job.run_policy.backoff_limit = 0;
    without_memory("2Gi");
    cr_expect_str_eq(scene.plan.status.conditions[CONDITION_FAILED].message,
                     "worker 1: pod digits-worker-1-1 ran out of memory (limit 2Gi); backoffLimit 0 exceeded");
}

Test(judge, the_earliest_cause_is_to_blame)
{
    scene_end_pod(&scene, &scene.pods[0], 70);
    scene.pods[0].finished_ms += 5000;
    scene_end_pod(&scene, &scene.pods[2], 137);
    scene.pods[2].disruption_target = true;
    expect_plan("disruptions=1 state=Restarting");
}

Test(judge, collateral_needs_no_cause_but_is_none)
{
    scene_end_pod(&scene, &scene.pods[0], 160);
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene.pods[1].finished_ms += 3000;
    expect_plan("failures=1 (the kill is the cause although it was noted later)");
    scene.pods[1].phase = POD_RUNNING;
    scene.pods[1].exit_code = EXIT_CODE_NONE;
    scene_plan(&scene);
    const struct job_status *status = &scene.plan.status;
    cr_assert_eq(status->restarts.failures + status->restarts.disruptions + status->restarts.out_of_memory, 0);
    cr_assert_eq(status->incarnation, 2, "it is replaced all the same");
}

Test(judge, permanent_ends_the_job)
{
    scene_end_pod(&scene, &scene.pods[1], 72);
    scene.pods[1].termination_message = "step 40: 3 GiB are missing";
    expect_plan("Failed:True=PermanentFailure");
    cr_assert(strstr(scene.plan.status.conditions[CONDITION_FAILED].message, "step 40: 3 GiB are missing"));
    cr_assert_eq(scene.plan.status.completion_ms, scene.input.now_ms);
    cr_assert_eq(scene.plan.status.incarnation, 1);
}

/* A program of another framework may mean anything by that code. */
Test(judge, a_loss_that_is_not_finite_has_a_reason_of_its_own)
{
    scene_end_pod(&scene, &scene.pods[1], 71);
    scene.pods[1].termination_message = "step 40: the loss is nan";
    expect_plan("Failed:True=Diverged");
    cr_assert(strstr(scene.plan.status.conditions[CONDITION_FAILED].message, "step 40: the loss is nan"));
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.conditions[CONDITION_FAILED].status, CONDITION_ABSENT);
}

/* In a job that has worked, the Secret may be about to be replaced. */
Test(judge, refused_credentials_end_a_job_that_has_never_run)
{
    scene_end_pod(&scene, &scene.pods[1], 77);
    scene.pods[1].init_container = "coxswain-fetch-0";
    scene.pods[1].termination_message = "GET http://minio:9000/runs: the secret key is wrong";
    expect_plan("failures=1 worker.pending=1");
    scene.job.status.conditions[CONDITION_RUNNING].status = CONDITION_FALSE;
    scene.job.status.progress.step = FIELD_UNSET;
    expect_plan("failures=0 Failed:True=PermanentFailure");
    cr_assert(strstr(scene.plan.status.conditions[CONDITION_FAILED].message, "/runs: the secret key is wrong"));
}

Test(judge, a_pod_that_vanished_was_disrupted)
{
    scene.list[1] = scene.list[2];
    scene.input.pod_count = 2;
    expect_plan("disruptions=1 worker.pending=1");
}

/* By a drain, or by the collection of garbage: its work is done all the same. */
Test(judge, a_finished_pod_that_is_removed_later_was_not_lost)
{
    scene.job.run_policy.restart_scope = RESTART_SCOPE_JOB;
    scene_end_pod(&scene, &scene.pods[2], 0);
    scene.input.now_ms += 60000;
    expect_turn("worker.completed=2");
    scene.input.pod_count = 2;
    for (int turn = 0; turn < 2; turn++) { /* an operator that starts in between knows only the status */
        scene_plan(&scene);
        scene_expect(
            "restart_count=0 attempt=1 Running:True=CrewComplete Scheduled:True=AllScheduled worker.completed=2");
        scene_accept(&scene);
    }
}

Test(judge, a_finished_pod_that_is_removed_before_the_status_says_so_was_not_lost)
{
    struct finished_pod finished = {.role = ROLE_WORKER, .index = 2, .attempt = 1};
    scene.input.memory.finished = &finished;
    scene.input.memory.finished_count = 1;
    scene.input.pod_count = 2;
    expect_plan("restart_count=0 worker.completed=2");
    finished.attempt = 0;
    expect_plan("disruptions=1 (of an earlier crew)");
}

Test(judge, a_pod_that_exits_0_because_it_is_asked_to_end_has_not_finished)
{
    scene_end_pod(&scene, &scene.pods[2], 0);
    scene.pods[2].deletion_ms = scene.pods[2].finished_ms - 2000;
    expect_plan("worker.completed=none");
    scene.pods[2].deletion_ms = FIELD_UNSET;
    scene.pods[2].disruption_target = true;
    expect_plan("worker.completed=none");
}

Test(judge, a_crew_that_starts_over_has_finished_nothing)
{
    scene.job.run_policy.restart_scope = RESTART_SCOPE_JOB;
    scene_end_pod(&scene, &scene.pods[2], 0);
    scene.job.status.replicas[ROLE_WORKER].completed = "2";
    scene_end_pod(&scene, &scene.pods[1], 137);
    expect_plan("attempt=2 worker.completed=none worker.pending=0-2");
}

Test(judge, what_is_judged_is_not_judged_again)
{
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene_turn(&scene);
    for (int turn = 0; turn < 3; turn++)
        expect_plan("restart_count=1 incarnation=2");
}

Test(judge, job_scope_starts_the_whole_crew_over)
{
    scene.job.run_policy.restart_scope = RESTART_SCOPE_JOB;
    scene_end_pod(&scene, &scene.pods[1], 137);
    expect_turn("attempt=2 incarnation=2 worker.pending=0-2");
    expect_plan("delete_pod=2 (the living ones of the old attempt) create_pod=0 (not before the old attempt is gone)");
}

/* Waiting for the predecessor of each name is not enough: a survivor of the old crew could join the new one, or save its state. */
Test(judge, a_crew_that_starts_over_waits_for_the_last_of_the_one_before)
{
    for (int framework = FRAMEWORK_COXSWAIN; framework <= FRAMEWORK_JAX; framework++) {
        scene_release(&scene);
        scene_init_running(&scene, 3);
        scene.job.framework = (enum framework)framework;
        scene.job.run_policy.restart_scope = RESTART_SCOPE_JOB;
        scene_end_pod(&scene, &scene.pods[1], 137);
        scene_turn(&scene);
        scene.pods[2].deletion_ms = scene.input.now_ms;
        scene.list[0] = &scene.pods[2];
        scene.input.pod_count = 1;
        scene_plan(&scene);
        cr_assert_eq(scene_count(&scene, ACTION_CREATE_POD), 0, "framework %d", framework);
        scene.input.pod_count = 0;
        scene_plan(&scene);
        cr_assert_eq(scene_count(&scene, ACTION_CREATE_POD), 3, "framework %d", framework);
    }
}

Test(judge, an_evaluator_never_restarts_the_crew)
{
    scene.job.run_policy.restart_scope = RESTART_SCOPE_JOB;
    scene.job.roles[ROLE_EVALUATOR].count = 1;
    scene_end_pod(&scene, scene_add_pod(&scene, ROLE_EVALUATOR, 0, 1), 137);
    expect_plan("attempt=1 evaluator.pending=0 worker.pending=none");
}

/* A cause that stays unknown must not restart a crew forever. */
Test(judge, collateral_without_a_cause_is_let_off_once)
{
    for (int64_t incarnation = 1; incarnation <= 2; incarnation++) {
        scene_end_pod(&scene, &scene.pods[scene.pod_count - 1], 163);
        scene_plan(&scene);
        cr_assert_eq(scene.plan.status.restart_count, incarnation);
        cr_assert_eq(scene.plan.status.restarts.failures, incarnation - 1);
        scene_accept(&scene);
        scene.list[2] = scene_add_pod(&scene, ROLE_WORKER, 2, incarnation + 1);
        scene.input.pod_count = 3;
        scene_turn(&scene);
    }
}

Test(judge, collateral_while_another_pod_is_not_ready_is_explained)
{
    scene.job.status.restart_count = 1;
    scene.job.status.conditions[CONDITION_RUNNING].last_transition_ms = scene.input.now_ms;
    scene.pods[0].ready = false;
    scene_end_pod(&scene, &scene.pods[2], 160);
    expect_plan("failures=0");
}

Test(judge, collateral_is_not_explained_by_one_that_has_finished)
{
    scene.job.status.restart_count = 1;
    scene.job.status.conditions[CONDITION_RUNNING].last_transition_ms = scene.input.now_ms;
    scene_end_pod(&scene, &scene.pods[1], 0);
    scene_end_pod(&scene, &scene.pods[2], 160);
    expect_plan("failures=1");
}

Test(judge, collateral_after_a_good_run_is_let_off)
{
    scene.job.status.restart_count = 1;
    scene.input.now_ms += 120000;
    scene_end_pod(&scene, &scene.pods[2], 160);
    expect_plan("failures=0");
}

/* A node falls silent: its pods are first seen not ready, and must go some minutes later. */
static void fall_silent_after(int64_t ms)
{
    scene.job.status.restart_count = 5;
    scene.input.now_ms += ms;
    scene.pods[2].ready = false;
    expect_turn("Running:False=CrewIncomplete");
    scene.input.now_ms += 300000;
}

Test(judge, a_pod_that_worked_before_its_node_fell_silent_is_replaced_at_once)
{
    fall_silent_after(86400000);
    scene.pods[2].deletion_ms = scene.input.now_ms;
    scene.pods[2].disruption_target = true;
    expect_plan("disruptions=1 backoff_until_ms=unset");
}

Test(judge, collateral_of_a_pod_that_worked_before_is_let_off)
{
    fall_silent_after(86400000);
    scene.pods[2].ready = true;
    scene_end_pod(&scene, &scene.pods[1], 160);
    expect_plan("restart_count=6 failures=0");
}

Test(judge, silence_is_no_work)
{
    scene.job.status.conditions[CONDITION_RESTARTING] =
        (struct condition){.status = CONDITION_FALSE,
                           .last_transition_ms = scene.input.now_ms,
                           .reason = "CrewComplete",
                           .message = ""}; /* restarted until a moment ago */
    fall_silent_after(1000);
    scene.pods[2].deletion_ms = scene.input.now_ms;
    scene.pods[2].disruption_target = true;
    scene_plan(&scene);
    cr_assert_geq(scene.plan.status.backoff_until_ms, scene.input.now_ms + 16000);
}

/* After a suspension the crew has not run yet. */
Test(judge, a_new_crew_that_never_was_whole_backs_off)
{
    scene.input.now_ms += 3600000;
    scene.job.status.restart_count = 5;
    scene.job.status.conditions[CONDITION_RUNNING].status = CONDITION_FALSE;
    scene.job.status.conditions[CONDITION_RUNNING].last_transition_ms = scene.input.now_ms - 600000;
    for (size_t i = 0; i < 3; i++)
        scene.pods[i].started_ms = scene.input.now_ms - 300000;
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene_plan(&scene);
    cr_assert_geq(scene.plan.status.backoff_until_ms, scene.input.now_ms + 16000);
}

/* An elastic crew of which one worker comes and ends again and again, while the others work. */
static void let_one_be_dispensable(void)
{
    scene.job.elastic.enabled = true;
    scene.job.elastic.min_workers = 2;
    scene.input.now_ms += 3600000;
}

static struct pod_view *successor(void)
{
    scene_turn(&scene);
    scene.list[2] = scene_add_pod(&scene, ROLE_WORKER, 2, scene.job.status.incarnation);
    scene.input.pod_count = 3;
    return &scene.pods[scene.pod_count - 1];
}

Test(judge, whom_the_crew_can_do_without_backs_off_while_it_runs)
{
    let_one_be_dispensable();
    scene.job.status.restart_count = 5;
    scene.pods[2].started_ms = scene.input.now_ms - 2000;
    scene_end_pod(&scene, &scene.pods[2], 137);
    expect_plan("Running:True=CrewSufficient");
    cr_assert_geq(scene.plan.status.backoff_until_ms, scene.input.now_ms + 16000 - 10000);
    scene.pods[2].started_ms = scene.input.now_ms - 60000;
    expect_plan("backoff_until_ms=unset (it has worked for a minute)");
    scene.pods[2].started_ms = FIELD_UNSET;
    scene.pods[2].exit_code = EXIT_CODE_NONE;
    scene_plan(&scene);
    cr_assert_geq(scene.plan.status.backoff_until_ms, scene.input.now_ms + 16000, "its node has refused it");
}

Test(judge, an_evaluator_backs_off_by_its_own_time)
{
    scene.job.roles[ROLE_EVALUATOR].count = 1;
    scene.job.status.restart_count = 5;
    scene.input.now_ms += 3600000;
    struct pod_view *evaluator = scene_add_pod(&scene, ROLE_EVALUATOR, 0, 1);
    scene.input.now_ms += 2000;
    scene_end_pod(&scene, evaluator, 139);
    scene_plan(&scene);
    cr_assert_geq(scene.plan.status.backoff_until_ms, scene.input.now_ms + 16000 - 10000);
    evaluator->started_ms -= 600000;
    scene.job.status.conditions[CONDITION_RUNNING].status = CONDITION_FALSE;
    expect_plan("backoff_until_ms=unset (whatever the crew does)");
}

Test(judge, one_that_vanishes_again_and_again_backs_off_while_the_crew_runs)
{
    let_one_be_dispensable();
    scene.input.pod_count = 2;
    expect_turn("disruptions=1");
    scene.job.status.restart_count = 5;
    successor();
    expect_turn("Restarting:False=CrewComplete");
    scene.input.now_ms += 1000;
    scene.input.pod_count = 2;
    expect_plan("disruptions=2");
    cr_assert_geq(scene.plan.status.backoff_until_ms, scene.input.now_ms + 16000);
    scene.input.now_ms += 60000;
    expect_plan("backoff_until_ms=unset (it was there for a minute)");
}

Test(judge, a_worker_that_loses_a_running_crew_spends_backoff_limit)
{
    let_one_be_dispensable();
    struct pod_view *newcomer = &scene.pods[2];
    newcomer->started_ms = scene.input.now_ms - 1000;
    for (int64_t turn = 1; turn <= 7; turn++) {
        scene_end_pod(&scene, newcomer, 160);
        newcomer = successor();
        cr_assert_eq(scene.job.status.restart_count, turn);
        cr_assert_eq(scene.job.status.restarts.failures, turn - 1, "the first may follow from another's end");
        scene_turn(&scene);
        scene.input.now_ms += 1000;
    }
    scene_end_pod(&scene, newcomer, 160);
    expect_plan("Failed:True=BackoffLimitExceeded");
}

/* Two of another version than the rest, which does not take them in; their ends are seen one by one. */
Test(judge, two_workers_that_lost_the_crew_do_not_excuse_each_other)
{
    struct pod_view *newcomers[] = {&scene.pods[1], &scene.pods[2]};
    for (size_t turn = 0; turn < 60; turn++) {
        size_t which = turn % 2;
        scene.input.now_ms += 120000;
        newcomers[which]->started_ms = scene.input.now_ms - 1000;
        newcomers[1 - which]->ready = false;
        scene_end_pod(&scene, newcomers[which], 160);
        scene_plan(&scene);
        if (*scene_reason(&scene, CONDITION_FAILED, CONDITION_TRUE))
            break;
        scene_accept(&scene);
        newcomers[which]->current = false;
        newcomers[which] = scene_add_pod(&scene, ROLE_WORKER, (int64_t)which + 1, scene.job.status.incarnation);
        newcomers[which]->ready = false;
        scene_turn(&scene);
    }
    cr_assert_str_eq(scene_reason(&scene, CONDITION_FAILED, CONDITION_TRUE), "BackoffLimitExceeded");
}

/* Neither the unscheduled pod nor the worker that waits for it is to blame, however long that takes. */
Test(judge, a_worker_that_waits_for_an_unscheduled_one_spends_nothing)
{
    struct pod_view *worker = &scene.pods[2];
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene.pods[1].disruption_target = true;
    scene_turn(&scene);
    scene.pods[1].current = false;
    struct pod_view *missing = scene_add_pod(&scene, ROLE_WORKER, 1, scene.job.status.incarnation);
    missing->ready = missing->scheduled = false;
    missing->phase = POD_PENDING;
    missing->started_ms = FIELD_UNSET;
    for (int64_t turn = 0; turn < 20; turn++) {
        scene.input.now_ms += 600000;
        scene_end_pod(&scene, worker, 160);
        scene_turn(&scene);
        worker->current = false;
        worker = scene_add_pod(&scene, ROLE_WORKER, 2, scene.job.status.incarnation);
        scene_turn(&scene);
    }
    scene_expect("job.restart_count=21 job.failures=0");
}

/* torchrun: worker 2 was killed and replaced; the agents that were there give up 60 s later, one after the other. */
static void lose_an_agent(void)
{
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene.job.elastic.enabled = true;
    scene.job.elastic.min_workers = 2;
    scene.job.elastic.max_workers = 3;
    scene_end_pod(&scene, &scene.pods[2], 137);
    expect_turn("job.failures=1");
    scene.pods[2] = *scene_add_pod(&scene, ROLE_WORKER, 2, 2);
    scene.pod_count = scene.input.pod_count = 3;
    scene.pods[2].created_ms = scene.input.now_ms;
    scene_turn(&scene);
}

static void fail_after(size_t worker, int64_t ms)
{
    scene.input.now_ms += ms;
    scene_end_pod(&scene, &scene.pods[worker], 1);
    scene_plan(&scene);
}

Test(judge, agents_that_give_up_after_a_loss_cost_no_more)
{
    lose_an_agent();
    fail_after(1, 60000);
    cr_assert_eq(scene.plan.status.restarts.failures, 1, "%" PRId64, scene.plan.status.restarts.failures);
    cr_assert_eq(scene.plan.status.restart_count, 2);
    scene.pods[1].exit_code = EXIT_CODE_NONE;
    scene.pods[1].phase = POD_RUNNING;
    fail_after(0, 1000);
    scene_expect("failures=1 attempt=2 (without worker 0 the whole crew starts over)");
}

Test(judge, a_failure_long_after_a_loss_is_one)
{
    lose_an_agent();
    fail_after(0, 120000);
    cr_assert_eq(scene.plan.status.restarts.failures, 2);
}

Test(judge, the_failure_of_a_successor_is_one)
{
    lose_an_agent();
    fail_after(2, 30000);
    cr_assert_eq(scene.plan.status.restarts.failures, 2);
}

Test(judge, a_signal_does_not_follow_from_a_loss)
{
    lose_an_agent();
    scene.input.now_ms += 30000;
    scene_end_pod(&scene, &scene.pods[1], 139);
    expect_plan("failures=2");
}
