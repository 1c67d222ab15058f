/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/training_job.h"

#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "manifest.h"

static const char elastic[] =
    "apiVersion: coxswain.dev/v1beta1\n"
    "kind: TrainingJob\n"
    "metadata: {name: digits, namespace: ml, uid: u-1, resourceVersion: \"12\", generation: 3,\n"
    "  creationTimestamp: \"2026-11-20T14:00:00Z\"}\n"
    "spec:\n"
    "  workers: {replicas: 3, minReplicas: 2, maxReplicas: 8, template: {metadata: {labels: {a: b}}}}\n"
    "  chief: {}\n"
    "  parameterServers: {replicas: 2, template: {spec: {nodeName: a}}}\n"
    "  storage: [{name: runs, persistentVolumeClaim: {claimName: c}}]\n"
    "  coxswain:\n"
    "    strategy: {type: ParameterServer}\n"
    "    model: {preset: mlp}\n"
    "    data: {format: Synthetic, examples: 10}\n"
    "    training: {epochs: 1, batchSize: 8}\n"
    "    checkpoint: {storage: runs}\n"
    "  runPolicy: {activeDeadlineSeconds: 60, progressDeadlineSeconds: 30, cleanPodPolicy: None}\n"
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
    cr_expect(!job.suspend && job.run_policy.backoff_limit == 6);
    cr_expect(job.run_policy.active_deadline_seconds == 60 && job.run_policy.progress_deadline_seconds == 30);
    cr_expect(job.run_policy.ttl_seconds_after_finished == FIELD_UNSET);
    cr_expect(job.run_policy.clean_pod_policy == CLEAN_NONE && job.run_policy.restart_scope == RESTART_SCOPE_AUTO);
    expect_printed(job.document.storage[0].source, "{\"persistentVolumeClaim\":{\"claimName\":\"c\"}}");
    cr_expect_str_eq(job.document.checkpoint.path, "digits");
    cr_expect_str_eq(job.document.job_name, "digits");
    cr_expect(job.status.incarnation == 4 && job.status.start_ms == 1795183201000);
    cr_expect(job.document.crew.role_count == 0 && job.document.crew.port == FIELD_UNSET);
}

static void expect_checkpoint_path(const char *metadata, const char *storage, const char *checkpoint, const char *path)
{
    SCOPED_FREE char *text = memory_format("metadata: {%s}\n"
                                           "spec:\n"
                                           "  storage: [{name: runs, %s}]\n"
                                           "  coxswain:\n"
                                           "    strategy: {type: MultiWorkerMirrored}\n"
                                           "    model: {preset: mlp}\n"
                                           "    data: {format: Synthetic, examples: 10}\n"
                                           "    training: {epochs: 1, batchSize: 8}\n"
                                           "    checkpoint: {storage: runs%s}\n",
                                           metadata, storage, checkpoint);
    SCOPED_JSON *object = manifest_value(text);
    SCOPED(training_job_release) struct training_job job;
    struct error error = ERROR_INIT;
    cr_assert(training_job_parse(object, &job, &error) == 0, "%s", error.message);
    cr_expect_str_eq(job.document.checkpoint.path, path);
}

/* Two jobs of the same name, in two namespaces, must not go on from each other's checkpoints. */
Test(training_job, checkpoints_of_two_namespaces_are_apart_in_a_bucket)
{
    static const char bucket[] = "s3: {endpoint: \"http://minio:9000\", bucket: runs}";
    static const char prefixed[] = "s3: {endpoint: \"http://minio:9000\", bucket: runs, prefix: all}";
    expect_checkpoint_path("name: digits, namespace: ml", bucket, "", "ml/digits");
    expect_checkpoint_path("name: digits, namespace: other", bucket, "", "other/digits");
    expect_checkpoint_path("name: digits, namespace: other", prefixed, "", "other/digits");
    expect_checkpoint_path("name: digits, namespace: ml", bucket, ", path: digits", "digits");
    expect_checkpoint_path("name: digits", bucket, "", "digits");
    expect_checkpoint_path("name: digits, namespace: ml", "persistentVolumeClaim: {claimName: c}", "", "digits");
}

/* The schema lets any framework have 1000 pods of a role, which its message says; a crew of ours is smaller. */
Test(training_job, the_limit_of_a_crew_says_for_which_framework_it_holds)
{
    SCOPED_JSON *object = manifest_value("metadata: {name: digits}\n"
                                         "spec:\n"
                                         "  workers: {replicas: 129}\n"
                                         "  coxswain:\n"
                                         "    strategy: {type: MultiWorkerMirrored}\n"
                                         "    model: {preset: mlp}\n"
                                         "    data: {format: Synthetic, examples: 1000}\n"
                                         "    training: {epochs: 1, batchSize: 256}\n");
    SCOPED_JSON *violations = training_job_violations(object, NULL);
    const struct json *first = json_first(violations);
    cr_assert_eq(json_count(violations), 1);
    cr_expect_str_eq(json_string_at(first, "field", ""), "spec.workers.replicas");
    cr_expect_str_eq(
        json_string_at(first, "message", ""),
        "with coxswain a crew has at most 128 members that train, its chief among them, and only with other "
        "frameworks up to 1000; lower replicas");
}

static void expect_pause_step(const char *metadata, int64_t step)
{
    SCOPED_JSON *object = manifest_value(elastic);
    SCOPED(training_job_release) struct training_job job;
    struct error error = ERROR_INIT;
    json_set(object, "metadata", manifest_value(metadata));
    cr_assert_eq(training_job_parse(object, &job, &error), 0, "%s", error.message);
    cr_expect_eq(job.pause_step, step, "%s: %lld", metadata, (long long)job.pause_step);
}

/* A job waits for the decision of a sweep that exists, and for nothing else. */
Test(training_job, only_the_trial_of_a_sweep_pauses)
{
#define PAUSE "name: j, namespace: n, annotations: {coxswain.dev/pause-step: "
#define OWNER(kind, controls)                                                                                          \
    ", ownerReferences: [{apiVersion: coxswain.dev/v1beta1, kind: " kind ", name: s, uid: u, controller: " controls "}]"
    expect_pause_step("{" PAUSE "'20'}" OWNER("TrainingSweep", "true") "}", 20);
    expect_pause_step("{" PAUSE "'20'}}", FIELD_UNSET);
    expect_pause_step("{" PAUSE "'20'}" OWNER("TrainingSweep", "false") "}", FIELD_UNSET);
    expect_pause_step("{" PAUSE "'20'}" OWNER("Workflow", "true") "}", FIELD_UNSET);
    expect_pause_step("{" PAUSE "'20'}, labels: {kueue.x-k8s.io/prebuilt-workload-name: w}}", 20);
    expect_pause_step("{" PAUSE "'20 steps'}" OWNER("TrainingSweep", "true") "}", FIELD_UNSET);
    expect_pause_step("{" PAUSE "'0'}" OWNER("TrainingSweep", "true") "}", FIELD_UNSET);
}

Test(training_job, the_trial_of_a_sweep_names_it)
{
    SCOPED_JSON *object = manifest_value(elastic);
    SCOPED(training_job_release) struct training_job job;
    cr_assert(training_job_parse(object, &job, NULL) == 0 && !job.sweep_uid);
    SCOPED(training_job_release) struct training_job trial;
    json_set(object, "metadata", manifest_value("{name: j, namespace: n" OWNER("TrainingSweep", "true") "}"));
    cr_assert(training_job_parse(object, &trial, NULL) == 0 && trial.sweep_uid);
    cr_expect_str_eq(trial.sweep_uid, "u");
}

Test(training_job, the_document_for_workers_has_no_templates)
{
    SCOPED_JSON *object = manifest_value(elastic);
    SCOPED(training_job_release) struct training_job job;
    cr_assert(training_job_parse(object, &job, NULL) == 0);
    SCOPED_JSON *document = job_document_to_json(&job.document);
    expect_printed(document, "{\"strategy\":{\"type\":\"ParameterServer\"},\"model\":{\"preset\":\"mlp\"},"
                             "\"data\":{\"format\":\"Synthetic\",\"examples\":10},"
                             "\"training\":{\"epochs\":1,\"batchSize\":8},"
                             "\"checkpoint\":{\"storage\":\"runs\",\"path\":\"digits\"},\"name\":\"digits\","
                             "\"namespace\":\"ml\",\"workers\":{\"replicas\":3},\"storage\":[{\"name\":\"runs\"}]}");
}

/* A foreign framework's section has a folder for checkpoints, and nothing of ours. */
Test(training_job, a_foreign_framework_is_told_by_its_section)
{
    static const struct {
        const char *section;
        enum framework framework;
    } cases[] = {{"pytorch", FRAMEWORK_PYTORCH}, {"tensorflow", FRAMEWORK_TENSORFLOW}, {"jax", FRAMEWORK_JAX}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCOPED_JSON *object =
            manifest_value("metadata: {name: x}\nspec: {image: a, storage: [{name: runs, emptyDir: {}}]}\n");
        struct json *section = json_set_object(json_member(object, "spec"), cases[i].section);
        json_set_string(json_set_object(section, "checkpoint"), "storage", "runs");
        SCOPED(training_job_release) struct training_job job;
        struct error error = ERROR_INIT;
        cr_assert(training_job_parse(object, &job, &error) == 0, "%s", error.message);
        cr_expect(job.framework == cases[i].framework && job.document.checkpoint.enabled);
        cr_expect_str_eq(job.document.checkpoint.storage, "runs");
        cr_expect_str_eq(job.document.checkpoint.path, "x");
    }
}

Test(training_job, patterns_of_a_log_are_compiled)
{
    static const struct {
        const char *patterns, *words;
    } cases[] = {
        {"['step (?<step>\\d+)', 'loss (?<loss>\\S+)']", ""},
        {"['loss (?<loss>\\S+']", "spec.pytorch.progress.logPatterns[0]: 'loss (?<loss>\\S+' is not a valid regular "
                                  "expression (PCRE2): missing closing "
                                  "parenthesis at character 16"},
        {"['(?<a>1)', 'loss']",
         "spec.pytorch.progress.logPatterns[1]: 'loss' has no named group, such as (?<loss>[0-9.]+)"},
        {"[]", "spec.pytorch.progress.logPatterns: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCOPED_FREE char *manifest = memory_format(
            "metadata: {name: x}\nspec: {image: a, pytorch: {progress: {logPatterns: %s}}}\n", cases[i].patterns);
        SCOPED_JSON *object = manifest_value(manifest);
        SCOPED(training_job_release) struct training_job job;
        struct error error = ERROR_INIT;
        cr_expect_eq(training_job_parse(object, &job, &error), *cases[i].words ? -1 : 0);
        cr_expect_eq(strncmp(error.message, cases[i].words, strlen(cases[i].words)), 0, "%s", error.message);
        if (*cases[i].words == '\0') {
            cr_assert_eq(job.document.progress.log_pattern_count, 2);
            cr_expect_str_eq(job.document.progress.log_patterns[1], "loss (?<loss>\\S+)");
        }
    }
}

Test(training_job, a_wrong_spec_still_gives_metadata_and_status)
{
    static const char *const specs[] = {
        "spec: {coxswain: {strategy: {type: Nonsense}}, workers: {replicas: 7}, chief: {}}\n", "spec: [1]\n", "{}\n"};
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
        cr_expect(job.roles[ROLE_WORKER].count == 0 && job.roles[ROLE_CHIEF].count == 0);
    }
}

Test(training_job, a_spec_that_is_refused_later_still_tells_which_pods_a_job_has)
{
    SCOPED_JSON *object =
        manifest_value("spec: {coxswain: {strategy: {type: Nonsense}}, workers: {replicas: 7}, chief: "
                       "{}, parameterServers: {replicas: many}}\n");
    json_set_integer(json_set_object(json_set_object(object, "status"), "controllerState"), "attempt", 1);
    SCOPED(training_job_release) struct training_job job;
    cr_expect(training_job_parse(object, &job, NULL) < 0);
    cr_expect(job.roles[ROLE_WORKER].count == 7 && job.roles[ROLE_CHIEF].count == 1);
    cr_expect(job.roles[ROLE_EVALUATOR].count == 0 && job.roles[ROLE_PS].count == FIELD_UNSET);
}

Test(training_job, defaults_are_filled_in_place)
{
    SCOPED_JSON *object = manifest_value("spec:\n  workers: {replicas: null}\n"
                                         "  storage: [{name: a, emptyDir: {}}]\n"
                                         "  coxswain:\n    strategy: {type: OneDevice}\n"
                                         "    training: {epochs: 1, batchSize: 2, optimizer: {type: AdamW}}\n");
    training_job_default(object);
    const struct json *spec = json_member(object, "spec");
    cr_expect(json_integer_at(spec, "workers.replicas", 0) == 1);
    cr_expect(!json_boolean_at(spec, "suspend", true) && json_member(spec, "pytorch") == NULL);
    cr_expect_str_eq(json_string_at(spec, "coxswain.training.optimizer.type", ""), "AdamW");
    cr_expect_str_eq(json_string_at(spec, "coxswain.training.optimizer.schedule.type", ""), "Constant");
    cr_expect_str_eq(json_string_at(spec, "runPolicy.cleanPodPolicy", ""), "Running");
    cr_expect(json_type(json_member(json_first(json_member(spec, "storage")), "readOnly")) == JSON_BOOLEAN);
    cr_expect(json_at(spec, "coxswain.model") == NULL);
    SCOPED_JSON *again = json_copy(object);
    training_job_default(again);
    cr_expect(json_equal(object, again));
}

/* Applies `patch` to `old` and tells the first field that an update may not change; NULL when all is well. */
static const char *first_violation(const struct json *old, const char *patch)
{
    static char field[128];
    struct json *object = json_copy(old);
    SCOPED_JSON *change = manifest_value(patch);
    json_merge_patch(&object, change);
    SCOPED_JSON *violations = training_job_violations(object, old);
    json_free(object);
    snprintf(field, sizeof field, "%s", json_string_at(json_first(violations), "field", ""));
    return *field ? field : NULL;
}

static void expect_field(const char *patch, const char *field, const char *wanted)
{
    cr_expect(field == wanted || (field && wanted && strcmp(field, wanted) == 0), "%s: %s", patch,
              field ? field : "taken");
}

Test(training_job, only_a_few_fields_may_change)
{
    static const struct {
        const char *patch, *field;
    } cases[] = {
        {"spec: {suspend: true}", NULL},
        {"spec: {runPolicy: {activeDeadlineSeconds: 5, ttlSecondsAfterFinished: 9}}", NULL},
        {"spec: {runPolicy: {activeDeadlineSeconds: null}}", NULL},
        {"spec: {workers: {replicas: 8}}", NULL},
        {"spec: {devices: {type: CPU}}", NULL}, /* the default, said aloud */
        {"metadata: {labels: {a: b}}", NULL},
        {"status: {workers: 5}", NULL},
        {"spec: {workers: {replicas: 9}}", "spec.workers.replicas"},
        {"spec: {managedBy: a.b/c}", "spec.managedBy"},
        {"spec: {workers: {maxReplicas: 9}}", "spec.workers.maxReplicas"},
        {"spec: {coxswain: {training: {seed: 1}}}", "spec.coxswain"},
        {"spec: {coxswain: {checkpoint: null}}", "spec.coxswain"},
        {"spec: {parameterServers: {replicas: 3}}", "spec.parameterServers.replicas"},
        {"spec: {chief: null}", "spec.chief"},
        {"spec: {storage: [{name: runs, emptyDir: {}}]}", "spec.storage"},
    };
    SCOPED_JSON *old = manifest_value(elastic);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_field(cases[i].patch, first_violation(old, cases[i].patch), cases[i].field);
}

/* After a container was killed at its memory limit: suspend, raise the limit, resume. */
Test(training_job, a_suspended_job_without_pods_may_change_more)
{
    static const struct {
        const char *patch, *field;
    } cases[] = {
        {"spec: {image: x}", "spec.image"},
        {"spec: {runPolicy: {backoffLimit: 7}}", "spec.runPolicy.backoffLimit"},
        {"spec: {devices: {resourceName: a.b/c}}", "spec.devices.resourceName"},
        {"spec: {workers: {template: {metadata: {labels: {a: c}}}}}", "spec.workers.template"},
        {"spec: {workers: {template: null}}", "spec.workers.template"},
        {"spec: {chief: {template: {}}}", "spec.chief.template"},
        {"spec: {parameterServers: {template: {spec: {nodeName: b}}}}", "spec.parameterServers.template"},
    };
    SCOPED_JSON *running = manifest_value(elastic);
    SCOPED_JSON *leaving = json_copy(running); /* its pods are still there */
    json_set_boolean(json_member(leaving, "spec"), "suspend", true);
    SCOPED_JSON *suspended = json_copy(leaving);
    struct json *conditions = manifest_value("[{type: Suspended, status: \"True\"}]");
    json_set(json_member(suspended, "status"), "conditions", conditions);
    SCOPED_JSON *queued = json_copy(suspended); /* Kueue's queue: nobody has suspended it */
    json_set_boolean(json_member(queued, "spec"), "suspend", false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *patch = cases[i].patch;
        expect_field(patch, first_violation(running, patch), cases[i].field);
        expect_field(patch, first_violation(leaving, patch), cases[i].field);
        expect_field(patch, first_violation(queued, patch), cases[i].field);
        expect_field(patch, first_violation(suspended, patch), NULL);
    }
    expect_field("workers", first_violation(suspended, "spec: {workers: {minReplicas: 1}}"),
                 "spec.workers.minReplicas");
}

Test(training_job, workers_are_fixed_unless_elastic)
{
    SCOPED_JSON *old = manifest_value(elastic);
    json_remove(json_at(old, "spec.workers"), "minReplicas");
    json_remove(json_at(old, "spec.workers"), "maxReplicas");
    SCOPED_JSON *object = json_copy(old);
    json_set_integer(json_at(object, "spec.workers"), "replicas", 4);
    SCOPED_JSON *violations = training_job_violations(object, old);
    expect_printed(violations,
                   "[{\"field\":\"spec.workers.replicas\",\"message\":\"may change only with minReplicas and "
                   "maxReplicas; delete the job and create it anew\"}]");
}

Test(training_job, another_version_is_told_what_to_do)
{
    SCOPED_JSON *object = manifest_value("apiVersion: coxswain.dev/v1alpha1\nkind: TrainingJob\n");
    struct error error = ERROR_INIT;
    cr_assert(training_job_check_version(object, &error) < 0 && error.kind == ERROR_INVALID);
    cr_expect_str_eq(error.message, "apiVersion: coxswain.dev/v1alpha1 is not served, only coxswain.dev/v1beta1; `cox "
                                    "migrate FILE` translates a manifest of v1alpha1");
}

Test(training_job, lists_all_violations_up_to_a_limit)
{
    SCOPED_JSON *object =
        manifest_value("metadata: {name: UPPER}\n"
                       "spec: {workers: {replicas: 0}, devices: {count: 0}, coxswain: {model: {}, "
                       "data: {format: Synthetic, examples: 1}, training: {steps: 1, batchSize: 1}}}\n");
    SCOPED_JSON *violations = training_job_violations(object, NULL);
    cr_expect(json_count(violations) == 5); /* name, workers, devices.count, strategy, an empty model */
    struct json *layers = json_set_array(json_at(object, "spec.coxswain.model"), "layers");
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
