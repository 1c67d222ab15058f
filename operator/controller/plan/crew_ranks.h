/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers by which processes that all do the same (torch.distributed, JAX, a
 * TPU's hosts) know each other: through the roles in their order, so a chief is 0.
 */
#ifndef COXSWAIN_CONTROLLER_CREW_RANKS_H
#define COXSWAIN_CONTROLLER_CREW_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/job/training_job.h"

/* An evaluator looks on. */
bool crew_has_rank(enum role role);
int64_t crew_rank(const struct training_job *job, enum role role, int64_t index);
int64_t crew_world_size(const struct training_job *job);

#endif
