/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/field_read.h"

#include <string.h>

#include "common/clock.h"
#include "common/job/enum_words.h"
#include "common/job/job_document.h"

static void *at_offset(void *members, size_t offset)
{
    return (char *)members + offset;
}

/* An enum takes an unsigned int; a choice between two words may be a bool. */
static void enum_store(const struct field *field, void *member, int position)
{
    if (field->size == sizeof(bool))
        *(bool *)member = position != 0;
    else
        *(unsigned *)member = (unsigned)position;
}

/* ---------------------------------------------------------------- unset */

static void unset_member(const struct field *field, void *member)
{
    switch (field->kind) {
    case FIELD_INTEGER:
        *(int64_t *)member = field->flags & FIELD_ZERO ? 0 : FIELD_UNSET;
        return;
    case FIELD_TIME:
        *(int64_t *)member = FIELD_UNSET;
        return;
    case FIELD_DECIMAL:
        *(double *)member = DECIMAL_UNSET;
        return;
    case FIELD_OBJECT:
        fields_unset(field->type, member);
        return;
    default:
        memset(member, 0, field->size);
        return;
    }
}

void fields_unset(const struct object_type *type, void *members)
{
    for (struct field_cursor at = field_first(type); at.field; field_next(&at)) {
        if (at.field->offset == NO_MEMBER)
            continue;
        unset_member(at.field, at_offset(members, at.shift + at.field->offset));
        if (at.field->companion != NO_MEMBER)
            memset(at_offset(members, at.shift + at.field->companion), 0,
                   at.field->kind == FIELD_OBJECT ? sizeof(bool) : sizeof(unsigned));
    }
}

/* ---------------------------------------------------------------- read */

static void read_integer(const struct json *value, int64_t *member)
{
    *member = json_integer(value, *member);
}

static void read_decimal(const struct json *value, double *member)
{
    const char *text = json_string(value, NULL);
    if (text && string_format_matches(STRING_FORMAT_DECIMAL, text))
        *member = decimal_value(text);
    else if (json_type(value) == JSON_NUMBER)
        *member = json_number(value, *member);
}

static void read_time(const struct json *value, int64_t *member)
{
    clock_parse(json_string(value, ""), member);
}

static void read_enum(const struct field *field, const struct json *value, void *member)
{
    int position = words_find(field->words, json_string(value, ""));
    if (position >= 0)
        enum_store(field, member, position);
}

static void read_opaque(struct json *copy, const struct json **member, const struct field_reader *reader)
{
    if (reader->opaque)
        *member = json_append(reader->opaque, copy);
    else
        json_free(copy);
}

static void read_volume(const struct field *field, const struct json *value, const struct json **member,
                        const struct field_reader *reader)
{
    struct json *source = json_new_object();
    json_set(source, field->name, json_copy(value));
    read_opaque(source, member, reader);
}

static void read_list(const struct field *field, const struct json *list, void *member, unsigned *ret_count,
                      const struct field_reader *reader)
{
    if (json_type(list) != JSON_ARRAY)
        return;
    size_t count = json_count(list);
    if (count > (size_t)field->max)
        count = (size_t)field->max;
    char *items = member;
    if (!(field->flags & FIELD_INLINE)) {
        items = arena_allocate(reader->arena, count, field->type->size);
        *(void **)member = items;
    }
    const struct json *item = json_first(list);
    for (size_t i = 0; i < count; i++, item = json_next(item)) {
        fields_unset(field->type, items + i * field->type->size);
        fields_read(field->type, item, items + i * field->type->size, reader);
    }
    *ret_count = (unsigned)count;
}

static void read_scalar_list(const struct field *field, const struct json *list, void *member, unsigned *ret_count,
                             const struct field_reader *reader)
{
    unsigned count = 0;
    if (field->flags & FIELD_APART) {
        size_t all = json_count(list), most = (size_t)field->max;
        void *apart = arena_allocate(reader->arena, all < most ? all : most, sizeof(char *));
        *(void **)member = apart;
        member = apart;
    }
    for (const struct json *item = json_first(list); item && count < field->max; item = json_next(item), count++) {
        if (field->kind == FIELD_STRING_LIST)
            ((const char **)member)[count] = arena_copy_string(reader->arena, json_string(item, ""));
        else
            ((int64_t *)member)[count] = json_integer(item, FIELD_UNSET);
    }
    *ret_count = count;
}

static void read_value(const struct field *field, const struct json *value, void *member, void *companion,
                       const struct field_reader *reader)
{
    switch (field->kind) {
    case FIELD_STRING:
        *(const char **)member = arena_copy_string(reader->arena, json_string(value, NULL));
        return;
    case FIELD_INTEGER:
        read_integer(value, member);
        return;
    case FIELD_DECIMAL:
        read_decimal(value, member);
        return;
    case FIELD_BOOLEAN:
        *(bool *)member = json_boolean(value, *(bool *)member);
        return;
    case FIELD_ENUM:
        read_enum(field, value, member);
        return;
    case FIELD_TIME:
        read_time(value, member);
        return;
    case FIELD_OBJECT:
        fields_read(field->type, value, member, reader);
        if (companion)
            *(bool *)companion = json_type(value) == JSON_OBJECT;
        return;
    case FIELD_LIST:
        read_list(field, value, member, companion, reader);
        return;
    case FIELD_STRING_LIST:
    case FIELD_INTEGER_LIST:
        read_scalar_list(field, value, member, companion, reader);
        return;
    case FIELD_OPAQUE:
    case FIELD_SCALAR_LIST:
        read_opaque(json_copy(value), member, reader);
        return;
    case FIELD_VOLUME:
        read_volume(field, value, member, reader);
        return;
    }
}

void fields_read(const struct object_type *type, const struct json *object, void *members,
                 const struct field_reader *reader)
{
    for (struct field_cursor at = field_first(type); at.field; field_next(&at)) {
        const struct json *value = json_member(object, at.field->name);
        if (value == NULL || at.field->offset == NO_MEMBER)
            continue;
        void *companion = at.field->companion == NO_MEMBER ? NULL : at_offset(members, at.shift + at.field->companion);
        read_value(at.field, value, at_offset(members, at.shift + at.field->offset), companion, reader);
    }
}
