/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/discovery.h"

#include <stdio.h>
#include <string.h>

static bool same(const char *left, const char *right)
{
    return strcmp(left, right) == 0;
}

/* ---- subresources ---- */

static const struct subresource status_subresource = {"status", NULL, NULL, NULL, {"get", "patch", "update", NULL}};
static const struct subresource scale_subresource = {
    "scale", "Scale", "autoscaling", "v1", {"get", "patch", "update", NULL}};
static const struct subresource pod_subresources[] = {
    {"eviction", "Eviction", "policy", "v1", {"create", NULL}},
    {"log", NULL, NULL, NULL, {"get", NULL}},
};
#define POD_SUBRESOURCES (sizeof pod_subresources / sizeof pod_subresources[0])

const struct subresource *resource_subresource(const struct resource *resource, size_t index)
{
    const struct subresource *all[8];
    size_t count = 0;
    if (resource->has_status)
        all[count++] = &status_subresource;
    if (json_at(resource->version_definition, "subresources.scale"))
        all[count++] = &scale_subresource;
    for (size_t i = 0; i < POD_SUBRESOURCES && same(resource->storage, "pods"); i++)
        all[count++] = &pod_subresources[i];
    return index < count ? all[index] : NULL;
}

/* ---- parts ---- */

static void set_names(struct json *object, const char *key, const char *const *names)
{
    if (names[0] == NULL)
        return;
    struct json *list = json_set_array(object, key);
    for (; *names; names++)
        json_append_string(list, *names);
}

static const char *const verb_texts[] = {
#define X(name, text) text,
    RESOURCE_VERBS(X)
#undef X
};

static void set_verbs(struct json *object, unsigned verbs)
{
    struct json *list = json_set_array(object, "verbs");
    for (size_t i = 0; i < sizeof verb_texts / sizeof verb_texts[0]; i++)
        if (verbs >> i & 1)
            json_append_string(list, verb_texts[i]);
}

static struct json *document(const char *kind, const char *version)
{
    struct json *root = json_new_object();
    json_set_string(root, "kind", kind);
    json_set_string(root, "apiVersion", version);
    return root;
}

/* The first of its group, or of its group and version: where a list names each of them once. */
static bool is_first_of(const struct resource_table *table, const struct resource *resource, bool with_version)
{
    for (const struct resource *r = resource_table_first(table); r != resource; r = r->next)
        if (same(r->group, resource->group) && (!with_version || same(r->version, resource->version)))
            return false;
    return true;
}

/* ---- aggregated ---- */

static void set_response_kind(struct json *object, const char *group, const char *version, const char *kind)
{
    struct json *response = json_set_object(object, "responseKind");
    json_set_string(response, "group", group);
    json_set_string(response, "version", version);
    json_set_string(response, "kind", kind);
}

static void add_aggregated_resource(struct json *resources, const struct resource *r)
{
    struct json *entry = json_append(resources, json_new_object());
    json_set_string(entry, "resource", r->plural);
    set_response_kind(entry, r->group, r->version, r->kind);
    json_set_string(entry, "scope", r->namespaced ? "Namespaced" : "Cluster");
    json_set_string(entry, "singularResource", r->singular);
    set_verbs(entry, r->verbs);
    set_names(entry, "shortNames", r->short_names);
    set_names(entry, "categories", r->categories);
    const struct subresource *sub;
    for (size_t i = 0; (sub = resource_subresource(r, i)); i++) {
        struct json *below = json_append(json_set_array(entry, "subresources"), json_new_object());
        json_set_string(below, "subresource", sub->name);
        set_response_kind(below, sub->kind ? sub->group : r->group, sub->kind ? sub->version : r->version,
                          sub->kind ? sub->kind : r->kind);
        set_names(below, "verbs", sub->verbs);
    }
}

static void add_aggregated_version(struct json *versions, const struct resource *first)
{
    struct json *version = json_append(versions, json_new_object());
    json_set_string(version, "version", first->version);
    struct json *resources = json_set_array(version, "resources");
    for (const struct resource *r = first; r; r = r->next)
        if (same(r->group, first->group) && same(r->version, first->version))
            add_aggregated_resource(resources, r);
    json_set_string(version, "freshness", "Current");
}

static void add_aggregated_group(const struct resource_table *table, struct json *items, const struct resource *first)
{
    struct json *group = json_append(items, json_new_object());
    struct json *metadata = json_set_object(group, "metadata");
    if (first->group[0])
        json_set_string(metadata, "name", first->group);
    json_set(metadata, "creationTimestamp", json_new_null());
    struct json *versions = json_set_array(group, "versions");
    for (const struct resource *r = first; r; r = r->next)
        if (same(r->group, first->group) && is_first_of(table, r, true))
            add_aggregated_version(versions, r);
}

struct json *discovery_aggregated(const struct resource_table *table, bool core)
{
    struct json *list = document("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2");
    json_set_object(list, "metadata");
    struct json *items = json_set_array(list, "items");
    for (const struct resource *r = resource_table_first(table); r; r = r->next)
        if ((r->group[0] == '\0') == core && is_first_of(table, r, false))
            add_aggregated_group(table, items, r);
    return list;
}

/* ---- one document a group ---- */

struct json *discovery_core_versions(const char *server_address)
{
    struct json *versions = json_new_object();
    json_set_string(versions, "kind", "APIVersions");
    json_append_string(json_set_array(versions, "versions"), "v1");
    struct json *address = json_append(json_set_array(versions, "serverAddressByClientCIDRs"), json_new_object());
    json_set_string(address, "clientCIDR", "0.0.0.0/0");
    json_set_string(address, "serverAddress", server_address);
    return versions;
}

static void set_group_version(struct json *object, const struct resource *resource)
{
    char text[API_VERSION_TEXT_MAX];
    resource_api_version(resource, text);
    json_set_string(object, "groupVersion", text);
    json_set_string(object, "version", resource->version);
}

static void fill_group(const struct resource_table *table, struct json *group, const struct resource *first)
{
    json_set_string(group, "name", first->group);
    struct json *versions = json_set_array(group, "versions");
    for (const struct resource *r = first; r; r = r->next)
        if (same(r->group, first->group) && is_first_of(table, r, true))
            set_group_version(json_append(versions, json_new_object()), r);
    set_group_version(json_set_object(group, "preferredVersion"), first);
}

struct json *discovery_groups(const struct resource_table *table)
{
    struct json *list = document("APIGroupList", "v1");
    struct json *groups = json_set_array(list, "groups");
    for (const struct resource *r = resource_table_first(table); r; r = r->next)
        if (r->group[0] && is_first_of(table, r, false))
            fill_group(table, json_append(groups, json_new_object()), r);
    return list;
}

struct json *discovery_group(const struct resource_table *table, const char *group)
{
    struct json *root = document("APIGroup", "v1");
    for (const struct resource *r = resource_table_first(table); r; r = r->next)
        if (same(r->group, group) && is_first_of(table, r, false))
            fill_group(table, root, r);
    return root;
}

static void add_resource(struct json *resources, const struct resource *r)
{
    struct json *entry = json_append(resources, json_new_object());
    json_set_string(entry, "name", r->plural);
    json_set_string(entry, "singularName", r->singular);
    json_set(entry, "namespaced", json_new_boolean(r->namespaced));
    json_set_string(entry, "kind", r->kind);
    set_verbs(entry, r->verbs);
    set_names(entry, "shortNames", r->short_names);
    set_names(entry, "categories", r->categories);
    const struct subresource *sub;
    for (size_t i = 0; (sub = resource_subresource(r, i)); i++) {
        char name[256];
        snprintf(name, sizeof name, "%s/%s", r->plural, sub->name);
        struct json *below = json_append(resources, json_new_object());
        json_set_string(below, "name", name);
        json_set_string(below, "singularName", "");
        json_set(below, "namespaced", json_new_boolean(r->namespaced));
        if (sub->kind) {
            json_set_string(below, "group", sub->group);
            json_set_string(below, "version", sub->version);
        }
        json_set_string(below, "kind", sub->kind ? sub->kind : r->kind);
        set_names(below, "verbs", sub->verbs);
    }
}

struct json *discovery_resources(const struct resource_table *table, const char *group, const char *version)
{
    char text[API_VERSION_TEXT_MAX];
    snprintf(text, sizeof text, "%s%s%s", group, group[0] ? "/" : "", version);
    struct json *list = document("APIResourceList", "v1");
    json_set_string(list, "groupVersion", text);
    struct json *resources = json_set_array(list, "resources");
    for (const struct resource *r = resource_table_first(table); r; r = r->next)
        if (same(r->group, group) && same(r->version, version))
            add_resource(resources, r);
    return list;
}
