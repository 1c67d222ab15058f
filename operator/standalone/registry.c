/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/registry.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/state_directory.h"
#include "common/crc32c.h"
#include "common/memory.h"
#include "operator/standalone/garbage_collector.h"
#include "operator/standalone/registry_private.h"

/* The log of changes holds at least this many revisions; it is trimmed when it is a quarter longer. */
#define CHANGES_KEPT 8192

struct resource_table *registry_resources(const struct registry *registry)
{
    return registry->resources;
}

struct store *registry_store(const struct registry *registry)
{
    return registry->store;
}

/* ---- subscriptions ---- */

static struct registry_subscription *subscribe(struct registry *registry, const char *storage, void *context)
{
    struct registry_subscription *subscription = memory_allocate(1, sizeof *subscription);
    subscription->storage = memory_copy_string(storage);
    subscription->context = context;
    subscription->next = registry->subscriptions;
    registry->subscriptions = subscription;
    return subscription;
}

struct registry_subscription *registry_watch(struct registry *registry, const char *storage, registry_watcher *watcher,
                                             void *context)
{
    struct registry_subscription *subscription = subscribe(registry, storage, context);
    subscription->watcher = watcher;
    return subscription;
}

struct registry_subscription *registry_observe(struct registry *registry, const char *plural,
                                               registry_observer *observer, void *context)
{
    const struct resource *resource = plural ? resource_find_plural(registry->resources, plural) : NULL;
    struct registry_subscription *subscription = subscribe(registry, resource ? resource->storage : plural, context);
    subscription->observer = observer;
    return subscription;
}

static void free_dead_subscriptions(struct registry *registry)
{
    struct registry_subscription **at = &registry->subscriptions;
    while (*at) {
        struct registry_subscription *subscription = *at;
        if (!subscription->dead) {
            at = &subscription->next;
            continue;
        }
        *at = subscription->next;
        free(subscription->storage);
        free(subscription);
    }
}

void registry_unobserve(struct registry *registry, struct registry_subscription *subscription)
{
    subscription->dead = true;
    if (registry->deliveries == 0)
        free_dead_subscriptions(registry);
}

static const enum registry_change observed_change[] = {
    [STORE_ADDED] = REGISTRY_ADDED,
    [STORE_MODIFIED] = REGISTRY_MODIFIED,
    [STORE_DELETED] = REGISTRY_DELETED,
};

static void hear(struct registry *registry, const struct registry_subscription *subscription,
                 const struct change *change)
{
    if (subscription->dead || (subscription->storage && strcmp(subscription->storage, change->storage) != 0))
        return;
    if (subscription->watcher) {
        subscription->watcher(subscription->context, change->change, change->object, change->previous);
        return;
    }
    const struct resource *resource = resource_find_storage(registry->resources, change->storage);
    if (resource)
        subscription->observer(subscription->context, observed_change[change->change], resource->plural,
                               change->object);
}

/* ---- what waits for the commit ---- */

static struct change *take_changes(struct registry *registry)
{
    struct change *changes = registry->changes;
    registry->changes = NULL;
    registry->changes_end = &registry->changes;
    return changes;
}

static void deliver(struct registry *registry, struct change *changes, bool committed)
{
    registry->deliveries++;
    while (changes) {
        struct change *change = changes;
        changes = change->next;
        for (struct registry_subscription *s = registry->subscriptions; s && committed; s = s->next)
            hear(registry, s, change);
        json_free(change->object);
        json_free(change->previous);
        free(change->storage);
        free(change);
    }
    if (--registry->deliveries == 0)
        free_dead_subscriptions(registry);
}

static void acknowledge(struct registry *registry, const struct error *failed)
{
    struct acknowledgement *waiting = registry->acknowledgements;
    registry->acknowledgements = NULL;
    registry->acknowledgements_end = &registry->acknowledgements;
    while (waiting) {
        struct acknowledgement *acknowledgement = waiting;
        waiting = acknowledgement->next;
        acknowledgement->done(acknowledgement->context, failed);
        free(acknowledgement);
    }
}

void registry_when_durable(struct registry *registry, registry_durable *done, void *context)
{
    if (!store_is_dirty(registry->store)) {
        done(context, NULL);
        return;
    }
    struct acknowledgement *acknowledgement = memory_allocate(1, sizeof *acknowledgement);
    *acknowledgement = (struct acknowledgement){.done = done, .context = context};
    *registry->acknowledgements_end = acknowledgement;
    registry->acknowledgements_end = &acknowledgement->next;
}

static int trim_changes(struct registry *registry, struct error *error)
{
    int64_t kept = store_revision(registry->store) - store_compacted_revision(registry->store);
    if (kept < CHANGES_KEPT + CHANGES_KEPT / 4)
        return 0;
    return store_compact(registry->store, CHANGES_KEPT, error);
}

int registry_commit(struct registry *registry, struct error *error)
{
    struct error failure = ERROR_INIT;
    int result = 0;
    if (store_is_dirty(registry->store))
        result = trim_changes(registry, &failure) < 0 ? -1 : store_commit(registry->store, &failure);
    if (result < 0)
        store_rollback(registry->store);
    struct change *changes = take_changes(registry);
    acknowledge(registry, result < 0 ? &failure : NULL);
    deliver(registry, changes, result == 0);
    if (result < 0 && error)
        *error = failure;
    return result;
}

static void commit_due(void *context)
{
    struct registry *registry = context;
    registry->commit_timer = NULL;
    registry_commit(registry, NULL);
}

static void schedule_commit(struct registry *registry)
{
    if (registry->loop && registry->commit_timer == NULL)
        registry->commit_timer = event_timer_start(registry->loop, 0, commit_due, registry);
}

/* ---- reading and writing one object ---- */

static struct store_key key_of(const struct resource *resource, const struct json *object)
{
    return (struct store_key){
        resource->storage,
        resource->namespaced ? json_string_at(object, "metadata.namespace", "") : "",
        json_string_at(object, "metadata.name", ""),
    };
}

static void queue_change(struct registry *registry, const struct resource *resource, enum store_change kind,
                         const struct json *object, const struct json *previous)
{
    struct change *change = memory_allocate(1, sizeof *change);
    *change = (struct change){
        .change = kind,
        .storage = memory_copy_string(resource->storage),
        .object = json_copy(object),
        .previous = previous ? json_copy(previous) : NULL,
    };
    *registry->changes_end = change;
    registry->changes_end = &change->next;
    schedule_commit(registry);
}

/* The store took back all writes of this turn: none of them may be acknowledged or heard of. */
static struct json *store_failed(struct registry *registry, const struct resource *resource, const struct json *object,
                                 const struct error *error)
{
    if (!store_is_dirty(registry->store)) {
        deliver(registry, take_changes(registry), false);
        acknowledge(registry, error);
    }
    return refusal_from_error(resource, json_string_at(object, "metadata.name", ""), error);
}

struct json *registry_put(struct registry *registry, const struct resource *resource, struct json *object,
                          const struct json *previous)
{
    struct store_key key = key_of(resource, object);
    struct error error = ERROR_INIT;
    if (store_put(registry->store, &key, object, &error) < 0)
        return store_failed(registry, resource, object, &error);
    queue_change(registry, resource, previous ? STORE_MODIFIED : STORE_ADDED, object, previous);
    return NULL;
}

struct json *registry_remove(struct registry *registry, const struct resource *resource, struct json *object)
{
    struct store_key key = key_of(resource, object);
    SCOPED_JSON *previous = json_copy(object);
    struct error error = ERROR_INIT;
    if (store_remove(registry->store, &key, object, &error) < 0)
        return store_failed(registry, resource, object, &error);
    queue_change(registry, resource, STORE_DELETED, object, previous);
    return NULL;
}

struct json *registry_read(struct registry *registry, const struct resource *resource, const char *namespace,
                           const char *name, struct json **ret_object)
{
    struct store_key key = {resource->storage, namespace ? namespace : "", name};
    struct error error = ERROR_INIT;
    if (store_get(registry->store, &key, ret_object, &error) < 0)
        return refusal_from_error(resource, name, &error);
    return NULL;
}

/* ---- open and close ---- */

static void define_visited(void *context, const struct json *definition)
{
    struct registry *registry = context;
    resource_define(registry->resources, definition, NULL);
}

/* Types follow their definitions as those are committed. */
static void definition_changed(void *context, enum registry_change change, const char *plural,
                               const struct json *definition)
{
    struct registry *registry = context;
    (void)plural;
    if (change == REGISTRY_DELETED)
        resource_undefine(registry->resources, json_string_at(definition, "metadata.name", ""));
    else
        define_visited(registry, definition);
}

static int define_stored(struct registry *registry, struct error *error)
{
    SCOPED_JSON *definitions = NULL;
    if (registry_list(registry, "customresourcedefinitions", NULL, &definitions, error) < 0)
        return -1;
    for (const struct json *item = json_first(definitions); item; item = json_next(item))
        define_visited(registry, item);
    registry_observe(registry, "customresourcedefinitions", definition_changed, registry);
    return 0;
}

int registry_open(const char *directory, struct event_loop *loop, struct registry **ret_registry, struct error *error)
{
    struct registry *registry = memory_allocate(1, sizeof *registry);
    SCOPED_FREE char *path = memory_format("%s/" STATE_DATABASE, directory);
    registry->loop = loop;
    registry->resources = resource_table_new();
    registry->changes_end = &registry->changes;
    registry->acknowledgements_end = &registry->acknowledgements;
    if (store_open(path, &registry->store, error) < 0 || define_stored(registry, error) < 0) {
        registry_close(registry);
        return -1;
    }
    garbage_collector_attach(registry);
    *ret_registry = registry;
    return 0;
}

void registry_close(struct registry *registry)
{
    if (registry == NULL)
        return;
    if (registry->store)
        registry_commit(registry, NULL);
    deliver(registry, take_changes(registry), false);
    acknowledge(registry, &(struct error){.kind = ERROR_CANCELLED, .message = "the server is stopping"});
    if (registry->commit_timer)
        event_timer_cancel(registry->commit_timer);
    for (struct registry_subscription *s = registry->subscriptions; s; s = s->next)
        s->dead = true;
    free_dead_subscriptions(registry);
    store_close(registry->store);
    resource_table_free(registry->resources);
    free(registry);
}

/* ---- for callers in this process ---- */

static const struct resource *find_type(struct registry *registry, const char *plural, struct error *error)
{
    const struct resource *resource = resource_find_plural(registry->resources, plural);
    if (resource == NULL)
        error_set(error, ERROR_NOT_FOUND, "internal error: the registry has no resource type \"%s\"; please report it",
                  plural);
    return resource;
}

int registry_get(struct registry *registry, const char *plural, const char *namespace, const char *name,
                 struct json **ret_object, struct error *error)
{
    const struct resource *resource = find_type(registry, plural, error);
    if (resource == NULL)
        return -1;
    struct json *refused = registry_read(registry, resource, namespace, name, ret_object);
    return refused ? refusal_to_error(refused, error) : 0;
}

static bool collect(void *context, struct json *object)
{
    json_append(context, object);
    return true;
}

int registry_list(struct registry *registry, const char *plural, const char *namespace, struct json **ret_objects,
                  struct error *error)
{
    const struct resource *resource = find_type(registry, plural, error);
    if (resource == NULL)
        return -1;
    SCOPED_JSON *objects = json_new_array();
    if (store_list(registry->store, resource->storage, namespace, NULL, NULL, collect, objects, error) < 0)
        return -1;
    *ret_objects = objects;
    objects = NULL;
    return 0;
}

static int finish(struct json *refused, struct write *write, struct json **ret_stored, struct error *error)
{
    json_free(write->warnings);
    if (refused) {
        json_free(write->result);
        return refusal_to_error(refused, error);
    }
    if (ret_stored)
        *ret_stored = write->result;
    else
        json_free(write->result);
    return 0;
}

static struct write write_of(const struct resource *resource, const char *namespace, const char *name)
{
    return (struct write){
        .resource = resource,
        .namespace = namespace ? namespace : "",
        .name = name,
        .field_validation = FIELD_VALIDATION_IGNORE,
        .warnings = json_new_array(),
    };
}

int registry_create(struct registry *registry, const char *plural, const struct json *object, struct json **ret_stored,
                    struct error *error)
{
    const struct resource *resource = find_type(registry, plural, error);
    if (resource == NULL)
        return -1;
    struct write write = write_of(resource, json_string_at(object, "metadata.namespace", NULL), NULL);
    return finish(registry_write_create(registry, &write, json_copy(object)), &write, ret_stored, error);
}

int registry_update_status(struct registry *registry, const char *plural, const struct json *object,
                           struct json **ret_stored, struct error *error)
{
    const struct resource *resource = find_type(registry, plural, error);
    if (resource == NULL)
        return -1;
    struct write write = write_of(resource, json_string_at(object, "metadata.namespace", NULL),
                                  json_string_at(object, "metadata.name", ""));
    write.status = true;
    return finish(registry_write_update(registry, &write, json_copy(object)), &write, ret_stored, error);
}

int registry_delete(struct registry *registry, const char *plural, const char *namespace, const char *name,
                    const char *uid, int64_t grace_seconds, struct error *error)
{
    const struct resource *resource = find_type(registry, plural, error);
    if (resource == NULL)
        return -1;
    struct write write = write_of(resource, namespace, name);
    struct delete_options options = {.grace_seconds = grace_seconds, .uid = uid};
    return finish(registry_write_delete(registry, &write, &options), &write, NULL, error);
}

/* ---- events ---- */

static struct json *involved_reference(const struct json *involved)
{
    struct json *reference = json_new_object();
    json_set_string(reference, "kind", json_string_at(involved, "kind", ""));
    json_set_string(reference, "namespace", json_string_at(involved, "metadata.namespace", NULL));
    json_set_string(reference, "name", json_string_at(involved, "metadata.name", ""));
    json_set_string(reference, "uid", json_string_at(involved, "metadata.uid", NULL));
    json_set_string(reference, "apiVersion", json_string_at(involved, "apiVersion", NULL));
    json_set_string(reference, "resourceVersion", json_string_at(involved, "metadata.resourceVersion", NULL));
    return reference;
}

static uint32_t fingerprint(uint32_t crc, const char *text)
{
    return crc32c(crc, text, strlen(text) + 1);
}

/* Equal events have equal names, so that the second one is counted on the first. */
static void event_name(const struct json *involved, const char *type, const char *reason, const char *component,
                       const char *message, char name[320])
{
    uint32_t one = fingerprint(fingerprint(0, json_string_at(involved, "metadata.uid", "")), reason);
    uint32_t two = fingerprint(fingerprint(fingerprint(one, type), component), message);
    snprintf(name, 320, "%.253s.%08x%08x", json_string_at(involved, "metadata.name", ""), one, two);
}

static struct json *event_new(const struct json *involved, const char *name, const char *namespace)
{
    char now[CLOCK_TEXT_MAX];
    clock_format_seconds(clock_now_ms(), now);
    struct json *event = json_new_object();
    json_set_string(event, "kind", "Event");
    json_set_string(event, "apiVersion", "v1");
    struct json *metadata = json_set_object(event, "metadata");
    json_set_string(metadata, "name", name);
    json_set_string(metadata, "namespace", namespace);
    json_set(event, "involvedObject", involved_reference(involved));
    json_set_string(event, "firstTimestamp", now);
    return event;
}

int registry_event(struct registry *registry, const struct json *involved, const char *type, const char *reason,
                   const char *component, const char *message, struct error *error)
{
    char name[320], now[CLOCK_TEXT_MAX];
    const char *namespace = json_string_at(involved, "metadata.namespace", "default");
    const struct resource *resource = resource_find_plural(registry->resources, "events");
    struct json *event;
    event_name(involved, type, reason, component, message, name);
    struct json *absent = registry_read(registry, resource, namespace, name, &event);
    if (absent)
        event = event_new(involved, name, namespace);
    clock_format_seconds(clock_now_ms(), now);
    json_set_string(event, "type", type);
    json_set_string(event, "reason", reason);
    json_set_string(event, "message", message);
    json_set_string(json_set_object(event, "source"), "component", component);
    json_set_string(event, "reportingComponent", component);
    json_set_string(event, "lastTimestamp", now);
    json_set_integer(event, "count", json_integer_at(event, "count", 0) + 1);
    struct write write = write_of(resource, namespace, absent ? NULL : name);
    struct json *refused =
        absent ? registry_write_create(registry, &write, event) : registry_write_update(registry, &write, event);
    json_free(absent);
    return finish(refused, &write, NULL, error);
}
