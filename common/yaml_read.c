/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "common/memory.h"
#include "common/yaml.h"

#define ANCHORS_MAX 1024

/* A value that an alias may repeat. `value` belongs to the document under construction; NULL until the value is complete. */
struct anchor {
    char *name;
    const struct json *value;
    size_t nodes;
};

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the one that is looked at; owned until the next */
    bool has_event;
    struct anchor *anchors;
    size_t anchor_count;
    size_t ceiling;      /* for the bytes that aliases repeat */
    size_t nodes;        /* made so far, copies included */
    size_t copied_nodes; /* by aliases */
    size_t copied_bytes;
    unsigned depth;
    struct error *error;
};

static int read_node(struct reader *reader, struct json **ret_value);

static int refuse_at(struct reader *reader, yaml_mark_t mark, enum error_kind kind, const char *words)
{
    return error_set(reader->error, kind, "YAML line %zu, column %zu: %s", mark.line + 1, mark.column + 1, words);
}

static int refuse(struct reader *reader, const char *words)
{
    return refuse_at(reader, reader->event.start_mark, ERROR_INVALID, words);
}

static int next_event(struct reader *reader)
{
    if (reader->has_event)
        yaml_event_delete(&reader->event);
    reader->has_event = yaml_parser_parse(&reader->parser, &reader->event) != 0;
    if (reader->has_event)
        return 0;
    const char *problem = reader->parser.problem ? reader->parser.problem : "cannot be read";
    if (strcmp(problem, "found character that cannot start any token") == 0)
        problem = "no value begins with this character: indent with spaces, not tabs, and put quotes around @, ` and %";
    return refuse_at(reader, reader->parser.problem_mark, ERROR_INVALID, problem);
}

static int count_nodes(struct reader *reader, size_t more)
{
    reader->nodes += more;
    if (reader->nodes > YAML_NODES_MAX)
        return refuse_at(reader, reader->event.start_mark, ERROR_TOO_LARGE, "the text has too many values");
    return 0;
}

/* ---------------------------------------------------------------- scalars: YAML 1.2 core schema */

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static size_t skip_digits(const char *text, size_t at)
{
    while (text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_decimal(const char *text)
{
    size_t at = *text == '-' || *text == '+', start = at;
    at = skip_digits(text, at);
    bool whole = at > start;
    if (text[at] == '.') {
        size_t fraction = skip_digits(text, at + 1);
        if (!whole && fraction == at + 1)
            return false;
        at = fraction;
    } else if (!whole) {
        return false;
    }
    if (text[at] == 'e' || text[at] == 'E') {
        at += text[at + 1] == '-' || text[at + 1] == '+' ? 2 : 1;
        size_t digits = skip_digits(text, at);
        if (digits == at)
            return false;
        at = digits;
    }
    return text[at] == '\0';
}

/* 0x1F and 0o17; false when the text is neither. */
static bool parse_radix(const char *text, double *ret_number)
{
    bool hexadecimal = strncmp(text, "0x", 2) == 0;
    const char *digits = hexadecimal ? "0123456789abcdefABCDEF" : "01234567";
    if ((!hexadecimal && strncmp(text, "0o", 2) != 0) || text[2] == '\0' || text[2 + strspn(text + 2, digits)])
        return false;
    *ret_number = (double)strtoull(text + 2, NULL, hexadecimal ? 16 : 8);
    return true;
}

/* Returns the value of an unquoted scalar; a string if it is nothing else. */
static struct json *resolve(const char *text)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};
    double number;
    if (is_one_of(text, nulls))
        return json_new_null();
    if (is_one_of(text, trues))
        return json_new_boolean(true);
    if (is_one_of(text, falses))
        return json_new_boolean(false);
    if (parse_radix(text, &number))
        return json_new_number(number);
    if (is_decimal(text) && isfinite(strtod(text, NULL)))
        return json_new_number(strtod(text, NULL));
    return json_new_string(text);
}

static int read_scalar(struct reader *reader, struct json **ret_value)
{
    const char *text = (const char *)reader->event.data.scalar.value;
    if (strlen(text) != reader->event.data.scalar.length)
        return refuse(reader, "a NUL character in a scalar");
    if (reader->event.data.scalar.tag)
        return refuse(reader, "YAML tags are not supported; write the value without a tag");
    bool plain = reader->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    *ret_value = plain ? resolve(text) : json_new_string(text);
    return 0;
}

/* ---------------------------------------------------------------- anchors */

static const char *event_anchor(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return (const char *)event->data.scalar.anchor;
    case YAML_SEQUENCE_START_EVENT:
        return (const char *)event->data.sequence_start.anchor;
    case YAML_MAPPING_START_EVENT:
        return (const char *)event->data.mapping_start.anchor;
    default:
        return NULL;
    }
}

/* Returns the index of a new, still open anchor, -1 on failure. */
static int anchor_open(struct reader *reader, const char *name)
{
    if (reader->anchor_count == ANCHORS_MAX)
        return refuse(reader, "the text has too many anchors");
    reader->anchors = memory_resize(reader->anchors, reader->anchor_count + 1, sizeof *reader->anchors);
    reader->anchors[reader->anchor_count] = (struct anchor){.name = memory_copy_string(name)};
    return (int)reader->anchor_count++;
}

static void anchors_clear(struct reader *reader)
{
    for (size_t i = 0; i < reader->anchor_count; i++)
        free(reader->anchors[i].name);
    free(reader->anchors);
    reader->anchors = NULL;
    reader->anchor_count = 0;
}

/* Adds the bytes of all keys and strings in a value, and returns how deep it is. */
static unsigned measure(const struct json *value, size_t *bytes)
{
    unsigned deepest = 0;
    const char *key = json_key(value);
    *bytes += strlen(json_string(value, "")) + (key ? strlen(key) : 0);
    for (const struct json *item = json_first(value); item; item = json_next(item)) {
        unsigned depth = measure(item, bytes);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

static int count_copy(struct reader *reader, const struct anchor *anchor)
{
    if (count_nodes(reader, anchor->nodes) < 0)
        return -1;
    reader->copied_nodes += anchor->nodes;
    if (reader->copied_nodes <= YAML_ALIAS_NODES_MAX) {
        unsigned depth = measure(anchor->value, &reader->copied_bytes);
        if (reader->depth + depth > JSON_DEPTH_MAX)
            return refuse(reader, "nested too deeply");
    }
    if (reader->copied_nodes > YAML_ALIAS_NODES_MAX || reader->copied_bytes > reader->ceiling)
        return refuse_at(reader, reader->event.start_mark, ERROR_TOO_LARGE,
                         "aliases repeat too much (more than 10000 values, or more text than a whole file may have); "
                         "write the values out where they are needed");
    return 0;
}

static int read_alias(struct reader *reader, struct json **ret_value)
{
    const char *name = (const char *)reader->event.data.alias.anchor;
    for (size_t i = reader->anchor_count; i-- > 0;) {
        const struct anchor *anchor = &reader->anchors[i];
        if (strcmp(anchor->name, name) != 0)
            continue;
        if (anchor->value == NULL)
            return refuse(reader, "an alias inside the value it stands for");
        if (count_copy(reader, anchor) < 0)
            return -1;
        *ret_value = json_copy(anchor->value);
        return 0;
    }
    return refuse(reader, "an alias without an anchor");
}

/* ---------------------------------------------------------------- collections */

static int read_sequence(struct reader *reader, struct json **ret_value)
{
    if (reader->event.data.sequence_start.tag)
        return refuse(reader, "YAML tags are not supported; write the value without a tag");
    SCOPED_JSON *list = json_new_array();
    for (;;) {
        if (next_event(reader) < 0)
            return -1;
        if (reader->event.type == YAML_SEQUENCE_END_EVENT)
            break;
        struct json *item;
        if (read_node(reader, &item) < 0)
            return -1;
        json_append(list, item);
    }
    *ret_value = list;
    list = NULL;
    return 0;
}

static int read_key(struct reader *reader, const struct json *object, char **ret_key)
{
    if (reader->event.type != YAML_SCALAR_EVENT)
        return refuse(reader, "only plain texts can be keys");
    struct json *unused;
    if (read_scalar(reader, &unused) < 0)
        return -1;
    json_free(unused);
    const char *key = (const char *)reader->event.data.scalar.value;
    if (reader->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(key, "<<") == 0)
        return refuse(reader, "YAML merge keys (<<) are not supported; write the members out");
    if (json_member(object, key))
        return refuse(reader, "this key occurs twice");
    *ret_key = memory_copy_string(key);
    return 0;
}

static int read_mapping(struct reader *reader, struct json **ret_value)
{
    if (reader->event.data.mapping_start.tag)
        return refuse(reader, "YAML tags are not supported; write the value without a tag");
    SCOPED_JSON *object = json_new_object();
    for (;;) {
        if (next_event(reader) < 0)
            return -1;
        if (reader->event.type == YAML_MAPPING_END_EVENT)
            break;
        SCOPED_FREE char *key = NULL;
        struct json *value;
        if (read_key(reader, object, &key) < 0 || next_event(reader) < 0 || read_node(reader, &value) < 0)
            return -1;
        json_set(object, key, value);
    }
    *ret_value = object;
    object = NULL;
    return 0;
}

static int read_by_type(struct reader *reader, struct json **ret_value)
{
    switch (reader->event.type) {
    case YAML_ALIAS_EVENT:
        return read_alias(reader, ret_value);
    case YAML_SCALAR_EVENT:
        return read_scalar(reader, ret_value);
    case YAML_SEQUENCE_START_EVENT:
        return read_sequence(reader, ret_value);
    case YAML_MAPPING_START_EVENT:
        return read_mapping(reader, ret_value);
    default:
        return refuse(reader, "a value was expected");
    }
}

static int read_node(struct reader *reader, struct json **ret_value)
{
    if (count_nodes(reader, 1) < 0)
        return -1;
    if (reader->depth == JSON_DEPTH_MAX)
        return refuse(reader, "nested too deeply");
    size_t before = reader->nodes;
    const char *name = event_anchor(&reader->event);
    int anchor = name ? anchor_open(reader, name) : -1;
    if (name && anchor < 0)
        return -1;
    reader->depth++;
    if (read_by_type(reader, ret_value) < 0)
        return -1;
    reader->depth--;
    if (name) {
        reader->anchors[anchor].value = *ret_value;
        reader->anchors[anchor].nodes = reader->nodes - before + 1;
    }
    return 0;
}

/* ---------------------------------------------------------------- stream */

static bool is_empty_document(const struct reader *reader)
{
    const yaml_event_t *event = &reader->event;
    return event->type == YAML_SCALAR_EVENT && event->data.scalar.length == 0 && event->data.scalar.plain_implicit;
}

static int read_document(struct reader *reader, struct json *documents)
{
    if (next_event(reader) < 0)
        return -1;
    if (!is_empty_document(reader)) {
        struct json *value;
        if (read_node(reader, &value) < 0)
            return -1;
        json_append(documents, value);
    }
    anchors_clear(reader);
    return next_event(reader);
}

static int read_stream(struct reader *reader, struct json *documents)
{
    for (;;) {
        if (next_event(reader) < 0)
            return -1;
        if (reader->event.type == YAML_STREAM_END_EVENT)
            return 0;
        if (reader->event.type == YAML_DOCUMENT_START_EVENT && read_document(reader, documents) < 0)
            return -1;
    }
}

int yaml_parse(const char *text, size_t length, size_t ceiling, struct json **ret_documents, struct error *error)
{
    if (length > ceiling)
        return error_set(error, ERROR_TOO_LARGE, "YAML text of %zu bytes is too long; at most %zu are allowed", length,
                         ceiling);
    struct reader reader = {.error = error, .ceiling = ceiling};
    if (!yaml_parser_initialize(&reader.parser))
        return error_set(error, ERROR_NO_SPACE, "there is no memory to parse YAML");
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, length);
    struct json *documents = json_new_array();
    int result = read_stream(&reader, documents);
    if (reader.has_event)
        yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    anchors_clear(&reader);
    if (result < 0)
        json_free(documents);
    else
        *ret_documents = documents;
    return result;
}
