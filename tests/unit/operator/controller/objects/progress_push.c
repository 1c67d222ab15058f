/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/progress_push.h"

#include <string.h>

#include "common/base64.h"
#include "common/memory.h"
#include "operator/controller/objects/pod_build.h"
#include "tests/unit/operator/controller/plan/scene.h"
#include <criterion/criterion.h>

static const struct push_endpoint endpoint = {
    .url = "https://127.0.0.2:8443", .authority_pem = "the authority", .key = {1, 2, 3}};

#define PATH "/v1/namespaces/default/jobs/digits/uids/job-uid-1/pods/digits-worker-0-1/progress"

static bool opens(const char *path, const char *token)
{
    struct push_path parts;
    cr_assert(push_path_parse(path, &parts), "%s", path);
    return push_token_matches(&endpoint, &parts, token);
}

Test(progress_push, a_token_is_of_one_job)
{
    SCOPED_FREE char *token = push_token(&endpoint, "default", "digits", "job-uid-1");
    cr_assert_eq(strlen(token), 64);
    cr_expect(opens(PATH, token));
    cr_expect_not(opens("/v1/namespaces/other/jobs/digits/uids/job-uid-1/pods/digits-worker-0-1/progress", token));
    cr_expect_not(opens("/v1/namespaces/default/jobs/other/uids/job-uid-1/pods/digits-worker-0-1/progress", token));
    cr_expect_not(opens("/v1/namespaces/default/jobs/digits/uids/job-uid-2/pods/digits-worker-0-1/progress", token));
    cr_expect_not(opens(PATH, ""));
    token[63] ^= 1;
    cr_expect_not(opens(PATH, token));
    token[63] = '\0';
    cr_expect_not(opens(PATH, token));
}

Test(progress_push, a_token_is_of_one_key)
{
    struct push_endpoint other = endpoint;
    other.key[31] = 1;
    SCOPED_FREE char *token = push_token(&other, "default", "digits", "job-uid-1");
    cr_expect_not(opens(PATH, token));
}

Test(progress_push, other_paths_are_none)
{
    static const char *const wrong[] = {"",
                                        "/",
                                        "/v1/namespaces/default/jobs/digits",
                                        "/v1/namespaces//jobs/digits/uids/u/pods/p/progress",
                                        "/v1/namespaces/default/jobs/a/b/uids/u/pods/p/progress",
                                        "/v1/namespaces/default/jobs/digits/uids/u/pods/p/progress/",
                                        "/v1/namespaces/default/jobs/digits/uids/u/pods/p"};
    struct push_path path;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect_not(push_path_parse(wrong[i], &path), "%s", wrong[i]);
    SCOPED_FREE char *name = memory_allocate(PUSH_NAME_MAX + 1, 1);
    memset(name, 'a', PUSH_NAME_MAX);
    SCOPED_FREE char *longer = memory_format("/v1/namespaces/%s/jobs/d/uids/u/pods/p/progress", name);
    cr_expect_not(push_path_parse(longer, &path));
    name[PUSH_NAME_MAX - 1] = '\0';
    SCOPED_FREE char *longest = memory_format("/v1/namespaces/%s/jobs/d/uids/u/pods/p/progress", name);
    cr_expect(push_path_parse(longest, &path));
}

Test(progress_push, the_secret_holds_the_token_and_the_authority)
{
    struct scene scene;
    scene_init(&scene, 2);
    SCOPED_JSON *secret = push_secret_build(&scene.job, &endpoint);
    SCOPED_FREE char *token = push_token(&endpoint, scene.job.namespace, scene.job.name, scene.job.uid);
    SCOPED_FREE char *read = NULL, *authority = NULL;
    size_t length;
    const struct json *data = json_member(secret, "data");
    cr_assert_eq(base64_decode(json_string(json_member(data, "token"), ""), &read, &length, NULL), 0);
    cr_expect_str_eq(read, token);
    cr_assert_eq(base64_decode(json_string(json_member(data, "ca.crt"), ""), &authority, &length, NULL), 0);
    cr_expect_str_eq(authority, "the authority");
    cr_expect_str_eq(json_string_at(json_first(json_at(secret, "metadata.ownerReferences")), "uid", ""), SCENE_UID);
    scene_release(&scene);
}

static const char *variable(const struct json *pod, const char *name)
{
    const struct json *list = json_at(json_first(json_at(pod, "spec.containers")), "env");
    for (const struct json *item = json_first(list); item; item = json_next(item))
        if (strcmp(json_string_at(item, "name", ""), name) == 0)
            return json_string_at(item, "value", "");
    return NULL;
}

static struct json *build(const struct scene *scene, const struct push_endpoint *push)
{
    const struct pod_options options = {.push = push};
    struct pod_builder builder;
    struct json *pod;
    cr_assert_eq(pod_builder_init(&builder, &scene->job, &options, NULL), 0);
    cr_assert_eq(pod_build(&builder, ROLE_WORKER, 1, &pod, NULL), 0);
    pod_builder_release(&builder);
    return pod;
}

Test(progress_push, pods_are_told_where_they_report)
{
    struct scene scene;
    scene_init(&scene, 2);
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene.job.image = "pytorch";
    scene.job.status.incarnation = 3;
    SCOPED_JSON *without = build(&scene, &endpoint);
    cr_expect_null(variable(without, "KUBEFLOW_TRAINER_SERVER_URL"), "the job does not ask for it");
    scene.job.document.progress.push = true;
    SCOPED_JSON *pod = build(&scene, &endpoint), *nowhere = build(&scene, NULL);
    struct push_path path;
    const char *url = variable(pod, "KUBEFLOW_TRAINER_SERVER_URL");
    cr_assert_not_null(url);
    cr_assert_eq(strncmp(url, endpoint.url, strlen(endpoint.url)), 0);
    cr_assert(push_path_parse(url + strlen(endpoint.url), &path));
    cr_expect_str_eq(path.uid, scene.job.uid);
    cr_expect_str_eq(path.pod, "digits-worker-1-3");
    cr_expect_str_eq(variable(pod, "KUBEFLOW_TRAINER_SERVER_TOKEN"), "/coxswain/progress/token");
    cr_expect_str_eq(variable(pod, "KUBEFLOW_TRAINER_SERVER_CA_CERT"), "/coxswain/progress/ca.crt");
    cr_expect_null(variable(nowhere, "KUBEFLOW_TRAINER_SERVER_URL"), "the operator takes no reports");
    scene_release(&scene);
}
