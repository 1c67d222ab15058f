/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/training_job.h"

#include <stdio.h>

#include "manifest.h"

static const char elastic[] =
    "apiVersion: coxswain.dev/v1alpha1\n"
    "kind: TrainingJob\n"
    "metadata: {name: digits, namespace: ml, uid: u-1, resourceVersion: \"12\", generation: 3,\n"
    "  creationTimestamp: \"2026-11-20T14:00:00Z\"}\n"
    "spec:\n"
    "  strategy: {type: ParameterServer}\n"
    "  workers: 3\n"
    "  elastic: {minWorkers: 2, maxWorkers: 8}\n"
    "  roles:\n"
    "  - {name: chief}\n"
    "  - {name: ps, count: 2, template: {spec: {nodeName: a}}}\n"
    "  - {name: worker, template: {metadata: {labels: {a: b}}}}\n"
    "  model: {preset: mlp}\n"
    "  data: {format: synthetic, examples: 10}\n"
    "  training: {epochs: 1, batchSize: 8}\n"
    "  storage: [{name: runs, persistentVolumeClaim: {claimName: c}}]\n"
    "  checkpoint: {storage: runs}\n"
    "  runPolicy: {activeDeadlineSeconds: 60, cleanPodPolicy: None}\n"
    "status: {controllerState: {incarnation: 4}, startTime: \"2026-11-20T14:00:01Z\"}\n";

Test(training_job, reads_metadata_spec_and_status)
{
    SCOPED_JSON *object = manifest_value(elastic);
    SCOPED(training_job_release) struct training_job job;
    struct error error = ERROR_INIT;
    cr_assert(training_job_parse(object, &job, &error) == 0, "%s", error.message);
    cr_expect_str_eq(job.name, "digits");
    cr_expect_str_eq(job.namespace, "ml");
    cr_expect_str_eq(job.uid, "u-1");
    cr_expect_str_eq(job.resource_version, "12");
    cr_expect(job.generation == 3 && job.created_ms == 1795183200000 && job.deleted_ms == FIELD_UNSET);
    cr_expect(job.framework == FRAMEWORK_COXSWAIN && job.image == NULL);
    cr_expect(job.roles[ROLE_WORKER].count == 3 && job.roles[ROLE_PS].count == 2 && job.roles[ROLE_CHIEF].count == 1);
    cr_expect(job.roles[ROLE_EVALUATOR].count == 0 && job.roles[ROLE_CHIEF].template == NULL);
    cr_expect_str_eq(json_string_at(job.roles[ROLE_PS].template, "spec.nodeName", ""), "a");
    cr_expect_str_eq(json_string_at(job.roles[ROLE_WORKER].template, "metadata.labels.a", ""), "b");
    cr_expect(job.elastic.enabled && job.elastic.min_workers == 2 && job.elastic.max_workers == 8);
    cr_expect(!job.run_policy.suspend && job.run_policy.backoff_limit == 6);
    cr_expect(job.run_policy.active_deadline_seconds == 60);
    cr_expect(job.run_policy.ttl_seconds_after_finished == FIELD_UNSET);
    cr_expect(job.run_policy.clean_pod_policy == CLEAN_NONE && job.run_policy.restart_scope == RESTART_SCOPE_AUTO);
    expect_printed(job.document.storage[0].source, "{\"persistentVolumeClaim\":{\"claimName\":\"c\"}}");
    cr_expect_str_eq(job.document.checkpoint.path, "digits");
    cr_expect_str_eq(job.document.job_name, "digits");
    cr_expect(job.status.incarnation == 4 && job.status.start_ms == 1795183201000);
    cr_expect(job.document.crew.role_count == 0 && job.document.crew.port == FIELD_UNSET);
}

Test(training_job, the_document_for_workers_has_no_templates)
{
    SCOPED_JSON *object = manifest_value(elastic);
    SCOPED(training_job_release) struct training_job job;
    cr_assert(training_job_parse(object, &job, NULL) == 0);
    SCOPED_JSON *document = job_document_to_json(&job.document);
    expect_printed(document,
                   "{\"strategy\":{\"type\":\"ParameterServer\"},\"workers\":3,\"model\":{\"preset\":\"mlp\"},"
                   "\"data\":{\"format\":\"synthetic\",\"examples\":10},"
                   "\"training\":{\"epochs\":1,\"batchSize\":8},\"storage\":[{\"name\":\"runs\"}],"
                   "\"checkpoint\":{\"storage\":\"runs\",\"path\":\"digits\"},\"name\":\"digits\","
                   "\"namespace\":\"ml\"}");
}

Test(training_job, a_wrong_spec_still_gives_metadata_and_status)
{
    static const char *const specs[] = {"spec: {strategy: {type: Nonsense}, workers: 7}\n", "spec: [1]\n", "{}\n"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        SCOPED_JSON *object = manifest_value(specs[i]);
        json_set_string(json_set_object(object, "metadata"), "name", "digits");
        json_set_integer(json_set_object(json_set_object(object, "status"), "controllerState"), "incarnation", 9);
        SCOPED(training_job_release) struct training_job job;
        struct error error = ERROR_INIT;
        cr_expect(training_job_parse(object, &job, &error) < 0);
        cr_expect(error.kind == ERROR_INVALID && strncmp(error.message, "spec", 4) == 0, "%s", error.message);
        cr_expect_str_eq(job.name, "digits");
        cr_expect(job.status.incarnation == 9);
        cr_expect(job.roles[ROLE_WORKER].count == 0);
    }
}

Test(training_job, defaults_are_filled_in_place)
{
    SCOPED_JSON *object = manifest_value("spec:\n  strategy: {type: OneDevice}\n  workers: null\n"
                                         "  training: {epochs: 1, batchSize: 2, optimizer: {type: adamw}}\n"
                                         "  storage: [{name: a, emptyDir: {}}]\n");
    training_job_default(object);
    const struct json *spec = json_member(object, "spec");
    cr_expect(json_integer_at(spec, "workers", 0) == 1);
    cr_expect_str_eq(json_string_at(spec, "framework", ""), "Coxswain");
    cr_expect_str_eq(json_string_at(spec, "training.optimizer.type", ""), "adamw");
    cr_expect_str_eq(json_string_at(spec, "training.optimizer.schedule.type", ""), "constant");
    cr_expect_str_eq(json_string_at(spec, "runPolicy.cleanPodPolicy", ""), "Running");
    cr_expect(json_type(json_member(json_first(json_member(spec, "storage")), "readOnly")) == JSON_BOOLEAN);
    cr_expect(json_member(spec, "model") == NULL);
    SCOPED_JSON *again = json_copy(object);
    training_job_default(again);
    cr_expect(json_equal(object, again));
}

/* Applies `patch` to the elastic job and tells the first field that an update may not change; NULL when all is well. */
static const char *first_violation(const char *patch)
{
    static char field[128];
    SCOPED_JSON *old = manifest_value(elastic);
    struct json *object = json_copy(old);
    SCOPED_JSON *change = manifest_value(patch);
    json_merge_patch(&object, change);
    SCOPED_JSON *violations = training_job_violations(object, old);
    json_free(object);
    snprintf(field, sizeof field, "%s", json_string_at(json_first(violations), "field", ""));
    return *field ? field : NULL;
}

Test(training_job, only_a_few_fields_may_change)
{
    static const struct {
        const char *patch, *field;
    } cases[] = {
        {"spec: {runPolicy: {suspend: true}}", NULL},
        {"spec: {runPolicy: {activeDeadlineSeconds: 5, ttlSecondsAfterFinished: 9}}", NULL},
        {"spec: {runPolicy: {activeDeadlineSeconds: null}}", NULL},
        {"spec: {workers: 8}", NULL},
        {"spec: {framework: Coxswain}", NULL}, /* the default, said aloud */
        {"metadata: {labels: {a: b}}", NULL},
        {"status: {workers: 5}", NULL},
        {"spec: {workers: 9}", "spec.workers"},
        {"spec: {runPolicy: {backoffLimit: 7}}", "spec.runPolicy.backoffLimit"},
        {"spec: {runPolicy: {managedBy: a.b/c}}", "spec.runPolicy.managedBy"},
        {"spec: {elastic: {maxWorkers: 9}}", "spec.elastic"},
        {"spec: {image: x}", "spec.image"},
        {"spec: {training: {seed: 1}}", "spec.training"},
        {"spec: {checkpoint: null}", "spec.checkpoint"},
        {"spec: {roles: [{name: ps, count: 3}]}", "spec.roles"},
        {"spec: {storage: [{name: runs, emptyDir: {}}]}", "spec.storage"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *field = first_violation(cases[i].patch);
        cr_expect(field == cases[i].field || (field && cases[i].field && strcmp(field, cases[i].field) == 0), "%s: %s",
                  cases[i].patch, field ? field : "taken");
    }
}

Test(training_job, workers_are_fixed_unless_elastic)
{
    SCOPED_JSON *old = manifest_value(elastic);
    json_remove(json_member(old, "spec"), "elastic");
    SCOPED_JSON *object = json_copy(old);
    json_set_integer(json_member(object, "spec"), "workers", 4);
    SCOPED_JSON *violations = training_job_violations(object, old);
    expect_printed(violations,
                   "[{\"field\":\"spec.workers\",\"message\":\"workers may change only when elastic is set; "
                   "delete the job and create it anew\"}]");
}

Test(training_job, tells_all_that_is_wrong_up_to_a_ceiling)
{
    SCOPED_JSON *object = manifest_value("metadata: {name: UPPER}\nspec: {workers: 0, devices: {count: 0}}\n");
    SCOPED_JSON *violations = training_job_violations(object, NULL);
    cr_expect(json_count(violations) == 4); /* name, strategy, workers, devices.count */
    struct json *layers = json_set_array(json_set_object(json_member(object, "spec"), "model"), "layers");
    for (int i = 0; i < 200; i++)
        json_append(layers, json_new_integer(i));
    SCOPED_JSON *many = training_job_violations(object, NULL);
    cr_expect(json_count(many) == 32);
}

Test(training_job, unknown_fields_are_the_api_servers_to_prune)
{
    SCOPED_JSON *object = manifest_value(elastic);
    json_set_integer(json_member(object, "spec"), "novelty", 1);
    SCOPED_JSON *violations = training_job_violations(object, NULL);
    cr_expect(json_count(violations) == 0);
}
