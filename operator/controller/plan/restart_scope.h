/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether the end of one pod restarts only that pod, while the job's other pods wait, or
 * all pods of the job; judge.c asks for each pod that ended. spec.runPolicy.restartScope says so,
 * or, if it is Auto, the framework: a pod of the project's own worker is replaced alone, and so is
 * a worker other than the chief in TensorFlow with parameter servers and in elastic PyTorch and JAX
 * jobs. Evaluators are always replaced alone.
 */
#ifndef COXSWAIN_CONTROLLER_RESTART_SCOPE_H
#define COXSWAIN_CONTROLLER_RESTART_SCOPE_H

#include "common/job/training_job.h"

/* Returns RESTART_SCOPE_POD or RESTART_SCOPE_JOB, never AUTO. */
enum restart_scope restart_scope_of(const struct training_job *job, enum role role, int64_t index);

#endif
