/* SPDX-License-Identifier: Apache-2.0
 *
 * TrainingJobs as lines of a table, and as JSON, YAML or names. Pure.
 */
#ifndef COXSWAIN_CLI_JOB_TABLE_H
#define COXSWAIN_CLI_JOB_TABLE_H

#include "common/buffer.h"
#include "common/json.h"
#include "operator/cli/command_line.h"

/* The head's and the cells' widths, so that lines that come later stand in the same columns. */
#define JOB_COLUMNS_MAX 11
struct job_table {
    bool wide, with_namespace;
    unsigned widths[JOB_COLUMNS_MAX];
};

void job_table_init(struct job_table *table, bool wide, bool with_namespace);
/* Makes the columns wide enough for this job. */
void job_table_measure(struct job_table *table, const struct json *job, int64_t now_ms);
void job_table_print_head(const struct job_table *table, struct buffer *out);
void job_table_print(const struct job_table *table, const struct json *job, int64_t now_ms, struct buffer *out);

/* All jobs of a JSON array; one alone (and not a list) when `single`. */
int jobs_print(const struct json *jobs, const struct command_line *line, bool single, int64_t now_ms,
               struct buffer *out, struct error *error);

/* The value of a metric of status.progress; NAN when it is not there. */
double job_metric(const struct json *job, const char *name);
/* "35s", "" when unknown. */
void job_time_left(const struct json *job, char *text, size_t size);

#endif
