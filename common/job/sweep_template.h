/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that the template of a TrainingSweep makes trials that the sweep can handle. The schema of the API cannot say this, since it does
 * not look into the template. The operator checks it before the first trial, and `cox run` before anything starts.
 */
#ifndef COXSWAIN_JOB_SWEEP_TEMPLATE_H
#define COXSWAIN_JOB_SWEEP_TEMPLATE_H

#include "common/job/training_sweep.h"

/* Returns why no sweep can be run with trials of this form, one sentence that names the field; NULL: it can. `spec` is that of the first
 * trial. The sentence is a constant. */
const char *sweep_template_fault(const struct training_sweep *sweep, const struct json *spec);

/* Returns whether trials of the sweep pause, instead of being stopped (earlyStopping.action Pause). */
bool sweep_pauses_trials(const struct training_sweep *sweep);

/* Returns the metric whose last value is the objective of a trial that has succeeded: objective.metric, or the one that coxswain-worker
 * reports of its best evaluation (objective.value). */
const char *sweep_final_metric(const struct training_sweep *sweep);

/* Returns whether coxswain-worker measures the metric in this job: loss in each step, the others in each test on held-out examples. */
bool sweep_metric_is_measured(const struct job_document *job, const char *metric);

#endif
