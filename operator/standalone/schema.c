/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/schema.h"

#include <inttypes.h>
#include <math.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "operator/standalone/refusal.h"

#define PATH_MAX_BYTES 4096

/* The schema's own metadata is the server's business, at the root and in embedded resources. */
static bool is_server_field(const char *key)
{
    return strcmp(key, "apiVersion") == 0 || strcmp(key, "kind") == 0 || strcmp(key, "metadata") == 0;
}

static const struct json *schema_of_member(const struct json *schema, const char *key)
{
    const struct json *property = json_member(json_member(schema, "properties"), key);
    if (property)
        return property;
    const struct json *additional = json_member(schema, "additionalProperties");
    return json_type(additional) == JSON_OBJECT ? additional : NULL;
}

static bool preserves_unknown(const struct json *schema)
{
    return json_boolean(json_member(schema, "x-kubernetes-preserve-unknown-fields"), false) ||
           json_boolean(json_member(schema, "additionalProperties"), false);
}

/* ---- defaults ---- */

/* A null where none may be counts as absent. */
static void drop_nulls(const struct json *properties, struct json *value)
{
    for (struct json *next, *member = json_first(value); member; member = next) {
        next = json_next(member);
        const struct json *property = json_member(properties, json_key(member));
        if (json_type(member) == JSON_NULL && property && !json_boolean_at(property, "nullable", false))
            json_free(json_detach(value, member));
    }
}

static void default_members(const struct json *schema, struct json *value)
{
    const struct json *properties = json_member(schema, "properties");
    drop_nulls(properties, value);
    for (const struct json *property = json_first(properties); property; property = json_next(property)) {
        const struct json *otherwise = json_member(property, "default");
        if (otherwise && json_member(value, json_key(property)) == NULL)
            json_set(value, json_key(property), json_copy(otherwise));
    }
    for (struct json *member = json_first(value); member; member = json_next(member))
        schema_default(schema_of_member(schema, json_key(member)), member);
}

void schema_default(const struct json *schema, struct json *value)
{
    if (schema == NULL)
        return;
    if (json_type(value) == JSON_OBJECT)
        default_members(schema, value);
    if (json_type(value) == JSON_ARRAY)
        for (struct json *item = json_first(value); item; item = json_next(item))
            schema_default(json_member(schema, "items"), item);
}

/* ---- pruning ---- */

struct place {
    char path[PATH_MAX_BYTES];
};

static size_t place_enter_member(struct place *place, const char *key)
{
    size_t length = strlen(place->path);
    snprintf(place->path + length, sizeof place->path - length, "%s%s", length ? "." : "", key);
    return length;
}

static size_t place_enter_element(struct place *place, size_t index)
{
    size_t length = strlen(place->path);
    snprintf(place->path + length, sizeof place->path - length, "[%zu]", index);
    return length;
}

static void place_leave(struct place *place, size_t length)
{
    place->path[length] = '\0';
}

static void prune(const struct json *schema, struct json *value, struct json *unknown, struct place *place, bool root);

static void prune_member(const struct json *schema, struct json *object, struct json *member, struct json *unknown,
                         struct place *place)
{
    const struct json *below = schema_of_member(schema, json_key(member));
    size_t mark = place_enter_member(place, json_key(member));
    if (below) {
        prune(below, member, unknown, place, false);
    } else if (!preserves_unknown(schema)) {
        json_append_string(unknown, place->path);
        json_free(json_detach(object, member));
    }
    place_leave(place, mark);
}

static void prune(const struct json *schema, struct json *value, struct json *unknown, struct place *place, bool root)
{
    bool embedded = root || json_boolean_at(schema, "x-kubernetes-embedded-resource", false);
    if (json_type(value) == JSON_OBJECT) {
        for (struct json *next, *member = json_first(value); member; member = next) {
            next = json_next(member);
            if (!(embedded && is_server_field(json_key(member))))
                prune_member(schema, value, member, unknown, place);
        }
    } else if (json_type(value) == JSON_ARRAY) {
        size_t index = 0;
        for (struct json *item = json_first(value); item; item = json_next(item)) {
            size_t mark = place_enter_element(place, index++);
            prune(json_member(schema, "items"), item, unknown, place, false);
            place_leave(place, mark);
        }
    }
}

void schema_prune(const struct json *schema, struct json *value, struct json *unknown)
{
    struct place place = {""};
    prune(schema, value, unknown, &place, true);
}

/* ---- validation ---- */

struct validation {
    struct place place;
    struct json *causes;
};

static void add(struct validation *validation, enum cause_kind kind, const struct json *value, const char *detail)
{
    const char *path = validation->place.path[0] ? validation->place.path : "<root>";
    cause_add(validation->causes, kind, path, value, detail);
}

__attribute__((format(printf, 4, 5))) static void add_formatted(struct validation *validation, enum cause_kind kind,
                                                                const struct json *value, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    add(validation, kind, value, text);
}

static bool has_type(const char *type, const struct json *value)
{
    switch (json_type(value)) {
    case JSON_BOOLEAN:
        return strcmp(type, "boolean") == 0;
    case JSON_NUMBER:
        return strcmp(type, "number") == 0 ||
               (strcmp(type, "integer") == 0 && json_number(value, 0.5) == floor(json_number(value, 0)));
    case JSON_STRING:
        return strcmp(type, "string") == 0;
    case JSON_ARRAY:
        return strcmp(type, "array") == 0;
    case JSON_OBJECT:
        return strcmp(type, "object") == 0;
    default:
        return false;
    }
}

static const char *go_type(const struct json *value)
{
    if (json_type(value) == JSON_NUMBER)
        return has_type("integer", value) ? "integer" : "number";
    return json_type_name(json_type(value));
}

static bool check_type(struct validation *validation, const struct json *schema, const struct json *value)
{
    const char *type = json_string_at(schema, "type", NULL);
    if (json_boolean(json_member(schema, "x-kubernetes-int-or-string"), false))
        return has_type("integer", value) || has_type("string", value);
    if (type == NULL || has_type(type, value))
        return true;
    SCOPED_JSON *shown = json_new_string(go_type(value));
    char detail[2 * PATH_MAX_BYTES];
    snprintf(detail, sizeof detail, "%s in body must be of type %s: \"%s\"", validation->place.path, type,
             json_string(shown, ""));
    add(validation, CAUSE_TYPE, shown, detail);
    return false;
}

static void check_enum(struct validation *validation, const struct json *schema, const struct json *value)
{
    const struct json *allowed = json_member(schema, "enum");
    SCOPED_BUFFER words = BUFFER_INIT(4096);
    for (const struct json *word = json_first(allowed); word; word = json_next(word)) {
        if (json_equal(word, value))
            return;
        buffer_append_string(&words, words.length ? ", " : "supported values: ", NULL);
        json_print(word, &words, NULL);
    }
    if (allowed)
        add(validation, CAUSE_NOT_SUPPORTED, value, buffer_text(&words));
}

static size_t count_characters(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += (*text & 0xc0) != 0x80;
    return count;
}

/* POSIX extended expressions are near enough to what CRDs use once the classes that POSIX lacks are spelled out. */
static void append_posix(struct buffer *posix, const char *pattern)
{
    static const struct {
        char letter;
        const char *bare, *bracketed;
    } classes[] = {{'d', "[0-9]", "0-9"}, {'w', "[A-Za-z0-9_]", "A-Za-z0-9_"}, {'s', "[ \t\r\n]", " \t\r\n"}};
    bool bracket = false;
    for (const char *at = pattern; *at; at++) {
        const char *replacement = NULL;
        for (size_t i = 0; *at == '\\' && i < sizeof classes / sizeof classes[0]; i++)
            if (at[1] == classes[i].letter)
                replacement = bracket ? classes[i].bracketed : classes[i].bare;
        bracket = *at == '[' ? true : *at == ']' ? false : bracket;
        if (replacement)
            at++;
        else if (strncmp(at, "(?:", 3) == 0)
            replacement = "(", at += 2;
        if (replacement)
            buffer_append_string(posix, replacement, NULL);
        else
            buffer_append_byte(posix, *at, NULL);
    }
}

static bool matches_pattern(const char *pattern, const char *text)
{
    SCOPED_BUFFER posix = BUFFER_INIT(8192);
    append_posix(&posix, pattern);
    regex_t expression;
    if (regcomp(&expression, buffer_text(&posix), REG_EXTENDED | REG_NOSUB) != 0)
        return true;
    bool matches = regexec(&expression, text, 0, NULL, 0) == 0;
    regfree(&expression);
    return matches;
}

static void check_string(struct validation *validation, const struct json *schema, const struct json *value)
{
    const char *text = json_string(value, "");
    const char *path = validation->place.path;
    int64_t length = (int64_t)count_characters(text);
    int64_t longest = json_integer_at(schema, "maxLength", -1);
    if (longest >= 0 && length > longest)
        add_formatted(validation, CAUSE_TOO_LONG, NULL, "may not be more than %" PRId64 " bytes", longest);
    int64_t shortest = json_integer_at(schema, "minLength", 0);
    if (length < shortest)
        add_formatted(validation, CAUSE_INVALID, value, "%s in body should be at least %" PRId64 " chars long", path,
                      shortest);
    const char *pattern = json_string_at(schema, "pattern", NULL);
    if (pattern && !matches_pattern(pattern, text))
        add_formatted(validation, CAUSE_INVALID, value, "%s in body should match '%s'", path, pattern);
    int64_t ignored;
    if (strcmp(json_string_at(schema, "format", ""), "date-time") == 0 && !clock_parse(text, &ignored))
        add_formatted(validation, CAUSE_INVALID, value, "%s in body must be of type date-time: \"%s\"", path, text);
}

static void check_number(struct validation *validation, const struct json *schema, const struct json *value)
{
    double number = json_number(value, 0);
    const char *path = validation->place.path;
    const struct json *minimum = json_member(schema, "minimum");
    const struct json *maximum = json_member(schema, "maximum");
    bool above = json_boolean_at(schema, "exclusiveMinimum", false);
    bool below = json_boolean_at(schema, "exclusiveMaximum", false);
    double low = json_number(minimum, 0), high = json_number(maximum, 0);
    if (minimum && (above ? number <= low : number < low))
        add_formatted(validation, CAUSE_INVALID, value, "%s in body should be greater than%s %.15g", path,
                      above ? "" : " or equal to", low);
    if (maximum && (below ? number >= high : number > high))
        add_formatted(validation, CAUSE_INVALID, value, "%s in body should be less than%s %.15g", path,
                      below ? "" : " or equal to", high);
    double step = json_number_at(schema, "multipleOf", 0);
    if (step > 0 && fmod(number, step) != 0)
        add_formatted(validation, CAUSE_INVALID, value, "%s in body should be a multiple of %.15g", path, step);
    if (strcmp(json_string_at(schema, "format", ""), "int32") == 0 && fabs(number) > INT32_MAX)
        add_formatted(validation, CAUSE_INVALID, value, "%s in body must be of type int32: %.15g", path, number);
}

static void validate(struct validation *validation, const struct json *schema, const struct json *value);

static void check_required(struct validation *validation, const struct json *schema, const struct json *value)
{
    const struct json *required = json_member(schema, "required");
    for (const struct json *key = json_first(required); key; key = json_next(key)) {
        if (json_member(value, json_string(key, "")))
            continue;
        size_t mark = place_enter_member(&validation->place, json_string(key, ""));
        add(validation, CAUSE_REQUIRED, NULL, NULL);
        place_leave(&validation->place, mark);
    }
}

static void check_object(struct validation *validation, const struct json *schema, const struct json *value)
{
    int64_t count = (int64_t)json_count(value);
    int64_t most = json_integer_at(schema, "maxProperties", -1), least = json_integer_at(schema, "minProperties", 0);
    if (most >= 0 && count > most)
        add_formatted(validation, CAUSE_TOO_MANY, NULL, "%" PRId64 ": must have at most %" PRId64 " items", count,
                      most);
    if (count < least)
        add_formatted(validation, CAUSE_INVALID, value, "%s in body should have at least %" PRId64 " properties",
                      validation->place.path, least);
    check_required(validation, schema, value);
    for (const struct json *member = json_first(value); member; member = json_next(member)) {
        const struct json *below = schema_of_member(schema, json_key(member));
        if (below == NULL || (validation->place.path[0] == '\0' && is_server_field(json_key(member))))
            continue;
        size_t mark = place_enter_member(&validation->place, json_key(member));
        validate(validation, below, member);
        place_leave(&validation->place, mark);
    }
}

static bool same_map_key(const struct json *keys, const struct json *left, const struct json *right)
{
    for (const struct json *key = json_first(keys); key; key = json_next(key)) {
        const struct json *one = json_member(left, json_string(key, ""));
        const struct json *other = json_member(right, json_string(key, ""));
        if ((one == NULL) != (other == NULL) || (one && !json_equal(one, other)))
            return false;
    }
    return true;
}

static bool is_repeated(const struct json *schema, const struct json *earlier, const struct json *item)
{
    const char *type = json_string_at(schema, "x-kubernetes-list-type", "atomic");
    if (strcmp(type, "map") == 0)
        return same_map_key(json_member(schema, "x-kubernetes-list-map-keys"), earlier, item);
    bool unique = strcmp(type, "set") == 0 || json_boolean_at(schema, "uniqueItems", false);
    return unique && json_equal(earlier, item);
}

static void check_repetition(struct validation *validation, const struct json *schema, const struct json *value,
                             const struct json *item)
{
    for (const struct json *earlier = json_first(value); earlier != item; earlier = json_next(earlier)) {
        if (!is_repeated(schema, earlier, item))
            continue;
        SCOPED_JSON *shown = json_new_object();
        const struct json *keys = json_member(schema, "x-kubernetes-list-map-keys");
        for (const struct json *key = json_first(keys); key; key = json_next(key))
            json_set(shown, json_string(key, ""), json_copy(json_member(item, json_string(key, ""))));
        add(validation, CAUSE_DUPLICATE, keys ? shown : item, NULL);
        return;
    }
}

/* Comparing all pairs is dear: lists beyond this size are refused by maxItems in any sane schema. */
#define REPETITION_ITEMS_MAX 4096

static void check_array(struct validation *validation, const struct json *schema, const struct json *value)
{
    int64_t count = (int64_t)json_count(value);
    int64_t most = json_integer_at(schema, "maxItems", -1), least = json_integer_at(schema, "minItems", 0);
    if (most >= 0 && count > most) {
        add_formatted(validation, CAUSE_TOO_MANY, NULL, "%" PRId64 ": must have at most %" PRId64 " items", count,
                      most);
        return;
    }
    if (count < least)
        add_formatted(validation, CAUSE_INVALID, value, "%s in body should have at least %" PRId64 " items",
                      validation->place.path, least);
    size_t index = 0;
    for (const struct json *item = json_first(value); item; item = json_next(item)) {
        size_t mark = place_enter_element(&validation->place, index++);
        if (count <= REPETITION_ITEMS_MAX)
            check_repetition(validation, schema, value, item);
        validate(validation, json_member(schema, "items"), item);
        place_leave(&validation->place, mark);
    }
}

static void validate(struct validation *validation, const struct json *schema, const struct json *value)
{
    if (schema == NULL || (json_type(value) == JSON_NULL && json_boolean_at(schema, "nullable", false)))
        return;
    if (!check_type(validation, schema, value))
        return;
    check_enum(validation, schema, value);
    switch (json_type(value)) {
    case JSON_STRING:
        check_string(validation, schema, value);
        break;
    case JSON_NUMBER:
        check_number(validation, schema, value);
        break;
    case JSON_OBJECT:
        check_object(validation, schema, value);
        break;
    case JSON_ARRAY:
        check_array(validation, schema, value);
        break;
    default:
        break;
    }
}

void schema_validate(const struct json *schema, const struct json *value, struct json *causes)
{
    struct validation validation = {.causes = causes};
    validate(&validation, schema, value);
}
