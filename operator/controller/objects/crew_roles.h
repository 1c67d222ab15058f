/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes what the roles of a job's spec (chief, worker, parameter server, evaluator) mean for its
 * crew, the pods that train the job: which role leads the crew, and the ranks of the pods (for their
 * number and devices see job_roles.h). The files that build objects and those
 * that plan use it. It also works on invalid specs: a role whose number of pods is out of range has
 * none.
 */
#ifndef COXSWAIN_CONTROLLER_CREW_ROLES_H
#define COXSWAIN_CONTROLLER_CREW_ROLES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/job/training_job.h"

/* Returns whether the crew has, or can grow to, several pods. */
bool crew_has_peers(const struct training_job *job);
/* Returns the role whose first pod leads the crew: chief if the job has one, else worker. */
enum role crew_chief_role(const struct training_job *job);

/* Ranks of torch.distributed, JAX and the hosts of a TPU slice: numbered through the roles in their
 * order, so that a chief has rank 0. Evaluators have no rank. */
bool crew_has_rank(enum role role);
int64_t crew_rank(const struct training_job *job, enum role role, int64_t index);
int64_t crew_world_size(const struct training_job *job);

#endif
