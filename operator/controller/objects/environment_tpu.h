/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets the environment variables that the TPU runtime (libtpu) needs if a slice spans several
 * hosts: TPU_WORKER_HOSTNAMES, the names of all hosts, and TPU_WORKER_ID, the pod's rank among
 * them. On Google Kubernetes Engine an admission webhook sets them for pods of a Kubernetes Job;
 * the pods of a TrainingJob belong to no Job. Our own workers have one slice a pod, of one host: 0 and
 * localhost. environment_build.c adds both to each pod of a job
 * whose devices are TPUs, except for evaluators, and refuses a job whose list of hosts is too long
 * for a variable.
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
/* Returns whether `name` is one of the two variables. */
bool environment_tpu_is_reserved(const char *name);

#endif
