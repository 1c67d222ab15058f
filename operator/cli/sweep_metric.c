/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/sweep_metric.h"

#include <string.h>

#include "common/contract/status_document.h"
#include "common/nearest_word.h"

#define METRIC_FIELD "spec.objective.metric"

/* What coxswain-worker measures and what says something about a model. */
static const char *const metrics[] = {"loss", METRIC_VALIDATION_LOSS, METRIC_VALIDATION_ACCURACY,
                                      METRIC_VALIDATION_RMSE};
#define METRIC_COUNT (sizeof metrics / sizeof *metrics)

static bool is_known(const char *metric)
{
    for (size_t i = 0; i < METRIC_COUNT; i++)
        if (strcmp(metrics[i], metric) == 0)
            return true;
    return false;
}

/* Returns whether a trial's value or a class that is not in the file may change the section of the template. */
static bool may_change(const struct json *sweep, const char *section)
{
    size_t length = strlen(section);
    for (const struct json *item = json_first(json_at(sweep, "spec.parameters")); item; item = json_next(item))
        if (strncmp(json_string_at(item, "path", ""), section, length) == 0)
            return true;
    return json_at(sweep, "spec.template.trainingClass") != NULL;
}

int sweep_metric_check(const struct json *sweep, struct error *error)
{
    const struct json *job = json_at(sweep, "spec.template.coxswain"), *data = json_member(job, "data");
    const char *metric = json_string_at(sweep, METRIC_FIELD, METRIC_VALIDATION_LOSS);
    const char *meant = nearest_word(metric, metrics, METRIC_COUNT);
    if (!job)
        return 0;
    if (!is_known(metric))
        return error_set(error, ERROR_INVALID,
                         METRIC_FIELD
                         ": the trials do not report \"%s\"%s%s%s; they report loss, and with data.validation "
                         "validationLoss and, of classes, validationAccuracy or, of numbers, validationRMSE",
                         metric, meant ? " (did you mean \"" : "", meant ? meant : "", meant ? "\"?)" : "");
    if (strcmp(metric, "loss") == 0)
        return 0;
    if (data && !json_member(data, "validation") && !may_change(sweep, "coxswain.data"))
        return error_set(error, ERROR_INVALID,
                         METRIC_FIELD ": %s needs held-out examples, and the template has no coxswain.data.validation; "
                                      "add it, such as {last: 1000}, or take the metric loss",
                         metric);
    bool of_numbers = strcmp(json_string_at(job, "model.loss", ""), "MeanSquaredError") == 0;
    if (strcmp(metric, METRIC_VALIDATION_ACCURACY) == 0 && of_numbers && !may_change(sweep, "coxswain.model"))
        return error_set(error, ERROR_INVALID,
                         METRIC_FIELD
                         ": a model with the loss MeanSquaredError has no accuracy; take " METRIC_VALIDATION_LOSS);
    return 0;
}
