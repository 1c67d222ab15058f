/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/node_avoidance.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/contract/exit_code.h"
#include "operator/controller/plan/node_blame.h"
#include "tests/unit/operator/controller/plan/scene.h"

#define HOUR_MS 3600000

SCENE_SUITE(node_avoidance)
{
    scene_init(&scene, 2);
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene.job.run_policy.backoff_limit = 100;
    scene.job.run_policy.node_avoidance = (struct node_avoidance_spec){FIELD_UNSET, FIELD_UNSET, FIELD_UNSET};
    scene_run(&scene);
}

/* ---------------------------------------------------------------- who is to blame */

Test(node_avoidance, what_blames_a_node)
{
    static const struct {
        const char *node, *disruption, *reason, *message;
        int exit_code;
        enum framework framework;
        const char *expected; /* NULL: nothing */
    } rows[] = {
        {"n", "DeletionByTaintManager", "", "", EXIT_CODE_NONE, FRAMEWORK_JAX, "the node was lost"},
        {"", "DeletionByTaintManager", "", "", EXIT_CODE_NONE, FRAMEWORK_JAX, NULL},
        {"n", "DeletionByTaintManager", "", "", 1, FRAMEWORK_JAX, "the node was lost"},
        {"n", "", "NodeLost", "", EXIT_CODE_NONE, FRAMEWORK_JAX, "the node was lost"},
        {"n", "PreemptionByScheduler", "", "", EXIT_CODE_NONE, FRAMEWORK_JAX, NULL},
        {"n", "EvictionByEvictionAPI", "", "uncorrectable ECC error", 1, FRAMEWORK_JAX, NULL},
        {"n", "DeletionByPodGC", "", "", EXIT_CODE_NONE, FRAMEWORK_JAX, NULL},
        {"n", "TerminationByKubelet", "Evicted", "", EXIT_CODE_NONE, FRAMEWORK_JAX, NULL},
        {"n", "", "Evicted", "", EXIT_CODE_NONE, FRAMEWORK_JAX, NULL},
        {"n", "", "UnexpectedAdmissionError", "", EXIT_CODE_NONE, FRAMEWORK_JAX, "the kubelet refused the pod"},
        {"n", "", "OutOfnvidia.com/gpu", "", EXIT_CODE_NONE, FRAMEWORK_JAX, "the kubelet refused the pod"},
        {"n", "", "OutOfcpu", "", EXIT_CODE_NONE, FRAMEWORK_JAX, "the kubelet refused the pod"},
        {"n", "", "NodeAffinity", "", EXIT_CODE_NONE, FRAMEWORK_JAX, NULL},
        {"n", "", "", "Traceback: ValueError", 1, FRAMEWORK_JAX, NULL},
        {"n", "", "", "", 139, FRAMEWORK_JAX, NULL},
        {"n", "", "", "RuntimeError: CUDA error: uncorrectable ECC error encountered", 1, FRAMEWORK_PYTORCH,
         "uncorrectable ECC error of a GPU"},
        {"n", "", "", "RuntimeError: CUDA error: uncorrectable ECC error encountered", 0, FRAMEWORK_PYTORCH, NULL},
        {"n", "", "", "ncclSystemError: System call (e.g. socket, malloc) failed", 1, FRAMEWORK_PYTORCH,
         "NCCL reports a system error"},
        {"n", "", "", "ncclRemoteError: A call failed possibly due to a network error", 1, FRAMEWORK_PYTORCH, NULL},
        {"n", "", "", "Failed to initialize NVML: Driver/library version mismatch", 1, FRAMEWORK_PYTORCH,
         "the GPU driver and its library differ in version"},
        {"n", "", "", "", 162, FRAMEWORK_COXSWAIN, "a device failed"},
        {"n", "", "", "", 162, FRAMEWORK_PYTORCH, NULL},
        {"n", "", "", "", 161, FRAMEWORK_COXSWAIN, "the worker failed its pre-flight check"},
        {"n", "", "", "", 161, FRAMEWORK_PYTORCH, NULL},
        {"n", "", "", "", 65, FRAMEWORK_COXSWAIN, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pod_view pod = scene.pods[0];
        pod.node = rows[i].node;
        pod.phase = POD_FAILED;
        pod.disrupted_by = rows[i].disruption;
        pod.disruption_target = *rows[i].disruption;
        pod.reason = rows[i].reason;
        pod.termination_message = rows[i].message;
        pod.exit_code = rows[i].exit_code;
        const char *reason = node_blame_of(&pod, rows[i].framework).reason;
        cr_expect_str_eq(reason ? reason : "nothing", rows[i].expected ? rows[i].expected : "nothing", "row %zu", i);
    }
}

/* ---------------------------------------------------------------- counting */

/* The newest pod of worker 1, a second later: its GPU fails on the node. The crew starts over, and all its pods run again. */
static void fail_on(const char *node)
{
    scene.input.now_ms += 1000;
    struct pod_view *pod = &scene.pods[scene.pod_count - 1];
    pod->node = node;
    pod->termination_message = "CUDA error: uncorrectable ECC error encountered";
    scene_end_pod(&scene, pod, 1);
    scene_turn(&scene);
}

static void run_again(void)
{
    scene.pod_count = scene.input.pod_count = 0;
    for (int64_t i = 0; i < 2; i++)
        scene_add_pod(&scene, ROLE_WORKER, i, scene.job.status.incarnation)->created_ms = scene.input.now_ms;
    scene_turn(&scene);
}

static size_t avoided(void)
{
    scene_plan(&scene);
    return scene.plan.avoided_node_count;
}

static void fail_times(unsigned times, const char *node)
{
    for (unsigned i = 0; i < times; i++) {
        fail_on(node);
        run_again();
    }
}

Test(node_avoidance, a_node_that_fails_three_times_within_an_hour_is_avoided_for_an_hour)
{
    fail_times(2, "gpu-7");
    cr_assert_eq(avoided(), 0);
    scene_expect("AvoidingNodes:absent= AvoidingNodes:True=");
    fail_on("gpu-7");
    cr_assert_eq(scene.plan.avoided_node_count, 1);
    cr_assert_str_eq(scene.plan.avoided_nodes[0], "gpu-7");
    scene_expect("AvoidingNodes:True=NodeFailures write_status=1 events=3");
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_AVOIDING_NODES].message,
                     "new pods avoid node gpu-7 until 2023-11-14T23:13:23Z: 3 failures within 3600 s, the last: "
                     "uncorrectable ECC error of a GPU (pod digits-worker-1-3)");
    cr_assert_str_eq(scene.plan.events[0].reason, "NodeAvoided");
    cr_assert_null(scene.plan.events[0].node);
    cr_assert_str_eq(scene.plan.events[1].reason, "AvoidedByTrainingJob");
    cr_assert_str_eq(scene.plan.events[1].node, "gpu-7");
    run_again();
    scene.input.now_ms += HOUR_MS - 1;
    cr_assert_eq(avoided(), 1);
    cr_assert_eq(scene.plan.requeue_ms, scene.input.now_ms + 1);
    scene.input.now_ms++;
    cr_assert_eq(avoided(), 0);
    scene_expect("AvoidingNodes:False=NoNodeAvoided write_status=1");
}

Test(node_avoidance, one_failed_pre_flight_check_suffices)
{
    scene.job.framework = FRAMEWORK_COXSWAIN;
    scene.input.now_ms += 1000;
    struct pod_view *pod = &scene.pods[scene.pod_count - 1];
    pod->node = "gpu-7";
    scene_end_pod(&scene, pod, EXIT_CODE_UNFIT);
    scene_turn(&scene);
    cr_assert_eq(scene.plan.avoided_node_count, 1);
    cr_assert_str_eq(scene.plan.avoided_nodes[0], "gpu-7");
    cr_assert(scene.job.status.node_failures[0].sure, "a restarted operator knows it, too");
    cr_assert(strstr(scene.plan.status.conditions[CONDITION_AVOIDING_NODES].message,
                     "1 failure within 3600 s, the last: the worker failed its pre-flight check (pod digits-worker-1-"),
              "%s", scene.plan.status.conditions[CONDITION_AVOIDING_NODES].message);
    scene.job.run_policy.node_avoidance.failures = 0;
    cr_assert_eq(avoided(), 0, "nodes are never avoided");
}

Test(node_avoidance, failures_that_lie_further_apart_are_not_counted_together)
{
    fail_times(2, "gpu-7");
    scene.input.now_ms += HOUR_MS - 1000;
    fail_times(1, "gpu-7");
    cr_assert_eq(avoided(), 0);
    fail_times(1, "gpu-7");
    cr_assert_eq(avoided(), 0, "the first two are an hour old");
    fail_times(1, "gpu-7");
    cr_assert_eq(avoided(), 1);
}

Test(node_avoidance, failures_count_by_node)
{
    fail_times(2, "gpu-7");
    fail_times(2, "gpu-8");
    cr_assert_eq(avoided(), 0);
    fail_times(1, "gpu-7");
    fail_times(1, "gpu-8");
    cr_assert_eq(avoided(), 2);
}

Test(node_avoidance, another_number_and_none)
{
    scene.job.run_policy.node_avoidance.failures = 1;
    fail_times(1, "gpu-7");
    cr_assert_eq(avoided(), 1);
    scene.job.run_policy.node_avoidance.failures = 0;
    cr_assert_eq(avoided(), 0, "the field may be changed while the job runs");
    fail_times(1, "gpu-8");
    cr_assert_eq(scene.job.status.node_failure_count, 1);
}

Test(node_avoidance, where_kueue_chooses_the_nodes_none_is_avoided)
{
    struct workload_view workload = {.owner_uid = SCENE_UID,
                                     .admitted = true,
                                     .pins_nodes = true,
                                     .queue_name = "research",
                                     .pods_ready_reason = "Started",
                                     .pods_ready = true};
    fail_times(3, "gpu-7");
    cr_assert_eq(avoided(), 1);
    scene.job.queue_name = "research";
    scene.input.queue.state = OPTIONAL_READY;
    scene.input.queue.workload = &workload;
    cr_assert_eq(avoided(), 0);
    workload.pins_nodes = false;
    cr_assert_eq(avoided(), 1);
}

Test(node_avoidance, pods_that_are_lost_with_one_node_count_once)
{
    scene.job.run_policy.node_avoidance.failures = 2;
    for (unsigned i = 0; i < 2; i++) {
        scene.pods[i].node = "gpu-7";
        scene.pods[i].disruption_target = true;
        scene.pods[i].disrupted_by = "DeletionByTaintManager";
        scene.pods[i].deletion_ms = scene.input.now_ms;
    }
    expect_turn("disruptions=1");
    cr_assert_eq(scene.job.status.node_failure_count, 1);
    cr_assert_eq(avoided(), 0);
}

Test(node_avoidance, pods_that_end_together_count_once_whichever_plan_finds_them)
{
    scene.job.framework = FRAMEWORK_COXSWAIN; /* each pod is replaced by itself */
    for (unsigned i = 0; i < 2; i++) {
        scene.input.now_ms += 2000;
        scene.pods[i].node = "gpu-7";
        scene.pods[i].disruption_target = true;
        scene.pods[i].disrupted_by = "DeletionByTaintManager";
        scene.pods[i].deletion_ms = scene.input.now_ms;
        scene_turn(&scene);
    }
    scene_expect("disruptions=2");
    cr_assert_eq(scene.job.status.node_failure_count, 1);
    struct pod_view *late = &scene.pods[1];
    *late = scene.pods[0];
    late->name = "digits-worker-1-9";
    late->index = 1;
    late->incarnation = scene.job.status.incarnation;
    late->created_ms = scene.input.now_ms;
    late->node = "gpu-7";
    scene.input.now_ms += 2000;
    scene_turn(&scene);
    cr_assert_eq(scene.job.status.node_failure_count, 2, "a pod that was created since is new evidence");
}

Test(node_avoidance, a_program_that_loses_its_peer_blames_no_other_node)
{
    scene.job.framework = FRAMEWORK_COXSWAIN;
    scene.input.now_ms += 2000;
    scene.pods[1].node = "gpu-7";
    scene_end_pod(&scene, &scene.pods[1], 162);
    scene_turn(&scene);
    scene.input.now_ms += 2000;
    scene.pods[0].node = "gpu-8";
    scene.pods[0].termination_message = "ncclSystemError";
    scene_end_pod(&scene, &scene.pods[0], 162);
    scene_turn(&scene);
    cr_assert_eq(scene.job.status.node_failure_count, 1);
    cr_assert_str_eq(scene.job.status.node_failures[0].node, "gpu-7");
}

Test(node_avoidance, of_programs_only_the_first_that_ends_is_evidence)
{
    for (unsigned i = 0; i < 2; i++) {
        scene.pods[i].node = i == 0 ? "gpu-7" : "gpu-8";
        scene.pods[i].termination_message = "ncclSystemError";
        scene_end_pod(&scene, &scene.pods[i], 1);
    }
    scene.pods[1].finished_ms--;
    expect_turn("failures=1");
    cr_assert_eq(scene.job.status.node_failure_count, 1);
    cr_assert_str_eq(scene.job.status.node_failures[0].node, "gpu-8");
}

Test(node_avoidance, a_failure_that_a_disruption_explains_blames_no_node)
{
    fail_on("gpu-7");
    cr_assert_eq(scene.job.status.node_failure_count, 1);
    scene.input.now_ms += 5000;
    scene.pods[0].disruption_target = true;
    expect_turn("failures=0 disruptions=1 write_status=1");
    cr_assert_eq(scene.job.status.node_failure_count, 0);
}

Test(node_avoidance, the_list_is_bounded_and_loses_the_oldest)
{
    static char names[40][16];
    for (unsigned i = 0; i < 40; i++) {
        snprintf(names[i], sizeof names[i], "gpu-%u", i);
        fail_times(1, names[i]);
    }
    const struct job_status *status = &scene.job.status;
    cr_assert_eq(status->node_failure_count, NODE_FAILURES_MAX);
    cr_assert_str_eq(status->node_failures[0].node, "gpu-8");
    cr_assert_str_eq(status->node_failures[NODE_FAILURES_MAX - 1].node, "gpu-39");
}

Test(node_avoidance, a_failure_in_the_future_was_noted_by_another_clock)
{
    fail_times(3, "gpu-7");
    scene.input.now_ms -= HOUR_MS;
    cr_assert_eq(avoided(), 0);
}

/* ---------------------------------------------------------------- no node is left */

static struct pod_view *unschedulable(void)
{
    struct pod_view *pod = &scene.pods[1];
    pod->phase = POD_PENDING;
    pod->scheduled = pod->ready = false;
    pod->started_ms = FIELD_UNSET;
    pod->avoided = "gpu-7";
    pod->unschedulable = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector";
    return pod;
}

Test(node_avoidance, pods_that_find_no_other_node_are_created_again_without_the_affinity)
{
    fail_times(3, "gpu-7");
    unschedulable();
    scene.input.now_ms += 299999;
    cr_assert_eq(avoided(), 1);
    cr_assert_eq(scene.plan.requeue_ms, scene.input.now_ms + 1);
    scene.input.now_ms++;
    expect_turn(
        "event=NodeAvoidanceEnded AvoidingNodes:False=NoNodeAvoided worker.pending=1 failures=3 restart_count=3");
    cr_assert_eq(scene.plan.avoided_node_count, 0);
    cr_assert_eq(scene.job.status.node_failure_count, 0);
    expect_plan("(the pod that found no node goes) delete_pod=1");
}

Test(node_avoidance, what_else_keeps_a_pod_from_its_node_does_not_end_it)
{
    fail_times(3, "gpu-7");
    unschedulable()->avoided = ""; /* it was created before its crew avoided a node */
    scene.input.now_ms += 2 * 300000;
    cr_assert_eq(avoided(), 1);
    scene_expect("worker.pending=none");
    unschedulable()->unschedulable = ""; /* the scheduler has not looked at it */
    cr_assert_eq(avoided(), 1);
    unschedulable()->gated = true; /* nor may it yet */
    cr_assert_eq(avoided(), 1);
    scene_expect("worker.pending=none");
}

Test(node_avoidance, a_pod_that_excludes_a_node_for_longer_than_needed_is_created_again)
{
    struct pod_view *pod = unschedulable();
    pod->avoided = "gpu-8,gpu-7";
    pod->created_ms -= 29999;
    expect_plan("worker.pending=none (nodes come and go)");
    cr_assert_eq(scene.plan.requeue_ms, scene.input.now_ms + 1);
    pod->created_ms--;
    expect_plan("worker.pending=1 restart_count=0 events=0");
    scene.input.troubles_unknown = true;
    expect_plan("worker.pending=none (an operator that was just started has not seen the nodes)");
    scene.input.troubles_unknown = false;
    struct node_trouble troubles[] = {{.name = "gpu-7", .removal_taint = "karpenter.sh/disrupted", .conditions = ""},
                                      {.name = "gpu-8", .removal_taint = "", .conditions = "GpuUnhealthy\n"}};
    const struct node_trouble *list[] = {&troubles[0], &troubles[1]};
    scene.input.troubles = list;
    scene.input.trouble_count = 2;
    expect_plan("worker.pending=1 (the condition is not one that the job avoids)");
    scene.job.run_policy.avoided_conditions[0] = "GpuUnhealthy";
    scene.job.run_policy.avoided_condition_count = 1;
    expect_plan("worker.pending=none");
    pod->scheduled = true;
    scene.input.trouble_count = 0;
    expect_plan("worker.pending=none (it has a node)");
}
