/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_print.h"

#include <string.h>

#include "common/contract/labels.h"
#include "common/job/fields.h"
#include "common/yaml.h"

#define LINE_MAX_LENGTH 110
#define STEP 2
#define SCALAR_MAX 4096

/* ---------------------------------------------------------------- what is said of a field */

struct span {
    const char *text;
    size_t length;
};

/* Where a description comes to speak of a word, as in "… Mirrored: one worker with …"; NULL: it does not. */
static const char *speaks_of(const char *description, const char *word)
{
    size_t length = strlen(word);
    if (length == 0) /* for what is not said */
        return NULL;
    for (const char *at = description; (at = strstr(at, word)) != NULL; at += length)
        if (at[length] == ':' &&
            (at == description || (at > description + 1 && at[-1] == ' ' && strchr(".;:", at[-2]))))
            return at;
    return NULL;
}

/* Up to where it comes to the next word. */
static struct span description_of_word(const struct field *field, const char *word)
{
    const char *begin = speaks_of(field->description, word);
    struct span span = {field->description, strlen(field->description)};
    if (begin == NULL)
        return span;
    span = (struct span){begin, strlen(begin)};
    for (size_t i = 0; field->words[i]; i++) {
        const char *next = speaks_of(begin + strlen(word), field->words[i]);
        if (next && (size_t)(next - begin) < span.length)
            span.length = (size_t)(next - begin);
    }
    return span;
}

static struct span description_of(const struct field *field, const struct json *value)
{
    if (field->kind == FIELD_ENUM)
        return description_of_word(field, json_string(value, ""));
    return (struct span){field->description, strlen(field->description)};
}

/* ---------------------------------------------------------------- lines */

static void put_indent(struct buffer *out, unsigned indent)
{
    buffer_format(out, "%*s", (int)indent, "");
}

/* As many words as fit; at least one. */
static size_t line_length(const struct span *rest, size_t room)
{
    size_t length = 0;
    for (size_t at = 0; at <= rest->length; at++)
        if ((at == rest->length || rest->text[at] == ' ') && (at <= room || length == 0))
            length = at;
    return length;
}

static void put_comment(struct buffer *out, struct span text, unsigned indent)
{
    while (text.length > 0 && text.text[text.length - 1] == ' ')
        text.length--;
    while (text.length > 0) {
        size_t length = line_length(&text, LINE_MAX_LENGTH - indent), skip = length < text.length ? length + 1 : length;
        put_indent(out, indent);
        buffer_format(out, "# %.*s\n", (int)length, text.text);
        text = (struct span){text.text + skip, text.length - skip};
    }
}

/* ---------------------------------------------------------------- fields */

static void put_members(struct buffer *out, const struct object_type *type, const struct json *object, unsigned indent,
                        bool element);

static void put_scalar(struct buffer *out, const struct json *value)
{
    SCOPED_BUFFER line = BUFFER_INIT(SCALAR_MAX);
    yaml_print(value, &line, NULL);
    buffer_append(out, buffer_text(&line), strcspn(buffer_text(&line), "\n"), NULL);
}

/* "[28, 28, 1]" */
static void put_row(struct buffer *out, const struct json *list)
{
    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        buffer_append_string(out, item == json_first(list) ? "[" : ", ", NULL);
        put_scalar(out, item);
    }
    buffer_append_byte(out, ']', NULL);
}

/* The first element explains the others. */
static void put_elements(struct buffer *out, const struct object_type *type, const struct json *list, unsigned indent)
{
    for (const struct json *item = json_first(list); item; item = json_next(item))
        put_members(out, item == json_first(list) ? type : NULL, item, indent, true);
}

static void put_value(struct buffer *out, const struct object_type *type, const struct json *value, unsigned indent)
{
    const struct json *first = json_first(value);
    if (first && json_type(value) == JSON_ARRAY && json_first(first)) {
        put_elements(out, type, value, indent + STEP);
    } else if (first && json_type(value) == JSON_OBJECT) {
        put_members(out, type, value, indent + STEP, false);
    } else {
        buffer_append_byte(out, ' ', NULL);
        (first ? put_row : put_scalar)(out, value);
    }
}

/* The type of a member; NULL: it has none. The table has no type for a sweep's template, which any job may be. */
static const struct object_type *type_of(const struct object_type *parent, const struct field *field)
{
    bool is_template = parent == &training_sweep_spec_type && field && strcmp(field->name, "template") == 0;
    return is_template ? &training_job_spec_type : field ? field->type : NULL;
}

/* Each on lines of its own below the one that stands; `element`: all of them behind a dash. */
static void put_members(struct buffer *out, const struct object_type *type, const struct json *object, unsigned indent,
                        bool element)
{
    unsigned within = element ? indent + STEP : indent;
    for (const struct json *member = json_first(object); member; member = json_next(member)) {
        bool dash = element && member == json_first(object);
        const struct field *field = type ? field_find(type, json_key(member)) : NULL;
        buffer_append_byte(out, '\n', NULL);
        if (field)
            put_comment(out, description_of(field, member), dash ? indent : within);
        put_indent(out, dash ? indent : within);
        buffer_format(out, "%s%s:", dash ? "- " : "", json_key(member));
        put_value(out, type_of(type, field), member, within);
    }
}

void job_print(const struct json *job, struct buffer *out)
{
    bool is_sweep = strcmp(json_string_at(job, "kind", ""), TRAINING_SWEEP_KIND) == 0;
    for (const struct json *member = json_first(job); member; member = json_next(member)) {
        buffer_format(out, "%s:", json_key(member));
        if (strcmp(json_key(member), "spec") == 0)
            put_members(out, is_sweep ? &training_sweep_spec_type : &training_job_spec_type, member, STEP, false);
        else
            put_value(out, NULL, member, 0);
        buffer_append_byte(out, '\n', NULL);
    }
}
