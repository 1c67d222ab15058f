/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "operator/standalone/patch.h"

/* Lists that merge, by the name of their field. Where a name has several keys, the one that the elements carry counts
 * ("ports" of a container and of a Service). Key NULL: a list of plain values that merges as a set. */
static const struct {
    const char *field, *key;
} merged_lists[] = {
    {"containers", "name"},
    {"initContainers", "name"},
    {"ephemeralContainers", "name"},
    {"env", "name"},
    {"ports", "containerPort"},
    {"ports", "port"},
    {"volumes", "name"},
    {"volumeMounts", "mountPath"},
    {"volumeDevices", "devicePath"},
    {"imagePullSecrets", "name"},
    {"secrets", "name"},
    {"hostAliases", "ip"},
    {"topologySpreadConstraints", "topologyKey"},
    {"resourceClaims", "name"},
    {"ownerReferences", "uid"},
    {"conditions", "type"},
    {"podIPs", "ip"},
    {"hostIPs", "ip"},
    {"addresses", "type"},
    {"finalizers", NULL},
};
#define MERGED_LISTS (sizeof merged_lists / sizeof merged_lists[0])

static bool merges_as_set(const char *field)
{
    return strcmp(field, "finalizers") == 0;
}

const char *patch_merge_key(const char *field, const struct json *list)
{
    for (size_t i = 0; i < MERGED_LISTS; i++)
        if (merged_lists[i].key && strcmp(merged_lists[i].field, field) == 0 &&
            json_member(json_first(list), merged_lists[i].key))
            return merged_lists[i].key;
    return NULL;
}

static bool has_directive(const struct json *patch, const char *word)
{
    return strcmp(json_string(json_member(patch, "$patch"), ""), word) == 0;
}

static const char *after_prefix(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

static struct json *find_by_key(const struct json *list, const char *key, const struct json *wanted)
{
    for (struct json *item = json_first(list); item; item = json_next(item)) {
        const struct json *value = json_member(item, key);
        if (value && json_equal(value, wanted))
            return item;
    }
    return NULL;
}

static struct json *find_equal(const struct json *list, const struct json *wanted)
{
    for (struct json *item = json_first(list); item; item = json_next(item))
        if (json_equal(item, wanted))
            return item;
    return NULL;
}

static int merge_object(struct json *target, const struct json *patch, struct error *error);

static int merge_element(struct json *list, const char *key, const struct json *element, struct error *error)
{
    const struct json *wanted = json_member(element, key);
    if (wanted == NULL)
        return error_set(error, ERROR_INVALID, "map: %s does not contain declared merge key: %s", "a list element",
                         key);
    struct json *present = find_by_key(list, key, wanted);
    if (has_directive(element, "delete")) {
        if (present)
            json_free(json_detach(list, present));
        return 0;
    }
    return merge_object(present ? present : json_append(list, json_new_object()), element, error);
}

/* A list that does not merge, or one that says {"$patch": "replace"}: taken as it is, without the directive. */
static void replace_list(struct json *target, const char *field, const struct json *patch)
{
    struct json *list = json_set(target, field, json_copy(patch));
    for (struct json *next, *item = json_first(list); item; item = next) {
        next = json_next(item);
        if (has_directive(item, "replace"))
            json_free(json_detach(list, item));
    }
}

static int merge_list(struct json *target, const char *field, const struct json *patch, struct error *error)
{
    const char *key = patch_merge_key(field, patch);
    if (key == NULL && !merges_as_set(field)) {
        replace_list(target, field, patch);
        return 0;
    }
    struct json *list = json_set_array(target, field);
    for (const struct json *element = json_first(patch); element; element = json_next(element)) {
        if (key && merge_element(list, key, element, error) < 0)
            return -1;
        if (!key && !find_equal(list, element))
            json_append(list, json_copy(element));
    }
    return 0;
}

/* ---- directives of an object ---- */

static void delete_from_list(struct json *list, const struct json *values)
{
    for (const struct json *value = json_first(values); value; value = json_next(value)) {
        struct json *present = find_equal(list, value);
        if (present)
            json_free(json_detach(list, present));
    }
}

static void retain_keys(struct json *target, const struct json *keys)
{
    for (struct json *next, *member = json_first(target); member; member = next) {
        next = json_next(member);
        bool kept = false;
        for (const struct json *key = json_first(keys); key; key = json_next(key))
            kept |= strcmp(json_string(key, ""), json_key(member)) == 0;
        if (!kept)
            json_free(json_detach(target, member));
    }
}

/* Elements that the order names come in that order; the others keep theirs behind them. */
static void order_list(struct json *list, const char *field, const struct json *order)
{
    const char *key = patch_merge_key(field, order);
    SCOPED_JSON *rest = json_new_array();
    SCOPED_JSON *sorted = json_new_array();
    for (const struct json *wanted = json_first(order); wanted; wanted = json_next(wanted)) {
        struct json *item = key ? find_by_key(list, key, json_member(wanted, key)) : find_equal(list, wanted);
        if (item)
            json_append(sorted, json_detach(list, item));
    }
    for (struct json *item; (item = json_first(list));)
        json_append(rest, json_detach(list, item));
    for (struct json *item; (item = json_first(sorted));)
        json_append(list, json_detach(sorted, item));
    for (struct json *item; (item = json_first(rest));)
        json_append(list, json_detach(rest, item));
}

static void apply_late_directive(struct json *target, const char *name, const struct json *value)
{
    const char *field = after_prefix(name, "$deleteFromPrimitiveList/");
    if (field)
        delete_from_list(json_member(target, field), value);
    field = after_prefix(name, "$setElementOrder/");
    if (field)
        order_list(json_member(target, field), field, value);
}

static void replace_object(struct json *target, const struct json *patch)
{
    for (struct json *member; (member = json_first(target));)
        json_free(json_detach(target, member));
    for (const struct json *member = json_first(patch); member; member = json_next(member))
        if (strcmp(json_key(member), "$patch") != 0)
            json_set(target, json_key(member), json_copy(member));
}

static int merge_member(struct json *target, const struct json *member, struct error *error)
{
    const char *key = json_key(member);
    if (json_type(member) == JSON_NULL) {
        json_remove(target, key);
        return 0;
    }
    if (json_type(member) == JSON_ARRAY)
        return merge_list(target, key, member, error);
    if (json_type(member) == JSON_OBJECT && has_directive(member, "delete")) {
        json_remove(target, key);
        return 0;
    }
    if (json_type(member) == JSON_OBJECT)
        return merge_object(json_set_object(target, key), member, error);
    json_set(target, key, json_copy(member));
    return 0;
}

static int merge_object(struct json *target, const struct json *patch, struct error *error)
{
    if (has_directive(patch, "replace")) {
        replace_object(target, patch);
        return 0;
    }
    for (const struct json *member = json_first(patch); member; member = json_next(member))
        if (json_key(member)[0] != '$' && merge_member(target, member, error) < 0)
            return -1;
    for (const struct json *member = json_first(patch); member; member = json_next(member))
        apply_late_directive(target, json_key(member), member);
    if (json_member(patch, "$retainKeys"))
        retain_keys(target, json_member(patch, "$retainKeys"));
    return 0;
}

int patch_apply_strategic(struct json *target, const struct json *patch, struct error *error)
{
    if (json_type(patch) != JSON_OBJECT)
        return error_set(error, ERROR_INVALID, "a strategic merge patch must be a JSON object");
    return merge_object(target, patch, error);
}
