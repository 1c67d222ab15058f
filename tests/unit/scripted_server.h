/* SPDX-License-Identifier: Apache-2.0
 *
 * A server for tests that says exactly what the test tells it to, byte for byte, also
 * what no good server would say: cut bodies, silence, wrong certificates. Each
 * connection has a thread, in which the test's handler is called once a
 * request. It lives until scripted_server_stop, or until the test's process ends.
 */
#ifndef COXSWAIN_TESTS_SCRIPTED_SERVER_H
#define COXSWAIN_TESTS_SCRIPTED_SERVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct scripted_server;

struct scripted_request {
    struct scripted_server *server;
    int number;      /* of all requests, from 0 */
    char line[2048]; /* "GET /path" */
    char head[8192]; /* request line and headers */
    char body[65536];
    int descriptor;
    SSL *tls;   /* NULL: plain */
    bool close; /* set by the handler: end the connection */
};

typedef void scripted_handler(struct scripted_request *request);

#define SCRIPTED_LOG 512
#define SCRIPTED_THREADS 256
struct scripted_server {
    scripted_handler *handler;
    SSL_CTX *tls;
    int listener;
    int port;
    pthread_t acceptor, threads[SCRIPTED_THREADS]; /* one a connection; those beyond are detached */
    pthread_mutex_t lock;
    int requests;
    int connections;
    char log[SCRIPTED_LOG][512]; /* "GET /path", in their order */
};

static inline ssize_t scripted_read(struct scripted_request *request, void *bytes, size_t size)
{
    return request->tls ? SSL_read(request->tls, bytes, (int)size) : read(request->descriptor, bytes, size);
}

static inline void scripted_send(struct scripted_request *request, const char *text)
{
    size_t length = strlen(text);
    if (request->tls)
        (void)!SSL_write(request->tls, text, (int)length);
    else
        (void)!send(request->descriptor, text, length, MSG_NOSIGNAL);
}

static inline void scripted_reply_with(struct scripted_request *request, int status, const char *headers,
                                       const char *body)
{
    char head[1024];
    snprintf(head, sizeof head, "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n",
             status, strlen(body), headers);
    scripted_send(request, head);
    scripted_send(request, body);
}

static inline void scripted_reply(struct scripted_request *request, int status, const char *body)
{
    scripted_reply_with(request, status, "", body);
}

/* A handler that answers every request so. */
#define SCRIPTED_REPLY(name, status, body)                                                                             \
    static void name(struct scripted_request *request)                                                                 \
    {                                                                                                                  \
        scripted_reply(request, status, body);                                                                         \
    }

/* A body without stated length: what scripted_chunk sends, until scripted_end. */
static inline void scripted_stream(struct scripted_request *request)
{
    scripted_send(request, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
}

static inline void scripted_chunk(struct scripted_request *request, const char *text)
{
    char size[24];
    snprintf(size, sizeof size, "%zx\r\n", strlen(text));
    scripted_send(request, size);
    scripted_send(request, text);
    scripted_send(request, "\r\n");
}

static inline void scripted_end(struct scripted_request *request)
{
    scripted_send(request, "0\r\n\r\n");
}

/* Says nothing until the other side hangs up. */
static inline void scripted_hold(struct scripted_request *request)
{
    char byte;
    while (scripted_read(request, &byte, 1) > 0)
        ;
    request->close = true;
}

static inline bool scripted_receive(struct scripted_request *request)
{
    size_t used = 0;
    while (used + 1 < sizeof request->head && (used < 4 || memcmp(request->head + used - 4, "\r\n\r\n", 4) != 0)) {
        if (scripted_read(request, request->head + used, 1) != 1)
            return false;
        request->head[++used] = '\0';
    }
    const char *length_header = strcasestr(request->head, "\r\ncontent-length:");
    size_t length = length_header ? strtoul(length_header + 17, NULL, 10) : 0, got = 0;
    char rest[65536]; /* of a body that is longer than anybody looks at */
    while (got < length) {
        bool fits = got + 1 < sizeof request->body;
        size_t room = fits ? sizeof request->body - 1 - got : sizeof rest, left = length - got;
        ssize_t taken = scripted_read(request, fits ? request->body + got : rest, left < room ? left : room);
        if (taken <= 0)
            return false;
        got += (size_t)taken;
    }
    request->body[got < sizeof request->body ? got : sizeof request->body - 1] = '\0';
    size_t first_space = strcspn(request->head, " ") + 1;
    size_t end = first_space + strcspn(request->head + first_space, " ");
    snprintf(request->line, sizeof request->line, "%.*s", (int)end, request->head);
    return true;
}

struct scripted_connection {
    struct scripted_server *server;
    int descriptor;
};

static inline void *scripted_serve(void *argument)
{
    struct scripted_connection connection = *(struct scripted_connection *)argument;
    struct scripted_server *server = connection.server;
    struct scripted_request *request = calloc(1, sizeof *request);
    free(argument);
    request->server = server;
    request->descriptor = connection.descriptor;
    if (server->tls) {
        request->tls = SSL_new(server->tls);
        SSL_set_fd(request->tls, connection.descriptor);
        request->close = SSL_accept(request->tls) != 1;
    }
    while (!request->close && scripted_receive(request)) {
        pthread_mutex_lock(&server->lock);
        request->number = server->requests++;
        if (request->number < SCRIPTED_LOG)
            snprintf(server->log[request->number], sizeof server->log[0], "%.511s", request->line);
        pthread_mutex_unlock(&server->lock);
        server->handler(request);
    }
    if (request->tls)
        SSL_free(request->tls);
    close(connection.descriptor);
    free(request);
    return NULL;
}

static inline void *scripted_accept(void *argument)
{
    struct scripted_server *server = argument;
    for (int one = 1;;) {
        int descriptor = accept(server->listener, NULL, NULL);
        if (descriptor < 0)
            return NULL;
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct scripted_connection *connection = malloc(sizeof *connection);
        *connection = (struct scripted_connection){server, descriptor};
        int number = __atomic_fetch_add(&server->connections, 1, __ATOMIC_SEQ_CST);
        pthread_t thread;
        pthread_create(&thread, NULL, scripted_serve, connection);
        if (number < SCRIPTED_THREADS)
            server->threads[number] = thread;
        else
            pthread_detach(thread);
    }
}

/* `tls` NULL: plain HTTP. */
static inline void scripted_server_start(struct scripted_server *server, scripted_handler *handler, SSL_CTX *tls)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    *server = (struct scripted_server){.handler = handler, .tls = tls};
    pthread_mutex_init(&server->lock, NULL);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(server->listener, (struct sockaddr *)&address, size) < 0 || listen(server->listener, 64) < 0)
        abort();
    getsockname(server->listener, (struct sockaddr *)&address, &size);
    server->port = ntohs(address.sin_port);
    pthread_create(&server->acceptor, NULL, scripted_accept, server);
}

/* Waits for all connections to end: the clients must have hung up. */
static inline void scripted_server_stop(struct scripted_server *server)
{
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->acceptor, NULL);
    close(server->listener);
    for (int i = 0; i < server->connections && i < SCRIPTED_THREADS; i++)
        pthread_join(server->threads[i], NULL);
    SSL_CTX_free(server->tls);
}

/* How many requests so far began with `prefix` ("GET /api/v1/pods"). */
static inline int scripted_count(struct scripted_server *server, const char *prefix)
{
    int count = 0;
    pthread_mutex_lock(&server->lock);
    for (int i = 0; i < server->requests && i < SCRIPTED_LOG; i++)
        count += strncmp(server->log[i], prefix, strlen(prefix)) == 0;
    pthread_mutex_unlock(&server->lock);
    return count;
}

#endif
