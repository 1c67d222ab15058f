/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/refusal.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "tests/unit/json_of.h"

static const char *const storages[] = {"data", "runs"};
static const struct pod_source server = {ROLE_PS, storages, 2, NULL};

#define CAUSE(field) "{\"details\":{\"causes\":[{\"reason\":\"FieldValueRequired\",\"field\":\"" field "\"}]}}"
#define NO_FIELD "{\"details\":{\"causes\":[{\"message\":\"m\"}]}}"
#define TERMINATING                                                                                                    \
    "{\"details\":{\"causes\":[{\"reason\":\"NamespaceTerminating\",\"field\":\"metadata.namespace\"}]}}"

/* As API servers say it. */
static const struct {
    int http_status;
    enum error_kind error;
    const char *status; /* what matters of the Status */
    const char *words;
    enum obstacle_kind kind;
    const char *remedy;
} rows[] = {
    {400, ERROR_INVALID, "{}",
     "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field "
     "\"spec.containers[0].imagePullPolcy\"",
     OBSTACLE_TEMPLATE,
     "spec.parameterServers.template: unknown field \"spec.containers[0].imagePullPolcy\": correct it and create the "
     "job "
     "anew"},
    {400, ERROR_INVALID, "{}",
     "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field "
     "\"spec.volumes[1].persistentVolumeClaim.claimNam\"",
     OBSTACLE_TEMPLATE,
     "spec.storage[runs]: unknown field \"spec.volumes[1].persistentVolumeClaim.claimNam\": correct it and create the "
     "job anew"},
    {400, ERROR_INVALID, "{}",
     "Pod in version \"v1\" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field "
     "Container.spec.containers.ports of type []v1.ContainerPort",
     OBSTACLE_REJECTED, "correct spec.parameterServers.template"},
    {400, ERROR_INVALID, "{}", "something that is no word on the pod", OBSTACLE_FORBIDDEN, ""},
    {422, ERROR_INVALID, CAUSE("spec.containers[0].image"),
     "Pod \"a-ps-0-1\" is invalid: spec.containers[0].image: Required value", OBSTACLE_REJECTED,
     "correct spec.parameterServers.template"},
    {422, ERROR_INVALID, CAUSE("spec.volumes[0].nfs.path"),
     "Pod \"a-ps-0-1\" is invalid: spec.volumes[0].nfs.path: Required value", OBSTACLE_REJECTED,
     "correct spec.storage[data]"},
    {422, ERROR_INVALID, CAUSE("spec.volumes[2].nfs.path"),
     "Pod \"a-ps-0-1\" is invalid: spec.volumes[2].nfs.path: Required value", OBSTACLE_REJECTED,
     "correct spec.parameterServers.template"},
    {422, ERROR_INVALID, CAUSE("spec.containers[0].env[0].name"),
     "Pod \"a-ps-0-1\" is invalid: spec.containers[0].env[0].name: Invalid value: \"exceeded quota\": must be a name",
     OBSTACLE_REJECTED, "correct spec.parameterServers.template"},
    {422, ERROR_INVALID, "{}", "a plugin that says nothing of a field", OBSTACLE_FORBIDDEN, ""},
    {413, ERROR_TOO_LARGE, "{}", "Request entity too large: limit is 3145728", OBSTACLE_REJECTED,
     "correct spec.parameterServers.template"},
    {422, ERROR_INVALID, CAUSE("spec.containers[0].image"),
     "admission webhook \"policy.example.com\" denied the request: Pod \"a\" is invalid: spec.containers[0].image: "
     "latest",
     OBSTACLE_FORBIDDEN, "a webhook of the cluster forbids it"},
    {400, ERROR_INVALID, "{}",
     "admission webhook \"policy.example.com\" denied the request: strict decoding error: unknown field",
     OBSTACLE_FORBIDDEN, "a webhook of the cluster forbids it"},
    {403, ERROR_FORBIDDEN, "{}", "admission webhook \"policy.example.com\" denied the request: exceeded quota: none",
     OBSTACLE_FORBIDDEN, "a webhook of the cluster forbids it"},
    {422, ERROR_INVALID, NO_FIELD,
     "pods \"a-ps-0-1\" is forbidden: ValidatingAdmissionPolicy 'owners' with binding 'all' denied request: violates "
     "PodSecurity, cannot create resource",
     OBSTACLE_FORBIDDEN, "a policy of the cluster forbids it"},
    {403, ERROR_FORBIDDEN, "{}",
     "pods \"a-ps-0-1\" is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true",
     OBSTACLE_FORBIDDEN, "another securityContext"},
    {403, ERROR_NO_SPACE, "{}",
     "pods \"a-ps-0-1\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=4, limited: pods=4",
     OBSTACLE_QUOTA, "free some of the quota or raise it"},
    {403, ERROR_FORBIDDEN, "{}",
     "pods \"a-ps-0-1\" is forbidden: failed quota: q: must specify limits.cpu for: trainer", OBSTACLE_QUOTA,
     "with resources in the template"},
    {403, ERROR_FORBIDDEN, "{}",
     "pods \"a\" is forbidden: error looking up service account n/sa: serviceaccount \"sa\" not found",
     OBSTACLE_FORBIDDEN, "create the ServiceAccount"},
    {403, ERROR_FORBIDDEN, "{}", "pods \"a\" is forbidden: no PriorityClass with name high was found",
     OBSTACLE_FORBIDDEN, "create the PriorityClass"},
    {403, ERROR_FORBIDDEN, "{}", "pods \"a\" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi",
     OBSTACLE_FORBIDDEN, "LimitRange"},
    {403, ERROR_FORBIDDEN, "{}", "pods is forbidden: User \"u\" cannot create resource \"pods\" in API group \"\"",
     OBSTACLE_FORBIDDEN, "the operator's role"},
    {403, ERROR_FORBIDDEN, TERMINATING, "pods \"a\" is forbidden: unable to create new content in namespace n",
     OBSTACLE_FORBIDDEN, "the namespace is being deleted"},
    {403, ERROR_FORBIDDEN, "{}", "something else", OBSTACLE_FORBIDDEN, ""},
    {504, ERROR_TIMEOUT, "{}", "no answer from admission webhook \"x\"", OBSTACLE_OUTAGE, ""},
};

static enum obstacle_kind refuse(size_t row, bool has_run, char **ret_message)
{
    struct error error = ERROR_INIT;
    SCOPED_JSON *status = json_of(rows[row].status);
    error_set(&error, rows[row].error, "%s", rows[row].words);
    error.http_status = rows[row].http_status;
    return refusal_of_create(&error, status, &server, has_run, ret_message);
}

Test(refusal, each_says_what_to_change_and_whether_it_is_tried_again)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCOPED_FREE char *message = NULL;
        enum obstacle_kind kind = refuse(i, false, &message);
        cr_expect_eq(kind, rows[i].kind, "%s", rows[i].words);
        cr_expect(strstr(message, rows[i].remedy), "%s", message);
        bool says_so = strstr(message, "it is tried again");
        cr_expect_eq(says_so, kind != OBSTACLE_OUTAGE && !obstacle_is_objects_fault(kind), "%s", message);
    }
}

Test(refusal, a_job_that_has_run_is_told_that_a_wrong_pod_is_tried_again)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCOPED_FREE char *message = NULL;
        if (rows[i].kind != OBSTACLE_REJECTED)
            continue;
        cr_expect_eq(refuse(i, true, &message), OBSTACLE_REJECTED);
        cr_expect(strstr(message, rows[i].words) == message && strstr(message, "so it is tried again"), "%s", message);
    }
}

/* What is wrong may be the class's. */
Test(refusal, the_class_is_named)
{
    const struct pod_source source = {ROLE_WORKER, storages, 2, " (with the defaults of TrainingClass small)"};
    SCOPED_FREE char *storage = refusal_place(&source, "spec.volumes[1].nfs.path");
    SCOPED_FREE char *template = refusal_place(&source, "spec.containers[0].image");
    cr_expect_str_eq(storage, "spec.storage[runs] (with the defaults of TrainingClass small)");
    cr_expect_str_eq(template, "spec.workers.template (with the defaults of TrainingClass small)");
}

Test(refusal, what_is_no_pod_has_no_template)
{
    struct error error = ERROR_INIT;
    SCOPED_FREE char *message = NULL;
    SCOPED_JSON *status = NULL;
    cr_assert_eq(json_parse(CAUSE("spec.ports"), strlen(CAUSE("spec.ports")), 4096, &status, NULL), 0);
    error_set(&error, ERROR_INVALID, "Service \"a\" is invalid: spec.ports: Required value");
    error.http_status = 422;
    cr_assert_eq(refusal_of_create(&error, status, NULL, false, &message), OBSTACLE_REJECTED);
    cr_assert_str_eq(message, error.message);
}

Test(refusal, a_request_that_nobody_answered_was_not_refused)
{
    static const enum error_kind kinds[] = {ERROR_INVALID, ERROR_FORBIDDEN, ERROR_UNAVAILABLE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct error error = ERROR_INIT;
        SCOPED_FREE char *message = NULL;
        error_set(&error, kinds[i], "https://api: could not load the client certificate");
        cr_expect_eq(refusal_of_create(&error, NULL, &server, false, &message), OBSTACLE_OUTAGE);
        cr_expect_str_eq(message, error.message);
    }
}

Test(refusal, a_look_that_is_refused_says_nothing_of_the_pod)
{
    static const struct {
        enum error_kind error;
        int http_status;
        enum obstacle_kind kind;
        const char *remedy;
    } cases[] = {
        {ERROR_FORBIDDEN, 403, OBSTACLE_FORBIDDEN, "; let the operator's role get pods"},
        {ERROR_FORBIDDEN, 0, OBSTACLE_OUTAGE, ""},
        {ERROR_INVALID, 400, OBSTACLE_OUTAGE, ""},
        {ERROR_TOO_LARGE, 413, OBSTACLE_OUTAGE, ""},
        {ERROR_UNAVAILABLE, 503, OBSTACLE_OUTAGE, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error error = ERROR_INIT;
        SCOPED_FREE char *message = NULL;
        error_set(&error, cases[i].error, "pods \"digits-worker-0-1\" is forbidden: cannot get resource \"pods\"");
        error.http_status = cases[i].http_status;
        cr_expect_eq(refusal_of_look(&error, "digits-worker-0-1", &message), cases[i].kind);
        cr_expect(strstr(message, "it is not known whether pod digits-worker-0-1 was created") &&
                      strstr(message, error.message) && strstr(message, cases[i].remedy),
                  "%s", message);
    }
}

Test(refusal, a_priority_class_that_is_missing_or_may_not_be_read_is_no_outage)
{
    static const struct {
        enum error_kind error;
        int http_status;
        bool of_kueue;
        enum obstacle_kind kind;
        const char *remedy;
    } cases[] = {
        {ERROR_NOT_FOUND, 404, false, OBSTACLE_FORBIDDEN, "; create the PriorityClass of runPolicy.priorityClassName;"},
        {ERROR_NOT_FOUND, 404, true, OBSTACLE_FORBIDDEN,
         "; create the WorkloadPriorityClass of the label kueue.x-k8s.io/priority-class;"},
        {ERROR_FORBIDDEN, 403, false, OBSTACLE_FORBIDDEN, "; PriorityClasses belong to no namespace: "},
        {ERROR_FORBIDDEN, 403, true, OBSTACLE_FORBIDDEN, "; WorkloadPriorityClasses belong to no namespace: "},
        {ERROR_FORBIDDEN, 0, false, OBSTACLE_OUTAGE, ""},
        {ERROR_UNAVAILABLE, 503, true, OBSTACLE_OUTAGE, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error error = ERROR_INIT;
        SCOPED_FREE char *message = NULL;
        error_set(&error, cases[i].error, "priorityclasses.scheduling.k8s.io \"high\": no");
        error.http_status = cases[i].http_status;
        cr_expect_eq(refusal_of_priority(&error, cases[i].of_kueue, &message), cases[i].kind);
        cr_expect(strstr(message, error.message) && strstr(message, cases[i].remedy), "%s", message);
    }
}

Test(refusal, of_a_trial_names_the_fields_of_the_template)
{
    static const struct {
        const char *words, *wanted;
    } trials[] = {
        {"TrainingJob in version \"v1beta1\" cannot be handled as a TrainingJob: strict decoding error: unknown field "
         "\"spec.coxswain.standardise\"",
         "spec.template, with values of spec.parameters: unknown field \"spec.coxswain.standardise\": correct it and "
         "create the sweep anew"},
        {"TrainingJob.coxswain.dev \"s-0\" is invalid: spec.coxswain.model.preset: Unsupported value: \"mpl\"",
         "spec.template, with values of spec.parameters: spec.coxswain.model.preset: Unsupported value: \"mpl\": "
         "correct "
         "it and create the sweep anew"},
        {"Request entity too large: limit is 3145728", "Request entity too large: limit is 3145728"},
    };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        struct error error = ERROR_INIT;
        error_set(&error, ERROR_INVALID, "%s", trials[i].words);
        SCOPED_FREE char *message = refusal_of_trial(&error);
        cr_expect_str_eq(message, trials[i].wanted);
    }
}
