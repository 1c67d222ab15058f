/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/garbage_collector.h"

#include <string.h>

#include "common/clock.h"
#include "operator/standalone/registry_private.h"

#define EVENT_LIFE_MS (60 * 60 * 1000)

static bool same(const char *left, const char *right)
{
    return strcmp(left, right) == 0;
}

/* Ignores a refusal: an object that is already gone is as good as deleted. */
static void forget(struct json *refused, struct write *write)
{
    json_free(refused);
    json_free(write->result);
    json_free(write->warnings);
}

static struct write write_at(struct registry *registry, const struct json *key)
{
    return (struct write){
        .resource = resource_find_storage(registry->resources, json_string_at(key, "resource", "")),
        .namespace = json_string_at(key, "namespace", ""),
        .name = json_string_at(key, "name", ""),
        .field_validation = FIELD_VALIDATION_IGNORE,
        .warnings = json_new_array(),
    };
}

static struct json *read_at(struct registry *registry, const struct json *key)
{
    struct write write = write_at(registry, key);
    struct json *object = NULL;
    if (write.resource)
        json_free(registry_read(registry, write.resource, write.namespace, write.name, &object));
    json_free(write.warnings);
    return object;
}

static void delete_at(struct registry *registry, const struct json *key, const char *uid)
{
    struct write write = write_at(registry, key);
    struct delete_options options = {.grace_seconds = -1, .uid = uid};
    forget(write.resource ? registry_write_delete(registry, &write, &options) : NULL, &write);
}

static void update_at(struct registry *registry, const struct json *key, struct json *object)
{
    struct write write = write_at(registry, key);
    forget(registry_write_update(registry, &write, object), &write);
}

static struct json *key_of(const struct resource *resource, const struct json *object)
{
    struct json *key = json_new_object();
    json_set_string(key, "resource", resource->storage);
    json_set_string(key, "namespace", json_string_at(object, "metadata.namespace", ""));
    json_set_string(key, "name", json_string_at(object, "metadata.name", ""));
    return key;
}

static bool holds_finalizer(const struct json *object, const char *name)
{
    const struct json *finalizers = json_at(object, "metadata.finalizers");
    for (const struct json *item = json_first(finalizers); item; item = json_next(item))
        if (same(json_string(item, ""), name))
            return true;
    return false;
}

static void drop_finalizer(struct registry *registry, const struct json *key, const char *name)
{
    struct json *object = read_at(registry, key);
    struct json *finalizers = json_at(object, "metadata.finalizers");
    for (struct json *next, *item = json_first(finalizers); item; item = next) {
        next = json_next(item);
        if (same(json_string(item, ""), name))
            json_free(json_detach(finalizers, item));
    }
    if (object)
        update_at(registry, key, object);
}

/* ---- owners and dependents ---- */

/* Does any owner other than `leaving` still exist? */
static bool has_living_owner(struct registry *registry, const struct json *object, const char *leaving)
{
    const struct json *owners = json_at(object, "metadata.ownerReferences");
    for (const struct json *owner = json_first(owners); owner; owner = json_next(owner)) {
        const char *uid = json_string_at(owner, "uid", "");
        bool found = true;
        if (same(uid, leaving))
            continue;
        if (store_has_uid(registry->store, uid, &found, NULL) < 0 || found)
            return true;
    }
    return false;
}

static void collect_if_orphaned(struct registry *registry, const struct json *key, const char *leaving)
{
    SCOPED_JSON *object = read_at(registry, key);
    if (json_count(json_at(object, "metadata.ownerReferences")) > 0 && !has_living_owner(registry, object, leaving))
        delete_at(registry, key, json_string_at(object, "metadata.uid", ""));
}

/* How many dependents there are; each that has no other owner is deleted. */
static size_t collect_dependents(struct registry *registry, const char *owner_uid)
{
    SCOPED_JSON *keys = NULL;
    if (store_dependents(registry->store, owner_uid, &keys, NULL) < 0)
        return 0;
    for (const struct json *key = json_first(keys); key; key = json_next(key))
        collect_if_orphaned(registry, key, owner_uid);
    return json_count(keys);
}

static void disown(struct registry *registry, const struct json *key, const char *owner_uid)
{
    struct json *object = read_at(registry, key);
    struct json *owners = json_at(object, "metadata.ownerReferences");
    for (struct json *next, *owner = json_first(owners); owner; owner = next) {
        next = json_next(owner);
        if (same(json_string_at(owner, "uid", ""), owner_uid))
            json_free(json_detach(owners, owner));
    }
    if (object)
        update_at(registry, key, object);
}

static void orphan_dependents(struct registry *registry, const char *owner_uid)
{
    SCOPED_JSON *keys = NULL;
    if (store_dependents(registry->store, owner_uid, &keys, NULL) < 0)
        return;
    for (const struct json *key = json_first(keys); key; key = json_next(key))
        disown(registry, key, owner_uid);
}

static void finish_foreground(struct registry *registry, const struct json *key, const char *uid)
{
    SCOPED_JSON *left = NULL;
    collect_dependents(registry, uid);
    if (store_dependents(registry->store, uid, &left, NULL) == 0 && json_count(left) == 0)
        drop_finalizer(registry, key, "foregroundDeletion");
}

/* A dependent is gone: owners that wait for it in the foreground may go too. */
static void notify_owners(struct registry *registry, const struct json *object)
{
    const struct json *owners = json_at(object, "metadata.ownerReferences");
    for (const struct json *owner = json_first(owners); owner; owner = json_next(owner)) {
        const char *version = json_string_at(owner, "apiVersion", ""), *slash = strchr(version, '/');
        char group[API_VERSION_TEXT_MAX] = "";
        size_t length = slash ? (size_t)(slash - version) : 0;
        if (length >= sizeof group)
            continue;
        memcpy(group, version, length);
        const struct resource *resource =
            resource_find_kind(registry->resources, group, json_string_at(owner, "kind", ""));
        if (resource == NULL)
            continue;
        SCOPED_JSON *key = json_new_object();
        json_set_string(key, "resource", resource->storage);
        json_set_string(key, "namespace", resource->namespaced ? json_string_at(object, "metadata.namespace", "") : "");
        json_set_string(key, "name", json_string_at(owner, "name", ""));
        SCOPED_JSON *present = read_at(registry, key);
        const char *uid = json_string_at(present, "metadata.uid", "");
        if (present && same(uid, json_string_at(owner, "uid", "")) && holds_finalizer(present, "foregroundDeletion"))
            finish_foreground(registry, key, uid);
    }
}

/* ---- namespaces and types ---- */

static void finish_namespace(struct registry *registry, const char *name)
{
    const struct resource *namespaces = resource_find_plural(registry->resources, "namespaces");
    SCOPED_JSON *namespace = NULL, *keys = NULL;
    json_free(registry_read(registry, namespaces, NULL, name, &namespace));
    if (json_at(namespace, "metadata.deletionTimestamp") == NULL || store_keys(registry->store, name, &keys, NULL) < 0)
        return;
    for (const struct json *key = json_first(keys); key; key = json_next(key))
        delete_at(registry, key, NULL);
    if (json_count(keys) == 0)
        json_free(registry_remove(registry, namespaces, namespace));
}

/* The objects of a type go with its definition; the definition itself is gone already. */
static bool drop_object(void *context, struct json *object)
{
    json_append(context, object);
    return true;
}

static void drop_objects_of(struct registry *registry, const struct json *definition)
{
    const char *storage = json_string_at(definition, "metadata.name", "");
    const struct resource *resource = resource_find_storage(registry->resources, storage);
    SCOPED_JSON *objects = json_new_array();
    if (resource == NULL || store_list(registry->store, storage, NULL, NULL, NULL, drop_object, objects, NULL) < 0)
        return;
    for (struct json *object = json_first(objects); object; object = json_next(object))
        json_free(registry_remove(registry, resource, object));
}

/* ---- following the registry ---- */

static void settle_deleted(struct registry *registry, const struct resource *resource, const struct json *object)
{
    const char *namespace = json_string_at(object, "metadata.namespace", "");
    collect_dependents(registry, json_string_at(object, "metadata.uid", ""));
    notify_owners(registry, object);
    if (namespace[0])
        finish_namespace(registry, namespace);
    if (same(resource->plural, "customresourcedefinitions"))
        drop_objects_of(registry, object);
}

static void settle_present(struct registry *registry, const struct resource *resource, const struct json *object,
                           bool is_new)
{
    SCOPED_JSON *key = key_of(resource, object);
    const char *uid = json_string_at(object, "metadata.uid", "");
    bool leaving = json_at(object, "metadata.deletionTimestamp") != NULL;
    if (is_new)
        collect_if_orphaned(registry, key, "");
    if (leaving && holds_finalizer(object, "foregroundDeletion"))
        finish_foreground(registry, key, uid);
    if (leaving && holds_finalizer(object, "orphan")) {
        orphan_dependents(registry, uid);
        drop_finalizer(registry, key, "orphan");
    }
    if (leaving && same(resource->storage, "namespaces"))
        finish_namespace(registry, json_string_at(object, "metadata.name", ""));
}

static void on_change(void *context, enum registry_change change, const char *plural, const struct json *object)
{
    struct registry *registry = context;
    const struct resource *resource = resource_find_plural(registry->resources, plural);
    if (change == REGISTRY_DELETED)
        settle_deleted(registry, resource, object);
    else
        settle_present(registry, resource, object, change == REGISTRY_ADDED);
}

void garbage_collector_attach(struct registry *registry)
{
    registry_observe(registry, NULL, on_change, registry);
}

/* ---- what an earlier life left ---- */

static bool is_old_event(const struct json *key, const struct json *object, int64_t now_ms)
{
    int64_t last_ms;
    if (!same(json_string_at(key, "resource", ""), "events"))
        return false;
    const char *last =
        json_string_at(object, "lastTimestamp", json_string_at(object, "metadata.creationTimestamp", ""));
    return clock_parse(last, &last_ms) && last_ms < now_ms - EVENT_LIFE_MS;
}

int garbage_collector_sweep(struct registry *registry, struct error *error)
{
    SCOPED_JSON *keys = NULL;
    if (store_keys(registry->store, NULL, &keys, error) < 0)
        return -1;
    for (const struct json *key = json_first(keys); key; key = json_next(key)) {
        SCOPED_JSON *object = read_at(registry, key);
        const struct resource *resource =
            resource_find_storage(registry->resources, json_string_at(key, "resource", ""));
        if (object == NULL || resource == NULL)
            continue;
        if (is_old_event(key, object, clock_now_ms()))
            delete_at(registry, key, NULL);
        else
            settle_present(registry, resource, object, true);
    }
    return 0;
}
