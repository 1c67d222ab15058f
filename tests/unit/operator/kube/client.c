/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/operator/kube/loop_fixture.h"
#include "tests/unit/test_certificate.h"

TestSuite(client, .fini = fixture_stop, .timeout = 120);

static long metric(const char *name)
{
    SCOPED_BUFFER text = BUFFER_INIT(1 << 20);
    cr_assert_eq(kube_client_write_metrics(client, &text, NULL), 0);
    const char *line = strstr(buffer_text(&text), name);
    cr_assert_not_null(line);
    return strtol(line + strlen(name), NULL, 10);
}

/* Requests that wait or are on the wire. */
static long pending(void)
{
    return metric("\ncoxswain_kube_requests_pending ");
}

static long retries(void)
{
    return metric("\ncoxswain_kube_retries_total ");
}

static void get_once(void)
{
    int before = answer.calls;
    kube_client_get(client, &pod, &plain);
    cr_assert_eq(answer.calls, before, "no callback from within kube_client_get");
    LOOP_UNTIL(answer.calls > before);
}

static void create_once(void)
{
    int before = answer.calls;
    SCOPED_JSON *object = json_new_object();
    kube_client_create(client, &pods, object, &plain);
    LOOP_UNTIL(answer.calls > before);
}

#define POD "{\"metadata\":{\"name\":\"p\"}}"

SCRIPTED_REPLY(give_pod, 200, POD)

Test(client, an_object_is_read)
{
    fixture_start(give_pod, NULL, NULL);
    get_once();
    cr_assert_eq(answer.error.kind, ERROR_NONE, "%s", answer.error.message);
    cr_assert_str_eq(answer.name, "p");
    cr_assert_str_eq(server.log[0], "GET /api/v1/namespaces/n/pods/p");
    SCOPED_BUFFER text = BUFFER_INIT(65536);
    cr_assert_eq(kube_client_write_metrics(client, &text, NULL), 0);
    cr_assert_not_null(
        strstr(buffer_text(&text), "coxswain_kube_requests_total{verb=\"get\",resource=\"pods\",code=\"200\"} 1\n"));
    cr_assert_not_null(strstr(buffer_text(&text), "duration_seconds_bucket{verb=\"get\",le=\"+Inf\"} 1\n"));
}

static void give_odd_pod(struct scripted_request *request)
{
    SCOPED_BUFFER text = BUFFER_INIT(65536);
    buffer_append_string(&text, "{\"metadata\":{\"name\":\"p\",\"labels\":{\"a\":\"\\u0000\"},\"managedFields\":[",
                         NULL);
    for (int i = 0; i < 1000; i++)
        buffer_append_string(&text, "{\"f:a\":", NULL);
    buffer_append_string(&text, "{}", NULL);
    for (int i = 0; i < 1000; i++)
        buffer_append_string(&text, "}", NULL);
    buffer_append_string(&text, "]}}", NULL);
    scripted_reply(request, 200, buffer_text(&text));
}

Test(client, an_object_is_read_with_any_content_that_users_have_stored)
{
    fixture_start(give_odd_pod, NULL, NULL);
    get_once();
    cr_assert_eq(answer.error.kind, ERROR_NONE, "%s", answer.error.message);
    cr_assert_str_eq(answer.name, "p");
}

SCRIPTED_REPLY(give_nothing, 200, "")

/* Cut off before its first byte it looks like a success, of a Lease that nobody holds for instance. */
Test(client, an_answer_without_its_object_is_none)
{
    fixture_start(give_nothing, NULL, NULL);
    get_once();
    cr_assert_eq(answer.error.kind, ERROR_CORRUPT);
    create_once();
    cr_assert_eq(answer.error.kind, ERROR_CORRUPT);
}

SCRIPTED_REPLY(refuse_quota, 403,
               "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"pods \\\"p\\\" is forbidden: "
               "exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2\"}")

Test(client, a_quota_refusal_is_told_apart)
{
    fixture_start(refuse_quota, NULL, NULL);
    create_once();
    cr_assert_eq(answer.error.kind, ERROR_NO_SPACE);
    cr_assert_eq(answer.error.http_status, 403);
    cr_assert_eq(server.requests, 1, "nothing is repeated");
}

static void busy_twice(struct scripted_request *request)
{
    if (request->number < 2)
        scripted_reply_with(request, request->number ? 503 : 429, "Retry-After: 1\r\n",
                            "{\"reason\":\"TooManyRequests\"}");
    else
        scripted_reply(request, 201, POD);
}

Test(client, retry_after_is_honoured_for_creates_too)
{
    fixture_start(busy_twice, NULL, NULL);
    int64_t before = clock_monotonic_ns();
    create_once();
    cr_assert_eq(answer.status, 201);
    cr_assert_eq(server.requests, 3);
    cr_assert_geq(clock_monotonic_ns() - before, (int64_t)2e9);
}

static void broken_twice(struct scripted_request *request)
{
    if (request->number < 2)
        scripted_reply(request, 500, "oops");
    else
        give_pod(request);
}

Test(client, a_read_survives_500_and_a_create_does_not)
{
    fixture_start(broken_twice, NULL, NULL);
    get_once();
    cr_assert_eq(answer.status, 200);
    cr_assert_eq(server.requests, 3);
    server.requests = 0;
    create_once();
    cr_assert_eq(answer.error.kind, ERROR_UNAVAILABLE);
    cr_assert_eq(server.requests, 1);
}

/* Nobody listens at the server's address. */
static void start_without_server(bool fail_refused)
{
    const struct kube_client_options options = {.retry_base_ms = 100, .fail_refused = fail_refused};
    const struct kube_config config = {.server = (char[]){"http://127.0.0.1:1"}};
    cr_assert_eq(event_loop_new(&loop, NULL), 0);
    cr_assert_eq(kube_client_new(loop, &config, &options, &client, NULL), 0);
}

Test(client, a_refused_connection_ends_the_call_of_a_command_at_once)
{
    start_without_server(true);
    cr_expect_not(kube_client_is_refused(client));
    get_once();
    cr_expect_eq(answer.error.kind, ERROR_UNAVAILABLE);
    cr_expect_eq(retries(), 0);
    cr_expect(kube_client_is_refused(client));
    fixture_stop();
    start_without_server(false);
    kube_client_get(client, &pod, &plain);
    LOOP_UNTIL(retries() > 0);
    fixture_stop();
}

static void give_pod_and_hang_up(struct scripted_request *request)
{
    give_pod(request);
    request->close = true;
}

/* A server that has answered is being restarted. */
Test(client, a_connection_refused_by_a_server_that_has_answered_is_tried_again)
{
    fixture_start(give_pod_and_hang_up, NULL, &(struct kube_client_options){.fail_refused = true});
    get_once();
    cr_expect_eq(answer.error.kind, ERROR_NONE);
    scripted_server_stop(&server);
    get_once();
    cr_expect_eq(answer.error.kind, ERROR_UNAVAILABLE);
    cr_expect_gt(retries(), 0);
    cr_expect_not(kube_client_is_refused(client));
}

SCRIPTED_REPLY(always_broken, 500, "{\"message\":\"etcd is away\"}")

Test(client, tries_come_to_an_end)
{
    fixture_start(always_broken, NULL, NULL);
    get_once();
    cr_assert_eq(server.requests, KUBE_TRIES_MAX);
    cr_assert_eq(answer.error.kind, ERROR_UNAVAILABLE);
    cr_assert_str_eq(answer.error.message, "etcd is away");
}

static void cut_once(struct scripted_request *request)
{
    if (request->number == 0) {
        scripted_send(request, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"metadata\":{\"na");
        request->close = true;
    } else {
        give_pod(request);
    }
}

Test(client, a_body_cut_in_the_middle_is_read_again)
{
    fixture_start(cut_once, NULL, NULL);
    get_once();
    cr_assert_str_eq(answer.name, "p");
}

SCRIPTED_REPLY(no_json, 200, "<html>")

Test(client, an_answer_that_is_no_json_is_corrupt)
{
    fixture_start(no_json, NULL, NULL);
    get_once();
    cr_assert_eq(answer.error.kind, ERROR_CORRUPT);
}

Test(client, a_silent_server_ends_in_time_out)
{
    fixture_start(scripted_hold, NULL, NULL);
    struct kube_call_options options = {.answered = on_answer, .timeout_ms = 200};
    kube_client_get(client, &pod, &options);
    LOOP_UNTIL(answer.calls == 1);
    cr_assert_eq(answer.error.kind, ERROR_TIMEOUT, "%s", answer.error.message);
    cr_assert_eq(pending(), 0);
}

static char token_path[] = "/tmp/token-XXXXXX";

static void write_token(const char *token)
{
    FILE *file = fopen(token_path, "w");
    fputs(token, file);
    fclose(file);
}

static void want_new_token(struct scripted_request *request)
{
    bool good = strcasestr(request->head, "Authorization: Bearer new\r\n") != NULL;
    scripted_reply(request, good ? 200 : 401, good ? POD : "{\"reason\":\"Unauthorized\"}");
}

Test(client, on_401_the_token_is_read_again_once)
{
    close(mkstemp(token_path));
    fixture_start(want_new_token, token_path, NULL);
    write_token("new");
    create_once();
    cr_assert_eq(answer.status, 200, "%s", answer.error.message);
    cr_assert_eq(server.requests, 2);
    write_token("wrong");
    kube_client_free(client);
    SCOPED_FREE char *address = memory_format("http://127.0.0.1:%d", server.port);
    struct kube_config config = {.server = address, .token_file = token_path};
    cr_assert_eq(kube_client_new(loop, &config, NULL, &client, NULL), 0);
    create_once();
    cr_assert_eq(answer.error.kind, ERROR_FORBIDDEN);
    cr_assert_eq(server.requests, 4, "one more try, not a loop");
    unlink(token_path);
}

Test(client, the_token_is_read_again_when_it_is_old)
{
    close(mkstemp(token_path));
    write_token("new");
    fixture_start(want_new_token, token_path, &(struct kube_client_options){.token_refresh_ms = 1});
    for (int64_t start = clock_monotonic_ns(); clock_monotonic_ns() - start < 2000000;)
        ;
    get_once();
    cr_assert_eq(answer.status, 200);
    cr_assert_eq(server.requests, 1, "before the server had to refuse it");
    unlink(token_path);
}

/* Makes a client with a kubeconfig plugin: a script that writes a line into `runs` each time and answers with `status`. */
static int plugin_client(const char *runs, const char *status, const struct kube_client_options *options,
                         struct error *error)
{
    SCOPED_FREE char *script =
        memory_format("echo run >>%s; echo '{\"apiVersion\": \"client.authentication.k8s.io/v1\", "
                      "\"kind\": \"ExecCredential\", \"status\": %s}'",
                      runs, status);
    SCOPED_FREE char *address = memory_format("http://127.0.0.1:%d", server.port);
    struct kube_config config = {.server = address, .exec = json_new_object()};
    json_set_string(config.exec, "user", "x");
    struct json *plugin = json_set_object(config.exec, "plugin");
    json_set_string(plugin, "apiVersion", "client.authentication.k8s.io/v1");
    json_set_string(plugin, "command", "sh");
    struct json *words = json_set_array(plugin, "args");
    json_append_string(words, "-c");
    json_append_string(words, script);
    int result = kube_client_new(loop, &config, options, &client, error);
    json_free(config.exec);
    return result;
}

static size_t runs_in(const char *path)
{
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    return buffer_read_file(&text, path, NULL) < 0 ? 0 : text.length / strlen("run\n");
}

/* A plugin rests for token_refresh_ms, here 1, between two runs. */
static void wait_out_rest(void)
{
    for (int64_t start = clock_monotonic_ns(); clock_monotonic_ns() - start < 2000000;)
        ;
}

/* Its token is "new" from its second run on. */
#define LATE_TOKEN "{\"token\": \"'$(grep -c . %s | sed 's/^1$/old/; s/^[0-9].*/new/')'\"}"

Test(client, a_plugin_runs_again_on_401)
{
    char runs[] = "/tmp/runs-XXXXXX";
    struct error error = ERROR_INIT;
    struct kube_client_options quick = {.exec_plugins = true, .token_refresh_ms = 1};
    close(mkstemp(runs));
    SCOPED_FREE char *status = memory_format(LATE_TOKEN, runs);
    cr_assert_eq(event_loop_new(&loop, NULL), 0);
    scripted_server_start(&server, want_new_token, NULL);
    cr_assert_eq(plugin_client(runs, status, &(struct kube_client_options){.user_agent = "t"}, &error), -1);
    cr_assert_not_null(strstr(error.message, "user 'x': 'exec' is not supported here"), "%s", error.message);
    cr_assert_eq(runs_in(runs), 0, "who is not allowed to runs nothing");
    cr_assert_eq(plugin_client(runs, status, &quick, &error), 0, "%s", error.message);
    cr_assert_eq(runs_in(runs), 1);
    wait_out_rest();
    create_once();
    cr_assert_eq(answer.status, 200, "%s", answer.error.message);
    cr_assert_eq(server.requests, 2);
    create_once();
    cr_assert_eq(answer.status, 200);
    cr_assert_eq(runs_in(runs), 2, "what is accepted is kept");
    unlink(runs);
}

Test(client, a_plugin_runs_again_when_what_it_gave_has_expired)
{
    char runs[] = "/tmp/runs-XXXXXX";
    struct error error = ERROR_INIT;
    close(mkstemp(runs));
    cr_assert_eq(event_loop_new(&loop, NULL), 0);
    scripted_server_start(&server, want_new_token, NULL);
    struct kube_client_options quick = {.exec_plugins = true, .token_refresh_ms = 1};
    cr_assert_eq(
        plugin_client(runs, "{\"token\": \"new\", \"expirationTimestamp\": \"2001-01-01T00:00:00Z\"}", &quick, &error),
        0, "%s", error.message);
    wait_out_rest();
    get_once();
    cr_assert_eq(answer.status, 200);
    cr_assert_eq(runs_in(runs), 2);
    cr_assert_eq(server.requests, 1, "before the server had to refuse it");
    unlink(runs);
}

Test(client, why_a_plugin_gives_no_other_credentials_is_told_beside_401)
{
    char runs[] = "/tmp/runs-XXXXXX";
    struct error error = ERROR_INIT;
    struct kube_client_options quick = {.exec_plugins = true, .token_refresh_ms = 1};
    close(mkstemp(runs));
    SCOPED_FREE char *status = memory_format("{\"token\": \"old\"}}'; exec test $(grep -c . %s) = 1; : '", runs);
    cr_assert_eq(event_loop_new(&loop, NULL), 0);
    scripted_server_start(&server, want_new_token, NULL);
    cr_assert_eq(plugin_client(runs, status, &quick, &error), 0, "%s", error.message);
    wait_out_rest();
    create_once();
    cr_expect_eq(answer.status, 401);
    cr_expect_not_null(strstr(answer.error.message, "user 'x': exec: sh: it ended with exit code 1"), "%s",
                       answer.error.message);
    unlink(runs);
}

static char authority_path[] = "/tmp/authority-XXXXXX";

static void write_authority(const struct test_certificate *authority)
{
    FILE *file = fopen(authority_path, "w");
    fputs(authority->certificate_pem, file);
    fclose(file);
}

/* The server has a certificate of a new authority, and the file follows later. */
Test(client, a_new_authority_is_read_when_the_server_is_not_trusted)
{
    struct test_certificate before = test_certificate_make("before", NULL, NULL);
    struct test_certificate now = test_certificate_make("now", NULL, NULL);
    struct test_certificate own = test_certificate_make("server", "IP:127.0.0.1", &now);
    close(mkstemp(authority_path));
    write_authority(&before);
    scripted_server_start(&server, give_pod, test_tls_server(&own, NULL));
    SCOPED_FREE char *address = memory_format("https://127.0.0.1:%d", server.port);
    struct kube_config config = {
        .server = address, .ca_pem = before.certificate_pem, .ca_file = authority_path, .token = (char[]){"t"}};
    cr_assert_eq(event_loop_new(&loop, NULL), 0);
    cr_assert_eq(kube_client_new(loop, &config, NULL, &client, NULL), 0);
    create_once();
    cr_assert_eq(answer.error.kind, ERROR_FORBIDDEN, "%s", answer.error.message);
    cr_assert_eq(server.requests, 0, "nothing is told to a stranger");
    write_authority(&now);
    create_once();
    cr_assert_eq(answer.error.kind, ERROR_NONE, "%s", answer.error.message);
    cr_assert_eq(server.requests, 1);
    FILE *file = fopen(authority_path, "w");
    fclose(file);
    create_once();
    cr_assert_eq(answer.error.kind, ERROR_NONE, "a file that is just being written changes nothing");
    unlink(authority_path);
    fixture_stop();
    test_certificate_release(&before);
    test_certificate_release(&now);
    test_certificate_release(&own);
}

static char last_body[80000];

static void keep_body(struct scripted_request *request)
{
    const char *type = strcasestr(request->head, "Content-Type: ");
    snprintf(last_body, sizeof last_body, "%s %.*s %s", request->line, type ? (int)strcspn(type, "\r") : 0,
             type ? type : "", request->body);
    scripted_reply(request, 200, "{\"kind\":\"Status\",\"status\":\"Success\"}");
}

Test(client, deletes_carry_their_preconditions)
{
    fixture_start(keep_body, NULL, NULL);
    struct kube_delete_options what = {
        .uid = "u-1", .resource_version = "7", .propagation = "Background", .grace_seconds = 0};
    kube_client_delete(client, &pod, &what, &plain);
    LOOP_UNTIL(answer.calls == 1);
    cr_assert_str_eq(last_body,
                     "DELETE /api/v1/namespaces/n/pods/p Content-Type: application/json "
                     "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u-1\","
                     "\"resourceVersion\":\"7\"},\"propagationPolicy\":\"Background\",\"gracePeriodSeconds\":0}");
    what = (struct kube_delete_options){.grace_seconds = -1};
    kube_client_delete(client, &pod, &what, &plain);
    LOOP_UNTIL(answer.calls == 2);
    cr_assert_not_null(strstr(last_body, "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\"}"));
    what.dry_run = true;
    kube_client_delete(client, &pod, &what, &plain);
    LOOP_UNTIL(answer.calls == 3);
    cr_assert_not_null(strstr(last_body, "\"dryRun\":[\"All\"]"));
}

static char last_head[8192];

static void keep_head(struct scripted_request *request)
{
    snprintf(last_head, sizeof last_head, "%s", request->head);
    scripted_reply(request, 200, "{\"metadata\":{}}");
}

Test(client, no_more_than_the_metadata_is_asked_for_where_that_will_do)
{
    fixture_start(keep_head, NULL, NULL);
    struct kube_call_options brief = plain;
    brief.metadata_only = true;
    kube_client_get(client, &pod, &brief);
    LOOP_UNTIL(answer.calls == 1);
    cr_assert(
        strstr(last_head, "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json\r\n"));
    kube_client_get(client, &pod, &plain);
    LOOP_UNTIL(answer.calls == 2);
    cr_assert(strstr(last_head, "Accept: application/json\r\n"));
}

Test(client, a_patch_of_the_status_is_a_merge_patch)
{
    fixture_start(keep_body, NULL, NULL);
    struct resource_path path = {{"coxswain.dev", "v1beta1", "trainingjobs"}, "n", "j", "status"};
    SCOPED_JSON *patch = json_new_object();
    json_set_integer(json_set_object(patch, "status"), "epoch", 3);
    kube_client_patch(client, &path, patch, &plain);
    LOOP_UNTIL(answer.calls == 1);
    cr_assert_str_eq(last_body, "PATCH /apis/coxswain.dev/v1beta1/namespaces/n/trainingjobs/j/status "
                                "Content-Type: application/merge-patch+json {\"status\":{\"epoch\":3}}");
}

Test(client, an_impossible_name_fails_from_the_loop)
{
    fixture_start(give_pod, NULL, NULL);
    struct resource_path path = {{"", "v1", "pods"}, "n", "..", NULL};
    kube_client_get(client, &path, &plain);
    cr_assert_eq(answer.calls, 0);
    LOOP_UNTIL(answer.calls == 1);
    cr_assert_eq(answer.error.kind, ERROR_INVALID);
}

static int most_at_once, at_once;

static void count_at_once(struct scripted_request *request)
{
    int now = __atomic_add_fetch(&at_once, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&request->server->lock);
    most_at_once = now > most_at_once ? now : most_at_once;
    pthread_mutex_unlock(&request->server->lock);
    usleep(500);
    __atomic_sub_fetch(&at_once, 1, __ATOMIC_SEQ_CST);
    give_pod(request);
}

Test(client, no_more_than_max_in_flight_are_on_the_wire)
{
    fixture_start(count_at_once, NULL, &(struct kube_client_options){.max_in_flight = 3});
    for (int i = 0; i < 60; i++)
        kube_client_get(client, &pod, &plain);
    cr_assert_eq(pending(), 60);
    LOOP_UNTIL(answer.calls == 60);
    cr_assert_leq(most_at_once, 3);
    cr_assert_leq(server.connections, 3);
}

static bool released;

/* The first answer comes when the test lets it. */
static void give_pod_when_released(struct scripted_request *request)
{
    while (request->number == 0 && !__atomic_load_n(&released, __ATOMIC_SEQ_CST))
        usleep(1000);
    scripted_reply(request, 200, POD);
}

#define BRIEF_MS 2000

Test(client, a_long_queue_is_no_time_out)
{
    fixture_start(give_pod_when_released, NULL, &(struct kube_client_options){.max_in_flight = 1});
    struct kube_call_options brief = plain;
    brief.timeout_ms = BRIEF_MS;
    kube_client_get(client, &pod, &plain);
    kube_client_get(client, &pod, &brief);
    for (int64_t start = clock_monotonic_ns(); clock_monotonic_ns() - start < (BRIEF_MS + 100) * INT64_C(1000000);)
        event_loop_turn(loop, 10, NULL);
    cr_assert_eq(answer.calls, 0);
    __atomic_store_n(&released, true, __ATOMIC_SEQ_CST);
    LOOP_UNTIL(answer.calls == 2);
    cr_assert_eq(answer.error.kind, ERROR_NONE, "%s", answer.error.message);
}

Test(client, late_requests_come_behind_the_others)
{
    fixture_start(give_pod, NULL, &(struct kube_client_options){.max_in_flight = 1});
    struct kube_call_options late = plain;
    struct resource_path last = pod;
    late.priority = KUBE_LOW;
    last.name = "late";
    kube_client_get(client, &pod, &plain);
    kube_client_get(client, &last, &late);
    for (int i = 0; i < 3; i++)
        kube_client_get(client, &pod, &plain);
    cr_assert_eq(kube_client_waiting(client), 4);
    LOOP_UNTIL(answer.calls == 5);
    cr_assert_str_eq(server.log[3], "GET /api/v1/namespaces/n/pods/p");
    cr_assert_str_eq(server.log[4], "GET /api/v1/namespaces/n/pods/late");
}

static int answers_before_late;

static void note_late(void *context, const struct kube_answer *late)
{
    (void)context, (void)late;
    answers_before_late = answer.calls;
}

Test(client, late_requests_have_a_share_of_the_wire)
{
    fixture_start(count_at_once, NULL, &(struct kube_client_options){.max_in_flight = 2});
    struct kube_call_options late = {.priority = KUBE_LOW, .answered = note_late};
    for (int i = 0; i < 60; i++)
        kube_client_get(client, &pod, &plain);
    kube_client_get(client, &pod, &late);
    LOOP_UNTIL(answer.calls == 60 && answers_before_late > 0);
    cr_assert_leq(answers_before_late, 30);
}

Test(client, soon_requests_come_before_the_others)
{
    fixture_start(give_pod, NULL, &(struct kube_client_options){.max_in_flight = 1});
    struct kube_call_options soon = plain;
    struct resource_path first = pod;
    soon.priority = KUBE_HIGH;
    first.name = "first";
    for (int i = 0; i < 4; i++)
        kube_client_get(client, &pod, &plain);
    kube_client_get(client, &first, &soon);
    cr_assert_eq(kube_client_waiting(client), 4);
    LOOP_UNTIL(answer.calls == 5);
    cr_assert_str_eq(server.log[1], "GET /api/v1/namespaces/n/pods/first");
}

static int soon_answered, soon_begun, others_begun;

static void note_soon(void *context, const struct kube_answer *soon)
{
    (void)context, (void)soon;
    soon_answered++;
}

/* After two answers those that go first are held until the others are there. */
static void hold_soon_until_others_come(struct scripted_request *request)
{
    bool other = strcmp(request->line, "GET /api/v1/namespaces/n/pods/p") != 0;
    int number = __atomic_add_fetch(other ? &others_begun : &soon_begun, 1, __ATOMIC_SEQ_CST);
    while (!other && number > 2 && __atomic_load_n(&others_begun, __ATOMIC_SEQ_CST) < 2)
        usleep(1000);
    give_pod(request);
}

Test(client, requests_behind_soon_ones_get_a_share_of_the_connections)
{
    fixture_start(hold_soon_until_others_come, NULL, &(struct kube_client_options){.max_in_flight = 3});
    struct kube_call_options soon = {.priority = KUBE_HIGH, .answered = note_soon};
    struct kube_call_options late = {.priority = KUBE_LOW, .answered = on_answer};
    struct resource_path other = pod;
    other.name = "other";
    for (int i = 0; i < 60; i++)
        kube_client_get(client, &pod, &soon);
    kube_client_get(client, &other, &plain);
    kube_client_get(client, &other, &late);
    LOOP_UNTIL(answer.calls == 2 && soon_answered == 60);
}

enum { SOON = 20 };
static struct kube_call_options endless_normal, endless_late;

/* Sends the request again after each answer. */
static void ask_again(void *context, const struct kube_answer *given)
{
    (void)given;
    answer.calls++;
    if (soon_answered < SOON)
        kube_client_get(client, &pod, context);
}

/* With two connections, nothing is reserved for requests of lower priority. */
Test(client, a_narrow_wire_is_not_shared)
{
    fixture_start(give_pod, NULL, &(struct kube_client_options){.max_in_flight = 2});
    struct kube_call_options soon = {.priority = KUBE_HIGH, .answered = note_soon};
    endless_normal = (struct kube_call_options){.answered = ask_again, .context = &endless_normal};
    endless_late = (struct kube_call_options){.priority = KUBE_LOW, .answered = ask_again, .context = &endless_late};
    for (int i = 0; i < 4; i++) {
        kube_client_get(client, &pod, &endless_late);
        kube_client_get(client, &pod, &endless_normal);
    }
    for (int i = 0; i < SOON; i++)
        kube_client_get(client, &pod, &soon);
    LOOP_UNTIL(soon_answered == SOON && pending() == 0);
}

/* A job of four pods that comes after one of three hundred waits for one request of the other's before each of its own. */
Test(client, a_small_flow_does_not_wait_for_a_large_one)
{
    fixture_start(give_pod, NULL, &(struct kube_client_options){.max_in_flight = 1});
    struct kube_call_options big = plain, small = plain;
    struct resource_path late = pod;
    big.flow = "n/big";
    small.flow = "n/small";
    late.name = "late";
    for (int i = 0; i < 300; i++)
        kube_client_get(client, &pod, &big);
    for (int i = 0; i < 4; i++)
        kube_client_get(client, &late, &small);
    LOOP_UNTIL(answer.calls == 304);
    int served = 0;
    for (int i = 0; i < 9; i++)
        served += strcmp(server.log[i], "GET /api/v1/namespaces/n/pods/late") == 0;
    cr_assert_eq(served, 4);
}

static bool gate;

static bool gate_is_open(void *context)
{
    (void)context;
    return gate;
}

Test(client, a_closed_gate_stops_writes_but_not_reads)
{
    fixture_start(give_pod, NULL, NULL);
    kube_client_set_write_gate(client, gate_is_open, NULL);
    create_once();
    cr_assert_eq(answer.error.kind, ERROR_CANCELLED);
    cr_assert_eq(server.requests, 0);
    get_once();
    cr_assert_eq(answer.status, 200);
    gate = true;
    create_once();
    cr_assert_eq(answer.status, 200);
}

static void close_gate_and_break(struct scripted_request *request)
{
    gate = false;
    scripted_reply(request, 500, "{}");
}

Test(client, the_gate_is_asked_again_before_a_repetition)
{
    gate = true;
    fixture_start(close_gate_and_break, NULL, NULL);
    kube_client_set_write_gate(client, gate_is_open, NULL);
    SCOPED_JSON *patch = json_new_object();
    kube_client_patch(client, &pod, patch, &plain);
    LOOP_UNTIL(answer.calls == 1);
    cr_assert_eq(answer.error.kind, ERROR_CANCELLED);
    cr_assert_eq(server.requests, 1);
}

Test(client, abort_ends_writes_that_wait_or_are_on_the_wire)
{
    fixture_start(scripted_hold, NULL, &(struct kube_client_options){.max_in_flight = 2});
    SCOPED_JSON *patch = json_new_object();
    for (int i = 0; i < 4; i++)
        kube_client_patch(client, &pod, patch, &plain);
    kube_client_get(client, &pod, &plain);
    LOOP_UNTIL(server.requests == 2);
    kube_client_abort_writes(client);
    cr_assert_eq(answer.calls, 4);
    cr_assert_eq(answer.error.kind, ERROR_CANCELLED);
    cr_assert_eq(pending(), 1, "the read goes on");
    fixture_stop();
    cr_assert_eq(answer.calls, 5);
}
