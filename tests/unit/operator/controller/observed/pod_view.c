/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/pod_record.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "tests/unit/json_of.h"

/* As the cache keeps it. */
static struct pod_record *record_of(const char *text)
{
    SCOPED_JSON *pod = json_of(text);
    return pod_record_read(pod);
}

Test(pod_view, reads_a_running_member)
{
    SCOPED_FREE struct pod_record *record = record_of(
        "{\"metadata\":{\"name\":\"digits-worker-3-7\",\"uid\":\"u\",\"creationTimestamp\":\"2026-11-20T14:00:00Z\","
        "\"labels\":{\"coxswain.dev/job-name\":\"digits\",\"coxswain.dev/job-uid\":\"j\",\"coxswain.dev/"
        "role\":\"worker\","
        "\"coxswain.dev/index\":\"3\",\"coxswain.dev/incarnation\":\"7\",\"coxswain.dev/attempt\":\"2\","
        "\"coxswain.dev/current\":\"true\"},"
        "\"ownerReferences\":[{\"uid\":\"x\"},{\"uid\":\"j\",\"controller\":true}]},"
        "\"spec\":{\"containers\":[{\"name\":\"sidecar\"},{\"name\":\"trainer\",\"resources\":{\"limits\":{\"memory\":"
        "\"2Gi\"}}}]},"
        "\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.5\",\"conditions\":[{\"type\":\"Ready\",\"status\":"
        "\"True\"}],"
        "\"containerStatuses\":[{\"name\":\"sidecar\",\"state\":{\"terminated\":{\"exitCode\":9}}},"
        "{\"name\":\"trainer\",\"state\":{\"running\":{\"startedAt\":\"2026-11-20T14:00:01Z\"}}}]}}");
    struct pod_view view = pod_record_view(record, &(struct pod_room){0}), *pod = &view;
    cr_assert(pod->member && pod->current && pod->ready && pod->scheduled);
    cr_assert_eq(pod->role, ROLE_WORKER);
    cr_assert_eq(pod->index, 3);
    cr_assert_eq(pod->incarnation, 7);
    cr_assert_eq(pod->attempt, 2);
    cr_assert_str_eq(pod->name, "digits-worker-3-7");
    cr_assert_str_eq(pod->owner_uid, "j");
    cr_assert_str_eq(pod->ip, "10.0.0.5");
    cr_assert_str_eq(pod->memory_limit, "2Gi");
    cr_assert_eq(pod->exit_code, EXIT_CODE_NONE);
    cr_assert_eq(pod->started_ms - pod->created_ms, 1000);
    cr_assert(pod_view_alive(pod) && !pod_view_ended(pod) && !pod_view_deleting(pod));
}

Test(pod_view, a_pod_with_scheduling_gates_is_gated_until_they_are_gone)
{
    static const char *const texts[] = {
        "{\"spec\":{\"schedulingGates\":[{\"name\":\"g\"}]},\"status\":{\"phase\":\"Pending\",\"conditions\":"
        "[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":\"SchedulingGated\",\"message\":\"gates\"}]}}",
        "{\"spec\":{\"schedulingGates\":[]},\"status\":{\"phase\":\"Pending\",\"conditions\":"
        "[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\",\"message\":\"gates\"}]}}",
    };
    for (int i = 0; i < 2; i++) {
        SCOPED_FREE struct pod_record *record = record_of(texts[i]);
        struct pod_view view = pod_record_view(record, &(struct pod_room){0});
        cr_expect_eq(view.gated, i == 0);
        cr_expect_str_eq(view.unschedulable, "gates");
    }
}

Test(pod_view, volcano_finds_a_node_for_some_pods_of_a_gang_that_does_not_fit)
{
    static const char *const reasons[] = {"Schedulable", "Unschedulable"};
    for (int i = 0; i < 2; i++) {
        SCOPED_FREE char *text =
            memory_format("{\"status\":{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
                          "\"False\",\"reason\":\"%s\",\"message\":\"words\"}]}}",
                          reasons[i]);
        SCOPED_FREE struct pod_record *record = record_of(text);
        struct pod_view view = pod_record_view(record, &(struct pod_room){0});
        cr_expect_str_eq(view.unschedulable, i == 0 ? "" : "words");
        cr_expect_not(view.scheduled);
    }
}

#define LABELS(name, uid, incarnation)                                                                                 \
    "\"name\":\"" name "\",\"labels\":{\"coxswain.dev/job-name\":\"digits\",\"coxswain.dev/job-uid\":\"" uid           \
    "\",\"coxswain.dev/role\":\"worker\",\"coxswain.dev/index\":\"3\",\"coxswain.dev/incarnation\":\"" incarnation     \
    "\",\"coxswain.dev/attempt\":\"2\"}"
#define TOLD(uid, incarnation)                                                                                         \
    "\"spec\":{\"containers\":[{\"name\":\"trainer\",\"env\":[{\"name\":\"COXSWAIN_JOB_UID\",\"value\":\"" uid         \
    "\"},{\"name\":\"COXSWAIN_ROLE\",\"value\":\"worker\"},{\"name\":\"COXSWAIN_INDEX\",\"value\":\"3\"},"             \
    "{\"name\":\"COXSWAIN_INCARNATION\",\"value\":\"" incarnation                                                      \
    "\"},{\"name\":\"COXSWAIN_ATTEMPT\",\"value\":\"2\"}]}]}"
#define OWNED(owner) ",\"ownerReferences\":[" owner "]"

static const struct {
    const char *what, *text;
    bool member, adoptable;
} claims[] = {
    {"as the operator made it", "{\"metadata\":{" LABELS("digits-worker-3-7", "j", "7") "}," TOLD("j", "7") "}", true,
     true},
    {"copied", "{\"metadata\":{" LABELS("digits-worker-3-copy", "j", "7") "}," TOLD("j", "7") "}", false, false},
    {"labels of a later incarnation", "{\"metadata\":{" LABELS("digits-worker-3-9", "j", "9") "}," TOLD("j", "7") "}",
     true, false},
    {"labels of another job", "{\"metadata\":{" LABELS("digits-worker-3-7", "k", "7") "}," TOLD("j", "7") "}", true,
     false},
    {"an owner that is no controller",
     "{\"metadata\":{" LABELS("digits-worker-3-7", "j", "7") OWNED("{\"uid\":\"o\"}") "}," TOLD("j", "7") "}", true,
     false},
    {"its owner has another name",
     "{\"metadata\":{" LABELS("digits-worker-3-7", "j", "7")
         OWNED("{\"uid\":\"j\",\"controller\":true,\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\","
               "\"name\":\"letters\"}") "}," TOLD("j", "7") "}",
     false, false},
};

Test(pod_view, a_pod_is_what_its_name_and_its_environment_say_as_well)
{
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        SCOPED_FREE struct pod_record *record = record_of(claims[i].text);
        struct pod_view pod = pod_record_view(record, &(struct pod_room){0});
        cr_expect_eq(pod.member, claims[i].member, "%s", claims[i].what);
        cr_expect_eq(pod.adoptable, claims[i].adoptable, "%s", claims[i].what);
    }
}

Test(pod_view, deletion_was_asked_for_a_grace_period_earlier)
{
    SCOPED_FREE struct pod_record *record =
        record_of("{\"metadata\":{\"creationTimestamp\":\"2026-11-20T14:00:00Z\","
                  "\"deletionTimestamp\":\"2026-11-20T14:01:00Z\",\"deletionGracePeriodSeconds\":30},\"status\":{}}");
    struct pod_view view = pod_record_view(record, &(struct pod_room){0}), *pod = &view;
    cr_assert(pod_view_deleting(pod));
    cr_assert_eq(pod->deletion_ms - pod->created_ms, 30000);
}

/* Only workers of ours have the job's document. One that has not begun may yet claim the directory. */
Test(pod_view, one_of_ours_that_has_begun_and_is_to_end_is_fenced)
{
#define DELETED "\"deletionTimestamp\":\"2026-11-20T14:01:00Z\""
#define WITH(name, value)                                                                                              \
    "\"spec\":{\"initContainers\":[{\"name\":\"fetch\"}],\"containers\":[{\"name\":\"trainer\",\"env\":[{\"name\":"    \
    "\"" name "\",\"value\":\"" value "\"}]}]}"
#define SAVES "{\\\"checkpoint\\\":{\\\"storage\\\":\\\"runs\\\"}}"
#define BEGUN                                                                                                          \
    ",\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"trainer\",\"state\":{\"running\":{"         \
    "\"startedAt\":"                                                                                                   \
    "\"2026-11-20T14:00:00Z\"}}}]}"
#define FETCHES                                                                                                        \
    ",\"status\":{\"phase\":\"Pending\",\"initContainerStatuses\":[{\"name\":\"fetch\",\"state\":{\"running\":{"       \
    "\"startedAt\":"                                                                                                   \
    "\"2026-11-20T14:00:00Z\"}}}]}"
    static const struct {
        const char *text;
        bool fenced;
    } pods[] = {{"{\"metadata\":{" DELETED "}," WITH("COXSWAIN_JOB", SAVES) BEGUN "}", true},
                {"{\"metadata\":{" DELETED "}," WITH("COXSWAIN_JOB", SAVES) "}", false},
                {"{\"metadata\":{" DELETED "}," WITH("COXSWAIN_JOB", SAVES) FETCHES "}", false},
                {"{\"metadata\":{" DELETED "}," WITH("COXSWAIN_JOB", "{}") BEGUN "}", false},
                {"{\"metadata\":{" DELETED "}," WITH("COXSWAIN_JOB", "[") BEGUN "}", false},
                {"{\"metadata\":{" DELETED "}," WITH("TF_CONFIG", SAVES) BEGUN "}", false},
                {"{\"metadata\":{}," WITH("COXSWAIN_JOB", SAVES) BEGUN "}", false},
                {"{\"metadata\":{" DELETED "}}", false}};
    for (size_t i = 0; i < sizeof pods / sizeof *pods; i++) {
        SCOPED_FREE struct pod_record *record = record_of(pods[i].text);
        cr_expect_eq(pod_record_view(record, &(struct pod_room){0}).fenced, pods[i].fenced, "%s", pods[i].text);
    }
}

Test(pod_view, main_container_is_the_first_without_a_trainer)
{
    SCOPED_FREE struct pod_record *record = record_of(
        "{\"spec\":{\"containers\":[{\"name\":\"main\"},{\"name\":\"log\"}]},\"status\":{\"phase\":\"Failed\","
        "\"containerStatuses\":[{\"name\":\"log\",\"state\":{\"terminated\":{\"exitCode\":0}}},"
        "{\"name\":\"main\",\"state\":{\"terminated\":{\"exitCode\":137,\"reason\":\"OOMKilled\",\"message\":"
        "\"bye\"}}}]}}");
    struct pod_view view = pod_record_view(record, &(struct pod_room){0}), *pod = &view;
    cr_assert_eq(pod->exit_code, 137);
    cr_assert_str_eq(pod->end_reason, "OOMKilled");
    cr_assert_str_eq(pod->termination_message, "bye");
    cr_assert_not(pod->member);
}

#define TWO_INITS                                                                                                      \
    "{\"metadata\":{\"creationTimestamp\":\"2026-11-20T14:00:00Z\"},\"spec\":{\"initContainers\":[{\"name\":"          \
    "\"proxy\","                                                                                                       \
    "\"restartPolicy\":\"Always\"},{\"name\":\"fetch\"},{\"name\":\"unpack\",\"resources\":{\"limits\":{\"memory\":"   \
    "\"1Gi\"}}}],\"containers\":[{\"name\":\"trainer\"}]},\"status\":{\"conditions\":[{\"type\":\"PodScheduled\","     \
    "\"status\":\"True\",\"lastTransitionTime\":\"2026-11-20T15:00:00Z\"}],\"initContainerStatuses\":["
#define FETCHED                                                                                                        \
    "{\"name\":\"proxy\",\"state\":{\"terminated\":{\"exitCode\":3}}},"                                                \
    "{\"name\":\"fetch\",\"state\":{\"terminated\":{\"exitCode\":0,\"finishedAt\":\"2026-11-20T15:30:00Z\"}}},"
#define MAIN_WAITS                                                                                                     \
    "\"containerStatuses\":[{\"name\":\"trainer\",\"state\":{\"waiting\":{\"reason\":\"PodInitializing\"}}}]}}"

Test(pod_view, an_init_container_that_failed_speaks_for_the_pod)
{
    SCOPED_FREE struct pod_record *record =
        record_of(TWO_INITS FETCHED
                  "{\"name\":\"unpack\",\"state\":{\"terminated\":{\"exitCode\":2,\"reason\":\"Error\",\"message\":"
                  "\"no space\",\"finishedAt\":\"2026-11-20T15:31:00Z\"}}}],\"phase\":\"Failed\"," MAIN_WAITS);
    struct pod_view pod = pod_record_view(record, &(struct pod_room){0});
    cr_assert_str_eq(pod.init_container, "unpack");
    cr_assert_eq(pod.exit_code, 2);
    cr_assert_str_eq(pod.termination_message, "no space");
    cr_assert_str_eq(pod.memory_limit, "1Gi");
    cr_assert_eq(pod.finished_ms - pod.created_ms, 91 * 60000);
    cr_assert(pod_view_ended(&pod) && !pod_view_succeeded(&pod));
}

Test(pod_view, an_init_container_that_waits_does_so_since_its_turn_came)
{
    SCOPED_FREE struct pod_record *record =
        record_of(TWO_INITS FETCHED "{\"name\":\"unpack\",\"state\":{\"waiting\":{\"reason\":\"ImagePullBackOff\"}}}],"
                                    "\"phase\":\"Pending\"," MAIN_WAITS);
    struct pod_view pod = pod_record_view(record, &(struct pod_room){0});
    cr_assert_str_eq(pod.init_container, "unpack");
    cr_assert_str_eq(pod.waiting_reason, "ImagePullBackOff");
    cr_assert_eq(pod.startable_ms - pod.created_ms, 90 * 60000);
    cr_assert_not(pod_view_ended(&pod));
}

#define NOT_REACHED                                                                                                    \
    "{\"name\":\"fetch\",\"state\":{\"waiting\":{\"reason\":\"PodInitializing\"}}},"                                   \
    "{\"name\":\"unpack\",\"state\":{\"waiting\":{\"reason\":\"PodInitializing\"}}}],\"phase\":"                       \
    "\"Pending\"," MAIN_WAITS

/* The main container waits for a sidecar too, until that has started. */
Test(pod_view, a_sidecar_that_cannot_start_speaks_for_the_pod)
{
    SCOPED_FREE struct pod_record *record = record_of(
        TWO_INITS "{\"name\":\"proxy\",\"state\":{\"waiting\":{\"reason\":\"ImagePullBackOff\"}}}," NOT_REACHED);
    struct pod_view pod = pod_record_view(record, &(struct pod_room){0});
    cr_assert_str_eq(pod.init_container, "proxy");
    cr_assert_str_eq(pod.waiting_reason, "ImagePullBackOff");
    cr_assert_eq(pod.startable_ms - pod.created_ms, 60 * 60000);
    cr_assert_not(pod.begun);
}

Test(pod_view, a_sidecar_that_has_started_does_not)
{
    SCOPED_FREE struct pod_record *record =
        record_of(TWO_INITS "{\"name\":\"proxy\",\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}},"
                            "\"lastState\":{\"terminated\":{\"exitCode\":3}}}," NOT_REACHED);
    struct pod_view pod = pod_record_view(record, &(struct pod_room){0});
    cr_assert_str_eq(pod.init_container, "fetch");
    cr_assert(pod.begun);
}

Test(pod_view, init_containers_that_are_done_leave_the_word_to_the_main_one)
{
    SCOPED_FREE struct pod_record *record =
        record_of(TWO_INITS FETCHED
                  "{\"name\":\"unpack\",\"state\":{\"terminated\":{\"exitCode\":0}}}],\"phase\":\"Failed\","
                  "\"containerStatuses\":[{\"name\":\"trainer\",\"state\":{\"terminated\":{\"exitCode\":70}}}]}}");
    struct pod_view pod = pod_record_view(record, &(struct pod_room){0});
    cr_assert_str_eq(pod.init_container, "");
    cr_assert_eq(pod.exit_code, 70);
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
        SCOPED_FREE struct pod_record *record = record_of(texts[i]);
        struct pod_view view = pod_record_view(record, &(struct pod_room){0}), *pod = &view;
        cr_assert_not(pod->member);
        cr_assert_str_eq(pod->name, "");
    }
}

/* Counters go on from those of pods: they must not overflow. */
Test(pod_view, numbers_that_no_operator_wrote_are_none)
{
    SCOPED_FREE struct pod_record *record =
        record_of("{\"metadata\":{\"labels\":{\"coxswain.dev/incarnation\":\"9223372036854775807\","
                  "\"coxswain.dev/attempt\":\"99999999999999999999\"}}}");
    struct pod_view view = pod_record_view(record, &(struct pod_room){0}), *pod = &view;
    cr_assert_eq(pod->incarnation, -1);
    cr_assert_eq(pod->attempt, -1);
}

/* A foreign pod may carry the labels of a job of ours. */
Test(pod_view, an_owner_that_is_not_the_job_is_kept)
{
    SCOPED_FREE struct pod_record *record =
        record_of("{\"metadata\":{\"name\":\"n\",\"labels\":{\"coxswain.dev/job-uid\":\"j\"},"
                  "\"ownerReferences\":[{\"uid\":\"other\",\"controller\":true}]},"
                  "\"status\":{\"message\":\"last of all\"}}");
    struct pod_view pod = pod_record_view(record, &(struct pod_room){0});
    cr_assert_str_eq(pod.name, "n");
    cr_assert_str_eq(pod.job_uid, "j");
    cr_assert_str_eq(pod.owner_uid, "other");
    cr_assert_str_eq(pod.message, "last of all");
    cr_assert_str_eq(pod.conditions, "");
}

Test(pod_view, long_texts_are_cut_and_those_behind_them_stay_whole)
{
    SCOPED_FREE char *filler = memory_allocate(POD_TEXT_MAX + 10, 1);
    memset(filler, 'x', POD_TEXT_MAX + 9);
    SCOPED_FREE char *text = memory_format("{\"status\":{\"message\":\"%s\",\"containerStatuses\":[{\"name\":\"\","
                                           "\"state\":{\"terminated\":{\"message\":\"bye\"}}}]},"
                                           "\"spec\":{\"containers\":[{}]}}",
                                           filler);
    SCOPED_FREE struct pod_record *record = record_of(text);
    struct pod_view pod = pod_record_view(record, &(struct pod_room){0});
    cr_assert_eq(strlen(pod.message), POD_TEXT_MAX);
    cr_assert_str_eq(pod.termination_message, "bye");
}

Test(pod_view, numbers_of_any_size_come_back)
{
    static const int64_t numbers[] = {0,   1,         -1,        63,         64,          -64,
                                      -65, INT32_MAX, INT64_MAX, -INT64_MAX, FIELD_UNSET, 1790000000000};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        SCOPED_FREE struct pod_record *empty = record_of("{}");
        struct pod_view view = pod_record_view(empty, &(struct pod_room){0});
        view.incarnation = numbers[i];
        view.grace_ms = numbers[i];
        view.exit_code = -7;
        view.phase = POD_FAILED;
        view.role = ROLE_EVALUATOR;
        SCOPED_FREE struct pod_record *record = pod_record_new(&view);
        struct pod_view again = pod_record_view(record, &(struct pod_room){0});
        cr_assert_eq(again.incarnation, numbers[i]);
        cr_assert_eq(again.grace_ms, numbers[i]);
        cr_assert_eq(again.exit_code, -7);
        cr_assert_eq(again.phase, POD_FAILED);
        cr_assert_eq(again.role, ROLE_EVALUATOR);
        cr_assert_eq(again.created_ms, FIELD_UNSET);
    }
}

/* A proxy that goes on keeps no job from its end. */
Test(pod_view, what_a_webhook_has_put_before_the_main_container_tells_nothing)
{
    SCOPED_FREE struct pod_record *record =
        record_of("{\"metadata\":{\"name\":\"digits-worker-3-7\"},"
                  "\"spec\":{\"containers\":[{\"name\":\"linkerd-proxy\"},{\"name\":\"pytorch\",\"env\":[{\"name\":"
                  "\"COXSWAIN_JOB_UID\",\"value\":\"j\"}]}]},"
                  "\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"linkerd-proxy\",\"state\":{"
                  "\"running\":{}}},"
                  "{\"name\":\"pytorch\",\"state\":{\"terminated\":{\"exitCode\":0}}}]}}");
    struct pod_view pod = pod_record_view(record, &(struct pod_room){0});
    cr_assert(pod_view_ended(&pod) && pod_view_succeeded(&pod) && pod_view_alive(&pod));
    cr_assert_str_eq(pod.container, "pytorch");
}

/* A pod has succeeded when its files are uploaded. */
Test(pod_view, a_sidecar_that_uploads_decides_over_success)
{
#define UPLOADS(phase, code, state)                                                                                    \
    "{\"spec\":{\"initContainers\":[{\"name\":\"coxswain-sync-0\",\"restartPolicy\":\"Always\"}],\"containers\":[{"    \
    "\"name\":\"trainer\"}]},\"status\":{\"phase\":\"" phase "\",\"initContainerStatuses\":[{\"name\":"                \
    "\"coxswain-sync-0\"," state "}],\"containerStatuses\":[{\"name\":\"trainer\",\"state\":{\"terminated\":{"         \
    "\"exitCode\":" code "}}}]}}"
    static const struct {
        const char *text;
        int exit_code;
        const char *init;
    } pods[] = {
        {UPLOADS("Running", "0", "\"state\":{\"running\":{}}"), EXIT_CODE_NONE, ""},
        {UPLOADS("Running", "7", "\"state\":{\"running\":{}}"), 7, ""},
        {UPLOADS("Succeeded", "0", "\"state\":{\"terminated\":{\"exitCode\":0}}"), 0, ""},
        {UPLOADS("Succeeded", "0", "\"state\":{\"terminated\":{\"exitCode\":137}}"), 137, "coxswain-sync-0"},
        {UPLOADS("Succeeded", "0", "\"state\":{\"waiting\":{}},\"lastState\":{\"terminated\":{\"exitCode\":1}}"), 1,
         "coxswain-sync-0"},
    };
    for (size_t i = 0; i < sizeof pods / sizeof *pods; i++) {
        SCOPED_FREE struct pod_record *record = record_of(pods[i].text);
        struct pod_view view = pod_record_view(record, &(struct pod_room){0});
        cr_expect_eq(view.exit_code, pods[i].exit_code, "%s", pods[i].text);
        cr_expect_str_eq(view.init_container, pods[i].init, "%s", pods[i].text);
    }
}

Test(pod_view, a_cluster_that_knows_no_sidecars_keeps_the_pod_waiting_in_vain)
{
    SCOPED_FREE struct pod_record *record = record_of("{\"spec\":{\"initContainers\":[{\"name\":\"coxswain-restore-0\"}"
                                                      ",{\"name\":\"coxswain-sync-0\"}],\"containers\":[{"
                                                      "\"name\":\"trainer\"}]},\"status\":{\"phase\":\"Pending\","
                                                      "\"initContainerStatuses\":[{\"name\":\"coxswain-sync-0\","
                                                      "\"state\":{\"running\":{}}}]}}");
    struct pod_view view = pod_record_view(record, &(struct pod_room){0});
    cr_assert(pod_view_waits_in_vain(&view));
    cr_assert_str_eq(view.init_container, "coxswain-sync-0");
    cr_assert(strstr(view.waiting_message, "1.29"), "%s", view.waiting_message);
}
