/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the interface between environment_build.c and the files that build the environment
 * variables of one framework each: environment_tensorflow.c, environment_pytorch.c and
 * environment_jax.c. There is one struct for each framework; the table of all structs, and the
 * struct of the project's own worker, are in environment_build.c. No other file includes this
 * header.
 */
#ifndef COXSWAIN_CONTROLLER_ENVIRONMENT_FRAMEWORK_H
#define COXSWAIN_CONTROLLER_ENVIRONMENT_FRAMEWORK_H

#include "common/error.h"
#include "common/job/training_job.h"

struct environment_framework {
    /* Makes the text that all pods of the job share; NULL: there is none. On success `*ret_text`
     * may be NULL. */
    int (*document)(const struct training_job *job, char **ret_text, struct error *error);
    /* Adds the variables of one pod. */
    void (*add)(const struct training_job *job, enum role role, int64_t index, const char *document, struct json *list);
    /* Names that a template must not set besides those of every framework; ends with NULL. */
    const char *const *reserved;
};

extern const struct environment_framework environment_tensorflow, environment_pytorch, environment_jax;

#endif
