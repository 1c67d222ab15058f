/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_environment.h"

#include "common/base64.h"
#include "common/memory.h"
#include "operator/standalone/node.h"

void environment_release(struct environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        free(environment->entries[i]);
    free(environment->entries);
    *environment = (struct environment){.count = 0};
}

static bool entry_has_name(const char *entry, const char *name, size_t length)
{
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

void environment_set(struct environment *environment, const char *name, const char *value)
{
    char *entry = memory_format("%s=%s", name, value);
    for (size_t i = 0; i < environment->count; i++) {
        if (entry_has_name(environment->entries[i], name, strlen(name))) {
            free(environment->entries[i]);
            environment->entries[i] = entry;
            return;
        }
    }
    environment->entries = memory_resize(environment->entries, environment->count + 2, sizeof *environment->entries);
    environment->entries[environment->count++] = entry;
    environment->entries[environment->count] = NULL;
}

static const char *get_part(const struct environment *environment, const char *name, size_t length)
{
    for (size_t i = 0; i < environment->count; i++) {
        if (entry_has_name(environment->entries[i], name, length))
            return environment->entries[i] + length + 1;
    }
    return NULL;
}

const char *environment_get(const struct environment *environment, const char *name)
{
    return get_part(environment, name, strlen(name));
}

/* ---------------------------------------------------------------- $(NAME) */

/* Length of the reference at `text` ("$(NAME)"), 0 when it is none. */
static size_t reference_length(const char *text)
{
    if (text[0] != '$' || text[1] != '(')
        return 0;
    size_t name = strcspn(text + 2, ")");
    return text[2 + name] == ')' ? name + 3 : 0;
}

char *environment_expand(const struct environment *environment, const char *text)
{
    SCOPED_BUFFER out = BUFFER_INIT(SIZE_MAX / 2);
    while (*text) {
        if (text[0] == '$' && text[1] == '$') {
            buffer_append_byte(&out, '$', NULL);
            text += 2;
            continue;
        }
        size_t length = reference_length(text);
        const char *value = length ? get_part(environment, text + 2, length - 3) : NULL;
        if (value)
            buffer_append_string(&out, value, NULL);
        else
            buffer_append(&out, text, length ? length : 1, NULL);
        text += length ? length : 1;
    }
    return buffer_take(&out);
}

/* ---------------------------------------------------------------- fields of the pod */

/* metadata.labels as a downwardAPI volume shows them: name="value" lines. */
static char *map_lines(const struct json *map)
{
    SCOPED_BUFFER out = BUFFER_INIT(SIZE_MAX / 2);
    for (const struct json *member = json_first(map); member; member = json_next(member))
        buffer_format(&out, "%s=\"%s\"\n", json_key(member), json_string(member, ""));
    return buffer_take(&out);
}

/* metadata.labels['key']: the key, released with free(), or NULL. */
static char *subscript(const char *path, const char *map)
{
    size_t length = strlen(map), whole = strlen(path);
    if (strncmp(path, map, length) != 0 || strncmp(path + length, "['", 2) != 0 || whole < length + 4 ||
        strcmp(path + whole - 2, "']") != 0)
        return NULL;
    return memory_copy_bytes(path + length + 2, whole - length - 4);
}

char *pod_field(const struct json *pod, const char *path)
{
    static const char *const maps[] = {"metadata.labels", "metadata.annotations"};
    static const char *const plain[] = {"metadata.name",          "metadata.namespace", "metadata.uid",
                                        "spec.nodeName",          "status.podIP",       "status.hostIP",
                                        "spec.serviceAccountName"};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        const struct json *map = json_at(pod, maps[i]);
        if (strcmp(path, maps[i]) == 0)
            return map_lines(map);
        SCOPED_FREE char *key = subscript(path, maps[i]);
        if (key)
            return memory_copy_string(json_string(json_member(map, key), ""));
    }
    if (strcmp(path, "status.podIPs") == 0 || strcmp(path, "status.hostIPs") == 0)
        path = path[7] == 'p' ? "status.podIP" : "status.hostIP";
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (strcmp(path, plain[i]) == 0)
            return memory_copy_string(json_string_at(pod, path, strcmp(path, "spec.nodeName") == 0 ? NODE_NAME : ""));
    }
    return NULL;
}

/* ---------------------------------------------------------------- ConfigMaps and Secrets */

char *config_value(const struct json *object, const char *key, size_t *ret_length)
{
    bool secret = strcmp(json_string_at(object, "kind", ""), "Secret") == 0;
    const char *plain = json_string(json_member(json_member(object, secret ? "stringData" : "data"), key), NULL);
    if (plain) {
        *ret_length = strlen(plain);
        return memory_copy_string(plain);
    }
    const char *encoded = json_string(json_member(json_member(object, secret ? "data" : "binaryData"), key), NULL);
    char *bytes = NULL;
    return encoded && base64_decode(encoded, &bytes, ret_length, NULL) == 0 ? bytes : NULL;
}

/* ---------------------------------------------------------------- env, envFrom */

static int add_config_key(struct environment *environment, const char *name, const struct json *reference,
                          const char *plural, const struct environment_source *source, struct error *error)
{
    const char *object_name = json_string_at(reference, "name", "");
    const char *key = json_string_at(reference, "key", "");
    SCOPED_JSON *object = source->lookup(source->context, plural, object_name);
    size_t length;
    SCOPED_FREE char *value = object ? config_value(object, key, &length) : NULL;
    if (value)
        environment_set(environment, name, value);
    else if (!json_boolean_at(reference, "optional", false))
        return error_set(error, ERROR_NOT_FOUND, "env %s: no key \"%s\" in %s \"%s\"", name, key, plural, object_name);
    return 0;
}

static int add_value_from(struct environment *environment, const char *name, const struct json *from,
                          const struct environment_source *source, struct error *error)
{
    const char *field = json_string_at(from, "fieldRef.fieldPath", NULL);
    if (field) {
        SCOPED_FREE char *value = pod_field(source->pod, field);
        if (!value)
            return error_set(error, ERROR_UNSUPPORTED,
                             "env %s: the embedded control plane does not support the field \"%s\"", name, field);
        environment_set(environment, name, value);
        return 0;
    }
    if (json_member(from, "configMapKeyRef"))
        return add_config_key(environment, name, json_member(from, "configMapKeyRef"), "configmaps", source, error);
    if (json_member(from, "secretKeyRef"))
        return add_config_key(environment, name, json_member(from, "secretKeyRef"), "secrets", source, error);
    return error_set(
        error, ERROR_UNSUPPORTED,
        "env %s: the embedded control plane supports only fieldRef, configMapKeyRef and secretKeyRef in valueFrom",
        name);
}

static int add_all_of(struct environment *environment, const struct json *from, const struct environment_source *source,
                      struct error *error)
{
    bool secret = json_member(from, "secretRef") != NULL;
    const struct json *reference = json_member(from, secret ? "secretRef" : "configMapRef");
    const char *object_name = json_string_at(reference, "name", "");
    SCOPED_JSON *object = source->lookup(source->context, secret ? "secrets" : "configmaps", object_name);
    if (!object && !json_boolean_at(reference, "optional", false))
        return error_set(error, ERROR_NOT_FOUND, "envFrom: there is no %s \"%s\"", secret ? "Secret" : "ConfigMap",
                         object_name);
    for (const struct json *item = json_first(json_member(object, "data")); item; item = json_next(item)) {
        size_t length;
        SCOPED_FREE char *value = config_value(object, json_key(item), &length);
        SCOPED_FREE char *name = memory_format("%s%s", json_string_at(from, "prefix", ""), json_key(item));
        if (value)
            environment_set(environment, name, value);
    }
    return 0;
}

int environment_resolve(struct environment *environment, const struct json *container,
                        const struct environment_source *source, struct error *error)
{
    for (const struct json *from = json_first(json_member(container, "envFrom")); from; from = json_next(from)) {
        if (add_all_of(environment, from, source, error) < 0)
            return -1;
    }
    for (const struct json *item = json_first(json_member(container, "env")); item; item = json_next(item)) {
        const char *name = json_string_at(item, "name", "");
        const struct json *from = json_member(item, "valueFrom");
        if (from) {
            if (add_value_from(environment, name, from, source, error) < 0)
                return -1;
            continue;
        }
        SCOPED_FREE char *value = environment_expand(environment, json_string_at(item, "value", ""));
        environment_set(environment, name, value);
    }
    return 0;
}
