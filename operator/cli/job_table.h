/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats TrainingJobs for `cox get` as a table, or as JSON, YAML or names. `cox sweep`, `cox describe` and
 * `cox top` use parts of it for single values and for other objects. Does no I/O: the caller writes the
 * buffer and passes the time.
 */
#ifndef COXSWAIN_CLI_JOB_TABLE_H
#define COXSWAIN_CLI_JOB_TABLE_H

#include "common/buffer.h"
#include "common/json.h"
#include "operator/cli/command_line.h"

#define JOB_COLUMNS_MAX 12
/* Remembers each column's width, so that lines printed later line up with the earlier ones. */
struct job_table {
    bool wide, with_namespace;
    unsigned widths[JOB_COLUMNS_MAX];
};

void job_table_init(struct job_table *table, bool wide, bool with_namespace);
/* Widens the columns where this job's cells need it. */
void job_table_measure(struct job_table *table, const struct json *job, int64_t now_ms);
void job_table_print_head(const struct job_table *table, struct buffer *out);
void job_table_print(const struct job_table *table, const struct json *job, int64_t now_ms, struct buffer *out);

/* Returns all cells of a job, by the titles of their columns. Free it with json_free. */
struct json *job_row(const struct json *job, int64_t now_ms);

/* Prints all jobs of a JSON array in the form line->output. `single`: JSON and YAML print the first job itself, not a List. */
int jobs_print(const struct json *jobs, const struct command_line *line, bool single, int64_t now_ms,
               struct buffer *out, struct error *error);

/* Prints the objects of a JSON array as JSON or YAML, or as names such as trainingjob.coxswain.dev/digits. `single`: as above. */
int objects_print(const struct json *objects, enum output_form form, const char *singular, bool single,
                  struct buffer *out, struct error *error);

/* Returns the value of a metric in status.progress; NAN if it is absent. */
double job_metric(const struct json *job, const char *name);
/* Writes for how long an object has existed, such as "3m"; "" if that is unknown. */
void object_age(const struct json *object, int64_t now_ms, char *text, size_t size);
/* Writes the estimated time left, such as "35s"; "" if it is unknown or the job is complete. */
void job_time_left(const struct json *job, char *text, size_t size);

#endif
