/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "operator/standalone/api_request.h"

#define PENDING_MAX (64u << 20)
#define LINE_MAX_BYTES (4u << 20)
#define BOOKMARK_MS 60000
#define DEFAULT_TIMEOUT_SECONDS 1800

struct watch {
    struct api_server *server;
    struct http_stream *stream;
    struct registry_subscription *subscription;
    struct event_timer *bookmark_timer, *end_timer;
    struct api_path path;
    struct api_selection selection;
    bool table, headed, bookmarks;
    enum table_include include;
};

/* Types are defined anew while watches run: look again each time. */
static const struct resource *type_of(const struct watch *watch)
{
    return resource_find(registry_resources(watch->server->registry), watch->path.group, watch->path.version,
                         watch->path.plural);
}

/* ---- events ---- */

/* NULL if the event is too large. Takes `object` over. */
static struct http_bytes *print_event(const char *type, struct json *object)
{
    SCOPED_JSON *event = json_new_object();
    SCOPED_BUFFER line = BUFFER_INIT(LINE_MAX_BYTES);
    json_set_string(event, "type", type);
    json_set(event, "object", object);
    if (json_print(event, &line, NULL) < 0 || buffer_append_byte(&line, '\n', NULL) < 0)
        return NULL;
    return http_bytes_new(line.data, line.length);
}

/* Takes `object` over. */
static void send(struct watch *watch, const char *type, struct json *object)
{
    struct http_bytes *line = print_event(type, object);
    if (line)
        http_stream_write_shared(watch->stream, line);
    http_bytes_release(line);
}

/* The columns stand in the first table only, as in the real one. */
static struct json *in_table(struct watch *watch, const struct resource *resource, struct json *object)
{
    struct json *table = table_new(resource);
    table_add_row(table, resource, object, watch->include, clock_now_ms());
    json_set_string(json_member(table, "metadata"), "resourceVersion",
                    json_string_at(object, "metadata.resourceVersion", ""));
    if (watch->headed)
        json_set(table, "columnDefinitions", json_new_null());
    watch->headed = true;
    json_free(object);
    return table;
}

/* Many watches send the same event one after the other: it is printed and stored once. */
static void send_shared(struct watch *watch, const char *type, const struct resource *resource,
                        const struct json *object)
{
    struct api_event *last = &watch->server->last_event;
    const char *version = json_string_at(object, "metadata.resourceVersion", "");
    if (last->line == NULL || last->resource != resource || strcmp(last->type, type) != 0 ||
        strcmp(last->version, version) != 0) {
        struct json *shown = json_copy(object);
        event_view_show(resource, shown);
        http_bytes_release(last->line);
        *last = (struct api_event){.resource = resource, .type = type, .line = print_event(type, shown)};
        snprintf(last->version, sizeof last->version, "%s", version);
    }
    if (last->line)
        http_stream_write_shared(watch->stream, last->line);
}

static void send_object(struct watch *watch, const char *type, const struct json *object)
{
    const struct resource *resource = type_of(watch);
    if (resource == NULL) {
        http_stream_close(watch->stream);
        return;
    }
    if (!watch->table) {
        send_shared(watch, type, resource, object);
        return;
    }
    struct json *shown = json_copy(object);
    event_view_show(resource, shown);
    send(watch, type, in_table(watch, resource, shown));
}

static bool is_in_namespace(const struct watch *watch, const struct json *object)
{
    const char *wanted = watch->path.namespace;
    return wanted[0] == '\0' || strcmp(wanted, json_string_at(object, "metadata.namespace", "")) == 0;
}

/* The meaning of a change for this watcher depends on whether the object was selected before and after it. */
static void relay(struct watch *watch, enum store_change change, const struct json *object, const struct json *previous)
{
    if (!is_in_namespace(watch, object))
        return;
    bool was = previous && api_selection_matches(&watch->selection, previous);
    bool is = change != STORE_DELETED && api_selection_matches(&watch->selection, object);
    const char *type = is ? (was ? "MODIFIED" : "ADDED") : was ? "DELETED" : NULL;
    if (type)
        send_object(watch, type, object);
}

static void on_change(void *context, enum store_change change, const struct json *object, const struct json *previous)
{
    relay(context, change, object, previous);
}

static bool replay_change(void *context, enum store_change change, struct json *object, struct json *previous)
{
    relay(context, change, object, previous);
    json_free(object);
    json_free(previous);
    return true;
}

static bool send_initial(void *context, struct json *object)
{
    struct watch *watch = context;
    if (api_selection_matches(&watch->selection, object))
        send_object(watch, "ADDED", object);
    json_free(object);
    return true;
}

/* ---- bookmarks and the end ---- */

static void send_bookmark(struct watch *watch, bool initial_end)
{
    const struct resource *resource = type_of(watch);
    char text[API_VERSION_TEXT_MAX];
    if (resource == NULL)
        return;
    struct json *object = json_new_object();
    json_set_string(object, "kind", resource->kind);
    resource_api_version(resource, text);
    json_set_string(object, "apiVersion", text);
    struct json *metadata = json_set_object(object, "metadata");
    snprintf(text, sizeof text, "%" PRId64, store_revision(registry_store(watch->server->registry)));
    json_set_string(metadata, "resourceVersion", text);
    json_set(metadata, "creationTimestamp", json_new_null());
    if (initial_end)
        json_set_string(json_set_object(metadata, "annotations"), "k8s.io/initial-events-end", "true");
    if (watch->table) {
        struct json *table = table_new(resource);
        json_set_string(json_member(table, "metadata"), "resourceVersion", text);
        table_add_row(table, resource, object, TABLE_INCLUDE_OBJECT, clock_now_ms());
        json_free(object);
        object = table;
    }
    send(watch, "BOOKMARK", object);
}

/* Changes that are not committed must not be reported. */
static void mark_position(struct watch *watch)
{
    if (watch->bookmarks && !store_is_dirty(registry_store(watch->server->registry)))
        send_bookmark(watch, false);
}

static void bookmark_due(void *context)
{
    struct watch *watch = context;
    mark_position(watch);
    watch->bookmark_timer = event_timer_start(watch->server->loop, BOOKMARK_MS, bookmark_due, watch);
}

/* The last bookmark lets a quiet watch be taken up again although the changes of others are forgotten by then. */
static void end_due(void *context)
{
    struct watch *watch = context;
    watch->end_timer = NULL;
    mark_position(watch);
    http_stream_close(watch->stream);
}

static void closed(void *context)
{
    struct watch *watch = context;
    if (watch->subscription)
        registry_unobserve(watch->server->registry, watch->subscription);
    if (watch->bookmark_timer)
        event_timer_cancel(watch->bookmark_timer);
    if (watch->end_timer)
        event_timer_cancel(watch->end_timer);
    api_selection_release(&watch->selection);
    free(watch);
}

/* ---- the start ---- */

struct start {
    int64_t revision;   /* changes after this one; -1: from now */
    bool initial;       /* first what there is */
    bool marks_initial; /* then a bookmark that says so */
};

static struct json *read_start(const struct api_request *request, struct start *ret_start)
{
    const struct http_exchange *exchange = request->exchange;
    const char *revision = http_exchange_query(exchange, "resourceVersion");
    const char *initial = http_exchange_query(exchange, "sendInitialEvents");
    const char *match = http_exchange_query(exchange, "resourceVersionMatch");
    int64_t number = api_query_integer(exchange, "resourceVersion", -1);
    if (revision && revision[0] && number < 0)
        return refusal_bad_request("Invalid value: \"%s\": strconv.ParseUint: parsing \"%s\": invalid syntax", revision,
                                   revision);
    if (initial && (match == NULL || strcmp(match, "NotOlderThan") != 0))
        return refusal_new(
            422, "Invalid",
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents "
            "requires setting resourceVersionMatch to NotOlderThan");
    if (match && !initial)
        return refusal_new(422, "Invalid",
                           "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
                           "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    bool wanted = initial && strcmp(initial, "true") == 0;
    *ret_start = (struct start){
        .revision = number > 0 && !wanted ? number : -1,
        .initial = wanted || (!initial && number <= 0),
        .marks_initial = wanted,
    };
    return NULL;
}

static void begin(struct watch *watch, const struct start *start)
{
    struct registry *registry = watch->server->registry;
    struct store *store = registry_store(registry);
    const struct resource *resource = type_of(watch);
    const char *namespace = watch->path.namespace[0] ? watch->path.namespace : NULL;
    if (start->revision >= 0 && start->revision < store_compacted_revision(store)) {
        send(watch, "ERROR",
             refusal_new(410, "Expired", "too old resource version: %" PRId64 " (%" PRId64 ")", start->revision,
                         store_compacted_revision(store)));
        http_stream_close(watch->stream);
        return;
    }
    if (start->initial)
        store_list(store, resource->storage, namespace, NULL, NULL, send_initial, watch, NULL);
    else if (start->revision >= 0)
        store_changes(store, resource->storage, start->revision, replay_change, watch, NULL);
    if (start->marks_initial && watch->bookmarks)
        send_bookmark(watch, true);
    watch->subscription = registry_watch(registry, resource->storage, on_change, watch);
    if (watch->bookmarks)
        watch->bookmark_timer = event_timer_start(watch->server->loop, BOOKMARK_MS, bookmark_due, watch);
}

void api_watch(struct api_request *request)
{
    struct start start = {0};
    struct api_selection selection = {0};
    struct json *refused = read_start(request, &start);
    if (refused == NULL)
        refused = api_selection_parse(request, &selection);
    if (refused) {
        api_refuse(request, refused);
        return;
    }
    struct watch *watch = memory_allocate(1, sizeof *watch);
    *watch = (struct watch){
        .server = request->server,
        .path = request->path,
        .selection = selection,
        .table = api_answer_form(request->exchange) == ANSWER_TABLE,
        .include = api_table_include(request->exchange),
        .bookmarks = api_query_flag(request->exchange, "allowWatchBookmarks"),
    };
    int64_t seconds = api_query_integer(request->exchange, "timeoutSeconds", 0);
    watch->stream = http_exchange_stream(request->exchange, 200, "application/json", PENDING_MAX, closed, watch);
    watch->end_timer = event_timer_start(request->server->loop,
                                         (seconds > 0 ? seconds : DEFAULT_TIMEOUT_SECONDS) * 1000, end_due, watch);
    begin(watch, &start);
}
