/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/apply.h"

#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "operator/standalone/field_set.h"
#include "operator/standalone/refusal.h"

/* ---------------------------------------------------------------- laying over */

static void lay_over(struct json *live, const struct json *config, struct field_place place);

static void lay_list_over(struct json *live, const struct json *config, struct field_place place,
                          const struct field_keys *keys)
{
    for (const struct json *item = json_first(config); item; item = json_next(item)) {
        struct json *present = field_element(live, keys, item);
        if (present == NULL)
            json_append(live, json_copy(item));
        else if (json_type(item) == JSON_OBJECT && json_type(present) == JSON_OBJECT)
            lay_over(present, item, field_place_element(place));
    }
}

static void lay_member_over(struct json *live, const struct json *member, struct field_place place)
{
    struct json *present = json_member(live, json_key(member));
    struct field_keys keys = field_keys_of(place, member);
    bool lists = json_type(member) == JSON_ARRAY && json_type(present) == JSON_ARRAY;
    if (lists && (keys.set || keys.keys[0]))
        lay_list_over(present, member, place, &keys);
    else if (json_type(member) == JSON_OBJECT && json_type(present) == JSON_OBJECT && !field_is_atomic(place))
        lay_over(present, member, place);
    else
        json_set(live, json_key(member), json_copy(member));
}

static void lay_over(struct json *live, const struct json *config, struct field_place place)
{
    for (const struct json *member = json_first(config); member; member = json_next(member))
        lay_member_over(live, member, field_place_member(place, json_key(member)));
}

/* ---------------------------------------------------------------- taking away */

/* `gone`: leaves that no manager sets any more. */
static void take_away(struct json *value, const struct json *gone, struct field_place place)
{
    for (const struct json *item = json_first(gone); item; item = json_next(item)) {
        struct field_place inner;
        const char *element = json_key(item);
        struct json *found = strcmp(element, ".") == 0 ? NULL : field_resolve(value, element, place, &inner);
        if (found == NULL)
            continue;
        bool leaf = json_first(item) == NULL, whole = json_member(item, ".") != NULL;
        if (leaf || whole)
            json_free(json_detach(value, found));
        else
            take_away(found, item, inner);
    }
}

/* ---------------------------------------------------------------- conflicts */

/* An applier that writes {} only says that the object exists; its members belong to other managers. */
static bool is_granular(const struct json *value, struct field_place place)
{
    struct field_keys keys = field_keys_of(place, value);
    return json_type(value) == JSON_ARRAY ? keys.set || keys.keys[0]
                                          : json_type(value) == JSON_OBJECT && !field_is_atomic(place);
}

/* Returns the path of the first leaf that both sets have with different values; NULL: none. Free with free(). */
static char *find_conflict(const struct json *own, const struct json *other, const struct json *config,
                           const struct json *live, struct field_place place)
{
    for (const struct json *item = json_first(own); item; item = json_next(item)) {
        const struct json *theirs = json_member(other, json_key(item));
        struct field_place inner;
        if (theirs == NULL || strcmp(json_key(item), ".") == 0)
            continue;
        const struct json *wanted = field_resolve(config, json_key(item), place, &inner);
        const struct json *present = field_resolve(live, json_key(item), place, &inner);
        bool leaf = json_first(item) == NULL && json_first(theirs) == NULL;
        if (leaf && !is_granular(wanted, inner) && !json_equal(wanted, present))
            return memory_format(".%s", json_key(item) + 2);
        SCOPED_FREE char *deeper = find_conflict(item, theirs, wanted, present, inner);
        if (deeper)
            return memory_format(".%s%s", json_key(item) + 2, deeper);
    }
    return NULL;
}

static struct json *refuse_conflict(const struct apply_request *request, const struct json *object, const char *manager,
                                    const char *path)
{
    char type[API_VERSION_TEXT_MAX];
    resource_qualified(request->resource, type);
    struct json *refusal =
        refusal_new(409, "Conflict", "Apply failed with 1 conflict: conflict with \"%s\": %s", manager, path);
    struct json *details = json_set_object(refusal, "details");
    json_set_string(details, "name", json_string_at(object, "metadata.name", ""));
    json_set_string(details, "kind", type);
    return refusal;
}

/* ---------------------------------------------------------------- managers */

static bool is_entry_of(const struct apply_request *request, const struct json *entry)
{
    return strcmp(json_string_at(entry, "manager", ""), request->manager) == 0 &&
           strcmp(json_string_at(entry, "subresource", ""), request->subresource) == 0;
}

static struct json *new_entry(const struct apply_request *request, const struct json *set)
{
    char now[CLOCK_TEXT_MAX], version[API_VERSION_TEXT_MAX];
    struct json *entry = json_new_object();
    clock_format_seconds(clock_now_ms(), now);
    resource_api_version(request->resource, version);
    json_set_string(entry, "manager", request->manager);
    json_set_string(entry, "operation", "Apply");
    json_set_string(entry, "apiVersion", version);
    json_set_string(entry, "time", now);
    json_set_string(entry, "fieldsType", "FieldsV1");
    json_set(entry, "fieldsV1", json_copy(set));
    if (request->subresource[0])
        json_set_string(entry, "subresource", request->subresource);
    return entry;
}

/* A manager that applies the same as before keeps its entry, including its time. */
static void add_own_entry(struct json *entries, const struct apply_request *request, const struct json *before,
                          const struct json *set)
{
    if (before && json_equal(json_member(before, "fieldsV1"), set))
        json_append(entries, json_copy(before));
    else if (json_first(set))
        json_append(entries, new_entry(request, set));
}

/* Fields that identify the object belong to no manager. */
static struct json *own_set(const struct apply_request *request, const struct json *config)
{
    static const char *const nobodys[] = {"name",         "namespace",        "uid",      "resourceVersion",
                                          "generation",   "managedFields",    "selfLink", "creationTimestamp",
                                          "generateName", "deletionTimestamp"};
    SCOPED_JSON *spoken = json_copy(config);
    json_remove(spoken, "apiVersion");
    json_remove(spoken, "kind");
    struct json *metadata = json_member(spoken, "metadata");
    for (size_t i = 0; metadata && i < sizeof nobodys / sizeof nobodys[0]; i++)
        json_remove(metadata, nobodys[i]);
    if (metadata && (json_first(metadata) == NULL || request->subresource[0]))
        json_remove(spoken, "metadata");
    return field_set_of(spoken, field_place_of(request->resource));
}

/* Another manager's entry as it will be; NULL with `ret_refusal` when it is in the way. */
static struct json *others_entry(const struct apply_request *request, const struct json *entry, const struct json *set,
                                 const struct json *config, const struct json *object, struct json **ret_refusal)
{
    const struct json *theirs = json_member(entry, "fieldsV1");
    SCOPED_FREE char *path = find_conflict(set, theirs, config, object, field_place_of(request->resource));
    if (path && !request->force) {
        *ret_refusal = refuse_conflict(request, object, json_string_at(entry, "manager", ""), path);
        return NULL;
    }
    struct json *kept = json_copy(entry);
    if (path)
        field_set_subtract(json_member(kept, "fieldsV1"), set);
    return kept;
}

/* Removes from `object` what this manager set before, sets no longer, and no other manager sets. */
static void forget_former(const struct apply_request *request, const struct json *before, const struct json *set,
                          const struct json *others, struct json *object)
{
    SCOPED_JSON *gone = json_copy(json_member(before, "fieldsV1"));
    field_set_subtract(gone, set);
    field_set_subtract(gone, others);
    take_away(object, gone, field_place_of(request->resource));
}

struct json *apply_configuration(const struct apply_request *request, const struct json *config, struct json *object,
                                 struct json **ret_managed_fields)
{
    SCOPED_JSON *set = own_set(request, config);
    SCOPED_JSON *others = json_new_object();
    SCOPED_JSON *entries = json_new_array();
    const struct json *before = NULL, *managers = json_at(object, "metadata.managedFields");
    for (const struct json *entry = json_first(managers); entry; entry = json_next(entry)) {
        struct json *refused = NULL, *kept;
        if (is_entry_of(request, entry)) {
            before = entry;
            add_own_entry(entries, request, before, set);
            continue;
        }
        kept = others_entry(request, entry, set, config, object, &refused);
        if (refused)
            return refused;
        json_append(entries, kept);
        field_set_add(others, json_member(kept, "fieldsV1"));
    }
    if (before)
        forget_former(request, before, set, others, object);
    else
        add_own_entry(entries, request, NULL, set);
    lay_over(object, config, field_place_of(request->resource));
    *ret_managed_fields = entries;
    entries = NULL;
    return NULL;
}
