/* SPDX-License-Identifier: Apache-2.0
 *
 * The server on an event loop, over TLS, and nothing else on that loop: a wake-up
 * that is missed stays missed. Clients are blocking ones, in a thread.
 */
#include "common/http_server.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/event_loop.h"
#include "common/scope.h"
#include "tests/unit/test_certificate.h"

TestSuite(http_server_loop, .timeout = 120);

#define DEFERRED_MAX 64
#define GATHER "/gather" /* answered together, once as many as the query says are there */

struct scene {
    struct event_loop *loop;
    struct http_server *server;
    struct test_certificate certificate;
    SSL_CTX *tls;
    struct http_exchange *deferred[DEFERRED_MAX];
    int deferred_count;
    struct http_stream *stream;
    atomic_bool stream_closed, client_done;
};

/* ---- the server's side ---- */

static void on_closed(void *context)
{
    atomic_store(&((struct scene *)context)->stream_closed, true);
}

static void answer(struct http_exchange *exchange)
{
    size_t length;
    const char *body = http_exchange_body(exchange, &length);
    http_exchange_respond(exchange, 200, "text/plain", body, length);
}

static void answer_deferred(void *context)
{
    struct scene *scene = context;
    int count = scene->deferred_count;
    scene->deferred_count = 0;
    for (int i = 0; i < count; i++)
        answer(scene->deferred[i]);
}

static void handle(void *context, struct http_exchange *exchange)
{
    struct scene *scene = context;
    const char *path = http_exchange_path(exchange);
    const char *wanted = http_exchange_query(exchange, "count");
    if (strcmp(path, "/defer") == 0 || strcmp(path, GATHER) == 0) {
        scene->deferred[scene->deferred_count++] = exchange;
        http_exchange_defer(exchange, on_closed, scene);
        if (scene->deferred_count == (wanted ? atoi(wanted) : 1))
            event_timer_start(scene->loop, 0, answer_deferred, scene);
    } else if (strcmp(path, "/hold") == 0) {
        scene->deferred[scene->deferred_count++] = exchange;
        http_exchange_defer(exchange, on_closed, scene);
    } else if (strcmp(path, "/release") == 0) {
        answer_deferred(scene);
        answer(exchange);
    } else if (strcmp(path, "/stream") == 0) {
        scene->stream = http_exchange_stream(exchange, 200, "text/plain", 4096, on_closed, scene);
        http_stream_write(scene->stream, "hello", 5);
        if (http_exchange_query(exchange, "close"))
            http_stream_close(scene->stream);
    } else {
        if (strcmp(path, "/tell") == 0)
            http_stream_write(scene->stream, "news", 4);
        answer(exchange);
    }
}

static void open_scene(struct scene *scene)
{
    struct error error = ERROR_INIT;
    *scene = (struct scene){.certificate = test_certificate_make("server", "IP:127.0.0.1", NULL)};
    scene->tls = SSL_CTX_new(TLS_client_method());
    struct http_server_options options = {
        .address = "127.0.0.1",
        .tls_cert_pem = scene->certificate.certificate_pem,
        .tls_key_pem = scene->certificate.key_pem,
        .handler = handle,
        .context = scene,
    };
    cr_assert_eq(event_loop_new(&scene->loop, &error), 0, "%s", error.message);
    cr_assert_eq(http_server_start_on_loop(&options, scene->loop, &scene->server, &error), 0, "%s", error.message);
}

static void close_scene(struct scene *scene)
{
    http_server_free(scene->server);
    event_loop_free(scene->loop);
    SSL_CTX_free(scene->tls);
    test_certificate_release(&scene->certificate);
}

/* ---- the client's side ---- */

static SSL *dial(struct scene *scene)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(http_server_port(scene->server))};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert_eq(connect(descriptor, (struct sockaddr *)&address, sizeof address), 0);
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    SSL *tls = SSL_new(scene->tls);
    SSL_set_fd(tls, descriptor);
    cr_assert_eq(SSL_connect(tls), 1);
    return tls;
}

static void hang_up(SSL *tls)
{
    close(SSL_get_fd(tls));
    SSL_free(tls);
}

static void say(SSL *tls, const char *text)
{
    cr_assert_eq(SSL_write(tls, text, (int)strlen(text)), (int)strlen(text));
}

static void say_head(SSL *tls, const char *path, size_t body_length)
{
    char head[256];
    snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", path, body_length);
    say(tls, head);
}

static void ask(SSL *tls, const char *path, const char *body)
{
    say_head(tls, path, strlen(body));
    say(tls, body);
}

/* Reads until `what` has come. */
static void hear_until(SSL *tls, const char *what)
{
    char heard[4096] = "";
    size_t length = 0;
    while (strstr(heard, what) == NULL) {
        int got = SSL_read(tls, heard + length, (int)(sizeof heard - 1 - length));
        cr_assert_gt(got, 0, "the connection ended before \"%s\"; heard \"%s\"", what, heard);
        length += (size_t)got;
        heard[length] = '\0';
    }
}

/* ---- both ---- */

typedef void client_script(struct scene *scene);

struct client {
    struct scene *scene;
    client_script *script;
};

static void *client_run(void *context)
{
    struct client *client = context;
    client->script(client->scene);
    atomic_store(&client->scene->client_done, true);
    return NULL;
}

static void play(client_script *script)
{
    pthread_t thread;
    struct scene scene;
    open_scene(&scene);
    struct client client = {&scene, script};
    cr_assert_eq(pthread_create(&thread, NULL, client_run, &client), 0);
    while (!atomic_load(&scene.client_done))
        cr_assert_eq(event_loop_turn(scene.loop, 10, NULL), 0);
    pthread_join(thread, NULL);
    close_scene(&scene);
}

static void send_late_body(struct scene *scene)
{
    SSL *tls = dial(scene);
    say_head(tls, "/defer", 4);
    usleep(20000); /* the server has taken the head, and waits */
    say(tls, "late");
    hear_until(tls, "late");
    hang_up(tls);
}

Test(http_server_loop, answers_later_to_a_body_that_comes_after_its_head)
{
    play(send_late_body);
}

static void send_crumbs(struct scene *scene)
{
    SSL *tls = dial(scene);
    say_head(tls, "/defer", 503);
    for (int i = 0; i < 500; i++)
        say(tls, ".");
    say(tls, "end");
    hear_until(tls, "end");
    hang_up(tls);
}

Test(http_server_loop, takes_a_body_in_many_records)
{
    play(send_crumbs);
}

static void gather(struct scene *scene)
{
    SSL *tls[32];
    for (int i = 0; i < 32; i++)
        tls[i] = dial(scene);
    for (int i = 0; i < 32; i++)
        ask(tls[i], GATHER "?count=32", "gathered");
    for (int i = 0; i < 32; i++)
        hear_until(tls[i], "gathered");
    for (int i = 0; i < 32; i++)
        hang_up(tls[i]);
}

Test(http_server_loop, answers_many_later_at_once)
{
    play(gather);
}

static void reuse(struct scene *scene)
{
    char body[32];
    SSL *tls = dial(scene);
    for (int i = 0; i < 50; i++) {
        snprintf(body, sizeof body, "body %d.", i);
        ask(tls, i % 2 ? "/defer" : "/at-once", body);
        hear_until(tls, body);
    }
    hang_up(tls);
}

Test(http_server_loop, answers_later_on_a_connection_that_stays)
{
    play(reuse);
}

static void renew(struct scene *scene)
{
    SSL *tls = dial(scene);
    for (int i = 0; i < 50; i++) {
        ask(tls, "/stream?close", "");
        hear_until(tls, "hello\r\n0\r\n\r\n");
    }
    hang_up(tls);
}

Test(http_server_loop, takes_the_next_request_after_a_stream)
{
    play(renew);
}

static void pipeline(struct scene *scene)
{
    char all[2048] = "";
    for (int i = 0; i < 8; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all),
                 "POST /defer HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nbody %d", i);
    SSL *tls = dial(scene);
    say(tls, all);
    hear_until(tls, "body 7");
    hang_up(tls);
}

Test(http_server_loop, answers_pipelined_requests_later)
{
    play(pipeline);
}

static void be_released(struct scene *scene)
{
    SSL *held = dial(scene), *other = dial(scene);
    ask(held, "/hold", "held");
    ask(other, "/at-once", "first");
    hear_until(other, "first");
    ask(other, "/release", "released");
    hear_until(other, "released");
    hear_until(held, "held");
    hang_up(held);
    hang_up(other);
}

/* Resumed while libmicrohttpd runs, after it has looked for resumed connections. */
Test(http_server_loop, answers_one_request_while_it_handles_another)
{
    play(be_released);
}

static void be_told(struct scene *scene)
{
    SSL *listener = dial(scene), *other = dial(scene);
    ask(listener, "/stream", "");
    hear_until(listener, "hello");
    ask(other, "/tell", "told");
    hear_until(other, "told");
    hear_until(listener, "news");
    hang_up(listener);
    hang_up(other);
}

Test(http_server_loop, writes_to_a_stream_while_it_handles_another_request)
{
    play(be_told);
}

static void say_good_bye(struct scene *scene)
{
    SSL *tls = dial(scene);
    ask(tls, "/stream", "");
    hear_until(tls, "hello");
    SSL_shutdown(tls);
    while (!atomic_load(&scene->stream_closed))
        usleep(1000);
    hang_up(tls);
}

Test(http_server_loop, hears_the_good_bye_of_tls_on_a_silent_stream)
{
    play(say_good_bye);
}

/* ---- versions of TLS */

static int try_version(struct scene *scene, int version)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(http_server_port(scene->server))};
    SCOPED_CLOSE int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert_eq(connect(descriptor, (struct sockaddr *)&address, sizeof address), 0);
    SSL *tls = SSL_new(scene->tls);
    SSL_set_min_proto_version(tls, version);
    SSL_set_max_proto_version(tls, version);
    SSL_set_cipher_list(tls, "DEFAULT:@SECLEVEL=0"); /* else OpenSSL itself takes no old version */
    SSL_set_fd(tls, descriptor);
    int result = SSL_connect(tls);
    SSL_free(tls);
    return result;
}

static void try_versions(struct scene *scene)
{
    cr_expect_neq(try_version(scene, TLS1_VERSION), 1);
    cr_expect_neq(try_version(scene, TLS1_1_VERSION), 1);
    cr_expect_eq(try_version(scene, TLS1_2_VERSION), 1);
    cr_expect_eq(try_version(scene, TLS1_3_VERSION), 1);
}

Test(http_server_loop, takes_no_tls_before_1_2)
{
    play(try_versions);
}
