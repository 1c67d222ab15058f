/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/chief_status.h"

#include <stdlib.h>
#include <string.h>

#include "common/contract/environment.h"
#include "common/memory.h"

#define INTERVAL_MS 500
#define TIMEOUT_MS 2000
#define PATH_MAX_LENGTH 1024

struct chief_status {
    struct kube_client *client;
    struct http_client *http;
    char *name_space;
    chief_status_received *received;
    void *context;
    struct event_timer *timer;
    struct http_transfer *direct;
    struct kube_call *proxied;
    struct buffer text;
    char pod[VIEW_TEXT_MAX], address[64], uid[64]; /* pod "": nobody */
    bool is_process;
    bool refused; /* the API server does not pass this pod's document on */
};

static void ask(void *context);

static void ask_later(struct chief_status *status)
{
    if (!status->timer)
        status->timer = event_timer_start(kube_client_loop(status->client), INTERVAL_MS, ask, status);
}

static void take(struct chief_status *status, const char *text, size_t length)
{
    struct status_document document;
    if (status_document_parse(text, length, &document, NULL) == 0 && strcmp(document.job_uid, status->uid) == 0)
        status->received(status->context, &document);
}

/* ---------------------------------------------------------------- a process of this machine */

static void answered_directly(void *context, const struct http_response *response)
{
    struct chief_status *status = context;
    status->direct = NULL;
    if (response->error && response->error->kind == ERROR_CANCELLED)
        return;
    if (!response->error && response->status == 200)
        take(status, response->body, response->body_length);
    ask_later(status);
}

static void ask_directly(struct chief_status *status)
{
    SCOPED_FREE char *url = memory_format("http://%s:%d/status", status->address, PORT_HTTP);
    struct http_request request = {.method = "GET",
                                   .url = url,
                                   .max_body = STATUS_DOCUMENT_MAX,
                                   .timeout_ms = TIMEOUT_MS,
                                   .done = answered_directly,
                                   .context = status};
    status->direct = http_client_start(status->http, &request);
}

/* ---------------------------------------------------------------- through the API server */

static int collect(void *context, const char *bytes, size_t length, struct error *error)
{
    return buffer_append(&((struct chief_status *)context)->text, bytes, length, error);
}

static void answered_by_proxy(void *context, const struct kube_answer *answer)
{
    struct chief_status *status = context;
    status->proxied = NULL;
    if (answer->error && answer->error->kind == ERROR_CANCELLED)
        return;
    if (!answer->error)
        take(status, buffer_text(&status->text), status->text.length);
    else
        status->refused = answer->error->kind != ERROR_UNAVAILABLE && answer->error->kind != ERROR_TIMEOUT;
    ask_later(status);
}

static void ask_by_proxy(struct chief_status *status)
{
    SCOPED_FREE char *name = memory_format("%s:%d", status->pod, PORT_HTTP);
    SCOPED_BUFFER path = BUFFER_INIT(PATH_MAX_LENGTH);
    struct resource_path proxy = {KUBE_PODS, status->name_space, name, "proxy"};
    if (resource_path_append(&path, &proxy, NULL) < 0 || buffer_append_string(&path, "/status", NULL) < 0)
        return;
    buffer_clear(&status->text);
    struct kube_stream_options options = {.path_and_query = buffer_text(&path),
                                          .timeout_ms = TIMEOUT_MS,
                                          .on_data = collect,
                                          .answered = answered_by_proxy,
                                          .context = status};
    status->proxied = kube_client_stream(status->client, &options);
}

/* ---------------------------------------------------------------- in turn */

static void ask(void *context)
{
    struct chief_status *status = context;
    status->timer = NULL;
    if (status->pod[0] == '\0' || status->refused || status->direct || status->proxied)
        return;
    if (status->is_process)
        ask_directly(status);
    else
        ask_by_proxy(status);
}

struct chief_status *chief_status_new(struct kube_client *client, const char *name_space,
                                      chief_status_received *received, void *context)
{
    struct http_client_options options = {.user_agent = "cox"};
    struct http_client *http;
    if (http_client_new(kube_client_loop(client), &options, &http, NULL) < 0)
        return NULL;
    struct chief_status *status = memory_allocate(1, sizeof *status);
    status->client = client;
    status->http = http;
    status->name_space = memory_copy_string(name_space);
    status->received = received;
    status->context = context;
    buffer_init(&status->text, STATUS_DOCUMENT_MAX);
    return status;
}

void chief_status_free(struct chief_status *status)
{
    if (!status)
        return;
    if (status->timer)
        event_timer_cancel(status->timer);
    if (status->direct)
        http_transfer_cancel(status->direct);
    if (status->proxied)
        kube_call_cancel(status->proxied);
    http_client_free(status->http);
    buffer_release(&status->text);
    free(status->name_space);
    free(status);
}

void chief_status_of(struct chief_status *status, const struct pod_line *chief, const char *job_uid)
{
    bool asked = status && chief && chief->ready && !chief->ended && *chief->address && *job_uid;
    if (!status)
        return;
    if (!asked) {
        status->pod[0] = '\0';
        return;
    }
    if (strcmp(status->pod, chief->name) != 0)
        status->refused = false;
    snprintf(status->pod, sizeof status->pod, "%s", chief->name);
    snprintf(status->address, sizeof status->address, "%s", chief->address);
    snprintf(status->uid, sizeof status->uid, "%s", job_uid);
    status->is_process = chief->process > 0;
    if (!status->direct && !status->proxied)
        ask_later(status);
}
