/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes how many pods the roles of a job have (chief, worker, parameter server, evaluator), and how many of spec.devices these use. It
 * also works on invalid specs: a role whose number of pods is out of range has none.
 */
#ifndef COXSWAIN_JOB_JOB_ROLES_H
#define COXSWAIN_JOB_JOB_ROLES_H

#include <stdint.h>

#include "common/job/training_job.h"

/* Returns how many pods of the role the spec asks for; 0 if the number is out of range. */
#define JOB_ROLE_MAX 100000
int64_t job_role_count(const struct training_job *job, enum role role);
/* Returns the fewest pods of the role with which the job can work: workers.minReplicas for workers
 * of an elastic job, else all. */
int64_t job_role_minimum(const struct training_job *job, enum role role);

/* Returns how many of spec.devices a pod of the role uses. Parameter servers use none, because they
 * keep the variables in host memory; nor does our own chief of ParameterServer, which only
 * coordinates. Our evaluator uses one. Foreign chiefs and evaluators are given all devices, because
 * their scripts may train there (as TensorFlow's chief does). */
int64_t job_role_devices(const struct training_job *job, enum role role);
/* Returns how many devices the pods of a job use together; of an elastic job with as few workers as it may have. */
int64_t job_least_devices(const struct training_job *job);

/* Returns the extended resource by which pods of the role request devices of that type, such as nvidia.com/gpu; NULL if they request
 * none: CPUs are no such resource, and the resource claims of the template's main container bring devices themselves, unless the job names a
 * resource all the same (then the claims are for something else, such as network cards). Borrowed from the job, or static. */
const char *job_device_resource(const struct training_job *job, enum role role, enum device_type type);

#endif
