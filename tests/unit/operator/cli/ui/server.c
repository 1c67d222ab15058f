/* SPDX-License-Identifier: Apache-2.0
 *
 * The server of the page before an API server that has one job, on the same loop.
 */
#include "operator/cli/ui/server.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/http_client.h"
#include "common/http_server.h"
#include "common/memory.h"

TestSuite(ui_server, .timeout = 60);

#define JOBS_PATH "/apis/coxswain.dev/v1beta1/namespaces/default/trainingjobs"
#define BODY_TOO_LARGE 17000
#define ANSWER_MAX (1024 * 1024)

struct scene {
    struct cluster cluster;
    struct http_server *api;
    struct http_client *browser;
    struct ui_server *server;
    char *url, *cookie, *origin;
    bool came;
    int status;
    struct buffer body;
    int deleted, read;                      /* read: how often the job was, since it was deleted */
    const char *state;                      /* of options.state; set it before scene_init_with */
    const char *pods;                       /* JSON items */
    int old_status, new_status, job_status; /* what the API server answers, if not 0 */
};

/* ---------------------------------------------------------------- the API server */

static const char job[] =
    "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"tiny\",\"namespace\":"
    "\"default\",\"uid\":\"u\",\"resourceVersion\":\"5\"},\"spec\":{\"suspend\":false},\"status\":{\"conditions\":"
    "[{\"type\":\"Succeeded\",\"status\":\"True\",\"reason\":\"Done\",\"message\":\"<b>done</b>\"}]}}";

#define CHIEF(name, created)                                                                                           \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"default\",\"uid\":\"" name                                   \
    "\",\"creationTimestamp\":\"" created                                                                              \
    "\",\"labels\":{\"coxswain.dev/role\":\"worker\",\"coxswain.dev/index\":\"0\"}},\"spec\":{\"containers\":"         \
    "[{\"name\":\"trainer\"}]},\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"trainer\","        \
    "\"state\":"                                                                                                       \
    "{\"running\":{}}}]}}"
#define PODS_PATH "/api/v1/namespaces/default/pods"

static const char two_chiefs[] =
    CHIEF("tiny-worker-0-old", "2026-01-01T00:00:00Z") "," CHIEF("tiny-worker-0-new", "2026-01-01T00:01:00Z");
static const char old_log[] = "2026-01-01T00:00:01Z step 1/9 loss 0.5\n";
static const char new_log[] = "2026-01-01T00:01:01Z step 2/9 loss 0.25\n2026-01-01T00:01:02Z a\0b\n";

static void respond_log(struct http_exchange *exchange, int status, const char *log, size_t length)
{
    static const char failure[] = "{\"kind\":\"Status\",\"message\":\"no log\"}";
    if (status)
        http_exchange_respond(exchange, status, "application/json", failure, strlen(failure));
    else
        http_exchange_respond(exchange, 200, "text/plain", log, length);
}

static void serve_api(void *context, struct http_exchange *exchange)
{
    struct scene *scene = context;
    const char *path = http_exchange_path(exchange);
    SCOPED_FREE char *list =
        memory_format("{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[%s]}",
                      strcmp(path, JOBS_PATH) == 0                  ? job
                      : strcmp(path, PODS_PATH) == 0 && scene->pods ? scene->pods
                                                                    : "");
    const char *answer = list;
    int status = 200;
    if (strcmp(path, PODS_PATH "/tiny-worker-0-old/log") == 0) {
        respond_log(exchange, scene->old_status, old_log, sizeof old_log - 1);
        return;
    }
    if (strcmp(path, PODS_PATH "/tiny-worker-0-new/log") == 0) {
        respond_log(exchange, scene->new_status, new_log, sizeof new_log - 1);
        return;
    }
    if (strcmp(path, JOBS_PATH "/tiny") == 0) {
        bool deletes = strcmp(http_exchange_method(exchange), "DELETE") == 0;
        scene->deleted += deletes;
        scene->read = deletes ? 0 : scene->read + 1;
        status = scene->job_status ? scene->job_status : 200;
        answer = job;
    } else if (strncmp(path, JOBS_PATH "/", strlen(JOBS_PATH "/")) == 0) {
        status = 404;
        answer = "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\",\"message\":\"trainingjobs \\\"none\\\" "
                 "not found\"}";
    } else if (http_exchange_query(exchange, "watch")) {
        status = 400; /* the informer lists then */
        answer = "{\"kind\":\"Status\",\"code\":400,\"reason\":\"BadRequest\",\"message\":\"no watches\"}";
    }
    http_exchange_respond(exchange, status, "application/json", answer, strlen(answer));
}

/* ---------------------------------------------------------------- the browser */

static void answered(void *context, const struct http_response *response)
{
    struct scene *scene = context;
    scene->came = true;
    scene->status = response->status;
    buffer_clear(&scene->body);
    if (response->body)
        buffer_append(&scene->body, response->body, response->body_length, NULL);
}

static struct http_transfer *send_request(struct scene *scene, const char *method, const char *path, const char *body,
                                          http_done *done)
{
    SCOPED_FREE char *url = memory_format("%s%s", scene->origin, path);
    SCOPED_FREE char *cookie = memory_format("Cookie: %s", scene->cookie);
    SCOPED_FREE char *origin = memory_format("Origin: %s", scene->origin);
    const char *const headers[] = {cookie, origin, NULL};
    struct http_request request = {.method = method,
                                   .url = url,
                                   .headers = headers,
                                   .body = body,
                                   .body_length = body ? strlen(body) : 0,
                                   .max_body = ANSWER_MAX,
                                   .done = done,
                                   .context = scene};
    return http_client_start(scene->browser, &request);
}

static int ask(struct scene *scene, const char *method, const char *path, const char *body)
{
    scene->came = false;
    send_request(scene, method, path, body, answered);
    while (!scene->came) {
        cr_assert_eq(event_loop_turn(scene->cluster.loop, 100, NULL), 0);
        ui_server_work(scene->server);
    }
    return scene->status;
}

static void scene_init_with(struct scene *scene, bool kept)
{
    struct ui_server_options options = {.name_space = "default", .kept = kept, .state = scene->state};
    struct error error = ERROR_INIT;
    *scene = (struct scene){.cluster = {.name_space = "default"}};
    buffer_init(&scene->body, ANSWER_MAX);
    cr_assert_eq(event_loop_new(&scene->cluster.loop, &error), 0);
    struct http_server_options api = {.address = "127.0.0.1", .handler = serve_api, .context = scene};
    cr_assert_eq(http_server_start_on_loop(&api, scene->cluster.loop, &scene->api, &error), 0, "%s", error.message);
    scene->cluster.config =
        (struct kube_config){.server = memory_format("http://127.0.0.1:%u", http_server_port(scene->api)),
                             .name_space = memory_copy_string("default"),
                             .source = memory_copy_string("test")};
    cr_assert_eq(kube_client_new(scene->cluster.loop, &scene->cluster.config, NULL, &scene->cluster.client, &error), 0,
                 "%s", error.message);
    cr_assert_eq(ui_server_start(&scene->cluster, &options, &scene->server, &error), 0, "%s", error.message);
    struct http_client_options browser = {.user_agent = "test"};
    cr_assert_eq(http_client_new(scene->cluster.loop, &browser, &scene->browser, &error), 0);
    scene->url = ui_server_url(scene->server);
    char *query = strstr(scene->url, "/?token=");
    cr_assert_not_null(query);
    scene->origin = memory_copy_bytes(scene->url, (size_t)(query - scene->url));
    scene->cookie = memory_format("cox-ui-%s=%s", strrchr(scene->origin, ':') + 1, query + strlen("/?token="));
}

static void scene_init(struct scene *scene)
{
    scene->state = NULL;
    scene_init_with(scene, false);
}

static void scene_release(struct scene *scene)
{
    http_client_free(scene->browser);
    ui_server_free(scene->server);
    if (scene->api)
        http_server_free(scene->api);
    cluster_release(&scene->cluster);
    buffer_release(&scene->body);
    free(scene->url);
    free(scene->cookie);
    free(scene->origin);
}

static bool says(const struct scene *scene, const char *words)
{
    return strstr(buffer_text(&scene->body), words) != NULL;
}

Test(ui_server, paths_names_and_sizes)
{
    struct scene scene;
    scene_init(&scene);
    SCOPED_FREE char *large = memory_allocate(BODY_TOO_LARGE + 1, 1);
    SCOPED_FREE char *name = memory_allocate(301, 1);
    memset(large, 'x', BODY_TOO_LARGE);
    memset(name, 'a', 300);
    SCOPED_FREE char *long_name = memory_format("/api/job?namespace=default&name=%s", name);
    const struct {
        const char *method, *path, *body;
        int status;
        const char *words;
    } rows[] = {
        {"GET", "/", NULL, 200, "<!DOCTYPE html>"},
        {"GET", "/page.css", NULL, 200, "prefers-color-scheme"},
        {"GET", "/page.js", NULL, 200, "pollList"},
        {"GET", "/chart.min.js", NULL, 200, "Chart.js v3"},
        {"GET", "/chart.js", NULL, 200, "function chart"},
        {"GET", "/sweep_chart.js", NULL, 200, "function parallel"},
        {"GET", "/compare.js", NULL, 200, "function compareView"},
        {"GET", "/layer_graph.js", NULL, 200, "function layerGraph"},
        {"GET", "/timeline.js", NULL, 200, "function timeline"},
        {"GET", "/model.js", NULL, 200, "function modelPanel"},
        {"POST", "/page.js", NULL, 404, "nothing at this address"},
        {"GET", "/page.js/", NULL, 404, "nothing at this address"},
        {"GET", "/api/job?namespace=default&name=Tiny", NULL, 400, "can have this name"},
        {"GET", "/api/job?namespace=..&name=tiny", NULL, 400, "can have this name"},
        {"GET", "/api/job?name=tiny", NULL, 400, "can have this name"},
        {"GET", long_name, NULL, 400, "can have this name"},
        {"GET", "/api/job?namespace=default&name=none", NULL, 404, "\\\"none\\\" not found"},
        {"GET", "/api/delete?kind=job&namespace=default&name=tiny", NULL, 404, "nothing at this address"},
        {"POST", "/api/delete?kind=job&namespace=default&name=tiny", large, 413, ""},
        {"POST", "/api/restart?namespace=default&name=tiny", NULL, 422, "tiny is over: there is nothing to restart"},
        {"GET", "/api/layers?namespace=default&name=none", NULL, 404, "\\\"none\\\" not found"},
        {"POST", "/api/scale?namespace=default&name=tiny", NULL, 422, "Give the number of workers"},
        {"POST", "/api/predict?namespace=default&name=tiny", NULL, 422, "on a volume of the cluster"},
        {"POST", "/api/generate?namespace=default&name=tiny", "To be", 422, "on a volume of the cluster"},
        {"POST", "/api/generate?namespace=default&name=tiny", NULL, 422, "Write a text"},
        {"GET", "/api/predict?namespace=default&name=tiny", NULL, 404, "nothing at this address"},
        {"DELETE", "/api/job?namespace=default&name=tiny", NULL, 405, "Only GET and POST"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq(ask(&scene, rows[i].method, rows[i].path, rows[i].body), rows[i].status, "%s %s: %d",
                     rows[i].method, rows[i].path, scene.status);
        cr_expect(says(&scene, rows[i].words), "%s: %s", rows[i].path, buffer_text(&scene.body));
    }
    cr_expect_eq(scene.deleted, 0);
    scene_release(&scene);
}

Test(ui_server, without_its_cookie_nothing_is_answered)
{
    struct scene scene;
    scene_init(&scene);
    scene.cookie[strlen(scene.cookie) - 1] ^= 1;
    static const char *const paths[] = {"/", "/page.js", "/api/list", "/api/job?namespace=default&name=tiny"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        cr_expect_eq(ask(&scene, "GET", paths[i], NULL), 401, "%s", paths[i]);
    cr_expect(says(&scene, "the whole URL that cox ui printed"));
    cr_expect_eq(ask(&scene, "POST", "/api/delete?kind=job&namespace=default&name=tiny", NULL), 401);
    cr_expect_eq(scene.deleted, 0);
    scene_release(&scene);
}

Test(ui_server, a_job_with_the_sentence_of_cox_why)
{
    struct scene scene;
    scene_init(&scene);
    cr_expect_eq(ask(&scene, "GET", "/api/job?namespace=default&name=tiny", NULL), 200);
    cr_expect(says(&scene, "\"why\":\"tiny waits for nothing: it has succeeded"), "%s", buffer_text(&scene.body));
    cr_expect(says(&scene, "\"STATE\":\"Succeeded\"") && says(&scene, "\"over\":true") &&
              says(&scene, "kind: TrainingJob"));
    cr_expect_eq(ask(&scene, "GET", "/api/curves?namespace=default&name=tiny&known=0", NULL), 200);
    cr_expect(says(&scene, "\"points\":[]"));
    cr_expect_eq(ask(&scene, "POST", "/api/delete?kind=job&namespace=default&name=tiny", NULL), 200);
    cr_expect_eq(scene.deleted, 1);
    scene_release(&scene);
}

Test(ui_server, the_list_sends_what_has_changed)
{
    struct scene scene;
    scene_init(&scene);
    do
        cr_assert_eq(ask(&scene, "GET", "/api/list?since=0", NULL), 200);
    while (!says(&scene, "\"NAME\":\"tiny\""));
    SCOPED_JSON *list = NULL;
    cr_assert_eq(json_parse(buffer_text(&scene.body), scene.body.length, ANSWER_MAX, &list, NULL), 0);
    cr_expect(json_boolean_at(list, "whole", false));
    cr_expect_eq(json_count(json_at(list, "rows")), 1);
    SCOPED_FREE char *again = memory_format("/api/list?since=%lld", (long long)json_integer_at(list, "version", 0));
    cr_assert_eq(ask(&scene, "GET", again, NULL), 200);
    cr_expect(says(&scene, "\"whole\":false") && says(&scene, "\"rows\":[]"), "%s", buffer_text(&scene.body));
    scene_release(&scene);
}

/* Its end is told in the list, and a request for a job is answered at once. */
Test(ui_server, an_api_server_that_is_gone_is_told)
{
    struct scene scene;
    scene_init(&scene);
    cr_assert_eq(ask(&scene, "GET", "/api/job?namespace=default&name=tiny", NULL), 200);
    http_server_free(scene.api);
    scene.api = NULL;
    do
        cr_assert_eq(ask(&scene, "GET", "/api/list", NULL), 200);
    while (!says(&scene, "The API server has not answered since"));
    cr_expect_eq(ask(&scene, "GET", "/api/job?namespace=default&name=tiny", NULL), 503);
    cr_expect(says(&scene, "The API server has not answered since"));
    scene_release(&scene);
}

Test(ui_server, what_a_run_has_left_cannot_be_changed)
{
    struct scene scene = {.state = NULL};
    scene_init_with(&scene, true);
    cr_expect_eq(ask(&scene, "GET", "/api/job?namespace=default&name=tiny", NULL), 200);
    cr_expect_eq(ask(&scene, "POST", "/api/delete?kind=job&namespace=default&name=tiny", NULL), 403);
    cr_expect(says(&scene, "This run is over"));
    cr_expect_eq(ask(&scene, "POST", "/api/restart?namespace=default&name=tiny", NULL), 403);
    cr_expect_eq(ask(&scene, "POST", "/api/scale?namespace=default&name=tiny&workers=2", NULL), 403);
    cr_expect_eq(ask(&scene, "GET", "/api/list", NULL), 200);
    cr_expect(says(&scene, "\"kept\":true"));
    cr_expect_eq(scene.deleted, 0);
    scene_release(&scene);
}

/* The page of an earlier cox ui on this port has rows that this one does not know. */
Test(ui_server, a_version_of_another_cox_ui_is_answered_with_everything)
{
    struct scene scene;
    scene_init(&scene);
    do
        cr_assert_eq(ask(&scene, "GET", "/api/list?since=0", NULL), 200);
    while (!says(&scene, "\"NAME\":\"tiny\""));
    cr_assert_eq(ask(&scene, "GET", "/api/list?since=1", NULL), 200);
    cr_expect(says(&scene, "\"whole\":true") && says(&scene, "\"NAME\":\"tiny\""), "%s", buffer_text(&scene.body));
    cr_expect_eq(ask(&scene, "GET", "/api/curves?namespace=default&name=tiny&known=1", NULL), 200);
    cr_expect(says(&scene, "\"points\":[]"), "%s", buffer_text(&scene.body));
    scene_release(&scene);
}

Test(ui_server, the_log_of_a_dead_node_does_not_hide_the_curves)
{
    struct scene scene;
    scene_init(&scene);
    scene.pods = two_chiefs;
    scene.old_status = 500;
    cr_expect_eq(ask(&scene, "GET", "/api/curves?namespace=default&name=tiny", NULL), 200);
    cr_expect(says(&scene, "\"points\":[[2,0.25"), "%s", buffer_text(&scene.body));
    scene.old_status = 0;
    cr_expect_eq(ask(&scene, "GET", "/api/curves?namespace=default&name=tiny", NULL), 200);
    cr_expect(says(&scene, "\"points\":[[2,0.25") && !says(&scene, "[1,0.5"),
              "an earlier step came after a later one: %s", buffer_text(&scene.body));
    scene_release(&scene);
}

Test(ui_server, a_newest_log_that_cannot_be_read_is_told)
{
    static const int rows[][3] = {{0, 500, 500}, {403, 0, 403}, {404, 400, 200}, {0, 0, 200}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene scene;
        scene_init(&scene);
        scene.pods = two_chiefs;
        scene.old_status = rows[i][0];
        scene.new_status = rows[i][1];
        cr_expect_eq(ask(&scene, "GET", "/api/curves?namespace=default&name=tiny", NULL), rows[i][2], "%zu: %d %s", i,
                     scene.status, buffer_text(&scene.body));
        scene_release(&scene);
    }
}

Test(ui_server, a_log_with_a_nul_byte_is_shown_to_its_end)
{
    struct scene scene;
    scene_init(&scene);
    scene.pods = two_chiefs;
    scene.old_status = 500;
    cr_expect_eq(ask(&scene, "GET", "/api/log?namespace=default&name=tiny", NULL), 200);
    cr_expect(says(&scene, "a b\\n"), "%s", buffer_text(&scene.body));
    cr_expect(says(&scene, "\"unread\":1"), "%s", buffer_text(&scene.body));
    scene_release(&scene);
}

/* 401 is the page's own: its token is of another cox ui. */
Test(ui_server, a_cluster_that_does_not_know_the_user_is_not_taken_for_a_wrong_token)
{
    struct scene scene;
    scene_init(&scene);
    scene.job_status = 401;
    cr_expect_eq(ask(&scene, "GET", "/api/job?namespace=default&name=tiny", NULL), 502);
    cr_expect(says(&scene, "does not accept the kubeconfig's credentials"), "%s", buffer_text(&scene.body));
    scene_release(&scene);
}

static void count(void *context, const struct http_response *response)
{
    *(int *)context += response->status == 200;
}

Test(ui_server, changes_come_before_reads_and_equal_reads_are_one)
{
    enum { READS = 3, TURNS = 200 };
    struct scene scene;
    scene_init(&scene);
    int answers = 0;
    SCOPED_FREE char *read = memory_format("%s/api/curves?namespace=default&name=tiny", scene.origin);
    SCOPED_FREE char *delete = memory_format("%s/api/delete?kind=job&namespace=default&name=tiny", scene.origin);
    SCOPED_FREE char *cookie = memory_format("Cookie: %s", scene.cookie);
    SCOPED_FREE char *origin = memory_format("Origin: %s", scene.origin);
    const char *const headers[] = {cookie, origin, NULL};
    for (int i = 0; i <= READS; i++) {
        struct http_request request = {.method = i < READS ? "GET" : "POST",
                                       .url = i < READS ? read : delete,
                                       .headers = headers,
                                       .max_body = ANSWER_MAX,
                                       .done = count,
                                       .context = &answers};
        http_client_start(scene.browser, &request);
        for (int turn = 0; turn < TURNS; turn++)
            cr_assert_eq(event_loop_turn(scene.cluster.loop, 1, NULL), 0);
    }
    while (answers <= READS) {
        ui_server_work(scene.server);
        cr_assert_eq(event_loop_turn(scene.cluster.loop, 100, NULL), 0);
    }
    cr_expect_eq(scene.deleted, 1);
    cr_expect_eq(scene.read, 1, "%d reads after the deletion", scene.read);
    scene_release(&scene);
}

Test(ui_server, the_port_of_another_is_refused)
{
    struct scene scene;
    struct error error = ERROR_INIT;
    struct ui_server *second;
    scene_init(&scene);
    struct ui_server_options options = {.name_space = "default",
                                        .port = (uint16_t)strtoul(strrchr(scene.origin, ':') + 1, NULL, 10)};
    cr_expect_eq(ui_server_start(&scene.cluster, &options, &second, &error), -1);
    cr_expect(strstr(error.message, "cannot serve HTTP on 127.0.0.1 port"), "%s", error.message);
    scene_release(&scene);
}

/* ---------------------------------------------------------------- the use of a model */

/* Puts a script in place of coxswain-worker, in a directory that is also the state directory. */
static void worker_init(struct scene *scene, char directory[64], const char *script)
{
    snprintf(directory, 64, "/tmp/coxswain-ui-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
    SCOPED_FREE char *path = memory_format("%s/coxswain-worker", directory);
    SCOPED_FREE char *paths = memory_format("%s:%s", directory, getenv("PATH"));
    SCOPED_BUFFER file;
    buffer_init(&file, ANSWER_MAX);
    buffer_format(&file, "#!/bin/sh\ncd %s\n%s\n", directory, script);
    cr_assert_eq(buffer_write_file(&file, path, NULL), 0);
    cr_assert_eq(chmod(path, 0700), 0);
    setenv("PATH", paths, 1);
    scene->state = directory;
    scene_init_with(scene, true);
}

static void worker_release(struct scene *scene, const char *directory)
{
    SCOPED_FREE char *command = memory_format("rm -rf %s", directory);
    scene_release(scene);
    cr_expect_eq(system(command), 0);
}

static int worker_pid(const char *directory)
{
    SCOPED_FREE char *path = memory_format("%s/pid", directory);
    SCOPED_BUFFER text;
    buffer_init(&text, 64);
    return buffer_read_file(&text, path, NULL) == 0 && text.length > 0 ? (int)strtol(buffer_text(&text), NULL, 10) : 0;
}

static void ignore(void *context, const struct http_response *response)
{
    (void)context, (void)response;
}

#define GENERATE "/api/generate?namespace=default&name=tiny&tokens=5&temperature=0.5&seed=7"

Test(ui_server, a_prompt_goes_to_the_worker_and_its_text_comes_back)
{
    struct scene scene;
    char directory[64];
    worker_init(&scene, directory,
                "cat >job; cat /dev/fd/3 >prompt; printf '%s\\n' \"$@\" >words; echo 'weights: the export' >&2; printf "
                "'To be\\000or \"not\"\\n'");
    cr_expect_eq(ask(&scene, "POST", GENERATE, "--To be"), 200);
    cr_expect(says(&scene, "\"text\":\"To be or \\\"not\\\"\\n\"") && says(&scene, "\"weights\":\"the export\"") &&
                  says(&scene, "\"unfinished\":false"),
              "%s", buffer_text(&scene.body));
    SCOPED_FREE char *check = memory_format("cd %s && ! grep -q 'To be' words && test \"$(cat prompt)\" = '--To be' && "
                                            "grep -qx -e --prompt-file=/dev/fd/3 words && grep -qx -e --tokens=5 "
                                            "words && grep -qx -e --seed=7 words && "
                                            "grep -qx -e --temperature=0.5 words && grep -q '\"name\":\"tiny\"' job",
                                            directory);
    cr_expect_eq(system(check), 0);
    worker_release(&scene, directory);
}

/* The worker pauses for longer than the server does between two events. */
Test(ui_server, a_text_is_sent_while_it_grows)
{
    struct scene scene;
    char directory[64];
    worker_init(&scene, directory, "printf 'To be'; sleep 0.6; printf ' or not\\n'");
    cr_expect_eq(ask(&scene, "POST", GENERATE, "x"), 200);
    static const char first[] = "data: {\"text\":\"To be\"}\n\ndata: ";
    cr_expect_eq(strncmp(buffer_text(&scene.body), first, strlen(first)), 0, "%s", buffer_text(&scene.body));
    cr_expect(says(&scene, "\"text\":\"To be or not\\n\"}\n\n"), "%s", buffer_text(&scene.body));
    worker_release(&scene, directory);
}

#define LAYERS "/api/layers?namespace=default&name=tiny"

Test(ui_server, other_requests_are_answered_while_layers_are_read)
{
    struct scene scene;
    char directory[64];
    worker_init(&scene, directory,
                "echo $$ >pid.new; mv pid.new pid; until [ -e go ]; do sleep 0.05; done; cat >job; printf "
                "'{\"layers\":[\"%s\"]}' \"$*\"");
    SCOPED_FREE char *go = memory_format("touch %s/go", directory);
    send_request(&scene, "GET", LAYERS, NULL, ignore);
    while (worker_pid(directory) == 0) {
        cr_assert_eq(event_loop_turn(scene.cluster.loop, 10, NULL), 0);
        ui_server_work(scene.server);
    }
    cr_expect_eq(ask(&scene, "GET", "/api/job?namespace=default&name=tiny", NULL), 200);
    cr_expect_eq(system(go), 0);
    cr_expect_eq(ask(&scene, "GET", LAYERS, NULL), 200);
    cr_expect(says(&scene, "{\"layers\":[\"--job /dev/stdin --describe-model\"]}"), "%s", buffer_text(&scene.body));
    worker_release(&scene, directory);
}

Test(ui_server, an_evaluation_is_passed_on_and_a_refusal_too)
{
    struct scene scene;
    char directory[64];
    worker_init(&scene, directory,
                "[ ! -e later ] || { echo 'exit 64 (the job is wrong): /dev/stdin: no weights' >&2; exit 64; }\n"
                "touch later; echo '{\"examples\":3}'");
    cr_expect_eq(ask(&scene, "POST", "/api/predict?namespace=default&name=tiny", NULL), 200);
    cr_expect(says(&scene, "\"result\":{\"examples\":3}"), "%s", buffer_text(&scene.body));
    cr_expect_eq(ask(&scene, "POST", "/api/predict?namespace=default&name=tiny", NULL), 200);
    cr_expect(says(&scene, "{\"error\":\"no weights\""), "%s", buffer_text(&scene.body));
    worker_release(&scene, directory);
}

/* What it printed last is not why it ended. */
Test(ui_server, a_worker_that_was_killed_is_named_as_killed)
{
    struct scene scene;
    char directory[64];
    worker_init(&scene, directory, "echo 'weights: the export' >&2; kill -KILL $$");
    cr_expect_eq(ask(&scene, "POST", GENERATE, "x"), 200);
    cr_expect(says(&scene, "killed by signal 9") && !says(&scene, "the export"), "%s", buffer_text(&scene.body));
    worker_release(&scene, directory);
}

/* 4,000 characters of three bytes: the most that the page's text field takes. */
Test(ui_server, a_prompt_of_wide_characters_is_passed_whole)
{
    enum { CHARACTERS = 4000 };
    struct scene scene;
    char directory[64];
    SCOPED_BUFFER prompt;
    buffer_init(&prompt, ANSWER_MAX);
    for (int i = 0; i < CHARACTERS; i++)
        buffer_append_string(&prompt, "\xe6\xbc\xa2", NULL);
    worker_init(&scene, directory, "cat >job; cat /dev/fd/3");
    cr_expect_eq(ask(&scene, "POST", GENERATE, buffer_text(&prompt)), 200);
    cr_expect(says(&scene, buffer_text(&prompt)), "%.200s", buffer_text(&scene.body));
    worker_release(&scene, directory);
}

/* A worker that outlives cox ui ends by its limit of processor time. */
Test(ui_server, a_worker_has_a_limit_of_processor_time)
{
    struct scene scene;
    char directory[64];
    worker_init(&scene, directory, "sleep 0.3; ulimit -t");
    cr_expect_eq(ask(&scene, "POST", GENERATE, "x"), 200);
    SCOPED_FREE char *text = memory_format("\"text\":\"%ld\\n\"", 100 * sysconf(_SC_NPROCESSORS_ONLN));
    cr_expect(says(&scene, text), "%s instead of %s", buffer_text(&scene.body), text);
    worker_release(&scene, directory);
}

/* Starts a use that does not end by itself, and returns the worker's process. */
static int start_use(struct scene *scene, const char *directory, struct http_transfer **ret_call)
{
    SCOPED_FREE char *pid_file = memory_format("%s/pid", directory);
    unlink(pid_file);
    *ret_call = send_request(scene, "POST", GENERATE, "x", ignore);
    while (worker_pid(directory) == 0) {
        cr_assert_eq(event_loop_turn(scene->cluster.loop, 10, NULL), 0);
        ui_server_work(scene->server);
    }
    return worker_pid(directory);
}

/* For a child that was killed but not waited for, kill() would still succeed. */
Test(ui_server, a_worker_is_killed_when_the_browser_goes_away_or_cox_ui_ends)
{
    struct scene scene;
    struct http_transfer *calls[2];
    char directory[64];
    worker_init(&scene, directory, "echo $$ >pid.new; mv pid.new pid; exec sleep 1000");
    int first = start_use(&scene, directory, &calls[0]);
    int second = start_use(&scene, directory, &calls[1]);
    cr_expect_eq(ask(&scene, "POST", GENERATE, "x"), 502);
    cr_expect(says(&scene, "2 models are in use"), "%s", buffer_text(&scene.body));
    http_transfer_cancel(calls[0]);
    while (kill(first, 0) == 0)
        cr_assert_eq(event_loop_turn(scene.cluster.loop, 10, NULL), 0);
    cr_expect_eq(kill(second, 0), 0);
    worker_release(&scene, directory);
    cr_expect_neq(kill(second, 0), 0);
}
