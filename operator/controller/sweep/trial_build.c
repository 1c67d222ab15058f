/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/trial_build.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/job/sweep_descent.h"
#include "common/job/sweep_parameter.h"
#include "common/job/sweep_template.h"
#include "common/memory.h"
#include "operator/controller/objects/child_metadata.h"
#include "operator/controller/sweep/population.h"
#include "operator/controller/sweep/promotion.h"
#include "operator/controller/sweep/suggestion.h"

#define VALUES_TEXT_MAX 4096

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

/* The file keeps its name, on which its form may depend: best/model.safetensors becomes best/FOLDER/model.safetensors. */
static void put_export(struct json *spec, const char *folder)
{
    struct json *export = json_member(json_member(spec, "coxswain"), "export");
    const char *path = json_string(json_member(export, "path"), NULL);
    if (!path)
        return;
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    SCOPED_FREE char *own = memory_format("%.*s%s/%s", (int)(file - path), path, folder, file);
    json_set_string(export, "path", own);
}

/* A folder of this sweep alone: a trial of a sweep that was deleted and created again must not go on from the earlier trial's checkpoint,
 * which has other values. Trials that run at the same time must not write to one file. */
static void fill_folder(const struct training_sweep *sweep, int64_t trial, struct json *spec)
{
    SCOPED_FREE char *name = trial_name(sweep, trial);
    SCOPED_FREE char *folder = sweep_descent_folder(sweep, name);
    sweep_descent_put_folder(spec, folder);
    put_export(spec, folder);
}

/* A script that fails would mostly fail again with the same values. In an elastic crew it also fails when another pod is lost, so these keep
 * the job's default. */
static void fill_backoff_limit(struct json *spec)
{
    const struct json *policy = json_member(spec, "runPolicy");
    bool is_elastic = json_at(spec, "workers.minReplicas") || json_at(spec, "workers.maxReplicas");
    bool is_odd = policy && json_type(policy) != JSON_OBJECT; /* check() refuses it */
    if (spec_framework(spec) != FRAMEWORK_COXSWAIN && !is_elastic && !is_odd && !json_member(policy, "backoffLimit"))
        json_set_integer(json_set_object(spec, "runPolicy"), "backoffLimit", 0);
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

/* ---------------------------------------------------------------- the pause */

/* The workers of a trial that may pause wait at the next rung, if they all come to the same steps. Otherwise the sweep suspends it when it
 * learns that the trial has passed the rung. */
static void fill_pause(const struct training_sweep *sweep, int64_t trial, const struct training_job *job,
                       struct json *object)
{
    enum strategy_type type = job->document.strategy.type;
    if (!sweep_pauses_trials(sweep) || job->framework != FRAMEWORK_COXSWAIN || !job->document.checkpoint.storage ||
        type == STRATEGY_PEER_TO_PEER || type == STRATEGY_PARAMETER_SERVER ||
        !sweep_metric_is_measured(&job->document, sweep->objective.metric))
        return;
    SCOPED_FREE char *step = memory_format("%" PRId64, promotion_pause_step(sweep, trial));
    json_set_string(json_set_object(json_member(object, "metadata"), "annotations"), ANNOTATION_PAUSE_STEP, step);
}

static int check(const struct training_sweep *sweep, int64_t trial, struct json *object, struct error *error)
{
    SCOPED(training_job_release) struct training_job job;
    SCOPED_BUFFER values = BUFFER_INIT(VALUES_TEXT_MAX);
    if (training_job_parse(object, &job, error) == 0) {
        fill_pause(sweep, trial, &job, object);
        return 0;
    }
    sweep_parameters_print(sweep, json_member(object, "spec"), &values);
    return error_wrap(error, "spec.template, with the values of trial %s (%.200s)",
                      json_string_at(object, "metadata.name", ""), buffer_text(&values));
}

int trial_build(const struct training_sweep *sweep, int64_t trial, struct json **ret_object, struct error *error)
{
    SCOPED_JSON *object = json_new_object();
    json_set_string(object, "apiVersion", API_GROUP_VERSION);
    json_set_string(object, "kind", TRAINING_JOB_KIND);
    fill_metadata(sweep, trial, json_set_object(object, "metadata"));
    struct json *spec = json_set(object, "spec", json_copy(sweep->template));
    fill_folder(sweep, trial, spec);
    if (fill_values(sweep, trial, spec, error) < 0 || fill_descent(sweep, trial, spec, error) < 0)
        return -1;
    fill_backoff_limit(spec);
    if (check(sweep, trial, object, error) < 0)
        return -1;
    *ret_object = object;
    object = NULL;
    return 0;
}

struct json *trial_suspend_patch(const struct training_sweep *sweep, int64_t trial, bool suspend)
{
    struct error error = ERROR_INIT;
    struct json *patch = json_new_object();
    SCOPED_JSON *object = NULL;
    json_set_boolean(json_set_object(patch, "spec"), "suspend", suspend);
    if (!sweep_pauses_trials(sweep))
        return patch;
    if (!suspend)
        (void)trial_build(sweep, trial, &object, &error); /* a job that cannot be built any more does not wait */
    const struct json *annotations = json_at(object, "metadata.annotations");
    const char *step = json_string(json_member(annotations, ANNOTATION_PAUSE_STEP), NULL);
    json_set(json_set_object(json_set_object(patch, "metadata"), "annotations"), ANNOTATION_PAUSE_STEP,
             step ? json_new_string(step) : json_new_null());
    return patch;
}
