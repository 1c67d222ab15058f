/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/registry_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/contract/environment.h"
#include "common/memory.h"
#include "operator/standalone/admission.h"
#include "operator/standalone/apply.h"
#include "operator/standalone/builtin_types.h"
#include "operator/standalone/patch.h"
#include "operator/standalone/registry_private.h"

#define UUID_TEXT_MAX 37

static bool same(const char *left, const char *right)
{
    return strcmp(left, right) == 0;
}

static void new_uid(char text[UUID_TEXT_MAX])
{
    unsigned char b[16] = {0};
    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        memcpy(b, &(int64_t){clock_monotonic_ns()}, sizeof(int64_t));
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    snprintf(text, UUID_TEXT_MAX, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

/* ---- does the object belong where it was sent? ---- */

static struct json *check_type(const struct write *write, struct json *object)
{
    char version[API_VERSION_TEXT_MAX];
    const struct resource *resource = write->resource;
    resource_api_version(resource, version);
    if (json_type(object) != JSON_OBJECT)
        return refusal_bad_request("the body of the request must be a JSON object of kind %s", resource->kind);
    const char *kind = json_string_at(object, "kind", ""), *given = json_string_at(object, "apiVersion", "");
    if ((kind[0] && !same(kind, resource->kind)) || (given[0] && !same(given, version)))
        return refusal_bad_request("the API version in the data (%s, Kind=%s) does not match the expected API version "
                                   "(%s, Kind=%s)",
                                   given, kind, version, resource->kind);
    json_set_string(object, "apiVersion", version);
    json_set_string(object, "kind", resource->kind);
    return NULL;
}

static struct json *check_place(const struct write *write, struct json *object)
{
    struct json *metadata = json_set_object(object, "metadata");
    const char *namespace = json_string_at(metadata, "namespace", "");
    if (!write->resource->namespaced) {
        json_remove(metadata, "namespace");
    } else if (namespace[0] && write->namespace[0] && !same(namespace, write->namespace)) {
        return refusal_bad_request("the namespace of the provided object does not match the namespace sent on the "
                                   "request");
    } else if (write->namespace[0]) {
        json_set_string(metadata, "namespace", write->namespace);
    }
    const char *name = json_string_at(metadata, "name", "");
    if (write->name && name[0] == '\0')
        return refusal_bad_request("the name of the object (%s based on URL) was undeterminable: name must be provided",
                                   write->name);
    if (write->name && !same(name, write->name))
        return refusal_bad_request("the name of the object (%s) does not match the name on the URL (%s)", name,
                                   write->name);
    json_remove(metadata, "managedFields");
    json_remove(metadata, "selfLink");
    return NULL;
}

/* ---- create ---- */

static void stamp_new(const struct resource *resource, struct json *metadata)
{
    char uid[UUID_TEXT_MAX], now[CLOCK_TEXT_MAX];
    static const char *const server_fields[] = {"resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds",
                                                "generation"};
    for (size_t i = 0; i < sizeof server_fields / sizeof server_fields[0]; i++)
        json_remove(metadata, server_fields[i]);
    new_uid(uid);
    clock_format_seconds(clock_now_ms(), now);
    json_set_string(metadata, "uid", uid);
    json_set_string(metadata, "creationTimestamp", now);
    if (resource->has_generation)
        json_set_integer(metadata, "generation", 1);
}

static struct json *check_namespace(struct registry *registry, const struct write *write, const struct json *object)
{
    if (!write->resource->namespaced)
        return NULL;
    const char *name = json_string_at(object, "metadata.namespace", "");
    SCOPED_JSON *namespace = NULL;
    const struct resource *namespaces = resource_find_plural(registry->resources, "namespaces");
    struct json *refused = registry_read(registry, namespaces, NULL, name, &namespace);
    if (refused || json_at(namespace, "metadata.deletionTimestamp") == NULL)
        return refused;
    char type[API_VERSION_TEXT_MAX];
    resource_qualified(write->resource, type);
    return refusal_new(403, "Forbidden",
                       "%s \"%s\" is forbidden: unable to create new content in namespace %s because it is being "
                       "terminated",
                       type, json_string_at(object, "metadata.name", ""), name);
}

static struct json *check_absent(struct registry *registry, const struct write *write, const struct json *object)
{
    SCOPED_JSON *present = NULL;
    const char *name = json_string_at(object, "metadata.name", "");
    struct json *absent =
        registry_read(registry, write->resource, json_string_at(object, "metadata.namespace", ""), name, &present);
    if (absent && refusal_code(absent) != 404)
        return absent;
    json_free(absent);
    return present ? refusal_already_exists(write->resource, name) : NULL;
}

#define GENERATED_PREFIX_MAX 58
#define GENERATED_SUFFIX 5
#define GENERATED_TRIES 8

static void random_suffix(char suffix[GENERATED_SUFFIX + 1])
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    uint64_t number = (uint64_t)clock_monotonic_ns();
    (void)!getrandom(&number, sizeof number, 0);
    for (int i = 0; i < GENERATED_SUFFIX; i++, number /= sizeof letters - 1)
        suffix[i] = letters[number % (sizeof letters - 1)];
    suffix[GENERATED_SUFFIX] = '\0';
}

/* Gives up on a free name after a few tries; the caller finds the last one taken. */
static void generate_name(struct registry *registry, const struct write *write, struct json *object)
{
    struct json *metadata = json_member(object, "metadata");
    SCOPED_FREE char *prefix = memory_copy_string(json_string_at(metadata, "generateName", ""));
    if (json_string_at(metadata, "name", "")[0] || prefix[0] == '\0')
        return;
    struct json *taken = NULL;
    for (int tries = 0; tries == 0 || (taken && tries < GENERATED_TRIES); tries++) {
        char suffix[GENERATED_SUFFIX + 1], name[GENERATED_PREFIX_MAX + sizeof suffix];
        random_suffix(suffix);
        snprintf(name, sizeof name, "%.*s%s", GENERATED_PREFIX_MAX, prefix, suffix);
        json_set_string(metadata, "name", name);
        json_free(taken);
        taken = check_absent(registry, write, object);
    }
    json_free(taken);
}

static struct json *check_given_version(const struct json *metadata)
{
    if (json_string_at(metadata, "resourceVersion", "")[0])
        return refusal_new(400, "BadRequest", "resourceVersion should not be set on objects to be created");
    return NULL;
}

/* The steps of a write, in order; the first refusal ends it. */
#define REFUSE(step)                                                                                                   \
    do {                                                                                                               \
        struct json *refused_ = (step);                                                                                \
        if (refused_)                                                                                                  \
            return refused_;                                                                                           \
    } while (0)

struct json *registry_write_create(struct registry *registry, struct write *write, struct json *object)
{
    SCOPED_JSON *own = object;
    REFUSE(check_type(write, own));
    REFUSE(check_place(write, own));
    struct json *metadata = json_member(own, "metadata");
    REFUSE(check_given_version(metadata));
    generate_name(registry, write, own);
    REFUSE(check_namespace(registry, write, own));
    stamp_new(write->resource, metadata);
    admission_prepare_new(write->resource, own);
    REFUSE(admission_check(write, own, NULL));
    REFUSE(check_absent(registry, write, own));
    if (!write->dry_run)
        REFUSE(registry_put(registry, write->resource, own, NULL));
    write->result = own;
    own = NULL;
    return NULL;
}

/* ---- update ---- */

static struct json *check_preconditions(const struct resource *resource, const struct json *old, const char *uid,
                                        const char *resource_version)
{
    const char *name = json_string_at(old, "metadata.name", ""), *has = json_string_at(old, "metadata.uid", "");
    char why[256];
    if (uid && uid[0] && !same(uid, has)) {
        snprintf(why, sizeof why, "Precondition failed: UID in precondition: %.80s, UID in object meta: %.80s", uid,
                 has);
        return refusal_conflict(resource, name, why);
    }
    if (resource_version && resource_version[0] &&
        !same(resource_version, json_string_at(old, "metadata.resourceVersion", "")))
        return refusal_conflict(resource, name, NULL);
    return NULL;
}

static void keep(struct json *into, const struct json *from, const char *key)
{
    const struct json *value = json_member(from, key);
    json_set(into, key, value ? json_copy(value) : NULL);
}

static void keep_server_metadata(struct json *object, const struct json *old)
{
    static const char *const fields[] = {
        "uid",        "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
        "generation", "generateName",      "resourceVersion",   "name",
        "namespace",  "managedFields"};
    struct json *metadata = json_set_object(object, "metadata");
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        keep(metadata, json_member(old, "metadata"), fields[i]);
}

/* Returns the old object with the new status, which is all that a status write may change. */
static struct json *only_status(const struct json *old, const struct json *object)
{
    struct json *merged = json_copy(old);
    keep(merged, object, "status");
    return merged;
}

static void without_metadata(struct json *object, bool status_too)
{
    json_remove(object, "metadata");
    if (status_too)
        json_remove(object, "status");
}

static bool spec_changed(const struct resource *resource, const struct json *old, const struct json *object)
{
    SCOPED_JSON *before = json_copy(old);
    SCOPED_JSON *after = json_copy(object);
    without_metadata(before, resource->has_status);
    without_metadata(after, resource->has_status);
    return !json_equal(before, after);
}

static bool holds_text(const struct json *list, const char *text)
{
    for (const struct json *item = json_first(list); item; item = json_next(item))
        if (same(json_string(item, ""), text))
            return true;
    return false;
}

static struct json *check_new_finalizers(const struct write *write, const struct json *old, const struct json *object)
{
    if (json_at(old, "metadata.deletionTimestamp") == NULL)
        return NULL;
    const struct json *finalizers = json_at(object, "metadata.finalizers");
    for (const struct json *item = json_first(finalizers); item; item = json_next(item)) {
        if (holds_text(json_at(old, "metadata.finalizers"), json_string(item, "")))
            continue;
        char detail[512];
        snprintf(detail, sizeof detail,
                 "no new finalizers can be added if the object is being deleted, found new finalizers "
                 "[]string{\"%.256s\"}",
                 json_string(item, ""));
        struct json *causes = json_new_array();
        cause_add(causes, CAUSE_FORBIDDEN, "metadata.finalizers", NULL, detail);
        return refusal_invalid(write->resource, write->name, causes);
    }
    return NULL;
}

/* A deleted object lives on until its finalizers are gone and, for pods, its processes too. */
static bool is_finalised(const struct json *object)
{
    return json_at(object, "metadata.deletionTimestamp") && json_count(json_at(object, "metadata.finalizers")) == 0 &&
           json_integer_at(object, "metadata.deletionGracePeriodSeconds", 0) == 0;
}

/* A patch is no precondition: another uid is one that it would change. Metadata in a patch of the status is not looked at. */
static struct json *check_same_uid(const struct write *write, const struct json *old, const struct json *object)
{
    const struct json *uid = json_at(object, "metadata.uid");
    if (write->status || uid == NULL || same(json_string(uid, ""), json_string_at(old, "metadata.uid", "")))
        return NULL;
    struct json *causes = json_new_array();
    cause_add(causes, CAUSE_INVALID, "metadata.uid", uid, "field is immutable");
    return refusal_invalid(write->resource, write->name, causes);
}

static void set_managers(const struct write *write, struct json *object)
{
    if (write->managed_fields)
        json_set(json_set_object(object, "metadata"), "managedFields", json_copy(write->managed_fields));
}

/* The tail that PUT and PATCH share; `object` is complete and is changed in place. */
static struct json *replace(struct registry *registry, struct write *write, const struct json *old, struct json *object)
{
    const struct resource *resource = write->resource;
    keep_server_metadata(object, old);
    set_managers(write, object);
    if (!write->status && resource->has_status)
        keep(object, old, "status");
    if (!resource->definition)
        builtin_default(resource, object);
    REFUSE(check_new_finalizers(write, old, object));
    REFUSE(admission_check(write, object, old));
    if (resource->has_generation && spec_changed(resource, old, object))
        json_set_integer(json_member(object, "metadata"), "generation",
                         json_integer_at(old, "metadata.generation", 0) + 1);
    if (write->dry_run)
        return NULL;
    if (is_finalised(object))
        return registry_remove(registry, resource, object);
    if (json_equal(old, object))
        return NULL;
    return registry_put(registry, resource, object, old);
}

/* The object becomes the result, unless it is refused. */
static struct json *take_over(struct registry *registry, struct write *write, const struct json *old,
                              struct json **object)
{
    if (write->status) {
        struct json *merged = only_status(old, *object);
        json_free(*object);
        *object = merged;
    }
    REFUSE(replace(registry, write, old, *object));
    write->result = *object;
    *object = NULL;
    return NULL;
}

/* Custom resources must say which version they replace. */
static struct json *check_version_given(const struct write *write, const struct json *object)
{
    if (!write->resource->definition || json_string_at(object, "metadata.resourceVersion", "")[0])
        return NULL;
    struct json *causes = json_new_array(), *zero = json_new_integer(0);
    cause_add(causes, CAUSE_INVALID, "metadata.resourceVersion", zero, "must be specified for an update");
    json_free(zero);
    /* Here the real one names the type by its plural. */
    struct resource named = *write->resource;
    named.kind = named.plural;
    return refusal_invalid(&named, write->name, causes);
}

struct json *registry_write_update(struct registry *registry, struct write *write, struct json *object)
{
    SCOPED_JSON *own = object;
    SCOPED_JSON *old = NULL;
    REFUSE(check_type(write, own));
    REFUSE(check_place(write, own));
    if (write->name == NULL)
        write->name = json_string_at(own, "metadata.name", "");
    REFUSE(registry_read(registry, write->resource, json_string_at(own, "metadata.namespace", ""), write->name, &old));
    if (!write->status)
        REFUSE(check_version_given(write, own));
    REFUSE(check_preconditions(write->resource, old, json_string_at(own, "metadata.uid", NULL),
                               json_string_at(own, "metadata.resourceVersion", NULL)));
    return take_over(registry, write, old, &own);
}

/* ---- patch ---- */

static struct json *apply_patch(const struct write *write, enum patch_kind kind, struct json **object,
                                const struct json *patch)
{
    struct error error = ERROR_INIT;
    int result = 0;
    if (kind == PATCH_MERGE) {
        if (json_type(patch) != JSON_OBJECT)
            return refusal_bad_request("a merge patch of a %s must be a JSON object", write->resource->kind);
        json_merge_patch(object, patch);
    } else if (kind == PATCH_JSON) {
        result = patch_apply_json(object, patch, &error);
    } else {
        result = patch_apply_strategic(*object, patch, &error);
    }
    if (result < 0)
        return refusal_new(422, "Invalid", "the server rejected our request due to an error in our request: %s",
                           error.message);
    if (json_type(*object) != JSON_OBJECT)
        return refusal_bad_request("the patch leaves no object");
    return NULL;
}

struct json *registry_write_patch(struct registry *registry, struct write *write, enum patch_kind kind,
                                  const struct json *patch)
{
    SCOPED_JSON *old = NULL;
    REFUSE(registry_read(registry, write->resource, write->namespace, write->name, &old));
    SCOPED_JSON *own = json_copy(old);
    REFUSE(apply_patch(write, kind, &own, patch));
    REFUSE(check_type(write, own));
    REFUSE(check_place(write, own));
    REFUSE(check_same_uid(write, old, own));
    REFUSE(check_preconditions(write->resource, old, NULL, json_string_at(own, "metadata.resourceVersion", NULL)));
    return take_over(registry, write, old, &own);
}

/* ---- apply ---- */

static struct json *check_apply(const struct write *write, const struct json *config)
{
    if (json_count(json_at(config, "metadata.managedFields")) > 0)
        return refusal_bad_request("metadata.managedFields must be nil");
    const char *name = json_string_at(config, "metadata.name", "");
    if (name[0] && !same(name, write->name))
        return refusal_bad_request("the name of the object (%s) does not match the name on the URL (%s)", name,
                                   write->name);
    return NULL;
}

/* Returns the stored object, or the beginning of a new one; `ret_created` tells which. */
static struct json *start_of_apply(struct registry *registry, const struct write *write, struct json **ret_object,
                                   bool *ret_created)
{
    struct json *absent = registry_read(registry, write->resource, write->namespace, write->name, ret_object);
    *ret_created = absent != NULL;
    if (absent == NULL)
        return NULL;
    if (refusal_code(absent) != 404 || write->status)
        return absent;
    json_free(absent);
    *ret_object = json_new_object();
    json_set_string(json_set_object(*ret_object, "metadata"), "name", write->name);
    return NULL;
}

/* A new object with its managers: registry_write_create would drop them. */
static struct json *create_applied(struct registry *registry, struct write *write, struct json *object)
{
    SCOPED_JSON *own = object;
    REFUSE(check_type(write, own));
    REFUSE(check_place(write, own));
    struct json *metadata = json_member(own, "metadata");
    REFUSE(check_given_version(metadata));
    REFUSE(check_namespace(registry, write, own));
    stamp_new(write->resource, metadata);
    set_managers(write, own);
    admission_prepare_new(write->resource, own);
    REFUSE(admission_check(write, own, NULL));
    if (!write->dry_run)
        REFUSE(registry_put(registry, write->resource, own, NULL));
    write->result = own;
    own = NULL;
    return NULL;
}

static struct json *replace_applied(struct registry *registry, struct write *write, const struct json *old,
                                    struct json *object)
{
    SCOPED_JSON *own = object;
    REFUSE(check_type(write, own));
    REFUSE(check_place(write, own));
    REFUSE(check_same_uid(write, old, own));
    REFUSE(check_preconditions(write->resource, old, NULL, json_string_at(own, "metadata.resourceVersion", NULL)));
    return take_over(registry, write, old, &own);
}

struct json *registry_write_apply(struct registry *registry, struct write *write, const struct json *config,
                                  bool *ret_created)
{
    struct apply_request request = {write->resource, write->manager, write->status ? "status" : "", write->force};
    SCOPED_JSON *old = NULL;
    REFUSE(check_apply(write, config));
    REFUSE(start_of_apply(registry, write, &old, ret_created));
    SCOPED_JSON *own = json_copy(old);
    REFUSE(apply_configuration(&request, config, own, &write->managed_fields));
    struct json *object = own;
    own = NULL;
    return *ret_created ? create_applied(registry, write, object) : replace_applied(registry, write, old, object);
}

/* ---- delete ---- */

static void set_finalizer(struct json *metadata, const char *name, bool wanted)
{
    struct json *finalizers = json_set_array(metadata, "finalizers");
    struct json *present = NULL;
    for (struct json *item = json_first(finalizers); item; item = json_next(item))
        if (same(json_string(item, ""), name))
            present = item;
    if (wanted && !present)
        json_append_string(finalizers, name);
    if (!wanted && present)
        json_free(json_detach(finalizers, present));
    if (json_count(finalizers) == 0)
        json_remove(metadata, "finalizers");
}

static void set_propagation(struct json *metadata, const char *propagation)
{
    if (propagation == NULL)
        return;
    set_finalizer(metadata, "foregroundDeletion", same(propagation, "Foreground"));
    set_finalizer(metadata, "orphan", same(propagation, "Orphan"));
}

/* Only a pod that a node runs is deleted gracefully: the node ends its processes first. */
static int64_t grace_of(const struct resource *resource, const struct json *object, int64_t asked)
{
    const char *phase = json_string_at(object, "status.phase", "");
    bool runs = json_string_at(object, "spec.nodeName", "")[0] && !same(phase, "Succeeded") && !same(phase, "Failed");
    if (!same(resource->storage, "pods") || !runs)
        return 0;
    return asked >= 0 ? asked : json_integer_at(object, "spec.terminationGracePeriodSeconds", GRACE_SECONDS_DEFAULT);
}

static void stamp_deletion(struct json *metadata, int64_t grace_seconds)
{
    char when[CLOCK_TEXT_MAX];
    clock_format_seconds(clock_now_ms() + grace_seconds * 1000, when);
    json_set_string(metadata, "deletionTimestamp", when);
    json_set_integer(metadata, "deletionGracePeriodSeconds", grace_seconds);
}

/* A second delete may shorten the grace period, never lengthen it. */
static void mark_deleted(struct json *metadata, int64_t grace_seconds)
{
    bool marked = json_member(metadata, "deletionTimestamp") != NULL;
    if (!marked && json_member(metadata, "generation"))
        json_set_integer(metadata, "generation", json_integer_at(metadata, "generation", 0) + 1);
    if (!marked || grace_seconds < json_integer_at(metadata, "deletionGracePeriodSeconds", 0))
        stamp_deletion(metadata, grace_seconds);
}

static struct json *success_status(const struct resource *resource, const struct json *object)
{
    struct json *status = json_new_object();
    json_set_string(status, "kind", "Status");
    json_set_string(status, "apiVersion", "v1");
    json_set_object(status, "metadata");
    json_set_string(status, "status", "Success");
    struct json *details = json_set_object(status, "details");
    json_set_string(details, "name", json_string_at(object, "metadata.name", ""));
    if (resource->group[0])
        json_set_string(details, "group", resource->group);
    json_set_string(details, "kind", resource->plural);
    json_set_string(details, "uid", json_string_at(object, "metadata.uid", ""));
    return status;
}

static bool answers_with_object(const struct resource *resource)
{
    static const char *const types[] = {"pods", "services", "serviceaccounts", "persistentvolumeclaims"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (same(types[i], resource->storage))
            return true;
    return false;
}

static struct json *end_object(struct registry *registry, struct write *write, const struct json *old,
                               struct json *object, bool lingers)
{
    if (write->dry_run)
        return NULL;
    if (!lingers)
        return registry_remove(registry, write->resource, object);
    return json_equal(old, object) ? NULL : registry_put(registry, write->resource, object, old);
}

static struct json *check_delete(const struct resource *resource, const struct json *old,
                                 const struct delete_options *options)
{
    const char *name = json_string_at(old, "metadata.name", ""), *uid = json_string_at(old, "metadata.uid", "");
    const char *version = json_string_at(old, "metadata.resourceVersion", "");
    if (options->uid && options->uid[0] && !same(options->uid, uid))
        return refusal_precondition(resource, name, "UID", options->uid, uid, "deleted and then recreated");
    if (options->resource_version && options->resource_version[0] && !same(options->resource_version, version))
        return refusal_precondition(resource, name, "ResourceVersion", options->resource_version, version, "modified");
    return NULL;
}

struct json *registry_write_delete(struct registry *registry, struct write *write, const struct delete_options *options)
{
    const struct resource *resource = write->resource;
    SCOPED_JSON *old = NULL;
    REFUSE(registry_read(registry, resource, write->namespace, write->name, &old));
    REFUSE(check_delete(resource, old, options));
    SCOPED_JSON *own = json_copy(old);
    struct json *metadata = json_member(own, "metadata");
    int64_t grace = grace_of(resource, own, options->grace_seconds);
    bool is_namespace = same(resource->storage, "namespaces");
    set_propagation(metadata, options->propagation);
    bool lingers = grace > 0 || json_member(metadata, "finalizers") || is_namespace;
    if (lingers)
        mark_deleted(metadata, grace);
    if (is_namespace)
        json_set_string(json_set_object(own, "status"), "phase", "Terminating");
    REFUSE(end_object(registry, write, old, own, lingers));
    if (lingers || answers_with_object(resource)) {
        write->result = own;
        own = NULL;
    } else {
        write->result = success_status(resource, own);
    }
    return NULL;
}
