/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_probe.h"

#include <criterion/criterion.h>
#include <stdatomic.h>

#include "common/memory.h"
#include "common/scope.h"
#include "tests/unit/scripted_server.h"

static struct event_loop *loop;
static struct http_client *client;
static struct scripted_server server;
static atomic_int answer = 200;

static void respond(struct scripted_request *request)
{
    scripted_reply(request, answer, "");
}

static void setup(void)
{
    struct http_client_options options = {.user_agent = "probe"};
    cr_assert_eq(event_loop_new(&loop, NULL), 0);
    cr_assert_eq(http_client_new(loop, &options, &client, NULL), 0);
    scripted_server_start(&server, respond, NULL);
}

static void teardown(void)
{
    http_client_free(client);
    event_loop_free(loop);
    scripted_server_stop(&server);
}

TestSuite(node_probe, .init = setup, .fini = teardown, .timeout = 120);

static struct json *parse(char *text)
{
    struct json *value = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(json_parse(text, strlen(text), 1 << 20, &value, &error), 0, "%s", error.message);
    free(text);
    return value;
}

static int verdicts;
static bool passes;
static void told(void *context, bool verdict)
{
    (void)context;
    verdicts++;
    passes = verdict;
}

static void wait_for_verdict(int number)
{
    while (verdicts < number)
        cr_assert_eq(event_loop_turn(loop, -1, NULL), 0);
}

static struct probe *start(const struct json *container, const struct json *spec)
{
    struct probe_target target = {.loop = loop, .client = client, .container = container, .address = "127.0.0.1"};
    struct probe *probe = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(probe_start(&target, spec, true, told, NULL, &probe, &error), 0, "%s", error.message);
    return probe;
}

Test(node_probe, http_by_the_name_of_a_port)
{
    SCOPED_JSON *container = parse(memory_format("{\"ports\":[{\"name\":\"web\",\"containerPort\":%d}]}", server.port));
    SCOPED_JSON *spec = parse(memory_copy_string(
        "{\"httpGet\":{\"path\":\"/healthz\",\"port\":\"web\"},\"periodSeconds\":1,\"failureThreshold\":1}"));
    struct probe *probe = start(container, spec);
    wait_for_verdict(1);
    cr_assert(passes);
    answer = 503;
    wait_for_verdict(2);
    cr_assert_not(passes);
    cr_assert_str_eq(server.log[0], "GET /healthz");
    probe_free(probe);
}

Test(node_probe, fails_only_at_its_threshold)
{
    SCOPED_JSON *spec =
        parse(memory_format("{\"httpGet\":{\"port\":%d},\"periodSeconds\":1,\"failureThreshold\":3}", server.port));
    answer = 500;
    struct probe *probe = start(NULL, spec);
    wait_for_verdict(1);
    cr_assert_not(passes);
    cr_assert_eq(server.requests, 3);
    probe_free(probe);
}

Test(node_probe, tcp)
{
    SCOPED_JSON *spec = parse(memory_format("{\"tcpSocket\":{\"port\":%d}}", server.port));
    struct probe *probe = start(NULL, spec);
    wait_for_verdict(1);
    cr_assert(passes);
    probe_free(probe);
}

Test(node_probe, tcp_where_nobody_listens)
{
    /* Bound and not listening: nobody else can take the port meanwhile. */
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    SCOPED_CLOSE int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(taken, (struct sockaddr *)&address, size), 0);
    getsockname(taken, (struct sockaddr *)&address, &size);
    SCOPED_JSON *spec =
        parse(memory_format("{\"tcpSocket\":{\"port\":%d},\"failureThreshold\":2}", ntohs(address.sin_port)));
    struct probe *probe = start(NULL, spec);
    wait_for_verdict(1);
    cr_assert_not(passes);
    probe_free(probe);
}

Test(node_probe, what_this_node_does_not_have_is_said)
{
    static const struct {
        const char *spec;
        enum error_kind kind;
    } cases[] = {{"{\"exec\":{\"command\":[\"true\"]}}", ERROR_UNSUPPORTED},
                 {"{\"httpGet\":{\"port\":80,\"scheme\":\"HTTPS\"}}", ERROR_UNSUPPORTED},
                 {"{\"httpGet\":{\"port\":\"web\"}}", ERROR_INVALID},
                 {"{\"tcpSocket\":{\"port\":70000}}", ERROR_INVALID},
                 {"{\"tcpSocket\":{\"port\":80,\"host\":\"example\"}}", ERROR_INVALID}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCOPED_JSON *spec = parse(memory_copy_string(cases[i].spec));
        struct probe_target target = {.loop = loop, .client = client, .address = "127.0.0.1"};
        struct probe *probe = NULL;
        struct error error = ERROR_INIT;
        cr_assert_lt(probe_start(&target, spec, true, told, NULL, &probe, &error), 0);
        cr_assert_eq(error.kind, cases[i].kind, "%s: %s", cases[i].spec, error.message);
    }
}
