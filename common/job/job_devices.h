/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes how many of spec.devices the pods of a job use.
 */
#ifndef COXSWAIN_JOB_JOB_DEVICES_H
#define COXSWAIN_JOB_JOB_DEVICES_H

#include "common/job/training_job.h"

/* Returns how many of spec.devices a pod of the role uses. Parameter servers use none, because they
 * keep the variables in host memory; nor does our own chief of ParameterServer, which only
 * coordinates. Our evaluator uses one. Foreign chiefs and evaluators are given all devices, because
 * their scripts may train there (as TensorFlow's chief does). */
int64_t job_role_devices(const struct training_job *job, enum role role);
/* Returns how many devices the pods of a valid job use together; of an elastic job with as few workers as it may have. */
int64_t job_least_devices(const struct training_job *job);

#endif
