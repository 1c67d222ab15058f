/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/pod_view.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct pod_view *view_of(const char *text)
{
    SCOPED_JSON *pod = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(json_parse(text, strlen(text), 1 << 20, &pod, &error), 0, "%s", error.message);
    return pod_view_new(pod);
}

Test(pod_view, reads_a_running_member)
{
    SCOPED_FREE struct pod_view *pod = view_of(
        "{\"metadata\":{\"name\":\"digits-worker-3-7\",\"uid\":\"u\",\"creationTimestamp\":\"2026-11-20T14:00:00Z\","
        "\"labels\":{\"coxswain.dev/job-name\":\"digits\",\"coxswain.dev/job-uid\":\"j\",\"coxswain.dev/"
        "role\":\"worker\","
        "\"coxswain.dev/index\":\"3\",\"coxswain.dev/epoch\":\"7\",\"coxswain.dev/attempt\":\"2\","
        "\"coxswain.dev/current\":\"true\"},"
        "\"ownerReferences\":[{\"uid\":\"x\"},{\"uid\":\"j\",\"controller\":true}]},"
        "\"spec\":{\"containers\":[{\"name\":\"sidecar\"},{\"name\":\"trainer\",\"resources\":{\"limits\":{\"memory\":"
        "\"2Gi\"}}}]},"
        "\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.5\",\"conditions\":[{\"type\":\"Ready\",\"status\":"
        "\"True\"}],"
        "\"containerStatuses\":[{\"name\":\"sidecar\",\"state\":{\"terminated\":{\"exitCode\":9}}},"
        "{\"name\":\"trainer\",\"state\":{\"running\":{\"startedAt\":\"2026-11-20T14:00:01Z\"}}}]}}");
    cr_assert(pod->member && pod->current && pod->ready && pod->scheduled);
    cr_assert_eq(pod->role, ROLE_WORKER);
    cr_assert_eq(pod->index, 3);
    cr_assert_eq(pod->epoch, 7);
    cr_assert_eq(pod->attempt, 2);
    cr_assert_str_eq(pod->name, "digits-worker-3-7");
    cr_assert_str_eq(pod->owner_uid, "j");
    cr_assert_str_eq(pod->ip, "10.0.0.5");
    cr_assert_str_eq(pod->memory_limit, "2Gi");
    cr_assert_eq(pod->exit_code, EXIT_CODE_NONE);
    cr_assert_eq(pod->started_ms - pod->created_ms, 1000);
    cr_assert(pod_view_alive(pod) && !pod_view_ended(pod) && !pod_view_deleting(pod));
}

Test(pod_view, deletion_was_asked_for_a_grace_period_earlier)
{
    SCOPED_FREE struct pod_view *pod =
        view_of("{\"metadata\":{\"creationTimestamp\":\"2026-11-20T14:00:00Z\","
                "\"deletionTimestamp\":\"2026-11-20T14:01:00Z\",\"deletionGracePeriodSeconds\":30},\"status\":{}}");
    cr_assert(pod_view_deleting(pod));
    cr_assert_eq(pod->deletion_ms - pod->created_ms, 30000);
}

Test(pod_view, main_container_is_the_first_without_a_trainer)
{
    SCOPED_FREE struct pod_view *pod =
        view_of("{\"spec\":{\"containers\":[{\"name\":\"main\"},{\"name\":\"log\"}]},\"status\":{\"phase\":\"Failed\","
                "\"containerStatuses\":[{\"name\":\"log\",\"state\":{\"terminated\":{\"exitCode\":0}}},"
                "{\"name\":\"main\",\"state\":{\"terminated\":{\"exitCode\":137,\"reason\":\"OOMKilled\",\"message\":"
                "\"bye\"}}}]}}");
    cr_assert_eq(pod->exit_code, 137);
    cr_assert_str_eq(pod->end_reason, "OOMKilled");
    cr_assert_str_eq(pod->termination_message, "bye");
    cr_assert_not(pod->member);
}

Test(pod_view, hostile_pods_are_read_without_harm)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "3",
        "{\"metadata\":{\"labels\":{\"coxswain.dev/index\":\"-4\"}}}",
        "{\"metadata\":{\"labels\":{\"coxswain.dev/role\":\"king\",\"coxswain.dev/index\":\"1x\"}}}",
        "{\"status\":{\"containerStatuses\":{\"a\":1},\"conditions\":\"no\"}}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        SCOPED_FREE struct pod_view *pod = view_of(texts[i]);
        cr_assert_not(pod->member);
        cr_assert_str_eq(pod->name, "");
    }
}

/* Counters go on from those of pods: they must not overflow. */
Test(pod_view, numbers_that_no_operator_wrote_are_none)
{
    SCOPED_FREE struct pod_view *pod =
        view_of("{\"metadata\":{\"labels\":{\"coxswain.dev/epoch\":\"9223372036854775807\","
                "\"coxswain.dev/attempt\":\"99999999999999999999\"}}}");
    cr_assert_eq(pod->epoch, -1);
    cr_assert_eq(pod->attempt, -1);
}
