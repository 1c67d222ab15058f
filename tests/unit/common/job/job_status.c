/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/job_status.h"

#include "common/memory.h"
#include "manifest.h"
#include "tests/unit/json_of.h"

static const char full[] =
    "{\"observedGeneration\":2,\"readySummary\":\"3/4\",\"workers\":4,\"selector\":\"a=b\","
    "\"restarts\":{\"total\":3,\"failures\":1,\"disruptions\":2,\"outOfMemory\":0,\"ignored\":0},"
    "\"startTime\":\"2026-11-20T14:00:00.125000Z\",\"completionTime\":\"2026-11-20T14:02:00.875000Z\","
    "\"progress\":{\"step\":120,\"totalSteps\":300,\"percent\":40,\"epoch\":0,"
    "\"metrics\":[{\"name\":\"loss\",\"value\":\"0.031\"}],\"examplesPerSecond\":\"5123.4\","
    "\"secondsRemaining\":35,\"lastCheckpointStep\":100,\"goodput\":\"0.98\","
    "\"updatedAt\":\"2026-11-20T14:01:00Z\"},"
    "\"controllerState\":{\"attempt\":2,\"incarnation\":5,"
    "\"chargedAt\":\"2026-11-20T14:00:04.500000Z\",\"chargedAttempt\":1,"
    "\"progressedAt\":\"2026-11-20T14:01:00.250000Z\","
    "\"chiefFinishTime\":\"2026-11-20T14:02:00Z\",\"suspendedMilliseconds\":1500,"
    "\"recoveredRestarts\":2,\"recoveredFailures\":0,\"backoffUntil\":\"2026-11-20T14:00:05.250000Z\","
    "\"nodeFailures\":[{\"node\":\"gpu-7\",\"at\":\"2026-11-20T14:00:04.500000Z\",\"reason\":\"r\",\"sure\":true},"
    "{\"node\":\"gpu-8\",\"at\":\"2026-11-20T14:00:05.000000Z\",\"reason\":\"r\"}],"
    "\"stragglerReplacements\":[{\"pod\":\"digits-worker-1-4\",\"at\":\"2026-11-20T14:00:06.000000Z\"}],"
    "\"roles\":[{\"role\":\"worker\",\"pending\":\"0-2,3\",\"backingOff\":\"3\","
    "\"backoffUntil\":\"2026-11-20T14:00:05.250000Z\"}]},"
    "\"conditions\":[{\"type\":\"Running\",\"status\":\"False\",\"observedGeneration\":2,"
    "\"lastTransitionTime\":\"2026-11-20T14:00:04Z\",\"reason\":\"Lost\",\"message\":\"m\"},"
    "{\"type\":\"Restarting\",\"status\":\"True\",\"observedGeneration\":2,"
    "\"lastTransitionTime\":\"2026-11-20T14:00:04Z\",\"reason\":\"Lost\",\"message\":\"\"}],"
    "\"replicaStatuses\":[{\"role\":\"worker\",\"active\":4,\"ready\":3,\"succeeded\":0,"
    "\"failed\":1}]}";

Test(job_status, comes_back_as_it_was)
{
    SCOPED_JSON *object = json_of(full);
    SCOPED(arena_release) struct arena arena = {0};
    struct job_status status;
    job_status_read(object, &status, &arena);
    cr_expect(job_status_state(&status) == CONDITION_RESTARTING && status.attempt == 2 &&
              status.restarts.disruptions == 2);
    cr_expect(status.backoff_until_ms == 1795183205250 && status.completion_ms == 1795183320875);
    cr_expect(status.conditions[CONDITION_RUNNING].status == CONDITION_FALSE);
    cr_expect(status.conditions[CONDITION_FAILED].status == CONDITION_ABSENT);
    cr_expect(status.replicas[ROLE_WORKER].ready == 3 && status.replicas[ROLE_PS].active == 0);
    cr_expect(status.progress.data_epoch == 0 && status.progress.metric_count == 1);
    SCOPED_JSON *again = job_status_to_json(&status);
    expect_printed(again, full);
}

Test(job_status, an_absent_one_counts_from_zero)
{
    SCOPED(arena_release) struct arena arena = {0};
    struct job_status status;
    job_status_read(NULL, &status, &arena);
    cr_expect(status.incarnation == 0 && status.attempt == 0);
    cr_expect_str_eq(job_state_name(job_status_state(&status)), "Pending");
    cr_expect(status.start_ms == FIELD_UNSET && status.backoff_until_ms == FIELD_UNSET);
    cr_expect(status.progress.step == FIELD_UNSET && status.progress.examples_per_second == NULL);
}

/* Conditions of other programs stay when the operator's own change. */
Test(job_status, keeps_conditions_of_others)
{
    static const char theirs[] = "{\"type\":\"example.com/Billed\",\"status\":\"True\",\"reason\":\"Paid\"}";
    SCOPED_FREE char *text = memory_format("{\"conditions\":[%s,{\"type\":\"Running\",\"status\":\"True\"}]}", theirs);
    SCOPED_JSON *object = json_of(text);
    SCOPED(arena_release) struct arena arena = {0};
    struct job_status status;
    job_status_read(object, &status, &arena);
    status.conditions[CONDITION_RUNNING].status = CONDITION_ABSENT;
    SCOPED_JSON *again = job_status_to_json(&status);
    SCOPED_BUFFER printed = BUFFER_INIT(4096);
    cr_assert_eq(json_print(json_at(again, "conditions"), &printed, NULL), 0);
    SCOPED_FREE char *expected = memory_format("[%s]", theirs);
    cr_assert_str_eq(buffer_text(&printed), expected);
}

Test(job_status, bears_what_is_wrong)
{
    SCOPED_JSON *object =
        json_of("{\"controllerState\":{\"incarnation\":\"5\",\"roles\":7},\"startTime\":\"noon\",\"conditions\":[1,"
                "{\"type\":\"Odd\",\"status\":\"True\"},{\"type\":\"Failed\",\"status\":\"Maybe\"}],"
                "\"replicaStatuses\":{\"role\":\"worker\"},\"progress\":[],\"restarts\":7}");
    SCOPED(arena_release) struct arena arena = {0};
    struct job_status status;
    job_status_read(object, &status, &arena);
    cr_expect(status.incarnation == 0 && job_status_state(&status) == CONDITION_TYPE_COUNT &&
              status.start_ms == FIELD_UNSET);
    cr_expect(status.conditions[CONDITION_FAILED].status == CONDITION_ABSENT);
    cr_expect(status.replicas[ROLE_WORKER].active == 0);
}

Test(job_status, takes_no_more_metrics_than_it_has_room_for)
{
    SCOPED_JSON *object = json_new_object();
    struct json *metrics = json_set_array(json_set_object(object, "progress"), "metrics");
    for (int i = 0; i < 40; i++)
        json_set_string(json_append(metrics, json_new_object()), "name", "m");
    SCOPED(arena_release) struct arena arena = {0};
    struct job_status status;
    job_status_read(object, &status, &arena);
    cr_expect(status.progress.metric_count == 16);
}

Test(job_status, roles_states_and_conditions_have_names)
{
    enum role role;
    cr_expect(role_parse("ps", &role) && role == ROLE_PS);
    cr_expect(!role_parse("boss", &role));
    cr_expect_str_eq(role_name(ROLE_EVALUATOR), "evaluator");
    cr_expect_str_eq(job_state_name(CONDITION_SUSPENDED), "Suspended");
    cr_expect_str_eq(condition_type_name(CONDITION_SCHEDULED), "Scheduled");
}

/* The column STATE is a JSONPath for the first condition that is True, so their order in the list is a promise. */
Test(job_status, the_first_condition_that_is_true_is_the_state)
{
    struct job_status status = {.attempt = 1};
    static const enum condition_type order[] = {CONDITION_CREATED, CONDITION_SCHEDULED, CONDITION_RESTARTING,
                                                CONDITION_RUNNING, CONDITION_SUSPENDED, CONDITION_FAILED};
    status.conditions[CONDITION_CHECKPOINTS_FAILING].status = CONDITION_TRUE;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        status.conditions[order[i]] = (struct condition){.status = CONDITION_TRUE, .reason = "Any"};
        SCOPED_JSON *object = job_status_to_json(&status);
        cr_expect_eq(job_status_state(&status), order[i]);
        cr_expect_str_eq(json_string_at(json_first(json_at(object, "conditions")), "type", ""),
                         condition_type_name(order[i]));
    }
}

/* A condition without a reason would have the API refuse the whole status. */
Test(job_status, a_condition_always_has_a_reason_a_message_and_a_time)
{
    struct job_status status = {.attempt = 1};
    status.conditions[CONDITION_RUNNING].status = CONDITION_FALSE;
    SCOPED_JSON *object = job_status_to_json(&status);
    const struct json *condition = json_first(json_at(object, "conditions"));
    cr_expect_str_eq(json_string_at(condition, "reason", ""), "Unknown");
    cr_expect_str_eq(json_string_at(condition, "message", "none"), "");
    cr_expect_str_eq(json_string_at(condition, "lastTransitionTime", ""), "1970-01-01T00:00:00Z");
}

/* The API refuses a status with more than sixteen of them. */
Test(job_status, leaves_room_for_its_own_conditions)
{
    SCOPED_JSON *object = json_new_object();
    for (int i = 0; i < 16; i++) {
        struct json *item = json_new_object();
        SCOPED_FREE char *name = memory_format("example.com/C%d", i);
        json_set_string(item, "type", name);
        json_append(json_set_array(object, "conditions"), item);
    }
    SCOPED(arena_release) struct arena arena = {0};
    struct job_status status;
    job_status_read(object, &status, &arena);
    for (int type = 0; type < CONDITION_TYPE_COUNT; type++)
        status.conditions[type].status = CONDITION_TRUE;
    SCOPED_JSON *again = job_status_to_json(&status);
    cr_assert_eq(json_count(json_at(again, "conditions")), 16);
}
