/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "operator/standalone/api_request.h"

/* ---- what all writes share ---- */

static bool same(const char *left, const char *right)
{
    return strcmp(left, right) == 0;
}

/* "CreateOptions" and so on, as the real one's refusals name them. */
static const char *options_kind(const struct api_request *request)
{
    static const char *const kinds[][2] = {
        {"POST", "CreateOptions"}, {"PUT", "UpdateOptions"}, {"PATCH", "PatchOptions"}, {"DELETE", "DeleteOptions"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (same(kinds[i][0], request->method))
            return kinds[i][1];
    return "";
}

static struct json *read_validation(const struct api_request *request, enum field_validation *ret_validation)
{
    const char *text = http_exchange_query(request->exchange, "fieldValidation");
    *ret_validation = FIELD_VALIDATION_WARN;
    if (text == NULL || text[0] == '\0' || same(text, "Warn"))
        return NULL;
    *ret_validation = same(text, "Strict") ? FIELD_VALIDATION_STRICT : FIELD_VALIDATION_IGNORE;
    if (same(text, "Strict") || same(text, "Ignore"))
        return NULL;
    return refusal_new(422, "Invalid",
                       "%s.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"%s\": "
                       "supported values: \"Ignore\", \"Strict\", \"Warn\"",
                       options_kind(request), text);
}

/* The events.k8s.io view writes what the core type stores. */
static const struct resource *stored_type(const struct api_request *request)
{
    return resource_find_storage(registry_resources(request->registry), request->resource->storage);
}

struct json *api_write_prepare(const struct api_request *request, struct write *ret_write)
{
    const char *dry_run = http_exchange_query(request->exchange, "dryRun");
    enum field_validation validation;
    struct json *refused = read_validation(request, &validation);
    if (refused)
        return refused;
    if (dry_run && dry_run[0] && !same(dry_run, "All"))
        return refusal_new(422, "Invalid",
                           "%s.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"%s\"]: supported values: "
                           "\"All\"",
                           options_kind(request), dry_run);
    *ret_write = (struct write){
        .resource = stored_type(request),
        .namespace = request->path.namespace,
        .name = request->path.name[0] ? request->path.name : NULL,
        .status = same(request->path.subresource, "status"),
        .dry_run = dry_run && dry_run[0],
        .field_validation = validation,
        .warnings = json_new_array(),
    };
    return NULL;
}

static void send_warnings(struct api_request *request, const struct json *warnings)
{
    for (const struct json *warning = json_first(warnings); warning; warning = json_next(warning)) {
        SCOPED_BUFFER header = BUFFER_INIT(4096);
        buffer_append_string(&header, "299 - ", NULL);
        json_print(warning, &header, NULL);
        http_exchange_set_header(request->exchange, "Warning", buffer_text(&header));
    }
}

static void finish(struct api_request *request, struct write *write, int status, struct json *refused)
{
    send_warnings(request, write->warnings);
    json_free(write->warnings);
    json_free(write->managed_fields);
    if (refused) {
        json_free(write->result);
        api_refuse(request, refused);
        return;
    }
    api_answer_durably(request, status, write->result);
}

static struct json *read_object(const struct api_request *request, struct json **ret_object)
{
    struct json *refused = api_read_body(request, ret_object);
    if (refused)
        return refused;
    if (*ret_object == NULL)
        return refusal_bad_request("the request needs a body of kind %s", request->resource->kind);
    event_view_take(request->resource, *ret_object);
    return NULL;
}

/* ---- create and update ---- */

typedef struct json *object_writer(struct registry *registry, struct write *write, struct json *object);

static void write_object(struct api_request *request, int status, object_writer *writer)
{
    struct write write;
    struct json *object = NULL;
    struct json *refused = api_write_prepare(request, &write);
    if (refused) {
        api_refuse(request, refused);
        return;
    }
    refused = read_object(request, &object);
    if (refused == NULL)
        refused = writer(request->registry, &write, object);
    finish(request, &write, status, refused);
}

void api_create(struct api_request *request)
{
    write_object(request, 201, registry_write_create);
}

void api_update(struct api_request *request)
{
    write_object(request, 200, registry_write_update);
}

/* ---- patch ---- */

static const struct {
    const char *type;
    enum patch_kind kind;
} patch_types[] = {
    {"application/merge-patch+json", PATCH_MERGE},
    {"application/json-patch+json", PATCH_JSON},
    {"application/strategic-merge-patch+json", PATCH_STRATEGIC},
    {"application/apply-patch+yaml", PATCH_APPLY},
};

#define UNKNOWN_PATCH                                                                                                  \
    "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "   \
    "application/merge-patch+json%s, application/apply-patch+yaml"

struct json *api_patch_kind(const struct api_request *request, enum patch_kind *ret_kind)
{
    const char *type = http_exchange_header(request->exchange, "Content-Type");
    bool custom = request->resource->definition != NULL;
    for (size_t i = 0; type && i < sizeof patch_types / sizeof patch_types[0]; i++) {
        size_t length = strlen(patch_types[i].type);
        if (strncmp(type, patch_types[i].type, length) != 0 || (custom && patch_types[i].kind == PATCH_STRATEGIC))
            continue;
        *ret_kind = patch_types[i].kind;
        return NULL;
    }
    return refusal_new(415, "UnsupportedMediaType", UNKNOWN_PATCH,
                       custom ? "" : ", application/strategic-merge-patch+json");
}

/* The field manager comes from the request. An apply that creates an object answers 201. */
static struct json *apply_object(struct api_request *request, struct write *write, const struct json *config,
                                 int *ret_status)
{
    bool created = false;
    write->manager = http_exchange_query(request->exchange, "fieldManager");
    write->force = api_query_flag(request->exchange, "force");
    if (write->manager == NULL || write->manager[0] == '\0')
        return refusal_new(422, "Invalid",
                           "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for "
                           "apply patch");
    if (json_type(config) != JSON_OBJECT)
        return refusal_bad_request("an apply patch of a %s must be an object", request->resource->kind);
    struct json *refused = registry_write_apply(request->registry, write, config, &created);
    *ret_status = created ? 201 : 200;
    return refused;
}

static struct json *patch_object(struct api_request *request, struct write *write, int *ret_status)
{
    enum patch_kind kind;
    SCOPED_JSON *patch = NULL;
    struct json *refused = api_patch_kind(request, &kind);
    if (refused == NULL)
        refused = api_read_body(request, &patch);
    if (refused)
        return refused;
    if (patch == NULL)
        return refusal_bad_request("a patch needs a body");
    if (kind != PATCH_JSON)
        event_view_take(request->resource, patch);
    if (kind == PATCH_APPLY)
        return apply_object(request, write, patch, ret_status);
    return registry_write_patch(request->registry, write, kind, patch);
}

void api_patch(struct api_request *request)
{
    struct write write;
    int status = 200;
    struct json *refused = api_write_prepare(request, &write);
    if (refused) {
        api_refuse(request, refused);
        return;
    }
    refused = patch_object(request, &write, &status);
    finish(request, &write, status, refused);
}

/* ---- delete ---- */

struct delete_body {
    struct json *json;
    struct delete_options options;
};

static bool is_propagation(const char *word)
{
    return same(word, "Background") || same(word, "Foreground") || same(word, "Orphan");
}

static struct json *read_delete(const struct api_request *request, struct delete_body *ret_body)
{
    struct json *json = NULL;
    struct json *refused = api_read_body(request, &json);
    if (refused)
        return refused;
    const char *propagation = http_exchange_query(request->exchange, "propagationPolicy");
    struct delete_options options = {
        .grace_seconds =
            json_integer_at(json, "gracePeriodSeconds", api_query_integer(request->exchange, "gracePeriodSeconds", -1)),
        .propagation = json_string_at(json, "propagationPolicy", propagation),
        .uid = json_string_at(json, "preconditions.uid", NULL),
        .resource_version = json_string_at(json, "preconditions.resourceVersion", NULL),
    };
    if (json_boolean_at(json, "orphanDependents", false))
        options.propagation = "Orphan";
    if (options.propagation && !is_propagation(options.propagation)) {
        refused =
            refusal_new(422, "Invalid",
                        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"%s\": "
                        "supported values: \"Background\", \"Foreground\", \"Orphan\"",
                        options.propagation);
        json_free(json);
        return refused;
    }
    *ret_body = (struct delete_body){json, options};
    return NULL;
}

static bool asks_dry_run(const struct delete_body *body)
{
    return same(json_string(json_first(json_member(body->json, "dryRun")), ""), "All");
}

/* Carries out a DELETE whose options were read. */
typedef struct json *deletion(struct api_request *request, struct write *write, const struct delete_body *body);

static void delete_by(struct api_request *request, deletion *act)
{
    struct write write;
    struct delete_body body = {0};
    struct json *refused = api_write_prepare(request, &write);
    if (refused) {
        api_refuse(request, refused);
        return;
    }
    refused = read_delete(request, &body);
    write.dry_run |= asks_dry_run(&body);
    if (refused == NULL)
        refused = act(request, &write, &body);
    finish(request, &write, 200, refused);
    json_free(body.json);
}

static struct json *delete_named(struct api_request *request, struct write *write, const struct delete_body *body)
{
    return registry_write_delete(request->registry, write, &body->options);
}

void api_delete(struct api_request *request)
{
    delete_by(request, delete_named);
}

struct collection {
    struct api_selection selection;
    struct json *objects;
};

static bool collect(void *context, struct json *object)
{
    struct collection *collection = context;
    if (api_selection_matches(&collection->selection, object))
        json_append(collection->objects, object);
    else
        json_free(object);
    return true;
}

static void delete_each(struct api_request *request, const struct write *common, const struct delete_options *options,
                        const struct json *objects)
{
    for (const struct json *object = json_first(objects); object; object = json_next(object)) {
        struct write write = *common;
        write.namespace = json_string_at(object, "metadata.namespace", "");
        write.name = json_string_at(object, "metadata.name", "");
        write.result = NULL;
        json_free(registry_write_delete(request->registry, &write, options));
        json_free(write.result);
    }
}

static struct json *list_of(const struct resource *resource, struct json *items)
{
    char text[API_VERSION_TEXT_MAX];
    struct json *list = json_new_object();
    snprintf(text, sizeof text, "%sList", resource->kind);
    json_set_string(list, "kind", text);
    resource_api_version(resource, text);
    json_set_string(list, "apiVersion", text);
    json_set_object(list, "metadata");
    json_set(list, "items", items);
    return list;
}

static struct json *delete_selected(struct api_request *request, struct write *write, const struct delete_body *body)
{
    struct collection collection = {.objects = json_new_array()};
    struct error error = ERROR_INIT;
    const char *namespace = request->path.namespace[0] ? request->path.namespace : NULL;
    struct json *refused = api_selection_parse(request, &collection.selection);
    if (refused == NULL && store_list(registry_store(request->registry), request->resource->storage, namespace, NULL,
                                      NULL, collect, &collection, &error) < 0)
        refused = refusal_from_error(request->resource, "", &error);
    api_selection_release(&collection.selection);
    if (refused) {
        json_free(collection.objects);
        return refused;
    }
    delete_each(request, write, &body->options, collection.objects);
    write->result = list_of(request->resource, collection.objects);
    request->resource = NULL; /* a list is answered as it is */
    request->path.plural[0] = '\0';
    return NULL;
}

void api_delete_collection(struct api_request *request)
{
    delete_by(request, delete_selected);
}
