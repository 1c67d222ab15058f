/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/trial_build.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/contract/main_container.h"
#include "common/memory.h"
#include "operator/controller/objects/child_metadata.h"
#include "operator/controller/sweep/suggestion.h"

/* ---------------------------------------------------------------- names */

char *trial_name(const struct training_sweep *sweep, int64_t trial)
{
    return memory_format("%s-%" PRId64, sweep->name, trial);
}

int64_t trial_number(const struct training_sweep *sweep, const char *name)
{
    size_t length = strlen(sweep->name);
    if (strncmp(name, sweep->name, length) != 0 || name[length] != '-')
        return -1;
    long long number = strtoll(name + length + 1, NULL, 10);
    SCOPED_FREE char *expected = trial_name(sweep, number);
    return number >= 0 && strcmp(name, expected) == 0 ? number : -1;
}

/* ---------------------------------------------------------------- a field of the template */

/* The element of a list that a part of a path names; -1: it names none. */
static int64_t element_number(const struct json *list, const char *part)
{
    char *end;
    long long number = strtoll(part, &end, 10);
    return end > part && *end == '\0' && number >= 0 && (size_t)number < json_count(list) ? number : -1;
}

static int no_place(const struct sweep_parameter *parameter, const char *part, struct error *error)
{
    return error_set(error, ERROR_INVALID,
                     "spec.parameters: path %s leads nowhere: the template has no place for \"%s\" there; correct the "
                     "path",
                     parameter->path, part);
}

/* Takes `value` over. */
static int set_part(const struct sweep_parameter *parameter, struct json *parent, const char *part, struct json *value,
                    struct json **ret_value, struct error *error)
{
    int64_t element = json_type(parent) == JSON_ARRAY ? element_number(parent, part) : -1;
    if (json_type(parent) == JSON_OBJECT) {
        *ret_value = json_set(parent, part, value);
    } else if (element >= 0) {
        *ret_value = json_set_element(parent, (size_t)element, value);
    } else {
        json_free(value);
        return no_place(parameter, part, error);
    }
    return 0;
}

static int enter_part(const struct sweep_parameter *parameter, struct json *parent, const char *part,
                      struct json **ret_child, struct error *error)
{
    int64_t element = json_type(parent) == JSON_ARRAY ? element_number(parent, part) : -1;
    *ret_child = element >= 0 ? json_element(parent, (size_t)element) : json_member(parent, part);
    return *ret_child ? 0 : set_part(parameter, parent, part, json_new_object(), ret_child, error);
}

static int set_field(const struct sweep_parameter *parameter, const struct json *value, struct json *spec,
                     struct error *error)
{
    SCOPED_FREE char *path = memory_copy_string(parameter->path);
    struct json *at = spec;
    char *part = path;
    for (char *dot = strchr(part, '.'); dot; part = dot + 1, dot = strchr(part, '.')) {
        *dot = '\0';
        if (enter_part(parameter, at, part, &at, error) < 0)
            return -1;
    }
    return set_part(parameter, at, part, json_copy(value), &at, error);
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

static void set_variable(struct json *container, const char *name, const char *text)
{
    struct json *list = json_set_array(container, "env"), *variable = json_first(list);
    while (variable && strcmp(json_string_at(variable, "name", ""), name) != 0)
        variable = json_next(variable);
    if (!variable)
        variable = json_append(list, json_new_object());
    json_remove(variable, "valueFrom");
    json_set_string(variable, "name", name);
    json_set_string(variable, "value", text);
}

static void set_environment(const struct sweep_parameter *parameter, const struct json *value, struct json *spec)
{
    SCOPED_FREE char *text = suggestion_text(value);
    for (int role = 0; role < ROLE_COUNT; role++) {
        const char *section = role_section((enum role)role);
        if (role == ROLE_WORKER || json_member(spec, section))
            set_variable(trainer_of(json_set_object(json_set_object(spec, section), "template")), parameter->env, text);
    }
}

/* ---------------------------------------------------------------- the job */

static void fill_metadata(const struct training_sweep *sweep, int64_t trial, struct json *metadata)
{
    SCOPED_FREE char *name = trial_name(sweep, trial);
    json_set_string(metadata, "name", name);
    json_set_string(metadata, "namespace", sweep->namespace);
    struct json *labels = json_set_object(metadata, "labels");
    json_set_string(labels, LABEL_APP_NAME, "coxswain");
    json_set_string(labels, LABEL_APP_MANAGED_BY, OPERATOR_NAME);
    json_set_string(labels, LABEL_SWEEP_NAME, sweep->name);
    child_label_number(labels, LABEL_TRIAL, trial);
    json_set_string(labels, LABEL_QUEUE_NAME, sweep->queue_name);
    json_append(json_set_array(metadata, "ownerReferences"),
                child_owner_reference(TRAINING_SWEEP_KIND, sweep->name, sweep->uid));
}

static int fill_values(const struct training_sweep *sweep, int64_t trial, struct json *spec, struct error *error)
{
    for (unsigned i = 0; i < sweep->parameter_count; i++) {
        const struct sweep_parameter *parameter = &sweep->parameters[i];
        SCOPED_JSON *value = suggestion_value(sweep, i, trial);
        if (parameter->env)
            set_environment(parameter, value, spec);
        else if (set_field(parameter, value, spec, error) < 0)
            return -1;
    }
    return 0;
}

static int check(const struct json *object, struct error *error)
{
    struct training_job job;
    int result = training_job_parse(object, &job, error);
    training_job_release(&job);
    return result < 0 ? error_wrap(error, "spec.template, with the values of trial %s",
                                   json_string_at(object, "metadata.name", ""))
                      : 0;
}

int trial_build(const struct training_sweep *sweep, int64_t trial, struct json **ret_object, struct error *error)
{
    SCOPED_JSON *object = json_new_object();
    json_set_string(object, "apiVersion", API_GROUP_VERSION);
    json_set_string(object, "kind", TRAINING_JOB_KIND);
    fill_metadata(sweep, trial, json_set_object(object, "metadata"));
    struct json *spec = json_set(object, "spec", json_copy(sweep->template));
    if (fill_values(sweep, trial, spec, error) < 0 || check(object, error) < 0)
        return -1;
    *ret_object = object;
    object = NULL;
    return 0;
}
