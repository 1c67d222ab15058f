/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a TrainingJob of its own from the best trial of a sweep: the sweep's template with the trial's
 * values. The job of a population (PBT) begins with the trial's checkpoint. `cox sweep best` prints the job, and
 * `cox run` writes it to a file when a sweep ends. Does no I/O.
 */
#ifndef COXSWAIN_CLI_SWEEP_BEST_H
#define COXSWAIN_CLI_SWEEP_BEST_H

#include "common/buffer.h"
#include "common/job/training_sweep.h"

/* Builds the job, named <sweep>-best. ERROR_NOT_FOUND if no trial has succeeded; ERROR_INVALID if the best trial's values in the status do
 * not fit the sweep's spec. Free `ret_job` with json_free. */
int sweep_best_job(const struct training_sweep *sweep, struct json **ret_job, struct error *error);
/* Appends the job as YAML, below a comment that says which trial it was. */
int sweep_best_print(const struct training_sweep *sweep, struct buffer *out, struct error *error);

#endif
