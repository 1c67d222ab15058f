/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/first_sweep.h"

#include <math.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/contract/status_document.h"
#include "common/job/enum_words.h"
#include "common/job/training_sweep.h"
#include "common/memory.h"

#define TRIALS 8
/* Pods of all trials that run at a time, so that each has a processor also on a small machine. */
#define PODS 2
/* A language model learns for so long in a trial: enough to compare values. */
#define TEXT_STEPS 200
#define TEXT_BATCH 16
#define TEXT_EVERY_STEPS 20
/* Learning rates are tried from the job's own divided by this to its product with this. */
#define RATE_FACTOR 10
/* The middle one of three widths if the job gives none; the widest is then that of the preset. */
#define MLP_WIDTH 256

static struct json *add_parameter(struct json *spec, const char *path)
{
    struct json *parameter = json_append(json_set_array(spec, "parameters"), json_new_object());
    json_set_string(parameter, "path", path);
    return parameter;
}

static void add_values(struct json *spec, const char *path, const double *values, unsigned count)
{
    struct json *list = json_set_array(add_parameter(spec, path), "values");
    for (unsigned i = 0; i < count; i++)
        json_append(list, json_new_number(values[i]));
}

/* Half of a number, the number and twice the number, from `least` to `most`. */
static void add_scales(struct json *spec, const char *path, int64_t number, int64_t least, int64_t most)
{
    double values[3];
    unsigned count = 0;
    for (int64_t value = number / 2; value <= 2 * number && value > 0; value *= 2)
        if (value >= least && value <= most)
            values[count++] = (double)value;
    if (count > 1)
        add_values(spec, path, values, count);
}

static int64_t members_of(const struct json *job)
{
    return json_integer_at(job, "spec.workers.replicas", 1) * json_integer_at(job, "spec.devices.count", 1);
}

static void add_learning_rate(const struct json *job, struct json *spec)
{
    double rate = json_number_at(job, "spec.coxswain.training.optimizer.learningRate", 0);
    struct json *range = json_set_object(add_parameter(spec, "coxswain.training.optimizer.learningRate"), "logUniform");
    json_set_number(range, "min", rate / RATE_FACTOR);
    json_set_number(range, "max", rate * RATE_FACTOR);
}

/* Each process and device gets an example of each batch. */
static void add_batch_size(const struct first_job *wish, const struct json *job, struct json *spec)
{
    int64_t examples =
        wish->shape ? wish->shape->examples - (wish->shape->tested > 0 ? 0 : first_job_held_out(wish->shape)) : 0;
    add_scales(spec, "coxswain.training.batchSize", json_integer_at(job, "spec.coxswain.training.batchSize", 0),
               members_of(job), examples > 0 ? examples : INT64_MAX);
}

/* Layers have a width in the first of them that has units, unless it is the last one, whose width follows from the data. */
static bool add_units(const struct json *layers, struct json *spec)
{
    size_t index = 0;
    for (const struct json *layer = json_first(layers); layer && json_next(layer); layer = json_next(layer), index++) {
        int64_t units = json_integer_at(layer, "units", 0);
        if (units == 0)
            continue;
        SCOPED_FREE char *path = memory_format("coxswain.model.layers.%zu.units", index);
        add_scales(spec, path, units, 1, INT64_MAX);
        return true;
    }
    return false;
}

/* What says how large a model is, or how much it is kept from learning the examples by heart. */
static void add_model(const struct json *job, bool text, struct json *spec)
{
    static const double shares[] = {0, 0.1, 0.2}, decays[] = {0, 0.01, 0.1};
    const struct json *model = json_at(job, "spec.coxswain.model");
    if (strcmp(json_string_at(model, "preset", ""), preset_name(PRESET_MLP)) == 0)
        add_scales(spec, "coxswain.model.width", json_integer_at(model, "width", MLP_WIDTH), 1, INT64_MAX);
    else if (text)
        add_values(spec, "coxswain.model.dropout", shares, sizeof shares / sizeof *shares);
    else if (!add_units(json_member(model, "layers"), spec))
        add_values(spec, "coxswain.training.optimizer.weightDecay", decays, sizeof decays / sizeof *decays);
}

/* A job whose length suits a trial; free it with json_free. */
static struct json *trial_of(const struct json *job, bool text)
{
    struct json *trial = json_copy(job), *training = json_at(trial, "spec.coxswain.training");
    int64_t members = members_of(job), most = members > TEXT_BATCH ? members : TEXT_BATCH;
    if (text) {
        json_set_integer(training, "steps", TEXT_STEPS);
        json_set_integer(json_at(trial, "spec.coxswain.evaluation"), "everySteps", TEXT_EVERY_STEPS);
    }
    if (text && json_integer_at(training, "batchSize", 0) > most)
        json_set_integer(training, "batchSize", most);
    json_remove(json_at(trial, "spec.coxswain"), "export"); /* trials would overwrite each other's file */
    return trial;
}

static int64_t parallelism_of(const struct json *job)
{
    int64_t pods =
        json_integer_at(job, "spec.workers.replicas", 1) + json_integer_at(job, "spec.parameterServers.replicas", 0);
    return pods < PODS ? PODS / pods : 1;
}

struct json *first_sweep_make(const struct first_job *wish, const struct json *job)
{
    struct json *sweep = json_new_object();
    json_set_string(sweep, "apiVersion", API_GROUP_VERSION);
    json_set_string(sweep, "kind", TRAINING_SWEEP_KIND);
    json_set_string(json_set_object(sweep, "metadata"), "name", wish->name);
    struct json *spec = json_set_object(sweep, "spec"), *objective = json_set_object(spec, "objective");
    bool text = first_job_reads_text(json_at(job, "spec.coxswain"));
    SCOPED_JSON *trial = trial_of(job, text);
    json_set_string(objective, "metric", METRIC_VALIDATION_LOSS); /* accuracies of few examples are often equal */
    json_set_string(objective, "goal", sweep_goal_words[GOAL_MINIMIZE]);
    if (json_at(trial, "spec.coxswain.checkpoint.keepBest"))
        json_set_string(objective, "value", objective_value_words[OBJECTIVE_BEST]);
    add_learning_rate(trial, spec);
    add_batch_size(wish, trial, spec);
    add_model(trial, text, spec);
    json_set_string(json_set_object(spec, "algorithm"), "type", sweep_algorithm_words[SWEEP_RANDOM]);
    json_set_integer(spec, "maxTrials", TRIALS);
    json_set_integer(spec, "parallelism", parallelism_of(trial));
    json_set(spec, "template", json_copy(json_member(trial, "spec")));
    return sweep;
}

/* The mean of the batch sizes that are tried. */
static double mean_batch(const struct json *sweep)
{
    double sum = 0;
    for (const struct json *item = json_first(json_at(sweep, "spec.parameters")); item; item = json_next(item)) {
        const struct json *values = json_member(item, "values");
        if (strcmp(json_string_at(item, "path", ""), "coxswain.training.batchSize") != 0)
            continue;
        for (const struct json *value = json_first(values); value; value = json_next(value))
            sum += json_number(value, 0) / (double)json_count(values);
    }
    return sum > 0 ? sum : json_number_at(sweep, "spec.template.coxswain.training.batchSize", 0);
}

void first_sweep_explain(const struct json *sweep, struct buffer *out)
{
    const struct json *section = json_at(sweep, "spec.template.coxswain");
    const char *name = json_string_at(sweep, "metadata.name", "");
    double windows =
        mean_batch(sweep) * json_number_at(section, "training.steps", 0) * json_number_at(sweep, "spec.maxTrials", 0);
    bool small = strcmp(json_string_at(section, "model.preset", ""), preset_name(PRESET_GPT_BYTES)) == 0;
    bool gpus = strcmp(json_string_at(sweep, "spec.template.devices.type", ""), device_type_name(DEVICE_TYPE_GPU)) == 0;
    if (!first_job_reads_text(section))
        return;
    buffer_format(out,
                  "#\n# Each trial takes only %lld steps: enough to compare values. Train the best job that\n"
                  "# `cox sweep best %s` prints for longer (training.steps).\n",
                  (long long)json_integer_at(section, "training.steps", 0), name);
    if (!gpus && small)
        buffer_format(out,
                      "# All trials together take about %lld minutes on two processors; for less, lower maxTrials or\n"
                      "# training.steps.\n",
                      (long long)first_job_minutes(windows));
    else if (!gpus)
        buffer_append_string(
            out,
            "# With a model of this size that takes days on processors: give the trials GPUs (--gpus N), "
            "or lower\n# model.depth, model.width and model.context.\n",
            NULL);
}
