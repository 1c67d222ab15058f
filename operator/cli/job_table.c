/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/yaml.h"
#include "operator/cli/job_condition.h"
#include "operator/cli/job_score.h"
#include "operator/cli/text_table.h"

#define CELL_MAX 128

double job_metric(const struct json *job, const char *name)
{
    const struct json *metrics = json_at(job, "status.progress.metrics");
    for (const struct json *item = json_first(metrics); item; item = json_next(item))
        if (strcmp(json_string_at(item, "name", ""), name) == 0)
            return strtod(json_string_at(item, "value", "nan"), NULL);
    return NAN;
}

void object_age(const struct json *object, int64_t now_ms, char *text, size_t size)
{
    int64_t created_ms;
    *text = '\0';
    if (clock_parse(json_string_at(object, "metadata.creationTimestamp", ""), &created_ms))
        clock_format_duration(now_ms > created_ms ? now_ms - created_ms : 0, text, size);
}

void job_time_left(const struct json *job, char *text, size_t size)
{
    int64_t seconds = json_integer_at(job, "status.progress.secondsRemaining", -1);
    *text = '\0';
    if (seconds >= 0 && !json_at(job, "status.completionTime"))
        clock_format_duration(1000 * seconds, text, size);
}

/* ---------------------------------------------------------------- cells */

static void cell_namespace(const struct json *job, int64_t now_ms, char cell[CELL_MAX])
{
    (void)now_ms;
    snprintf(cell, CELL_MAX, "%s", json_string_at(job, "metadata.namespace", ""));
}

static void cell_name(const struct json *job, int64_t now_ms, char cell[CELL_MAX])
{
    (void)now_ms;
    snprintf(cell, CELL_MAX, "%s", json_string_at(job, "metadata.name", ""));
}

static void cell_state(const struct json *job, int64_t now_ms, char cell[CELL_MAX])
{
    (void)now_ms;
    snprintf(cell, CELL_MAX, "%s", job_state_shown(job));
}

static void cell_ready(const struct json *job, int64_t now_ms, char cell[CELL_MAX])
{
    (void)now_ms;
    snprintf(cell, CELL_MAX, "%s", json_string_at(job, "status.readySummary", ""));
}

static void cell_step(const struct json *job, int64_t now_ms, char cell[CELL_MAX])
{
    (void)now_ms;
    int64_t step = json_integer_at(job, "status.progress.step", -1);
    int64_t total = json_integer_at(job, "status.progress.totalSteps", -1);
    if (step >= 0 && total >= 0)
        snprintf(cell, CELL_MAX, "%" PRId64 "/%" PRId64, step, total);
    else if (step >= 0)
        snprintf(cell, CELL_MAX, "%" PRId64, step);
}

static void cell_loss(const struct json *job, int64_t now_ms, char cell[CELL_MAX])
{
    (void)now_ms;
    double loss = job_metric(job, "loss");
    if (!isnan(loss))
        snprintf(cell, CELL_MAX, "%.4f", loss);
}

static void cell_restarts(const struct json *job, int64_t now_ms, char cell[CELL_MAX])
{
    (void)now_ms;
    snprintf(cell, CELL_MAX, "%" PRId64, json_integer_at(job, "status.restarts.total", 0));
}

static void cell_age(const struct json *job, int64_t now_ms, char cell[CELL_MAX])
{
    object_age(job, now_ms, cell, CELL_MAX);
}

static void cell_strategy(const struct json *job, int64_t now_ms, char cell[CELL_MAX])
{
    (void)now_ms;
    snprintf(cell, CELL_MAX, "%s", json_string_at(job, "spec.coxswain.strategy.type", ""));
}

static void cell_throughput(const struct json *job, int64_t now_ms, char cell[CELL_MAX])
{
    (void)now_ms;
    double rate = strtod(json_string_at(job, "status.progress.examplesPerSecond", "nan"), NULL);
    if (!isnan(rate))
        snprintf(cell, CELL_MAX, "%.0f/s", rate);
}

static void cell_score(const struct json *job, int64_t now_ms, char cell[CELL_MAX])
{
    (void)now_ms;
    const struct job_score score = job_score(job);
    SCOPED_BUFFER text = BUFFER_INIT(CELL_MAX);
    job_score_print(&score, &text);
    snprintf(cell, CELL_MAX, "%s", buffer_text(&text));
}

static void cell_left(const struct json *job, int64_t now_ms, char cell[CELL_MAX])
{
    (void)now_ms;
    job_time_left(job, cell, CELL_MAX);
}

static const struct {
    const char *title;
    void (*write)(const struct json *job, int64_t now_ms, char cell[CELL_MAX]);
    bool wide, namespace;
} columns[] = {
    {"NAMESPACE", cell_namespace, false, true},
    {"NAME", cell_name, false, false},
    {"STATE", cell_state, false, false},
    {"READY", cell_ready, false, false},
    {"STEP", cell_step, false, false},
    {"LOSS", cell_loss, false, false},
    {"RESTARTS", cell_restarts, false, false},
    {"AGE", cell_age, false, false},
    {"HELD OUT", cell_score, true, false},
    {"STRATEGY", cell_strategy, true, false},
    {"THROUGHPUT", cell_throughput, true, false},
    {"ETA", cell_left, true, false},
};
#define COLUMNS (sizeof columns / sizeof *columns)
_Static_assert(COLUMNS == JOB_COLUMNS_MAX, "a width for each column");

/* ---------------------------------------------------------------- the table */

static bool is_shown(const struct job_table *table, size_t column)
{
    return (table->wide || !columns[column].wide) && (table->with_namespace || !columns[column].namespace);
}

static void widen(struct job_table *table, size_t column, const char *cell)
{
    unsigned length = (unsigned)strlen(cell);
    if (length > table->widths[column])
        table->widths[column] = length;
}

void job_table_init(struct job_table *table, bool wide, bool with_namespace)
{
    *table = (struct job_table){.wide = wide, .with_namespace = with_namespace};
    for (size_t i = 0; i < COLUMNS; i++)
        widen(table, i, columns[i].title);
}

void job_table_measure(struct job_table *table, const struct json *job, int64_t now_ms)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        char cell[CELL_MAX] = "";
        columns[i].write(job, now_ms, cell);
        widen(table, i, cell);
    }
}

void job_table_print_head(const struct job_table *table, struct buffer *out)
{
    for (size_t i = 0; i < COLUMNS; i++)
        if (is_shown(table, i))
            buffer_format(out, "%-*s", (int)table->widths[i] + TEXT_TABLE_GAP, columns[i].title);
    text_table_end_line(out);
}

void job_table_print(const struct job_table *table, const struct json *job, int64_t now_ms, struct buffer *out)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        char cell[CELL_MAX] = "";
        if (!is_shown(table, i))
            continue;
        columns[i].write(job, now_ms, cell);
        buffer_format(out, "%-*s", (int)table->widths[i] + TEXT_TABLE_GAP, cell);
    }
    text_table_end_line(out);
}

struct json *job_row(const struct json *job, int64_t now_ms)
{
    struct json *row = json_new_object();
    for (size_t i = 0; i < COLUMNS; i++) {
        char cell[CELL_MAX] = "";
        columns[i].write(job, now_ms, cell);
        json_set_string(row, columns[i].title, cell);
    }
    return row;
}

/* ---------------------------------------------------------------- other forms */

static void print_table(const struct json *jobs, const struct command_line *line, int64_t now_ms, struct buffer *out)
{
    struct job_table table;
    job_table_init(&table, line->output == OUTPUT_WIDE, line->all_namespaces);
    for (const struct json *job = json_first(jobs); job; job = json_next(job))
        job_table_measure(&table, job, now_ms);
    job_table_print_head(&table, out);
    for (const struct json *job = json_first(jobs); job; job = json_next(job))
        job_table_print(&table, job, now_ms, out);
}

static void print_names(const struct json *objects, const char *singular, struct buffer *out)
{
    for (const struct json *item = json_first(objects); item; item = json_next(item))
        buffer_format(out, "%s.%s/%s\n", singular, API_GROUP, json_string_at(item, "metadata.name", ""));
}

static struct json *list_of(const struct json *objects)
{
    struct json *list = json_new_object();
    json_set_string(list, "apiVersion", "v1");
    json_set_string(list, "kind", "List");
    json_set(list, "items", json_copy(objects));
    return list;
}

int objects_print(const struct json *objects, enum output_form form, const char *singular, bool single,
                  struct buffer *out, struct error *error)
{
    if (form == OUTPUT_NAME) {
        print_names(objects, singular, out);
        return 0;
    }
    SCOPED_JSON *document = single ? json_copy(json_first(objects)) : list_of(objects);
    if (form == OUTPUT_YAML)
        return yaml_print(document, out, error);
    return json_print_indented(document, out, error) < 0 ? -1 : buffer_append_byte(out, '\n', error);
}

int jobs_print(const struct json *jobs, const struct command_line *line, bool single, int64_t now_ms,
               struct buffer *out, struct error *error)
{
    if (line->output == OUTPUT_TABLE || line->output == OUTPUT_WIDE) {
        print_table(jobs, line, now_ms, out);
        return 0;
    }
    return objects_print(jobs, line->output, "trainingjob", single, out, error);
}
