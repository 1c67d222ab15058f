/* SPDX-License-Identifier: Apache-2.0
 *
 * The embedded control plane's API as clients meet it: over TLS, with the token, on one event loop with the client.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/event_loop.h"
#include "common/http_client.h"
#include "common/json.h"
#include "common/memory.h"
#include "operator/standalone/api_server.h"
#include "operator/standalone/bootstrap.h"
#include "operator/standalone/credentials.h"
#include "operator/standalone/garbage_collector.h"
#include "operator/standalone/registry.h"

TestSuite(standalone_api, .timeout = 120);

#define BODY_MAX (1 << 20)
#define CONFIG_MAPS "/api/v1/namespaces/default/configmaps"
#define SECRETS "/api/v1/namespaces/default/secrets"
#define PODS "/api/v1/namespaces/default/pods"
#define JOBS "/apis/coxswain.dev/v1beta1/namespaces/default/trainingjobs"
#define MERGE "application/merge-patch+json"
#define TABLE "Accept: application/json;as=Table;v=v1;g=meta.k8s.io"

struct scene {
    char directory[64];
    struct event_loop *loop;
    struct registry *registry;
    struct credentials credentials;
    struct api_server *server;
    struct http_client *client;
};

static void open_scene(struct scene *scene)
{
    struct error error = ERROR_INIT;
    *scene = (struct scene){.directory = "/tmp/coxswain-api-XXXXXX"};
    cr_assert_not_null(mkdtemp(scene->directory));
    cr_assert_eq(event_loop_new(&scene->loop, &error), 0, "%s", error.message);
    cr_assert_eq(registry_open(scene->directory, scene->loop, &scene->registry, &error), 0, "%s", error.message);
    cr_assert_eq(bootstrap_cluster(scene->registry, &error), 0, "%s", error.message);
    cr_assert_eq(bootstrap_definitions(scene->registry, "deploy/crd", &error), 0, "%s", error.message);
    cr_assert_eq(credentials_load(scene->directory, &scene->credentials, &error), 0, "%s", error.message);
    struct api_server_options server = {
        .loop = scene->loop,
        .registry = scene->registry,
        .cert_pem = scene->credentials.cert_pem,
        .key_pem = scene->credentials.key_pem,
        .token = scene->credentials.token,
    };
    cr_assert_eq(api_server_start(&server, &scene->server, &error), 0, "%s", error.message);
    struct http_client_options client = {.ca_pem = scene->credentials.ca_pem};
    cr_assert_eq(http_client_new(scene->loop, &client, &scene->client, &error), 0, "%s", error.message);
}

static void close_scene(struct scene *scene)
{
    http_client_free(scene->client);
    api_server_free(scene->server);
    registry_close(scene->registry);
    event_loop_free(scene->loop);
    credentials_release(&scene->credentials);
    SCOPED_FREE char *remove = memory_format("rm -rf %s", scene->directory);
    cr_expect_eq(system(remove), 0);
}

/* ---- one request ---- */

struct answer {
    int status;
    struct json *body; /* NULL: none, or no JSON */
    bool done;
};

static void on_answer(void *context, const struct http_response *response)
{
    struct answer *answer = context;
    answer->status = response->status;
    if (response->body_length)
        json_parse(response->body, response->body_length, BODY_MAX, &answer->body, NULL);
    answer->done = true;
}

static struct answer ask_as(struct scene *scene, const char *method, const char *path, const char *type,
                            const char *accept, const char *body)
{
    struct answer answer = {0};
    const char *headers[] = {accept, NULL};
    SCOPED_FREE char *url = memory_format("https://127.0.0.1:%u%s", api_server_port(scene->server), path);
    http_client_start(scene->client, &(struct http_request){.method = method,
                                                            .url = url,
                                                            .headers = accept ? headers : NULL,
                                                            .body = body,
                                                            .body_length = body ? strlen(body) : 0,
                                                            .content_type = body ? type : NULL,
                                                            .bearer_token = scene->credentials.token,
                                                            .done = on_answer,
                                                            .context = &answer});
    while (!answer.done)
        cr_assert_eq(event_loop_turn(scene->loop, -1, NULL), 0);
    return answer;
}

/* Asks, checks the status and hands over the body. */
static struct json *expect(struct scene *scene, int status, const char *method, const char *path, const char *body)
{
    bool patch = strcmp(method, "PATCH") == 0;
    struct answer answer = ask_as(scene, method, path, patch ? MERGE : "application/json", NULL, body);
    cr_assert_eq(answer.status, status, "%s %s answers %d %s", method, path, answer.status,
                 json_string_at(answer.body, "message", ""));
    return answer.body;
}

static void expect_only(struct scene *scene, int status, const char *method, const char *path, const char *body)
{
    json_free(expect(scene, status, method, path, body));
}

/* A refusal is a metav1.Status that says the same as the HTTP status line. */
static void expect_refusal(struct scene *scene, int status, const char *reason, const char *method, const char *path,
                           const char *body)
{
    SCOPED_JSON *refusal = expect(scene, status, method, path, body);
    cr_expect_str_eq(json_string_at(refusal, "kind", ""), "Status", "%s %s", method, path);
    cr_expect_eq(json_integer_at(refusal, "code", 0), status, "%s %s", method, path);
    cr_expect_str_eq(json_string_at(refusal, "reason", ""), reason, "%s %s", method, path);
}

static char *config_map(const char *name, const char *value)
{
    return memory_format("{\"metadata\":{\"name\":\"%s\",\"labels\":{\"v\":\"%s\"}},\"data\":{\"v\":\"%s\"}}", name,
                         value, value);
}

/* Returns its resourceVersion. */
static int64_t make(struct scene *scene, const char *name, const char *value)
{
    SCOPED_FREE char *text = config_map(name, value);
    SCOPED_JSON *made = expect(scene, 201, "POST", CONFIG_MAPS, text);
    return strtoll(json_string_at(made, "metadata.resourceVersion", ""), NULL, 10);
}

static const char *version_of(const struct json *object)
{
    return json_string_at(object, "metadata.resourceVersion", "");
}

/* ---- watches ---- */

#define EVENTS_MAX 32

struct watcher {
    struct scene *scene;
    struct buffer text;
    struct json *events[EVENTS_MAX];
    int count;
    bool ended;
};

static int on_data(void *context, const char *bytes, size_t length, struct error *error)
{
    struct watcher *watcher = context;
    if (buffer_append(&watcher->text, bytes, length, error) < 0)
        return -1;
    const char *end;
    while ((end = memchr(watcher->text.data, '\n', watcher->text.length)) && watcher->count < EVENTS_MAX) {
        size_t line = (size_t)(end - (const char *)watcher->text.data);
        if (json_parse((const char *)watcher->text.data, line, BODY_MAX, &watcher->events[watcher->count++], error) < 0)
            return -1;
        buffer_consume(&watcher->text, line + 1);
    }
    return 0;
}

static void on_end(void *context, const struct http_response *response)
{
    (void)response;
    ((struct watcher *)context)->ended = true;
}

static void watch(struct watcher *watcher, struct scene *scene, const char *query)
{
    SCOPED_FREE char *url =
        memory_format("https://127.0.0.1:%u" CONFIG_MAPS "?watch=1&%s", api_server_port(scene->server), query);
    *watcher = (struct watcher){.scene = scene};
    buffer_init(&watcher->text, BODY_MAX);
    http_client_start(scene->client, &(struct http_request){.method = "GET",
                                                            .url = url,
                                                            .bearer_token = scene->credentials.token,
                                                            .on_data = on_data,
                                                            .done = on_end,
                                                            .context = watcher});
}

static void wait_events(struct watcher *watcher, int count)
{
    while (watcher->count < count && !watcher->ended)
        cr_assert_eq(event_loop_turn(watcher->scene->loop, -1, NULL), 0);
    cr_assert_geq(watcher->count, count);
}

static void wait_end(struct watcher *watcher)
{
    while (!watcher->ended)
        cr_assert_eq(event_loop_turn(watcher->scene->loop, -1, NULL), 0);
}

static void expect_event(const struct watcher *watcher, int at, const char *type, const char *name)
{
    cr_expect_str_eq(json_string_at(watcher->events[at], "type", ""), type, "event %d", at);
    cr_expect_str_eq(json_string_at(watcher->events[at], "object.metadata.name", ""), name, "event %d", at);
}

static void watcher_release(struct watcher *watcher)
{
    for (int i = 0; i < watcher->count; i++)
        json_free(watcher->events[i]);
    buffer_release(&watcher->text);
}

Test(standalone_api, a_watch_resumed_at_a_version_misses_nothing)
{
    struct scene scene;
    struct watcher watcher;
    open_scene(&scene);
    make(&scene, "before", "1");
    int64_t version = make(&scene, "here", "1");
    make(&scene, "after", "1");
    expect_only(&scene, 200, "PATCH", CONFIG_MAPS "/before", "{\"data\":{\"v\":\"2\"}}");
    expect_only(&scene, 200, "DELETE", CONFIG_MAPS "/here", NULL);
    SCOPED_FREE char *query = memory_format("resourceVersion=%lld", (long long)version);
    watch(&watcher, &scene, query);
    wait_events(&watcher, 3);
    make(&scene, "later", "1");
    wait_events(&watcher, 4);
    expect_event(&watcher, 0, "ADDED", "after");
    expect_event(&watcher, 1, "MODIFIED", "before");
    expect_event(&watcher, 2, "DELETED", "here");
    expect_event(&watcher, 3, "ADDED", "later");
    close_scene(&scene);
    watcher_release(&watcher);
}

/* Clients renew their watches every few seconds to recognise silence: nothing may fall in between. */
Test(standalone_api, a_watch_ends_with_a_bookmark_where_the_next_goes_on)
{
    struct scene scene;
    struct watcher watcher;
    open_scene(&scene);
    watch(&watcher, &scene, "timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion=1&labelSelector=v%3Dnone");
    int64_t version = make(&scene, "unseen", "1");
    wait_end(&watcher);
    cr_assert_eq(watcher.count, 1);
    expect_event(&watcher, 0, "BOOKMARK", "");
    SCOPED_FREE char *reached = memory_copy_string(version_of(json_member(watcher.events[0], "object")));
    cr_expect_geq(strtoll(reached, NULL, 10), version);
    watcher_release(&watcher);
    make(&scene, "between", "1");
    SCOPED_FREE char *query = memory_format("resourceVersion=%s", reached);
    watch(&watcher, &scene, query);
    wait_events(&watcher, 1);
    expect_event(&watcher, 0, "ADDED", "between");
    close_scene(&scene);
    watcher_release(&watcher);
}

Test(standalone_api, initial_events_end_with_a_bookmark)
{
    struct scene scene;
    struct watcher watcher;
    open_scene(&scene);
    make(&scene, "a", "1");
    make(&scene, "b", "1");
    watch(&watcher, &scene,
          "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=v%3D1");
    wait_events(&watcher, 3);
    expect_event(&watcher, 0, "ADDED", "a");
    expect_event(&watcher, 1, "ADDED", "b");
    cr_expect_str_eq(json_string_at(watcher.events[2], "type", ""), "BOOKMARK");
    const struct json *notes = json_at(watcher.events[2], "object.metadata.annotations");
    cr_expect_str_eq(json_string(json_member(notes, "k8s.io/initial-events-end"), ""), "true");
    expect_refusal(&scene, 422, "Invalid", "GET", CONFIG_MAPS "?watch=1&sendInitialEvents=true", NULL);
    close_scene(&scene);
    watcher_release(&watcher);
}

Test(standalone_api, an_object_that_leaves_the_selection_is_deleted_to_the_watcher)
{
    struct scene scene;
    struct watcher watcher;
    open_scene(&scene);
    make(&scene, "a", "1");
    watch(&watcher, &scene, "labelSelector=v%3D1");
    wait_events(&watcher, 1);
    expect_only(&scene, 200, "PATCH", CONFIG_MAPS "/a", "{\"metadata\":{\"labels\":{\"v\":\"2\"}}}");
    expect_only(&scene, 200, "PATCH", CONFIG_MAPS "/a", "{\"metadata\":{\"labels\":{\"v\":\"1\"}}}");
    wait_events(&watcher, 3);
    expect_event(&watcher, 1, "DELETED", "a");
    expect_event(&watcher, 2, "ADDED", "a");
    close_scene(&scene);
    watcher_release(&watcher);
}

/* More writes than the log of changes keeps. */
static void outgrow_the_log(struct scene *scene)
{
    struct error error = ERROR_INIT;
    SCOPED_FREE char *text = config_map("busy", "1");
    SCOPED_JSON *object = NULL;
    json_parse(text, strlen(text), BODY_MAX, &object, NULL);
    json_set_string(json_member(object, "metadata"), "namespace", "default");
    for (int i = 0; i < 5300; i++) {
        cr_assert_eq(registry_create(scene->registry, "configmaps", object, NULL, &error), 0, "%s", error.message);
        registry_delete(scene->registry, "configmaps", "default", "busy", NULL, 0, &error);
    }
    cr_assert_eq(registry_commit(scene->registry, &error), 0, "%s", error.message);
}

Test(standalone_api, positions_expire_with_the_log_of_changes)
{
    struct scene scene;
    struct watcher watcher;
    open_scene(&scene);
    int64_t version = make(&scene, "a", "1");
    make(&scene, "b", "1");
    SCOPED_JSON *page = expect(&scene, 200, "GET", CONFIG_MAPS "?limit=1", NULL);
    SCOPED_FREE char *rest =
        memory_format(CONFIG_MAPS "?limit=1&continue=%s", json_string_at(page, "metadata.continue", ""));
    outgrow_the_log(&scene);
    SCOPED_FREE char *query = memory_format("resourceVersion=%lld", (long long)version);
    watch(&watcher, &scene, query);
    wait_end(&watcher);
    cr_assert_eq(watcher.count, 1);
    cr_expect_str_eq(json_string_at(watcher.events[0], "type", ""), "ERROR");
    cr_expect_eq(json_integer_at(watcher.events[0], "object.code", 0), 410);
    expect_refusal(&scene, 410, "Expired", "GET", rest, NULL);
    close_scene(&scene);
    watcher_release(&watcher);
}

/* ---- reads ---- */

Test(standalone_api, pages_cover_the_list_once)
{
    struct scene scene;
    char seen[16] = "", *next = memory_copy_string("");
    open_scene(&scene);
    for (const char *name = "abcde"; *name; name++)
        make(&scene, (char[]){*name, '\0'}, "1");
    do {
        SCOPED_FREE char *path = memory_format(CONFIG_MAPS "?limit=2&labelSelector=v%%3D1&continue=%s", next);
        SCOPED_JSON *page = expect(&scene, 200, "GET", path, NULL);
        cr_assert_leq(json_count(json_member(page, "items")), 2);
        for (struct json *item = json_first(json_member(page, "items")); item; item = json_next(item))
            strncat(seen, json_string_at(item, "metadata.name", "?"), sizeof seen - strlen(seen) - 1);
        free(next);
        next = memory_copy_string(json_string_at(page, "metadata.continue", ""));
    } while (next[0]);
    free(next);
    cr_expect_str_eq(seen, "abcde");
    expect_refusal(&scene, 400, "BadRequest", "GET", CONFIG_MAPS "?limit=2&continue=rubbish", NULL);
    close_scene(&scene);
}

Test(standalone_api, tables_have_the_columns_that_kubectl_prints)
{
    struct scene scene;
    open_scene(&scene);
    make(&scene, "a", "1");
    struct answer answer = ask_as(&scene, "GET", CONFIG_MAPS "?labelSelector=v%3D1", NULL, TABLE, NULL);
    cr_expect_eq(answer.status, 200);
    cr_expect_str_eq(json_string_at(answer.body, "kind", ""), "Table");
    cr_expect_str_eq(json_string_at(json_first(json_member(answer.body, "columnDefinitions")), "name", ""), "Name");
    const struct json *row = json_first(json_member(answer.body, "rows"));
    cr_expect_str_eq(json_string(json_first(json_member(row, "cells")), ""), "a");
    cr_expect_str_eq(json_string_at(row, "object.kind", ""), "PartialObjectMetadata");
    json_free(answer.body);
    close_scene(&scene);
}

/* ---- writes ---- */

Test(standalone_api, an_old_version_conflicts)
{
    struct scene scene;
    open_scene(&scene);
    int64_t old = make(&scene, "a", "1");
    SCOPED_FREE char *text = memory_format(
        "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"%lld\"},\"data\":{\"v\":\"2\"}}", (long long)old);
    expect_only(&scene, 200, "PUT", CONFIG_MAPS "/a", text);
    expect_refusal(&scene, 409, "Conflict", "PUT", CONFIG_MAPS "/a", text);
    expect_refusal(&scene, 409, "Conflict", "PATCH", CONFIG_MAPS "/a", text);
    expect_refusal(&scene, 422, "Invalid", "PATCH", CONFIG_MAPS "/a", "{\"metadata\":{\"uid\":\"other\"}}");
    expect_refusal(&scene, 409, "Conflict", "PUT", CONFIG_MAPS "/a",
                   "{\"metadata\":{\"name\":\"a\",\"uid\":\"other\"}}");
    expect_refusal(&scene, 409, "AlreadyExists", "POST", CONFIG_MAPS, "{\"metadata\":{\"name\":\"a\"}}");
    close_scene(&scene);
}

Test(standalone_api, preconditions_guard_a_delete)
{
    struct scene scene;
    open_scene(&scene);
    make(&scene, "a", "1");
    SCOPED_JSON *object = expect(&scene, 200, "GET", CONFIG_MAPS "/a", NULL);
    SCOPED_FREE char *right =
        memory_format("{\"preconditions\":{\"uid\":\"%s\"}}", json_string_at(object, "metadata.uid", ""));
    expect_refusal(&scene, 409, "Conflict", "DELETE", CONFIG_MAPS "/a", "{\"preconditions\":{\"uid\":\"other\"}}");
    expect_refusal(&scene, 409, "Conflict", "DELETE", CONFIG_MAPS "/a",
                   "{\"preconditions\":{\"resourceVersion\":\"1\"}}");
    expect_only(&scene, 200, "DELETE", CONFIG_MAPS "/a", right);
    expect_refusal(&scene, 404, "NotFound", "DELETE", CONFIG_MAPS "/a", NULL);
    close_scene(&scene);
}

Test(standalone_api, a_dry_run_changes_nothing)
{
    struct scene scene;
    open_scene(&scene);
    SCOPED_JSON *made = expect(&scene, 201, "POST", CONFIG_MAPS "?dryRun=All",
                               "{\"metadata\":{\"name\":\"a\"},\"data\":{\"v\":\"1\"}}");
    cr_expect_neq(json_string_at(made, "metadata.uid", "")[0], '\0');
    expect_refusal(&scene, 404, "NotFound", "GET", CONFIG_MAPS "/a", NULL);
    make(&scene, "a", "1");
    expect_only(&scene, 200, "PATCH", CONFIG_MAPS "/a?dryRun=All", "{\"data\":{\"v\":\"2\"}}");
    expect_only(&scene, 200, "DELETE", CONFIG_MAPS "/a?dryRun=All", NULL);
    SCOPED_JSON *kept = expect(&scene, 200, "GET", CONFIG_MAPS "/a", NULL);
    cr_expect_str_eq(json_string_at(kept, "data.v", ""), "1");
    close_scene(&scene);
}

Test(standalone_api, a_merge_patch_sets_and_removes)
{
    struct scene scene;
    open_scene(&scene);
    make(&scene, "a", "1");
    SCOPED_JSON *patched = expect(&scene, 200, "PATCH", CONFIG_MAPS "/a", "{\"data\":{\"v\":null,\"w\":\"2\"}}");
    cr_expect_null(json_at(patched, "data.v"));
    cr_expect_str_eq(json_string_at(patched, "data.w", ""), "2");
    SCOPED_JSON *same = expect(&scene, 200, "PATCH", CONFIG_MAPS "/a", "{\"data\":{\"w\":\"2\"}}");
    cr_expect_str_eq(version_of(same), version_of(patched), "a patch without effect is no write");
    close_scene(&scene);
}

Test(standalone_api, generated_names_differ)
{
    struct scene scene;
    open_scene(&scene);
    static const char text[] = "{\"metadata\":{\"generateName\":\"some-\"}}";
    for (int i = 0; i < 20; i++) {
        SCOPED_JSON *made = expect(&scene, 201, "POST", CONFIG_MAPS, text);
        const char *name = json_string_at(made, "metadata.name", "");
        cr_expect_eq(strncmp(name, "some-", 5), 0);
        cr_expect_eq(strlen(name), 10);
    }
    close_scene(&scene);
}

Test(standalone_api, a_collection_is_deleted_by_selector)
{
    struct scene scene;
    open_scene(&scene);
    make(&scene, "a", "1");
    make(&scene, "b", "1");
    make(&scene, "c", "2");
    expect_only(&scene, 200, "DELETE", CONFIG_MAPS "?labelSelector=v%3D1", NULL);
    expect_only(&scene, 404, "GET", CONFIG_MAPS "/a", NULL);
    expect_only(&scene, 404, "GET", CONFIG_MAPS "/b", NULL);
    expect_only(&scene, 200, "GET", CONFIG_MAPS "/c", NULL);
    close_scene(&scene);
}

Test(standalone_api, what_is_owned_goes_with_its_owner)
{
    struct scene scene;
    struct watcher watcher;
    open_scene(&scene);
    garbage_collector_attach(scene.registry);
    make(&scene, "owner", "1");
    SCOPED_JSON *owner = expect(&scene, 200, "GET", CONFIG_MAPS "/owner", NULL);
    SCOPED_FREE char *owned = memory_format(
        "{\"metadata\":{\"name\":\"owned\",\"labels\":{\"v\":\"owned\"},\"ownerReferences\":[{\"apiVersion\":\"v1\","
        "\"kind\":\"ConfigMap\",\"name\":\"owner\",\"uid\":\"%s\"}]}}",
        json_string_at(owner, "metadata.uid", ""));
    expect_only(&scene, 201, "POST", CONFIG_MAPS, owned);
    watch(&watcher, &scene, "labelSelector=v%3Downed");
    wait_events(&watcher, 1);
    expect_only(&scene, 200, "DELETE", CONFIG_MAPS "/owner", NULL);
    wait_events(&watcher, 2);
    expect_event(&watcher, 1, "DELETED", "owned");
    close_scene(&scene);
    watcher_release(&watcher);
}

/* ---- training jobs: status and scale ---- */

#define JOB                                                                                                            \
    "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"j\"},\"spec\":{"       \
    "\"workers\":{\"replicas\":2,\"minReplicas\":1,\"maxReplicas\":4},\"coxswain\":{"                                  \
    "\"strategy\":{\"type\":\"MultiWorkerMirrored\"},\"model\":{\"preset\":\"lenet\"},\"data\":{\"format\":"           \
    "\"Synthetic\",\"examples\":100},\"training\":{\"steps\":10,\"batchSize\":8,"                                      \
    "\"optimizer\":{\"type\":\"SGD\",\"learningRate\":0.1}}}}}"

Test(standalone_api, status_is_written_through_its_subresource_only)
{
    struct scene scene;
    open_scene(&scene);
    expect_only(&scene, 201, "POST", JOBS, JOB);
    SCOPED_JSON *ignored = expect(&scene, 200, "PATCH", JOBS "/j", "{\"status\":{\"workers\":5}}");
    cr_expect_null(json_at(ignored, "status.workers"));
    SCOPED_JSON *written = expect(&scene, 200, "PATCH", JOBS "/j/status",
                                  "{\"status\":{\"workers\":5},\"spec\":{\"workers\":{\"replicas\":3}}}");
    expect_only(&scene, 200, "PATCH", JOBS "/j/status",
                "{\"metadata\":{\"uid\":\"other\"},\"status\":{\"workers\":5}}");
    cr_expect_eq(json_integer_at(written, "status.workers", 0), 5);
    cr_expect_eq(json_integer_at(written, "spec.workers.replicas", 0), 2);
    cr_expect_eq(json_integer_at(written, "metadata.generation", 0), 1);
    close_scene(&scene);
}

Test(standalone_api, scale_shows_and_sets_the_replicas)
{
    struct scene scene;
    open_scene(&scene);
    expect_only(&scene, 201, "POST", JOBS, JOB);
    SCOPED_JSON *scale = expect(&scene, 200, "GET", JOBS "/j/scale", NULL);
    cr_expect_str_eq(json_string_at(scale, "kind", ""), "Scale");
    cr_expect_eq(json_integer_at(scale, "spec.replicas", 0), 2);
    expect_only(&scene, 200, "PATCH", JOBS "/j/scale", "{\"spec\":{\"replicas\":3}}");
    SCOPED_JSON *job = expect(&scene, 200, "GET", JOBS "/j", NULL);
    cr_expect_eq(json_integer_at(job, "spec.workers.replicas", 0), 3);
    cr_expect_eq(json_integer_at(job, "metadata.generation", 0), 2);
    close_scene(&scene);
}

/* ---- refusals ---- */

Test(standalone_api, what_is_not_there_is_refused_in_the_real_shapes)
{
    struct scene scene;
    open_scene(&scene);
    expect_refusal(&scene, 404, "NotFound", "GET", CONFIG_MAPS "/none", NULL);
    expect_refusal(&scene, 404, "NotFound", "GET", "/api/v1/namespaces/default/nonsense", NULL);
    expect_only(&scene, 404, "GET", "/apis/nonsense.example/v1/things", NULL);
    expect_refusal(&scene, 404, "NotFound", "POST", "/api/v1/namespaces/none/configmaps",
                   "{\"metadata\":{\"name\":\"a\"}}");
    expect_refusal(&scene, 405, "MethodNotAllowed", "PUT", CONFIG_MAPS, "{\"metadata\":{\"name\":\"a\"}}");
    expect_refusal(&scene, 405, "MethodNotAllowed", "POST", CONFIG_MAPS "/a", "{\"metadata\":{\"name\":\"a\"}}");
    expect_refusal(&scene, 400, "BadRequest", "POST", CONFIG_MAPS, "{\"metadata\":");
    struct answer answer = ask_as(&scene, "POST", CONFIG_MAPS, "text/plain", NULL, "hello");
    cr_expect_eq(answer.status, 415);
    cr_expect_str_eq(json_string_at(answer.body, "reason", ""), "UnsupportedMediaType");
    json_free(answer.body);
    answer = ask_as(&scene, "PATCH", CONFIG_MAPS "/a", "application/json", NULL, "{}");
    cr_expect_eq(answer.status, 415);
    json_free(answer.body);
    close_scene(&scene);
}

Test(standalone_api, streams_into_pods_are_refused_with_what_to_do_instead)
{
    static const struct {
        const char *subresource, *instead;
    } streams[] = {{"exec?command=ls", "run the command on this machine"},
                   {"attach", "kubectl logs -f"},
                   {"portforward", "status.podIP"}};
    struct scene scene;
    open_scene(&scene);
    expect_only(&scene, 201, "POST", PODS,
                "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"none\"}]}}");
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        SCOPED_FREE char *path = memory_format(PODS "/a/%s", streams[i].subresource);
        static const char *const methods[] = {"GET", "POST"}; /* over WebSockets, over SPDY */
        for (size_t j = 0; j < 2; j++) {
            struct answer answer = ask_as(&scene, methods[j], path, "application/json", NULL, NULL);
            cr_expect_eq(answer.status, 501);
            cr_expect_str_eq(json_string_at(answer.body, "reason", ""), "NotImplemented");
            cr_expect(strstr(json_string_at(answer.body, "message", ""), streams[i].instead));
            json_free(answer.body);
        }
    }
    expect_refusal(&scene, 404, "NotFound", "POST", PODS "/none/exec", NULL);
    close_scene(&scene);
}

Test(standalone_api, clients_with_generated_types_find_all_that_they_require)
{
    static const char *const required[] = {
        "architecture",   "bootID",    "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion",
        "kubeletVersion", "machineID", "operatingSystem",         "osImage",       "systemUUID"};
    struct scene scene;
    open_scene(&scene);
    struct answer answer = ask_as(&scene, "GET", "/version/", NULL, NULL, NULL);
    cr_expect_eq(answer.status, 200);
    static const char *const of_version[] = {"major",     "minor",     "gitVersion", "gitCommit", "gitTreeState",
                                             "buildDate", "goVersion", "compiler",   "platform"};
    for (size_t i = 0; i < sizeof of_version / sizeof *of_version; i++)
        cr_expect_not_null(json_string_at(answer.body, of_version[i], NULL), "%s", of_version[i]);
    json_free(answer.body);
    answer = ask_as(&scene, "GET", "/api/v1/nodes", NULL, NULL, NULL);
    const struct json *info = json_at(json_first(json_at(answer.body, "items")), "status.nodeInfo");
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        cr_expect_not_null(json_string_at(info, required[i], NULL), "%s", required[i]);
    json_free(answer.body);
    close_scene(&scene);
}

Test(standalone_api, bad_data_is_refused)
{
    struct scene scene;
    open_scene(&scene);
    expect_refusal(&scene, 400, "BadRequest", "POST", CONFIG_MAPS,
                   "{\"metadata\":{\"name\":\"a\"},\"data\":{\"v\":1}}");
    expect_refusal(&scene, 400, "BadRequest", "POST", CONFIG_MAPS, "{\"metadata\":{\"name\":\"a\"},\"data\":[]}");
    expect_refusal(&scene, 422, "Invalid", "POST", CONFIG_MAPS,
                   "{\"metadata\":{\"name\":\"a\"},\"data\":{\"a b\":\"\"}}");
    expect_refusal(&scene, 400, "BadRequest", "POST", SECRETS,
                   "{\"metadata\":{\"name\":\"a\"},\"data\":{\"v\":\"***\"}}");
    expect_only(&scene, 201, "POST", SECRETS, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"v\":\"aGk=\"}}");
    make(&scene, "a", "1");
    expect_refusal(&scene, 400, "BadRequest", "PUT", CONFIG_MAPS "/a", "{\"metadata\":{}}");
    expect_refusal(&scene, 400, "BadRequest", "PUT", CONFIG_MAPS "/a", "{\"metadata\":{\"name\":\"b\"}}");
    close_scene(&scene);
}

Test(standalone_api, bad_options_are_refused)
{
    struct scene scene;
    open_scene(&scene);
    make(&scene, "a", "1");
    expect_refusal(&scene, 422, "Invalid", "POST", CONFIG_MAPS "?dryRun=Some", "{\"metadata\":{\"name\":\"b\"}}");
    expect_refusal(&scene, 422, "Invalid", "PATCH", CONFIG_MAPS "/a?dryRun=Some", "{}");
    expect_refusal(&scene, 422, "Invalid", "DELETE", CONFIG_MAPS "/a?dryRun=Some", NULL);
    expect_refusal(&scene, 422, "Invalid", "DELETE", CONFIG_MAPS "/a?propagationPolicy=Some", NULL);
    expect_refusal(&scene, 400, "BadRequest", "DELETE", CONFIG_MAPS "/a?gracePeriodSeconds=some", NULL);
    expect_refusal(&scene, 400, "BadRequest", "GET", CONFIG_MAPS "?limit=some", NULL);
    expect_refusal(&scene, 400, "BadRequest", "GET", CONFIG_MAPS "?resourceVersion=some", NULL);
    expect_refusal(&scene, 422, "Invalid", "GET", CONFIG_MAPS "?resourceVersionMatch=Exact", NULL);
    expect_refusal(&scene, 504, "Timeout", "GET", CONFIG_MAPS "?resourceVersion=99999999", NULL);
    expect_only(&scene, 200, "GET", CONFIG_MAPS "/a?limit=some", NULL);
    close_scene(&scene);
}

Test(standalone_api, a_bound_pod_stays_as_it_is)
{
    struct scene scene;
    open_scene(&scene);
    expect_only(&scene, 201, "POST", PODS,
                "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}");
    expect_refusal(&scene, 422, "Invalid", "PATCH", PODS "/p", "{\"spec\":{\"nodeName\":\"other\"}}");
    expect_refusal(&scene, 422, "Invalid", "PATCH", PODS "/p", "{\"spec\":{\"restartPolicy\":\"Never\"}}");
    expect_only(&scene, 200, "PATCH", PODS "/p", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
    close_scene(&scene);
}

Test(standalone_api, a_stranger_is_refused)
{
    struct scene scene;
    open_scene(&scene);
    scene.credentials.token[0] ^= 1;
    expect_refusal(&scene, 401, "Unauthorized", "GET", CONFIG_MAPS, NULL);
    expect_refusal(&scene, 401, "Unauthorized", "POST", CONFIG_MAPS, "{\"metadata\":{\"name\":\"a\"}}");
    expect_only(&scene, 200, "GET", "/version", NULL);
    close_scene(&scene);
}
