/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "common/json_lexical.h"
#include "common/memory.h"

#define INTEGER_MAX 9007199254740992.0 /* 2^53 */

static cJSON *node(const struct json *value)
{
    return (cJSON *)value;
}

static struct json *json(cJSON *value)
{
    return (struct json *)value;
}

static void *allocate(size_t size)
{
    return memory_allocate(1, size);
}

/* cJSON's own allocations end the program like all other small ones, so that no builder below can return NULL. */
__attribute__((constructor)) static void install_allocator(void)
{
    cJSON_Hooks hooks = {.malloc_fn = allocate, .free_fn = free};
    cJSON_InitHooks(&hooks);
}

/* ---------------------------------------------------------------- duplicate keys: the last one wins */

#define PAIRWISE_MAX 24 /* up to here comparing all pairs is cheaper than sorting */

struct member_slot {
    cJSON *member;
    size_t position;
};

static int slot_compare(const void *left, const void *right)
{
    const struct member_slot *a = left, *b = right;
    int order = strcmp(a->member->string, b->member->string);
    return order ? order : (a->position > b->position) - (a->position < b->position);
}

static void drop_duplicates_sorted(cJSON *object, size_t count)
{
    SCOPED_FREE struct member_slot *slots = memory_allocate(count, sizeof *slots);
    size_t position = 0;
    for (cJSON *member = object->child; member; member = member->next, position++)
        slots[position] = (struct member_slot){member, position};
    qsort(slots, count, sizeof *slots, slot_compare);
    for (size_t i = 0; i + 1 < count; i++)
        if (strcmp(slots[i].member->string, slots[i + 1].member->string) == 0)
            cJSON_Delete(cJSON_DetachItemViaPointer(object, slots[i].member));
}

static bool is_repeated_later(const cJSON *member)
{
    for (const cJSON *later = member->next; later; later = later->next)
        if (strcmp(member->string, later->string) == 0)
            return true;
    return false;
}

static void drop_duplicates_pairwise(cJSON *object)
{
    for (cJSON *member = object->child, *next; member; member = next) {
        next = member->next;
        if (is_repeated_later(member))
            cJSON_Delete(cJSON_DetachItemViaPointer(object, member));
    }
}

static void drop_duplicates(cJSON *object)
{
    size_t count = json_count(json(object));
    if (count > PAIRWISE_MAX)
        drop_duplicates_sorted(object, count);
    else
        drop_duplicates_pairwise(object);
}

/* False when a number is beyond the doubles. */
static bool settle(cJSON *value)
{
    if (cJSON_IsObject(value))
        drop_duplicates(value);
    for (cJSON *child = value->child; child; child = child->next)
        if (!settle(child))
            return false;
    return !cJSON_IsNumber(value) || isfinite(value->valuedouble);
}

/* ---------------------------------------------------------------- parse */

static bool is_blank(const char *text, const char *end)
{
    for (; text < end; text++)
        if (strchr(" \t\r\n", *text) == NULL || *text == '\0')
            return false;
    return true;
}

/* cJSON tells only about where it gave up. */
static int refuse_near(const char *text, size_t length, const char *at, struct error *error)
{
    size_t offset = at ? (size_t)(at - text) : length;
    char found[JSON_BYTE_TEXT_MAX];
    json_lexical_describe(text, length, offset, found);
    return error_set(error, ERROR_INVALID, "not JSON: out of place or incomplete near offset %zu (%s)", offset, found);
}

static int refuse_rest(const char *text, size_t length, const char *rest, struct error *error)
{
    size_t offset = (size_t)(rest + strspn(rest, " \t\r\n") - text);
    char found[JSON_BYTE_TEXT_MAX];
    json_lexical_describe(text, length, offset, found);
    return error_set(error, ERROR_INVALID, "not JSON: %s at offset %zu, after the end of the value", found, offset);
}

int json_parse(const char *text, size_t length, size_t ceiling, struct json **ret_value, struct error *error)
{
    if (length > ceiling)
        return error_set(error, ERROR_TOO_LARGE, "JSON text of %zu bytes is too long; at most %zu are allowed", length,
                         ceiling);
    if (json_lexical_check(text, length, error) < 0)
        return -1;
    const char *end = NULL;
    cJSON *value = cJSON_ParseWithLengthOpts(text, length, &end, false);
    if (value == NULL)
        return refuse_near(text, length, end, error);
    if (!is_blank(end, text + length)) {
        cJSON_Delete(value);
        return refuse_rest(text, length, end, error);
    }
    if (!settle(value)) {
        cJSON_Delete(value);
        return error_set(error, ERROR_INVALID, "the JSON text holds a number above 1.7e308");
    }
    *ret_value = json(value);
    return 0;
}

void json_free(struct json *root)
{
    cJSON_Delete(node(root));
}

/* ---------------------------------------------------------------- look up */

enum json_type json_type(const struct json *value)
{
    switch (value ? node(value)->type & 0xff : cJSON_Invalid) {
    case cJSON_NULL:
        return JSON_NULL;
    case cJSON_False:
    case cJSON_True:
        return JSON_BOOLEAN;
    case cJSON_Number:
        return JSON_NUMBER;
    case cJSON_String:
        return JSON_STRING;
    case cJSON_Array:
        return JSON_ARRAY;
    case cJSON_Object:
        return JSON_OBJECT;
    default:
        return JSON_ABSENT;
    }
}

const char *json_type_name(enum json_type type)
{
    static const char *const names[] = {"nothing", "null", "boolean", "number", "string", "array", "object"};
    return names[type];
}

static struct json *member_of_length(const struct json *object, const char *key, size_t length)
{
    if (!cJSON_IsObject(node(object)))
        return NULL;
    for (cJSON *member = node(object)->child; member; member = member->next)
        if (strncmp(member->string, key, length) == 0 && member->string[length] == '\0')
            return json(member);
    return NULL;
}

struct json *json_member(const struct json *object, const char *key)
{
    return member_of_length(object, key, strlen(key));
}

struct json *json_at(const struct json *object, const char *path)
{
    const struct json *value = object;
    for (;;) {
        size_t length = strcspn(path, ".");
        value = member_of_length(value, path, length);
        if (value == NULL || path[length] == '\0')
            return (struct json *)value;
        path += length + 1;
    }
}

struct json *json_element(const struct json *array, size_t index)
{
    struct json *element = cJSON_IsArray(node(array)) ? json_first(array) : NULL;
    while (element && index-- > 0)
        element = json_next(element);
    return element;
}

size_t json_count(const struct json *container)
{
    size_t count = 0;
    for (const struct json *item = json_first(container); item; item = json_next(item))
        count++;
    return count;
}

struct json *json_first(const struct json *container)
{
    return container ? json(node(container)->child) : NULL;
}

struct json *json_next(const struct json *value)
{
    return value ? json(node(value)->next) : NULL;
}

const char *json_key(const struct json *member)
{
    return member ? node(member)->string : NULL;
}

const char *json_string(const struct json *value, const char *otherwise)
{
    return cJSON_IsString(node(value)) ? node(value)->valuestring : otherwise;
}

int64_t json_integer(const struct json *value, int64_t otherwise)
{
    if (!cJSON_IsNumber(node(value)))
        return otherwise;
    double number = node(value)->valuedouble;
    bool exact = fabs(number) <= INTEGER_MAX && number == floor(number);
    return exact ? (int64_t)number : otherwise;
}

double json_number(const struct json *value, double otherwise)
{
    return cJSON_IsNumber(node(value)) ? node(value)->valuedouble : otherwise;
}

bool json_boolean(const struct json *value, bool otherwise)
{
    return cJSON_IsBool(node(value)) ? cJSON_IsTrue(node(value)) : otherwise;
}

const char *json_string_at(const struct json *object, const char *path, const char *otherwise)
{
    return json_string(json_at(object, path), otherwise);
}

int64_t json_integer_at(const struct json *object, const char *path, int64_t otherwise)
{
    return json_integer(json_at(object, path), otherwise);
}

double json_number_at(const struct json *object, const char *path, double otherwise)
{
    return json_number(json_at(object, path), otherwise);
}

bool json_boolean_at(const struct json *object, const char *path, bool otherwise)
{
    return json_boolean(json_at(object, path), otherwise);
}

/* ---------------------------------------------------------------- build */

struct json *json_new_object(void)
{
    return json(cJSON_CreateObject());
}

struct json *json_new_array(void)
{
    return json(cJSON_CreateArray());
}

struct json *json_new_string(const char *text)
{
    return json(cJSON_CreateString(text));
}

struct json *json_new_number(double number)
{
    return json(cJSON_CreateNumber(number));
}

struct json *json_new_integer(int64_t number)
{
    return json_new_number((double)number);
}

struct json *json_new_boolean(bool value)
{
    return json(cJSON_CreateBool(value));
}

struct json *json_new_null(void)
{
    return json(cJSON_CreateNull());
}

struct json *json_copy(const struct json *value)
{
    return json(cJSON_Duplicate(node(value), true));
}

struct json *json_set(struct json *object, const char *key, struct json *value)
{
    if (value == NULL)
        json_remove(object, key);
    else if (json_member(object, key))
        cJSON_ReplaceItemInObjectCaseSensitive(node(object), key, node(value));
    else
        cJSON_AddItemToObject(node(object), key, node(value));
    return value;
}

struct json *json_set_string(struct json *object, const char *key, const char *text)
{
    return json_set(object, key, text ? json_new_string(text) : NULL);
}

struct json *json_set_integer(struct json *object, const char *key, int64_t number)
{
    return json_set(object, key, json_new_integer(number));
}

struct json *json_set_number(struct json *object, const char *key, double number)
{
    return json_set(object, key, json_new_number(number));
}

struct json *json_set_boolean(struct json *object, const char *key, bool value)
{
    return json_set(object, key, json_new_boolean(value));
}

struct json *json_set_object(struct json *object, const char *key)
{
    struct json *member = json_member(object, key);
    return json_type(member) == JSON_OBJECT ? member : json_set(object, key, json_new_object());
}

struct json *json_set_array(struct json *object, const char *key)
{
    struct json *member = json_member(object, key);
    return json_type(member) == JSON_ARRAY ? member : json_set(object, key, json_new_array());
}

void json_remove(struct json *object, const char *key)
{
    struct json *member = json_member(object, key);
    if (member)
        json_free(json_detach(object, member));
}

/* A value that was a member keeps its name when detached; an element has none. */
static void forget_key(cJSON *value)
{
    free(value->string);
    value->string = NULL;
}

struct json *json_append(struct json *array, struct json *value)
{
    forget_key(node(value));
    cJSON_AddItemToArray(node(array), node(value));
    return value;
}

struct json *json_set_element(struct json *array, size_t index, struct json *value)
{
    struct json *old = json_element(array, index);
    if (old == NULL)
        return json_append(array, value);
    forget_key(node(value));
    cJSON_ReplaceItemViaPointer(node(array), node(old), node(value));
    return value;
}

struct json *json_append_string(struct json *array, const char *text)
{
    return json_append(array, json_new_string(text));
}

struct json *json_detach(struct json *container, struct json *value)
{
    return json(cJSON_DetachItemViaPointer(node(container), node(value)));
}
