/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/belonging.h"

#include <string.h>

#include "common/job/enum_words.h"
#include "common/job/field_default.h"

static void visit_fields(struct belonging at, const struct object_type *holder, belonging_visit *visit, void *context)
{
    for (struct field_cursor cursor = field_first(holder); cursor.field; field_next(&cursor)) {
        at.field = cursor.field;
        if (at.field->only_for)
            visit(context, &at);
    }
}

void belongings_visit(const struct object_type *type, belonging_visit *visit, void *context)
{
    struct belonging at = {.type = type};
    if (type->kind_field == NULL)
        return;
    visit_fields(at, type, visit, context);
    for (struct field_cursor cursor = field_first(type); cursor.field; field_next(&cursor)) {
        at.inside = cursor.field;
        if (at.inside->kind == FIELD_OBJECT && at.inside->type->kind_field == NULL)
            visit_fields(at, at.inside->type, visit, context);
    }
}

/* A decimal may be a number or the same in quotes. */
static bool is_equal(const struct field *field, const struct json *value, const struct json *fallback)
{
    if (field->kind == FIELD_DECIMAL && json_type(value) == JSON_NUMBER)
        return json_number(value, 0) == decimal_value(json_string(fallback, ""));
    return json_equal(value, fallback);
}

bool belonging_holds(const struct belonging *belonging, const struct json *object)
{
    const struct field *field = belonging->field;
    const struct json *holder = belonging->inside ? json_member(object, belonging->inside->name) : object;
    const struct json *value = json_member(holder, field->name);
    SCOPED_JSON *fallback = field_default_value(field);
    return value == NULL || (fallback && is_equal(field, value, fallback)) ||
           words_find(field->only_for, json_string_at(object, belonging->type->kind_field, "")) >= 0;
}

void belonging_path(const struct belonging *belonging, struct buffer *path)
{
    if (belonging->inside)
        buffer_format(path, "%s.", belonging->inside->name);
    buffer_append_string(path, belonging->field->name, NULL);
}

/* ---------------------------------------------------------------- CEL */

static void default_cel(const struct field *field, const char *path, struct buffer *cel)
{
    if (field->fallback == NULL)
        return;
    if (field->kind == FIELD_BOOLEAN)
        buffer_format(cel, "%sself.%s || ", strcmp(field->fallback, "true") == 0 ? "" : "!", path);
    else if (field->kind == FIELD_INTEGER)
        buffer_format(cel, "self.%s == %s || ", path, field->fallback);
    else
        buffer_format(cel, "self.%s == '%s' || ", path, field->fallback);
}

static void list_cel(const struct belonging *belonging, struct buffer *cel)
{
    const char *before = "";
    buffer_format(cel, "self.%s in [", belonging->type->kind_field);
    for (const char *const *word = belonging->field->only_for; *word; word++) {
        if (**word == '\0')
            continue;
        buffer_format(cel, "%s'%s'", before, *word);
        before = ", ";
    }
    buffer_append_string(cel, "]", NULL);
}

/* An empty word stands for an object that names no kind. */
static void kinds_cel(const struct belonging *belonging, struct buffer *cel)
{
    const char *kind_field = belonging->type->kind_field, *const *words = belonging->field->only_for;
    const struct field *teller = field_find(belonging->type, kind_field);
    bool always = (teller->flags & FIELD_REQUIRED) || teller->fallback, unnamed = words_find(words, "") >= 0;
    if (unnamed && words[1] == NULL) {
        buffer_format(cel, "!has(self.%s)", kind_field);
        return;
    }
    if (!always)
        buffer_format(cel, unnamed ? "!has(self.%s) || " : "(has(self.%s) && ", kind_field);
    list_cel(belonging, cel);
    if (!always && !unnamed)
        buffer_append_string(cel, ")", NULL);
}

void belonging_cel(const struct belonging *belonging, struct buffer *cel)
{
    SCOPED_BUFFER path = BUFFER_INIT(256);
    belonging_path(belonging, &path);
    if (belonging->inside)
        buffer_format(cel, "!has(self.%s) || ", belonging->inside->name);
    buffer_format(cel, "!has(self.%s) || ", buffer_text(&path));
    default_cel(belonging->field, buffer_text(&path), cel);
    kinds_cel(belonging, cel);
}

/* ---------------------------------------------------------------- words */

/* "conv2d, maxPool or averagePool". */
static void list_kinds(const struct belonging *belonging, struct buffer *text)
{
    const char *const *words = belonging->field->only_for;
    bool first = true;
    for (; *words; words++) {
        if (!first)
            buffer_append_string(text, words[1] ? ", " : " or ", NULL);
        if (**words)
            buffer_format(text, "%s%s", first ? belonging->type->kind_field : "", first ? " " : "");
        buffer_append_string(text, **words ? *words : belonging->type->unnamed, NULL);
        first = false;
    }
}

void belonging_message(const struct belonging *belonging, struct buffer *message)
{
    buffer_append_string(message, "is for ", NULL);
    list_kinds(belonging, message);
    buffer_append_string(message, " only and would be ignored here; leave it out", NULL);
}
