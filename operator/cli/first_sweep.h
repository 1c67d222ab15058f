/* SPDX-License-Identifier: Apache-2.0
 *
 * Generates the TrainingSweep that `cox generate --sweep` prints: its template is the job of first_job.h, and its parameters are those that
 * matter most for that job's model and data. On two processors it ends within minutes: a trial of a language model takes fewer steps than
 * the job, and trials with several pods run one after the other. Does not check that the choices fit together: training_job_violations and
 * training_sweep_violations do that.
 */
#ifndef COXSWAIN_CLI_FIRST_SWEEP_H
#define COXSWAIN_CLI_FIRST_SWEEP_H

#include "common/buffer.h"
#include "operator/cli/first_job.h"

/* Returns the TrainingSweep of trials like `job`, which first_job_make has made from `wish`; free it with json_free. */
struct json *first_sweep_make(const struct first_job *wish, const struct json *job);

/* Appends lines of comment that say how long the sweep of a language model takes, and what to change if that is too long; none for other
 * models. */
void first_sweep_explain(const struct json *sweep, struct buffer *out);

#endif
