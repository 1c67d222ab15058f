/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/sweep_parameter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/contract/main_container.h"
#include "common/memory.h"

const char *sweep_parameter_name(const struct sweep_parameter *parameter)
{
    return parameter->env ? parameter->env : parameter->arg ? parameter->arg : parameter->path;
}

/* ---------------------------------------------------------------- a field of the template */

/* The element of a list that a part of a path names; -1: it names none. */
static int64_t element_number(const struct json *list, const char *part)
{
    char *end;
    long long number = strtoll(part, &end, 10);
    return end > part && *end == '\0' && number >= 0 && (size_t)number < json_count(list) ? number : -1;
}

/* What a part of a path names; NULL: nothing. */
static struct json *child_of(const struct json *parent, const char *part)
{
    int64_t element = json_type(parent) == JSON_ARRAY ? element_number(parent, part) : -1;
    return element >= 0 ? json_element(parent, (size_t)element) : json_member(parent, part);
}

/* Whether a part of a path, which a dot may follow, is the number of an element. */
static bool is_number(const char *part)
{
    size_t digits = strspn(part, "0123456789");
    return digits > 0 && digits == strcspn(part, ".");
}

/* `offset`: where the part begins in the parameter's path. */
static int no_place(const struct sweep_parameter *parameter, const struct json *parent, const char *part, size_t offset,
                    struct error *error)
{
    size_t count = json_count(parent);
    if (json_type(parent) == JSON_ARRAY && count > 0 && is_number(part))
        return error_set(error, ERROR_INVALID,
                         "spec.parameters: path %s leads nowhere: %.*s has %zu element%s in the template, counted from "
                         "0; correct the path",
                         parameter->path, (int)offset - 1, parameter->path, count, count == 1 ? "" : "s");
    return error_set(error, ERROR_INVALID,
                     "spec.parameters: path %s leads nowhere: the template has no place for \"%s\" there; correct the "
                     "path",
                     parameter->path, part);
}

/* `end`: where the path of the list ends in the parameter's path. */
static int no_list(const struct sweep_parameter *parameter, size_t end, struct error *error)
{
    return error_set(error, ERROR_INVALID,
                     "spec.parameters: path %s leads nowhere: the template has no %.*s; add this list to the template, "
                     "or correct the path",
                     parameter->path, (int)end, parameter->path);
}

/* Takes `value` over. Returns it in its place; NULL: the parent has no such place. */
static struct json *set_part(struct json *parent, const char *part, struct json *value)
{
    int64_t element = json_type(parent) == JSON_ARRAY ? element_number(parent, part) : -1;
    if (json_type(parent) == JSON_OBJECT)
        return json_set(parent, part, value);
    if (element >= 0)
        return json_set_element(parent, (size_t)element, value);
    json_free(value);
    return NULL;
}

static int set_field(const struct sweep_parameter *parameter, const struct json *value, struct json *spec,
                     struct error *error)
{
    SCOPED_FREE char *path = memory_copy_string(parameter->path);
    struct json *at = spec;
    char *rest = path, *part;
    while ((part = strsep(&rest, "."))) {
        struct json *child = rest ? child_of(at, part) : NULL;
        if (rest && !child && json_type(at) == JSON_OBJECT && is_number(rest))
            return no_list(parameter, (size_t)(rest - path) - 1, error);
        if (!child)
            child = set_part(at, part, rest ? json_new_object() : json_copy(value));
        if (!child)
            return no_place(parameter, at, part, (size_t)(part - path), error);
        at = child;
    }
    return 0;
}

static const struct json *find_field(const char *parameter_path, const struct json *spec)
{
    SCOPED_FREE char *path = memory_copy_string(parameter_path);
    const struct json *at = spec;
    char *rest = path;
    for (char *part = strsep(&rest, "."); part && at; part = strsep(&rest, "."))
        at = child_of(at, part);
    return at;
}

/* ---------------------------------------------------------------- a variable of the pods */

static struct json *trainer_of(struct json *template)
{
    struct json *containers = json_set_array(json_set_object(template, "spec"), "containers");
    const struct json *trainer = main_container(template);
    for (struct json *item = json_first(containers); item; item = json_next(item))
        if (item == trainer)
            return item;
    struct json *added = json_append(containers, json_new_object());
    json_set_string(added, "name", TRAINER_CONTAINER);
    return added;
}

static struct json *variable_of(const struct json *container, const char *name)
{
    struct json *variable = json_first(json_member(container, "env"));
    while (variable && strcmp(json_string_at(variable, "name", ""), name) != 0)
        variable = json_next(variable);
    return variable;
}

static void set_variable(struct json *container, const char *name, const char *text)
{
    struct json *variable = variable_of(container, name);
    if (!variable)
        variable = json_append(json_set_array(container, "env"), json_new_object());
    json_remove(variable, "valueFrom");
    json_set_string(variable, "name", name);
    json_set_string(variable, "value", text);
}

/* ---------------------------------------------------------------- an argument of the pods */

static void append_argument(struct json *container, const char *name, const char *text)
{
    SCOPED_FREE char *argument = memory_format("%s=%s", name, text);
    json_append(json_set_array(container, "args"), json_new_string(argument));
}

/* The text behind NAME= in the last argument that begins so: programs heed the last one. */
static const char *find_argument(const struct json *container, const char *name)
{
    const char *found = NULL;
    size_t length = strlen(name);
    for (const struct json *item = json_first(json_member(container, "args")); item; item = json_next(item)) {
        const char *argument = json_string(item, "");
        if (strncmp(argument, name, length) == 0 && argument[length] == '=')
            found = argument + length + 1;
    }
    return found;
}

/* ---------------------------------------------------------------- both */

static void set_in_trainers(const struct sweep_parameter *parameter, const struct json *value, struct json *spec)
{
    SCOPED_FREE char *text = json_scalar_text(value);
    for (int role = 0; role < ROLE_COUNT; role++) {
        const char *section = role_section((enum role)role);
        if (role != ROLE_WORKER && !json_member(spec, section))
            continue;
        struct json *trainer = trainer_of(json_set_object(json_set_object(spec, section), "template"));
        if (parameter->env)
            set_variable(trainer, parameter->env, text);
        else
            append_argument(trainer, parameter->arg, text);
    }
}

static char *find_in_trainer(const struct sweep_parameter *parameter, const struct json *spec)
{
    const struct json *workers = json_member(spec, role_section(ROLE_WORKER));
    const struct json *trainer = main_container(json_member(workers, "template"));
    return parameter->env ? json_scalar_text(json_member(variable_of(trainer, parameter->env), "value"))
                          : memory_copy_string(find_argument(trainer, parameter->arg));
}

/* ---------------------------------------------------------------- a parameter */

int sweep_parameter_put(const struct sweep_parameter *parameter, const struct json *value, struct json *spec,
                        struct error *error)
{
    if (!parameter->env && !parameter->arg)
        return set_field(parameter, value, spec, error);
    set_in_trainers(parameter, value, spec);
    return 0;
}

char *sweep_parameter_find(const struct sweep_parameter *parameter, const struct json *spec)
{
    return parameter->env || parameter->arg ? find_in_trainer(parameter, spec)
                                            : json_scalar_text(find_field(parameter->path, spec));
}

void sweep_parameters_print(const struct training_sweep *sweep, const struct json *spec, struct buffer *out)
{
    const char *before = "";
    for (unsigned i = 0; i < sweep->parameter_count; i++) {
        const struct sweep_parameter *parameter = &sweep->parameters[i];
        const char *name = sweep_parameter_name(parameter), *dot = parameter->path ? strrchr(name, '.') : NULL;
        SCOPED_FREE char *text = sweep_parameter_find(parameter, spec);
        if (!text)
            continue;
        buffer_format(out, "%s%s %s", before, dot ? dot + 1 : name, text);
        before = ", ";
    }
}

const char *sweep_best_value(const struct sweep_best *best, const char *name)
{
    for (unsigned i = 0; i < best->parameter_count; i++)
        if (strcmp(best->parameters[i].name, name) == 0)
            return best->parameters[i].value;
    return NULL;
}

struct json *sweep_parameter_value(const struct sweep_parameter *parameter, const char *text)
{
    for (const struct json *item = json_first(parameter->values); item; item = json_next(item)) {
        SCOPED_FREE char *known = json_scalar_text(item);
        if (known && strcmp(known, text) == 0)
            return json_copy(item);
    }
    char *end;
    double number = strtod(text, &end);
    bool is_number = end > text && *end == '\0' && isfinite(number);
    return !parameter->values && is_number ? json_new_number(number) : NULL;
}
