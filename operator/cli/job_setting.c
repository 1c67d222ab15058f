/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_setting.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/job/field_check.h"
#include "common/job/fields.h"
#include "common/job/sweep_parameter.h"
#include "common/memory.h"
#include "common/yaml.h"

#define WORD_MAX 256
#define CHOICES_MAX 800 /* characters: an error's message holds little more */
#define PATH_MAX_LENGTH 512
#define PATH_WORDS_MAX 64 /* far below JSON_DEPTH_MAX */
#define REMOVED "null"

/* ---------------------------------------------------------------- the words of a path */

/* A member's name, or what stands in an element's brackets. */
struct word {
    char text[WORD_MAX];
    bool element;
};

/* `\.` is a dot within the name. False when it is empty or too long. */
static bool word_text(const char **path, const char *ends, char text[WORD_MAX])
{
    size_t length = 0;
    const char *at = *path;
    for (; *at && !strchr(ends, *at); at++) {
        if (*at == '\\' && at[1])
            at++;
        if (length + 1 == WORD_MAX)
            return false;
        text[length++] = *at;
    }
    text[length] = '\0';
    *path = at;
    return length > 0;
}

/* Moves `path` past its next word; false when there is none. */
static bool word_read(const char **path, bool first, struct word *ret_word)
{
    ret_word->element = **path == '[';
    if (ret_word->element) {
        ++*path;
        return word_text(path, "]", ret_word->text) && *(*path)++ == ']';
    }
    if (!first && *(*path)++ != '.')
        return false;
    return word_text(path, ".[", ret_word->text);
}

/* ---------------------------------------------------------------- what the table says of a place */

struct shape {
    const struct field *field;      /* NULL: not described by the table, as all within a pod's template */
    const struct object_type *type; /* of the object that stands there */
    bool element;                   /* of the field's list, not the list itself */
    bool texts;                     /* scalars are texts */
};

static bool shape_is_free(const struct shape *shape)
{
    const struct field *field = shape->field;
    return !shape->type && (field == NULL || field->kind == FIELD_OPAQUE || field->kind == FIELD_VOLUME);
}

static bool shape_is_list(const struct shape *shape)
{
    enum field_kind kind = shape->field ? shape->field->kind : FIELD_STRING;
    return !shape->element &&
           (kind == FIELD_LIST || kind == FIELD_STRING_LIST || kind == FIELD_INTEGER_LIST || kind == FIELD_SCALAR_LIST);
}

/* Returns whether the value is always a string, even if it looks like another type. */
static bool shape_is_text(const struct shape *shape)
{
    switch (shape->field ? shape->field->kind : FIELD_OPAQUE) {
    case FIELD_STRING:
    case FIELD_DECIMAL:
    case FIELD_ENUM:
    case FIELD_TIME:
        return true;
    case FIELD_STRING_LIST:
        return shape->element;
    default:
        return false;
    }
}

static int shape_root(const struct json *job, const char *name, struct shape *ret_shape, struct error *error)
{
    bool is_sweep = strcmp(json_string_at(job, "kind", ""), TRAINING_SWEEP_KIND) == 0;
    *ret_shape = (struct shape){.field = NULL};
    if (strcmp(name, "spec") == 0)
        ret_shape->type = is_sweep ? &training_sweep_spec_type : &training_job_spec_type;
    else if (strcmp(name, "metadata") == 0)
        ret_shape->texts = true;
    else
        return error_set(error, ERROR_INVALID, "a path begins with spec or metadata, not with %s", name);
    return 0;
}

static int refuse_member(const struct object_type *type, const char *name, struct error *error)
{
    SCOPED_BUFFER choices = BUFFER_INIT(CHOICES_MAX);
    for (struct field_cursor at = field_first(type); at.field; field_next(&at))
        buffer_format(&choices, "%s%s", choices.length > 0 ? ", " : "", at.field->name);
    const char *meant = field_nearest(type, name);
    if (meant)
        return error_set(error, ERROR_INVALID, "there is no field %s; did you mean %s? The fields are %s", name, meant,
                         buffer_text(&choices));
    return error_set(error, ERROR_INVALID, "there is no field %s; the fields are %s", name, buffer_text(&choices));
}

static int shape_member(struct shape *shape, const char *name, struct error *error)
{
    if (shape_is_free(shape)) {
        shape->field = NULL;
        return 0;
    }
    if (shape_is_list(shape))
        return error_set(error, ERROR_INVALID, "%s is a list: say which element, such as %s[0]", shape->field->name,
                         shape->field->name);
    if (shape->type == NULL)
        return error_set(error, ERROR_INVALID, "%s has nothing within it", shape->field->name);
    const struct field *field = field_find(shape->type, name);
    if (field == NULL)
        return refuse_member(shape->type, name, error);
    bool is_template = shape->type == &training_sweep_spec_type && strcmp(name, "template") == 0;
    *shape = (struct shape){.field = field,
                            .type = is_template                   ? &training_job_spec_type
                                    : field->kind == FIELD_OBJECT ? field->type
                                                                  : NULL};
    return 0;
}

static int shape_element(struct shape *shape, struct error *error)
{
    if (shape_is_free(shape)) {
        shape->field = NULL;
        return 0;
    }
    if (!shape_is_list(shape))
        return error_set(error, ERROR_INVALID, "%s is not a list", shape->field ? shape->field->name : "spec");
    shape->element = true;
    shape->type = shape->field->kind == FIELD_LIST ? shape->field->type : NULL;
    return 0;
}

/* ---------------------------------------------------------------- a place in the job */

/* A member of an object, there or not, or an element of a list: its count stands for one more. */
struct place {
    struct json *container;
    const char *name; /* NULL: an element */
    size_t index;
};

static struct json *place_value(const struct place *place)
{
    return place->name ? json_member(place->container, place->name) : json_element(place->container, place->index);
}

static struct json *place_set(const struct place *place, struct json *value)
{
    return place->name ? json_set(place->container, place->name, value)
                       : json_set_element(place->container, place->index, value);
}

static void place_clear(const struct place *place)
{
    struct json *value = place_value(place);
    if (value)
        json_free(json_detach(place->container, value));
}

/* The object or list at the place, made when there is none, but not to take something out of it: then it stays NULL. */
static int place_enter(const struct place *place, bool list, bool make, struct json **ret_inside, struct error *error)
{
    struct json *value = place_value(place);
    enum json_type type = list ? JSON_ARRAY : JSON_OBJECT;
    bool absent = json_type(value) == JSON_ABSENT || json_type(value) == JSON_NULL;
    if (!absent && json_type(value) != type)
        return error_set(error, ERROR_INVALID, "%s in the manifest is of type %s, not %s",
                         place->name ? place->name : "the element", json_type_name(json_type(value)),
                         json_type_name(type));
    if (absent)
        value = make ? place_set(place, list ? json_new_array() : json_new_object()) : NULL;
    *ret_inside = value;
    return 0;
}

static int refuse_element(const struct json *list, const char *key, const char *text, struct error *error)
{
    SCOPED_BUFFER choices = BUFFER_INIT(CHOICES_MAX);
    for (const struct json *item = json_first(list); item; item = json_next(item))
        buffer_format(&choices, "%s%s", choices.length > 0 ? ", " : ": ", json_string_at(item, key, "?"));
    return error_set(error, ERROR_INVALID, "there is no element [%s]; the list has %zu%s", text, json_count(list),
                     buffer_text(&choices));
}

/* By its number, or by the member that tells the list's elements apart. */
static int element_find(const struct json *list, const struct shape *shape, const char *text, size_t *ret_index,
                        struct error *error)
{
    const char *key = shape->type && shape->type->map_key ? shape->type->map_key : "name";
    size_t digits = strspn(text, "0123456789"), index = 0;
    if (text[digits] == '\0') {
        unsigned long number = strtoul(text, NULL, 10);
        if (digits > 6 || number > json_count(list))
            return refuse_element(list, key, text, error);
        *ret_index = number;
        return 0;
    }
    for (const struct json *item = json_first(list); item; item = json_next(item), index++) {
        if (strcmp(json_string(json_member(item, key), ""), text) == 0) {
            *ret_index = index;
            return 0;
        }
    }
    return refuse_element(list, key, text, error);
}

/* ---------------------------------------------------------------- the value */

static int value_read(const char *text, struct json **ret_value, struct error *error)
{
    SCOPED_JSON *documents = NULL;
    if (yaml_parse(text, strlen(text), JOB_SETTING_MAX, &documents, error) < 0)
        return -1;
    if (json_count(documents) != 1)
        return error_set(error, ERROR_INVALID, "there must be one value behind =, or null to take the field away");
    *ret_value = json_detach(documents, json_first(documents));
    return 0;
}

static int value_make(const char *text, const struct shape *shape, const struct json *old, struct json **ret_value,
                      struct error *error)
{
    if (shape_is_text(shape)) {
        *ret_value = json_new_string(text);
        return 0;
    }
    if (value_read(text, ret_value, error) < 0)
        return -1;
    bool scalar = json_type(*ret_value) != JSON_OBJECT && json_type(*ret_value) != JSON_ARRAY;
    bool texts = shape->texts || (shape_is_free(shape) && json_type(old) == JSON_STRING);
    if (scalar && texts) {
        json_free(*ret_value);
        *ret_value = json_new_string(text);
    }
    return 0;
}

/* ---------------------------------------------------------------- a setting */

/* `job`: the object, for the first word; NULL for the others. */
static int shape_descend(struct shape *shape, const struct word *word, const struct json *job, struct error *error)
{
    if (job)
        return shape_root(job, word->text, shape, error);
    return word->element ? shape_element(shape, error) : shape_member(shape, word->text, error);
}

/* Into what stands at the place, to the word's place in it. Its container is NULL where nothing is there to be taken out. */
static int place_descend(struct place *place, const struct shape *shape, const struct word *word, bool make,
                         struct error *error)
{
    struct json *inside = NULL;
    if (place->container && place_enter(place, word->element, make, &inside, error) < 0)
        return -1;
    if (inside && word->element && element_find(inside, shape, word->text, &place->index, error) < 0)
        return -1;
    place->container = inside;
    return 0;
}

/* Follows `path` to its last word, `word`, which the place refers to. */
static int path_follow(struct json *job, const char *path, bool make, struct shape *ret_shape, struct word *word,
                       struct place *ret_place, struct error *error)
{
    struct place place = {.container = job};
    struct shape shape = {.field = NULL};
    for (unsigned words = 0; words == 0 || *path; words++) {
        struct word next;
        if (words == PATH_WORDS_MAX || !word_read(&path, words == 0, &next))
            return error_set(error, ERROR_INVALID, "a path is names joined by dots, such as spec.workers.replicas");
        if (shape_descend(&shape, &next, words == 0 ? job : NULL, error) < 0 ||
            (words > 0 && place_descend(&place, &shape, &next, make, error) < 0))
            return -1;
        *word = next;
        place.name = word->element ? NULL : word->text;
        if (words == 0 && *path == '\0')
            return error_set(error, ERROR_INVALID,
                             "%s cannot be set as a whole; change it in the manifest, or set one of its fields",
                             word->text);
    }
    *ret_shape = shape;
    *ret_place = place;
    return 0;
}

static int apply(struct json *job, const char *path, const char *text, struct error *error)
{
    bool remove = strcmp(text, REMOVED) == 0;
    struct shape shape;
    struct place place;
    struct word word;
    struct json *value;
    if (path_follow(job, path, !remove, &shape, &word, &place, error) < 0)
        return -1;
    if (remove) {
        if (place.container)
            place_clear(&place);
        return 0;
    }
    if (value_make(text, &shape, place_value(&place), &value, error) < 0)
        return -1;
    place_set(&place, value);
    return 0;
}

int job_setting_apply(struct json *job, const char *setting, struct error *error)
{
    const char *equals = strchr(setting, '=');
    if (strlen(setting) > JOB_SETTING_MAX)
        return error_set(error, ERROR_TOO_LARGE, "a setting of %zu bytes is too long; at most %d are allowed",
                         strlen(setting), JOB_SETTING_MAX);
    if (equals == NULL || equals == setting)
        return error_set(error, ERROR_INVALID, "\"%.60s\" is not PATH=VALUE, such as spec.coxswain.training.steps=100",
                         setting);
    SCOPED_FREE char *path = memory_copy_bytes(setting, (size_t)(equals - setting));
    if (apply(job, path, equals + 1, error) < 0)
        return error_wrap(error, "%.100s", path);
    return 0;
}

bool job_setting_has_path(const char *setting, const char *path)
{
    size_t length = strlen(path);
    return strncmp(setting, path, length) == 0 && setting[length] == '=';
}

/* ---------------------------------------------------------------- a parameter of a sweep */

/* In these paths an element of a list is a number between dots. */
static int parameter_descend(struct shape *shape, const char *part, const char *until, struct error *error)
{
    if (!shape_is_list(shape) || shape_is_free(shape))
        return shape_member(shape, part, error);
    if (part[strspn(part, "0123456789")] != '\0')
        return error_set(error, ERROR_INVALID, "%s is a list: say which element, such as %s.0", shape->field->name,
                         until);
    return shape_element(shape, error);
}

/* A range of numbers with decimals draws none that the field takes. */
static int parameter_check_range(const struct json *parameter, const struct shape *shape, struct error *error)
{
    const char *range = json_member(parameter, "uniform")      ? "uniform"
                        : json_member(parameter, "logUniform") ? "logUniform"
                                                               : NULL;
    enum field_kind kind = shape->field ? shape->field->kind : FIELD_OPAQUE;
    if (!range || (kind != FIELD_INTEGER && kind != FIELD_INTEGER_LIST))
        return 0;
    return error_set(error, ERROR_INVALID, "%s takes whole numbers; use integer instead of %s", shape->field->name,
                     range);
}

static int check_value(const struct json *value, const char *path, const struct shape *shape, struct error *error)
{
    SCOPED(violations_release) struct violations violations;
    violations_init(&violations, path);
    field_check_scalar(shape->field, value, &violations);
    return violations_to_error(&violations, error);
}

/* The very ends of a range with decimals need not be drawn, and the field's bounds may leave them out: `share` says how far inside. */
static struct json *value_inside(const char *kind, const struct json *range, double share)
{
    double min = json_number_at(range, "min", 0), max = json_number_at(range, "max", 0);
    if (strcmp(kind, "integer") == 0)
        return json_new_integer((int64_t)(share < 0.5 ? min : max));
    return json_new_number(strcmp(kind, "uniform") == 0 ? min + share * (max - min) : min * pow(max / min, share));
}

static int parameter_check_ends(const struct json *parameter, const char *path, const struct shape *shape,
                                size_t parameter_index, struct error *error)
{
    static const char *const kinds[] = {"uniform", "logUniform", "integer"};
    for (size_t i = 0; i < 3 && !shape_is_free(shape); i++) {
        const struct json *range = json_member(parameter, kinds[i]);
        if (!range)
            continue;
        SCOPED_JSON *low = value_inside(kinds[i], range, 0.001);
        SCOPED_JSON *high = value_inside(kinds[i], range, 0.999);
        if (check_value(low, path, shape, error) < 0)
            return error_wrap(error, "spec.parameters[%zu].%s.min", parameter_index, kinds[i]);
        if (check_value(high, path, shape, error) < 0)
            return error_wrap(error, "spec.parameters[%zu].%s.max", parameter_index, kinds[i]);
    }
    return 0;
}

/* The trials of a value that the field does not take would all fail. */
static int parameter_check_values(const struct json *parameter, const char *path, const struct shape *shape,
                                  size_t parameter_index, struct error *error)
{
    size_t index = 0;
    const struct json *values = json_member(parameter, "values");
    if (shape_is_free(shape) || json_type(values) != JSON_ARRAY)
        return 0;
    for (const struct json *value = json_first(values); value; value = json_next(value), index++) {
        if (check_value(value, path, shape, error) < 0)
            return error_wrap(error, "spec.parameters[%zu].values[%zu]", parameter_index, index);
    }
    return 0;
}

static int refuse_prefix(const char *path, struct error *error)
{
    static const char with_spec[] = "spec.", with_template[] = "template.";
    const char *rest = path;
    if (strncmp(rest, with_spec, sizeof with_spec - 1) == 0)
        rest += sizeof with_spec - 1;
    if (strncmp(rest, with_template, sizeof with_template - 1) == 0)
        rest += sizeof with_template - 1;
    return rest == path ? 0 : error_set(error, ERROR_INVALID, "a path begins within the template; write %s", rest);
}

static int parameter_check_path(const struct json *parameter, const char *path, struct shape *ret_shape,
                                struct error *error)
{
    struct shape shape = {.type = &training_job_spec_type};
    for (const char *at = path; at;) {
        const char *dot = strchr(at, '.');
        SCOPED_FREE char *part = dot ? memory_copy_bytes(at, (size_t)(dot - at)) : memory_copy_string(at);
        SCOPED_FREE char *until = memory_copy_bytes(path, at > path ? (size_t)(at - path - 1) : 0);
        if (at == path && refuse_prefix(path, error) < 0)
            return -1;
        if (parameter_descend(&shape, part, until, error) < 0)
            return -1;
        at = dot ? dot + 1 : NULL;
    }
    if (!shape_is_free(&shape) && shape_is_list(&shape))
        return error_set(error, ERROR_INVALID, "%s is a list: say which element, such as %s.0", shape.field->name,
                         path);
    *ret_shape = shape;
    return shape.type ? error_set(error, ERROR_INVALID, "%s is a section; name one of its fields", path)
                      : parameter_check_range(parameter, &shape, error);
}

static int parameter_check(const struct json *parameter, const char *path, size_t index, struct error *error)
{
    struct shape shape;
    if (parameter_check_path(parameter, path, &shape, error) < 0)
        return error_wrap(error, "spec.parameters[%zu].path: %.100s", index, path);
    if (parameter_check_values(parameter, path, &shape, index, error) < 0)
        return -1;
    return parameter_check_ends(parameter, path, &shape, index, error);
}

int job_setting_check_parameters(const struct json *sweep, struct error *error)
{
    size_t index = 0;
    SCOPED_JSON *value = json_new_null();
    for (const struct json *item = json_first(json_at(sweep, "spec.parameters")); item; item = json_next(item)) {
        const char *path = json_string_at(item, "path", "");
        if (*path && parameter_check(item, path, index, error) < 0)
            return -1;
        SCOPED_JSON *template = json_copy(json_at(sweep, "spec.template"));
        if (*path && template &&
            sweep_parameter_put(&(struct sweep_parameter){.path = path}, value, template, error) < 0)
            return -1;
        index++;
    }
    return 0;
}

/* ---------------------------------------------------------------- all paths */

struct path_walk {
    void (*take)(void *context, const char *path);
    void *context;
    char path[PATH_MAX_LENGTH];
};

static void walk(struct path_walk *walk_state, size_t length, const struct object_type *type)
{
    for (struct field_cursor at = field_first(type); at.field; field_next(&at)) {
        bool element = at.field->kind == FIELD_LIST, deeper = element || at.field->kind == FIELD_OBJECT;
        int added = snprintf(walk_state->path + length, sizeof walk_state->path - length, ".%s%s", at.field->name,
                             element ? "[0]" : "");
        if (added < 0 || length + (size_t)added >= sizeof walk_state->path)
            continue;
        if (deeper)
            walk(walk_state, length + (size_t)added, at.field->type);
        else
            walk_state->take(walk_state->context, walk_state->path);
    }
}

void job_setting_paths(void (*take)(void *context, const char *path), void *context)
{
    struct path_walk state = {.take = take, .context = context, .path = "spec"};
    walk(&state, strlen(state.path), &training_job_spec_type);
}
