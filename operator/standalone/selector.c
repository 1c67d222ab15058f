/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/selector.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

enum operation { IN, NOT_IN, EXISTS, ABSENT, GREATER, LESS };

struct selector_requirement {
    char *key;
    enum operation operation;
    char **values;
    size_t value_count;
};

/* ---- life cycle ---- */

void selector_release(struct selector *selector)
{
    for (size_t i = 0; i < selector->count; i++) {
        struct selector_requirement *requirement = &selector->requirements[i];
        for (size_t v = 0; v < requirement->value_count; v++)
            free(requirement->values[v]);
        free(requirement->values);
        free(requirement->key);
    }
    free(selector->requirements);
    *selector = (struct selector){0};
}

static struct selector_requirement *add_requirement(struct selector *selector)
{
    selector->requirements = memory_resize(selector->requirements, selector->count + 1, sizeof *selector->requirements);
    struct selector_requirement *requirement = &selector->requirements[selector->count++];
    *requirement = (struct selector_requirement){.operation = EXISTS};
    return requirement;
}

static void add_value(struct selector_requirement *requirement, char *value)
{
    requirement->values = memory_resize(requirement->values, requirement->value_count + 1, sizeof(char *));
    requirement->values[requirement->value_count++] = value;
}

/* ---- labels ---- */

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t");
}

/* Keys and values consist of these; whether they are well-formed labels decides nothing here. */
#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/"

static char *take_word(const char **at)
{
    *at = skip_space(*at);
    size_t length = strspn(*at, WORD);
    char *word = memory_copy_bytes(*at, length);
    *at = skip_space(*at + length);
    return word;
}

static int parse_set(const char **at, struct selector_requirement *requirement, struct error *error)
{
    *at = skip_space(*at);
    if (**at != '(')
        return error_set(error, ERROR_INVALID, "unable to parse requirement: expected '(' at \"%.32s\"", *at);
    do {
        (*at)++;
        add_value(requirement, take_word(at));
    } while (**at == ',');
    if (**at != ')')
        return error_set(error, ERROR_INVALID, "unable to parse requirement: expected ')' at \"%.32s\"", *at);
    *at = skip_space(*at + 1);
    return 0;
}

static const struct {
    const char *text;
    enum operation operation;
} operators[] = {{"==", IN}, {"!=", NOT_IN}, {"=", IN}, {">", GREATER}, {"<", LESS}};

static bool take_operator(const char **at, enum operation *ret_operation)
{
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        size_t length = strlen(operators[i].text);
        if (strncmp(*at, operators[i].text, length) == 0) {
            *at += length;
            *ret_operation = operators[i].operation;
            return true;
        }
    }
    return false;
}

static bool take_keyword(const char **at, const char *keyword)
{
    size_t length = strlen(keyword);
    if (strncmp(*at, keyword, length) != 0 || strchr(" \t(", (*at)[length]) == NULL)
        return false;
    *at += length;
    return true;
}

static int parse_operation(const char **at, struct selector_requirement *requirement, struct error *error)
{
    if (take_operator(at, &requirement->operation)) {
        add_value(requirement, take_word(at));
        return 0;
    }
    if (take_keyword(at, "in"))
        requirement->operation = IN;
    else if (take_keyword(at, "notin"))
        requirement->operation = NOT_IN;
    else
        return 0;
    return parse_set(at, requirement, error);
}

static int parse_requirement(const char **at, struct selector_requirement *requirement, struct error *error)
{
    *at = skip_space(*at);
    bool negated = **at == '!';
    if (negated)
        (*at)++;
    requirement->key = take_word(at);
    if (requirement->key[0] == '\0')
        return error_set(error, ERROR_INVALID, "unable to parse requirement: expected a key at \"%.32s\"", *at);
    if (negated)
        requirement->operation = ABSENT;
    else if (parse_operation(at, requirement, error) < 0)
        return -1;
    if (**at != ',' && **at != '\0')
        return error_set(error, ERROR_INVALID, "unable to parse requirement: unexpected \"%.32s\"", *at);
    return 0;
}

static int check_size(const char *text, struct error *error)
{
    if (strlen(text) > SELECTOR_TEXT_MAX)
        return error_set(error, ERROR_INVALID, "a selector has at most %d bytes", SELECTOR_TEXT_MAX);
    return 0;
}

static int parse_all(const char *text, struct selector *selector,
                     int parse(const char **at, struct selector_requirement *requirement, struct error *error),
                     struct error *error)
{
    if (check_size(text, error) < 0)
        return -1;
    const char *at = skip_space(text);
    while (*at) {
        if (selector->count == SELECTOR_REQUIREMENTS_MAX)
            return error_set(error, ERROR_INVALID, "a selector has at most %d requirements", SELECTOR_REQUIREMENTS_MAX);
        if (parse(&at, add_requirement(selector), error) < 0)
            return -1;
        if (*at == ',')
            at++;
    }
    return 0;
}

int selector_parse_labels(const char *text, struct selector *ret_selector, struct error *error)
{
    struct selector selector = {0};
    if (text && parse_all(text, &selector, parse_requirement, error) < 0) {
        selector_release(&selector);
        return -1;
    }
    *ret_selector = selector;
    return 0;
}

static bool holds_value(const struct selector_requirement *requirement, const char *text)
{
    for (size_t i = 0; i < requirement->value_count; i++)
        if (strcmp(requirement->values[i], text) == 0)
            return true;
    return false;
}

static bool compares(const struct selector_requirement *requirement, const char *text)
{
    long long number = strtoll(text, NULL, 10);
    long long bound = strtoll(requirement->values[0], NULL, 10);
    return requirement->operation == GREATER ? number > bound : number < bound;
}

static bool holds(const struct selector_requirement *requirement, const char *text)
{
    switch (requirement->operation) {
    case IN:
        return text && holds_value(requirement, text);
    case NOT_IN:
        return !text || !holds_value(requirement, text);
    case EXISTS:
        return text != NULL;
    case ABSENT:
        return text == NULL;
    case GREATER:
    case LESS:
        return text && compares(requirement, text);
    }
    return false;
}

bool selector_matches_labels(const struct selector *selector, const struct json *labels)
{
    for (size_t i = 0; i < selector->count; i++) {
        const struct selector_requirement *requirement = &selector->requirements[i];
        if (!holds(requirement, json_string(json_member(labels, requirement->key), NULL)))
            return false;
    }
    return true;
}

/* ---- fields ---- */

static const struct {
    const char *storage, *field;
} selectable[] = {
    {"pods", "spec.nodeName"},
    {"pods", "spec.restartPolicy"},
    {"pods", "spec.schedulerName"},
    {"pods", "spec.serviceAccountName"},
    {"pods", "spec.hostNetwork"},
    {"pods", "status.phase"},
    {"pods", "status.podIP"},
    {"pods", "status.nominatedNodeName"},
    {"events", "involvedObject.kind"},
    {"events", "involvedObject.namespace"},
    {"events", "involvedObject.name"},
    {"events", "involvedObject.uid"},
    {"events", "involvedObject.apiVersion"},
    {"events", "involvedObject.resourceVersion"},
    {"events", "involvedObject.fieldPath"},
    {"events", "reason"},
    {"events", "reportingComponent"},
    {"events", "source"},
    {"events", "type"},
    {"namespaces", "status.phase"},
    {"secrets", "type"},
    {"nodes", "spec.unschedulable"},
};

static bool definition_selects(const struct resource *resource, const char *field)
{
    const struct json *fields = json_member(resource->version_definition, "selectableFields");
    for (const struct json *item = json_first(fields); item; item = json_next(item)) {
        const char *path = json_string_at(item, "jsonPath", "");
        if (strcmp(path + (path[0] == '.'), field) == 0)
            return true;
    }
    return false;
}

static bool is_selectable(const struct resource *resource, const char *field)
{
    if (strcmp(field, "metadata.name") == 0)
        return true;
    if (strcmp(field, "metadata.namespace") == 0)
        return resource->namespaced;
    for (size_t i = 0; i < sizeof selectable / sizeof selectable[0]; i++)
        if (strcmp(selectable[i].storage, resource->storage) == 0 && strcmp(selectable[i].field, field) == 0)
            return true;
    return definition_selects(resource, field);
}

/* Up to an unescaped ',' ; "\," "\=" and "\\" stand for themselves. */
static char *take_field_value(const char **at)
{
    char *value = memory_allocate(strlen(*at) + 1, 1);
    size_t length = 0;
    for (; **at && **at != ','; (*at)++) {
        if (**at == '\\' && (*at)[1])
            (*at)++;
        value[length++] = **at;
    }
    return value;
}

static int parse_field(const char **at, struct selector_requirement *requirement, struct error *error)
{
    requirement->key = take_word(at);
    if (!take_operator(at, &requirement->operation) || requirement->operation > NOT_IN)
        return error_set(error, ERROR_INVALID, "invalid field selector: \"%s\" needs '=', '==' or '!='",
                         requirement->key);
    add_value(requirement, take_field_value(at));
    return 0;
}

int selector_parse_fields(const struct resource *resource, const char *text, struct selector *ret_selector,
                          struct error *error)
{
    struct selector selector = {0};
    int result = text ? parse_all(text, &selector, parse_field, error) : 0;
    for (size_t i = 0; result == 0 && i < selector.count; i++)
        if (!is_selectable(resource, selector.requirements[i].key))
            result = error_set(error, ERROR_INVALID, "field label not supported: %s", selector.requirements[i].key);
    if (result < 0) {
        selector_release(&selector);
        return -1;
    }
    *ret_selector = selector;
    return 0;
}

static const char *field_text(const struct json *object, const char *key)
{
    const struct json *value = json_at(object, key);
    if (strcmp(key, "source") == 0)
        value = json_at(object, "source.component");
    if (json_type(value) == JSON_BOOLEAN)
        return json_boolean(value, false) ? "true" : "false";
    if (value == NULL && (strcmp(key, "spec.unschedulable") == 0 || strcmp(key, "spec.hostNetwork") == 0))
        return "false";
    return json_string(value, "");
}

bool selector_matches_fields(const struct selector *selector, const struct json *object)
{
    for (size_t i = 0; i < selector->count; i++)
        if (!holds(&selector->requirements[i], field_text(object, selector->requirements[i].key)))
            return false;
    return true;
}
