/* SPDX-License-Identifier: Apache-2.0
 *
 * What a framework wants its processes to be told. One of these for each; the
 * table is in environment_build.c.
 */
#ifndef COXSWAIN_CONTROLLER_ENVIRONMENT_FRAMEWORK_H
#define COXSWAIN_CONTROLLER_ENVIRONMENT_FRAMEWORK_H

#include "common/error.h"
#include "common/job/training_job.h"

struct environment_framework {
    /* What all pods of the job share, made once; NULL: nothing. On success `*ret_text` may still be NULL. */
    int (*document)(const struct training_job *job, char **ret_text, struct error *error);
    /* Adds the variables of one pod. */
    void (*add)(const struct training_job *job, enum role role, int64_t index, const char *document, struct json *list);
    /* Names that a template must not set besides those of every framework; ends with NULL. */
    const char *const *reserved;
};

extern const struct environment_framework environment_tensorflow, environment_pytorch, environment_jax;

#endif
