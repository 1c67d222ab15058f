/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/operator/kube/loop_fixture.h"

TestSuite(proxy, .fini = fixture_stop, .timeout = 120);

static char last_head[8192];

static void keep_head(struct scripted_request *request)
{
    snprintf(last_head, sizeof last_head, "%s", request->head);
    scripted_reply(request, 200, "{\"metadata\":{\"name\":\"p\"}}");
}

static void refuse_tunnel(struct scripted_request *request)
{
    snprintf(last_head, sizeof last_head, "%s", request->head);
    scripted_reply(request, 403, "{}");
    request->close = true;
}

static void make_client(const struct kube_config *config)
{
    struct kube_client_options quick = {.retry_base_ms = 2, .retry_ceiling_ms = 10};
    cr_assert_eq(event_loop_new(&loop, NULL), 0);
    cr_assert_eq(kube_client_new(loop, config, &quick, &client, NULL), 0);
}

/* One question for a pod of `address`, which only the proxy knows. */
static void ask_through(const char *scheme, int port, const char *address, struct kube_config config)
{
    SCOPED_FREE char *proxy = memory_format("%s://127.0.0.1:%d", scheme, port);
    config.server = (char *)address;
    config.proxy = proxy;
    setenv("no_proxy", "*", 1);
    make_client(&config);
    kube_client_get(client, &pod, &plain);
    LOOP_UNTIL(answer.calls == 1);
}

Test(proxy, it_is_asked_for_what_the_server_has_with_the_names_of_others)
{
    SCOPED_JSON *headers = json_new_array();
    json_append_string(headers, "Impersonate-User: jane");
    json_append_string(headers, "Impersonate-Group: dev");
    json_append_string(headers, "Impersonate-Group;");
    scripted_server_start(&server, keep_head, NULL);
    ask_through("http", server.port, "http://control-plane.invalid:6443",
                (struct kube_config){.impersonation = headers});
    cr_assert_eq(answer.error.kind, ERROR_NONE, "%s", answer.error.message);
    cr_assert_str_eq(answer.name, "p");
    cr_assert_str_eq(server.log[0], "GET http://control-plane.invalid:6443/api/v1/namespaces/n/pods/p");
    cr_assert(strstr(last_head, "Impersonate-User: jane\r\n") && strstr(last_head, "Impersonate-Group: dev\r\n"), "%s",
              last_head);
    cr_assert(strstr(last_head, "Impersonate-Group:\r\n"), "an empty one: %s", last_head);
}

Test(proxy, the_token_is_for_the_server_alone)
{
    scripted_server_start(&server, refuse_tunnel, NULL);
    ask_through("http", server.port, "https://control-plane.invalid:6443",
                (struct kube_config){.token = (char[]){"secret"}});
    cr_assert_neq(answer.error.kind, ERROR_NONE);
    cr_assert_str_eq(server.log[0], "CONNECT control-plane.invalid:6443");
    cr_assert_null(strstr(last_head, "secret"), "%s", last_head);
}

Test(proxy, a_token_for_this_machine_does_not_go_to_another_in_the_clear)
{
    scripted_server_start(&server, keep_head, NULL);
    ask_through("http", server.port, "http://127.0.0.1:1", (struct kube_config){.token = (char[]){"secret"}});
    cr_assert_eq(answer.error.kind, ERROR_FORBIDDEN, "%s", answer.error.message);
    cr_assert_eq(server.requests, 0);
}

/* ---- SOCKS 5 (RFC 1928) */

static char asked_host[256];

static bool read_all(int descriptor, void *bytes, size_t size)
{
    return recv(descriptor, bytes, size, MSG_WAITALL) == (ssize_t)size;
}

/* Without a user, to a name; what follows is answered here. */
static void *be_socks(void *argument)
{
    static const char none[] = "\5\0", done[] = "\5\0\0\1\0\0\0\0\0\0";
    static const char body[] = "{\"metadata\":{\"name\":\"p\"}}";
    int descriptor = accept(*(int *)argument, NULL, NULL);
    unsigned char head[5], methods[255], port[2];
    if (!read_all(descriptor, head, 2) || !read_all(descriptor, methods, head[1]) ||
        send(descriptor, none, 2, MSG_NOSIGNAL) != 2 || !read_all(descriptor, head, 5) || head[3] != 3 ||
        !read_all(descriptor, asked_host, head[4]) || !read_all(descriptor, port, 2) ||
        send(descriptor, done, 10, MSG_NOSIGNAL) != 10) {
        close(descriptor);
        return NULL;
    }
    struct scripted_request request = {.descriptor = descriptor};
    if (scripted_receive(&request))
        scripted_reply(&request, 200, body);
    scripted_hold(&request);
    close(descriptor);
    return NULL;
}

Test(proxy, socks_is_told_the_name_and_finds_the_address)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_t thread;
    cr_assert_eq(bind(listener, (struct sockaddr *)&address, size), 0);
    cr_assert_eq(listen(listener, 1), 0);
    getsockname(listener, (struct sockaddr *)&address, &size);
    pthread_create(&thread, NULL, be_socks, &listener);
    ask_through("socks5", ntohs(address.sin_port), "http://control-plane.invalid:6443", (struct kube_config){0});
    cr_assert_eq(answer.error.kind, ERROR_NONE, "%s", answer.error.message);
    cr_assert_str_eq(answer.name, "p");
    cr_assert_str_eq(asked_host, "control-plane.invalid");
    fixture_stop();
    pthread_join(thread, NULL);
    close(listener);
}
