/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/refusal.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

static const char *const storages[] = {"data", "runs"};
static const struct pod_source server = {"ps", storages, 2};

/* As API servers say it. */
static const struct {
    enum error_kind error;
    const char *words;
    enum obstacle_kind kind;
    const char *remedy; /* "": the words alone */
} rows[] = {
    {ERROR_INVALID,
     "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field "
     "\"spec.containers[0].imagePullPolcy\"",
     OBSTACLE_TEMPLATE,
     "spec.roles[ps].template: unknown field \"spec.containers[0].imagePullPolcy\": correct it and create the job "
     "anew"},
    {ERROR_INVALID, "Pod \"a-ps-0-1\" is invalid: spec.containers[0].image: Required value", OBSTACLE_REJECTED,
     "correct spec.roles[ps].template"},
    {ERROR_INVALID,
     "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field "
     "\"spec.volumes[1].persistentVolumeClaim.claimNam\"",
     OBSTACLE_TEMPLATE,
     "spec.storage[runs]: unknown field \"spec.volumes[1].persistentVolumeClaim.claimNam\": correct it and create the "
     "job "
     "anew"},
    {ERROR_INVALID, "Pod \"a-ps-0-1\" is invalid: spec.volumes[0].nfs.path: Required value", OBSTACLE_REJECTED,
     "correct spec.storage[data]"},
    {ERROR_INVALID, "Pod \"a-ps-0-1\" is invalid: spec.volumes[2].nfs.path: Required value", OBSTACLE_REJECTED,
     "correct spec.roles[ps].template"},
    {ERROR_INVALID, "admission webhook \"policy.example.com\" denied the request: no latest tags", OBSTACLE_FORBIDDEN,
     "a webhook of the cluster forbids it"},
    {ERROR_FORBIDDEN, "admission webhook \"policy.example.com\" denied the request: no", OBSTACLE_FORBIDDEN,
     "a webhook of the cluster forbids it"},
    {ERROR_INVALID,
     "pods \"a-ps-0-1\" is forbidden: ValidatingAdmissionPolicy 'owners' with binding 'all' denied request: no owner",
     OBSTACLE_FORBIDDEN, "a policy of the cluster forbids it"},
    {ERROR_FORBIDDEN,
     "pods \"a-ps-0-1\" is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true",
     OBSTACLE_FORBIDDEN, "another securityContext"},
    {ERROR_NO_SPACE,
     "pods \"a-ps-0-1\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=4, limited: pods=4",
     OBSTACLE_QUOTA, "free some of the quota or raise it"},
    {ERROR_FORBIDDEN, "pods \"a-ps-0-1\" is forbidden: failed quota: q: must specify limits.cpu for: trainer",
     OBSTACLE_QUOTA, "with resources in the template"},
    {ERROR_FORBIDDEN, "pods \"a\" is forbidden: error looking up service account n/sa: serviceaccount \"sa\" not found",
     OBSTACLE_FORBIDDEN, "create the ServiceAccount"},
    {ERROR_FORBIDDEN, "pods \"a\" is forbidden: no PriorityClass with name high was found", OBSTACLE_FORBIDDEN,
     "create the PriorityClass"},
    {ERROR_FORBIDDEN, "pods \"a\" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi",
     OBSTACLE_FORBIDDEN, "LimitRange"},
    {ERROR_FORBIDDEN, "pods is forbidden: User \"u\" cannot create resource \"pods\" in API group \"\"",
     OBSTACLE_FORBIDDEN, "the operator's role"},
    {ERROR_FORBIDDEN, "something else", OBSTACLE_FORBIDDEN, ""},
    {ERROR_TIMEOUT, "no answer from admission webhook \"x\"", OBSTACLE_OUTAGE, ""},
};

static int http_status_of(enum error_kind kind)
{
    return kind == ERROR_INVALID ? 422 : kind == ERROR_TIMEOUT ? 504 : 403;
}

Test(refusal, each_says_what_to_change_and_whether_it_is_tried_again)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error = ERROR_INIT;
        SCOPED_FREE char *message = NULL;
        error_set(&error, rows[i].error, "%s", rows[i].words);
        error.http_status = http_status_of(rows[i].error);
        cr_expect_eq(refusal_of_create(&error, &server, &message), rows[i].kind, "%s", rows[i].words);
        cr_expect(strstr(message, rows[i].remedy), "%s", message);
        bool says_so = strstr(message, "it is tried again");
        cr_expect_eq(says_so, *rows[i].remedy && !obstacle_is_final(rows[i].kind), "%s", message);
        cr_expect(*rows[i].remedy || strcmp(message, rows[i].words) == 0, "%s", message);
    }
}

Test(refusal, what_is_no_pod_has_no_template)
{
    struct error error = ERROR_INIT;
    SCOPED_FREE char *message = NULL;
    error_set(&error, ERROR_INVALID, "Service \"a\" is invalid: strict decoding error: x");
    error.http_status = 422;
    cr_assert_eq(refusal_of_create(&error, NULL, &message), OBSTACLE_REJECTED);
    cr_assert_str_eq(message, error.message);
}

Test(refusal, a_request_that_nobody_answered_was_not_refused)
{
    static const enum error_kind kinds[] = {ERROR_INVALID, ERROR_FORBIDDEN, ERROR_UNAVAILABLE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct error error = ERROR_INIT;
        SCOPED_FREE char *message = NULL;
        error_set(&error, kinds[i], "https://api: could not load the client certificate");
        cr_expect_eq(refusal_of_create(&error, &server, &message), OBSTACLE_OUTAGE);
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
        cr_expect(strstr(message, "whether pod digits-worker-0-1 was made is not known") &&
                      strstr(message, error.message) && strstr(message, cases[i].remedy),
                  "%s", message);
    }
}

Test(refusal, a_priority_class_that_is_missing_or_may_not_be_read_is_no_outage)
{
    static const struct {
        enum error_kind error;
        int http_status;
        enum obstacle_kind kind;
        const char *remedy;
    } cases[] = {
        {ERROR_NOT_FOUND, 404, OBSTACLE_FORBIDDEN, "; create the PriorityClass of runPolicy.priorityClassName;"},
        {ERROR_FORBIDDEN, 403, OBSTACLE_FORBIDDEN, "; PriorityClasses belong to no namespace: "},
        {ERROR_FORBIDDEN, 0, OBSTACLE_OUTAGE, ""},
        {ERROR_UNAVAILABLE, 503, OBSTACLE_OUTAGE, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error error = ERROR_INIT;
        SCOPED_FREE char *message = NULL;
        error_set(&error, cases[i].error, "priorityclasses.scheduling.k8s.io \"high\": no");
        error.http_status = cases[i].http_status;
        cr_expect_eq(refusal_of_priority(&error, &message), cases[i].kind);
        cr_expect(strstr(message, error.message) && strstr(message, cases[i].remedy), "%s", message);
    }
}
