/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/trial_build.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/job/sweep_descent.h"
#include "common/job/sweep_parameter.h"
#include "common/memory.h"
#include "operator/controller/objects/child_metadata.h"
#include "operator/controller/sweep/population.h"
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
        SCOPED_JSON *value = suggestion_value(sweep, i, trial);
        if (value && sweep_parameter_put(&sweep->parameters[i], value, spec, error) < 0)
            return -1;
    }
    return 0;
}

static void fill_folder(const struct training_sweep *sweep, int64_t trial, struct json *spec)
{
    if (!population_is_used(sweep))
        return;
    SCOPED_FREE char *name = trial_name(sweep, trial);
    SCOPED_FREE char *folder = sweep_descent_folder(sweep, name);
    sweep_descent_put_folder(spec, folder);
}

/* A trial of a later generation goes on from its parent's checkpoint, for as many steps as the template says. */
static int fill_descent(const struct training_sweep *sweep, int64_t trial, struct json *spec, struct error *error)
{
    int64_t generation = population_is_used(sweep) ? population_generation(sweep, trial) : 0;
    if (generation == 0)
        return 0;
    int64_t parent = trial < sweep->status.result_count ? sweep->status.results[trial].parent : FIELD_UNSET;
    if (parent == FIELD_UNSET)
        return error_set(error, ERROR_INVALID, "no trial of the generation before has succeeded");
    SCOPED_FREE char *name = trial_name(sweep, parent);
    SCOPED_FREE char *folder = sweep_descent_folder(sweep, name);
    sweep_descent_put(spec, folder, generation + 1);
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
    fill_folder(sweep, trial, spec);
    if (fill_values(sweep, trial, spec, error) < 0 || fill_descent(sweep, trial, spec, error) < 0 ||
        check(object, error) < 0)
        return -1;
    *ret_object = object;
    object = NULL;
    return 0;
}
