/* SPDX-License-Identifier: Apache-2.0
 *
 * What the roles of a job's spec mean for its pods: how many each role has, which
 * of them leads, how many devices each computes on, and the ranks by which
 * processes that all do the same know each other.
 */
#ifndef COXSWAIN_CONTROLLER_CREW_ROLES_H
#define COXSWAIN_CONTROLLER_CREW_ROLES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/job/training_job.h"

/* How many pods the spec asks for. 0 where the number is out of range: an invalid spec is parsed, too. */
#define CREW_ROLE_MAX 100000
int64_t crew_role_count(const struct training_job *job, enum role role);
/* The fewest pods with which the crew can work: minReplicas of an elastic crew's workers, else all. */
int64_t crew_role_minimum(const struct training_job *job, enum role role);
/* How many of spec.devices a pod of the role computes on. Parameter servers use none, because they keep the variables in
 * host memory; nor does our own chief of ParameterServer, which only coordinates. Our evaluator uses one. Foreign chiefs and
 * evaluators are given all devices, because their scripts may train there (as TensorFlow's chief does). */
int64_t crew_role_devices(const struct training_job *job, enum role role);

/* The role whose first pod leads the crew: chief when there is one, else worker. */
enum role crew_chief_role(const struct training_job *job);

/* Ranks of torch.distributed, JAX and the hosts of a TPU slice: counted through the roles in their order, so that a chief
 * has rank 0. Evaluators have none. */
bool crew_has_rank(enum role role);
int64_t crew_rank(const struct training_job *job, enum role role, int64_t index);
int64_t crew_world_size(const struct training_job *job);

#endif
