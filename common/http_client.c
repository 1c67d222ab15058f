/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "common/event_loop_transfer.h"
#include "common/memory.h"

#define DEFAULT_CONNECTIONS 16
#define DEFAULT_MAX_BODY (16 * 1024 * 1024)
/* The most bytes of a streamed body that one turn of libcurl may leave undelivered; far more than a turn reads. */
#define STREAM_INBOX_MAX (64 * 1024 * 1024)
#define CONNECT_TIMEOUT_MS 10000
#define KEEP_ALIVE_SECONDS 15
#define REDIRECTS_MAX 5
#define RETRY_AFTER_MAX_S ((curl_off_t)24 * 60 * 60) /* a server's larger number is cut to it */
#define IDLE_HANDLES_MAX 4

struct http_client {
    struct event_loop *loop;
    char *ca_pem, *client_cert_pem, *client_key_pem;
    char *tls_server_name;
    char *proxy; /* NULL: as the environment has it */
    char *user_agent;
    bool insecure;
    bool http2;
    unsigned max_connections;
    CURLSH *share; /* TLS sessions, so that a new connection resumes */
    CURL *idle[IDLE_HANDLES_MAX];
    unsigned idle_count;
    struct http_transfer *first, *last; /* all, in the order of their start */
    struct http_transfer *waiting;      /* the first that has no connection yet; all after it wait too */
    unsigned running;
};

struct http_transfer {
    struct event_transfer base;
    struct http_client *client;
    struct http_transfer *previous, *next;
    bool is_running;

    struct curl_slist *headers;
    struct curl_slist *connect_to;
    char *body;
    char curl_message[CURL_ERROR_SIZE];

    struct buffer inbox;  /* the collected body, or what of a stream is not delivered yet */
    struct error failure; /* kind NONE: none so far */
    bool refused;         /* the connection */
    struct event_timer *timer;
    int64_t idle_timeout_ns;
    int64_t last_byte_ns;
    int64_t received, total;
    bool progressed;
    bool *gone; /* set when it is freed during a callback of its own */

    http_data *on_data;
    http_progress *on_progress;
    http_done *done;
    void *context;
};

/* ---------------------------------------------------------------- client */

/* Returns the proxy's address for libcurl; a SOCKS proxy resolves host names itself. Free with free(). */
static char *proxy_address(const char *proxy)
{
    static const char socks[] = "socks5://";
    if (proxy && strncmp(proxy, socks, strlen(socks)) == 0)
        return memory_format("socks5h://%s", proxy + strlen(socks));
    return memory_copy_string(proxy);
}

int http_client_new(struct event_loop *loop, const struct http_client_options *options, struct http_client **ret_client,
                    struct error *error)
{
    if ((options->client_cert_pem == NULL) != (options->client_key_pem == NULL))
        return error_set(error, ERROR_INVALID, "a client certificate needs its key, and a key its certificate");
    CURLSH *share = curl_share_init();
    if (share == NULL)
        return error_set(error, ERROR_SYSTEM, "libcurl cannot share TLS sessions");
    curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    struct http_client *client = memory_allocate(1, sizeof *client);
    *client = (struct http_client){
        .loop = loop,
        .ca_pem = memory_copy_string(options->ca_pem),
        .client_cert_pem = memory_copy_string(options->client_cert_pem),
        .client_key_pem = memory_copy_string(options->client_key_pem),
        .tls_server_name = memory_copy_string(options->tls_server_name),
        .proxy = proxy_address(options->proxy),
        .user_agent = memory_copy_string(options->user_agent),
        .insecure = options->insecure_skip_tls_verify,
        .http2 = options->http2,
        .max_connections = options->max_connections > 0 ? (unsigned)options->max_connections : DEFAULT_CONNECTIONS,
        .share = share,
    };
    *ret_client = client;
    return 0;
}

void http_client_set_trust(struct http_client *client, const char *ca_pem)
{
    free(client->ca_pem);
    client->ca_pem = memory_copy_string(ca_pem);
}

void http_client_set_identity(struct http_client *client, const char *client_cert_pem, const char *client_key_pem)
{
    free(client->client_cert_pem);
    free(client->client_key_pem);
    client->client_cert_pem = memory_copy_string(client_cert_pem);
    client->client_key_pem = memory_copy_string(client_key_pem);
}

void http_client_free(struct http_client *client)
{
    if (client == NULL)
        return;
    while (client->last)
        http_transfer_cancel(client->last);
    for (unsigned i = 0; i < client->idle_count; i++)
        curl_easy_cleanup(client->idle[i]);
    curl_share_cleanup(client->share);
    free(client->ca_pem);
    free(client->client_cert_pem);
    free(client->client_key_pem);
    free(client->tls_server_name);
    free(client->proxy);
    free(client->user_agent);
    free(client);
}

static CURL *easy_take(struct http_client *client)
{
    return client->idle_count > 0 ? client->idle[--client->idle_count] : curl_easy_init();
}

static void easy_give_back(struct http_client *client, CURL *easy)
{
    if (easy == NULL)
        return;
    if (client->idle_count == IDLE_HANDLES_MAX) {
        curl_easy_cleanup(easy);
        return;
    }
    curl_easy_reset(easy);
    client->idle[client->idle_count++] = easy;
}

/* ---------------------------------------------------------------- life of a transfer */

static void transfer_link(struct http_transfer *transfer)
{
    struct http_client *client = transfer->client;
    transfer->previous = client->last;
    if (client->last)
        client->last->next = transfer;
    else
        client->first = transfer;
    client->last = transfer;
    if (client->waiting == NULL)
        client->waiting = transfer;
}

static void transfer_unlink(struct http_transfer *transfer)
{
    struct http_client *client = transfer->client;
    if (client->waiting == transfer)
        client->waiting = transfer->next;
    if (transfer->previous)
        transfer->previous->next = transfer->next;
    else
        client->first = transfer->next;
    if (transfer->next)
        transfer->next->previous = transfer->previous;
    else
        client->last = transfer->previous;
}

static void waiting_start(struct http_client *client);

/* Off the loop and off the client's lists: nothing will call it any more. */
static void transfer_detach(struct http_transfer *transfer)
{
    struct http_client *client = transfer->client;
    transfer_unlink(transfer);
    event_timer_cancel(transfer->timer);
    transfer->timer = NULL;
    if (transfer->is_running) {
        event_loop_remove_transfer(client->loop, &transfer->base);
        client->running--;
    }
    easy_give_back(client, transfer->base.easy);
    transfer->base.easy = NULL;
}

static void transfer_free(struct http_transfer *transfer)
{
    curl_slist_free_all(transfer->headers);
    curl_slist_free_all(transfer->connect_to);
    free(transfer->body);
    buffer_release(&transfer->inbox);
    if (transfer->gone)
        *transfer->gone = true;
    free(transfer);
}

/* `done` comes last of all, since it may free the client. */
static void transfer_end(struct http_transfer *transfer, const struct http_response *response)
{
    struct http_client *client = transfer->client;
    transfer_detach(transfer);
    waiting_start(client);
    transfer->done(transfer->context, response);
    transfer_free(transfer);
}

static void transfer_fail(struct http_transfer *transfer)
{
    struct error failure = transfer->failure;
    transfer_end(transfer, &(struct http_response){
                               .retry_after_ms = -1, .body = "", .error = &failure, .refused = transfer->refused});
}

void http_transfer_cancel(struct http_transfer *transfer)
{
    error_set(&transfer->failure, ERROR_CANCELLED, "the request was cancelled");
    transfer_fail(transfer);
}

static void base_cancel(struct event_transfer *base)
{
    http_transfer_cancel((struct http_transfer *)base);
}

/* ---------------------------------------------------------------- answers */

static const struct {
    CURLcode code;
    enum error_kind kind;
} failure_kinds[] = {
    {CURLE_OPERATION_TIMEDOUT, ERROR_TIMEOUT},   {CURLE_PEER_FAILED_VERIFICATION, ERROR_FORBIDDEN},
    {CURLE_SSL_ISSUER_ERROR, ERROR_FORBIDDEN},   {CURLE_SSL_CERTPROBLEM, ERROR_INVALID},
    {CURLE_SSL_CACERT_BADFILE, ERROR_INVALID},   {CURLE_URL_MALFORMAT, ERROR_INVALID},
    {CURLE_UNSUPPORTED_PROTOCOL, ERROR_INVALID}, {CURLE_TOO_MANY_REDIRECTS, ERROR_INVALID},
    {CURLE_RANGE_ERROR, ERROR_CONFLICT},
};

static enum error_kind failure_kind(CURLcode code)
{
    for (size_t i = 0; i < sizeof failure_kinds / sizeof failure_kinds[0]; i++) {
        if (failure_kinds[i].code == code)
            return failure_kinds[i].kind;
    }
    return ERROR_UNAVAILABLE;
}

static void failure_from_curl(struct http_transfer *transfer, CURLcode code)
{
    if (transfer->failure.kind != ERROR_NONE)
        return; /* found by us before libcurl was told to stop */
    const char *url = "";
    curl_easy_getinfo(transfer->base.easy, CURLINFO_EFFECTIVE_URL, &url);
    const char *words = transfer->curl_message[0] ? transfer->curl_message : curl_easy_strerror(code);
    error_set(&transfer->failure, failure_kind(code), "%.*s: %s", (int)strcspn(url, "?"), url, words);
    long os_error = 0;
    curl_easy_getinfo(transfer->base.easy, CURLINFO_OS_ERRNO, &os_error);
    transfer->refused = code == CURLE_COULDNT_CONNECT && os_error == ECONNREFUSED;
}

static int64_t retry_after_ms(CURL *easy)
{
    curl_off_t seconds = 0;
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
    return seconds > 0 ? (int64_t)(seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S) * 1000 : -1;
}

static int transfer_status(const struct http_transfer *transfer)
{
    long status = 0;
    curl_easy_getinfo(transfer->base.easy, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

static bool status_is_success(int status)
{
    return status >= 200 && status < 300;
}

/* Hands streamed bytes over; false when the transfer is dead afterwards. */
static bool stream_deliver(struct http_transfer *transfer)
{
    if (transfer->on_data == NULL || transfer->inbox.length == 0 || !status_is_success(transfer_status(transfer)))
        return true;
    struct buffer bytes = transfer->inbox;
    buffer_init(&transfer->inbox, bytes.ceiling);
    struct error failure = ERROR_INIT;
    bool gone = false;
    transfer->gone = &gone;
    int taken = transfer->on_data(transfer->context, bytes.data, bytes.length, &failure);
    buffer_release(&bytes);
    if (gone)
        return false;
    transfer->gone = NULL;
    if (taken == 0)
        return true;
    transfer->failure = failure;
    transfer_fail(transfer);
    return false;
}

static bool progress_deliver(struct http_transfer *transfer)
{
    if (!transfer->progressed || transfer->on_progress == NULL)
        return true;
    bool gone = false;
    transfer->progressed = false;
    transfer->gone = &gone;
    transfer->on_progress(transfer->context, transfer->received, transfer->total);
    if (gone)
        return false;
    transfer->gone = NULL;
    return true;
}

static void base_deliver(struct event_transfer *base)
{
    struct http_transfer *transfer = (struct http_transfer *)base;
    if (stream_deliver(transfer))
        progress_deliver(transfer);
}

static void base_finish(struct event_transfer *base, CURLcode code)
{
    struct http_transfer *transfer = (struct http_transfer *)base;
    if (!stream_deliver(transfer) || !progress_deliver(transfer))
        return;
    if (code != CURLE_OK) {
        failure_from_curl(transfer, code);
        transfer_fail(transfer);
        return;
    }
    char *content_type = NULL;
    curl_easy_getinfo(base->easy, CURLINFO_CONTENT_TYPE, &content_type);
    SCOPED_FREE char *content_type_copy = memory_copy_string(content_type);
    transfer_end(transfer, &(struct http_response){
                               .status = transfer_status(transfer),
                               .retry_after_ms = retry_after_ms(base->easy),
                               .content_type = content_type_copy ? content_type_copy : "",
                               .body = buffer_text(&transfer->inbox),
                               .body_length = transfer->inbox.length,
                           });
}

/* ---------------------------------------------------------------- libcurl's callbacks: they only take notes */

static size_t on_write(char *bytes, size_t size, size_t count, void *context)
{
    struct http_transfer *transfer = context;
    transfer->last_byte_ns = clock_monotonic_ns();
    if (buffer_append(&transfer->inbox, bytes, size * count, &transfer->failure) < 0) {
        error_wrap(&transfer->failure, "the answer is longer than %zu bytes", transfer->inbox.ceiling);
        return 0;
    }
    if (transfer->on_data)
        event_loop_note_transfer(transfer->client->loop, &transfer->base);
    return size * count;
}

static int on_transfer_info(void *context, curl_off_t total, curl_off_t received, curl_off_t send_total,
                            curl_off_t sent)
{
    (void)send_total, (void)sent;
    struct http_transfer *transfer = context;
    if (received == transfer->received && total == transfer->total)
        return 0;
    transfer->received = received;
    transfer->total = total;
    transfer->progressed = true;
    event_loop_note_transfer(transfer->client->loop, &transfer->base);
    return 0;
}

/* ---------------------------------------------------------------- timers of a transfer */

static void on_idle_due(void *context)
{
    struct http_transfer *transfer = context;
    transfer->timer = NULL;
    int64_t left_ns = transfer->last_byte_ns + transfer->idle_timeout_ns - clock_monotonic_ns();
    if (left_ns > 0) {
        transfer->timer = event_timer_start(transfer->client->loop, left_ns / 1000000 + 1, on_idle_due, transfer);
        return;
    }
    error_set(&transfer->failure, ERROR_TIMEOUT, "the server sent nothing for %lld ms",
              (long long)(transfer->idle_timeout_ns / 1000000));
    transfer_fail(transfer);
}

static void on_fail_due(void *context)
{
    struct http_transfer *transfer = context;
    transfer->timer = NULL;
    transfer_fail(transfer);
}

/* For failures found before anything is under way: `done` must not be called from within http_client_start. */
static void transfer_fail_later(struct http_transfer *transfer)
{
    event_timer_cancel(transfer->timer);
    transfer->timer = event_timer_start(transfer->client->loop, 0, on_fail_due, transfer);
}

static void transfer_begin(struct http_transfer *transfer)
{
    struct http_client *client = transfer->client;
    CURLMcode code = event_loop_add_transfer(client->loop, &transfer->base);
    if (code != CURLM_OK) {
        error_set(&transfer->failure, ERROR_INTERNAL, "libcurl: %s", curl_multi_strerror(code));
        transfer_fail_later(transfer);
        return;
    }
    transfer->is_running = true;
    client->running++;
    transfer->last_byte_ns = clock_monotonic_ns();
    if (transfer->idle_timeout_ns > 0)
        transfer->timer = event_timer_start(client->loop, transfer->idle_timeout_ns / 1000000, on_idle_due, transfer);
}

static void waiting_start(struct http_client *client)
{
    while (client->waiting && (client->http2 || client->running < client->max_connections)) {
        struct http_transfer *transfer = client->waiting;
        client->waiting = transfer->next;
        if (transfer->failure.kind == ERROR_NONE)
            transfer_begin(transfer);
    }
}

/* ---------------------------------------------------------------- what libcurl is told */

static bool host_is_loopback(const char *host)
{
    struct in_addr v4;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    /* libcurl resolves "localhost" to loopback by itself, without a lookup. */
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0;
}

static char *url_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    curl_url_get(url, part, &text, part == CURLUPART_PORT ? CURLU_DEFAULT_PORT : 0);
    return text;
}

static void curl_text_free(char **text)
{
    curl_free(*text);
}

static void curl_url_free(CURLU **url)
{
    curl_url_cleanup(*url);
}

static void header_add(struct http_transfer *transfer, const char *format, const char *value)
{
    SCOPED_FREE char *line = memory_format("%s%s", format, value);
    transfer->headers = curl_slist_append(transfer->headers, line);
}

static int set_token(struct http_transfer *transfer, const char *token, bool is_https, bool is_loopback)
{
    if (token == NULL)
        return 0;
    if (!is_https && !is_loopback)
        return error_set(&transfer->failure, ERROR_FORBIDDEN,
                         "a bearer token is not sent over plain HTTP; use an https:// address");
    /* libcurl drops this header when a redirect leads to another host, port or scheme. */
    header_add(transfer, "Authorization: Bearer ", token);
    return 0;
}

/* The name that is verified is the one in the URL; the connection goes where the URL pointed before. */
static void set_server_name(struct http_transfer *transfer, CURLU *url, const char *host, const char *port)
{
    const char *name = transfer->client->tls_server_name;
    SCOPED_FREE char *target = memory_format("::%s:%s", host, port);
    SCOPED_FREE char *host_header = memory_format("%s:%s", host, port);
    curl_url_set(url, CURLUPART_HOST, name, 0);
    transfer->connect_to = curl_slist_append(NULL, target);
    curl_easy_setopt(transfer->base.easy, CURLOPT_CONNECT_TO, transfer->connect_to);
    header_add(transfer, "Host: ", host_header);
}

/* Copied: it may change before the transfer ends. */
static void set_blob(CURL *easy, CURLoption option, char *pem)
{
    if (pem == NULL)
        return;
    struct curl_blob blob = {.data = pem, .len = strlen(pem), .flags = CURL_BLOB_COPY};
    curl_easy_setopt(easy, option, &blob);
}

/* Uses the proxy for all hosts, as kubectl does, and trusts it as the server is trusted. */
static void set_proxy(struct http_transfer *transfer, const char *proxy)
{
    CURL *easy = transfer->base.easy;
    struct http_client *client = transfer->client;
    curl_easy_setopt(easy, CURLOPT_PROXY, proxy);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
    curl_easy_setopt(easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE); /* it must not see the token */
    set_blob(easy, CURLOPT_PROXY_CAINFO_BLOB, client->ca_pem);
    curl_easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYPEER, client->insecure ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYHOST, client->insecure ? 0L : 2L);
}

static int set_address(struct http_transfer *transfer, const struct http_request *request)
{
    CURL *easy = transfer->base.easy;
    SCOPED(curl_url_free) CURLU *url = curl_url();
    if (curl_url_set(url, CURLUPART_URL, request->url, 0) != CURLUE_OK)
        return error_set(&transfer->failure, ERROR_INVALID, "'%s' is not a URL", request->url);
    SCOPED(curl_text_free) char *scheme = url_part(url, CURLUPART_SCHEME);
    SCOPED(curl_text_free) char *host = url_part(url, CURLUPART_HOST);
    SCOPED(curl_text_free) char *port = url_part(url, CURLUPART_PORT);
    bool is_https = strcmp(scheme, "https") == 0;
    if (!is_https && strcmp(scheme, "http") != 0)
        return error_set(&transfer->failure, ERROR_INVALID, "'%s' is neither http:// nor https://", request->url);
    bool is_loopback = host_is_loopback(host);
    const char *proxy = transfer->client->proxy;
    if (set_token(transfer, request->bearer_token, is_https, is_loopback && !proxy) < 0)
        return -1;
    if (proxy)
        set_proxy(transfer, proxy);
    else if (is_loopback)
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (is_https && transfer->client->tls_server_name)
        set_server_name(transfer, url, host, port);
    SCOPED(curl_text_free) char *address = url_part(url, CURLUPART_URL);
    curl_easy_setopt(easy, CURLOPT_URL, address);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    if (request->follow_redirects) {
        curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
        curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)REDIRECTS_MAX);
        curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, is_https ? "https" : "http,https");
    }
    return 0;
}

static void set_tls(struct http_transfer *transfer)
{
    CURL *easy = transfer->base.easy;
    struct http_client *client = transfer->client;
    set_blob(easy, CURLOPT_CAINFO_BLOB, client->ca_pem);
    set_blob(easy, CURLOPT_SSLCERT_BLOB, client->client_cert_pem);
    set_blob(easy, CURLOPT_SSLKEY_BLOB, client->client_key_pem);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, client->insecure ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, client->insecure ? 0L : 2L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_PROXY_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_SHARE, client->share);
}

static void set_method(struct http_transfer *transfer, const struct http_request *request)
{
    CURL *easy = transfer->base.easy;
    const char *method = request->method ? request->method : "GET";
    if (strcmp(method, "HEAD") == 0)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
    bool has_body = request->body != NULL || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0;
    if (!has_body)
        return;
    transfer->body = memory_copy_bytes(request->body ? request->body : "", request->body_length);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer->body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length);
    header_add(transfer, "Content-Type: ", request->content_type ? request->content_type : "application/json");
    header_add(transfer, "Expect:", ""); /* else large bodies wait a round trip for "100 Continue" */
}

static void set_behaviour(struct http_transfer *transfer, const struct http_request *request)
{
    CURL *easy = transfer->base.easy;
    bool http2 = transfer->client->http2;
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->curl_message);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEP_ALIVE_SECONDS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEP_ALIVE_SECONDS);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)(http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, http2 ? 1L : 0L);
    if (transfer->client->user_agent)
        curl_easy_setopt(easy, CURLOPT_USERAGENT, transfer->client->user_agent);
    for (const char *const *header = request->headers; header && *header; header++)
        header_add(transfer, "", *header);
    if (transfer->headers)
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
    if (request->resume_from > 0)
        curl_easy_setopt(easy, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)request->resume_from);
    if (request->on_progress == NULL)
        return;
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_transfer_info);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, transfer);
}

static size_t inbox_ceiling(const struct http_request *request)
{
    if (request->max_body > 0)
        return request->max_body;
    return request->on_data ? STREAM_INBOX_MAX : DEFAULT_MAX_BODY;
}

struct http_transfer *http_client_start(struct http_client *client, const struct http_request *request)
{
    struct http_transfer *transfer = memory_allocate(1, sizeof *transfer);
    *transfer = (struct http_transfer){
        .base = {.easy = easy_take(client), .deliver = base_deliver, .finish = base_finish, .cancel = base_cancel},
        .client = client,
        .idle_timeout_ns = request->idle_timeout_ms * 1000000,
        .on_data = request->on_data,
        .on_progress = request->on_progress,
        .done = request->done,
        .context = request->context,
    };
    buffer_init(&transfer->inbox, inbox_ceiling(request));
    if (transfer->base.easy == NULL) {
        error_set(&transfer->failure, ERROR_SYSTEM, "libcurl has no memory for a request");
    } else if (set_address(transfer, request) == 0) {
        set_tls(transfer);
        set_method(transfer, request);
        set_behaviour(transfer, request);
    }
    if (transfer->failure.kind != ERROR_NONE)
        transfer_fail_later(transfer);
    transfer_link(transfer);
    waiting_start(client);
    return transfer;
}
