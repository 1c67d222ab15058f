/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/unknown_field.h"

#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/job/enum_words.h"
#include "common/job/fields.h"
#include "common/job/string_format.h"
#include "common/memory.h"
#include "common/nearest_word.h"

#define UNKNOWN "unknown field \""
#define SPEC "spec."
#define TEMPLATE "spec.template."
#define UNSUPPORTED "Unsupported value: "
#define ALGORITHM "spec.algorithm.type: "
#define SUPPORTED ": supported values: "
#define WORDS_MAX 64
#define IS_INVALID "\" is invalid: "
#define INVALID_VALUE ": Invalid value: "
#define AN_OBJECT "\"object\": "
#define A_STRING "\"string\""
#define REQUIRED ": Required value"
#define OF_TYPE "must be of type "
#define IN_VERSION " in version \""
#define STRICT "strict decoding error: "
#define MATCH "should match '"
#define MATCH_END "'"
#define NAME_RULE "a lowercase RFC 1123 "
#define NAME_RULE_END "')"
#define NAME_WORDS "write lower-case letters, digits and '-' only, with a letter first and a letter or digit last"

/* ---------------------------------------------------------------- what a message repeats */

/* A bracket begins a list of refusals, or, within a path, the number of an element. */
static const char *word_start(const char *text, const char *at)
{
    while (at > text && at[-1] != ' ' && (at[-1] != '[' || (at - 1 > text && at[-2] != ' ')))
        at--;
    return at;
}

/* `TrainingJob.coxswain.dev "digits" is invalid: ` becomes `digits: `, or nothing where `TrainingJob digits: ` stands before it. */
static const char *append_without_resource(const char *text, struct buffer *out)
{
    const char *end = strstr(text, IS_INVALID), *name = end;
    while (name && name > text && name[-1] != '"')
        name--;
    if (!end || name < text + 2 || name[-2] != ' ')
        return text;
    const char *kind = word_start(text, name - 2);
    SCOPED_FREE char *named = memory_format("%.*s %.*s: ", (int)strcspn(kind, ". "), kind, (int)(end - name), name);
    size_t before = (size_t)(kind - text), length = strlen(named);
    bool known = before >= length && strncmp(kind - length, named, length) == 0;
    buffer_append(out, text, before, NULL);
    buffer_format(out, known ? "" : "%.*s: ", (int)(end - name), name);
    return end + strlen(IS_INVALID);
}

static const char *append_without_version(const char *text, struct buffer *out)
{
    const char *strict = strstr(text, STRICT), *version = strstr(text, IN_VERSION);
    if (!strict)
        return text;
    const char *start = version && version < strict ? word_start(text, version) : strict;
    buffer_append(out, text, (size_t)(start - text), NULL);
    return strict + strlen(STRICT);
}

/* `"string": spec.a in body must be of type integer: "string"` becomes `must be of type integer, written without quotes, not
 * text`, and `0: spec.a in body should be greater than 0` becomes `0 should be greater than 0`. Returns what follows the value. */
static const char *append_value(const char *path, const char *value, struct buffer *out)
{
    SCOPED_FREE char *again = memory_format(": %s in body ", path);
    const char *repeated = *path ? strstr(value, again) : NULL;
    if (!repeated)
        return strncmp(value, AN_OBJECT, strlen(AN_OBJECT)) == 0 ? value + strlen(AN_OBJECT) : value;
    const char *rest = repeated + strlen(again);
    if (strncmp(rest, OF_TYPE, strlen(OF_TYPE)) != 0) {
        buffer_format(out, "%.*s ", (int)(repeated - value), value);
        return rest;
    }
    bool is_scalar = strncmp(rest, OF_TYPE "object", strlen(OF_TYPE "object")) != 0 &&
                     strncmp(rest, OF_TYPE "array", strlen(OF_TYPE "array")) != 0;
    size_t length = strcspn(rest, ":");
    buffer_append(out, rest, length, NULL);
    rest += length;
    if (strncmp(rest, ": ", 2) != 0)
        return rest;
    bool quoted = is_scalar && strncmp(rest + 2, A_STRING, strlen(A_STRING)) == 0;
    buffer_append_string(out, quoted ? ", written without quotes, not text" : ", not ", NULL);
    return rest + 2 + (quoted ? strlen(A_STRING) : 0);
}

static void append_values(const char *text, struct buffer *out)
{
    for (const char *at; (at = strstr(text, INVALID_VALUE));) {
        const char *start = word_start(text, at);
        SCOPED_FREE char *path = memory_copy_bytes(start, (size_t)(at - start));
        buffer_format(out, "%.*s: ", (int)(at - text), text);
        text = append_value(path, at + strlen(INVALID_VALUE), out);
    }
    buffer_append_string(out, text, NULL);
}

/* `spec.a: Required value` becomes `spec.a is missing; add it`, unless the server gives a reason after it. */
static void append_required(const char *text, struct buffer *out)
{
    for (const char *at; (at = strstr(text, REQUIRED));) {
        const char *end = at + strlen(REQUIRED);
        buffer_format(out, "%.*s%s", (int)(at - text), text, *end == ':' ? REQUIRED : " is missing; add it");
        text = end;
    }
    buffer_append_string(out, text, NULL);
}

/* Returns the end of the rule about a text that begins here, and what the rule is in words; NULL: none does. */
static const char *rule_in_words(const char *text, const char **ret_lead, const char **ret_words)
{
    const char *name_end = strncmp(text, NAME_RULE, strlen(NAME_RULE)) == 0 ? strstr(text, NAME_RULE_END) : NULL;
    *ret_lead = name_end ? "" : "should be ";
    *ret_words = NAME_WORDS;
    if (name_end || strncmp(text, MATCH, strlen(MATCH)) != 0)
        return name_end ? name_end + strlen(NAME_RULE_END) : NULL;
    const char *at = text + strlen(MATCH);
    for (int i = STRING_FORMAT_ANY + 1; i <= STRING_FORMAT_DECIMAL; i++) {
        const char *expression = string_format_expression((enum string_format)i);
        size_t length = strlen(expression);
        *ret_words = string_format_words((enum string_format)i);
        if (strncmp(at, expression, length) == 0 && strncmp(at + length, MATCH_END, strlen(MATCH_END)) == 0)
            return at + length + strlen(MATCH_END);
    }
    return NULL;
}

/* Says in words what a text must be, where the server gives a regular expression. */
static void append_rules(const char *text, struct buffer *out)
{
    const char *lead, *words, *end;
    for (const char *at = text; *at;) {
        if (!(end = rule_in_words(at, &lead, &words))) {
            buffer_append_byte(out, *at++, NULL);
            continue;
        }
        buffer_append_string(out, lead, NULL);
        buffer_append_string(out, words, NULL);
        at = end;
    }
}

void refusal_shorten(struct error *error)
{
    SCOPED_FREE char *refusal = memory_copy_string(error->message);
    SCOPED_BUFFER shorter = BUFFER_INIT(2 * ERROR_MESSAGE_MAX);
    SCOPED_BUFFER text = BUFFER_INIT(4 * ERROR_MESSAGE_MAX);
    SCOPED_BUFFER plain = BUFFER_INIT(8 * ERROR_MESSAGE_MAX);
    const char *rest = append_without_resource(refusal, &shorter);
    append_values(append_without_version(rest, &shorter), &shorter);
    append_required(buffer_text(&shorter), &text);
    append_rules(buffer_text(&text), &plain);
    int status = error->http_status;
    error_set(error, error->kind, "%s", buffer_text(&plain));
    error->http_status = status;
}

/* ---------------------------------------------------------------- what was meant */

static const struct object_type *type_within(const struct object_type *type, const char *name)
{
    const struct field *field = field_find(type, name);
    if (type == &training_sweep_spec_type && strcmp(name, "template") == 0)
        return &training_job_spec_type;
    return field && (field->kind == FIELD_OBJECT || field->kind == FIELD_LIST) ? field->type : NULL;
}

/* Returns the type of the object in which the last name of a path such as "spec.storage[0].nam" stands; NULL: that is unknown, too.
 * *ret_last: where the name begins. */
static const struct object_type *type_of_last(const struct object_type *type, const char *path, size_t *ret_last)
{
    for (const char *at = path + strlen(SPEC); type;) {
        const char *dot = strchr(at, '.');
        *ret_last = (size_t)(at - path);
        if (!dot)
            return type;
        SCOPED_FREE char *name = memory_copy_bytes(at, strcspn(at, ".["));
        type = type_within(type, name);
        at = dot + 1;
    }
    return NULL;
}

/* Appends the paths, relative to the spec of a job, of sections that have a field of that name. Returns their number. */
static unsigned find_sections(const struct object_type *type, const char *name, const char *path, struct buffer *out)
{
    unsigned count = 0;
    for (struct field_cursor at = field_first(type); at.field; field_next(&at)) {
        SCOPED_FREE char *place = memory_format("%s%s%s", path, *path ? "." : "", at.field->name);
        if (strcmp(at.field->name, name) == 0) {
            buffer_append_string(out, place, NULL);
            count++;
        } else if (at.field->kind == FIELD_OBJECT && strchr(path, '.') == NULL) /* three levels are enough */
            count += find_sections(at.field->type, name, place, out);
    }
    return count;
}

/* Appends the fields that stand where the unknown one was given, and the only other place that has one of its name. */
static void append_fields(const struct object_type *type, const char *path, size_t last, struct buffer *out)
{
    const char *spec = strncmp(path, TEMPLATE, strlen(TEMPLATE)) == 0 ? TEMPLATE : SPEC;
    SCOPED_BUFFER sections = BUFFER_INIT(ERROR_MESSAGE_MAX);
    if (type == &layer_type_type && strcmp(path + last, "activation") == 0)
        buffer_append_string(out, "; an activation is a layer of its own, such as {type: ReLU}", NULL);
    else if (find_sections(&training_job_spec_type, path + last, "", &sections) == 1)
        buffer_format(out, "; did you mean %s%s?", spec, buffer_text(&sections));
    bool is_new = out->length > 0 && buffer_text(out)[out->length - 1] == '?';
    buffer_format(out, "%s fields of %.*s are ", is_new ? " The" : "; the", (int)last - 1, path);
    for (struct field_cursor at = field_first(type); at.field; field_next(&at))
        buffer_format(out, "%s%s", at.field == field_first(type).field ? "" : ", ", at.field->name);
}

/* Returns the word in quotes that begins at *at, and moves *at behind it; NULL if there is none. free() it. */
static char *take_quoted(const char **at)
{
    const char *end = **at == '"' ? strchr(*at + 1, '"') : NULL;
    if (!end)
        return NULL;
    char *word = memory_copy_bytes(*at + 1, (size_t)(end - *at - 1));
    *at = end + 1;
    return word;
}

/* `at` is what follows an unsupported value in the message: the list of supported words. Returns the one that is most like `value`, or
 * NULL if none is; free() it. */
static char *nearest_of_words(const char *value, const char *at)
{
    char *words[WORDS_MAX];
    size_t count = 0;
    if (strncmp(at, SUPPORTED, strlen(SUPPORTED)) != 0)
        return NULL;
    for (at += strlen(SUPPORTED); count < WORDS_MAX && (words[count] = take_quoted(&at)); count++)
        at += strncmp(at, ", ", 2) == 0 ? 2 : 0;
    char *nearest = memory_copy_string(nearest_word(value, (const char *const *)words, count));
    for (size_t i = 0; i < count; i++)
        free(words[i]);
    return nearest;
}

static void explain_values(struct error *error)
{
    SCOPED_FREE char *refusal = memory_copy_string(error->message);
    SCOPED_BUFFER text = BUFFER_INIT(2 * ERROR_MESSAGE_MAX);
    const char *copied = refusal;
    for (const char *at = refusal; (at = strstr(at, UNSUPPORTED));) {
        at += strlen(UNSUPPORTED);
        SCOPED_FREE char *value = take_quoted(&at);
        SCOPED_FREE char *meant = value ? nearest_of_words(value, at) : NULL;
        if (meant) {
            buffer_append(&text, copied, (size_t)(at - copied), NULL);
            buffer_format(&text, " (did you mean \"%s\"?)", meant);
            copied = at;
        }
    }
    if (text.length == 0)
        return;
    int status = error->http_status;
    error_set(error, error->kind, "%s%s", buffer_text(&text), copied);
    error->http_status = status;
}

/* ASHA, Hyperband and Median are often taken for algorithms. */
static void explain_algorithm(struct error *error)
{
    const char *at = strstr(error->message, ALGORITHM UNSUPPORTED);
    const char *word = at ? at + strlen(ALGORITHM UNSUPPORTED) : NULL;
    SCOPED_FREE char *value = word ? take_quoted(&word) : NULL;
    if (!value || words_find(early_stopping_type_words, value) < 0)
        return;
    SCOPED_FREE char *refusal = memory_copy_string(error->message);
    int status = error->http_status;
    error_set(error, error->kind,
              "%s; %s stops trials early: give it as spec.earlyStopping.type, beside any algorithm "
              "but PBT",
              refusal, value);
    error->http_status = status;
}

void unknown_field_explain(bool is_sweep, struct error *error)
{
    const struct object_type *type = is_sweep ? &training_sweep_spec_type : &training_job_spec_type;
    explain_values(error);
    if (is_sweep)
        explain_algorithm(error);
    SCOPED_BUFFER meant = BUFFER_INIT(ERROR_MESSAGE_MAX);
    SCOPED_BUFFER fields = BUFFER_INIT(4 * ERROR_MESSAGE_MAX);
    for (const char *at = error->message; (at = strstr(at, UNKNOWN));) {
        at += strlen(UNKNOWN);
        SCOPED_FREE char *path = memory_copy_bytes(at, strcspn(at, "\""));
        size_t last = 0;
        const struct object_type *place =
            strncmp(path, SPEC, strlen(SPEC)) == 0 ? type_of_last(type, path, &last) : NULL;
        const char *nearest = place ? field_nearest(place, path + last) : NULL;
        if (nearest)
            buffer_format(&meant, "%s%.*s%s", meant.length > 0 ? ", " : "; did you mean ", (int)last, path, nearest);
        else if (place)
            append_fields(place, path, last, &fields);
    }
    if (meant.length + fields.length > 0) {
        SCOPED_FREE char *refusal = memory_copy_string(error->message);
        int status = error->http_status;
        error_set(error, error->kind, "%s%s%s%s", refusal, buffer_text(&meant), meant.length > 0 ? "?" : "",
                  buffer_text(&fields));
        error->http_status = status;
    }
}

/* ---------------------------------------------------------------- before the API server is asked */

static void list_unknown_in_list(const struct object_type *type, const struct json *list, const char *path,
                                 struct buffer *out);

static void list_unknown(const struct object_type *type, const struct json *object, const char *path,
                         struct buffer *out)
{
    const struct json *member = json_type(object) == JSON_OBJECT ? json_first(object) : NULL;
    for (; member; member = json_next(member)) {
        const struct field *field = field_find(type, json_key(member));
        SCOPED_FREE char *place = memory_format("%s.%s", path, json_key(member));
        if (!field)
            buffer_format(out, "%s" UNKNOWN "%s\"", out->length > 0 ? ", " : "", place);
        else if (field->kind == FIELD_OBJECT)
            list_unknown(field->type, member, place, out);
        else if (field->kind == FIELD_LIST)
            list_unknown_in_list(field->type, member, place, out);
    }
}

static void list_unknown_in_list(const struct object_type *type, const struct json *list, const char *path,
                                 struct buffer *out)
{
    size_t index = 0;
    const struct json *item = json_type(list) == JSON_ARRAY ? json_first(list) : NULL;
    for (; item; item = json_next(item)) {
        SCOPED_FREE char *place = memory_format("%s[%zu]", path, index++);
        list_unknown(type, item, place, out);
    }
}

int unknown_field_check_template(const struct json *sweep, struct error *error)
{
    SCOPED_BUFFER unknown = BUFFER_INIT(ERROR_MESSAGE_MAX);
    list_unknown(&training_job_spec_type, json_at(sweep, "spec.template"), "spec.template", &unknown);
    if (unknown.length == 0)
        return 0;
    error_set(error, ERROR_INVALID, "%s", buffer_text(&unknown));
    if (error)
        unknown_field_explain(true, error);
    return -1;
}
