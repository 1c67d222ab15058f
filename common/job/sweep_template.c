/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/sweep_template.h"

#include <string.h>

#include "common/contract/status_document.h"

/* ---------------------------------------------------------------- checkpoints */

/* Whether the volume that checkpoints are saved to is another one for each pod. */
static bool is_of_one_pod(const struct json *template)
{
    const char *name = json_string_at(template, "coxswain.checkpoint.storage", "");
    const struct json *item = json_first(json_member(template, "storage"));
    while (item && strcmp(json_string_at(item, "name", ""), name) != 0)
        item = json_next(item);
    return json_member(item, "emptyDir") || json_member(item, "ephemeral");
}

/* Returns why trials of this form cannot go on from each other's checkpoints; NULL: they can. */
static const char *what_a_population_lacks(const struct json *template)
{
    const struct json *worker = json_member(template, "coxswain");
    if (!worker)
        return "spec.template: PBT is for Coxswain's own worker, which can go on from the checkpoint of another job; "
               "give a section coxswain, or take another algorithm";
    if (!json_member(worker, "checkpoint"))
        return "spec.template.coxswain.checkpoint: is missing, and with PBT trials go on from there; say where they "
               "are saved";
    if (is_of_one_pod(template))
        return "spec.template.coxswain.checkpoint.storage: with PBT trials read each other's checkpoints, and emptyDir "
               "and ephemeral are another volume for each pod; take a persistentVolumeClaim, for instance";
    if (strcmp(json_string_at(worker, "training.optimizer.schedule.type", "Constant"), "Constant") != 0)
        return "spec.template.coxswain.training.optimizer.schedule.type: with PBT no trial knows how many generations "
               "follow; take Constant";
    return NULL;
}

bool sweep_pauses_trials(const struct training_sweep *sweep)
{
    return sweep->has_early_stopping && sweep->early_stopping.type != EARLY_STOPPING_MEDIAN &&
           sweep->early_stopping.action == EARLY_STOPPING_PAUSE;
}

/* A script of another framework may go on from files of its own. */
static bool pauses_without_checkpoint(const struct training_sweep *sweep, const struct json *spec)
{
    return sweep_pauses_trials(sweep) && json_member(spec, "coxswain") && !json_at(spec, "coxswain.checkpoint");
}

/* Returns the name under which the worker reports the metric at its best evaluation; NULL: it does not. */
static const char *best_metric_of(const struct training_sweep *sweep)
{
    const char *metric = sweep->objective.metric;
    if (sweep->algorithm.type == SWEEP_PBT || !json_boolean_at(sweep->template, "coxswain.checkpoint.keepBest", false))
        return NULL;
    return strcmp(metric, METRIC_VALIDATION_LOSS) == 0       ? METRIC_BEST_LOSS
           : strcmp(metric, METRIC_VALIDATION_ACCURACY) == 0 ? METRIC_BEST_ACCURACY
           : strcmp(metric, METRIC_VALIDATION_RMSE) == 0     ? METRIC_BEST_RMSE
                                                             : NULL;
}

const char *sweep_final_metric(const struct training_sweep *sweep)
{
    bool exports_best = strcmp(json_string_at(sweep->template, "coxswain.export.weights", ""), "Best") == 0;
    bool wanted =
        sweep->objective.value == OBJECTIVE_BEST || (sweep->objective.value == OBJECTIVE_AUTO && exports_best);
    const char *best = wanted ? best_metric_of(sweep) : NULL;
    return best ? best : sweep->objective.metric;
}

const char *sweep_template_fault(const struct training_sweep *sweep, const struct json *spec)
{
    if (json_at(sweep->template, "coxswain.checkpoint.path"))
        return "spec.template.coxswain.checkpoint.path: each trial needs a folder of its own; leave it out";
    if (pauses_without_checkpoint(sweep, spec))
        return "spec.template.coxswain.checkpoint: is missing, and with earlyStopping.action Pause trials go on from "
               "there; say where they are saved";
    if (sweep->objective.value == OBJECTIVE_BEST && !best_metric_of(sweep))
        return "spec.objective.value: Best is the value of the evaluation whose weights are kept, so it needs "
               "coxswain.checkpoint.keepBest: true in the template, validationLoss, validationAccuracy or "
               "validationRMSE as the metric, "
               "and another algorithm than PBT, whose trials go on from the last weights; correct these, or take Last";
    return sweep->algorithm.type == SWEEP_PBT ? what_a_population_lacks(sweep->template) : NULL;
}

/* ---------------------------------------------------------------- the metric */

static bool is_held_out(const struct data_files *files)
{
    return files->images || files->text || files->files || files->inputs || files->first != FIELD_UNSET ||
           files->last != FIELD_UNSET || files->sample != FIELD_UNSET;
}

bool sweep_metric_is_measured(const struct job_document *job, const char *metric)
{
    bool held_out = is_held_out(&job->data.validation);
    bool has_classes = job->model.loss == LOSS_SOFTMAX_CROSS_ENTROPY && !job->model.program_path &&
                       job->data.format != DATA_FORMAT_BYTES && job->data.format != DATA_FORMAT_TOKENS;
    bool has_numbers = job->model.loss == LOSS_MEAN_SQUARED_ERROR && !job->model.program_path;
    return strcmp(metric, "loss") == 0 || (strcmp(metric, METRIC_VALIDATION_LOSS) == 0 && held_out) ||
           (strcmp(metric, METRIC_VALIDATION_ACCURACY) == 0 && held_out && has_classes) ||
           (strcmp(metric, METRIC_VALIDATION_RMSE) == 0 && held_out && has_numbers);
}
