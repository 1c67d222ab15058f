/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/documents.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/contract/status_document.h"
#include "common/job/enum_words.h"
#include "common/yaml.h"
#include "operator/cli/job_condition.h"
#include "operator/cli/job_describe.h"
#include "operator/cli/job_table.h"
#include "operator/cli/job_view.h"
#include "operator/cli/pod_place.h"
#include "operator/cli/sweep_best.h"
#include "operator/cli/sweep_export.h"
#include "operator/cli/sweep_print.h"

#define CELL_MAX 512
#define MANIFEST_MAX (1024 * 1024)
#define TRIALS_MAX (32 * 1024 * 1024)

static const char *text_at(const struct json *object, const char *path)
{
    return json_string_at(object, path, "");
}

/* ---------------------------------------------------------------- lines of the list */

static struct json *row_complete(struct json *row, const char *kind, const struct json *object)
{
    json_remove(row, "AGE");
    json_set_string(row, "kind", kind);
    json_set_string(row, "created", text_at(object, "metadata.creationTimestamp"));
    json_set_string(row, "finished", text_at(object, "status.completionTime"));
    json_set_boolean(row, "suspend", json_boolean_at(object, "spec.suspend", false));
    return row;
}

void ui_set_score(struct json *row, const struct run_record *record)
{
    SCOPED_BUFFER text = BUFFER_INIT(CELL_MAX);
    bool is_higher_better = isfinite(record->best) ? strcmp(record->metric, METRIC_VALIDATION_ACCURACY) == 0
                                                   : isfinite(record->score.accuracy);
    double score = isfinite(record->best)             ? record->best
                   : isfinite(record->score.accuracy) ? record->score.accuracy
                   : isfinite(record->score.rmse)     ? record->score.rmse
                                                      : record->score.loss;
    run_record_score(record, &text);
    json_set_string(row, "SCORE", buffer_text(&text));
    if (isfinite(score))
        json_set_number(row, "score", is_higher_better ? score : -score);
}

struct json *ui_job_row(const struct json *job)
{
    SCOPED(run_record_release) struct run_record record;
    struct json *row = row_complete(job_row(job, 0), "job", job);
    json_set_integer(row, "step", json_integer_at(job, "status.progress.step", -1));
    json_set_integer(row, "total", json_integer_at(job, "status.progress.totalSteps", -1));
    if (!json_at(job, "status.completionTime"))
        json_set_integer(row, "left", json_integer_at(job, "status.progress.secondsRemaining", -1));
    json_set_string(row, "sweep", json_string(json_member(json_at(job, "metadata.labels"), LABEL_SWEEP_NAME), ""));
    run_record_init(&record);
    record.score = job_score(job);
    ui_set_score(row, &record);
    return row;
}

struct json *ui_sweep_row(const struct json *sweep)
{
    SCOPED(run_record_release) struct run_record record;
    struct json *row = row_complete(sweep_row(sweep, 0), "sweep", sweep);
    const char *state = json_string_at(row, "STATE", "");
    bool is_over = strcmp(state, "Complete") == 0 || strcmp(state, "Failed") == 0;
    int64_t done =
        json_integer_at(sweep, "status.trials.succeeded", 0) + json_integer_at(sweep, "status.trials.failed", 0) +
        json_integer_at(sweep, "status.trials.diverged", 0) + json_integer_at(sweep, "status.trials.stopped", 0) +
        (is_over ? json_integer_at(sweep, "status.trials.paused", 0) : 0);
    json_set_integer(row, "step", done); /* as sweep_done counts */
    json_set_integer(row, "total", json_integer_at(sweep, "status.trials.total", -1));
    run_record_init(&record);
    snprintf(record.metric, sizeof record.metric, "%s",
             json_string_at(sweep, "spec.objective.metric", METRIC_VALIDATION_LOSS));
    record.best = strtod(json_string_at(sweep, "status.best.objective", "nan"), NULL);
    ui_set_score(row, &record);
    return row;
}

/* ---------------------------------------------------------------- one job */

/* What the page shows of an object, and where it stands there. */
struct shown {
    const char *name, *path;
};

static void set_list(struct json *document, const char *name, const struct json *objects, const struct shown *shown,
                     size_t count)
{
    struct json *list = json_set_array(document, name);
    for (const struct json *object = json_first(objects); object; object = json_next(object)) {
        struct json *row = json_append(list, json_new_object());
        for (size_t i = 0; i < count; i++)
            json_set_string(row, shown[i].name, text_at(object, shown[i].path));
    }
}

static void set_conditions(struct json *document, const struct json *object)
{
    static const struct shown shown[] = {{"type", "type"},
                                         {"status", "status"},
                                         {"reason", "reason"},
                                         {"message", "message"},
                                         {"time", "lastTransitionTime"}};
    set_list(document, "conditions", json_at(object, "status.conditions"), shown, sizeof shown / sizeof *shown);
}

static void set_events(struct json *document, const struct json *events)
{
    static const struct shown shown[] = {{"time", "metadata.creationTimestamp"},
                                         {"type", "type"},
                                         {"reason", "reason"},
                                         {"about", "regarding.name"},
                                         {"note", "note"}};
    set_list(document, "events", events, shown, sizeof shown / sizeof *shown);
}

static void set_pods(struct json *document, const struct json *pods)
{
    struct json *list = json_set_array(document, "pods");
    for (const struct json *pod = json_first(pods); pod; pod = json_next(pod)) {
        struct pod_line line = {.index = 0};
        const struct json *labels = json_at(pod, "metadata.labels");
        pod_line_describe(&line, pod);
        struct json *row = json_append(list, json_new_object());
        json_set_string(row, "name", text_at(pod, "metadata.name"));
        json_set_string(row, "role", json_string(json_member(labels, LABEL_ROLE), "pod"));
        json_set_string(row, "index", json_string(json_member(labels, LABEL_INDEX), ""));
        json_set_string(row, "state", line.words);
        json_set_string(row, "why", line.failure_line);
        json_set_string(row, "node", text_at(pod, "spec.nodeName"));
        json_set_string(row, "created", text_at(pod, "metadata.creationTimestamp"));
        json_set_boolean(row, "current", pod_is_current(pod));
    }
}

/* Without what the API server adds for itself. */
static int set_manifest(struct json *document, const struct json *object, struct error *error)
{
    SCOPED_JSON *shown = json_copy(object);
    SCOPED_BUFFER text = BUFFER_INIT(MANIFEST_MAX);
    json_remove(json_at(shown, "metadata"), "managedFields");
    if (yaml_print(shown, &text, error) < 0)
        return -1;
    json_set_string(document, "manifest", buffer_text(&text));
    return 0;
}

/* Only elastic jobs have bounds, and can be scaled. */
static void set_elastic(struct json *document, const struct json *job)
{
    int64_t max = json_integer_at(job, "spec.workers.maxReplicas", -1);
    if (max < 0)
        return;
    struct json *elastic = json_set_object(document, "elastic");
    json_set_integer(elastic, "workers", json_integer_at(job, "spec.workers.replicas", 1));
    json_set_integer(elastic, "min", json_integer_at(job, "spec.workers.minReplicas", 1));
    json_set_integer(elastic, "max", max);
}

int ui_job_document(const struct why_input *input, struct json **ret_document, struct error *error)
{
    SCOPED_BUFFER why, description;
    buffer_init(&why, WHY_MAX);
    buffer_init(&description, DESCRIPTION_MAX);
    why_print(input, &why);
    job_describe(input, &description);
    struct json *document = json_new_object();
    json_set(document, "row", ui_job_row(input->job));
    json_set_string(document, "uid", text_at(input->job, "metadata.uid"));
    json_set_string(document, "why", buffer_text(&why));
    json_set_string(document, "description", buffer_text(&description));
    json_set_boolean(document, "over", job_is_over(input->job));
    json_set(document, "spec", json_copy(json_at(input->job, "spec")));
    set_elastic(document, input->job);
    set_conditions(document, input->job);
    set_pods(document, input->pods);
    set_events(document, input->events);
    if (set_manifest(document, input->job, error) < 0) {
        json_free(document);
        return -1;
    }
    *ret_document = document;
    return 0;
}

/* ---------------------------------------------------------------- one sweep */

static void set_why(struct json *document, const struct sweep_view *view, int64_t now_ms)
{
    SCOPED_BUFFER text = BUFFER_INIT(TRIALS_MAX);
    sweep_print_why(view, &text);
    json_set_string(document, "why", buffer_text(&text));
    json_set_number(document, "left", (double)sweep_view_left_ms(view, now_ms) / 1000);
}

static void set_best(struct json *document, const struct training_sweep *sweep)
{
    SCOPED_BUFFER text = BUFFER_INIT(MANIFEST_MAX);
    if (sweep->status.best.trial && sweep_best_print(sweep, &text, NULL) == 0)
        json_set_string(document, "best", buffer_text(&text));
}

static int set_trials(struct json *document, const struct sweep_view *view, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT(TRIALS_MAX);
    struct json *trials;
    if (sweep_export_json(view, &text, error) < 0 ||
        json_parse(buffer_text(&text), text.length, TRIALS_MAX, &trials, error) < 0)
        return -1;
    struct json *trial = json_first(trials);
    for (size_t i = 0; i < view->count && trial; i++, trial = json_next(trial))
        json_set_boolean(trial, "hasJob", view->trials[i]->has_job);
    json_set(document, "trials", trials);
    return 0;
}

int ui_sweep_document(const struct json *object, const struct sweep_view *view, int64_t now_ms,
                      struct json **ret_document, struct error *error)
{
    const struct training_sweep *sweep = view->sweep;
    struct json *document = json_new_object();
    json_set(document, "row", ui_sweep_row(object));
    json_set_string(document, "metric", sweep->objective.metric);
    json_set_boolean(document, "maximize", sweep->objective.goal == GOAL_MAXIMIZE);
    json_set_boolean(document, "over", sweep_is_over(sweep));
    struct json *labels = json_set_array(document, "parameters"), *scales = json_set_array(document, "logarithmic");
    for (unsigned i = 0; i < sweep->parameter_count; i++) {
        json_append_string(labels, sweep_parameter_label(sweep, i));
        const struct sweep_parameter *parameter = &sweep->parameters[i];
        bool is_log_integer = parameter->has_integer && parameter->integer.scale == INTEGER_LOG;
        json_append(scales, json_new_boolean(parameter->has_log_uniform || is_log_integer));
    }
    set_why(document, view, now_ms);
    set_best(document, sweep);
    set_conditions(document, object);
    if (set_trials(document, view, error) < 0 || set_manifest(document, object, error) < 0) {
        json_free(document);
        return -1;
    }
    *ret_document = document;
    return 0;
}
