/* SPDX-License-Identifier: Apache-2.0
 *
 * What the TPU runtime (libtpu) of a pod wants to be told when a slice spans several
 * hosts: their names, and which of them it is. On Google Kubernetes Engine an
 * admission webhook says it to the pods of a Job; ours belong to none.
 */
#ifndef COXSWAIN_CONTROLLER_ENVIRONMENT_TPU_H
#define COXSWAIN_CONTROLLER_ENVIRONMENT_TPU_H

#include "common/error.h"
#include "common/job/training_job.h"

/* Whether the hosts' names fit into a variable: else ERROR_TOO_LARGE. A job without TPUs always fits. */
int environment_tpu_check(const struct training_job *job, struct error *error);
/* Adds nothing to a job without TPUs, nor to an evaluator. */
void environment_add_tpu(const struct training_job *job, enum role role, int64_t index, struct json *list);
bool environment_tpu_is_reserved(const char *name);

#endif
