/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the environment variables of a job's pods. Every pod gets those that say which pod of
 * which job it is (COXSWAIN_ROLE, COXSWAIN_INDEX, …); besides, the processes of each framework get
 * those by which they find each other: TF_CONFIG, MASTER_ADDR and RANK, JAX_COORDINATOR_ADDRESS,
 * or, for the project's own worker, the job document. pod_build.c calls environment_document once
 * for many pods of a job, then environment_build for each pod. A user's template must not set a
 * reserved variable: pod_build.c then refuses to build the pod.
 */
#ifndef COXSWAIN_CONTROLLER_ENVIRONMENT_BUILD_H
#define COXSWAIN_CONTROLLER_ENVIRONMENT_BUILD_H

#include <stdbool.h>

#include "common/error.h"
#include "common/job/training_job.h"

/* Makes the text that all pods of a job share: the job document with the crew, or the cluster of
 * TF_CONFIG. Free with free(). NULL for frameworks without such a text. ERROR_TOO_LARGE if it is
 * longer than JOB_DOCUMENT_MAX. */
int environment_document(const struct training_job *job, char **ret_text, struct error *error);

/* Returns a pod's variables as a list of core/v1 EnvVar; free with json_free. `document`: from
 * environment_document. */
struct json *environment_build(const struct training_job *job, enum role role, int64_t index, const char *document);

/* Returns whether a template must not set the variable, because that would break the crew. */
bool environment_is_reserved(enum framework framework, const char *name);
/* Returns whether older operators let templates set this reserved variable: a job that has run with
 * it keeps it. */
bool environment_was_free(enum framework framework, const char *name);

#endif
