/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that nothing happens to, looked at when their own plans ask for it and at no
 * other time: what is due is done within a second, by a clock that is the test's.
 */
#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/terminal.h"

#define LOOKS_MAX 50
#define SECOND_MS 1000
/* A time between two seconds; the API keeps only whole seconds. */
#define ODD_MS 730

SCENE_SUITE(wake_up)
{
    scene_init(&scene, 2);
    scene.input.now_ms += ODD_MS;
}

static int64_t whole(int64_t ms)
{
    return ms == FIELD_UNSET ? ms : ms / SECOND_MS * SECOND_MS;
}

static void store(void)
{
    scene_accept(&scene);
    struct job_status *status = &scene.job.status;
    int64_t *const times[] = {&status->start_ms, &status->completion_ms, &status->backoff_until_ms};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        *times[i] = whole(*times[i]);
    for (int type = 0; type < CONDITION_TYPE_COUNT; type++)
        status->conditions[type].last_transition_ms = whole(status->conditions[type].last_transition_ms);
}

/* The plan's writes and their echo take no time; then it sleeps for as long as it has said. */
static void sleep_on(void)
{
    const struct plan *plan = &scene.plan;
    if (plan->write_status)
        store();
    scene.input.memory.counts_since_ms = !plan->counts_wait ? FIELD_UNSET
                                         : scene.input.memory.counts_since_ms == FIELD_UNSET
                                             ? scene.input.now_ms
                                             : scene.input.memory.counts_since_ms;
    if (plan->write_status)
        return;
    cr_assert_neq(plan->requeue_ms, PLAN_NEVER, "nobody ever looks again");
    cr_assert_gt(plan->requeue_ms, scene.input.now_ms, "it looks again and again");
    scene.input.now_ms = plan->requeue_ms;
}

static void look_until(bool (*is_done)(void))
{
    scene_plan(&scene);
    for (int look = 0; look < LOOKS_MAX && !is_done(); look++) {
        sleep_on();
        scene_plan(&scene);
    }
}

static void check_done_at(bool (*is_done)(void), int64_t due_ms)
{
    look_until(is_done);
    cr_assert(is_done(), "not after %d looks", LOOKS_MAX);
    int64_t late_ms = scene.input.now_ms - due_ms;
    cr_assert(late_ms > -SECOND_MS && late_ms < SECOND_MS, "%ld ms late", (long)late_ms);
}

static bool is_failed(void)
{
    return condition_is(&scene.plan.status, CONDITION_FAILED, CONDITION_TRUE);
}
static bool deletes_job(void)
{
    return scene_count(&scene, ACTION_DELETE_JOB) > 0;
}
static bool creates_pod(void)
{
    return scene_count(&scene, ACTION_CREATE_POD) > 0;
}
static bool forces_pod(void)
{
    return scene_count(&scene, ACTION_FORCE_DELETE_POD) > 0;
}
static bool tells_counts(void)
{
    return scene.plan.write_status;
}

Test(wake_up, a_deadline_is_kept)
{
    int64_t start_ms = scene.input.now_ms;
    scene_run(&scene);
    scene.job.run_policy.active_deadline_seconds = 100;
    check_done_at(is_failed, start_ms + 100 * SECOND_MS);
}

Test(wake_up, a_deadline_is_kept_on_a_clock_that_was_set)
{
    int64_t start_ms = scene.input.now_ms;
    scene_run(&scene);
    scene.job.run_policy.active_deadline_seconds = 100;
    scene.input.now_ms += 40 * SECOND_MS - 3600 * SECOND_MS;
    scene.input.moved_ms[STATUS_TIME_START] = -3600 * SECOND_MS;
    check_done_at(is_failed, start_ms - 3600 * SECOND_MS + 100 * SECOND_MS);
}

Test(wake_up, a_finished_job_goes_in_time)
{
    scene.job.run_policy.ttl_seconds_after_finished = 60;
    scene_succeed(&scene);
    int64_t end_ms = scene.job.status.completion_ms;
    store();
    check_done_at(deletes_job, end_ms + 60 * SECOND_MS);
}

Test(wake_up, a_crew_that_fails_again_comes_back_when_its_delay_is_over)
{
    scene_run(&scene);
    scene.job.status.restart_count = 5;
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene_plan(&scene);
    int64_t until_ms = scene.plan.status.backoff_until_ms;
    cr_assert_gt(until_ms, scene.input.now_ms + 10 * SECOND_MS);
    store();
    scene.pods[1].current = false;
    check_done_at(creates_pod, until_ms);
}

Test(wake_up, an_image_that_cannot_be_had_is_given_up_in_time)
{
    scene_run(&scene);
    scene.pods[1].ready = false;
    scene.pods[1].phase = POD_PENDING;
    scene.pods[1].waiting_reason = "ImagePullBackOff";
    scene.pods[1].waiting_ms = scene.input.now_ms - SECOND_MS;
    check_done_at(is_failed, scene.pods[1].waiting_ms + scene.options.start_failure_ms);
}

Test(wake_up, a_pod_of_a_dead_node_is_removed_in_time)
{
    scene_run(&scene);
    scene.pods[1].deletion_ms = scene.input.now_ms;
    scene.pods[1].grace_ms = 30 * SECOND_MS;
    int64_t due_ms = scene.input.now_ms + 30 * SECOND_MS + scene.options.dead_node_ms;
    scene_plan(&scene);
    store();
    scene.pods[1].current = false;
    scene_add_pod(&scene, ROLE_WORKER, 1, 2);
    check_done_at(forces_pod, due_ms);
}

Test(wake_up, a_refused_create_is_tried_again_in_time)
{
    scene_plan(&scene);
    store();
    int64_t retry_ms = scene.input.now_ms + 8 * SECOND_MS;
    scene.input.memory.obstacle = (struct obstacle){OBSTACLE_OUTAGE, "no answer", retry_ms, NULL};
    check_done_at(creates_pod, retry_ms);
}

Test(wake_up, changed_numbers_are_told_within_their_time)
{
    scene_run(&scene);
    for (int type = 0; type < CONDITION_TYPE_COUNT; type++)
        scene.job.status.conditions[type].last_transition_ms -= 600 * SECOND_MS;
    scene.input.now_ms += SECOND_MS;
    scene.job.status.replicas[ROLE_WORKER].failed = 3; /* as an operator before it may have written */
    check_done_at(tells_counts, scene.input.now_ms + scene.options.count_write_max_ms);
}
