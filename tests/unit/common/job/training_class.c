/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/training_class.h"

#include <stdlib.h>
#include <string.h>

#include "common/job/template_overlay.h"
#include "common/job/training_job.h"
#include "manifest.h"

Test(training_class, the_jobs_value_wins)
{
    static const struct {
        const char *job, *class, *merged;
    } rows[] = {
        {"a: 1", "{}", "{\"a\":1}"},
        {"a: 1", "image: i", "{\"a\":1,\"image\":\"i\"}"},
        {"image: own", "image: i", "{\"image\":\"own\"}"},
        {"a: 1", "queueName: q", "{\"a\":1}"}, /* which is a label of jobs */
        {"storage: [{name: a, emptyDir: {}}]", "storage: [{name: a, nfs: {}}, {name: b, nfs: {}}]",
         "{\"storage\":[{\"name\":\"a\",\"emptyDir\":{}},{\"name\":\"b\",\"nfs\":{}}]}"},
        {"a: 1", "storage: [{name: b, nfs: {}}]", "{\"a\":1,\"storage\":[{\"name\":\"b\",\"nfs\":{}}]}"},
        {"runPolicy: {backoffLimit: 6, ttlSecondsAfterFinished: 9}",
         "runPolicy: {ttlSecondsAfterFinished: 1, activeDeadlineSeconds: 2}",
         "{\"runPolicy\":{\"backoffLimit\":6,\"ttlSecondsAfterFinished\":9,\"activeDeadlineSeconds\":2}}"},
        {"runPolicy: {failurePolicy: {rules: [1]}}", "runPolicy: {failurePolicy: {rules: [2, 3]}}",
         "{\"runPolicy\":{\"failurePolicy\":{\"rules\":[1]}}}"},
        /* templates, of the roles that there are */
        {"chief: {}", "template: {spec: {nodeName: n}}",
         "{\"chief\":{\"template\":{\"spec\":{\"nodeName\":\"n\"}}},"
         "\"workers\":{\"template\":{\"spec\":{\"nodeName\":\"n\"}}}}"},
        {"workers: {template: {spec: {nodeSelector: {a: own}}}}",
         "template: {metadata: {labels: {l: m}}, spec: {nodeSelector: {a: x, b: y}}}",
         "{\"workers\":{\"template\":{\"metadata\":{\"labels\":{\"l\":\"m\"}},\"spec\":{\"nodeSelector\":{\"a\":"
         "\"own\","
         "\"b\":\"y\"}}}}}"},
        {"workers: {template: {spec: {affinity: null}}}", "template: {spec: {affinity: {nodeAffinity: {}}}}",
         "{\"workers\":{\"template\":{\"spec\":{\"affinity\":null}}}}"}, /* nor does the operator's shine through */
        {"workers: {template: {spec: {tolerations: [{key: a, effect: NoSchedule, value: own}]}}}",
         "template: {spec: {tolerations: [{key: a, effect: NoSchedule}, {key: a, effect: NoExecute}]}}",
         "{\"workers\":{\"template\":{\"spec\":{\"tolerations\":[{\"key\":\"a\",\"effect\":\"NoSchedule\",\"value\":"
         "\"own\"},{\"key\":\"a\",\"effect\":\"NoExecute\"}]}}}}"},
        {"workers: {template: {spec: {containers: [{name: trainer, args: [x], env: [{name: A, value: own}]}]}}}",
         "template: {spec: {containers: [{name: trainer, args: [y, z], env: [{name: A, value: c}, {name: B, value: "
         "d}]}]}}",
         "{\"workers\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"args\":[\"x\"],\"env\":[{"
         "\"name\":"
         "\"A\",\"value\":\"own\"},{\"name\":\"B\",\"value\":\"d\"}]}]}}}}"},
        /* the main container is one, whatever each calls it; others stand beside it */
        {"workers: {template: {spec: {containers: [{name: main, args: [x]}]}}}",
         "template: {spec: {containers: [{name: log}, {name: trainer, stdin: true}]}}",
         "{\"workers\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"log\"},{\"name\":\"main\",\"stdin\":true,"
         "\"args\":[\"x\"]}]}}}}"},
        {"workers: {template: {spec: {containers: [{name: log, args: [x]}]}}}",
         "template: {spec: {containers: [{name: trainer, stdin: true}, {name: log}]}}",
         "{\"workers\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"stdin\":true},{\"name\":"
         "\"log\","
         "\"args\":[\"x\"]}]}}}}"},
        /* and runs the image that the job names */
        {"{image: own, workers: {}}", "{image: i, template: {spec: {containers: [{name: trainer, image: c}]}}}",
         "{\"image\":\"own\",\"workers\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\"}]}}}}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCOPED_JSON *spec = manifest_value(rows[i].job);
        SCOPED_JSON *class = manifest_value(rows[i].class);
        SCOPED_JSON *before = json_copy(class);
        training_class_merge(spec, class);
        expect_printed(spec, rows[i].merged);
        cr_expect(json_equal(class, before), "%zu", i);
    }
}

/* The operator refuses such a template, with a message, when it builds a pod (pod_build.c). */
Test(training_class, a_template_that_is_too_broad_is_left_alone)
{
    SCOPED_JSON *spec = manifest_value("workers: {template: {spec: {}}}");
    SCOPED_JSON *class = manifest_value("template: {spec: {nodeName: n}}");
    struct json *pod = json_at(spec, "workers.template.spec");
    for (int i = 0; i <= TEMPLATE_BREADTH_MAX; i++)
        json_append(json_set_array(pod, "volumes"), json_new_object());
    training_class_merge(spec, class);
    cr_expect_null(json_at(spec, "workers.template.spec.nodeName"));
    cr_expect_eq(json_count(json_at(spec, "workers.template.spec.volumes")), TEMPLATE_BREADTH_MAX + 1);
}

/* ---------------------------------------------------------------- what a class may be */

Test(training_class, what_is_wrong_with_a_class)
{
    static const char *const rows[][2] = {
        {"spec: {image: i, queueName: q, runPolicy: {activeDeadlineSeconds: 3}}", ""},
        {"spec: {}", ""},
        {"metadata: {}", "spec"},
        {"spec: {image: ''}", "spec.image"},
        {"spec: {storage: [{name: a}]}", "spec.storage"},
        {"spec: {storage: [{name: coxswain-a, emptyDir: {}}]}", "spec.storage"},
        {"spec: {runPolicy: {activeDeadlineSeconds: 0}}", "spec.runPolicy.activeDeadlineSeconds"},
        {"spec: {template: 3}", "spec.template"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCOPED_JSON *object = manifest_value(rows[i][0]);
        SCOPED_JSON *violations = training_class_violations(object);
        cr_expect_str_eq(json_string_at(json_first(violations), "field", ""), rows[i][1]);
        cr_expect_eq(training_class_check(object, NULL), *rows[i][1] ? -1 : 0, "%s", rows[i][0]);
    }
}

/* The copy in a job's status is written by a merge patch, which would drop it. */
Test(training_class, a_class_has_no_null)
{
    static const char *const rows[][2] = {
        {"spec: {template: {spec: {affinity: null}}}", "spec has null as affinity, "},
        {"spec: {template: {spec: {containers: [{name: a, readinessProbe: null}]}}}",
         "spec has null as readinessProbe, "},
        {"spec: {template: {spec: {containers: [{name: a, args: [null]}]}}}",
         "spec has null as an element of a list, "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCOPED_JSON *object = manifest_value(rows[i][0]);
        struct error error = ERROR_INIT;
        cr_expect_lt(training_class_check(object, &error), 0, "%zu", i);
        cr_expect(strncmp(error.message, rows[i][1], strlen(rows[i][1])) == 0, "%s", error.message);
    }
}

Test(training_class, a_class_with_too_broad_a_template_is_not_taken)
{
    SCOPED_JSON *object = manifest_value("spec: {template: {spec: {}}}");
    struct error error = ERROR_INIT;
    struct json *volumes = json_set_array(json_at(object, "spec.template.spec"), "volumes");
    for (int i = 0; i <= TEMPLATE_BREADTH_MAX; i++)
        json_append(volumes, json_new_object());
    cr_expect_lt(training_class_check(object, &error), 0);
    cr_expect_str_eq(error.message, "spec.template: volumes has 1001 elements, at most 1000 are allowed");
}

Test(training_class, each_job_carries_a_copy_which_is_bounded)
{
    SCOPED_JSON *object = manifest_value("spec: {template: {metadata: {annotations: {}}}}");
    struct json *annotations = json_at(object, "spec.template.metadata.annotations");
    struct error error = ERROR_INIT;
    char *text = calloc(TRAINING_CLASS_MAX + 1, 1);
    memset(text, 'a', TRAINING_CLASS_MAX - 100);
    json_set_string(annotations, "a", text);
    cr_expect_eq(training_class_check(object, &error), 0, "%s", error.message);
    memset(text, 'a', TRAINING_CLASS_MAX);
    json_set_string(annotations, "a", text);
    free(text);
    cr_expect_lt(training_class_check(object, &error), 0);
    cr_expect_str_eq(error.message, "spec is larger than 32 KiB as JSON; make it smaller, since each job keeps a copy");
}

/* ---------------------------------------------------------------- a job with a class */

#define JOB                                                                                                            \
    "apiVersion: coxswain.dev/v1beta1\n"                                                                               \
    "kind: TrainingJob\n"                                                                                              \
    "metadata: {name: digits}\n"                                                                                       \
    "spec:\n"                                                                                                          \
    "  trainingClass: {name: gpu}\n"                                                                                   \
    "  pytorch: {checkpoint: {storage: runs}}\n"

#define PINNED(name, defaults)                                                                                         \
    "status: {trainingClass: {name: " name ", uid: u, generation: 2, defaults: " defaults "}}\n"

static int parse(const char *text, struct training_job *ret_job, struct error *error)
{
    SCOPED_JSON *object = manifest_value(text);
    return training_job_parse(object, ret_job, error);
}

Test(training_class, a_job_waits_until_its_class_is_pinned)
{
    static const struct {
        const char *text;
        bool waits;
    } rows[] = {
        {JOB, true},
        {JOB "status: {trainingClass: {kind: TrainingClass, name: gpu, uid: u, defaults: {}}}\n", true},
        {JOB PINNED("other", "{image: i, storage: [{name: runs, emptyDir: {}}]}"), true},
        {JOB "status: {trainingClass: {name: gpu, uid: u}}\n", true}, /* of an API server that dropped the defaults */
        {JOB PINNED("gpu", "{image: i, storage: [{name: runs, emptyDir: {}}]}"), false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCOPED(training_job_release) struct training_job job;
        struct error error = ERROR_INIT;
        cr_expect_eq(parse(rows[i].text, &job, &error), 0, "%zu: %s", i, error.message);
        cr_expect_str_eq(job.training_class.name, "gpu");
        cr_expect_eq(training_job_awaits_class(&job), rows[i].waits, "%zu", i);
    }
}

Test(training_class, a_pinned_class_is_part_of_the_job)
{
    SCOPED(training_job_release) struct training_job job;
    struct error error = ERROR_INIT;
    cr_assert_eq(
        parse(JOB PINNED("gpu", "{image: i, queueName: q, template: {spec: {nodeName: n}}, "
                                "runPolicy: {failurePolicy: {rules: [{action: Fail, onExitCodes: {values: [3]}}]}},"
                                "storage: [{name: runs, emptyDir: {}}]}"),
              &job, &error),
        0, "%s", error.message);
    cr_expect_str_eq(job.image, "i");
    cr_expect_str_eq(job.queue_name, "q");
    cr_expect_str_eq(job.document.storage[0].name, "runs");
    cr_expect_str_eq(json_string_at(job.roles[ROLE_WORKER].template, "spec.nodeName", ""), "n");
    cr_expect_eq(job.run_policy.failure_policy.rules[0].exit_codes.operator, EXIT_CODES_IN);
    SCOPED_JSON *status = job_status_to_json(&job.status);
    cr_expect_str_eq(json_string_at(status, "trainingClass.defaults.image", ""), "i");
    cr_expect_eq(json_integer_at(status, "trainingClass.generation", 0), 2);
}

Test(training_class, a_label_names_the_queue_before_the_class_does)
{
    SCOPED_JSON *object =
        manifest_value(JOB PINNED("gpu", "{image: i, queueName: q, storage: [{name: runs, nfs: {}}]}"));
    SCOPED(training_job_release) struct training_job job;
    json_set_string(json_set_object(json_at(object, "metadata"), "labels"), "kueue.x-k8s.io/queue-name", "own");
    cr_assert_eq(training_job_parse(object, &job, NULL), 0);
    cr_expect_str_eq(job.queue_name, "own");
}

Test(training_class, what_is_wrong_says_whether_the_class_has_part_in_it)
{
    static const char *const rows[][2] = {
        {JOB PINNED("gpu", "{image: i}"),
         "with the defaults of ClusterTrainingClass gpu: spec.pytorch.checkpoint.storage"},
        {JOB PINNED("gpu", "{storage: [{name: runs, emptyDir: {}}]}"),
         "with the defaults of ClusterTrainingClass gpu: spec.image"},
        {JOB "  workers: {replicas: 0}\n" PINNED("gpu", "{image: i}"), "spec.workers.replicas"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCOPED(training_job_release) struct training_job job;
        struct error error = ERROR_INIT;
        cr_expect_lt(parse(rows[i][0], &job, &error), 0);
        cr_expect(strncmp(error.message, rows[i][1], strlen(rows[i][1])) == 0, "%s", error.message);
    }
}

Test(training_class, a_jobs_class_cannot_change)
{
    SCOPED_JSON *old = manifest_value(JOB);
    SCOPED_JSON *object = json_copy(old);
    json_set_string(json_at(object, "spec.trainingClass"), "name", "other");
    SCOPED_JSON *violations = training_job_violations(object, old);
    cr_expect_str_eq(json_string_at(json_first(violations), "field", ""), "spec.trainingClass");
    json_remove(json_member(object, "spec"), "trainingClass");
    SCOPED_JSON *more = training_job_violations(object, old);
    cr_expect_gt(json_count(more), 0);
}
