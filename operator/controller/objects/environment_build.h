/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment variables of a pod, by framework: a table with one line each.
 */
#ifndef COXSWAIN_CONTROLLER_ENVIRONMENT_BUILD_H
#define COXSWAIN_CONTROLLER_ENVIRONMENT_BUILD_H

#include <stdbool.h>

#include "common/error.h"
#include "common/job/training_job.h"

/* What all pods of a job share, made once: the job document with the crew, or TF_CONFIG's cluster. Release with free().
 * NULL for frameworks that share nothing. ERROR_TOO_LARGE beyond JOB_DOCUMENT_MAX. */
int environment_document(const struct training_job *job, char **ret_text, struct error *error);

/* A list of EnvVar for core/v1; free with json_free. `document` is what environment_document gave. */
struct json *environment_build(const struct training_job *job, enum role role, int64_t index, const char *document);

/* A name that a template must not set, because the crew would break. */
bool environment_is_reserved(enum framework framework, const char *name);
/* One of these that was the template's until a newer operator: a job that has run with it keeps it. */
bool environment_was_free(enum framework framework, const char *name);

#endif
