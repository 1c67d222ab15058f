/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/resource.h"

#include <stdio.h>
#include <string.h>

#include "common/memory.h"

#define READ_VERBS (VERB_GET | VERB_LIST | VERB_WATCH)
#define ALL_VERBS (READ_VERBS | VERB_CREATE | VERB_UPDATE | VERB_PATCH | VERB_DELETE | VERB_DELETE_COLLECTION)

#define CRD_GROUP "apiextensions.k8s.io"

#define NONE                                                                                                           \
    {                                                                                                                  \
        NULL                                                                                                           \
    }
#define NAMES(...)                                                                                                     \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define TYPE(group_, plural_, singular_, kind_, storage_, short_names_, categories_, namespaced_, status_,             \
             generation_, verbs_)                                                                                      \
    {                                                                                                                  \
        .group = group_, .version = "v1", .plural = plural_, .singular = singular_, .kind = kind_,                     \
        .storage = storage_, .short_names = short_names_, .categories = categories_, .namespaced = namespaced_,        \
        .has_status = status_, .has_generation = generation_, .verbs = verbs_                                          \
    }

/* group, plural, singular, kind, name in the store, short names, categories, namespaced, status, generation, verbs */
/* clang-format off */
static const struct resource builtin[] = {
    TYPE("", "configmaps", "configmap", "ConfigMap", "configmaps", NAMES("cm"), NONE, true, false, false, ALL_VERBS),
    TYPE("", "endpoints", "endpoints", "Endpoints", "endpoints", NAMES("ep"), NONE, true, false, false, ALL_VERBS),
    TYPE("", "events", "event", "Event", "events", NAMES("ev"), NONE, true, false, false, ALL_VERBS),
    TYPE("", "namespaces", "namespace", "Namespace", "namespaces", NAMES("ns"), NONE, false, true, false, ALL_VERBS & ~VERB_DELETE_COLLECTION),
    TYPE("", "nodes", "node", "Node", "nodes", NAMES("no"), NONE, false, true, false, READ_VERBS),
    TYPE("", "persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim", "persistentvolumeclaims", NAMES("pvc"), NONE, true, true, false, ALL_VERBS),
    TYPE("", "pods", "pod", "Pod", "pods", NAMES("po"), NAMES("all"), true, true, true, ALL_VERBS),
    TYPE("", "secrets", "secret", "Secret", "secrets", NONE, NONE, true, false, false, ALL_VERBS),
    TYPE("", "serviceaccounts", "serviceaccount", "ServiceAccount", "serviceaccounts", NAMES("sa"), NONE, true, false, false, ALL_VERBS),
    TYPE("", "services", "service", "Service", "services", NAMES("svc"), NAMES("all"), true, true, false, ALL_VERBS),
    TYPE(CRD_GROUP, "customresourcedefinitions", "customresourcedefinition", "CustomResourceDefinition", "customresourcedefinitions." CRD_GROUP, NAMES("crd", "crds"), NAMES("api-extensions"), false, true, true, ALL_VERBS),
    TYPE("coordination.k8s.io", "leases", "lease", "Lease", "leases.coordination.k8s.io", NONE, NONE, true, false, false, ALL_VERBS),
    TYPE("events.k8s.io", "events", "event", "Event", "events", NAMES("ev"), NONE, true, false, false, ALL_VERBS),
};
/* clang-format on */

struct resource_table {
    struct resource *first;
};

static struct resource **end_of(struct resource_table *table)
{
    struct resource **end = &table->first;
    while (*end)
        end = &(*end)->next;
    return end;
}

struct resource_table *resource_table_new(void)
{
    struct resource_table *table = memory_allocate(1, sizeof *table);
    for (size_t i = 0; i < sizeof builtin / sizeof builtin[0]; i++) {
        struct resource **end = end_of(table);
        *end = memory_allocate(1, sizeof **end);
        **end = builtin[i];
    }
    return table;
}

static void resource_free(struct resource *resource)
{
    json_free(resource->definition);
    free(resource);
}

void resource_table_free(struct resource_table *table)
{
    if (table == NULL)
        return;
    while (table->first) {
        struct resource *resource = table->first;
        table->first = resource->next;
        resource_free(resource);
    }
    free(table);
}

const struct resource *resource_table_first(const struct resource_table *table)
{
    return table->first;
}

static bool same(const char *left, const char *right)
{
    return strcmp(left, right) == 0;
}

const struct resource *resource_find(const struct resource_table *table, const char *group, const char *version,
                                     const char *plural)
{
    for (const struct resource *r = table->first; r; r = r->next)
        if (same(r->group, group) && same(r->version, version) && same(r->plural, plural))
            return r;
    return NULL;
}

const struct resource *resource_find_plural(const struct resource_table *table, const char *plural)
{
    for (const struct resource *r = table->first; r; r = r->next)
        if (same(r->plural, plural))
            return r;
    return NULL;
}

const struct resource *resource_find_storage(const struct resource_table *table, const char *storage)
{
    for (const struct resource *r = table->first; r; r = r->next)
        if (same(r->storage, storage))
            return r;
    return NULL;
}

const struct resource *resource_find_kind(const struct resource_table *table, const char *group, const char *kind)
{
    for (const struct resource *r = table->first; r; r = r->next)
        if (same(r->group, group) && same(r->kind, kind))
            return r;
    return NULL;
}

bool resource_group_exists(const struct resource_table *table, const char *group, const char *version)
{
    for (const struct resource *r = table->first; r; r = r->next)
        if (same(r->group, group) && (version == NULL || same(r->version, version)))
            return true;
    return false;
}

/* ---- CustomResourceDefinitions ---- */

static const struct json *storage_version(const struct json *definition)
{
    const struct json *versions = json_at(definition, "spec.versions");
    for (const struct json *version = json_first(versions); version; version = json_next(version))
        if (json_boolean_at(version, "served", false) && json_boolean_at(version, "storage", false))
            return version;
    return NULL;
}

static void copy_names(const struct json *names, const char *into[RESOURCE_NAMES_MAX + 1])
{
    size_t count = 0;
    for (const struct json *name = json_first(names); name && count < RESOURCE_NAMES_MAX; name = json_next(name))
        into[count++] = json_string(name, "");
}

static int fill_from_definition(struct resource *resource, struct error *error)
{
    const struct json *definition = resource->definition;
    const struct json *version = storage_version(definition);
    const struct json *names = json_at(definition, "spec.names");
    resource->group = json_string_at(definition, "spec.group", NULL);
    resource->plural = json_string_at(names, "plural", NULL);
    resource->kind = json_string_at(names, "kind", NULL);
    resource->storage = json_string_at(definition, "metadata.name", NULL);
    if (version == NULL || !resource->group || !resource->plural || !resource->kind || !resource->storage)
        return error_set(
            error, ERROR_INVALID,
            "a CustomResourceDefinition needs metadata.name, spec.group, spec.names.kind and plural, and one served "
            "storage version");
    resource->version = json_string_at(version, "name", "");
    resource->singular = json_string_at(names, "singular", resource->kind);
    copy_names(json_member(names, "shortNames"), resource->short_names);
    copy_names(json_member(names, "categories"), resource->categories);
    resource->namespaced = same(json_string_at(definition, "spec.scope", "Namespaced"), "Namespaced");
    resource->version_definition = version;
    resource->has_status = json_at(version, "subresources.status") != NULL;
    resource->has_generation = true;
    resource->verbs = ALL_VERBS;
    return 0;
}

int resource_define(struct resource_table *table, const struct json *definition, struct error *error)
{
    struct resource *resource = memory_allocate(1, sizeof *resource);
    resource->definition = json_copy(definition);
    if (fill_from_definition(resource, error) < 0) {
        resource_free(resource);
        return -1;
    }
    resource_undefine(table, resource->storage);
    *end_of(table) = resource;
    return 0;
}

void resource_undefine(struct resource_table *table, const char *storage)
{
    for (struct resource **at = &table->first; *at; at = &(*at)->next) {
        struct resource *resource = *at;
        if (resource->definition && same(resource->storage, storage)) {
            *at = resource->next;
            resource_free(resource);
            return;
        }
    }
}

/* ---- names ---- */

void resource_api_version(const struct resource *resource, char text[API_VERSION_TEXT_MAX])
{
    snprintf(text, API_VERSION_TEXT_MAX, "%s%s%s", resource->group, resource->group[0] ? "/" : "", resource->version);
}

void resource_qualified(const struct resource *resource, char text[API_VERSION_TEXT_MAX])
{
    snprintf(text, API_VERSION_TEXT_MAX, "%s%s%s", resource->plural, resource->group[0] ? "." : "", resource->group);
}
