/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "operator/standalone/patch.h"

/* ---- JSON Pointer (RFC 6901) ---- */

/* The next reference token, unescaped; `*at` stands on '/' before and on '/' or the end after. */
static char *next_token(const char **at)
{
    size_t length = strcspn(*at + 1, "/");
    char *token = memory_copy_bytes(*at + 1, length);
    *at += 1 + length;
    char *out = token;
    for (const char *in = token; *in; in++) {
        bool escaped = in[0] == '~' && (in[1] == '0' || in[1] == '1');
        *out++ = !escaped ? *in : in[1] == '0' ? '~' : '/';
        in += escaped;
    }
    *out = '\0';
    return token;
}

static bool parse_index(const char *token, size_t *ret_index)
{
    char *end;
    if (token[0] < '0' || token[0] > '9' || (token[0] == '0' && token[1]))
        return false;
    *ret_index = strtoul(token, &end, 10);
    return *end == '\0';
}

static struct json *child_of(const struct json *value, const char *token)
{
    size_t index;
    if (json_type(value) == JSON_ARRAY)
        return parse_index(token, &index) ? json_element(value, index) : NULL;
    return json_member(value, token);
}

/* The container that holds what `pointer` names, and the last token (the caller frees it). NULL when there is none. */
static struct json *parent_of(struct json *root, const char *pointer, char **ret_last)
{
    struct json *value = root;
    const char *at = pointer;
    while (*at == '/') {
        char *token = next_token(&at);
        if (*at == '\0') {
            *ret_last = token;
            return value;
        }
        value = child_of(value, token);
        free(token);
    }
    return NULL;
}

static struct json *find(struct json *root, const char *pointer)
{
    if (pointer[0] == '\0')
        return root;
    SCOPED_FREE char *last = NULL;
    return child_of(parent_of(root, pointer, &last), last ? last : "");
}

/* ---- operations ---- */

static void insert(struct json *array, size_t index, struct json *value)
{
    size_t after = json_count(array) - index;
    json_append(array, value);
    for (size_t i = 0; i < after; i++)
        json_append(array, json_detach(array, json_element(array, index)));
}

static int missing(const char *pointer, struct error *error)
{
    return error_set(error, ERROR_INVALID, "the JSON patch names a path that does not exist: \"%s\"", pointer);
}

/* Takes `value` over. */
static int add(struct json **root, const char *pointer, struct json *value, struct error *error)
{
    if (pointer[0] == '\0') {
        json_free(*root);
        *root = value;
        return 0;
    }
    SCOPED_FREE char *last = NULL;
    struct json *parent = parent_of(*root, pointer, &last);
    size_t index = json_count(parent);
    if (json_type(parent) == JSON_OBJECT) {
        json_set(parent, last, value);
        return 0;
    }
    bool at_end = last && strcmp(last, "-") == 0;
    if (json_type(parent) == JSON_ARRAY && (at_end || (parse_index(last, &index) && index <= json_count(parent)))) {
        insert(parent, index, value);
        return 0;
    }
    json_free(value);
    return missing(pointer, error);
}

static struct json *detach(struct json *root, const char *pointer)
{
    SCOPED_FREE char *last = NULL;
    struct json *parent = parent_of(root, pointer, &last);
    struct json *value = last ? child_of(parent, last) : NULL;
    return value ? json_detach(parent, value) : NULL;
}

static int replace(struct json **root, const char *pointer, const struct json *value, struct error *error)
{
    if (pointer[0] == '\0')
        return add(root, pointer, json_copy(value), error);
    struct json *old = detach(*root, pointer);
    if (old == NULL)
        return missing(pointer, error);
    json_free(old);
    return add(root, pointer, json_copy(value), error);
}

static bool is_inside(const char *from, const char *to)
{
    size_t length = strlen(from);
    return strncmp(from, to, length) == 0 && to[length] == '/';
}

static int transfer(struct json **root, const char *from, const char *to, bool keep, struct error *error)
{
    if (!keep && is_inside(from, to))
        return error_set(error, ERROR_INVALID, "the JSON patch moves \"%s\" into itself", from);
    struct json *value = keep ? find(*root, from) : detach(*root, from);
    if (value == NULL)
        return missing(from, error);
    return add(root, to, keep ? json_copy(value) : value, error);
}

static int drop(struct json *root, const char *pointer, struct error *error)
{
    struct json *value = detach(root, pointer);
    if (value == NULL)
        return missing(pointer, error);
    json_free(value);
    return 0;
}

/* Says what is wrong with an operation that has a path: its op, or what that needs. */
static int incomplete(const char *name, struct error *error)
{
    static const char *const of_value[] = {"add", "replace", "test", NULL}, *const of_from[] = {"move", "copy", NULL};
    for (const char *const *known = of_value; *known; known++)
        if (strcmp(name, *known) == 0)
            return error_set(error, ERROR_INVALID, "the JSON patch operation \"%s\" needs a value", name);
    for (const char *const *known = of_from; *known; known++)
        if (strcmp(name, *known) == 0)
            return error_set(error, ERROR_INVALID, "the JSON patch operation \"%s\" needs a path in \"from\"", name);
    return error_set(error, ERROR_INVALID,
                     "\"%s\" is not a JSON patch operation: use add, remove, replace, move, copy or test", name);
}

static int apply_one(struct json **root, const struct json *operation, struct error *error)
{
    const char *name = json_string_at(operation, "op", NULL);
    const char *path = json_string_at(operation, "path", NULL);
    const char *from = json_string_at(operation, "from", NULL);
    const struct json *value = json_member(operation, "value");
    if (name == NULL || path == NULL)
        return error_set(error, ERROR_INVALID, "a JSON patch operation needs %s", name ? "a path" : "an op");
    if (strcmp(name, "remove") == 0)
        return drop(*root, path, error);
    if (from && (strcmp(name, "move") == 0 || strcmp(name, "copy") == 0))
        return transfer(root, from, path, name[0] == 'c', error);
    if (value && strcmp(name, "add") == 0)
        return add(root, path, json_copy(value), error);
    if (value && strcmp(name, "replace") == 0)
        return replace(root, path, value, error);
    if (value && strcmp(name, "test") == 0) {
        const struct json *present = find(*root, path);
        if (present && json_equal(present, value))
            return 0;
        return error_set(error, ERROR_INVALID, "testing value %s failed", path);
    }
    return incomplete(name, error);
}

int patch_apply_json(struct json **target, const struct json *patch, struct error *error)
{
    if (json_type(patch) != JSON_ARRAY || json_count(patch) > PATCH_OPERATIONS_MAX)
        return error_set(error, ERROR_INVALID, "a JSON patch must be an array of at most %d operations",
                         PATCH_OPERATIONS_MAX);
    for (const struct json *operation = json_first(patch); operation; operation = json_next(operation))
        if (apply_one(target, operation, error) < 0)
            return -1;
    return 0;
}
