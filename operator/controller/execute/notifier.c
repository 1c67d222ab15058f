/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/notifier.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/log.h"
#include "common/memory.h"

#define RETRY_BASE_MS 1000
#define RETRY_MAX_MS 60000
#define ANSWER_MS 10000
#define ANSWER_MAX (1024 * 1024)
#define IN_FLIGHT_MAX 8

struct notification {
    struct notification *next;
    struct notifier *notifier;
    char *key, *id, *body;
    int64_t until_ms;
    int64_t due_ns; /* of the next try, by clock_monotonic_ns */
    int64_t pause_ms;
    struct http_transfer *transfer;
};

struct notifier {
    struct event_loop *loop;
    struct http_client *client;
    char *sink;
    int64_t retry_base_ms;
    notifier_done *done;
    void *context;
    struct notification *first; /* the oldest */
    size_t count, in_flight;
    struct event_timer *timer; /* the next try; NULL: none waits */
    uint64_t delivered, failed, dropped;
    bool stopped;
};

static void notification_free(struct notification *notification)
{
    free(notification->key);
    free(notification->id);
    free(notification->body);
    free(notification);
}

static void send_due(struct notifier *notifier);

static void timer_due(void *context)
{
    struct notifier *notifier = context;
    notifier->timer = NULL;
    send_due(notifier);
}

/* Takes the notification out of the list, and returns the address of the pointer that led to it. */
static struct notification **unlink_notification(struct notification *notification)
{
    struct notification **at = &notification->notifier->first;
    while (*at != notification)
        at = &(*at)->next;
    *at = notification->next;
    return at;
}

static void end(struct notification *notification, bool delivered)
{
    struct notifier *notifier = notification->notifier;
    unlink_notification(notification);
    notifier->count--;
    notifier->delivered += delivered;
    notifier->failed += !delivered;
    notifier->done(notifier->context, notification->key, notification->id, delivered);
    notification_free(notification);
}

static bool may_be_tried_again(const struct http_response *response)
{
    return response->status == 0 || response->status == 408 || response->status == 429 || response->status >= 500;
}

/* Only a few are tried at a time, so the others, which have waited for longer, go first: else a sink that never answers would keep
 * them from being tried at all. */
static void move_to_end(struct notification *notification)
{
    struct notification **at = unlink_notification(notification);
    while (*at)
        at = &(*at)->next;
    notification->next = NULL;
    *at = notification;
}

static void try_later(struct notification *notification, const struct http_response *response)
{
    move_to_end(notification);
    int64_t pause_ms =
        response->retry_after_ms > notification->pause_ms ? response->retry_after_ms : notification->pause_ms;
    if (pause_ms > RETRY_MAX_MS)
        pause_ms = RETRY_MAX_MS;
    notification->due_ns = clock_monotonic_ns() + 1000000 * pause_ms;
    notification->pause_ms = notification->pause_ms < RETRY_MAX_MS / 2 ? 2 * notification->pause_ms : RETRY_MAX_MS;
}

/* The sink's path may be a secret, as it is for the webhooks of many chat services, so the URL is cut off from the client's message. */
static const char *refusal_words(const struct http_response *response)
{
    const char *colon = response->error ? strstr(response->error->message, ": ") : NULL;
    if (colon)
        return colon + 2;
    return response->error ? "no answer came" : "the sink refused it";
}

static void log_refusal(const struct notification *notification, const struct http_response *response)
{
    SCOPED_FREE char *status = memory_format("%d", response->status);
    log_warning("a notification was not delivered", "id", notification->id, "job", notification->key, "status", status,
                "why", refusal_words(response), NULL);
}

static void answered(void *context, const struct http_response *response)
{
    struct notification *notification = context;
    struct notifier *notifier = notification->notifier;
    notification->transfer = NULL;
    notifier->in_flight--;
    if (notifier->stopped)
        return;
    if (response->status >= 200 && response->status < 300) {
        end(notification, true);
    } else if (may_be_tried_again(response) && clock_now_ms() < notification->until_ms) {
        try_later(notification, response);
    } else {
        log_refusal(notification, response);
        end(notification, false);
    }
    send_due(notifier);
}

/* Only the status of the answer matters; a body of any length is skipped. */
static int ignore_data(void *context, const char *bytes, size_t length, struct error *error)
{
    (void)context;
    (void)bytes;
    (void)length;
    (void)error;
    return 0;
}

static void start(struct notification *notification)
{
    struct notifier *notifier = notification->notifier;
    struct http_request request = {
        .method = "POST",
        .url = notifier->sink,
        .body = notification->body,
        .body_length = strlen(notification->body),
        .content_type = "application/cloudevents+json; charset=UTF-8",
        .max_body = ANSWER_MAX,
        .on_data = ignore_data,
        .timeout_ms = ANSWER_MS,
        .done = answered,
        .context = notification,
    };
    notifier->in_flight++;
    notification->transfer = http_client_start(notifier->client, &request);
}

/* Starts what is due, and sets the timer for what is due next. */
static void send_due(struct notifier *notifier)
{
    int64_t now_ns = clock_monotonic_ns(), next_ns = INT64_MAX;
    for (struct notification *at = notifier->first; at && notifier->in_flight < IN_FLIGHT_MAX; at = at->next) {
        if (at->transfer)
            continue;
        if (at->due_ns <= now_ns)
            start(at);
        else if (at->due_ns < next_ns)
            next_ns = at->due_ns;
    }
    if (notifier->timer)
        event_timer_cancel(notifier->timer);
    notifier->timer = next_ns == INT64_MAX
                          ? NULL
                          : event_timer_start(notifier->loop, (next_ns - now_ns) / 1000000 + 1, timer_due, notifier);
}

int notifier_new(struct event_loop *loop, const struct notifier_options *options, struct notifier **ret_notifier,
                 struct error *error)
{
    struct http_client_options client_options = {.user_agent = OPERATOR_NAME, .max_connections = IN_FLIGHT_MAX};
    struct http_client *client;
    if (http_client_new(loop, &client_options, &client, error) < 0)
        return -1;
    struct notifier *notifier = memory_allocate(1, sizeof *notifier);
    *notifier = (struct notifier){
        .loop = loop,
        .client = client,
        .sink = memory_copy_string(options->sink),
        .retry_base_ms = options->retry_base_ms > 0 ? options->retry_base_ms : RETRY_BASE_MS,
        .done = options->done,
        .context = options->context,
    };
    *ret_notifier = notifier;
    return 0;
}

void notifier_free(struct notifier *notifier)
{
    if (!notifier)
        return;
    notifier->stopped = true;
    http_client_free(notifier->client);
    if (notifier->timer)
        event_timer_cancel(notifier->timer);
    for (struct notification *at = notifier->first, *next; at; at = next) {
        next = at->next;
        notification_free(at);
    }
    free(notifier->sink);
    free(notifier);
}

bool notifier_send(struct notifier *notifier, const char *key, const struct notice *notice)
{
    struct notification **at = &notifier->first;
    for (; *at; at = &(*at)->next)
        if (strcmp((*at)->id, notice->id) == 0)
            return true;
    if (notifier->count >= NOTIFIER_QUEUE) {
        notifier->dropped++;
        return false;
    }
    *at = memory_allocate(1, sizeof **at);
    **at = (struct notification){
        .notifier = notifier,
        .key = memory_copy_string(key),
        .id = memory_copy_string(notice->id),
        .body = memory_copy_string(notice->body),
        .until_ms = notice->until_ms,
        .pause_ms = notifier->retry_base_ms,
    };
    notifier->count++;
    send_due(notifier);
    return true;
}

void notifier_write_metrics(const struct notifier *notifier, struct buffer *out)
{
    buffer_format(out,
                  "# HELP coxswain_notifications_total Notifications to the sink, by result.\n"
                  "# TYPE coxswain_notifications_total counter\n"
                  "coxswain_notifications_total{result=\"delivered\"} %" PRIu64 "\n"
                  "coxswain_notifications_total{result=\"failed\"} %" PRIu64 "\n"
                  "coxswain_notifications_total{result=\"dropped\"} %" PRIu64 "\n",
                  notifier->delivered, notifier->failed, notifier->dropped);
}
