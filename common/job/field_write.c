/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/field_write.h"

#include <math.h>

#include "common/clock.h"
#include "common/job/field_default.h"
#include "common/job/job_document.h"

static const void *at_offset(const void *members, size_t offset)
{
    return (const char *)members + offset;
}

static struct json *text_value(char *text)
{
    SCOPED_FREE char *owned = text;
    return json_new_string(owned);
}

static struct json *time_value(const struct field *field, int64_t ms)
{
    char text[CLOCK_TEXT_MAX];
    (field->flags & FIELD_PRECISE ? clock_format_microseconds : clock_format_seconds)(ms, text);
    return json_new_string(text);
}

static struct json *enum_value(const struct field *field, const void *member)
{
    unsigned position = field->size == sizeof(bool) ? *(const bool *)member : *(const unsigned *)member;
    const char *word = field->words[position];
    return *word ? json_new_string(word) : NULL;
}

static struct json *object_value(const struct field *field, const void *member, const bool *given)
{
    struct json *object = json_new_object();
    if (given == NULL || *given)
        fields_write(field->type, member, object);
    bool keep = given ? *given : json_count(object) > 0;
    if (keep)
        return object;
    json_free(object);
    return NULL;
}

static struct json *list_value(const struct field *field, const void *member, unsigned count)
{
    if (count == 0)
        return NULL;
    const char *items = field->flags & FIELD_INLINE ? member : *(const void *const *)member;
    struct json *list = json_new_array();
    for (unsigned i = 0; i < count; i++)
        fields_write(field->type, items + i * field->type->size, json_append(list, json_new_object()));
    return list;
}

static struct json *scalar_list_value(const struct field *field, const void *member, unsigned count)
{
    if (count == 0)
        return NULL;
    if (field->flags & FIELD_APART)
        member = *(const void *const *)member;
    struct json *list = json_new_array();
    for (unsigned i = 0; i < count; i++)
        json_append(list, field->kind == FIELD_STRING_LIST ? json_new_string(((const char *const *)member)[i])
                                                           : json_new_integer(((const int64_t *)member)[i]));
    return list;
}

/* The member as JSON, NULL when it is unset. */
static struct json *member_value(const struct field *field, const void *member, const void *companion)
{
    switch (field->kind) {
    case FIELD_STRING:
        return *(const char *const *)member ? json_new_string(*(const char *const *)member) : NULL;
    case FIELD_INTEGER:
        return *(const int64_t *)member == FIELD_UNSET ? NULL : json_new_integer(*(const int64_t *)member);
    case FIELD_DECIMAL:
        return isnan(*(const double *)member) ? NULL : text_value(decimal_text(*(const double *)member));
    case FIELD_BOOLEAN:
        /* Without a default, what is absent reads as false. */
        return *(const bool *)member || field->fallback ? json_new_boolean(*(const bool *)member) : NULL;
    case FIELD_ENUM:
        return enum_value(field, member);
    case FIELD_TIME:
        return *(const int64_t *)member == FIELD_UNSET ? NULL : time_value(field, *(const int64_t *)member);
    case FIELD_OBJECT:
        return object_value(field, member, companion);
    case FIELD_LIST:
        return list_value(field, member, *(const unsigned *)companion);
    case FIELD_STRING_LIST:
    case FIELD_INTEGER_LIST:
        return scalar_list_value(field, member, *(const unsigned *)companion);
    case FIELD_OPAQUE:
        return *(const struct json *const *)member ? json_copy(*(const struct json *const *)member) : NULL;
    default:
        return NULL;
    }
}

static bool is_default(const struct field *field, const struct json *value)
{
    if (field->kind == FIELD_OBJECT || field->fallback == NULL)
        return false;
    if (field->kind == FIELD_DECIMAL)
        return decimal_value(json_string(value, "")) == decimal_value(field->fallback);
    SCOPED_JSON *fallback = field_default_value(field);
    return json_equal(value, fallback);
}

void fields_write(const struct object_type *type, const void *members, struct json *object)
{
    for (struct field_cursor at = field_first(type); at.field; field_next(&at)) {
        if (at.field->offset == NO_MEMBER)
            continue;
        const void *companion =
            at.field->companion == NO_MEMBER ? NULL : at_offset(members, at.shift + at.field->companion);
        struct json *value = member_value(at.field, at_offset(members, at.shift + at.field->offset), companion);
        if (value && is_default(at.field, value)) {
            json_free(value);
            value = NULL;
        }
        if (value)
            json_set(object, at.field->name, value);
    }
}
