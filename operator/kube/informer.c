/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/informer.h"

#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "operator/kube/backoff.h"
#include "operator/kube/informer_table.h"
#include "operator/kube/list_stream.h"
#include "operator/kube/status.h"
#include "operator/kube/watch_stream.h"

#define NS_PER_MS 1000000
/* The initial state may take long; it ends with a bookmark, not with timeoutSeconds. */
#define STREAMED_LIST_SECONDS 300
/* A server that ignores sendInitialEvents sends no final bookmark; wait for it this long. */
#define STREAMED_LIST_SILENCE_MS 10000
/* A watch that ends sooner than this is restarted with backoff, or restarts would flood the server. */
#define SHORT_WATCH_MS 1000
#define INITIAL_EVENTS_END "k8s.io/initial-events-end"

enum phase {
    STREAMED_LIST, /* watch with sendInitialEvents, until its bookmark */
    PAGED_LIST,
    WATCH,
};

struct informer {
    struct kube_client *client;
    struct informer_options options;
    struct informer_table table;
    enum phase phase;
    bool synced;
    bool began_as_list; /* the present stream */
    bool streamed_list_refused;
    uint64_t seen;     /* newest resourceVersion taken */
    char *position;    /* resourceVersion to watch from; NULL: list first */
    char *next_page;   /* continue token; NULL: first page */
    unsigned failures; /* in a row */
    struct error last_failure;
    int64_t started_ns;
    struct kube_call *call;
    struct event_timer *timer;
    struct watch_stream watch;
    struct list_stream list;
    struct informer_counts counts;
};

static void go_on(struct informer *informer);

/* ---------------------------------------------------------------- positions */

static void text_replace(char **text, const char *fresh)
{
    char *copy = memory_copy_string(fresh);
    free(*text);
    *text = copy;
}

static void position_set(struct informer *informer, const char *resource_version)
{
    text_replace(&informer->position, resource_version);
    informer->seen = resource_version_number(resource_version);
}

/* The server answered: the last failure is over. */
static void failure_clear(struct informer *informer)
{
    bool was_refused = informer_refusal(informer) != NULL;
    informer->last_failure.kind = ERROR_NONE;
    if (was_refused && informer->synced && informer->options.on_access_restored)
        informer->options.on_access_restored(informer->options.context);
}

static void list_complete(struct informer *informer, const char *resource_version)
{
    position_set(informer, resource_version);
    informer->phase = WATCH;
    informer->counts.lists++;
    informer_table_end_list(&informer->table);
    failure_clear(informer);
    bool is_first = !informer->synced;
    informer->synced = true;
    if (is_first && informer->options.on_synced)
        informer->options.on_synced(informer->options.context);
}

/* ---------------------------------------------------------------- events */

static bool is_end_of_initial_events(const struct json *bookmark)
{
    const struct json *annotations = json_at(bookmark, "metadata.annotations");
    return strcmp(json_string(json_member(annotations, INITIAL_EVENTS_END), ""), "true") == 0;
}

static void bookmark_take(struct informer *informer, const struct json *bookmark)
{
    const char *version = json_string_at(bookmark, "metadata.resourceVersion", "");
    if (informer->phase == STREAMED_LIST && is_end_of_initial_events(bookmark))
        list_complete(informer, version);
    else if (informer->phase == WATCH && version[0])
        position_set(informer, version);
}

/* A watch delivers in the order of versions; an event that is not newer was delivered before. */
static bool is_late(const struct informer *informer, uint64_t version)
{
    return informer->phase == WATCH && version != 0 && version <= informer->seen;
}

static int event_take(void *context, const struct watch_event *event, struct error *error)
{
    struct informer *informer = context;
    informer->counts.events++;
    if (event->type == WATCH_ERROR)
        return kube_status_to_error((int)json_integer_at(event->object, "code", 500), event->object, error);
    if (informer->phase == WATCH) /* an incomplete list does not end a refusal */
        failure_clear(informer);
    if (event->type == WATCH_BOOKMARK) {
        bookmark_take(informer, event->object);
        return 0;
    }
    const char *version = json_string_at(event->object, "metadata.resourceVersion", "");
    if (is_late(informer, resource_version_number(version)))
        return 0;
    if (informer->phase == WATCH)
        position_set(informer, version);
    if (event->type == WATCH_DELETED)
        informer_table_remove(&informer->table, event->object);
    else
        informer_table_apply(&informer->table, event->object);
    return 0;
}

static int item_take(void *context, const struct json *item, struct error *error)
{
    (void)error;
    struct informer *informer = context;
    informer_table_apply(&informer->table, item);
    return 0;
}

static int on_watch_data(void *context, const char *bytes, size_t length, struct error *error)
{
    return watch_stream_feed(&((struct informer *)context)->watch, bytes, length, error);
}

static int on_list_data(void *context, const char *bytes, size_t length, struct error *error)
{
    return list_stream_feed(&((struct informer *)context)->list, bytes, length, error);
}

/* ---------------------------------------------------------------- ends */

static void on_timer(void *context)
{
    struct informer *informer = context;
    informer->timer = NULL;
    go_on(informer);
}

static void go_on_after(struct informer *informer, int64_t delay_ms)
{
    informer->timer = event_timer_start(kube_client_loop(informer->client), delay_ms, on_timer, informer);
}

static int64_t backoff_of(const struct informer *informer)
{
    return backoff_delay_ms(informer->options.backoff_base_ms, INFORMER_RETRY_MAX_MS, informer->failures - 1);
}

static void trouble(struct informer *informer, const struct kube_answer *answer)
{
    informer->failures++;
    informer->last_failure = *answer->error;
    if (informer->options.on_failure)
        informer->options.on_failure(informer->options.context, answer->error);
    int64_t delay_ms = backoff_of(informer);
    go_on_after(informer, answer->retry_after_ms > delay_ms ? answer->retry_after_ms : delay_ms);
}

static void list_again(struct informer *informer)
{
    text_replace(&informer->position, NULL);
    text_replace(&informer->next_page, NULL);
}

/* Lists again: at once the first time, with backoff if it expires again (a broken proxy). */
static void expired(struct informer *informer, const struct kube_answer *answer)
{
    list_again(informer);
    if (informer->failures++ == 0)
        go_on_after(informer, 0);
    else
        trouble(informer, answer);
}

static bool refuses_streamed_list(const struct error *error)
{
    return error && (error->http_status == 400 || error->http_status == 422 || error->kind == ERROR_TIMEOUT);
}

static void on_streamed_list_end(struct informer *informer, const struct kube_answer *answer)
{
    if (answer->error == NULL || refuses_streamed_list(answer->error)) {
        informer->streamed_list_refused = true;
        go_on_after(informer, 0);
    } else if (answer->error->kind == ERROR_EXPIRED) {
        expired(informer, answer);
    } else {
        trouble(informer, answer);
    }
}

/* A streamed list is asked for longer than silence_ms, so silence after its state is complete is its normal end. */
static bool ended_in_order(const struct informer *informer, const struct kube_answer *answer)
{
    return answer->error == NULL || (informer->began_as_list && answer->error->kind == ERROR_TIMEOUT);
}

static void on_watch_end(struct informer *informer, const struct kube_answer *answer)
{
    bool was_short = clock_monotonic_ns() - informer->started_ns < SHORT_WATCH_MS * NS_PER_MS;
    bool in_order = ended_in_order(informer, answer);
    if (in_order)
        failure_clear(informer);
    if (!was_short)
        informer->failures = 0;
    if (answer->error && answer->error->kind == ERROR_EXPIRED) {
        expired(informer, answer);
    } else if (!in_order) {
        trouble(informer, answer);
    } else if (was_short) {
        informer->failures++;
        go_on_after(informer, backoff_of(informer));
    } else {
        go_on_after(informer, 0);
    }
}

static void on_watch_answered(void *context, const struct kube_answer *answer)
{
    struct informer *informer = context;
    informer->call = NULL;
    if (answer->error && answer->error->kind == ERROR_CANCELLED)
        return;
    if (informer->phase == STREAMED_LIST)
        on_streamed_list_end(informer, answer);
    else
        on_watch_end(informer, answer);
}

static void page_complete(struct informer *informer, const struct json *envelope)
{
    const char *next = json_string_at(envelope, "metadata.continue", "");
    text_replace(&informer->next_page, next[0] ? next : NULL);
    if (informer->next_page == NULL)
        list_complete(informer, json_string_at(envelope, "metadata.resourceVersion", ""));
    go_on_after(informer, 0);
}

static void on_list_answered(void *context, const struct kube_answer *answer)
{
    struct informer *informer = context;
    informer->call = NULL;
    struct error failure = ERROR_INIT;
    SCOPED_JSON *envelope = NULL;
    if (answer->error && answer->error->kind == ERROR_CANCELLED)
        return;
    if (answer->error == NULL && list_stream_finish(&informer->list, &envelope, &failure) == 0) {
        page_complete(informer, envelope);
        return;
    }
    struct kube_answer failed = *answer;
    failed.error = answer->error ? answer->error : &failure;
    list_again(informer);
    if (failed.error->kind == ERROR_EXPIRED)
        expired(informer, &failed);
    else
        trouble(informer, &failed);
}

/* ---------------------------------------------------------------- requests */

static void query_number(struct buffer *path, const char *name, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    resource_path_append_query(path, name, text, NULL);
}

/* Names come from our own code; the server refuses an invalid one. */
static void path_begin(const struct informer *informer, struct buffer *path)
{
    const struct informer_options *options = &informer->options;
    struct resource_path collection = {.resource = options->resource, .name_space = options->name_space};
    buffer_init(path, 16 * 1024);
    resource_path_append(path, &collection, NULL);
    resource_path_append_query(path, "labelSelector", options->label_selector, NULL);
    resource_path_append_query(path, "fieldSelector", options->field_selector, NULL);
}

static void stream_start(struct informer *informer, const struct buffer *path, bool is_list)
{
    bool may_be_ignored = informer->phase == STREAMED_LIST && informer->options.silence_ms > STREAMED_LIST_SILENCE_MS;
    struct kube_stream_options options = {
        .path_and_query = buffer_text(path),
        .verb = is_list ? "list" : "watch",
        .resource = informer->options.resource.plural,
        .idle_timeout_ms = may_be_ignored ? STREAMED_LIST_SILENCE_MS : informer->options.silence_ms,
        .on_data = is_list ? on_list_data : on_watch_data,
        .answered = is_list ? on_list_answered : on_watch_answered,
        .context = informer,
    };
    informer->started_ns = clock_monotonic_ns();
    informer->began_as_list = informer->phase != WATCH;
    informer->call = kube_client_stream(informer->client, &options);
}

static void watch_start(struct informer *informer)
{
    SCOPED_BUFFER path;
    path_begin(informer, &path);
    resource_path_append_query(&path, "watch", "true", NULL);
    resource_path_append_query(&path, "allowWatchBookmarks", "true", NULL);
    if (informer->phase == STREAMED_LIST) {
        resource_path_append_query(&path, "sendInitialEvents", "true", NULL);
        resource_path_append_query(&path, "resourceVersionMatch", "NotOlderThan", NULL);
        query_number(&path, "timeoutSeconds", STREAMED_LIST_SECONDS);
    } else {
        resource_path_append_query(&path, "resourceVersion", informer->position, NULL);
        query_number(&path, "timeoutSeconds", informer->options.watch_seconds);
    }
    informer->counts.watches++;
    watch_stream_release(&informer->watch);
    watch_stream_init(&informer->watch, informer->options.object_max, event_take, informer);
    stream_start(informer, &path, false);
}

static void page_start(struct informer *informer)
{
    SCOPED_BUFFER path;
    path_begin(informer, &path);
    query_number(&path, "limit", informer->options.page_size);
    resource_path_append_query(&path, "continue", informer->next_page, NULL);
    list_stream_release(&informer->list);
    list_stream_init(&informer->list, informer->options.object_max, item_take, informer);
    stream_start(informer, &path, true);
}

/* Sends the next request: a watch if the position is known, else the list or its next page. */
static void go_on(struct informer *informer)
{
    if (informer->position) {
        informer->phase = WATCH;
        watch_start(informer);
        return;
    }
    bool stream = !informer->options.never_stream_list && !informer->streamed_list_refused;
    informer->phase = stream ? STREAMED_LIST : PAGED_LIST;
    if (informer->next_page == NULL)
        informer_table_begin_list(&informer->table);
    if (stream)
        watch_start(informer);
    else
        page_start(informer);
}

/* ---------------------------------------------------------------- life cycle */

void *informer_item_copy(void *context, const struct json *object)
{
    (void)context;
    return json_copy(object);
}

void informer_item_free(void *item)
{
    json_free(item);
}

static int64_t otherwise(int64_t value, int64_t standard)
{
    return value > 0 ? value : standard;
}

struct informer *informer_start(struct kube_client *client, const struct informer_options *given)
{
    struct informer *informer = memory_allocate(1, sizeof *informer);
    informer->client = client;
    informer->options = *given;
    struct informer_options *options = &informer->options;
    options->resource.group = memory_copy_string(given->resource.group);
    options->resource.version = memory_copy_string(given->resource.version);
    options->resource.plural = memory_copy_string(given->resource.plural);
    options->name_space = memory_copy_string(given->name_space);
    options->label_selector = memory_copy_string(given->label_selector);
    options->field_selector = memory_copy_string(given->field_selector);
    options->page_size = given->page_size ? given->page_size : 500;
    options->watch_seconds = otherwise(given->watch_seconds, 20);
    options->silence_ms = otherwise(given->silence_ms, 28000);
    options->backoff_base_ms = otherwise(given->backoff_base_ms, 500);
    informer_table_init(&informer->table, options);
    watch_stream_init(&informer->watch, options->object_max, event_take, informer);
    list_stream_init(&informer->list, options->object_max, item_take, informer);
    go_on(informer);
    return informer;
}

void informer_free(struct informer *informer)
{
    if (informer == NULL)
        return;
    if (informer->call)
        kube_call_cancel(informer->call);
    event_timer_cancel(informer->timer);
    informer_table_release(&informer->table);
    watch_stream_release(&informer->watch);
    list_stream_release(&informer->list);
    const char *owned[] = {informer->options.resource.group,
                           informer->options.resource.version,
                           informer->options.resource.plural,
                           informer->options.name_space,
                           informer->options.label_selector,
                           informer->options.field_selector,
                           informer->position,
                           informer->next_page};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        free((char *)owned[i]);
    free(informer);
}

/* ---------------------------------------------------------------- looking */

bool informer_synced(const struct informer *informer)
{
    return informer->synced;
}

static bool is_refusal(const struct error *error)
{
    return error->http_status == 401 || error->http_status == 403 || error->http_status == 404;
}

const struct error *informer_refusal(const struct informer *informer)
{
    const struct error *last = &informer->last_failure;
    return last->kind != ERROR_NONE && is_refusal(last) ? last : NULL;
}

size_t informer_count(const struct informer *informer)
{
    return informer->table.entries.count;
}

const void *informer_get(const struct informer *informer, const char *key)
{
    return informer_table_get(&informer->table, key);
}

bool informer_next(const struct informer *informer, size_t *at, const char **ret_key, const void **ret_item)
{
    return informer_table_next(&informer->table, at, ret_key, ret_item);
}

bool informer_has_seen(const struct informer *informer, uint64_t resource_version)
{
    return resource_version == 0 || (informer->synced && informer->seen >= resource_version);
}

struct informer_counts informer_counts(const struct informer *informer)
{
    return informer->counts;
}
