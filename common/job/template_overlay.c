/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/template_overlay.h"

#include <string.h>

#include "common/contract/labels.h"

static const struct {
    const char *list, *key;
} merge_keys[] = {
    {"containers", "name"},
    {"initContainers", "name"},
    {"env", "name"},
    {"volumes", "name"},
    {"volumeMounts", "mountPath"},
    {"volumeDevices", "devicePath"},
    {"ports", "containerPort"},
    {"imagePullSecrets", "name"},
    {"hostAliases", "ip"},
    {"resourceClaims", "name"},
    {"topologySpreadConstraints", "topologyKey"},
};

static const char *merge_key_of(const char *list)
{
    for (size_t i = 0; i < sizeof merge_keys / sizeof *merge_keys; i++)
        if (strcmp(list, merge_keys[i].list) == 0)
            return merge_keys[i].key;
    return NULL;
}

/* Where one member says which of several things it is: another's must not shine through. */
static const char *const unions[][6] = {
    {"exec", "httpGet", "tcpSocket", "grpc", "sleep"},                                 /* probes and hooks */
    {"value", "valueFrom"},                                                            /* env */
    {"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"}, /* valueFrom */
};
#define UNION_COUNT (sizeof unions / sizeof *unions)

static bool union_has(const char *const *members, const char *name)
{
    for (; *members; members++)
        if (strcmp(*members, name) == 0)
            return true;
    return false;
}

static void drop_alternatives(struct json *base, const struct json *overlay)
{
    for (const struct json *member = json_first(overlay); member; member = json_next(member))
        for (size_t i = 0; i < UNION_COUNT; i++)
            for (const char *const *other = unions[i]; union_has(unions[i], json_key(member)) && *other; other++)
                if (!json_member(overlay, *other))
                    json_remove(base, *other);
}

static struct json *find(const struct json *list, const char *key, const struct json *element)
{
    const struct json *wanted = json_member(element, key);
    for (struct json *item = json_first(list); wanted && item; item = json_next(item))
        if (json_equal(json_member(item, key), wanted))
            return item;
    return NULL;
}

/* A volume has one source beside its name: an overlay with another kind of source replaces that of the base. */
static void drop_other_sources(struct json *base, const struct json *overlay)
{
    for (struct json *member = json_first(base), *next; json_count(overlay) > 1 && member; member = next) {
        next = json_next(member);
        if (!json_member(overlay, json_key(member)))
            json_remove(base, json_key(member));
    }
}

static void overlay_object(struct json *base, const struct json *overlay, bool keeps_nulls);

static void overlay_list(struct json *base, const struct json *overlay, const char *key, bool keeps_nulls)
{
    bool volumes = strcmp(json_key(base), "volumes") == 0;
    for (const struct json *item = json_first(overlay); item; item = json_next(item)) {
        struct json *same = find(base, key, item);
        if (same && volumes)
            drop_other_sources(same, item);
        if (same)
            overlay_object(same, item, keeps_nulls);
        else
            json_append(base, json_copy(item));
    }
}

static void overlay_object(struct json *base, const struct json *overlay, bool keeps_nulls)
{
    drop_alternatives(base, overlay);
    for (const struct json *member = json_first(overlay); member; member = json_next(member)) {
        const char *name = json_key(member), *merge_key = merge_key_of(name);
        struct json *old = json_member(base, name);
        if (json_type(member) == JSON_NULL)
            json_set(base, name, keeps_nulls ? json_new_null() : NULL);
        else if (json_type(member) == JSON_OBJECT && json_type(old) == JSON_OBJECT)
            overlay_object(old, member, keeps_nulls);
        else if (json_type(member) == JSON_ARRAY && json_type(old) == JSON_ARRAY && merge_key)
            overlay_list(old, member, merge_key, keeps_nulls);
        else
            json_set(base, name, json_copy(member));
    }
}

void template_overlay(struct json *base, const struct json *overlay)
{
    overlay_object(base, overlay, false);
}

void template_merge(struct json *base, const struct json *overlay)
{
    overlay_object(base, overlay, true);
}

struct json *template_main_container(const struct json *template)
{
    const struct json *containers = json_at(template, "spec.containers");
    for (struct json *item = json_first(containers); item; item = json_next(item))
        if (strcmp(json_string_at(item, "name", ""), TRAINER_CONTAINER) == 0)
            return item;
    return json_first(containers);
}

static bool is_merged(const struct json *value)
{
    const char *name = json_key(value);
    return json_type(value) == JSON_OBJECT || (json_type(value) == JSON_ARRAY && name && merge_key_of(name));
}

int template_overlay_check(const struct json *overlay, struct error *error)
{
    size_t count = is_merged(overlay) ? json_count(overlay) : 0;
    if (count > TEMPLATE_BREADTH_MAX)
        return error_set(error, ERROR_INVALID, "%s has %zu %s, at most %d are allowed",
                         json_key(overlay) ? json_key(overlay) : "an element", count,
                         json_type(overlay) == JSON_OBJECT ? "fields" : "elements", TEMPLATE_BREADTH_MAX);
    for (const struct json *item = json_first(overlay); item; item = json_next(item))
        if (template_overlay_check(item, error) < 0)
            return -1;
    return 0;
}
