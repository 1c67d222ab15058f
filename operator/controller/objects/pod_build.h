/* SPDX-License-Identifier: Apache-2.0
 *
 * The pod of one role and index: our default, the user's template laid over it,
 * and on top what keeps the crew together (name, labels, owner, host name,
 * restartPolicy), which no template can change.
 */
#ifndef COXSWAIN_CONTROLLER_POD_BUILD_H
#define COXSWAIN_CONTROLLER_POD_BUILD_H

#include "common/error.h"
#include "common/job/training_job.h"

/* From the operator's command line. */
struct pod_options {
    const char *coscheduling_scheduler; /* its schedulerName */
    const char *worker_image;           /* for jobs with section coxswain that name no image */
};

/* What the pods of a job share; made once for many. Borrows the job. */
struct pod_builder {
    const struct training_job *job;
    const struct pod_options *options;
    const char *image;
    const struct json *placement; /* where the pods of each role belong (queue_build.h); NULL: anywhere */
    char *document;
    bool has_run; /* pods of the job were made before; not unless it is set */
};

/* ERROR_INVALID when the job cannot have pods: no image, a document or TF_CONFIG too large.
 * The options' worker image is used by jobs with section coxswain that name none. */
int pod_builder_init(struct pod_builder *builder, const struct training_job *job, const struct pod_options *options,
                     struct error *error);
void pod_builder_release(struct pod_builder *builder);

/* For the incarnation and attempt of the job's status. ERROR_INVALID when the template sets what it must not. */
int pod_build(const struct pod_builder *builder, enum role role, int64_t index, struct json **ret_pod,
              struct error *error);

/* "digits-worker-0-5"; free with free(). */
char *pod_name(const struct training_job *job, enum role role, int64_t index);

#endif
