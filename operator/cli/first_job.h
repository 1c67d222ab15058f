/* SPDX-License-Identifier: Apache-2.0
 *
 * A first TrainingJob of one's own: from the few things that somebody says of it, one that trains. What is not said is left to
 * the defaults of the table of fields where it has some, and else is what suits the strategy and the data. Whether what was said
 * goes together is for the validation that every job meets (training_job_violations).
 */
#ifndef COXSWAIN_CLI_FIRST_JOB_H
#define COXSWAIN_CLI_FIRST_JOB_H

#include "common/json.h"
#include "operator/cli/data_folder.h"

/* NULL and 0: not said. */
struct first_job {
    const char *name, *image;
    const char *strategy, *model, *format; /* words of the table of fields */
    const char *data_claim, *runs_claim;
    const struct data_files_found *files; /* of `format`; NULL: those that such data usually has */
    int64_t workers, gpus;
};

/* Names of storages, and of their claims where none is said. */
#define FIRST_JOB_DATA "data"
#define FIRST_JOB_RUNS "runs"

struct json *first_job_make(const struct first_job *wish);

#endif
