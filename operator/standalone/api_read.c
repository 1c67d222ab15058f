/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "operator/standalone/api_request.h"

/* ---- get ---- */

void api_get(struct api_request *request)
{
    struct json *object;
    struct json *refused =
        registry_read(request->registry, request->resource, request->path.namespace, request->path.name, &object);
    if (refused)
        api_refuse(request, refused);
    else
        api_answer_object(request, 200, object);
}

/* ---- list ---- */

/* Opaque to clients: revision of the first page, then the last key sent. */
struct position {
    int64_t revision;
    char namespace[API_SEGMENT_MAX], name[API_SEGMENT_MAX];
};

static bool position_parse(const char *text, struct position *ret_position)
{
    struct position position = {0};
    const char *colon = strchr(text, ':'), *second = colon ? strchr(colon + 1, ':') : NULL;
    char *end;
    position.revision = strtoll(text, &end, 10);
    if (second == NULL || end != colon || second - colon > API_SEGMENT_MAX || strlen(second) > API_SEGMENT_MAX)
        return false;
    memcpy(position.namespace, colon + 1, (size_t)(second - colon - 1));
    snprintf(position.name, sizeof position.name, "%s", second + 1);
    *ret_position = position;
    return true;
}

static struct json *read_position(const struct api_request *request, struct position *ret_position)
{
    const char *text = http_exchange_query(request->exchange, "continue");
    struct store *store = registry_store(request->registry);
    *ret_position = (struct position){.revision = store_revision(store)};
    if (text == NULL || text[0] == '\0')
        return NULL;
    if (!position_parse(text, ret_position))
        return refusal_bad_request("invalid continue token: continue key is not valid: \"%s\"", text);
    if (ret_position->revision < store_compacted_revision(store))
        return refusal_new(410, "Expired",
                           "The provided continue parameter is too old to display a consistent list result. You must "
                           "start a new list without the continue parameter.");
    return NULL;
}

static struct json *check_revision(const struct api_request *request)
{
    struct store *store = registry_store(request->registry);
    int64_t asked = api_query_integer(request->exchange, "resourceVersion", 0), now = store_revision(store);
    const char *match = http_exchange_query(request->exchange, "resourceVersionMatch");
    const char *text = http_exchange_query(request->exchange, "resourceVersion");
    bool given = text && text[0];
    if (given && api_query_integer(request->exchange, "resourceVersion", -1) < 0)
        return refusal_bad_request("invalid resource version: resourceVersion: Invalid value: \"%s\": "
                                   "strconv.ParseUint: parsing \"%s\": invalid syntax",
                                   text, text);
    if (match && match[0] && !given)
        return refusal_new(422, "Invalid",
                           "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
                           "resourceVersionMatch is forbidden unless resourceVersion is provided");
    if (asked > now)
        return refusal_new(504, "Timeout", "Timeout: Too large resource version: %" PRId64 ", current: %" PRId64, asked,
                           now);
    if (match && strcmp(match, "Exact") == 0 && asked != now)
        return refusal_new(410, "Expired", "The resourceVersion for the provided list is too old.");
    return NULL;
}

struct listing {
    const struct api_request *request;
    struct api_selection selection;
    struct json *items; /* or the table */
    bool table, more;
    enum table_include include;
    int64_t limit, count, now_ms;
    struct position last;
};

static void add_item(struct listing *listing, struct json *object)
{
    const struct resource *resource = listing->request->resource;
    snprintf(listing->last.namespace, API_SEGMENT_MAX, "%s", json_string_at(object, "metadata.namespace", ""));
    snprintf(listing->last.name, API_SEGMENT_MAX, "%s", json_string_at(object, "metadata.name", ""));
    listing->count++;
    event_view_show(resource, object);
    if (listing->table) {
        table_add_row(listing->items, resource, object, listing->include, listing->now_ms);
        json_free(object);
        return;
    }
    if (!resource->definition) {
        json_remove(object, "kind");
        json_remove(object, "apiVersion");
    }
    json_append(listing->items, object);
}

static bool visit_item(void *context, struct json *object)
{
    struct listing *listing = context;
    if (!api_selection_matches(&listing->selection, object)) {
        json_free(object);
        return true;
    }
    if (listing->limit > 0 && listing->count == listing->limit) {
        listing->more = true;
        json_free(object);
        return false;
    }
    add_item(listing, object);
    return true;
}

static void set_list_metadata(struct listing *listing, struct json *root, const struct position *start)
{
    char text[2 * API_SEGMENT_MAX + 32];
    const struct api_request *request = listing->request;
    struct json *metadata = json_set_object(root, "metadata");
    snprintf(text, sizeof text, "%" PRId64, start->revision);
    json_set_string(metadata, "resourceVersion", text);
    if (!listing->more)
        return;
    snprintf(text, sizeof text, "%" PRId64 ":%s:%s", start->revision, listing->last.namespace, listing->last.name);
    json_set_string(metadata, "continue", text);
    int64_t left;
    bool selects = listing->selection.labels.count + listing->selection.fields.count > 0;
    const char *namespace = request->path.namespace[0] ? request->path.namespace : NULL;
    if (!selects && store_count(registry_store(request->registry), request->resource->storage, namespace,
                                listing->last.namespace, listing->last.name, &left, NULL) == 0)
        json_set_integer(metadata, "remainingItemCount", left);
}

static struct json *list_root(const struct resource *resource)
{
    char text[API_VERSION_TEXT_MAX];
    struct json *root = json_new_object();
    snprintf(text, sizeof text, "%sList", resource->kind);
    json_set_string(root, "kind", text);
    resource_api_version(resource, text);
    json_set_string(root, "apiVersion", text);
    json_set_object(root, "metadata");
    json_set_array(root, "items");
    return root;
}

static void run_listing(struct api_request *request, struct listing *listing, const struct position *start)
{
    struct error error = ERROR_INIT;
    struct json *root = listing->table ? table_new(request->resource) : list_root(request->resource);
    const char *namespace = request->path.namespace[0] ? request->path.namespace : NULL;
    listing->items = listing->table ? root : json_member(root, "items");
    if (store_list(registry_store(request->registry), request->resource->storage, namespace, start->namespace,
                   start->name, visit_item, listing, &error) < 0) {
        json_free(root);
        api_refuse(request, refusal_from_error(request->resource, "", &error));
        return;
    }
    set_list_metadata(listing, root, start);
    api_answer(request, 200, root);
}

void api_list(struct api_request *request)
{
    struct position start;
    struct listing listing = {
        .request = request,
        .table = api_answer_form(request->exchange) == ANSWER_TABLE,
        .include = api_table_include(request->exchange),
        .limit = api_query_integer(request->exchange, "limit", 0),
        .now_ms = clock_now_ms(),
    };
    struct json *refused = read_position(request, &start);
    if (refused == NULL)
        refused = check_revision(request);
    if (refused == NULL)
        refused = api_selection_parse(request, &listing.selection);
    if (refused) {
        api_refuse(request, refused);
        return;
    }
    run_listing(request, &listing, &start);
    api_selection_release(&listing.selection);
}
