/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/http_exchange.h"
#include "common/memory.h"

#define DEFAULT_MAX_BODY (3 * 1024 * 1024)
#define DEFAULT_MAX_CONNECTIONS 1024
#define IDLE_TIMEOUT_SECONDS 120
#define FIRST_REQUEST_SECONDS 10 /* without a byte, until the first request is complete */
/* Connections beyond the maximum that libmicrohttpd may hold until those shut down for them are closed. */
#define CLOSING_ROOM 64

/* ---- connections ---- */

static void list_add(struct http_connection_list *list, struct http_connection *connection)
{
    connection->list = list;
    connection->next = NULL;
    connection->previous = list->last;
    if (list->last)
        list->last->next = connection;
    else
        list->first = connection;
    list->last = connection;
}

static void list_remove(struct http_connection *connection)
{
    struct http_connection_list *list = connection->list;
    if (list == NULL)
        return;
    *(connection->next ? &connection->next->previous : &list->last) = connection->previous;
    *(connection->previous ? &connection->previous->next : &list->first) = connection->next;
    connection->list = NULL;
}

/* Returns the connection that has sent no request for longest, else the one that is idle for longest, and `newcomer` only if each other
 * one is answered just now. */
static struct http_connection *dispensable(const struct http_server *server, struct http_connection *newcomer)
{
    struct http_connection *stranger = server->strangers.first;
    if (stranger != newcomer)
        return stranger;
    return server->idle.first ? server->idle.first : newcomer;
}

static void make_room(struct http_server *server, struct http_connection *newcomer)
{
    struct http_connection *oldest = dispensable(server, newcomer);
    list_remove(oldest);
    oldest->closing = true;
    server->closing++;
    shutdown(oldest->socket, SHUT_RDWR);
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **state,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = context;
    struct http_connection *connection = *state;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *state = connection = memory_allocate(1, sizeof *connection);
        connection->socket = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        list_add(&server->strangers, connection);
        server->connections++;
        if (server->connections - server->closing > server->max_connections)
            make_room(server, connection);
        return;
    }
    list_remove(connection);
    server->connections--;
    server->closing -= connection->closing;
    *state = NULL;
    free(connection);
}

static struct http_connection *connection_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* ---- one exchange ---- */

static struct http_exchange *exchange_new(struct http_server *server, struct MHD_Connection *connection,
                                          const char *method, const char *path)
{
    struct http_exchange *exchange = memory_allocate(1, sizeof *exchange);
    exchange->server = server;
    exchange->connection = connection;
    exchange->method = memory_copy_string(method);
    exchange->path = memory_copy_string(path);
    buffer_init(&exchange->body, server->max_body);
    exchange->next = server->exchanges;
    if (exchange->next)
        exchange->next->previous = exchange;
    server->exchanges = exchange;
    return exchange;
}

static void exchange_unlink(struct http_exchange *exchange)
{
    if (exchange->next)
        exchange->next->previous = exchange->previous;
    if (exchange->previous)
        exchange->previous->next = exchange->next;
    else
        exchange->server->exchanges = exchange->next;
}

static void exchange_free(struct http_exchange *exchange)
{
    exchange_unlink(exchange);
    while (exchange->headers) {
        struct http_header *header = exchange->headers;
        exchange->headers = header->next;
        free(header->name);
        free(header->value);
        free(header);
    }
    if (exchange->response)
        MHD_destroy_response(exchange->response);
    buffer_release(&exchange->body);
    free(exchange->method);
    free(exchange->path);
    free(exchange);
}

void http_exchange_suspend(struct http_exchange *exchange)
{
    if (exchange->suspended)
        return;
    exchange->suspended = true;
    MHD_suspend_connection(exchange->connection);
}

void http_exchange_resume(struct http_exchange *exchange)
{
    if (!exchange->suspended)
        return;
    exchange->suspended = false;
    MHD_resume_connection(exchange->connection);
    if (exchange->server->wake)
        exchange->server->wake(exchange->server);
}

static enum MHD_Result queue_response(struct http_exchange *exchange)
{
    for (struct http_header *header = exchange->headers; header; header = header->next)
        MHD_add_response_header(exchange->response, header->name, header->value);
    enum MHD_Result queued = MHD_queue_response(exchange->connection, (unsigned)exchange->status, exchange->response);
    MHD_destroy_response(exchange->response);
    exchange->response = NULL;
    exchange->answered = true;
    return queued;
}

void http_exchange_finish(struct http_exchange *exchange, int status, struct MHD_Response *response)
{
    exchange->status = status;
    exchange->response = response;
    exchange->closed = NULL;
    http_exchange_resume(exchange);
}

/* ---- the handler's view ---- */

const char *http_exchange_method(const struct http_exchange *exchange)
{
    return exchange->method;
}

const char *http_exchange_path(const struct http_exchange *exchange)
{
    return exchange->path;
}

const char *http_exchange_query(const struct http_exchange *exchange, const char *name)
{
    const char *value = NULL;
    if (MHD_lookup_connection_value_n(exchange->connection, MHD_GET_ARGUMENT_KIND, name, strlen(name), &value, NULL) !=
        MHD_YES)
        return NULL;
    return value ? value : "";
}

const char *http_exchange_header(const struct http_exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

const char *http_exchange_body(const struct http_exchange *exchange, size_t *ret_length)
{
    if (ret_length)
        *ret_length = exchange->body.length;
    return buffer_text(&exchange->body);
}

void http_exchange_set_header(struct http_exchange *exchange, const char *name, const char *value)
{
    struct http_header *header = memory_allocate(1, sizeof *header);
    header->name = memory_copy_string(name);
    header->value = memory_copy_string(value);
    header->next = exchange->headers;
    exchange->headers = header;
}

void http_exchange_respond(struct http_exchange *exchange, int status, const char *content_type, const void *body,
                           size_t length)
{
    /* libmicrohttpd copies the bytes and does not change them; its parameter lacks the const. */
    union {
        const void *given;
        void *wanted;
    } bytes = {.given = length ? body : ""};
    struct MHD_Response *response = MHD_create_response_from_buffer(length, bytes.wanted, MHD_RESPMEM_MUST_COPY);
    if (content_type)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    http_exchange_finish(exchange, status, response);
}

void http_exchange_defer(struct http_exchange *exchange, http_closed *closed, void *context)
{
    exchange->closed = closed;
    exchange->closed_context = context;
    http_exchange_suspend(exchange);
}

/* ---- libmicrohttpd's callbacks ---- */

static void respond_text(struct http_exchange *exchange, int status, const char *text)
{
    http_exchange_respond(exchange, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* A request with a Content-Length that is too large is refused before its body is sent. */
static bool declared_too_large(const struct http_exchange *exchange)
{
    const char *declared = http_exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return declared && strtoull(declared, NULL, 10) > exchange->server->max_body;
}

static enum MHD_Result refuse_too_large(struct http_exchange *exchange)
{
    exchange->handled = true;
    respond_text(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "the request's body is larger than this server accepts\n");
    return queue_response(exchange);
}

static enum MHD_Result on_access(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                                 const char *version, const char *upload, size_t *upload_length, void **state)
{
    struct http_server *server = context;
    struct http_exchange *exchange = *state;
    (void)version;
    if (exchange == NULL) {
        *state = exchange = exchange_new(server, connection, method, path);
        return declared_too_large(exchange) ? refuse_too_large(exchange) : MHD_YES;
    }
    if (*upload_length > 0) {
        if (buffer_append(&exchange->body, upload, *upload_length, NULL) < 0)
            exchange->too_large = true;
        *upload_length = 0;
        return MHD_YES;
    }
    if (exchange->answered)
        return MHD_YES;
    if (exchange->too_large)
        return refuse_too_large(exchange);
    if (!exchange->handled) {
        exchange->handled = true;
        list_remove(connection_of(connection));
        MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, server->idle_seconds);
        server->handler(server->context, exchange);
    }
    if (exchange->response)
        return queue_response(exchange);
    return server->stopping ? MHD_NO : MHD_YES;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    struct http_exchange *exchange = *state;
    struct http_server *server = context;
    struct http_connection *served = connection_of(connection);
    if (exchange == NULL)
        return;
    *state = NULL;
    if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK && served->list == NULL && !served->closing)
        list_add(&server->idle, served);
    if (exchange->stream)
        exchange->stream_ended(exchange->stream);
    if (exchange->closed)
        exchange->closed(exchange->closed_context);
    exchange_free(exchange);
}

/* ---- the server ---- */

static int parse_address(const struct http_server_options *options, struct sockaddr_storage *address,
                         struct error *error)
{
    struct sockaddr_in *four = (struct sockaddr_in *)address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;
    *address = (struct sockaddr_storage){0};
    if (inet_pton(AF_INET, options->address, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(options->port);
        return 0;
    }
    if (inet_pton(AF_INET6, options->address, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(options->port);
        return 0;
    }
    return error_set(error, ERROR_INVALID, "\"%s\" is not an IPv4 or IPv6 address", options->address);
}

#define OPTIONS_MAX 8

static unsigned daemon_flags(const struct http_server_options *options, const struct sockaddr_storage *address)
{
    unsigned flags = MHD_NO_FLAG;
    if (options->tls_cert_pem)
        flags |= MHD_USE_TLS;
    if (address->ss_family == AF_INET6)
        flags |= MHD_USE_IPv6 | MHD_USE_DUAL_STACK;
    return flags;
}

static size_t tls_options(const struct http_server_options *options, struct MHD_OptionItem *items)
{
    if (options->tls_cert_pem == NULL)
        return 0;
    union {
        const char *given;
        void *wanted;
    } key = {.given = options->tls_key_pem}, cert = {.given = options->tls_cert_pem};
    static char priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
    items[0] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, key.wanted};
    items[1] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, cert.wanted};
    items[2] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, priorities};
    return 3;
}

/* Leaves descriptors for the rest of the program, because without one no connection can be accepted. */
static unsigned connection_limit(unsigned wanted)
{
    struct rlimit descriptors;
    if (getrlimit(RLIMIT_NOFILE, &descriptors) < 0 || descriptors.rlim_cur == RLIM_INFINITY)
        return wanted;
    rlim_t most = descriptors.rlim_cur / 4 * 3 - (descriptors.rlim_cur > 4 * CLOSING_ROOM ? CLOSING_ROOM : 0);
    return wanted < most ? wanted : (unsigned)most;
}

int http_server_open(const struct http_server_options *options, unsigned flags, struct http_server **ret_server,
                     struct error *error)
{
    struct sockaddr_storage address;
    if (parse_address(options, &address, error) < 0)
        return -1;
    struct http_server *server = memory_allocate(1, sizeof *server);
    *server = (struct http_server){
        .max_body = options->max_body ? options->max_body : DEFAULT_MAX_BODY,
        .handler = options->handler,
        .context = options->context,
        .stop = -1,
        .max_connections =
            connection_limit(options->max_connections ? options->max_connections : DEFAULT_MAX_CONNECTIONS),
        .idle_seconds = options->idle_seconds ? options->idle_seconds : IDLE_TIMEOUT_SECONDS,
    };
    unsigned first_seconds =
        server->idle_seconds < FIRST_REQUEST_SECONDS ? server->idle_seconds : FIRST_REQUEST_SECONDS;
    struct MHD_OptionItem items[OPTIONS_MAX];
    size_t count = tls_options(options, items);
    items[count++] = (struct MHD_OptionItem){MHD_OPTION_SOCK_ADDR, 0, &address};
    items[count++] = (struct MHD_OptionItem){MHD_OPTION_CONNECTION_TIMEOUT, first_seconds, NULL};
    if (!options->exclusive)
        items[count++] = (struct MHD_OptionItem){MHD_OPTION_LISTENING_ADDRESS_REUSE, 1, NULL};
    items[count++] = (struct MHD_OptionItem){MHD_OPTION_CONNECTION_LIMIT, server->max_connections + CLOSING_ROOM, NULL};
    items[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    errno = 0;
    server->daemon =
        MHD_start_daemon(flags | daemon_flags(options, &address), options->port, NULL, NULL, on_access, server,
                         MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
                         server, MHD_OPTION_ARRAY, items, MHD_OPTION_END);
    if (server->daemon == NULL) {
        free(server);
        return error_set_errno(error, "cannot serve HTTP on %s port %u", options->address, options->port);
    }
    server->descriptor = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    *ret_server = server;
    return 0;
}

/* A thread of ours and not libmicrohttpd's: that one may be in the middle of a request when its daemon is stopped, and then (0.9.75) builds
 * the answer to a malformed request from a null pointer. */
static void *serve(void *context)
{
    struct http_server *server = context;
    struct pollfd ready[] = {{.fd = server->descriptor, .events = POLLIN}, {.fd = server->stop, .events = POLLIN}};
    MHD_UNSIGNED_LONG_LONG delay_ms = 0;
    while (ready[1].revents == 0) {
        bool limited = MHD_get_timeout(server->daemon, &delay_ms) == MHD_YES;
        poll(ready, 2, limited && delay_ms < INT_MAX ? (int)delay_ms : -1);
        MHD_run(server->daemon);
    }
    return NULL;
}

int http_server_start(const struct http_server_options *options, struct http_server **ret_server, struct error *error)
{
    struct http_server *server;
    if (http_server_open(options, MHD_USE_EPOLL, &server, error) < 0)
        return -1;
    server->stop = eventfd(0, EFD_CLOEXEC);
    if (server->stop >= 0)
        errno = pthread_create(&server->thread, NULL, serve, server);
    if (server->stop < 0 || errno != 0) {
        error_set_errno(error, "cannot start the thread of the HTTP server on port %u", options->port);
        if (server->stop >= 0)
            close(server->stop);
        server->stop = -1; /* there is no thread to end */
        http_server_free(server);
        return -1;
    }
    *ret_server = server;
    return 0;
}

static void end_thread(struct http_server *server)
{
    eventfd_write(server->stop, 1);
    pthread_join(server->thread, NULL);
    close(server->stop);
}

uint16_t http_server_port(const struct http_server *server)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}

void http_server_free(struct http_server *server)
{
    if (server == NULL)
        return;
    if (server->stop >= 0)
        end_thread(server);
    server->stopping = true;
    if (server->detach) {
        for (struct http_exchange *exchange = server->exchanges; exchange; exchange = exchange->next)
            http_exchange_resume(exchange);
        MHD_run(server->daemon);
        server->detach(server);
    }
    MHD_stop_daemon(server->daemon);
    free(server);
}
