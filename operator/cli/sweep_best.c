/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/sweep_best.h"

#include <stdlib.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/job/enum_words.h"
#include "common/job/sweep_descent.h"
#include "common/job/sweep_parameter.h"
#include "common/job/sweep_template.h"
#include "common/memory.h"
#include "common/yaml.h"
#include "operator/cli/sweep_view.h"

static int put_values(const struct training_sweep *sweep, struct json *spec, struct error *error)
{
    for (unsigned i = 0; i < sweep->parameter_count; i++) {
        const struct sweep_parameter *parameter = &sweep->parameters[i];
        const char *name = sweep_parameter_name(parameter);
        const char *text = sweep_best_value(&sweep->status.best, name);
        SCOPED_JSON *value = text ? sweep_parameter_value(parameter, text) : NULL;
        if (!text && parameter->has_when)
            continue;
        if (!value)
            return error_set(
                error, ERROR_INVALID,
                "sweep %s: status.best has no value of parameter %s, or one that spec.parameters does not allow; "
                "its status is not of this spec: create the sweep anew",
                sweep->name, name);
        if (sweep_parameter_put(parameter, value, spec, error) < 0)
            return -1;
    }
    return 0;
}

static void fill_metadata(const struct training_sweep *sweep, struct json *metadata)
{
    SCOPED_FREE char *name = memory_format("%s-best", sweep->name);
    json_set_string(metadata, "name", name);
    if (*sweep->namespace)
        json_set_string(metadata, "namespace", sweep->namespace);
    if (sweep->queue_name)
        json_set_string(json_set_object(metadata, "labels"), LABEL_QUEUE_NAME, sweep->queue_name);
}

/* How many generations the best trial of a population has trained for. */
static int64_t generations_of_best(const struct training_sweep *sweep)
{
    const char *number = strrchr(sweep->status.best.trial, '-');
    return (number ? strtoll(number + 1, NULL, 10) : 0) / sweep->algorithm.population + 1;
}

/* The folder has the trial's name and the sweep's uid: otherwise a job of a better trial, printed later, or of a sweep that was created
 * again, would go on from this one's checkpoints, with weights of other values. */
static void put_folders(const struct training_sweep *sweep, struct json *spec)
{
    SCOPED_FREE char *trial = sweep_descent_folder(sweep, sweep->status.best.trial);
    SCOPED_FREE char *own = memory_format("%s-best", trial);
    sweep_descent_put_folder(spec, own);
    if (sweep_has_parents(sweep))
        sweep_descent_put(spec, trial, generations_of_best(sweep));
}

/* The sweep has compared its trials by their best weights; the job exports its own, which a template cannot for all trials. */
static void put_export(const struct training_sweep *sweep, struct json *spec)
{
    struct json *section = json_member(spec, "coxswain");
    const char *storage = json_string_at(section, "checkpoint.storage", NULL);
    bool by_best = strcmp(sweep_final_metric(sweep), sweep->objective.metric) != 0;
    if (!by_best || !storage || json_member(section, "export"))
        return;
    struct json *export = json_set_object(section, "export");
    SCOPED_FREE char *path = memory_format("%s-best/model.safetensors", sweep->name);
    json_set_string(export, "storage", storage);
    json_set_string(export, "path", path);
    json_set_string(export, "weights", export_weights_words[EXPORT_BEST]);
}

int sweep_best_job(const struct training_sweep *sweep, struct json **ret_job, struct error *error)
{
    if (!sweep->status.best.trial)
        return error_set(error, ERROR_NOT_FOUND, "sweep %s has no best trial: none has succeeded%s", sweep->name,
                         sweep->status.completion_ms == FIELD_UNSET ? " yet" : "");
    SCOPED_JSON *job = json_new_object();
    json_set_string(job, "apiVersion", API_GROUP_VERSION);
    json_set_string(job, "kind", TRAINING_JOB_KIND);
    fill_metadata(sweep, json_set_object(job, "metadata"));
    struct json *spec = json_set(job, "spec", json_copy(sweep->template));
    if (put_values(sweep, spec, error) < 0)
        return -1;
    put_folders(sweep, spec);
    put_export(sweep, spec);
    *ret_job = job;
    job = NULL;
    return 0;
}

int sweep_best_print(const struct training_sweep *sweep, struct buffer *out, struct error *error)
{
    const struct sweep_best *best = &sweep->status.best;
    SCOPED_JSON *job = NULL;
    if (sweep_best_job(sweep, &job, error) < 0)
        return -1;
    buffer_format(out, "# Trial %s, the best of the sweep %s: %s %s.\n", best->trial, sweep->name,
                  sweep->objective.metric, best->objective);
    if (sweep_has_parents(sweep))
        buffer_format(
            out, "# It has trained in generations with changing values, of which these are the last ones. So this job "
                 "begins with its checkpoint,\n# in the storage of the sweep, and ends at once: give it more steps or "
                 "an export.\n# Where `cox run` trained the sweep on this machine, it needs its volumes, too: "
                 "--volume CLAIM=STATE/volumes/NAMESPACE/CLAIM.\n");
    return yaml_print(job, out, error);
}
