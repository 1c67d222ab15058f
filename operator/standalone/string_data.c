/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/string_data.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/base64.h"

#define KEY_MAX 253
#define KEY_RULE                                                                                                       \
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "  \
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"

static const struct data_map {
    const char *storage, *field;
    bool base64;
} maps[] = {
    {"configmaps", "data", false},
    {"configmaps", "binaryData", true},
    {"secrets", "data", true},
};
#define MAPS_COUNT (sizeof maps / sizeof maps[0])

static const struct json *map_of(const struct data_map *map, const struct resource *resource, const struct json *object)
{
    return strcmp(map->storage, resource->storage) == 0 ? json_member(object, map->field) : NULL;
}

/* ---- can it be decoded? ---- */

static struct json *refuse_type(const struct resource *resource, const struct data_map *map, const struct json *value,
                                const char *wanted)
{
    return refusal_bad_request("%s in version \"v1\" cannot be handled as a %s: json: cannot unmarshal %s into Go "
                               "struct field %s.%s of type %s",
                               resource->kind, resource->kind, json_type_name(json_type(value)), resource->kind,
                               map->field, wanted);
}

static bool is_base64(const char *text)
{
    SCOPED_FREE char *bytes = NULL;
    size_t length;
    return base64_decode(text, &bytes, &length, NULL) == 0;
}

static struct json *refuse_map(const struct resource *resource, const struct data_map *map, const struct json *values)
{
    if (json_type(values) == JSON_NULL)
        return NULL;
    if (json_type(values) != JSON_OBJECT)
        return refuse_type(resource, map, values, map->base64 ? "map[string][]uint8" : "map[string]string");
    for (const struct json *value = json_first(values); value; value = json_next(value)) {
        if (json_type(value) != JSON_STRING && json_type(value) != JSON_NULL)
            return refuse_type(resource, map, value, map->base64 ? "[]uint8" : "string");
        if (map->base64 && !is_base64(json_string(value, "")))
            return refusal_bad_request("%s in version \"v1\" cannot be handled as a %s: illegal base64 data in %s",
                                       resource->kind, resource->kind, json_key(value));
    }
    return NULL;
}

struct json *string_data_refuse(const struct resource *resource, const struct json *object)
{
    struct json *refused = NULL;
    for (size_t i = 0; i < MAPS_COUNT && refused == NULL; i++) {
        const struct json *values = map_of(&maps[i], resource, object);
        if (values)
            refused = refuse_map(resource, &maps[i], values);
    }
    return refused;
}

/* ---- is it valid? ---- */

static bool is_config_key(const char *key)
{
    size_t length = strlen(key);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)key[i]) && strchr("-._", key[i]) == NULL)
            return false;
    return length > 0 && length <= KEY_MAX;
}

static void check_keys(const char *field, const struct json *values, struct json *causes)
{
    for (const struct json *value = json_first(values); value; value = json_next(value)) {
        char at[KEY_MAX + 32];
        if (is_config_key(json_key(value)))
            continue;
        SCOPED_JSON *key = json_new_string(json_key(value));
        snprintf(at, sizeof at, "%s[%s]", field, json_key(value));
        cause_add(causes, CAUSE_INVALID, at, key, KEY_RULE);
    }
}

void string_data_check(const struct resource *resource, const struct json *object, struct json *causes)
{
    for (size_t i = 0; i < MAPS_COUNT; i++)
        check_keys(maps[i].field, map_of(&maps[i], resource, object), causes);
}
