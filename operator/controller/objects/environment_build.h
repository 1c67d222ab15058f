/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the environment variables of a pod, by framework.
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
