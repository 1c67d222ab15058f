/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/field_default.h"

#include <string.h>

struct json *field_default_value(const struct field *field)
{
    if (field->fallback == NULL)
        return NULL;
    switch (field->kind) {
    case FIELD_INTEGER:
        return json_new_integer(strtoll(field->fallback, NULL, 10));
    case FIELD_BOOLEAN:
        return json_new_boolean(strcmp(field->fallback, "true") == 0);
    case FIELD_OBJECT:
        return json_new_object();
    default:
        return json_new_string(field->fallback);
    }
}

static void fill_inside(const struct field *field, struct json *value)
{
    if (field->kind == FIELD_OBJECT && json_type(value) == JSON_OBJECT)
        fields_default(field->type, value);
    if (field->kind == FIELD_LIST && json_type(value) == JSON_ARRAY)
        for (struct json *item = json_first(value); item; item = json_next(item))
            fields_default(field->type, item);
}

void fields_default(const struct object_type *type, struct json *object)
{
    if (json_type(object) != JSON_OBJECT)
        return;
    for (struct field_cursor at = field_first(type); at.field; field_next(&at)) {
        struct json *value = json_member(object, at.field->name);
        if (json_type(value) == JSON_NULL) {
            json_remove(object, at.field->name);
            value = NULL;
        }
        if (at.field->fallback && value == NULL)
            value = json_set(object, at.field->name, field_default_value(at.field));
        fill_inside(at.field, value);
    }
}
