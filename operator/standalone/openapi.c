/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/crc32c.h"
#include "operator/standalone/discovery.h"

#define METADATA_SCHEMA "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
#define DOCUMENT_MAX (16 << 20)

static struct json *kind_of(const struct resource *resource)
{
    struct json *kind = json_new_object();
    json_set_string(kind, "group", resource->group);
    json_set_string(kind, "kind", resource->kind);
    json_set_string(kind, "version", resource->version);
    return kind;
}

/* "dev.coxswain.v1beta1.TrainingJob", "io.k8s.api.core.v1.Pod": the group's parts in reverse. */
static void schema_name(const struct resource *resource, char *text, size_t size)
{
    size_t used = 0;
    if (!resource->definition) {
        const char *dot = strchr(resource->group, '.');
        int length = dot ? (int)(dot - resource->group) : (int)strlen(resource->group);
        snprintf(text, size, "io.k8s.api.%.*s.%s.%s", length ? length : 4, length ? resource->group : "core",
                 resource->version, resource->kind);
        return;
    }
    const char *end = resource->group + strlen(resource->group);
    while (end > resource->group && used + 1 < size) {
        const char *start = end;
        while (start > resource->group && start[-1] != '.')
            start--;
        used += (size_t)snprintf(text + used, size - used, "%.*s.", (int)(end - start), start);
        end = start > resource->group ? start - 1 : start;
    }
    if (used < size)
        snprintf(text + used, size - used, "%s.%s", resource->version, resource->kind);
}

/* ---- schemas ---- */

static void add_property(struct json *properties, const char *name, const char *type, const char *description)
{
    struct json *property = json_set_object(properties, name);
    json_set_string(property, "description", description);
    json_set_string(property, "type", type);
}

static struct json *outline(const struct resource *resource)
{
    struct json *schema = json_new_object();
    char description[256];
    snprintf(description, sizeof description, "%s, as far as the embedded control plane keeps it.", resource->kind);
    json_set_string(schema, "description", description);
    json_set_string(schema, "type", "object");
    struct json *properties = json_set_object(schema, "properties");
    static const char *const free_form[] = {"spec", "status", "data"};
    for (size_t i = 0; i < sizeof free_form / sizeof free_form[0]; i++) {
        add_property(properties, free_form[i], "object", "Kept as given.");
        json_set(json_member(properties, free_form[i]), "x-kubernetes-preserve-unknown-fields", json_new_boolean(true));
    }
    return schema;
}

static struct json *schema_of(const struct resource *resource)
{
    const struct json *given = json_at(resource->version_definition, "schema.openAPIV3Schema");
    struct json *schema = given ? json_copy(given) : outline(resource);
    struct json *properties = json_set_object(schema, "properties");
    add_property(properties, "apiVersion", "string", "The versioned schema of this representation of an object.");
    add_property(properties, "kind", "string", "The REST resource that this object represents.");
    json_remove(properties, "metadata");
    struct json *metadata = json_set_object(properties, "metadata");
    json_set_string(metadata, "description", "Standard object's metadata.");
    json_set_string(json_append(json_set_array(metadata, "allOf"), json_new_object()), "$ref",
                    "#/components/schemas/" METADATA_SCHEMA);
    json_append(json_set_array(schema, "x-kubernetes-group-version-kind"), kind_of(resource));
    return schema;
}

static struct json *metadata_schema(void)
{
    struct json *schema = json_new_object();
    json_set_string(schema, "description", "Metadata that all persisted resources have.");
    json_set_string(schema, "type", "object");
    struct json *properties = json_set_object(schema, "properties");
    static const char *const fields[][3] = {
        {"name", "string", "Unique within a namespace; cannot be updated."},
        {"generateName", "string", "A prefix from which the server makes a unique name."},
        {"namespace", "string", "The space within which each name must be unique."},
        {"labels", "object", "Keys and values to organise and select objects by."},
        {"annotations", "object", "Keys and values that tools store and that are not selected by."},
        {"ownerReferences", "array", "Objects this one depends on; it goes when all of them are gone."},
        {"finalizers", "array", "Must be empty before the object is removed."},
        {"uid", "string", "Unique in time and space; set by the server."},
        {"resourceVersion", "string", "Changes with every write; set by the server."},
        {"generation", "integer", "Raised when the desired state changes; set by the server."},
        {"creationTimestamp", "string", "When the object was created; set by the server."},
        {"deletionTimestamp", "string", "When the object will be gone; set by a delete."},
        {"deletionGracePeriodSeconds", "integer", "Time to end gracefully; set by a delete."},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        add_property(properties, fields[i][0], fields[i][1], fields[i][2]);
    struct json *strings = json_set_object(json_member(properties, "labels"), "additionalProperties");
    json_set_string(strings, "type", "string");
    json_set(json_member(properties, "annotations"), "additionalProperties", json_copy(strings));
    json_set(json_member(properties, "finalizers"), "items", json_copy(strings));
    json_set_string(json_set_object(json_member(properties, "ownerReferences"), "items"), "type", "object");
    return schema;
}

/* ---- paths ---- */

static struct json *query_parameter(const char *name)
{
    struct json *parameter = json_new_object();
    json_set_string(parameter, "name", name);
    json_set_string(parameter, "in", "query");
    json_set_string(json_set_object(parameter, "schema"), "type", "string");
    return parameter;
}

static void add_operation(struct json *path, const char *method, const char *action, const struct resource *resource)
{
    struct json *operation = json_set_object(path, method);
    struct json *parameters = json_set_array(operation, "parameters");
    if (strcmp(action, "get") != 0 && strcmp(action, "list") != 0 && strcmp(action, "delete") != 0) {
        json_append(parameters, query_parameter("dryRun"));
        json_append(parameters, query_parameter("fieldValidation"));
    }
    struct json *ok = json_set_object(json_set_object(operation, "responses"), "200");
    json_set_string(ok, "description", "OK");
    json_set_string(operation, "x-kubernetes-action", action);
    json_set(operation, "x-kubernetes-group-version-kind", kind_of(resource));
}

static void add_paths(struct json *paths, const struct resource *r)
{
    char version[API_VERSION_TEXT_MAX], collection[512], item[600];
    resource_api_version(r, version);
    snprintf(collection, sizeof collection, "/%s/%s%s/%s", r->group[0] ? "apis" : "api", version,
             r->namespaced ? "/namespaces/{namespace}" : "", r->plural);
    snprintf(item, sizeof item, "%s/{name}", collection);
    struct json *path = json_set_object(paths, collection);
    add_operation(path, "get", "list", r);
    add_operation(path, "post", "post", r);
    path = json_set_object(paths, item);
    add_operation(path, "get", "get", r);
    add_operation(path, "put", "put", r);
    add_operation(path, "patch", "patch", r);
    add_operation(path, "delete", "delete", r);
}

static void set_info(struct json *root)
{
    struct json *info = json_set_object(root, "info");
    json_set_string(info, "title", "Coxswain embedded control plane");
    json_set_string(info, "version", "v1");
}

/* ---- documents ---- */

struct json *openapi_document(const struct resource_table *table, const char *group, const char *version)
{
    struct json *root = json_new_object();
    json_set_string(root, "openapi", "3.0.0");
    set_info(root);
    struct json *paths = json_set_object(root, "paths");
    struct json *schemas = json_set_object(json_set_object(root, "components"), "schemas");
    json_set(schemas, METADATA_SCHEMA, metadata_schema());
    for (const struct resource *r = resource_table_first(table); r; r = r->next) {
        char name[512];
        if (strcmp(r->group, group) != 0 || strcmp(r->version, version) != 0)
            continue;
        schema_name(r, name, sizeof name);
        json_set(schemas, name, schema_of(r));
        add_paths(paths, r);
    }
    return root;
}

/* Clients keep a document as long as its hash stays. */
static uint32_t document_hash(const struct json *value)
{
    SCOPED_BUFFER text = BUFFER_INIT(DOCUMENT_MAX);
    json_print(value, &text, NULL);
    return crc32c(0, buffer_text(&text), text.length);
}

struct json *openapi_index(const struct resource_table *table)
{
    struct json *root = json_new_object();
    struct json *paths = json_set_object(root, "paths");
    for (const struct resource *r = resource_table_first(table); r; r = r->next) {
        char version[API_VERSION_TEXT_MAX], key[256], url[512];
        resource_api_version(r, version);
        snprintf(key, sizeof key, "%s/%s", r->group[0] ? "apis" : "api", version);
        if (json_member(paths, key))
            continue;
        SCOPED_JSON *content = openapi_document(table, r->group, r->version);
        snprintf(url, sizeof url, "/openapi/v3/%s?hash=%08x", key, document_hash(content));
        json_set_string(json_set_object(paths, key), "serverRelativeURL", url);
    }
    return root;
}
