/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_pod_state.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/json_of.h"

#define NOW 1000000

static void run_to_end(struct pod_state *state, unsigned index, int exit_code, int64_t now_ms)
{
    container_state_starting(&state->containers[index]);
    container_state_started(&state->containers[index], 77, now_ms, false);
    container_state_ended(state, index, exit_code, NULL, NULL, now_ms + 1);
}

static const char *condition(const struct json *status, const char *type)
{
    for (const struct json *item = json_first(json_member(status, "conditions")); item; item = json_next(item)) {
        if (strcmp(json_string_at(item, "type", ""), type) == 0)
            return json_string_at(item, "status", "");
    }
    return "absent";
}

static const char one_container[] = "{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"trainer\","
                                    "\"image\":\"i\",\"readinessProbe\":{}}]}}";

Test(node_pod_state, from_pending_to_ready_to_succeeded)
{
    SCOPED_JSON *pod = json_of(one_container);
    struct pod_state state;
    int64_t next;
    pod_state_init(&state, pod, "127.70.0.1", NOW);
    cr_assert_str_eq(pod_state_phase(&state), "Pending");
    cr_assert_eq(pod_state_due(&state, NOW, &next), 0);
    container_state_starting(&state.containers[0]);
    cr_assert_eq(pod_state_due(&state, NOW, &next), -1);
    container_state_started(&state.containers[0], 77, NOW, false);
    cr_assert_str_eq(pod_state_phase(&state), "Running");
    SCOPED_JSON *running = pod_state_status(&state, NULL, NOW);
    cr_assert_str_eq(condition(running, "Ready"), "False");
    cr_assert_str_eq(condition(running, "Initialized"), "True");
    cr_assert_str_eq(json_string_at(running, "podIP", ""), "127.70.0.1");
    state.containers[0].passes = true;
    SCOPED_JSON *ready = pod_state_status(&state, running, NOW);
    cr_assert_str_eq(condition(ready, "Ready"), "True");
    const struct json *container = json_first(json_member(ready, "containerStatuses"));
    cr_assert_str_eq(json_string_at(container, "containerID", ""), "process://77");
    container_state_ended(&state, 0, 0, NULL, "bye", NOW + 5);
    SCOPED_JSON *done = pod_state_status(&state, ready, NOW);
    cr_assert_str_eq(json_string_at(done, "phase", ""), "Succeeded");
    cr_assert_str_eq(condition(done, "Ready"), "False");
    container = json_first(json_member(done, "containerStatuses"));
    cr_assert_eq(json_integer_at(container, "state.terminated.exitCode", -1), 0);
    cr_assert_str_eq(json_string_at(container, "state.terminated.reason", ""), "Completed");
    cr_assert_str_eq(json_string_at(container, "state.terminated.message", ""), "bye");
    pod_state_release(&state);
}

Test(node_pod_state, a_killed_container_fails_the_pod)
{
    SCOPED_JSON *pod = json_of(one_container);
    struct pod_state state;
    pod_state_init(&state, pod, "", NOW);
    run_to_end(&state, 0, 137, NOW);
    cr_assert_str_eq(pod_state_phase(&state), "Failed");
    cr_assert(pod_state_over(&state));
    pod_state_release(&state);
}

Test(node_pod_state, a_command_that_cannot_run_is_a_start_error)
{
    SCOPED_JSON *pod = json_of(one_container);
    struct pod_state state;
    pod_state_init(&state, pod, "", NOW);
    container_state_starting(&state.containers[0]);
    container_state_ended(&state, 0, 127, "exec: \"x\": not found", NULL, NOW);
    SCOPED_JSON *status = pod_state_status(&state, NULL, NOW);
    const struct json *container = json_first(json_member(status, "containerStatuses"));
    cr_assert_str_eq(json_string_at(status, "phase", ""), "Failed");
    cr_assert_str_eq(json_string_at(container, "state.terminated.reason", ""), "StartError");
    cr_assert_eq(json_integer_at(container, "state.terminated.exitCode", -1), 128);
    pod_state_release(&state);
}

Test(node_pod_state, missing_configuration_waits)
{
    SCOPED_JSON *pod = json_of(one_container);
    struct pod_state state;
    int64_t next;
    pod_state_init(&state, pod, "", NOW);
    container_state_unconfigured(&state.containers[0], "no such ConfigMap", NOW);
    cr_assert_eq(pod_state_due(&state, NOW, &next), -1);
    cr_assert_eq(next, NOW + CONFIG_RETRY_MS);
    SCOPED_JSON *status = pod_state_status(&state, NULL, NOW);
    const struct json *container = json_first(json_member(status, "containerStatuses"));
    cr_assert_str_eq(json_string_at(status, "phase", ""), "Pending");
    cr_assert_str_eq(json_string_at(container, "state.waiting.reason", ""), "CreateContainerConfigError");
    cr_assert_eq(pod_state_due(&state, next, &next), 0);
    pod_state_release(&state);
}

static const char with_init[] =
    "{\"spec\":{\"restartPolicy\":\"Never\",\"initContainers\":[{\"name\":\"a\"},{\"name\":\"b\"}],"
    "\"containers\":[{\"name\":\"c\"},{\"name\":\"d\"}]}}";

Test(node_pod_state, init_containers_one_after_the_other_then_all_others)
{
    SCOPED_JSON *pod = json_of(with_init);
    struct pod_state state;
    int64_t next;
    pod_state_init(&state, pod, "", NOW);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(pod_state_due(&state, NOW, &next), i);
        run_to_end(&state, (unsigned)i, 0, NOW);
        cr_assert_str_eq(pod_state_phase(&state), "Pending");
    }
    cr_assert_eq(pod_state_due(&state, NOW, &next), 2);
    container_state_starting(&state.containers[2]);
    cr_assert_eq(pod_state_due(&state, NOW, &next), 3);
    container_state_starting(&state.containers[3]);
    cr_assert_eq(pod_state_due(&state, NOW, &next), -1);
    pod_state_release(&state);
}

Test(node_pod_state, a_failed_init_container_fails_the_pod)
{
    SCOPED_JSON *pod = json_of(with_init);
    struct pod_state state;
    int64_t next;
    pod_state_init(&state, pod, "", NOW);
    run_to_end(&state, 0, 3, NOW);
    cr_assert_eq(pod_state_due(&state, NOW, &next), -1);
    cr_assert_str_eq(pod_state_phase(&state), "Failed");
    pod_state_release(&state);
}

Test(node_pod_state, one_of_two_ends_and_the_pod_goes_on)
{
    SCOPED_JSON *pod =
        json_of("{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\"},{\"name\":\"d\"}]}}");
    struct pod_state state;
    pod_state_init(&state, pod, "", NOW);
    container_state_starting(&state.containers[1]);
    run_to_end(&state, 0, 1, NOW);
    cr_assert_str_eq(pod_state_phase(&state), "Running");
    container_state_started(&state.containers[1], 5, NOW, false);
    container_state_ended(&state, 1, 0, NULL, NULL, NOW);
    cr_assert_str_eq(pod_state_phase(&state), "Failed");
    pod_state_release(&state);
}

Test(node_pod_state, restarts_back_off)
{
    SCOPED_JSON *pod = json_of("{\"spec\":{\"restartPolicy\":\"OnFailure\",\"containers\":[{\"name\":\"c\"}]}}");
    struct pod_state state;
    int64_t next;
    pod_state_init(&state, pod, "", NOW);
    run_to_end(&state, 0, 1, NOW);
    cr_assert_eq(pod_state_due(&state, NOW + 1, &next), 0);
    run_to_end(&state, 0, 2, NOW);
    cr_assert_eq(pod_state_due(&state, NOW + 1, &next), -1);
    cr_assert_eq(next, NOW + 1 + 10000);
    cr_assert_str_eq(pod_state_phase(&state), "Running");
    SCOPED_JSON *status = pod_state_status(&state, NULL, NOW);
    const struct json *container = json_first(json_member(status, "containerStatuses"));
    cr_assert_eq(json_integer_at(container, "restartCount", 0), 2);
    cr_assert_eq(json_integer_at(container, "lastState.terminated.exitCode", 0), 2);
    cr_assert_str_eq(json_string_at(container, "state.waiting.reason", ""), "CrashLoopBackOff");
    run_to_end(&state, 0, 0, next);
    cr_assert_str_eq(pod_state_phase(&state), "Succeeded");
    pod_state_release(&state);
}

Test(node_pod_state, nothing_starts_once_it_stops)
{
    SCOPED_JSON *pod = json_of(one_container);
    struct pod_state state;
    int64_t next;
    pod_state_init(&state, pod, "", NOW);
    state.stopping = true;
    cr_assert_eq(pod_state_due(&state, NOW, &next), -1);
    cr_assert(pod_state_over(&state));
    pod_state_release(&state);
}

Test(node_pod_state, foreign_conditions_and_transition_times_are_kept)
{
    SCOPED_JSON *pod = json_of(one_container);
    struct pod_state state;
    pod_state_init(&state, pod, "", NOW);
    SCOPED_JSON *previous =
        json_of("{\"qosClass\":\"BestEffort\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\"},"
                "{\"type\":\"Ready\",\"status\":\"False\",\"lastTransitionTime\":\"2020-01-01T00:00:00Z\"}]}");
    SCOPED_JSON *status = pod_state_status(&state, previous, NOW);
    cr_assert_str_eq(condition(status, "DisruptionTarget"), "True");
    cr_assert_str_eq(json_string_at(status, "qosClass", ""), "BestEffort");
    bool kept = false;
    for (const struct json *item = json_first(json_member(status, "conditions")); item; item = json_next(item))
        kept |= strcmp(json_string_at(item, "lastTransitionTime", ""), "2020-01-01T00:00:00Z") == 0;
    cr_assert(kept);
    pod_state_release(&state);
}

Test(node_pod_state, a_lost_pod_is_a_disruption)
{
    SCOPED_JSON *pod = json_of(one_container);
    struct pod_state state;
    pod_state_init(&state, pod, "127.70.0.1", NOW);
    container_state_started(&state.containers[0], 77, NOW, false);
    SCOPED_JSON *running = pod_state_status(&state, NULL, NOW);
    SCOPED_JSON *lost = pod_status_lost(running, NOW + 5000);
    cr_assert_str_eq(json_string_at(lost, "phase", ""), "Failed");
    cr_assert_str_eq(condition(lost, "DisruptionTarget"), "True");
    cr_assert_str_eq(condition(lost, "Ready"), "False");
    cr_assert_str_eq(condition(lost, "PodScheduled"), "True");
    const struct json *container = json_first(json_member(lost, "containerStatuses"));
    cr_assert_eq(json_integer_at(container, "state.terminated.exitCode", 0), 137);
    cr_assert_str_eq(json_string_at(container, "state.terminated.finishedAt", ""), "1970-01-01T00:16:45Z");
    SCOPED_JSON *at_once = pod_status_lost(running, NOW - 5000);
    container = json_first(json_member(at_once, "containerStatuses"));
    cr_assert_str_eq(json_string_at(container, "state.terminated.finishedAt", ""), "1970-01-01T00:16:40Z",
                     "no pod ends before it starts");
    pod_state_release(&state);
}

static void start(struct pod_state *state, unsigned index)
{
    container_state_starting(&state->containers[index]);
    container_state_started(&state->containers[index], 77, NOW, false);
}

static const char with_sidecars[] =
    "{\"spec\":{\"restartPolicy\":\"Never\",\"initContainers\":[{\"name\":\"a\",\"restartPolicy\":\"Always\"},"
    "{\"name\":\"b\"},{\"name\":\"c\",\"restartPolicy\":\"Always\"}],\"containers\":[{\"name\":\"d\"}]}}";

Test(node_pod_state, a_sidecar_runs_beside_the_others_and_ends_after_them)
{
    SCOPED_JSON *pod = json_of(with_sidecars);
    struct pod_state state;
    int64_t next;
    pod_state_init(&state, pod, "", NOW);
    cr_assert_eq(pod_state_due(&state, NOW, &next), 0);
    container_state_starting(&state.containers[0]);
    cr_assert_eq(pod_state_due(&state, NOW, &next), -1, "it has not started yet");
    container_state_started(&state.containers[0], 77, NOW, false);
    cr_assert_eq(pod_state_due(&state, NOW, &next), 1);
    run_to_end(&state, 1, 0, NOW);
    cr_assert_eq(pod_state_due(&state, NOW, &next), 2);
    start(&state, 2);
    cr_assert_eq(pod_state_due(&state, NOW, &next), 3);
    start(&state, 3);
    SCOPED_JSON *running = pod_state_status(&state, NULL, NOW);
    cr_assert_str_eq(condition(running, "Initialized"), "True");
    cr_assert_str_eq(condition(running, "Ready"), "True");

    container_state_ended(&state, 0, 0, NULL, NULL, NOW); /* whatever the pod's policy */
    cr_assert_eq(pod_state_due(&state, NOW, &next), 0);
    cr_assert_eq(pod_state_next_sidecar(&state), -1);
    start(&state, 0);

    container_state_ended(&state, 3, 0, NULL, NULL, NOW);
    cr_assert_not(pod_state_over(&state));
    cr_assert_str_eq(pod_state_phase(&state), "Running", "a sidecar still runs");
    cr_assert_eq(pod_state_next_sidecar(&state), 2, "the last one first");
    cr_assert_eq(pod_state_next_sidecar(&state), -1, "one after the other");
    container_state_ended(&state, 2, 143, NULL, NULL, NOW);
    cr_assert_eq(pod_state_due(&state, NOW, &next), -1, "it is not started again");
    cr_assert_eq(pod_state_next_sidecar(&state), 0);
    container_state_ended(&state, 0, 1, NULL, NULL, NOW);
    cr_assert(pod_state_over(&state));
    cr_assert_str_eq(pod_state_phase(&state), "Succeeded", "what became of the sidecars does not count");
    pod_state_release(&state);
}

Test(node_pod_state, sidecars_end_after_the_others_of_a_pod_that_is_deleted)
{
    SCOPED_JSON *pod = json_of(with_sidecars);
    struct pod_state state;
    pod_state_init(&state, pod, "", NOW);
    start(&state, 0);
    run_to_end(&state, 1, 0, NOW);
    start(&state, 2);
    start(&state, 3);
    state.stopping = true;
    cr_assert_eq(pod_state_next_sidecar(&state), -1, "the main container still runs");
    container_state_ended(&state, 3, 143, NULL, NULL, NOW);
    cr_assert_eq(pod_state_next_sidecar(&state), 2);
    container_state_ended(&state, 2, 0, NULL, NULL, NOW);
    cr_assert_eq(pod_state_next_sidecar(&state), 0);
    container_state_ended(&state, 0, 0, NULL, NULL, NOW);
    cr_assert(pod_state_over(&state));
    cr_assert_str_eq(pod_state_phase(&state), "Failed");
    pod_state_release(&state);
}

Test(node_pod_state, a_failed_init_container_ends_the_sidecars)
{
    SCOPED_JSON *pod = json_of(with_sidecars);
    struct pod_state state;
    pod_state_init(&state, pod, "", NOW);
    start(&state, 0);
    run_to_end(&state, 1, 3, NOW);
    cr_assert_eq(pod_state_next_sidecar(&state), 0);
    container_state_ended(&state, 0, 0, NULL, NULL, NOW);
    cr_assert(pod_state_over(&state));
    cr_assert_str_eq(pod_state_phase(&state), "Failed");
    pod_state_release(&state);
}

Test(node_pod_state, a_pod_that_is_held_starts_nothing_and_says_why)
{
    SCOPED_JSON *pod = json_of(one_container);
    struct pod_state state;
    int64_t next;
    pod_state_init(&state, pod, "127.70.0.1", NOW);
    pod_state_hold(&state, "1 GPU needed", NOW);
    cr_assert_eq(pod_state_due(&state, NOW, &next), -1);
    cr_assert_not(pod_state_over(&state));
    SCOPED_JSON *held = pod_state_status(&state, NULL, NOW);
    cr_assert_str_eq(json_string_at(held, "phase", ""), "Pending");
    cr_assert_str_eq(condition(held, "PodScheduled"), "False");
    cr_assert_null(json_member(held, "startTime"));
    cr_assert_null(json_member(held, "containerStatuses"));
    pod_state_hold(&state, NULL, NOW + 60000);
    cr_assert_eq(pod_state_due(&state, NOW + 60000, &next), 0);
    SCOPED_JSON *free = pod_state_status(&state, held, NOW + 60000);
    cr_assert_str_eq(condition(free, "PodScheduled"), "True");
    cr_assert_str_eq(json_string_at(free, "startTime", ""), "1970-01-01T00:17:40Z");
    pod_state_release(&state);
}
