/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/job_record.h"

#include <criterion/criterion.h>
#include <string.h>

#include "operator/controller/execute/status_patch.h"

static const char *const jobs[] = {
    "{}",
    "{\"metadata\":{\"name\":\"digits\",\"namespace\":\"ml\",\"uid\":\"0b8f7f5e-54d1-4a55-a0a5-7d3c6c0d3c11\","
    "\"resourceVersion\":\"12\",\"generation\":9007199254740991,\"creationTimestamp\":\"2026-11-20T14:00:00Z\","
    "\"labels\":{\"kueue.x-k8s.io/queue-name\":\"\\u00e9\\u0001\\\"\"}},\"spec\":{\"pytorch\":{},"
    "\"image\":\"pytorch\",\"runPolicy\":{\"activeDeadlineSeconds\":60},"
    "\"workers\":{\"replicas\":4,\"template\":{\"spec\":{\"containers\":[{\"name\":"
    "\"trainer\",\"command\":[\"train\"]}]}}}},\"status\":{\"controllerState\":{\"incarnation\":1,\"attempt\":1,"
    "\"roles\":[{\"role\":\"worker\",\"pending\":\"0-3,7\"}]},"
    "\"restarts\":{\"failures\":2},\"startTime\":\"2026-11-20T14:00:01Z\",\"conditions\":[{\"type\":\"Running\","
    "\"status\":\"True\",\"reason\":\"AllReady\",\"message\":\"all pods are ready\",\"lastTransitionTime\":"
    "\"2026-11-20T14:00:02Z\"},{\"type\":\"Others\",\"status\":\"\\u0001\"}],\"replicaStatuses\":[{\"role\":\"worker\","
    "\"active\":4,\"ready\":3}],\"progress\":{\"step\":1200,\"metrics\":[{\"name\":\"loss\","
    "\"value\":\"0.03125\"}],\"goodput\":\"0.987\"}}}",
    "{\"metadata\":{\"name\":17,\"uid\":[],\"generation\":-9007199254740991},\"spec\":{\"workers\":{\"replicas\":-1},"
    "\"coxswain\":[]},"
    "\"status\":{\"controllerState\":{\"incarnation\":9007199254740991},\"restarts\":{\"total\":-1},\"conditions\":{},"
    "\"progress\":7}}",
};

static void expect_equal(const struct training_job *job, const struct training_job *again)
{
    SCOPED_JSON *status = job_status_to_json(&job->status);
    SCOPED_JSON *status_again = job_status_to_json(&again->status);
    SCOPED_JSON *document = job_document_to_json(&job->document);
    SCOPED_JSON *document_again = job_document_to_json(&again->document);
    cr_expect(json_equal(status, status_again));
    cr_expect(json_equal(document, document_again));
    cr_expect_str_eq(job->name, again->name);
    cr_expect_str_eq(job->uid, again->uid);
    cr_expect_eq(job->generation, again->generation);
    cr_expect_eq(job->created_ms, again->created_ms);
    cr_expect_eq(job->deleted_ms, again->deleted_ms);
    cr_expect_eq(job->run_policy.active_deadline_seconds, again->run_policy.active_deadline_seconds);
    cr_expect_eq(job->roles[ROLE_WORKER].count, again->roles[ROLE_WORKER].count);
    cr_expect(json_equal(job->roles[ROLE_WORKER].template, again->roles[ROLE_WORKER].template));
    cr_expect((job->queue_name == NULL) == (again->queue_name == NULL));
    if (job->queue_name && again->queue_name)
        cr_expect_str_eq(job->queue_name, again->queue_name);
}

Test(job_record, a_job_comes_back_as_it_was_parsed)
{
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        SCOPED_JSON *object = NULL;
        SCOPED(training_job_release) struct training_job job = {0};
        struct error error = ERROR_INIT;
        cr_assert_eq(json_parse(jobs[i], strlen(jobs[i]), 1 << 20, &object, &error), 0, "%s", error.message);
        bool valid = training_job_parse(object, &job, &error) == 0;
        struct job_record *record = job_record_read(object);
        struct training_job again = job_record_view(record);
        expect_equal(&job, &again);
        if (valid)
            cr_expect_null(job_record_invalid(record));
        else
            cr_expect_str_eq(job_record_invalid(record), error.message);
        job_record_free(record);
    }
}

Test(job_record, a_job_has_what_its_class_gives_and_no_copy_of_the_class)
{
    static const char text[] =
        "{\"spec\":{\"jax\":{},\"trainingClass\":{\"name\":\"gpu\"}},\"status\":{\"trainingClass\":{"
        "\"name\":\"gpu\",\"uid\":\"u\",\"generation\":2,\"defaults\":{\"image\":\"i\",\"template\":{"
        "\"spec\":{\"nodeName\":\"n\"}}}}}}";
    SCOPED_JSON *object = NULL;
    cr_assert_eq(json_parse(text, strlen(text), 1 << 20, &object, NULL), 0);
    struct job_record *record = job_record_read(object);
    struct training_job job = job_record_view(record);
    cr_expect_null(job_record_invalid(record), "%s", job_record_invalid(record));
    cr_expect_str_eq(job.image, "i");
    cr_expect_str_eq(json_string_at(job.roles[ROLE_WORKER].template, "spec.nodeName", ""), "n");
    cr_expect_not(training_job_awaits_class(&job));
    cr_expect_eq(json_count(job.status.training_class.defaults), 0);
    struct job_status after = job.status;
    after.incarnation = 3;
    SCOPED_JSON *patch = status_patch(&job, &after);
    cr_expect_null(json_at(patch, "status.trainingClass"), "the status keeps it");
    job_record_free(record);
}
