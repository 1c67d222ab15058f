/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "operator/standalone/json_path.h"

typedef struct json *cell_maker(const struct json *object, int64_t now_ms);

struct column {
    const char *name;
    const char *path; /* JSONPath, or NULL: `make` */
    cell_maker *make;
    const char *type; /* "date": shown as an age */
    int priority;     /* above 0: only with -o wide */
};

static struct json *text_cell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static struct json *text_cell(const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return json_new_string(text);
}

static struct json *age_cell(const struct json *value, int64_t now_ms)
{
    int64_t when_ms;
    char age[32];
    if (!clock_parse(json_string(value, ""), &when_ms))
        return json_new_string("<unknown>");
    clock_format_duration(now_ms - when_ms, age, sizeof age);
    return json_new_string(age);
}

/* ---- pods ---- */

static struct json *pod_ready(const struct json *pod, int64_t now_ms)
{
    unsigned ready = 0;
    (void)now_ms;
    const struct json *statuses = json_at(pod, "status.containerStatuses");
    for (const struct json *status = json_first(statuses); status; status = json_next(status))
        ready += json_boolean_at(status, "ready", false);
    return text_cell("%u/%zu", ready, json_count(json_at(pod, "spec.containers")));
}

static void container_reason(const struct json *status, char *reason, size_t size)
{
    const char *waiting = json_string_at(status, "state.waiting.reason", "");
    const struct json *terminated = json_at(status, "state.terminated");
    const char *why = json_string_at(terminated, "reason", "");
    if (waiting[0])
        snprintf(reason, size, "%s", waiting);
    else if (why[0])
        snprintf(reason, size, "%s", why);
    else if (terminated && json_integer_at(terminated, "signal", 0))
        snprintf(reason, size, "Signal:%" PRId64, json_integer_at(terminated, "signal", 0));
    else if (terminated)
        snprintf(reason, size, "ExitCode:%" PRId64, json_integer_at(terminated, "exitCode", 0));
}

static struct json *pod_status(const struct json *pod, int64_t now_ms)
{
    char reason[256];
    (void)now_ms;
    const char *phase = json_string_at(pod, "status.phase", "Unknown");
    snprintf(reason, sizeof reason, "%s", json_string_at(pod, "status.reason", phase));
    const struct json *statuses = json_at(pod, "status.containerStatuses");
    for (const struct json *status = json_first(statuses); status; status = json_next(status))
        container_reason(status, reason, sizeof reason);
    bool over = strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
    if (json_at(pod, "metadata.deletionTimestamp") && !over)
        return json_new_string("Terminating");
    return json_new_string(reason);
}

static struct json *pod_restarts(const struct json *pod, int64_t now_ms)
{
    int64_t restarts = 0;
    (void)now_ms;
    const struct json *statuses = json_at(pod, "status.containerStatuses");
    for (const struct json *status = json_first(statuses); status; status = json_next(status))
        restarts += json_integer_at(status, "restartCount", 0);
    return text_cell("%" PRId64, restarts);
}

static struct json *none(const struct json *object, int64_t now_ms)
{
    (void)object, (void)now_ms;
    return json_new_string("<none>");
}

static struct json *or_none(const struct json *value)
{
    const char *text = json_string(value, "");
    return json_new_string(text[0] ? text : "<none>");
}

static struct json *pod_ip(const struct json *pod, int64_t now_ms)
{
    (void)now_ms;
    return or_none(json_at(pod, "status.podIP"));
}

static struct json *pod_node(const struct json *pod, int64_t now_ms)
{
    (void)now_ms;
    return or_none(json_at(pod, "spec.nodeName"));
}

/* ---- other built-in types ---- */

static struct json *service_ports(const struct json *service, int64_t now_ms)
{
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    (void)now_ms;
    const struct json *ports = json_at(service, "spec.ports");
    for (const struct json *port = json_first(ports); port; port = json_next(port))
        buffer_format(&text, "%s%" PRId64 "/%s", text.length ? "," : "", json_integer_at(port, "port", 0),
                      json_string_at(port, "protocol", "TCP"));
    return json_new_string(text.length ? buffer_text(&text) : "<none>");
}

static struct json *service_ip(const struct json *service, int64_t now_ms)
{
    (void)now_ms;
    return or_none(json_at(service, "spec.clusterIP"));
}

static struct json *service_selector(const struct json *service, int64_t now_ms)
{
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    (void)now_ms;
    const struct json *labels = json_at(service, "spec.selector");
    for (const struct json *label = json_first(labels); label; label = json_next(label))
        buffer_format(&text, "%s%s=%s", text.length ? "," : "", json_key(label), json_string(label, ""));
    return json_new_string(text.length ? buffer_text(&text) : "<none>");
}

static struct json *data_count(const struct json *object, int64_t now_ms)
{
    (void)now_ms;
    return json_new_integer(
        (int64_t)(json_count(json_member(object, "data")) + json_count(json_member(object, "binaryData"))));
}

static struct json *event_object(const struct json *event, int64_t now_ms)
{
    char kind[128];
    (void)now_ms;
    snprintf(kind, sizeof kind, "%s", json_string_at(event, "involvedObject.kind", ""));
    for (char *c = kind; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 'a' - 'A' : *c);
    return text_cell("%s/%s", kind, json_string_at(event, "involvedObject.name", ""));
}

static struct json *event_last_seen(const struct json *event, int64_t now_ms)
{
    static const char *const times[] = {"series.lastObservedTime", "lastTimestamp", "eventTime", "firstTimestamp"};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (json_string(json_at(event, times[i]), "")[0])
            return age_cell(json_at(event, times[i]), now_ms);
    return json_new_string("<unknown>");
}

static struct json *event_source(const struct json *event, int64_t now_ms)
{
    (void)now_ms;
    return json_new_string(json_string_at(event, "source.component", json_string_at(event, "reportingComponent", "")));
}

static struct json *event_count(const struct json *event, int64_t now_ms)
{
    (void)now_ms;
    return json_new_integer(json_integer_at(event, "series.count", json_integer_at(event, "count", 1)));
}

static struct json *node_status(const struct json *node, int64_t now_ms)
{
    (void)now_ms;
    const struct json *ready = json_path_first(node, ".status.conditions[?(@.type==\"Ready\")].status");
    return json_new_string(strcmp(json_string(ready, ""), "True") == 0 ? "Ready" : "NotReady");
}

static struct json *claim_modes(const struct json *claim, int64_t now_ms)
{
    static const char *const shorts[][2] = {
        {"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"}, {"ReadWriteMany", "RWX"}, {"ReadWriteOncePod", "RWOP"}};
    SCOPED_BUFFER text = BUFFER_INIT(256);
    (void)now_ms;
    const struct json *modes = json_at(claim, "status.accessModes");
    for (const struct json *mode = json_first(modes); mode; mode = json_next(mode))
        for (size_t i = 0; i < sizeof shorts / sizeof shorts[0]; i++)
            if (strcmp(json_string(mode, ""), shorts[i][0]) == 0)
                buffer_format(&text, "%s%s", text.length ? "," : "", shorts[i][1]);
    return json_new_string(buffer_text(&text));
}

#define NAME_COLUMN                                                                                                    \
    {                                                                                                                  \
        "Name", ".metadata.name", NULL, "string", 0                                                                    \
    }
#define AGE_COLUMN                                                                                                     \
    {                                                                                                                  \
        "Age", ".metadata.creationTimestamp", NULL, "date", 0                                                          \
    }

static const struct column pod_columns[] = {
    NAME_COLUMN,
    {"Ready", NULL, pod_ready, "string", 0},
    {"Status", NULL, pod_status, "string", 0},
    {"Restarts", NULL, pod_restarts, "string", 0},
    AGE_COLUMN,
    {"IP", NULL, pod_ip, "string", 1},
    {"Node", NULL, pod_node, "string", 1},
    {"Nominated Node", NULL, none, "string", 1},
    {"Readiness Gates", NULL, none, "string", 1},
    {NULL},
};
static const struct column service_columns[] = {
    NAME_COLUMN,
    {"Type", ".spec.type", NULL, "string", 0},
    {"Cluster-IP", NULL, service_ip, "string", 0},
    {"External-IP", NULL, none, "string", 0},
    {"Port(s)", NULL, service_ports, "string", 0},
    AGE_COLUMN,
    {"Selector", NULL, service_selector, "string", 1},
    {NULL},
};
static const struct column namespace_columns[] = {
    NAME_COLUMN, {"Status", ".status.phase", NULL, "string", 0}, AGE_COLUMN, {NULL}};
static const struct column configmap_columns[] = {
    NAME_COLUMN, {"Data", NULL, data_count, "integer", 0}, AGE_COLUMN, {NULL}};
static const struct column secret_columns[] = {
    NAME_COLUMN, {"Type", ".type", NULL, "string", 0}, {"Data", NULL, data_count, "integer", 0}, AGE_COLUMN, {NULL}};
static const struct column event_columns[] = {
    {"Last Seen", NULL, event_last_seen, "string", 0},  {"Type", ".type", NULL, "string", 0},
    {"Reason", ".reason", NULL, "string", 0},           {"Object", NULL, event_object, "string", 0},
    {"Source", NULL, event_source, "string", 1},        {"Message", ".message", NULL, "string", 0},
    {"First Seen", ".firstTimestamp", NULL, "date", 1}, {"Count", NULL, event_count, "integer", 1},
    {"Name", ".metadata.name", NULL, "string", 1},      {NULL},
};
static const struct column node_columns[] = {
    NAME_COLUMN,
    {"Status", NULL, node_status, "string", 0},
    {"Roles", NULL, none, "string", 0},
    AGE_COLUMN,
    {"Version", ".status.nodeInfo.kubeletVersion", NULL, "string", 0},
    {"Internal-IP", ".status.addresses[?(@.type==\"InternalIP\")].address", NULL, "string", 1},
    {"OS-Image", ".status.nodeInfo.osImage", NULL, "string", 1},
    {"Kernel-Version", ".status.nodeInfo.kernelVersion", NULL, "string", 1},
    {NULL},
};
static const struct column claim_columns[] = {
    NAME_COLUMN,
    {"Status", ".status.phase", NULL, "string", 0},
    {"Volume", ".spec.volumeName", NULL, "string", 0},
    {"Capacity", ".status.capacity.storage", NULL, "string", 0},
    {"Access Modes", NULL, claim_modes, "string", 0},
    {"StorageClass", ".spec.storageClassName", NULL, "string", 0},
    AGE_COLUMN,
    {NULL},
};
static const struct column lease_columns[] = {
    NAME_COLUMN, {"Holder", ".spec.holderIdentity", NULL, "string", 0}, AGE_COLUMN, {NULL}};
static const struct column definition_columns[] = {
    NAME_COLUMN, {"Created At", ".metadata.creationTimestamp", NULL, "string", 0}, {NULL}};
static const struct column plain_columns[] = {NAME_COLUMN, AGE_COLUMN, {NULL}};

static const struct {
    const char *storage;
    const struct column *columns;
} builtin_columns[] = {
    {"pods", pod_columns},
    {"services", service_columns},
    {"namespaces", namespace_columns},
    {"configmaps", configmap_columns},
    {"secrets", secret_columns},
    {"events", event_columns},
    {"nodes", node_columns},
    {"persistentvolumeclaims", claim_columns},
    {"leases.coordination.k8s.io", lease_columns},
    {"customresourcedefinitions.apiextensions.k8s.io", definition_columns},
};

static const struct column *columns_of(const struct resource *resource)
{
    for (size_t i = 0; i < sizeof builtin_columns / sizeof builtin_columns[0]; i++)
        if (strcmp(builtin_columns[i].storage, resource->storage) == 0)
            return builtin_columns[i].columns;
    return plain_columns;
}

/* ---- cells from a JSONPath ---- */

struct joined {
    struct buffer text;
    unsigned count;
    const struct json *only;
};

static bool join(void *context, const struct json *value)
{
    struct joined *joined = context;
    joined->only = joined->count++ ? NULL : value;
    if (joined->text.length)
        buffer_append_string(&joined->text, ",", NULL);
    if (json_type(value) == JSON_STRING)
        buffer_append_string(&joined->text, json_string(value, ""), NULL);
    else
        json_print(value, &joined->text, NULL);
    return true;
}

static struct json *path_cell(const struct json *object, const char *path, const char *type, int64_t now_ms)
{
    struct joined joined = {0};
    struct json *cell = NULL;
    buffer_init(&joined.text, 65536);
    json_path_visit(object, path, join, &joined);
    if (joined.count == 0 || json_type(joined.only) == JSON_NULL)
        cell = json_new_null();
    else if (strcmp(type, "date") == 0)
        cell = age_cell(joined.only, now_ms);
    else if (joined.only && (json_type(joined.only) == JSON_NUMBER || json_type(joined.only) == JSON_BOOLEAN) &&
             strcmp(type, "string") != 0)
        cell = json_copy(joined.only);
    else
        cell = json_new_string(buffer_text(&joined.text));
    buffer_release(&joined.text);
    return cell;
}

/* ---- tables ---- */

static void define_column(struct json *definitions, const char *name, const char *type, const char *format,
                          const char *description, int64_t priority)
{
    struct json *definition = json_append(definitions, json_new_object());
    json_set_string(definition, "name", name);
    json_set_string(definition, "type", type);
    json_set_string(definition, "format", format);
    json_set_string(definition, "description", description);
    json_set_integer(definition, "priority", priority);
}

static void define_column_of_path(struct json *definitions, const struct json *column)
{
    define_column(definitions, json_string_at(column, "name", ""), json_string_at(column, "type", "string"),
                  json_string_at(column, "format", ""), json_string_at(column, "description", ""),
                  json_integer_at(column, "priority", 0));
}

static const struct json *printer_columns(const struct resource *resource)
{
    return json_member(resource->version_definition, "additionalPrinterColumns");
}

struct json *table_new(const struct resource *resource)
{
    struct json *table = json_new_object();
    json_set_string(table, "kind", "Table");
    json_set_string(table, "apiVersion", "meta.k8s.io/v1");
    json_set_object(table, "metadata");
    struct json *definitions = json_set_array(table, "columnDefinitions");
    const struct json *custom = printer_columns(resource);
    if (custom)
        define_column(definitions, "Name", "string", "name", "", 0);
    for (const struct json *column = json_first(custom); column; column = json_next(column))
        define_column_of_path(definitions, column);
    for (const struct column *column = columns_of(resource); column->name && !custom; column++)
        define_column(definitions, column->name, strcmp(column->type, "date") == 0 ? "string" : column->type,
                      strcmp(column->name, "Name") == 0 ? "name" : "", "", column->priority);
    json_set_array(table, "rows");
    return table;
}

static void add_custom_cells(struct json *cells, const struct resource *resource, const struct json *object,
                             int64_t now_ms)
{
    json_append_string(cells, json_string_at(object, "metadata.name", ""));
    for (const struct json *column = json_first(printer_columns(resource)); column; column = json_next(column))
        json_append(cells, path_cell(object, json_string_at(column, "jsonPath", ""),
                                     json_string_at(column, "type", "string"), now_ms));
}

static void add_builtin_cells(struct json *cells, const struct resource *resource, const struct json *object,
                              int64_t now_ms)
{
    for (const struct column *column = columns_of(resource); column->name; column++)
        json_append(cells, column->path ? path_cell(object, column->path, column->type, now_ms)
                                        : column->make(object, now_ms));
}

static struct json *metadata_only(const struct json *object)
{
    struct json *partial = json_new_object();
    json_set_string(partial, "kind", "PartialObjectMetadata");
    json_set_string(partial, "apiVersion", "meta.k8s.io/v1");
    json_set(partial, "metadata", json_copy(json_member(object, "metadata")));
    return partial;
}

void table_add_row(struct json *table, const struct resource *resource, const struct json *object,
                   enum table_include include, int64_t now_ms)
{
    struct json *row = json_append(json_member(table, "rows"), json_new_object());
    struct json *cells = json_set_array(row, "cells");
    if (printer_columns(resource))
        add_custom_cells(cells, resource, object, now_ms);
    else
        add_builtin_cells(cells, resource, object, now_ms);
    if (include == TABLE_INCLUDE_METADATA)
        json_set(row, "object", metadata_only(object));
    if (include == TABLE_INCLUDE_OBJECT)
        json_set(row, "object", json_copy(object));
}
