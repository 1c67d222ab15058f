/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/top_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator/cli/job_condition.h"
#include "operator/cli/job_table.h"
#include "operator/cli/view_print.h"

#define NAME_WIDTH_MAX 41
#define CELL_MAX 64

void top_row_take(struct top_row *row, const struct json *job)
{
    double loss = job_metric(job, "loss");
    int64_t step = json_integer_at(job, "status.progress.step", -1);
    bool same_job =
        row->job && strcmp(json_string_at(row->job, "metadata.uid", ""), json_string_at(job, "metadata.uid", "")) == 0;
    if (!same_job)
        row->loss_count = 0;
    if (!isnan(loss) && (row->loss_count == 0 || step != row->step)) {
        if (row->loss_count == TOP_LOSSES_MAX)
            memmove(row->losses, row->losses + 1, --row->loss_count * sizeof *row->losses);
        row->losses[row->loss_count++] = loss;
    }
    row->step = step;
    json_free(row->job);
    row->job = json_copy(job);
}

void top_row_release(struct top_row *row)
{
    json_free(row->job);
    row->job = NULL;
}

static double rate_of(const struct top_row *row)
{
    bool runs = strcmp(job_state(row->job), "Running") == 0;
    double rate = strtod(json_string_at(row->job, "status.progress.examplesPerSecond", "0"), NULL);
    return runs && isfinite(rate) ? rate : -1;
}

static int compare(const void *left, const void *right)
{
    const struct top_row *a = left, *b = right;
    double difference = rate_of(b) - rate_of(a);
    if (difference != 0)
        return difference > 0 ? 1 : -1;
    int spaces =
        strcmp(json_string_at(a->job, "metadata.namespace", ""), json_string_at(b->job, "metadata.namespace", ""));
    return spaces ? spaces
                  : strcmp(json_string_at(a->job, "metadata.name", ""), json_string_at(b->job, "metadata.name", ""));
}

void top_table_sort(struct top_row *rows, unsigned count)
{
    qsort(rows, count, sizeof *rows, compare);
}

/* ---------------------------------------------------------------- lines */

static void name_of(const struct top_row *row, bool with_namespace, char name[2 * CELL_MAX])
{
    snprintf(name, 2 * CELL_MAX, "%s%s%s", with_namespace ? json_string_at(row->job, "metadata.namespace", "") : "",
             with_namespace ? "/" : "", json_string_at(row->job, "metadata.name", ""));
}

static unsigned name_width(const struct top_row *rows, unsigned count, bool with_namespace)
{
    unsigned width = (unsigned)strlen("NAME");
    for (unsigned i = 0; i < count; i++) {
        char name[2 * CELL_MAX];
        name_of(&rows[i], with_namespace, name);
        if (strlen(name) > width)
            width = (unsigned)strlen(name);
    }
    return width < NAME_WIDTH_MAX ? width : NAME_WIDTH_MAX;
}

static void print_step(const struct json *job, struct buffer *out)
{
    char text[CELL_MAX] = "";
    int64_t step = json_integer_at(job, "status.progress.step", -1);
    int64_t total = json_integer_at(job, "status.progress.totalSteps", -1);
    if (step >= 0 && total > 0)
        snprintf(text, sizeof text, "%" PRId64 " %%", 100 * step / total);
    else if (step >= 0)
        snprintf(text, sizeof text, "%" PRId64, step);
    buffer_format(out, " %7s", text);
}

static void print_rate(const struct top_row *row, struct buffer *out)
{
    SCOPED_BUFFER text = BUFFER_INIT(CELL_MAX);
    double rate = rate_of(row);
    if (rate > 0)
        view_print_number(llround(rate), &text);
    buffer_format(out, " %12s", buffer_text(&text));
}

static void print_loss(const struct top_row *row, struct buffer *out)
{
    char text[CELL_MAX] = "";
    double loss = job_metric(row->job, "loss");
    if (!isnan(loss))
        snprintf(text, sizeof text, "%.4f", loss);
    buffer_format(out, " %9s  ", text);
    view_print_losses(row->losses, row->loss_count, TOP_LOSSES_MAX, out);
}

static void print_row(const struct top_row *row, unsigned width, bool with_namespace, struct buffer *out)
{
    char name[2 * CELL_MAX], left[24];
    name_of(row, with_namespace, name);
    job_time_left(row->job, left, sizeof left);
    buffer_format(out, "%-*.*s  %-10s %7s", (int)width, (int)width, name, job_state_shown(row->job),
                  json_string_at(row->job, "status.readySummary", ""));
    print_step(row->job, out);
    print_rate(row, out);
    buffer_format(out, " %8s", left);
    print_loss(row, out);
    buffer_append_byte(out, '\n', NULL);
}

/* Prints a line below the job that names the worker which holds up the others. */
static void print_straggler(const struct top_row *row, struct buffer *out)
{
    if (job_condition_true(row->job, "Straggling"))
        buffer_format(out, "  %s\n", json_string_at(job_condition(row->job, "Straggling"), "message", ""));
}

void top_table_print(const struct top_row *rows, unsigned count, unsigned width, bool with_namespace,
                     struct buffer *out)
{
    SCOPED_BUFFER lines = BUFFER_INIT(TOP_TEXT_MAX);
    unsigned names = name_width(rows, count, with_namespace);
    buffer_format(&lines, "%-*s  %-10s %7s %7s %12s %8s %9s\n", (int)names, "NAME", "STATE", "READY", "DONE",
                  "EXAMPLES/S", "LEFT", "LOSS");
    for (unsigned i = 0; i < count; i++) {
        print_row(&rows[i], names, with_namespace, &lines);
        print_straggler(&rows[i], &lines);
    }
    view_print_clipped(buffer_text(&lines), width, out);
}
