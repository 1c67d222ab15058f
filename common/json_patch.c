/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/json.h"

static bool objects_equal(const struct json *left, const struct json *right)
{
    const struct json *guess = json_first(right); /* usually both have the same order */
    for (const struct json *member = json_first(left); member; member = json_next(member)) {
        const char *key = json_key(member);
        const struct json *other = guess && strcmp(json_key(guess), key) == 0 ? guess : json_member(right, key);
        if (other == NULL || !json_equal(member, other))
            return false;
        guess = json_next(other);
    }
    return json_count(left) == json_count(right);
}

static bool arrays_equal(const struct json *left, const struct json *right)
{
    const struct json *a = json_first(left), *b = json_first(right);
    for (; a && b; a = json_next(a), b = json_next(b))
        if (!json_equal(a, b))
            return false;
    return a == b;
}

bool json_equal(const struct json *left, const struct json *right)
{
    enum json_type type = json_type(left);
    if (type != json_type(right))
        return false;
    switch (type) {
    case JSON_BOOLEAN:
        return json_boolean(left, false) == json_boolean(right, false);
    case JSON_NUMBER:
        return json_number(left, 0) == json_number(right, 0);
    case JSON_STRING:
        return strcmp(json_string(left, ""), json_string(right, "")) == 0;
    case JSON_ARRAY:
        return arrays_equal(left, right);
    case JSON_OBJECT:
        return objects_equal(left, right);
    default:
        return true;
    }
}

/* The RFC does not say what becomes of null members of objects in lists; API servers drop them, too. */
static void drop_nulls(struct json *value)
{
    for (struct json *item = json_first(value), *next; item; item = next) {
        next = json_next(item);
        if (json_type(item) == JSON_NULL && json_type(value) == JSON_OBJECT)
            json_remove(value, json_key(item));
        else
            drop_nulls(item);
    }
}

/* Merges an object into an object (RFC 7386, section 2). */
static void merge_members(struct json *target, const struct json *patch)
{
    for (const struct json *change = json_first(patch); change; change = json_next(change)) {
        const char *key = json_key(change);
        if (json_type(change) == JSON_NULL)
            json_remove(target, key);
        else if (json_type(change) == JSON_OBJECT)
            merge_members(json_set_object(target, key), change);
        else
            drop_nulls(json_set(target, key, json_copy(change)));
    }
}

void json_merge_patch(struct json **target, const struct json *patch)
{
    bool merges = json_type(patch) == JSON_OBJECT;
    if (!merges || json_type(*target) != JSON_OBJECT) {
        json_free(*target);
        *target = merges ? json_new_object() : json_copy(patch);
    }
    if (merges)
        merge_members(*target, patch);
}
