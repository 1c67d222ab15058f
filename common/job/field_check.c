/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/field_check.h"

#include <math.h>
#include <string.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/job/belonging.h"
#include "common/job/enum_words.h"
#include "common/job/rules.h"
#include "common/nearest_word.h"

#define SHOWN_MAX 64 /* characters of a wrong value that a message repeats */

struct check {
    struct violations *violations;
    bool refuse_unknown;
};

static void check_object(struct check *check, const struct object_type *type, const struct json *object,
                         const struct json *old);

static void refuse_type(struct check *check, const struct json *value, const char *wanted)
{
    violations_add(check->violations, NULL, "the value is of type %s; give %s", json_type_name(json_type(value)),
                   wanted);
}

static size_t count_characters(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

/* ---------------------------------------------------------------- scalars */

static void check_text_length(struct check *check, const struct field *field, const char *text)
{
    size_t length = count_characters(text);
    if ((int64_t)length < field->min && length == 0)
        violations_add(check->violations, NULL, "is empty; leave it out or give a value");
    else if ((int64_t)length < field->min || (field->max > 0 && (int64_t)length > field->max))
        violations_add(check->violations, NULL, "has %zu characters; give %lld to %lld", length, (long long)field->min,
                       (long long)field->max);
}

static void check_format(struct check *check, enum string_format format, const char *text)
{
    if (!string_format_matches(format, text))
        violations_add(check->violations, NULL, "'%.*s' does not fit; give %s", SHOWN_MAX, text,
                       string_format_words(format));
}

static void check_string(struct check *check, const struct field *field, const struct json *value)
{
    const char *text = json_string(value, NULL);
    if (text == NULL) {
        refuse_type(check, value, field->format ? string_format_words(field->format) : "a string");
        return;
    }
    size_t before = check->violations->count;
    check_text_length(check, field, text);
    if (check->violations->count == before)
        check_format(check, field->format, text);
    struct error flaw = ERROR_INIT;
    if (check->violations->count == before && field->check && field->check(text, &flaw) < 0)
        violations_add(check->violations, NULL, "'%.*s' %s", SHOWN_MAX, text, flaw.message);
}

static void check_integer(struct check *check, const struct field *field, const struct json *value)
{
    int64_t number = json_integer(value, INT64_MIN);
    if (json_type(value) != JSON_NUMBER)
        refuse_type(check, value, "a whole number");
    else if (number == INT64_MIN)
        violations_add(check->violations, NULL, "%g is not a whole number", json_number(value, 0));
    else if (number < field->min || number > field->max)
        violations_add(check->violations, NULL, "%lld is %s %lld; give a number from %lld to %lld", (long long)number,
                       number < field->min ? "below" : "above",
                       (long long)(number < field->min ? field->min : field->max), (long long)field->min,
                       (long long)field->max);
}

static void check_decimal_bounds(struct check *check, const struct field *field, double number)
{
    bool low = field->above ? number <= field->lowest : number < field->lowest;
    bool high = field->below ? number >= field->highest : number > field->highest;
    if (low || high)
        violations_add(check->violations, NULL, "%g is out of bounds; give a number %s %g%s %g", number,
                       field->above ? "above" : "from", field->lowest,
                       field->below   ? " and below"
                       : field->above ? ", up to"
                                      : " to",
                       field->highest);
}

/* A number, or the same in quotes. */
static void check_decimal(struct check *check, const struct field *field, const struct json *value)
{
    const char *text = json_string(value, NULL);
    if (json_type(value) == JSON_NUMBER)
        check_decimal_bounds(check, field, json_number(value, 0));
    else if (text == NULL)
        refuse_type(check, value, string_format_words(STRING_FORMAT_DECIMAL));
    else if (count_characters(text) > DECIMAL_TEXT_MAX || !string_format_matches(STRING_FORMAT_DECIMAL, text))
        violations_add(check->violations, NULL, "'%.*s' does not fit; give %s", SHOWN_MAX, text,
                       string_format_words(STRING_FORMAT_DECIMAL));
    else
        check_decimal_bounds(check, field, decimal_value(text));
}

static void check_boolean(struct check *check, const struct json *value)
{
    if (json_type(value) != JSON_BOOLEAN)
        refuse_type(check, value, "true or false");
}

/* "CPU, GPU or Auto". */
static void list_words(const char *const *words, struct buffer *out)
{
    for (size_t i = 0; words[i]; i++) {
        if (*words[i] == '\0')
            continue;
        buffer_append_string(out, out->length == 0 ? "" : words[i + 1] ? ", " : " or ", NULL);
        buffer_append_string(out, words[i], NULL);
    }
}

static const char *nearest(const char *const *words, const char *word)
{
    size_t count = 0;
    words += **words == '\0'; /* what stands for "not given" comes first */
    while (words[count])
        count++;
    return nearest_word(word, words, count);
}

static void check_enum(struct check *check, const struct field *field, const struct json *value)
{
    const char *word = json_string(value, NULL);
    if (word && *word && (words_find(field->words, word) >= 0 || (field->flags & FIELD_OPEN)))
        return;
    SCOPED_BUFFER offered = BUFFER_INIT(FIELD_PATH_MAX);
    list_words(field->words, &offered);
    const char *meant = word ? nearest(field->words, word) : NULL;
    if (word == NULL)
        refuse_type(check, value, buffer_text(&offered));
    else if (meant)
        violations_add(check->violations, NULL, "'%.*s' is not known; did you mean %s? There are %s", SHOWN_MAX, word,
                       meant, buffer_text(&offered));
    else
        violations_add(check->violations, NULL, "'%.*s' is not known; give %s", SHOWN_MAX, word, buffer_text(&offered));
}

static void check_time(struct check *check, const struct json *value)
{
    int64_t ms;
    if (!clock_parse(json_string(value, ""), &ms))
        violations_add(check->violations, NULL, "is not a time such as 2026-11-20T14:00:00Z");
}

static void check_opaque(struct check *check, const struct json *value)
{
    if (json_type(value) != JSON_OBJECT)
        refuse_type(check, value, "an object");
}

/* ---------------------------------------------------------------- lists */

static void check_unique(struct check *check, const struct field *field, const struct json *list,
                         const struct json *item, size_t index)
{
    const char *key = field->type->map_key;
    const struct json *value = key ? json_member(item, key) : NULL;
    for (const struct json *earlier = json_first(list); value && earlier != item; earlier = json_next(earlier))
        if (json_equal(json_member(earlier, key), value)) {
            size_t length = violations_enter_element(check->violations, index);
            violations_add(check->violations, NULL, "is a second element with %s %s; each may occur only once", key,
                           json_string(value, ""));
            violations_leave(check->violations, length);
            return;
        }
}

static const struct json *matching_element(const struct json *list, const char *key, const struct json *item)
{
    for (const struct json *element = json_first(list); key && element; element = json_next(element))
        if (json_equal(json_member(element, key), json_member(item, key)))
            return element;
    return NULL;
}

static void check_scalar(struct check *check, const struct json *value)
{
    enum json_type type = json_type(value);
    if (type == JSON_STRING)
        check_text_length(check, &(struct field){.max = SCALAR_TEXT_MAX}, json_string(value, ""));
    else if (type != JSON_NUMBER && type != JSON_BOOLEAN)
        refuse_type(check, value, "a number, a string, true or false");
}

static void check_element(struct check *check, const struct field *field, const struct json *item,
                          const struct json *old_list)
{
    if (field->kind == FIELD_STRING_LIST)
        check_string(check,
                     &(struct field){
                         .min = 1, .max = field_list_text_max(field), .format = field->format, .check = field->check},
                     item);
    else if (field->kind == FIELD_INTEGER_LIST)
        check_integer(check, &(struct field){.min = (int64_t)field->lowest, .max = (int64_t)field->highest}, item);
    else if (field->kind == FIELD_SCALAR_LIST)
        check_scalar(check, item);
    else
        check_object(check, field->type, item, matching_element(old_list, field->type->map_key, item));
}

static void check_list(struct check *check, const struct field *field, const struct json *list,
                       const struct json *old_list)
{
    if (json_type(list) != JSON_ARRAY) {
        refuse_type(check, list, "a list");
        return;
    }
    size_t count = json_count(list), index = 0;
    if ((int64_t)count < field->min || (int64_t)count > field->max) {
        violations_add(check->violations, NULL, "has %zu elements; give %lld to %lld", count, (long long)field->min,
                       (long long)field->max);
        return;
    }
    for (const struct json *item = json_first(list); item; item = json_next(item), index++) {
        size_t length = violations_enter_element(check->violations, index);
        check_element(check, field, item, old_list);
        violations_leave(check->violations, length);
        if (field->kind == FIELD_LIST)
            check_unique(check, field, list, item, index);
    }
}

/* ---------------------------------------------------------------- objects */

static void check_value(struct check *check, const struct field *field, const struct json *value,
                        const struct json *old)
{
    switch (field->kind) {
    case FIELD_STRING:
        check_string(check, field, value);
        return;
    case FIELD_INTEGER:
        check_integer(check, field, value);
        return;
    case FIELD_DECIMAL:
        check_decimal(check, field, value);
        return;
    case FIELD_BOOLEAN:
        check_boolean(check, value);
        return;
    case FIELD_ENUM:
        check_enum(check, field, value);
        return;
    case FIELD_TIME:
        check_time(check, value);
        return;
    case FIELD_OBJECT:
        check_object(check, field->type, value, old);
        return;
    case FIELD_LIST:
    case FIELD_STRING_LIST:
    case FIELD_INTEGER_LIST:
    case FIELD_SCALAR_LIST:
        check_list(check, field, value, old);
        return;
    case FIELD_OPAQUE:
    case FIELD_VOLUME:
        check_opaque(check, value);
        return;
    }
}

static void check_member(struct check *check, const struct field *field, const struct json *object,
                         const struct json *old)
{
    const struct json *value = json_member(object, field->name);
    if (value) {
        size_t length = violations_enter(check->violations, field->name);
        check_value(check, field, value, json_member(old, field->name));
        violations_leave(check->violations, length);
    } else if (field->flags & FIELD_REQUIRED) {
        violations_add(check->violations, field->name, "is missing; it is required");
    }
}

static void refuse_unknown(struct check *check, const struct object_type *type, const char *name)
{
    const char *meant = field_nearest(type, name);
    if (meant)
        violations_add(check->violations, name, "is not a field that is known here; did you mean %s?", meant);
    else
        violations_add(check->violations, name, "is not a field that is known here; correct its name or leave it out");
}

static void check_unknown(struct check *check, const struct object_type *type, const struct json *object)
{
    for (const struct json *member = json_first(object); member; member = json_next(member))
        if (field_find(type, json_key(member)) == NULL)
            refuse_unknown(check, type, json_key(member));
}

/* In a job document the members of section coxswain are the document's own. */
#define SECTION_PREFIX "coxswain."

static bool is_about(const struct rule *rule, const struct object_type *type)
{
    return rule->about == type || (type->base && rule->about == type->base) ||
           (type == &job_document_type && rule->in_documents);
}

static const char *blamed_field(const struct rule *rule, const struct object_type *type)
{
    size_t length = strlen(SECTION_PREFIX);
    bool flat = type == &job_document_type && rule->field && strncmp(rule->field, SECTION_PREFIX, length) == 0;
    return flat ? rule->field + length : rule->field;
}

static void check_rules(struct check *check, const struct object_type *type, const struct json *object,
                        const struct json *old)
{
    for (const struct rule *rule = rules; rule->name; rule++)
        if (is_about(rule, type) && (old || !rule->on_update) && !rule->holds(object, old))
            violations_add(check->violations, blamed_field(rule, type), "%s", rule->message);
}

struct kind_check {
    struct check *check;
    const struct json *object;
};

static void check_belonging(void *context, const struct belonging *belonging)
{
    const struct kind_check *kind = context;
    if (belonging_holds(belonging, kind->object))
        return;
    SCOPED_BUFFER path = BUFFER_INIT(FIELD_PATH_MAX), message = BUFFER_INIT(BELONGING_MESSAGE_MAX);
    belonging_path(belonging, &path);
    belonging_message(belonging, &message);
    violations_add(kind->check->violations, buffer_text(&path), "%s", buffer_text(&message));
}

static void check_object(struct check *check, const struct object_type *type, const struct json *object,
                         const struct json *old)
{
    if (json_type(object) != JSON_OBJECT) {
        refuse_type(check, object, "an object");
        return;
    }
    size_t before = check->violations->count;
    for (struct field_cursor at = field_first(type); at.field; field_next(&at))
        check_member(check, at.field, object, old);
    if (check->refuse_unknown)
        check_unknown(check, type, object);
    if (check->violations->count > before)
        return;
    check_rules(check, type, object, old);
    belongings_visit(type, check_belonging, &(struct kind_check){check, object});
}

void fields_check(const struct object_type *type, const struct json *object, const struct json *old,
                  bool refuse_unknown, struct violations *violations)
{
    struct check check = {.violations = violations, .refuse_unknown = refuse_unknown};
    check_object(&check, type, object, old);
}

void field_check_scalar(const struct field *field, const struct json *value, struct violations *violations)
{
    struct check check = {.violations = violations};
    if (field->kind == FIELD_STRING_LIST || field->kind == FIELD_INTEGER_LIST || field->kind == FIELD_SCALAR_LIST)
        check_element(&check, field, value, NULL);
    else
        check_value(&check, field, value, NULL);
}
