/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "common/http_client.h"
#include "common/memory.h"
#include "tests/unit/scripted_server.h"
#include "tests/unit/test_certificate.h"

static struct event_loop *loop;
static struct scripted_server server;

static void setup(void)
{
    cr_assert_eq(event_loop_new(&loop, NULL), 0);
}

static void teardown(void)
{
    event_loop_free(loop);
    if (server.handler)
        scripted_server_stop(&server);
}

TestSuite(http_client, .init = setup, .fini = teardown, .timeout = 120);

/* The last answer, kept beyond its callback. */
static struct {
    int calls;
    int status;
    int64_t retry_after_ms;
    char body[4096];
    struct error error;
} got;

static void on_done(void *context, const struct http_response *response)
{
    (void)context;
    got.calls++;
    got.status = response->status;
    got.retry_after_ms = response->retry_after_ms;
    snprintf(got.body, sizeof got.body, "%s", response->body);
    got.error = response->error ? *response->error : (struct error)ERROR_INIT;
    event_loop_stop(loop);
}

static struct http_client *client_with(const struct http_client_options *options)
{
    struct http_client *client;
    cr_assert_eq(http_client_new(loop, options, &client, NULL), 0);
    return client;
}

static char *url_of(const char *scheme, const char *host, const char *path)
{
    return memory_format("%s://%s:%d%s", scheme, host, server.port, path);
}

/* One request from start to end. */
static void ask(struct http_client *client, struct http_request request, const char *scheme)
{
    SCOPED_FREE char *url = url_of(scheme, "127.0.0.1", "/");
    if (request.url == NULL)
        request.url = url;
    request.done = on_done;
    int before = got.calls;
    http_client_start(client, &request);
    cr_assert_eq(got.calls, before, "no callback from within http_client_start");
    event_loop_run(loop, NULL);
    cr_assert_eq(got.calls, before + 1);
}

static void echo(struct scripted_request *request)
{
    const char *type = strcasestr(request->head, "Content-Type: ");
    char body[70000];
    snprintf(body, sizeof body, "%s|%.*s|%s", request->line, type ? (int)strcspn(type, "\r") : 0, type ? type : "",
             request->body);
    scripted_reply_with(request, 200, "Retry-After: 7\r\n", body);
}

Test(http_client, sends_method_headers_and_body)
{
    scripted_server_start(&server, echo, NULL);
    struct http_client *client = client_with(&(struct http_client_options){0});
    ask(client,
        (struct http_request){
            .method = "PATCH", .body = "{}", .body_length = 2, .content_type = "application/merge-patch+json"},
        "http");
    cr_assert_eq(got.status, 200);
    cr_assert_eq(got.retry_after_ms, 7000);
    cr_assert_str_eq(got.body, "PATCH /|Content-Type: application/merge-patch+json|{}");
    ask(client, (struct http_request){.method = "DELETE"}, "http");
    cr_assert_str_eq(got.body, "DELETE /||");
    cr_assert_eq(server.connections, 1, "the connection is used again");
    http_client_free(client);
}

static void tell_token(struct scripted_request *request)
{
    const char *token = strcasestr(request->head, "Authorization: ");
    scripted_reply(request, 200, token ? "token" : "none");
}

Test(http_client, a_token_goes_over_plain_http_to_loopback_only)
{
    scripted_server_start(&server, tell_token, NULL);
    struct http_client *client = client_with(&(struct http_client_options){0});
    ask(client, (struct http_request){.method = "GET", .bearer_token = "secret"}, "http");
    cr_assert_str_eq(got.body, "token");
    ask(client, (struct http_request){.method = "GET", .url = "http://192.0.2.1/", .bearer_token = "secret"}, "http");
    cr_assert_eq(got.error.kind, ERROR_FORBIDDEN);
    http_client_free(client);
}

static void redirect(struct scripted_request *request)
{
    char headers[128];
    snprintf(headers, sizeof headers, "Location: http://localhost:%d/there\r\n", request->server->port);
    if (strcmp(request->line, "GET /") == 0)
        scripted_reply_with(request, 302, headers, "");
    else
        tell_token(request);
}

Test(http_client, redirects_are_followed_only_on_request_and_without_the_token)
{
    scripted_server_start(&server, redirect, NULL);
    struct http_client *client = client_with(&(struct http_client_options){0});
    ask(client, (struct http_request){.method = "GET", .bearer_token = "secret"}, "http");
    cr_assert_eq(got.status, 302);
    ask(client, (struct http_request){.method = "GET", .bearer_token = "secret", .follow_redirects = true}, "http");
    cr_assert_eq(got.status, 200);
    cr_assert_str_eq(got.body, "none");
    http_client_free(client);
}

Test(http_client, other_schemes_are_refused)
{
    struct http_client *client = client_with(&(struct http_client_options){0});
    ask(client, (struct http_request){.method = "GET", .url = "file:///etc/passwd"}, "http");
    cr_assert_eq(got.error.kind, ERROR_INVALID);
    ask(client, (struct http_request){.method = "GET", .url = "http://[bad"}, "http");
    cr_assert_eq(got.error.kind, ERROR_INVALID);
    http_client_free(client);
}

Test(http_client, nobody_there_is_unavailable)
{
    int taken = socket(AF_INET, SOCK_STREAM, 0); /* a port that is bound, but not listened on */
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    bind(taken, (struct sockaddr *)&address, size);
    getsockname(taken, (struct sockaddr *)&address, &size);
    server.port = ntohs(address.sin_port);
    struct http_client *client = client_with(&(struct http_client_options){0});
    ask(client, (struct http_request){.method = "GET"}, "http");
    cr_assert_eq(got.status, 0);
    cr_assert_eq(got.error.kind, ERROR_UNAVAILABLE);
    char url[96], whom[64];
    snprintf(whom, sizeof whom, "http://127.0.0.1:%d/some/path: ", server.port);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/some/path?and=query", server.port);
    ask(client, (struct http_request){.method = "GET", .url = url}, "http");
    cr_assert_eq(strncmp(got.error.message, whom, strlen(whom)), 0, "without the query: %s", got.error.message);
    http_client_free(client);
}

Test(http_client, a_long_body_ends_at_the_ceiling)
{
    scripted_server_start(&server, echo, NULL);
    struct http_client *client = client_with(&(struct http_client_options){0});
    ask(client, (struct http_request){.method = "GET", .max_body = 3}, "http");
    cr_assert_eq(got.error.kind, ERROR_TOO_LARGE);
    http_client_free(client);
}

static void cut(struct scripted_request *request)
{
    scripted_send(request, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
    request->close = true;
}

Test(http_client, a_cut_body_is_no_answer)
{
    scripted_server_start(&server, cut, NULL);
    struct http_client *client = client_with(&(struct http_client_options){0});
    ask(client, (struct http_request){.method = "GET"}, "http");
    cr_assert_eq(got.status, 0);
    cr_assert_eq(got.error.kind, ERROR_UNAVAILABLE);
    http_client_free(client);
}

Test(http_client, silence_ends_in_time)
{
    scripted_server_start(&server, scripted_hold, NULL);
    struct http_client *client = client_with(&(struct http_client_options){0});
    ask(client, (struct http_request){.method = "GET", .idle_timeout_ms = 50}, "http");
    cr_assert_eq(got.error.kind, ERROR_TIMEOUT);
    ask(client, (struct http_request){.method = "GET", .timeout_ms = 50}, "http");
    cr_assert_eq(got.error.kind, ERROR_TIMEOUT);
    http_client_free(client);
}

static void dribble(struct scripted_request *request)
{
    scripted_stream(request);
    scripted_chunk(request, "one ");
    scripted_chunk(request, "two ");
    scripted_chunk(request, "three");
    scripted_end(request);
}

static char streamed[64];
static struct http_transfer *transfer;
static enum { KEEP, REFUSE, CANCEL } on_data_does;

static int on_data(void *context, const char *bytes, size_t length, struct error *error)
{
    (void)context;
    size_t used = strlen(streamed);
    snprintf(streamed + used, sizeof streamed - used, "%.*s", (int)length, bytes);
    if (on_data_does == CANCEL)
        http_transfer_cancel(transfer);
    return on_data_does == REFUSE ? error_set(error, ERROR_CORRUPT, "not to our taste") : 0;
}

static void stream_once(struct http_client *client)
{
    SCOPED_FREE char *url = url_of("http", "127.0.0.1", "/");
    struct http_request request = {.method = "GET", .url = url, .on_data = on_data, .done = on_done};
    transfer = http_client_start(client, &request);
    event_loop_run(loop, NULL);
}

Test(http_client, a_stream_is_handed_over_and_may_be_refused_or_cancelled_within)
{
    scripted_server_start(&server, dribble, NULL);
    struct http_client *client = client_with(&(struct http_client_options){0});
    stream_once(client);
    cr_assert_str_eq(streamed, "one two three");
    cr_assert_str_eq(got.body, "");
    on_data_does = REFUSE;
    stream_once(client);
    cr_assert_eq(got.error.kind, ERROR_CORRUPT);
    cr_assert_str_eq(got.error.message, "not to our taste");
    on_data_does = CANCEL;
    stream_once(client);
    cr_assert_eq(got.error.kind, ERROR_CANCELLED);
    cr_assert_eq(got.calls, 3);
    http_client_free(client);
}

Test(http_client, more_requests_than_connections_wait_their_turn)
{
    enum { COUNT = 20 };
    scripted_server_start(&server, echo, NULL);
    struct http_client *client = client_with(&(struct http_client_options){.max_connections = 2});
    SCOPED_FREE char *url = url_of("http", "127.0.0.1", "/");
    struct http_request request = {.method = "GET", .url = url, .done = on_done};
    for (int i = 0; i < COUNT; i++)
        http_client_start(client, &request);
    while (got.calls < COUNT)
        event_loop_run(loop, NULL);
    cr_assert_eq(got.error.kind, ERROR_NONE);
    cr_assert_leq(server.connections, 2);
    http_client_free(client);
}

static void watch_or_answer(struct scripted_request *request)
{
    if (strcmp(request->line, "GET /watch") != 0) {
        scripted_reply(request, 200, "{}");
        return;
    }
    scripted_stream(request);
    scripted_chunk(request, "begun");
    scripted_hold(request);
}

static int watches_begun;

static int on_begun(void *context, const char *bytes, size_t length, struct error *error)
{
    (void)context, (void)bytes, (void)length, (void)error;
    watches_begun++;
    return 0;
}

Test(http_client, beside_many_watches_connections_are_used_again)
{
    enum { WATCHES = 40, REQUESTS = 12 };
    scripted_server_start(&server, watch_or_answer, NULL);
    struct http_client *client = client_with(&(struct http_client_options){.max_connections = WATCHES + 1});
    SCOPED_FREE char *url = url_of("http", "127.0.0.1", "/watch");
    struct http_request watch = {.method = "GET", .url = url, .on_data = on_begun, .done = on_done};
    for (int i = 0; i < WATCHES; i++)
        http_client_start(client, &watch);
    while (watches_begun < WATCHES)
        event_loop_turn(loop, -1, NULL);
    for (int i = 0; i < REQUESTS; i++)
        ask(client, (struct http_request){.method = "GET"}, "http");
    cr_assert_eq(got.error.kind, ERROR_NONE, "%s", got.error.message);
    cr_assert_eq(server.connections, WATCHES + 1);
    http_client_free(client);
}

Test(http_client, freeing_the_client_or_the_loop_cancels)
{
    scripted_server_start(&server, scripted_hold, NULL);
    struct http_client *client = client_with(&(struct http_client_options){0});
    SCOPED_FREE char *url = url_of("http", "127.0.0.1", "/");
    struct http_request request = {.method = "GET", .url = url, .done = on_done};
    http_client_start(client, &request);
    event_loop_turn(loop, 0, NULL);
    http_client_free(client);
    cr_assert_eq(got.calls, 1);
    cr_assert_eq(got.error.kind, ERROR_CANCELLED);
    client = client_with(&(struct http_client_options){0});
    http_client_start(client, &request);
    event_loop_turn(loop, 0, NULL);
    event_loop_free(loop);
    cr_assert_eq(got.calls, 2);
    http_client_free(client);
    setup();
}

/* ---- TLS ---- */

static struct test_certificate authority, own, stranger;

static void start_tls(const char *names, const struct test_certificate *client_authority)
{
    authority = test_certificate_make("authority", NULL, NULL);
    stranger = test_certificate_make("stranger", NULL, NULL);
    own = test_certificate_make("server", names, &authority);
    scripted_server_start(&server, tell_token, test_tls_server(&own, client_authority ? client_authority : NULL));
}

Test(http_client, the_right_authority_is_trusted_and_gets_the_token)
{
    start_tls("IP:127.0.0.1", NULL);
    struct http_client *client = client_with(&(struct http_client_options){.ca_pem = authority.certificate_pem});
    ask(client, (struct http_request){.method = "GET", .bearer_token = "secret"}, "https");
    cr_assert_eq(got.status, 200, "%s", got.error.message);
    cr_assert_str_eq(got.body, "token");
    http_client_free(client);
}

Test(http_client, a_wrong_authority_and_the_systems_store_refuse)
{
    start_tls("IP:127.0.0.1", NULL);
    struct http_client *client = client_with(&(struct http_client_options){.ca_pem = stranger.certificate_pem});
    ask(client, (struct http_request){.method = "GET"}, "https");
    cr_assert_eq(got.error.kind, ERROR_FORBIDDEN, "%s", got.error.message);
    http_client_free(client);
    client = client_with(&(struct http_client_options){0});
    ask(client, (struct http_request){.method = "GET"}, "https");
    cr_assert_eq(got.error.kind, ERROR_FORBIDDEN, "%s", got.error.message);
    http_client_free(client);
    cr_assert_eq(server.requests, 0);
}

Test(http_client, a_wrong_name_is_refused_unless_it_is_the_one_asked_for)
{
    start_tls("DNS:api.test", NULL);
    struct http_client *client = client_with(&(struct http_client_options){.ca_pem = authority.certificate_pem});
    ask(client, (struct http_request){.method = "GET"}, "https");
    cr_assert_eq(got.error.kind, ERROR_FORBIDDEN, "%s", got.error.message);
    http_client_free(client);
    client =
        client_with(&(struct http_client_options){.ca_pem = authority.certificate_pem, .tls_server_name = "api.test"});
    ask(client, (struct http_request){.method = "GET"}, "https");
    cr_assert_eq(got.status, 200, "%s", got.error.message);
    http_client_free(client);
}

Test(http_client, verification_is_skipped_only_when_told)
{
    start_tls("DNS:api.test", NULL);
    struct http_client *client = client_with(&(struct http_client_options){.insecure_skip_tls_verify = true});
    ask(client, (struct http_request){.method = "GET"}, "https");
    cr_assert_eq(got.status, 200, "%s", got.error.message);
    http_client_free(client);
}

Test(http_client, client_certificates_are_shown)
{
    struct test_certificate clients = test_certificate_make("clients", NULL, NULL);
    struct test_certificate mine = test_certificate_make("me", NULL, &clients);
    start_tls("IP:127.0.0.1", &clients);
    struct http_client_options options = {.ca_pem = authority.certificate_pem};
    struct http_client *client = client_with(&options);
    ask(client, (struct http_request){.method = "GET"}, "https");
    cr_assert_eq(got.status, 0);
    http_client_set_identity(client, mine.certificate_pem, mine.key_pem);
    ask(client, (struct http_request){.method = "GET"}, "https");
    cr_assert_eq(got.status, 200, "one that comes later is shown from then on: %s", got.error.message);
    http_client_free(client);
    options.client_cert_pem = mine.certificate_pem;
    options.client_key_pem = mine.key_pem;
    client = client_with(&options);
    ask(client, (struct http_request){.method = "GET"}, "https");
    cr_assert_eq(got.status, 200, "%s", got.error.message);
    http_client_free(client);
    options.client_key_pem = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(http_client_new(loop, &options, &client, &error), -1);
    cr_assert_eq(error.kind, ERROR_INVALID);
    test_certificate_release(&mine);
    test_certificate_release(&clients);
}
