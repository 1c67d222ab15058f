/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets the environment variables that the TPU runtime (libtpu) needs if a slice spans several hosts:
 * TPU_WORKER_HOSTNAMES, the names of the slice's hosts, and TPU_WORKER_ID, the pod's rank among them. If the
 * job has several slices (devices.slices), MEGASCALE_* tell libtpu how many there are, which is the pod's, and where
 * they meet. On Google Kubernetes Engine an admission webhook sets these variables for pods of a Kubernetes Job; the pods of a
 * TrainingJob belong to no Job. Our own workers have one slice a pod, of one host: 0 and localhost.
 * environment_build.c adds the variables to each pod of a job whose devices are TPUs, except for
 * evaluators, and refuses a job whose list of hosts is too long for a variable.
 */
#ifndef COXSWAIN_CONTROLLER_ENVIRONMENT_TPU_H
#define COXSWAIN_CONTROLLER_ENVIRONMENT_TPU_H

#include "common/error.h"
#include "common/job/training_job.h"

/* Checks that the names of all hosts fit into an environment variable; if not, fails with
 * ERROR_TOO_LARGE. Always succeeds for a job without TPUs. */
int environment_tpu_check(const struct training_job *job, struct error *error);
/* Appends the variables of one pod to `list`. Does nothing for a job without TPUs, or for an
 * evaluator. */
void environment_add_tpu(const struct training_job *job, enum role role, int64_t index, struct json *list);
/* Returns how many slices the crew has, and how many hosts each has. */
int64_t environment_tpu_slices(const struct training_job *job);
int64_t environment_tpu_hosts(const struct training_job *job);
/* Returns whether `name` is one of the variables. */
bool environment_tpu_is_reserved(const char *name);

#endif
