/* SPDX-License-Identifier: Apache-2.0
 *
 * Generates the TrainingJob that `cox generate` prints, from a few choices of the user. Values that the user
 * does not give are left out if the table of fields (common/job/fields.h) has a default; otherwise they are
 * chosen to suit the strategy and the data. Does not check that the choices fit together:
 * training_job_violations does that for every job.
 */
#ifndef COXSWAIN_CLI_FIRST_JOB_H
#define COXSWAIN_CLI_FIRST_JOB_H

#include "common/buffer.h"
#include "common/json.h"
#include "operator/cli/data_folder.h"
#include "operator/cli/data_shape.h"

/* The user's choices; NULL or 0: not given. */
struct first_job {
    const char *name, *image;
    const char *strategy, *model, *format; /* words of the table of fields */
    const char *label;                     /* data.labelColumn; NULL: as `shape` says */
    const struct json *skipped;            /* data.skipColumns; NULL or empty: none */
    const char *data_claim, *runs_claim;
    const struct data_files_found *files; /* in `format`; NULL: the usual names for that format */
    const struct data_shape *shape;       /* of what is in `files`; NULL, or `examples` 0: not known */
    bool drop_rows;                       /* data.missing: DropRow */
    int64_t workers, gpus;
};

/* Names of the storages; also of their claims, unless the user names those. */
#define FIRST_JOB_DATA "data"
#define FIRST_JOB_RUNS "runs"

/* Returns how many of the examples are held out, if that is known: those of the files for the test, or a part. */
int64_t first_job_held_out(const struct data_shape *shape);

/* Returns whether the model of a section `coxswain` is a language model, which has no accuracy. */
bool first_job_reads_text(const struct json *section);

/* Returns how many minutes two processors of a server take to learn so many windows of a text with gpt-bytes, as the job has it. */
int64_t first_job_minutes(double windows);
/* Returns how many minutes the job of a language model takes on two processors; -1: days; 0: that is not known. */
int64_t first_job_length(const struct json *job);
/* Appends lines of comment that say how long the job of a language model takes, and what to change if that is too long; none for other
 * models. */
void first_job_explain(const struct json *job, struct buffer *out);

/* Returns the TrainingJob; free it with json_free. */
struct json *first_job_make(const struct first_job *wish);

#endif
