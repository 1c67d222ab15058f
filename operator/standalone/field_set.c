/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/field_set.h"

#include <string.h>

#include "common/memory.h"
#include "operator/standalone/patch.h"

#define ELEMENT_MAX (64 * 1024)

/* ---------------------------------------------------------------- places */

struct field_place field_place_of(const struct resource *resource)
{
    return (struct field_place){
        .schema = json_at(resource->version_definition, "schema.openAPIV3Schema"),
        .name = "",
        .builtin = resource->definition == NULL,
    };
}

struct field_place field_place_member(struct field_place place, const char *name)
{
    const struct json *known = json_member(json_member(place.schema, "properties"), name);
    place.schema = known ? known : json_member(place.schema, "additionalProperties");
    place.name = name;
    return place;
}

struct field_place field_place_element(struct field_place place)
{
    place.schema = json_member(place.schema, "items");
    place.name = "";
    return place;
}

static void add_key(struct field_keys *keys, const char *key)
{
    for (size_t i = 0; key && i < FIELD_KEYS_MAX; i++)
        if (keys->keys[i] == NULL) {
            keys->keys[i] = key;
            return;
        }
}

struct field_keys field_keys_of(struct field_place place, const struct json *list)
{
    struct field_keys keys = {0};
    const char *type = json_string_at(place.schema, "x-kubernetes-list-type", "atomic");
    const struct json *named = json_member(place.schema, "x-kubernetes-list-map-keys");
    if (place.builtin)
        add_key(&keys, patch_merge_key(place.name, list));
    else if (strcmp(place.name, "ownerReferences") == 0)
        add_key(&keys, "uid");
    else if (strcmp(type, "map") == 0)
        for (const struct json *key = json_first(named); key; key = json_next(key))
            add_key(&keys, json_string(key, NULL));
    keys.set = strcmp(type, "set") == 0 || strcmp(place.name, "finalizers") == 0;
    return keys;
}

bool field_is_atomic(struct field_place place)
{
    return strcmp(json_string_at(place.schema, "x-kubernetes-map-type", ""), "atomic") == 0;
}

/* ---------------------------------------------------------------- elements of lists */

static bool agrees(const struct json *element, const struct field_keys *keys, const struct json *like)
{
    if (keys->set)
        return json_equal(element, like);
    for (const char *const *key = keys->keys; *key; key++)
        if (!json_equal(json_member(element, *key), json_member(like, *key)))
            return false;
    return keys->keys[0] != NULL;
}

struct json *field_element(const struct json *list, const struct field_keys *keys, const struct json *like)
{
    for (struct json *item = json_first(list); item; item = json_next(item))
        if (agrees(item, keys, like))
            return item;
    return NULL;
}

static struct json *keys_of_element(const struct field_keys *keys, const struct json *element)
{
    struct json *object = json_new_object();
    for (const char *const *key = keys->keys; *key; key++)
        if (json_member(element, *key))
            json_set(object, *key, json_copy(json_member(element, *key)));
    return object;
}

/* `k:{…}` or `v:…` for an element; free with free(). */
static char *element_name(const struct field_keys *keys, const struct json *element)
{
    SCOPED_JSON *object = keys->set ? json_copy(element) : keys_of_element(keys, element);
    SCOPED_BUFFER text = BUFFER_INIT(ELEMENT_MAX);
    buffer_append_string(&text, keys->set ? "v:" : "k:", NULL);
    json_print(object, &text, NULL);
    return memory_copy_string(buffer_text(&text));
}

struct json *field_resolve(const struct json *value, const char *element, struct field_place place,
                           struct field_place *ret_place)
{
    if (strncmp(element, "f:", 2) == 0) {
        *ret_place = field_place_member(place, element + 2);
        return json_member(value, element + 2);
    }
    *ret_place = field_place_element(place);
    SCOPED_JSON *like = NULL;
    struct field_keys keys = field_keys_of(place, value);
    if (element[0] == '\0' || element[1] != ':' ||
        json_parse(element + 2, strlen(element + 2), ELEMENT_MAX, &like, NULL) < 0)
        return NULL;
    return field_element(value, &keys, like);
}

/* ---------------------------------------------------------------- sets */

static struct json *set_of_list(const struct json *list, struct field_place place)
{
    struct json *set = json_new_object();
    struct field_keys keys = field_keys_of(place, list);
    if (!keys.set && keys.keys[0] == NULL)
        return set;
    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        SCOPED_FREE char *name = element_name(&keys, item);
        struct json *inside = keys.set ? json_new_object() : field_set_of(item, field_place_element(place));
        if (!keys.set)
            json_set(inside, ".", json_new_object());
        json_set(set, name, inside);
    }
    return set;
}

struct json *field_set_of(const struct json *value, struct field_place place)
{
    if (json_type(value) == JSON_ARRAY)
        return set_of_list(value, place);
    struct json *set = json_new_object();
    if (json_type(value) != JSON_OBJECT || field_is_atomic(place))
        return set;
    for (const struct json *member = json_first(value); member; member = json_next(member)) {
        SCOPED_FREE char *name = memory_format("f:%s", json_key(member));
        json_set(set, name, field_set_of(member, field_place_member(place, json_key(member))));
    }
    return set;
}

void field_set_add(struct json *set, const struct json *more)
{
    for (const struct json *item = json_first(more); item; item = json_next(item))
        field_set_add(json_set_object(set, json_key(item)), item);
}

void field_set_subtract(struct json *set, const struct json *other)
{
    for (const struct json *item = json_first(other); item; item = json_next(item)) {
        struct json *own = json_member(set, json_key(item));
        if (own == NULL)
            continue;
        bool leaf = json_first(own) == NULL, other_leaf = json_first(item) == NULL;
        field_set_subtract(own, item);
        if (leaf == other_leaf && json_first(own) == NULL)
            json_remove(set, json_key(item));
    }
}
