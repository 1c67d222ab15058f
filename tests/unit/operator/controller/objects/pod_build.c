/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/pod_build.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/memory.h"
#include "operator/controller/objects/service_build.h"
#include "operator/controller/plan/plan.h"
#include "tests/unit/json_of.h"

#define HEAD                                                                                                           \
    "{\"metadata\":{\"name\":\"digits\",\"namespace\":\"ml\",\"uid\":\"u-1\"},\"spec\":{"                              \
    "\"storage\":[{\"name\":\"digits\",\"readOnly\":true,\"persistentVolumeClaim\":{\"claimName\":\"digits\"}},"       \
    "{\"name\":\"runs\",\"persistentVolumeClaim\":{\"claimName\":\"runs\"}}],"                                         \
    "\"coxswain\":{\"strategy\":{\"type\":\"MultiWorkerMirrored\"},\"model\":{\"preset\":\"lenet\"},"                  \
    "\"data\":{\"format\":\"IDX\",\"storage\":\"digits\",\"train\":{\"images\":\"i.gz\",\"labels\":\"l.gz\"}},"        \
    "\"training\":{\"epochs\":1,\"batchSize\":64,\"optimizer\":{\"type\":\"SGD\",\"learningRate\":\"0.1\"}},"          \
    "\"checkpoint\":{\"storage\":\"runs\",\"path\":\"digits\",\"everySteps\":100}}"
#define STATUS "},\"status\":{\"controllerState\":{\"incarnation\":5,\"attempt\":2}}}"
/* Fields for the workers, and the end of the job. */
#define WORKERS(more) ",\"workers\":{\"replicas\":2" more "}" STATUS
#define TAIL WORKERS("")

static struct training_job parse(const char *text)
{
    struct training_job job;
    struct error error = ERROR_INIT;
    SCOPED_JSON *object = json_of(text);
    cr_assert_eq(training_job_parse(object, &job, &error), 0, "%s", error.message);
    return job;
}

static struct json *build_after(bool has_run, const struct training_job *job, int64_t index, struct error *error)
{
    SCOPED(pod_builder_release) struct pod_builder builder = {0};
    struct json *pod = NULL;
    if (pod_builder_init(&builder, job, &plan_options_default.pods, error) < 0)
        return NULL;
    builder.has_run = has_run;
    if (pod_build(&builder, ROLE_WORKER, index, &pod, error) < 0)
        return NULL;
    return pod;
}

static struct json *build(const struct training_job *job, int64_t index, struct error *error)
{
    return build_after(false, job, index, error);
}

static const struct json *container_of(const struct json *pod, const char *name)
{
    for (const struct json *item = json_first(json_at(pod, "spec.containers")); item; item = json_next(item))
        if (strcmp(json_string_at(item, "name", ""), name) == 0)
            return item;
    return NULL;
}

static const char *variable(const struct json *container, const char *name)
{
    for (const struct json *item = json_first(json_member(container, "env")); item; item = json_next(item))
        if (strcmp(json_string_at(item, "name", ""), name) == 0)
            return json_string_at(item, "value", "(reference)");
    return NULL;
}

static const char *label_of(const struct json *object, const char *key)
{
    return json_string(json_member(json_at(object, "metadata.labels"), key), "");
}

Test(pod_build, default_pod)
{
    SCOPED(training_job_release) struct training_job job = parse(HEAD TAIL);
    struct error error = ERROR_INIT;
    SCOPED_JSON *pod = build(&job, 1, &error);
    cr_assert_not_null(pod, "%s", error.message);
    const struct json *trainer = container_of(pod, "trainer");
    cr_assert_str_eq(json_string_at(pod, "metadata.name", ""), "digits-worker-1-5");
    cr_assert_str_eq(json_string_at(pod, "metadata.namespace", ""), "ml");
    cr_assert_str_eq(label_of(pod, LABEL_JOB_UID), "u-1");
    cr_assert_str_eq(label_of(pod, LABEL_INCARNATION), "5");
    cr_assert_str_eq(label_of(pod, LABEL_ATTEMPT), "2");
    cr_assert_str_eq(label_of(pod, LABEL_CURRENT), "true");
    cr_assert_str_eq(json_string_at(pod, "spec.hostname", ""), "digits-worker-1");
    cr_assert_str_eq(json_string_at(pod, "spec.subdomain", ""), "digits");
    cr_assert_str_eq(json_string_at(pod, "spec.restartPolicy", ""), "Never");
    cr_assert_str_eq(json_string_at(trainer, "image", ""), "coxswain-worker");
    cr_assert_str_eq(json_string(json_first(json_member(trainer, "command")), ""), "coxswain-worker");
    cr_assert_str_eq(variable(trainer, "COXSWAIN_INCARNATION"), "5");
    cr_assert_str_eq(variable(trainer, "COXSWAIN_INDEX"), "1");
    cr_assert_str_eq(variable(trainer, "COXSWAIN_POD_IP"), "(reference)");
    cr_assert_str_eq(variable(trainer, "COXSWAIN_CHECKPOINT_DIR"), "/coxswain/storage/runs/digits");
    cr_assert_str_eq(variable(trainer, "COXSWAIN_STORAGE"),
                     "digits=/coxswain/storage/digits:runs=/coxswain/storage/runs");
    cr_assert_eq(json_count(json_at(pod, "spec.volumes")), 4);
    cr_assert(json_boolean_at(trainer, "securityContext.readOnlyRootFilesystem", false));
    cr_assert_str_eq(variable(trainer, "TMPDIR"), "/coxswain/temporary");
    cr_assert_str_eq(json_string_at(json_first(json_at(pod, "spec.volumes")), "persistentVolumeClaim.claimName", ""),
                     "digits");
    cr_assert(json_boolean_at(json_first(json_member(trainer, "volumeMounts")), "readOnly", false));
    cr_assert(json_boolean_at(pod, "spec.securityContext.runAsNonRoot", false));
    cr_assert_str_eq(json_string_at(trainer, "livenessProbe.httpGet.path", ""), "/healthz/live");
    cr_assert_geq(json_integer_at(trainer, "livenessProbe.periodSeconds", 0) *
                      json_integer_at(trainer, "livenessProbe.failureThreshold", 0),
                  600, "a pod that is busy for minutes is left alone");
}

Test(pod_build, job_document_carries_the_crew)
{
    SCOPED(training_job_release) struct training_job job = parse(HEAD TAIL);
    struct error error = ERROR_INIT;
    SCOPED_JSON *pod = build(&job, 0, &error);
    const char *text = variable(container_of(pod, "trainer"), "COXSWAIN_JOB");
    SCOPED_JSON *document = json_of(text);
    struct job_document parsed;
    cr_assert_eq(job_document_parse(document, &parsed, &error), 0, "the worker must understand it: %s", error.message);
    cr_assert_eq(parsed.crew.role_count, 1);
    cr_assert_str_eq(parsed.crew.roles[0].name, "worker");
    cr_assert_eq(parsed.crew.roles[0].count, 2);
    cr_assert_str_eq(parsed.crew.host_pattern, "digits-{role}-{index}.digits.ml.svc");
    cr_assert_eq(parsed.crew.port, 2222);
    cr_assert_str_eq(parsed.job_name, "digits");
    job_document_release(&parsed);
}

Test(pod_build, template_is_laid_over_the_default)
{
    SCOPED(training_job_release)
    struct training_job job = parse(HEAD WORKERS(
        ",\"template\":{\"metadata\":{\"labels\":{\"team\":\"a\","
        "\"coxswain.dev/"
        "incarnation\":\"99\"}},\"spec\":{\"restartPolicy\":\"Always\",\"nodeSelector\":{\"disk\":\"ssd\"},"
        "\"containers\":[{\"name\":\"trainer\",\"env\":[{\"name\":\"EXTRA\",\"value\":\"1\"}],\"resources\":"
        "{\"limits\":{\"memory\":\"1Gi\"}}},{\"name\":\"log\",\"image\":\"log:1\"}]}}"));
    struct error error = ERROR_INIT;
    SCOPED_JSON *pod = build(&job, 0, &error);
    cr_assert_not_null(pod, "%s", error.message);
    const struct json *trainer = container_of(pod, "trainer");
    cr_assert_str_eq(label_of(pod, "team"), "a");
    cr_assert_str_eq(label_of(pod, LABEL_INCARNATION), "5", "what holds the crew together is not the template's");
    cr_assert_str_eq(json_string_at(pod, "spec.restartPolicy", ""), "Never");
    cr_assert_str_eq(json_string_at(pod, "spec.nodeSelector.disk", ""), "ssd");
    cr_assert_str_eq(variable(trainer, "EXTRA"), "1");
    cr_assert_str_eq(variable(trainer, "COXSWAIN_INCARNATION"), "5");
    cr_assert_str_eq(json_string_at(trainer, "resources.limits.memory", ""), "1Gi");
    cr_assert_not_null(container_of(pod, "log"));
}

/* The node affinity of a pod that avoids two nodes, as JSON text. */
static void expect_affinity(const char *affinity, const char *expected)
{
    static const char *const nodes[] = {"gpu-7", "ip-10-0-1-2.ec2.internal"};
    char text[4096];
    snprintf(text, sizeof text, "%s,\"workers\":{\"replicas\":2,\"template\":{\"spec\":{%s}}}%s", HEAD, affinity,
             STATUS);
    SCOPED(training_job_release) struct training_job job = parse(text);
    SCOPED(pod_builder_release) struct pod_builder builder = {0};
    struct error error = ERROR_INIT;
    SCOPED_JSON *pod = NULL;
    cr_assert_eq(pod_builder_init(&builder, &job, &plan_options_default.pods, &error), 0, "%s", error.message);
    builder.avoided_nodes = nodes;
    builder.avoided_node_count = 2;
    cr_assert_eq(pod_build(&builder, ROLE_WORKER, 0, &pod, &error), 0, "%s", error.message);
    SCOPED_JSON *wanted = json_of(expected);
    cr_expect(json_equal(json_at(pod, "spec.affinity"), wanted), "%s", affinity);
    const struct json *annotations = json_at(pod, "metadata.annotations");
    cr_expect_str_eq(json_string(json_member(annotations, ANNOTATION_AVOIDED_NODES), ""),
                     "gpu-7,ip-10-0-1-2.ec2.internal");
}

#define AVOIDED                                                                                                        \
    "{\"key\":\"kubernetes.io/hostname\",\"operator\":\"NotIn\",\"values\":[\"gpu-7\","                                \
    "\"ip-10-0-1-2.ec2.internal\",\"ip-10-0-1-2\"]}"
#define REQUIRED(terms)                                                                                                \
    "\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[" terms "]}}"
#define ZONE "{\"key\":\"zone\",\"operator\":\"In\",\"values\":[\"a\"]}"
#define FIELD "\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"gpu-8\"]}]"

Test(pod_build, avoided_nodes_are_added_to_what_the_template_requires)
{
    expect_affinity("", "{" REQUIRED("{\"matchExpressions\":[" AVOIDED "]}") "}");
    expect_affinity("\"affinity\":{" REQUIRED("{\"matchExpressions\":[" ZONE "]},{" FIELD "},{}") "}",
                    "{" REQUIRED("{\"matchExpressions\":[" ZONE "," AVOIDED "]},{" FIELD
                                 ",\"matchExpressions\":[" AVOIDED "]},{}") "}");
    expect_affinity("\"affinity\":{\"podAntiAffinity\":{}}",
                    "{\"podAntiAffinity\":{}," REQUIRED("{\"matchExpressions\":[" AVOIDED "]}") "}");
}

Test(pod_build, a_grace_period_of_its_own_is_told)
{
    static const struct {
        const char *spec, *told; /* NULL: it is not */
    } rows[] = {
        {"\"nodeName\":\"n\"", NULL},
        {"\"terminationGracePeriodSeconds\":30", NULL},
        {"\"terminationGracePeriodSeconds\":120", "120"},
        {"\"terminationGracePeriodSeconds\":0", "0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[4096];
        snprintf(text, sizeof text, HEAD WORKERS(",\"template\":{\"spec\":{%s}}"), rows[i].spec);
        SCOPED(training_job_release) struct training_job job = parse(text);
        struct error error = ERROR_INIT;
        SCOPED_JSON *pod = build(&job, 0, &error);
        const char *told = variable(container_of(pod, "trainer"), "COXSWAIN_GRACE_SECONDS");
        cr_expect_str_eq(told ? told : "none", rows[i].told ? rows[i].told : "none", "row %zu", i);
    }
}

Test(pod_build, template_must_not_set_what_holds_the_crew_together)
{
    SCOPED(training_job_release)
    struct training_job job =
        parse(HEAD WORKERS(",\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"env\":"
                           "[{\"name\":\"COXSWAIN_INCARNATION\",\"value\":\"1\"}]}]}}"));
    struct error error = ERROR_INIT;
    cr_assert_null(build(&job, 0, &error));
    cr_assert_eq(error.kind, ERROR_INVALID);
    cr_assert(strstr(error.message, "COXSWAIN_INCARNATION"));
}

Test(pod_build, reserved_names_are_refused_wherever_they_are_set)
{
    static const struct {
        const char *spec, *named;
    } rows[] = {
        {"\"initContainers\":[{\"name\":\"i\",\"env\":[{\"name\":\"COXSWAIN_JOB_UID\",\"value\":\"1\"}]}]",
         "COXSWAIN_JOB_UID"},
        {"\"containers\":[{\"name\":\"trainer\",\"env\":[{\"name\":\"COXSWAIN_CHECKPOINT_DIR\",\"value\":\"/x\"}]}]",
         "COXSWAIN_CHECKPOINT_DIR"},
        {"\"containers\":[{\"name\":\"trainer\",\"env\":[{\"name\":\"COXSWAIN_POD_IP\",\"value\":\"::1\"}]}]",
         "COXSWAIN_POD_IP"},
        {"\"containers\":[{\"name\":\"trainer\",\"envFrom\":[{\"prefix\":\"COXSWAIN_\",\"configMapRef\":{\"name\":"
         "\"c\"}}]}]",
         "prefix COXSWAIN_"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[4096];
        snprintf(text, sizeof text, HEAD WORKERS(",\"template\":{\"spec\":{%s}}"), rows[i].spec);
        SCOPED(training_job_release) struct training_job job = parse(text);
        struct error error = ERROR_INIT;
        SCOPED_JSON *pod = build(&job, 0, &error);
        cr_expect_null(pod, "row %zu", i);
        cr_expect(strstr(error.message, rows[i].named), "row %zu: %s", i, error.message);
    }
}

Test(pod_build, a_device_is_asked_for_by_its_resource)
{
    static const struct {
        struct devices_spec devices;
        const char *resource, *quantity; /* NULL: none is asked for */
    } rows[] = {
        {{.type = DEVICE_TYPE_GPU, .count = 4}, "nvidia.com/gpu", "4"},
        {{.type = DEVICE_TYPE_GPU, .count = 1, .resource_name = "amd.com/gpu"}, "amd.com/gpu", "1"},
        {{.type = DEVICE_TYPE_TPU, .count = 8}, "google.com/tpu", "8"},
        {{.type = DEVICE_TYPE_CPU, .count = 2, .resource_name = "nvidia.com/gpu"}, "nvidia.com/gpu", NULL},
        {{.type = DEVICE_TYPE_AUTO, .count = 2}, "nvidia.com/gpu", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCOPED(training_job_release) struct training_job job = parse(HEAD TAIL);
        job.document.devices = rows[i].devices;
        struct error error = ERROR_INIT;
        SCOPED_JSON *pod = build(&job, 0, &error);
        const struct json *limits = json_at(container_of(pod, "trainer"), "resources.limits");
        cr_expect_str_eq(json_string(json_member(limits, rows[i].resource), "none"),
                         rows[i].quantity ? rows[i].quantity : "none", "row %zu", i);
    }
}

Test(pod_build, devices_of_resource_claims_are_not_asked_for_twice)
{
    SCOPED(training_job_release)
    struct training_job job = parse(HEAD WORKERS(
        ",\"template\":{\"spec\":{\"resourceClaims\":[{\"name\":\"gpus\",\"resourceClaimTemplateName\":\"two-gpus\"}],"
        "\"containers\":[{\"name\":\"trainer\",\"resources\":{\"claims\":[{\"name\":\"gpus\"}]}}]}}"));
    job.document.devices = (struct devices_spec){.type = DEVICE_TYPE_GPU, .count = 2};
    struct error error = ERROR_INIT;
    SCOPED_JSON *pod = build(&job, 0, &error);
    const struct json *resources = json_at(container_of(pod, "trainer"), "resources");
    cr_expect_null(json_member(resources, "limits"));
    cr_expect_str_eq(json_string_at(json_first(json_member(resources, "claims")), "name", ""), "gpus");
    cr_expect_str_eq(json_string_at(json_first(json_at(pod, "spec.resourceClaims")), "resourceClaimTemplateName", ""),
                     "two-gpus");
    job.document.devices.resource_name = "nvidia.com/gpu"; /* so the claims are for something else */
    SCOPED_JSON *both = build(&job, 0, &error);
    resources = json_at(container_of(both, "trainer"), "resources");
    cr_expect_str_eq(json_string(json_member(json_member(resources, "limits"), "nvidia.com/gpu"), ""), "2");
    cr_expect_eq(json_count(json_member(resources, "claims")), 1);
}

/* Expects the number of devices in the limits of the role's pod, "none" without a limit. */
static void expect_devices(const struct training_job *job, enum role role, const char *resource, const char *expected)
{
    SCOPED(pod_builder_release) struct pod_builder builder = {0};
    SCOPED_JSON *pod = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(pod_builder_init(&builder, job, &plan_options_default.pods, &error), 0, "%s", error.message);
    cr_assert_eq(pod_build(&builder, role, 0, &pod, &error), 0, "%s", error.message);
    const struct json *limits = json_at(container_of(pod, "trainer"), "resources.limits");
    cr_expect_str_eq(json_string(json_member(limits, resource), "none"), expected, "%s", role_name(role));
}

Test(pod_build, roles_that_compute_get_devices)
{
    static const struct {
        enum framework framework;
        enum strategy_type strategy;
        enum device_type devices;
        const char *resource, *of[ROLE_COUNT];
    } rows[] = {
        {FRAMEWORK_COXSWAIN,
         STRATEGY_PARAMETER_SERVER,
         DEVICE_TYPE_GPU,
         "nvidia.com/gpu",
         {[ROLE_CHIEF] = "none", [ROLE_WORKER] = "8", [ROLE_PS] = "none", [ROLE_EVALUATOR] = "1"}},
        {FRAMEWORK_COXSWAIN,
         STRATEGY_MULTI_WORKER_MIRRORED,
         DEVICE_TYPE_GPU,
         "nvidia.com/gpu",
         {[ROLE_CHIEF] = "8", [ROLE_WORKER] = "8", [ROLE_PS] = "none", [ROLE_EVALUATOR] = "1"}},
        {FRAMEWORK_TENSORFLOW,
         STRATEGY_PARAMETER_SERVER,
         DEVICE_TYPE_TPU,
         "google.com/tpu",
         {[ROLE_CHIEF] = "8", [ROLE_WORKER] = "8", [ROLE_PS] = "none", [ROLE_EVALUATOR] = "8"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCOPED(training_job_release) struct training_job job = parse(HEAD ",\"image\":\"i\"" TAIL);
        job.framework = rows[i].framework;
        job.document.strategy.type = rows[i].strategy;
        job.document.devices = (struct devices_spec){.type = rows[i].devices, .count = 8};
        for (int role = 0; role < ROLE_COUNT; role++)
            expect_devices(&job, (enum role)role, rows[i].resource, rows[i].of[role]);
    }
}

/* What a worker of a job with three workers requests on one machine; "none": nothing. */
static void expect_on_machine(enum device_type type, int64_t gpus, const char *limit, const char *together)
{
    SCOPED(training_job_release) struct training_job job = parse(HEAD WORKERS(""));
    struct pod_options options = plan_options_default.pods;
    SCOPED(pod_builder_release) struct pod_builder builder = {0};
    SCOPED_JSON *pod = NULL;
    job.document.devices = (struct devices_spec){.type = type, .count = 2};
    job.document.workers = 3;
    options.machine_gpus = gpus;
    cr_assert_eq(pod_builder_init(&builder, &job, &options, NULL), 0);
    cr_assert_eq(pod_build(&builder, ROLE_WORKER, 0, &pod, NULL), 0);
    const struct json *limits = json_at(container_of(pod, "trainer"), "resources.limits");
    const struct json *annotations = json_at(pod, "metadata.annotations");
    cr_expect_str_eq(json_string(json_member(limits, "nvidia.com/gpu"), "none"), limit, "type %d, %d GPUs", (int)type,
                     (int)gpus);
    cr_expect_str_eq(json_string(json_member(annotations, "coxswain.dev/crew-gpus"), "none"), together,
                     "type %d, %d GPUs", (int)type, (int)gpus);
}

Test(pod_build, auto_requests_gpus_where_one_machine_has_enough_for_the_crew)
{
    expect_on_machine(DEVICE_TYPE_AUTO, 0, "none", "none"); /* a cluster */
    expect_on_machine(DEVICE_TYPE_AUTO, 5, "none", "none");
    expect_on_machine(DEVICE_TYPE_AUTO, 6, "2", "6");
    expect_on_machine(DEVICE_TYPE_GPU, 0, "2", "none");
    expect_on_machine(DEVICE_TYPE_GPU, 5, "2", "6");
    expect_on_machine(DEVICE_TYPE_CPU, 8, "none", "none");
}

Test(pod_build, service_publishes_current_pods_ready_or_not)
{
    SCOPED(training_job_release) struct training_job job = parse(HEAD TAIL);
    SCOPED_JSON *service = service_build(&job);
    cr_assert_str_eq(json_string_at(service, "metadata.name", ""), "digits");
    cr_assert_str_eq(json_string_at(service, "spec.clusterIP", ""), "None");
    cr_assert(json_boolean_at(service, "spec.publishNotReadyAddresses", false));
    const struct json *selector = json_at(service, "spec.selector");
    cr_assert_eq(json_count(selector), 2);
    cr_assert_str_eq(json_string(json_member(selector, LABEL_JOB_UID), ""), "u-1");
}

#define FOREIGN(spec)                                                                                                  \
    "{\"metadata\":{\"name\":\"ddp\",\"namespace\":\"ml\",\"uid\":\"u-1\"},\"spec\":{\"pytorch\":{},"                  \
    "\"image\":\"torch:2\",\"workers\":{\"replicas\":2,\"template\":{\"spec\":{" spec "}}}}}"

Test(pod_build, a_foreign_image_runs_its_own_command)
{
    SCOPED(training_job_release)
    struct training_job job = parse(FOREIGN("\"containers\":[{\"name\":\"trainer\",\"args\":[\"ddp.py\"]}]"));
    struct error error = ERROR_INIT;
    SCOPED_JSON *pod = build(&job, 1, &error);
    cr_assert_not_null(pod, "%s", error.message);
    const struct json *trainer = container_of(pod, "trainer");
    cr_assert_str_eq(json_string_at(trainer, "image", ""), "torch:2");
    cr_assert_null(json_member(trainer, "command"));
    cr_assert_null(json_member(trainer, "readinessProbe"));
    cr_assert_null(json_member(trainer, "livenessProbe"));
    cr_assert_null(json_at(trainer, "securityContext.readOnlyRootFilesystem"), "its programs may write anywhere");
    cr_assert_null(variable(trainer, "TMPDIR"));
    cr_assert_str_eq(variable(trainer, "RANK"), "1");
    const struct json *port = json_first(json_member(trainer, "ports"));
    cr_assert_eq(json_integer_at(port, "containerPort", 0), 23456);
    cr_assert_eq(json_count(json_member(trainer, "ports")), 1);
    SCOPED_JSON *service = service_build(&job);
    cr_assert_eq(json_integer_at(json_first(json_at(service, "spec.ports")), "port", 0), 23456);
}

Test(pod_build, every_container_is_told_and_what_a_user_sets_wins)
{
    SCOPED(training_job_release)
    struct training_job job = parse(
        FOREIGN("\"initContainers\":[{\"name\":\"fetch\",\"image\":\"i\"}],\"containers\":[{\"name\":\"log\",\"image\":"
                "\"l\",\"env\":[{\"name\":\"PYTHONUNBUFFERED\",\"value\":\"0\"}]},{\"name\":\"trainer\",\"env\":[{"
                "\"name\":\"PET_NPROC_PER_NODE\",\"value\":\"2\"}]}]"));
    struct error error = ERROR_INIT;
    SCOPED_JSON *pod = build(&job, 0, &error);
    cr_assert_not_null(pod, "%s", error.message);
    cr_assert_str_eq(variable(container_of(pod, "trainer"), "PET_NPROC_PER_NODE"), "2");
    cr_assert_str_eq(variable(container_of(pod, "trainer"), "PYTHONUNBUFFERED"), "1");
    cr_assert_str_eq(variable(container_of(pod, "log"), "PYTHONUNBUFFERED"), "0");
    cr_assert_str_eq(variable(container_of(pod, "log"), "PET_NPROC_PER_NODE"), "1");
    cr_assert_str_eq(variable(json_first(json_at(pod, "spec.initContainers")), "WORLD_SIZE"), "2");
}

/* Returns the preStop hook of a foreign job's container. */
static const struct json *hook_of(const char *run_policy, const char *pod_fields, const char *container_fields)
{
    SCOPED_FREE char *text = memory_format(
        "{\"metadata\":{\"name\":\"digits\",\"namespace\":\"ml\",\"uid\":\"u-1\"},\"spec\":{\"image\":\"i\","
        "\"pytorch\":{"
        "\"progress\":{\"logPatterns\":[\"step (?<step>\\\\d+)\"]}},\"runPolicy\":{%s},\"workers\":{\"replicas\":2,"
        "\"template\":{\"spec\":{%s\"containers\":[{\"name\":\"trainer\"%s}]}}}" STATUS,
        run_policy, pod_fields, container_fields);
    struct training_job job = parse(text);
    struct error error = ERROR_INIT;
    static struct json *pod;
    json_free(pod);
    pod = build(&job, 1, &error);
    training_job_release(&job);
    cr_assert(pod, "%s", error.message);
    return json_at(container_of(pod, "trainer"), "lifecycle.preStop");
}

Test(pod_build, a_foreign_pod_with_a_progress_deadline_says_where_it_stands_before_it_ends)
{
    const char *deadline = "\"progressDeadlineSeconds\":60";
    const struct json *hook = hook_of(deadline, "", "");
    cr_assert_str_eq(json_string(json_first(json_at(hook, "exec.command")), ""), "sh");
    cr_assert(strstr(json_string(json_next(json_next(json_first(json_at(hook, "exec.command")))), ""), "/syscall"));
    cr_expect_null(hook_of("", "", ""), "nothing would quote it");
    cr_expect_null(hook_of(deadline, "\"shareProcessNamespace\":true,", ""), "process 1 is the pause container's");
    cr_expect_null(hook_of(deadline, "\"hostPID\":true,", ""));
    hook = hook_of(deadline, "", ",\"lifecycle\":{\"preStop\":{\"sleep\":{\"seconds\":5}}}");
    cr_expect(json_member(hook, "sleep") && !json_member(hook, "exec"), "the template's own");
    hook = hook_of(deadline, "", ",\"lifecycle\":{\"postStart\":{\"sleep\":{\"seconds\":5}}}");
    cr_expect(json_member(hook, "exec"));
}

Test(pod_build, a_foreign_crew_is_not_broken_by_its_template)
{
    SCOPED(training_job_release)
    struct training_job job =
        parse(FOREIGN("\"containers\":[{\"name\":\"trainer\",\"env\":[{\"name\":\"WORLD_SIZE\",\"value\":\"9\"}]}]"));
    struct error error = ERROR_INIT;
    SCOPED_JSON *pod = build(&job, 0, &error);
    cr_assert_null(pod);
    cr_assert(strstr(error.message, "sets WORLD_SIZE, which the operator sets itself"), "%s", error.message);
}

/* An operator that is stricter than the last one must not end what runs. */
Test(pod_build, a_name_that_was_free_before_is_kept_by_a_job_that_has_run)
{
    SCOPED(training_job_release)
    struct training_job job = parse(
        FOREIGN("\"containers\":[{\"name\":\"trainer\",\"env\":[{\"name\":\"COXSWAIN_JOB\",\"value\":\"ddp\"}]}]"));
    struct error error = ERROR_INIT;
    SCOPED_JSON *first = build_after(false, &job, 0, &error);
    cr_assert_null(first);
    cr_assert(strstr(error.message, "sets COXSWAIN_JOB, which the operator sets itself"), "%s", error.message);
    SCOPED_JSON *later = build_after(true, &job, 0, &error);
    cr_assert_not_null(later);
    cr_assert_str_eq(variable(container_of(later, "trainer"), "COXSWAIN_JOB"), "ddp");
    job.framework = FRAMEWORK_COXSWAIN;
    SCOPED_JSON *own = build_after(true, &job, 0, &error);
    cr_assert_null(own, "it was never free there");
}

static bool has_word(const struct json *words, const char *word)
{
    for (const struct json *item = json_first(words); item; item = json_next(item))
        if (strcmp(json_string(item, ""), word) == 0)
            return true;
    return false;
}

static const struct json *mount_of(const struct json *container, const char *path)
{
    for (const struct json *item = json_first(json_member(container, "volumeMounts")); item; item = json_next(item))
        if (strcmp(json_string_at(item, "mountPath", ""), path) == 0)
            return item;
    return NULL;
}

/* libtpu aborts where it cannot write /tmp/libtpu_lockfile. */
Test(pod_build, a_worker_with_tpus_may_write_to_tmp)
{
    SCOPED(training_job_release) struct training_job job = parse(HEAD TAIL);
    job.document.devices = (struct devices_spec){.type = DEVICE_TYPE_TPU, .count = 4};
    struct error error = ERROR_INIT;
    SCOPED_JSON *pod = build(&job, 0, &error);
    cr_assert_null(json_at(container_of(pod, "trainer"), "securityContext.readOnlyRootFilesystem"));
}

#define SLICE_TERM(operator, slice)                                                                                    \
    "{\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"labelSelector\":{\"matchLabels\":{\"" LABEL_JOB_UID       \
    "\":\"u-1\"},\"matchExpressions\":[{\"key\":\"" LABEL_SLICE "\",\"operator\":\"Exists\"},{\"key\":\"" LABEL_SLICE  \
    "\",\"operator\":\""                                                                                               \
    operator"\",\"values\":[\"" slice "\"]}]},\"topologyKey\":\"cloud.google.com/gke-nodepool\"}]}"

static struct json *of_slices(int64_t slices, int64_t index)
{
    SCOPED(training_job_release)
    struct training_job job =
        parse("{\"metadata\":{\"name\":\"digits\",\"namespace\":\"ml\",\"uid\":\"u-1\"},\"spec\":{\"image\":\"i\","
              "\"jax\":{},\"devices\":{\"type\":\"TPU\",\"count\":4},\"workers\":{\"replicas\":4}}}");
    struct error error = ERROR_INIT;
    job.document.devices.slices = slices;
    struct json *pod = build(&job, index, &error);
    cr_assert_not_null(pod, "%s", error.message);
    return pod;
}

Test(pod_build, the_hosts_of_a_slice_share_a_node_pool)
{
    SCOPED_JSON *pod = of_slices(2, 3);
    SCOPED_JSON *near = json_of(SLICE_TERM("In", "1")), *away = json_of(SLICE_TERM("NotIn", "1"));
    cr_expect_str_eq(label_of(pod, LABEL_SLICE), "1");
    cr_expect(json_equal(json_at(pod, "spec.affinity.podAffinity"), near));
    cr_expect(json_equal(json_at(pod, "spec.affinity.podAntiAffinity"), away));
    SCOPED_JSON *lone = of_slices(4, 3);
    cr_expect_str_eq(label_of(lone, LABEL_SLICE), "3");
    cr_expect_null(json_at(lone, "spec.affinity"), "a slice of one host may be anywhere");
    SCOPED_JSON *whole = of_slices(FIELD_UNSET, 3);
    cr_expect_null(json_at(whole, "spec.affinity"));
    cr_expect(json_member(json_at(whole, "metadata.labels"), LABEL_SLICE) == NULL);
}

Test(pod_build, object_storage_is_fetched_before_the_trainer_starts)
{
    SCOPED(training_job_release)
    struct training_job job =
        parse("{\"metadata\":{\"name\":\"digits\",\"namespace\":\"ml\",\"uid\":\"u-1\"},\"spec\":{"
              "\"storage\":[{\"name\":\"corpus\",\"s3\":{\"endpoint\":\"http://"
              "minio:9000\",\"bucket\":\"data\",\"prefix\":\"/a/b\","
              "\"secretRef\":{\"name\":\"reader\"},\"cacheSize\":\"2Ki\"}}],"
              "\"coxswain\":{\"strategy\":{\"type\":\"MultiWorkerMirrored\"},\"model\":{\"preset\":\"mlp\"},"
              "\"data\":{\"format\":\"IDX\",\"storage\":\"corpus\",\"path\":\"mnist\",\"train\":{\"images\":\"i\","
              "\"labels\":\"l\"}},"
              "\"init\":{\"storage\":\"corpus\",\"path\":\"w.safetensors\"},"
              "\"training\":{\"epochs\":1,\"batchSize\":64}}" WORKERS(
                  ",\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"imagePullPolicy\":\"Never\","
                  "\"resources\":{"
                  "\"requests\":{\"cpu\":2},\"limits\":{\"memory\":\"1Gi\",\"nvidia.com/gpu\":1}}}]}}"));
    struct error error = ERROR_INIT;
    SCOPED_JSON *pod = build(&job, 0, &error);
    cr_assert_not_null(pod, "%s", error.message);
    const struct json *fetch = json_first(json_at(pod, "spec.initContainers")), *words = json_member(fetch, "command");
    static const char *const wanted[] = {
        "coxswain-storage", "fetch",   "http://minio:9000", "a/b",           "2048",
        "/coxswain/s3/0",   "mnist/i", "mnist/l",           "w.safetensors", "/coxswain/storage/corpus"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        cr_assert(has_word(words, wanted[i]), "%s", wanted[i]);
    cr_assert_str_eq(json_string_at(fetch, "image", ""), "coxswain-worker");
    cr_assert_eq(json_integer_at(fetch, "resources.requests.cpu", 0), 2, "a quota wants it of every container");
    cr_assert_str_eq(json_string_at(fetch, "resources.limits.memory", ""), "1Gi");
    cr_assert_eq(json_count(json_at(fetch, "resources.limits")), 1, "and no GPU");
    cr_assert_str_eq(json_string_at(fetch, "imagePullPolicy", ""), "Never");
    cr_assert_not(json_boolean_at(fetch, "securityContext.allowPrivilegeEscalation", true));
    cr_assert(json_boolean_at(fetch, "securityContext.readOnlyRootFilesystem", false));
    cr_assert_not(json_boolean_at(mount_of(fetch, "/coxswain/storage/corpus"), "readOnly", false));
    cr_assert_not_null(mount_of(fetch, "/coxswain/s3/0"));
    const struct json *trainer = container_of(pod, "trainer");
    cr_assert(json_boolean_at(mount_of(trainer, "/coxswain/storage/corpus"), "readOnly", false));
    cr_assert_null(mount_of(trainer, "/coxswain/s3/0"), "the trainer must not see the credentials");
    cr_assert_str_eq(json_string_at(json_first(json_at(pod, "spec.volumes")), "emptyDir.sizeLimit", ""), "2Ki");
    cr_assert(has_word(words, "--ceiling"));
    job.document.storage[0].s3.cache_size = "999999999999999Ti";
    SCOPED_JSON *large = build(&job, 0, &error);
    cr_assert_not(has_word(json_member(json_first(json_at(large, "spec.initContainers")), "command"), "--ceiling"),
                  "a ceiling of 0 would be refused");
}

Test(pod_build, downloads_precede_the_trainer)
{
    SCOPED(training_job_release)
    struct training_job job = parse(
        "{\"metadata\":{\"name\":\"digits\",\"namespace\":\"ml\",\"uid\":\"u-1\"},\"spec\":{"
        "\"storage\":[{\"name\":\"cache\",\"readOnly\":true,\"persistentVolumeClaim\":{\"claimName\":\"c\"},"
        "\"download\":{\"hub\":\"https://mirror\",\"secretRef\":{\"name\":\"hub\"},\"sizeLimit\":\"2Ki\",\"sources\":["
        "{\"url\":\"hf://org/name@v1\"},{\"url\":\"https://h/a\",\"sha256\":"
        "\"84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882\"}]}}],"
        "\"coxswain\":{\"strategy\":{\"type\":\"MultiWorkerMirrored\"},\"model\":{\"preset\":\"mlp\"},"
        "\"data\":{\"format\":\"Synthetic\",\"examples\":64},\"training\":{\"epochs\":1,\"batchSize\":64}}" WORKERS(
            ""));
    struct error error = ERROR_INIT;
    SCOPED_JSON *pod = build(&job, 0, &error);
    cr_assert_not_null(pod, "%s", error.message);
    const struct json *get = json_first(json_at(pod, "spec.initContainers")), *words = json_member(get, "command");
    static const char *const wanted[] = {"download",
                                         "https://mirror",
                                         "/coxswain/s3/0",
                                         "2048",
                                         "hf://org/name@v1",
                                         "https://h/a#sha256=84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f8"
                                         "82f7882"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        cr_assert(has_word(words, wanted[i]), "%s", wanted[i]);
    cr_assert_str_eq(json_string_at(get, "name", ""), "coxswain-download-0");
    cr_assert_not(json_boolean_at(mount_of(get, "/coxswain/storage/cache"), "readOnly", false));
    const struct json *trainer = container_of(pod, "trainer");
    cr_assert(json_boolean_at(mount_of(trainer, "/coxswain/storage/cache"), "readOnly", false));
    cr_assert_null(mount_of(trainer, "/coxswain/s3/0"), "the trainer must not see the token");
    const struct json *claim = json_first(json_at(pod, "spec.volumes"));
    cr_assert_str_eq(json_string_at(claim, "persistentVolumeClaim.claimName", ""), "c");
    cr_assert_str_eq(json_string_at(json_next(claim), "secret.secretName", ""), "hub");
}

static const char *variable_of(const struct json *container, const char *name)
{
    for (const struct json *item = json_first(json_member(container, "env")); item; item = json_next(item))
        if (strcmp(json_string_at(item, "name", ""), name) == 0)
            return json_string_at(item, "value", "");
    return NULL;
}

Test(pod_build, checkpoints_in_object_storage_are_uploaded_by_the_trainer)
{
    SCOPED(training_job_release)
    struct training_job job =
        parse("{\"metadata\":{\"name\":\"digits\",\"namespace\":\"ml\",\"uid\":\"u-1\"},\"spec\":{"
              "\"storage\":[{\"name\":\"corpus\",\"s3\":{\"endpoint\":\"http://minio:9000\",\"bucket\":\"data\"}},"
              "{\"name\":\"runs\",\"s3\":{\"endpoint\":\"http://minio:9000\",\"bucket\":\"models\",\"prefix\":\"/a/b\","
              "\"region\":\"eu\",\"secretRef\":{\"name\":\"writer\"}}}],"
              "\"coxswain\":{\"strategy\":{\"type\":\"MultiWorkerMirrored\"},\"model\":{\"preset\":\"mlp\"},"
              "\"data\":{\"format\":\"IDX\",\"storage\":\"corpus\",\"train\":{\"images\":\"i\",\"labels\":\"l\"}},"
              "\"checkpoint\":{\"storage\":\"runs\"},\"training\":{\"epochs\":1,\"batchSize\":64}}" WORKERS(""));
    struct error error = ERROR_INIT;
    SCOPED_JSON *pod = build(&job, 0, &error);
    cr_assert_not_null(pod, "%s", error.message);
    cr_assert_eq(json_count(json_at(pod, "spec.initContainers")), 1, "nothing of the checkpoints is fetched");
    const struct json *trainer = container_of(pod, "trainer");
    cr_assert(json_boolean_at(mount_of(trainer, "/coxswain/storage/corpus"), "readOnly", false));
    cr_assert_not(json_boolean_at(mount_of(trainer, "/coxswain/storage/runs"), "readOnly", false));
    cr_assert_not_null(mount_of(trainer, "/coxswain/s3/1"));
    cr_assert_str_eq(variable_of(trainer, "COXSWAIN_CHECKPOINT_DIR"), "/coxswain/storage/runs/ml/digits");
    cr_assert_str_eq(variable_of(trainer, "COXSWAIN_CHECKPOINT_S3"),
                     "{\"endpoint\":\"http://minio:9000\",\"bucket\":\"models\",\"prefix\":\"a/b/ml/digits\","
                     "\"region\":\"eu\",\"credentials\":\"/coxswain/s3/1\"}");
    cr_assert_null(variable_of(trainer, "COXSWAIN_EXPORT_S3"));
}

Test(pod_build, an_export_to_object_storage_is_uploaded_by_the_trainer_and_unused_storage_is_not_fetched)
{
    SCOPED(training_job_release)
    struct training_job job =
        parse("{\"metadata\":{\"name\":\"digits\",\"namespace\":\"ml\",\"uid\":\"u-1\"},\"spec\":{"
              "\"storage\":[{\"name\":\"unused\",\"s3\":{\"endpoint\":\"http://minio:9000\",\"bucket\":\"data\"}},"
              "{\"name\":\"runs\",\"s3\":{\"endpoint\":\"http://minio:9000\",\"bucket\":\"models\",\"prefix\":\"a\","
              "\"secretRef\":{\"name\":\"writer\"}}}],"
              "\"coxswain\":{\"strategy\":{\"type\":\"MultiWorkerMirrored\"},\"model\":{\"preset\":\"mlp\"},"
              "\"data\":{\"format\":\"Synthetic\",\"examples\":100},"
              "\"export\":{\"storage\":\"runs\",\"path\":\"m/w.safetensors\"},"
              "\"training\":{\"epochs\":1,\"batchSize\":64}}" WORKERS(""));
    struct error error = ERROR_INIT;
    SCOPED_JSON *pod = build(&job, 0, &error);
    cr_assert_not_null(pod, "%s", error.message);
    cr_assert_eq(json_count(json_at(pod, "spec.initContainers")), 0, "the job reads from neither");
    const struct json *trainer = container_of(pod, "trainer");
    cr_assert(json_boolean_at(mount_of(trainer, "/coxswain/storage/unused"), "readOnly", false));
    cr_assert_not(json_boolean_at(mount_of(trainer, "/coxswain/storage/runs"), "readOnly", false));
    cr_assert_not_null(mount_of(trainer, "/coxswain/s3/1"));
    cr_assert_null(variable_of(trainer, "COXSWAIN_CHECKPOINT_S3"));
    cr_assert_str_eq(variable_of(trainer, "COXSWAIN_EXPORT_S3"),
                     "{\"endpoint\":\"http://minio:9000\",\"bucket\":\"models\",\"prefix\":\"a/m/w.safetensors\","
                     "\"credentials\":\"/coxswain/s3/1\"}");
}

#define SYNCED                                                                                                         \
    "{\"metadata\":{\"name\":\"ddp\",\"namespace\":\"ml\",\"uid\":\"u-1\"},\"spec\":{\"image\":\"torch:2\","           \
    "\"pytorch\":{\"checkpoint\":{\"storage\":\"runs\"}},\"storage\":[{\"name\":\"runs\",\"s3\":{\"endpoint\":"        \
    "\"http://minio:9000\",\"bucket\":\"b-1\",\"cacheSize\":\"2Ki\",\"secretRef\":{\"name\":\"keys\"},\"sync\":{"      \
    "\"everySeconds\":60,\"deleteRemoved\":true}}}],\"workers\":{\"replicas\":2,\"template\":{\"spec\":{"              \
    "\"containers\":[{\"name\":\"trainer\",\"resources\":{\"limits\":{\"memory\":\"9Gi\"}}}]}}}}}"

static const char *option_of(const struct json *words, const char *option)
{
    for (const struct json *word = json_first(words); word; word = json_next(word))
        if (strcmp(json_string(word, ""), option) == 0)
            return json_string(json_next(word), "");
    return "";
}

Test(pod_build, the_first_pod_of_a_foreign_job_uploads_what_it_writes)
{
    SCOPED(training_job_release) struct training_job job = parse(SYNCED);
    struct error error = ERROR_INIT;
    SCOPED_JSON *pod = build(&job, 0, &error), *other = build(&job, 1, &error);
    cr_assert(pod && other, "%s", error.message);
    const struct json *restore = json_first(json_at(pod, "spec.initContainers")), *sync = json_next(restore);
    cr_assert_str_eq(json_string_at(restore, "name", ""), "coxswain-restore-0");
    cr_assert(has_word(json_member(restore, "command"), "--claim"));
    cr_assert(has_word(json_member(restore, "command"), "2048"));
    cr_assert_null(json_member(restore, "restartPolicy"));
    cr_assert_str_eq(json_string_at(sync, "name", ""), "coxswain-sync-0");
    static const char *const wanted[] = {"sync", "60",  "--delete-removed", "--checkpoints",
                                         "ddp",  "b-1", "/coxswain/s3/0"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        cr_assert(has_word(json_member(sync, "command"), wanted[i]), "%s", wanted[i]);
    cr_assert_str_eq(option_of(json_member(sync, "command"), "--prefix"), "ml/ddp",
                     "jobs that share a bucket do not take one another's place as its writer");
    cr_assert_str_eq(option_of(json_member(restore, "command"), "--prefix"), "ml/ddp");
    cr_assert_str_eq(json_string_at(sync, "restartPolicy", ""), "Always");
    cr_assert_str_eq(json_string_at(sync, "resources.limits.memory", ""), "512Mi", "it runs beside the program");
    cr_assert_eq(json_integer_at(pod, "spec.terminationGracePeriodSeconds", 0), 300);
    cr_assert_not(json_boolean_at(mount_of(container_of(pod, "trainer"), "/coxswain/storage/runs"), "readOnly", false));
    cr_assert_null(mount_of(container_of(pod, "trainer"), "/coxswain/s3/0"),
                   "the program must not see the credentials");

    const struct json *list = json_at(other, "spec.initContainers");
    cr_assert_eq(json_count(list), 1, "one writer");
    cr_assert_not(has_word(json_member(json_first(list), "command"), "--claim"));
    cr_assert_eq(json_integer_at(other, "spec.terminationGracePeriodSeconds", 0), 30);
}
