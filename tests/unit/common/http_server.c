/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http_server.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/event_loop.h"
#include "common/http_client.h"

TestSuite(http_server, .timeout = 120);

struct scene {
    struct event_loop *loop;
    struct http_client *client;
    struct http_server *server;
    struct http_stream *stream;
    struct http_exchange *deferred;
    int status;
    char body[256];
    bool done, closed, got_data;
};

static void stream_closed(void *context)
{
    ((struct scene *)context)->closed = true;
}

static void answer_later(void *context)
{
    struct scene *scene = context;
    http_exchange_respond(scene->deferred, 202, "text/plain", "later", 5);
}

static void handle(void *context, struct http_exchange *exchange)
{
    struct scene *scene = context;
    const char *path = http_exchange_path(exchange);
    char text[256];
    size_t length;
    if (strcmp(path, "/defer") == 0) {
        scene->deferred = exchange;
        http_exchange_defer(exchange, stream_closed, scene);
        event_timer_start(scene->loop, 5, answer_later, scene);
        return;
    }
    if (strcmp(path, "/stream") == 0) {
        scene->stream = http_exchange_stream(exchange, 200, "text/plain", 4096, stream_closed, scene);
        http_stream_write(scene->stream, "one\n", 4);
        if (http_exchange_query(exchange, "close"))
            http_stream_close(scene->stream);
        return;
    }
    const char *query = http_exchange_query(exchange, "q");
    snprintf(text, sizeof text, "%s %s q=%s body=%s", http_exchange_method(exchange), path, query ? query : "-",
             http_exchange_body(exchange, &length));
    http_exchange_respond(exchange, 200, "text/plain", text, strlen(text));
}

static void done(void *context, const struct http_response *response)
{
    struct scene *scene = context;
    scene->status = response->status;
    snprintf(scene->body, sizeof scene->body, "%s", response->body ? response->body : "");
    scene->done = true;
}

static int data(void *context, const char *bytes, size_t length, struct error *error)
{
    (void)bytes, (void)length, (void)error;
    ((struct scene *)context)->got_data = true;
    return 0;
}

static void open_scene(struct scene *scene, bool on_loop)
{
    struct error error = ERROR_INIT;
    struct http_server_options options = {.address = "127.0.0.1",
                                          .max_body = 1000,
                                          .max_connections = 4,
                                          .idle_seconds = on_loop ? 60 : 1,
                                          .handler = handle,
                                          .context = scene};
    *scene = (struct scene){0};
    cr_assert_eq(event_loop_new(&scene->loop, &error), 0, "%s", error.message);
    cr_assert_eq(http_client_new(scene->loop, &(struct http_client_options){0}, &scene->client, &error), 0);
    int started = on_loop ? http_server_start_on_loop(&options, scene->loop, &scene->server, &error)
                          : http_server_start(&options, &scene->server, &error);
    cr_assert_eq(started, 0, "%s", error.message);
}

static void close_scene(struct scene *scene)
{
    http_server_free(scene->server);
    http_client_free(scene->client);
    event_loop_free(scene->loop);
}

static struct http_transfer *begin(struct scene *scene, const char *method, const char *path, const char *body,
                                   size_t length, http_data *on_data)
{
    char url[256];
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", http_server_port(scene->server), path);
    scene->done = false;
    return http_client_start(scene->client, &(struct http_request){.method = method,
                                                                   .url = url,
                                                                   .body = body,
                                                                   .body_length = length,
                                                                   .content_type = body ? "text/plain" : NULL,
                                                                   .on_data = on_data,
                                                                   .done = done,
                                                                   .context = scene});
}

static void wait_for(struct scene *scene, const bool *what)
{
    for (int i = 0; i < 2000 && !*what; i++)
        cr_assert_eq(event_loop_turn(scene->loop, 10, NULL), 0);
    cr_assert(*what);
}

static void wait_for_stream(struct scene *scene)
{
    for (int i = 0; i < 2000 && scene->stream == NULL; i++)
        cr_assert_eq(event_loop_turn(scene->loop, 10, NULL), 0);
    cr_assert_not_null(scene->stream);
}

static void ask(struct scene *scene, const char *method, const char *path, const char *body, size_t length)
{
    begin(scene, method, path, body, length, NULL);
    wait_for(scene, &scene->done);
}

static void expect_whole_requests(bool on_loop)
{
    struct scene scene;
    open_scene(&scene, on_loop);
    ask(&scene, "GET", "/a%20b?q=x%26y", NULL, 0);
    cr_expect_eq(scene.status, 200);
    cr_expect_str_eq(scene.body, "GET /a b q=x&y body=");
    ask(&scene, "POST", "/p?q", "hello", 5);
    cr_expect_str_eq(scene.body, "POST /p q= body=hello");
    close_scene(&scene);
}

Test(http_server, serves_whole_requests_in_its_own_thread)
{
    expect_whole_requests(false);
}

Test(http_server, serves_whole_requests_on_a_loop)
{
    expect_whole_requests(true);
}

static int connect_from(const struct scene *scene, const char *address)
{
    struct sockaddr_in from = {.sin_family = AF_INET}, to = {.sin_family = AF_INET};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, address, &from.sin_addr);
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    to.sin_port = htons(http_server_port(scene->server));
    cr_assert_eq(bind(descriptor, (const struct sockaddr *)&from, sizeof from), 0);
    cr_assert_eq(connect(descriptor, (const struct sockaddr *)&to, sizeof to), 0);
    return descriptor;
}

/* Begins a request that never ends. */
static int connect_idly(const struct scene *scene, const char *address)
{
    int descriptor = connect_from(scene, address);
    cr_assert_eq(write(descriptor, "GET /", 5), 5);
    return descriptor;
}

#define FLOOD 300

/* All from the address of the client itself, as behind a host network: the oldest connection goes, not the newest. */
static void expect_room_for_a_request(bool on_loop)
{
    struct scene scene;
    static int idle[FLOOD];
    open_scene(&scene, on_loop);
    for (size_t i = 0; i < FLOOD; i++) {
        idle[i] = connect_idly(&scene, "127.0.0.1");
        if (on_loop)
            cr_assert_eq(event_loop_turn(scene.loop, 0, NULL), 0);
    }
    ask(&scene, "GET", "/a", NULL, 0);
    cr_expect_eq(scene.status, 200);
    char byte;
    cr_expect_leq(read(idle[0], &byte, 1), 0, "the oldest is closed");
    for (size_t i = 0; i < FLOOD; i++)
        close(idle[i]);
    close_scene(&scene);
}

Test(http_server, a_flood_of_idle_connections_leaves_room_for_a_request_on_a_loop)
{
    expect_room_for_a_request(true);
}

Test(http_server, a_flood_of_idle_connections_leaves_room_for_a_request_in_a_thread)
{
    expect_room_for_a_request(false);
}

/* As many as there may be, each of which has had an answer. */
Test(http_server, idle_connections_with_an_answer_leave_room_for_a_newcomer)
{
    static const char request[] = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
    struct scene scene;
    int idle[4];
    char text[512];
    open_scene(&scene, true);
    for (size_t i = 0; i < 4; i++) {
        ssize_t length = -1;
        idle[i] = connect_from(&scene, "127.0.0.2");
        cr_assert_eq(write(idle[i], request, sizeof request - 1), (ssize_t)sizeof request - 1);
        for (int turn = 0; turn < 2000 && length < 0; turn++) {
            cr_assert_eq(event_loop_turn(scene.loop, 10, NULL), 0);
            length = recv(idle[i], text, sizeof text, MSG_DONTWAIT);
        }
        cr_assert_gt(length, 0);
    }
    ask(&scene, "GET", "/b", NULL, 0);
    cr_expect_eq(scene.status, 200);
    cr_expect_eq(recv(idle[0], text, sizeof text, MSG_DONTWAIT), 0, "the one that is idle for longest is closed");
    for (size_t i = 0; i < 4; i++)
        close(idle[i]);
    close_scene(&scene);
}

/* A stream is no idle connection, and what waits for its next request goes after those that never sent one. */
Test(http_server, a_flood_closes_no_stream)
{
    struct scene scene;
    int idle[32];
    open_scene(&scene, true);
    begin(&scene, "GET", "/stream", NULL, 0, data);
    wait_for(&scene, &scene.got_data);
    for (size_t i = 0; i < 32; i++) {
        idle[i] = connect_idly(&scene, "127.0.0.1");
        cr_assert_eq(event_loop_turn(scene.loop, 1, NULL), 0);
    }
    cr_expect_not(scene.closed);
    cr_expect(http_stream_write(scene.stream, "two\n", 4));
    for (size_t i = 0; i < 32; i++)
        close(idle[i]);
    close_scene(&scene);
}

Test(http_server, nobody_is_waited_for_without_end)
{
    struct scene scene;
    char byte;
    open_scene(&scene, false);
    int idle = connect_idly(&scene, "127.0.0.2");
    cr_expect_eq(read(idle, &byte, 1), 0);
    close(idle);
    close_scene(&scene);
}

Test(http_server, refuses_bodies_beyond_the_ceiling)
{
    struct scene scene;
    char body[1001];
    memset(body, 'x', sizeof body);
    open_scene(&scene, true);
    ask(&scene, "POST", "/p", body, sizeof body);
    cr_expect_eq(scene.status, 413);
    close_scene(&scene);
}

Test(http_server, answers_later)
{
    struct scene scene;
    open_scene(&scene, true);
    ask(&scene, "GET", "/defer", NULL, 0);
    cr_expect_eq(scene.status, 202);
    cr_expect_str_eq(scene.body, "later");
    close_scene(&scene);
}

Test(http_server, streams_until_closed)
{
    struct scene scene;
    open_scene(&scene, true);
    ask(&scene, "GET", "/stream?close", NULL, 0);
    cr_expect_str_eq(scene.body, "one\n");
    wait_for(&scene, &scene.closed);
    close_scene(&scene);
}

Test(http_server, notices_a_client_that_leaves_a_silent_stream)
{
    struct scene scene;
    open_scene(&scene, true);
    struct http_transfer *transfer = begin(&scene, "GET", "/stream", NULL, 0, data);
    wait_for(&scene, &scene.got_data);
    http_transfer_cancel(transfer);
    http_client_free(scene.client);
    scene.client = NULL;
    wait_for(&scene, &scene.closed);
    http_server_free(scene.server);
    event_loop_free(scene.loop);
}

Test(http_server, disconnects_a_reader_that_lets_too_much_pile_up)
{
    struct scene scene;
    char block[2048];
    memset(block, 'x', sizeof block);
    open_scene(&scene, true);
    begin(&scene, "GET", "/stream", NULL, 0, data);
    wait_for(&scene, &scene.got_data);
    cr_expect(http_stream_write(scene.stream, block, sizeof block));
    cr_expect(http_stream_write(scene.stream, block, sizeof block));
    cr_expect_not(http_stream_write(scene.stream, block, sizeof block));
    wait_for(&scene, &scene.closed);
    close_scene(&scene);
}

Test(http_server, ends_streams_when_it_stops)
{
    struct scene scene;
    open_scene(&scene, true);
    begin(&scene, "GET", "/stream", NULL, 0, data);
    wait_for(&scene, &scene.got_data);
    close_scene(&scene);
    cr_expect(scene.closed);
}

/* The first stream has let go of the bytes, and so has their maker, when the second still sends them. */
Test(http_server, streams_share_bytes)
{
    struct scene scene;
    open_scene(&scene, true);
    begin(&scene, "GET", "/stream", NULL, 0, NULL);
    wait_for_stream(&scene);
    struct http_stream *first = scene.stream;
    scene.stream = NULL;
    struct http_bytes *bytes = http_bytes_new("two\n", 4);
    cr_expect(http_stream_write_shared(first, bytes));
    http_stream_close(first);
    wait_for(&scene, &scene.done);
    cr_expect_str_eq(scene.body, "one\ntwo\n");
    begin(&scene, "GET", "/stream", NULL, 0, NULL);
    wait_for_stream(&scene);
    cr_expect(http_stream_write_shared(scene.stream, bytes));
    cr_expect(http_stream_write_shared(scene.stream, bytes));
    http_bytes_release(bytes);
    http_stream_close(scene.stream);
    wait_for(&scene, &scene.done);
    cr_expect_str_eq(scene.body, "one\ntwo\ntwo\n");
    close_scene(&scene);
}

/* ---- the end of a server in a thread of its own ---- */

#define ENDS 150
#define STRANGERS 4

struct strangers {
    uint16_t port;
    _Atomic bool over;
};

/* Sends what is no request on ever new connections. */
static void *send_garbage(void *context)
{
    struct strangers *strangers = context;
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(strangers->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    while (!strangers->over) {
        int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(descriptor, (const struct sockaddr *)&address, sizeof address) == 0)
            (void)!send(descriptor, "\x01 \x02\r\n\r\n", 7, MSG_NOSIGNAL);
        close(descriptor);
    }
    return NULL;
}

/* libmicrohttpd's own thread answered them without an answer once its daemon was being stopped (segmentation fault in 0.9.75). */
Test(http_server, ends_among_strangers_that_send_garbage)
{
    for (int end = 0; end < ENDS; end++) {
        struct scene scene = {0};
        struct error error = ERROR_INIT;
        const struct http_server_options options = {.address = "127.0.0.1", .handler = handle, .context = &scene};
        pthread_t threads[STRANGERS];
        cr_assert_eq(http_server_start(&options, &scene.server, &error), 0, "%s", error.message);
        struct strangers strangers = {.port = http_server_port(scene.server)};
        for (int i = 0; i < STRANGERS; i++)
            cr_assert_eq(pthread_create(&threads[i], NULL, send_garbage, &strangers), 0);
        usleep(5000);
        http_server_free(scene.server);
        strangers.over = true;
        for (int i = 0; i < STRANGERS; i++)
            pthread_join(threads[i], NULL);
    }
}
