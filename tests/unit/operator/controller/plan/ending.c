/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/ending.h"

#include <criterion/criterion.h>
#include <string.h>

#include "operator/controller/execute/job_entry.h"
#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(ending)
{
    scene_init(&scene, 1);
}

#define START_FAILURE_MS 120000

struct end {
    const char *what;
    int exit_code;
    const char *end_reason, *reason;
    bool disruption_target;
    int64_t deletion_ms, finished_ms;
    enum ending_kind own, foreign;
};

#define NEVER FIELD_UNSET
#define T (SCENE_NOW)

static const struct end ends[] = {
    {"done", 0, "", "", false, NEVER, T, ENDING_SUCCESS, ENDING_SUCCESS},
    {"done although told to go", 0, "", "", true, T - 5000, T, ENDING_SUCCESS, ENDING_DISRUPTION},
    {"done although preempted", 0, "", "", true, NEVER, T, ENDING_SUCCESS, ENDING_DISRUPTION},
    {"done before it was told to go", 0, "", "", false, T + 31000, T, ENDING_SUCCESS, ENDING_SUCCESS},
    {"out of memory", 137, "OOMKilled", "", false, NEVER, T, ENDING_OUT_OF_MEMORY, ENDING_OUT_OF_MEMORY},
    {"out of memory while draining", 137, "OOMKilled", "", true, NEVER, T, ENDING_OUT_OF_MEMORY, ENDING_OUT_OF_MEMORY},
    {"preempted", 137, "Error", "", true, NEVER, T, ENDING_DISRUPTION, ENDING_DISRUPTION},
    {"permanent code under preemption", 70, "Error", "", true, NEVER, T, ENDING_DISRUPTION, ENDING_DISRUPTION},
    {"deleted before it finished", 143, "Error", "", false, T - 1000, T, ENDING_DISRUPTION, ENDING_DISRUPTION},
    {"deleted before it finished, by a late clock", 1, "Error", "", false, T, T - 5000, ENDING_DISRUPTION,
     ENDING_DISRUPTION},
    {"deleted after it finished", 65, "Error", "", false, T + 31000, T, ENDING_PERMANENT, ENDING_FAILURE},
    {"node refused it", EXIT_CODE_NONE, "", "OutOfcpu", false, NEVER, NEVER, ENDING_DISRUPTION, ENDING_DISRUPTION},
    {"evicted for its disk", 137, "Error", "Evicted", false, NEVER, T, ENDING_FAILURE, ENDING_FAILURE},
    {"evicted for its disk, and ended well", 0, "", "Evicted", false, NEVER, T, ENDING_SUCCESS, ENDING_FAILURE},
    {"ended well, for a reason that is not known here", 0, "", "Terminated", false, NEVER, T, ENDING_SUCCESS,
     ENDING_DISRUPTION},
    {"its template's time is over", 143, "Error", "DeadlineExceeded", false, NEVER, T, ENDING_FAILURE, ENDING_FAILURE},
    {"evicted by pressure", 137, "Error", "Evicted", true, NEVER, T, ENDING_DISRUPTION, ENDING_DISRUPTION},
    {"command not found", 128, "StartError", "", false, NEVER, T, ENDING_PERMANENT, ENDING_PERMANENT},
    {"asked to restart", 138, "Error", "", false, NEVER, T, ENDING_COLLATERAL, ENDING_COLLATERAL},
    {"lost its crew", 160, "Error", "", false, NEVER, T, ENDING_COLLATERAL, ENDING_COLLATERAL},
    {"superseded", 163, "Error", "", false, NEVER, T, ENDING_COLLATERAL, ENDING_FAILURE},
    {"bad data", 65, "Error", "", false, NEVER, T, ENDING_PERMANENT, ENDING_FAILURE},
    {"unknown low code", 1, "Error", "", false, NEVER, T, ENDING_PERMANENT, ENDING_FAILURE},
    {"unknown code 127", 127, "Error", "", false, NEVER, T, ENDING_PERMANENT, ENDING_FAILURE},
    {"killed", 137, "Error", "", false, NEVER, T, ENDING_FAILURE, ENDING_FAILURE},
    {"left by request", 143, "Error", "", false, NEVER, T, ENDING_DISRUPTION, ENDING_FAILURE},
    {"device failed", 162, "Error", "", false, NEVER, T, ENDING_FAILURE, ENDING_FAILURE},
    {"255", 255, "Error", "", false, NEVER, T, ENDING_FAILURE, ENDING_FAILURE},
};

Test(ending, table_of_blame)
{
    struct pod_view *pod = scene_add_pod(&scene, ROLE_WORKER, 0, 1);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const struct end *end = &ends[i];
        pod->exit_code = end->exit_code;
        pod->phase = end->exit_code == 0 && !*end->reason ? POD_SUCCEEDED : POD_FAILED;
        pod->end_reason = end->end_reason;
        pod->reason = end->reason;
        pod->disruption_target = end->disruption_target;
        pod->deletion_ms = end->deletion_ms;
        pod->finished_ms = end->finished_ms;
        enum ending_kind own = ending_classify(pod, FRAMEWORK_COXSWAIN, START_FAILURE_MS, T).kind;
        enum ending_kind foreign = ending_classify(pod, FRAMEWORK_PYTORCH, START_FAILURE_MS, T).kind;
        cr_expect_eq(own, end->own, "%s: %s", end->what, ending_reason(own));
        cr_expect_eq(foreign, end->foreign, "%s (foreign): %s", end->what, ending_reason(foreign));
    }
    pod->exit_code = 0;
    pod->phase = POD_SUCCEEDED; /* any end reason that the status may have */
    pod->end_reason = "";
    pod->reason = "Completed";
    pod->disruption_target = false;
    pod->deletion_ms = NEVER;
    cr_expect_eq(ending_classify(pod, FRAMEWORK_PYTORCH, START_FAILURE_MS, T).kind, ENDING_SUCCESS);
}

Test(ending, a_runtime_that_cannot_set_up_devices_may_do_better_elsewhere)
{
    struct pod_view *pod = scene_add_pod(&scene, ROLE_WORKER, 0, 1);
    scene_end_pod(&scene, pod, 128);
    pod->end_reason = "StartError";
    pod->termination_message = "failed to create shim task: OCI runtime create failed: nvidia-container-cli: "
                               "initialization error: nvml error: driver not loaded";
    cr_assert_eq(ending_classify(pod, FRAMEWORK_PYTORCH, START_FAILURE_MS, T).kind, ENDING_FAILURE);
    pod->termination_message = "exec: \"pyhton\": executable file not found in $PATH";
    cr_assert_eq(ending_classify(pod, FRAMEWORK_PYTORCH, START_FAILURE_MS, T).kind, ENDING_PERMANENT);
}

Test(ending, deletion_of_a_living_pod_is_a_disruption_at_that_time)
{
    struct pod_view *pod = scene_add_pod(&scene, ROLE_WORKER, 0, 1);
    pod->deletion_ms = T - 7000;
    struct ending ending = ending_classify(pod, FRAMEWORK_COXSWAIN, START_FAILURE_MS, T);
    cr_assert_eq(ending.kind, ENDING_DISRUPTION);
    cr_assert_eq(ending.at_ms, T - 7000);
}

Test(ending, a_registry_hiccup_is_waited_for)
{
    struct pod_view *pod = scene_add_pod(&scene, ROLE_WORKER, 0, 1);
    pod->phase = POD_PENDING;
    pod->waiting_reason = "ImagePullBackOff";
    pod->waiting_message = "no such image";
    pod->waiting_ms = T - 1000;
    int64_t final_ms = pod->waiting_ms + START_FAILURE_MS;
    struct ending ending = ending_classify(pod, FRAMEWORK_COXSWAIN, START_FAILURE_MS, final_ms - 1);
    cr_assert_eq(ending.kind, ENDING_NONE);
    cr_assert_eq(ending.check_ms, final_ms);
    ending = ending_classify(pod, FRAMEWORK_COXSWAIN, START_FAILURE_MS, final_ms);
    cr_assert_eq(ending.kind, ENDING_PERMANENT);
    pod->waiting_reason = "ContainerCreating";
    ending = ending_classify(pod, FRAMEWORK_COXSWAIN, START_FAILURE_MS, final_ms);
    cr_assert_eq(ending.kind, ENDING_NONE);
}

Test(ending, the_first_hiccup_after_a_long_pull_is_one)
{
    struct pod_view *pod = scene_add_pod(&scene, ROLE_WORKER, 0, 1);
    pod->phase = POD_PENDING;
    pod->waiting_reason = "ErrImagePull";
    int64_t now_ms = pod->startable_ms + 3600000;
    struct ending ending = ending_classify(pod, FRAMEWORK_COXSWAIN, START_FAILURE_MS, now_ms);
    cr_assert_eq(ending.kind, ENDING_NONE);
    cr_assert_eq(ending.check_ms, now_ms + START_FAILURE_MS);
}

Test(ending, a_failed_init_container_is_a_failure_of_its_pod)
{
    struct pod_view *pod = scene_add_pod(&scene, ROLE_WORKER, 0, 1);
    scene_end_pod(&scene, pod, 65);
    pod->init_container = "fetch";
    pod->termination_message = "no route to host";
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    for (int framework = FRAMEWORK_COXSWAIN; framework <= FRAMEWORK_PYTORCH; framework++) {
        struct ending ending = ending_classify(pod, (enum framework)framework, START_FAILURE_MS, T);
        cr_expect_eq(ending.kind, ENDING_FAILURE, "%d: %s", framework, ending_reason(ending.kind));
    }
    ending_describe(pod, ENDING_FAILURE, FRAMEWORK_COXSWAIN, &text);
    cr_expect_str_eq(buffer_text(&text),
                     "no route to host (init container fetch of pod digits-worker-0-1, exit code 65)");
    pod->disruption_target = true;
    cr_expect_eq(ending_classify(pod, FRAMEWORK_COXSWAIN, START_FAILURE_MS, T).kind, ENDING_DISRUPTION);
}

Test(ending, what_time_does_not_cure_in_object_storage_is_permanent)
{
    static const struct {
        const char *container;
        int code;
        enum ending_kind kind;
    } cases[] = {
        {"coxswain-fetch-0", 65, ENDING_PERMANENT},    {"coxswain-restore-1", 65, ENDING_PERMANENT},
        {"coxswain-download-0", 77, ENDING_PERMANENT}, {"coxswain-fetch-0", 1, ENDING_FAILURE},
        {"coxswain-sync-0", 65, ENDING_FAILURE},       {"fetch", 77, ENDING_FAILURE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pod_view *pod = scene_add_pod(&scene, ROLE_WORKER, 0, 1);
        scene_end_pod(&scene, pod, cases[i].code);
        pod->init_container = cases[i].container;
        for (int framework = FRAMEWORK_COXSWAIN; framework <= FRAMEWORK_PYTORCH; framework++)
            cr_expect_eq(ending_classify(pod, (enum framework)framework, START_FAILURE_MS, T).kind, cases[i].kind,
                         "%s %d", cases[i].container, cases[i].code);
    }
}

Test(ending, describes_code_meaning_and_failure_line)
{
    struct pod_view *pod = scene_add_pod(&scene, ROLE_WORKER, 1, 4);
    scene_end_pod(&scene, pod, 65);
    pod->termination_message = "images.gz: truncated at byte 12\n";
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    ending_describe(pod, ENDING_PERMANENT, FRAMEWORK_COXSWAIN, &text);
    cr_assert_str_eq(buffer_text(&text),
                     "images.gz: truncated at byte 12 (pod digits-worker-1-4, exit code 65: the training data is "
                     "wrong or missing)");
    buffer_clear(&text);
    pod->end_reason = "OOMKilled";
    pod->memory_limit = "2Gi";
    ending_describe(pod, ENDING_OUT_OF_MEMORY, FRAMEWORK_COXSWAIN, &text);
    cr_assert_str_eq(buffer_text(&text), "pod digits-worker-1-4 ran out of memory (limit 2Gi)");
}

Test(ending, a_traceback_is_told_by_its_last_line)
{
    struct pod_view *pod = scene_add_pod(&scene, ROLE_WORKER, 1, 4);
    scene_end_pod(&scene, pod, 1);
    pod->termination_message = "Traceback (most recent call last):\n    g()\nValueError: 7 is odd\n";
    SCOPED_BUFFER text = BUFFER_INIT(CONDITION_MESSAGE_MAX);
    ending_describe(pod, ENDING_FAILURE, FRAMEWORK_PYTORCH, &text);
    cr_assert_str_eq(buffer_text(&text), "ValueError: 7 is odd (pod digits-worker-1-4, exit code 1)");
    buffer_clear(&text);
    scene_end_pod(&scene, pod, 137);
    pod->termination_message = "step 12\nstep 13\n";
    ending_describe(pod, ENDING_FAILURE, FRAMEWORK_PYTORCH, &text);
    cr_assert_str_eq(buffer_text(&text), "pod digits-worker-1-4 exited with code 137 (signal 9, Killed)");
}

/* Returns worker 0's ending `ms` after it was first seen to wait for its image, if the clock was set by `by_ms` in between. */
static enum ending_kind kind_after_move(int64_t by_ms, int64_t ms)
{
    struct job_entry *entry = job_entry_new("n/a");
    SCOPED_FREE struct pod_record *pod = pod_record_new(&scene.pods[0]);
    job_entry_add_pod(entry, pod);
    job_entry_note_wait(entry, pod, scene.pods[0].created_ms);
    job_entry_clock_set(entry, by_ms, NULL);
    scene.list[0] = job_entry_views(entry, &scene.arena)[0];
    scene.input.now_ms = scene.pods[0].created_ms + by_ms + ms;
    scene_plan(&scene);
    bool failed = *scene_reason(&scene, CONDITION_FAILED, CONDITION_TRUE) != '\0';
    scene.list[0] = &scene.pods[0];
    job_entry_free(entry);
    return failed ? ENDING_PERMANENT : ENDING_NONE;
}

Test(ending, a_registry_hiccup_is_no_end_because_the_clock_was_set)
{
    scene_release(&scene);
    scene_init_running(&scene, 1);
    scene.pods[0].phase = POD_PENDING;
    scene.pods[0].ready = false;
    scene.pods[0].waiting_reason = "ErrImagePull";
    int64_t most_ms = scene.options.start_failure_ms;
    cr_assert_eq(kind_after_move(3600000, most_ms - 1), ENDING_NONE);
    cr_assert_eq(kind_after_move(3600000, most_ms), ENDING_PERMANENT);
    cr_assert_eq(kind_after_move(-3600000, most_ms - 1), ENDING_NONE);
    cr_assert_eq(kind_after_move(-3600000, most_ms), ENDING_PERMANENT);
}
