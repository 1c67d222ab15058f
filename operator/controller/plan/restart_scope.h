/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether the end of one pod restarts only that pod, while the rest of the crew waits, or
 * the whole crew.
 */
#ifndef COXSWAIN_CONTROLLER_RESTART_SCOPE_H
#define COXSWAIN_CONTROLLER_RESTART_SCOPE_H

#include "common/job/training_job.h"

/* Returns RESTART_SCOPE_POD or RESTART_SCOPE_JOB, never AUTO. */
enum restart_scope restart_scope_of(const struct training_job *job, enum role role, int64_t index);

#endif
