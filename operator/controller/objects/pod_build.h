/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the pod of one role and index of a job: the operator's default, the user's template merged
 * over it, then the fields on which the job's other pods depend (name, labels, owner, host name,
 * restartPolicy), which no template can change. The executor builds each pod when it creates it;
 * PodGroups and Workloads are built from the same pods. A job that has no image, or whose template
 * sets a reserved variable, fails here with ERROR_INVALID.
 */
#ifndef COXSWAIN_CONTROLLER_POD_BUILD_H
#define COXSWAIN_CONTROLLER_POD_BUILD_H

#include "common/error.h"
#include "common/job/training_job.h"

struct push_endpoint;

/* From the operator's command line. */
struct pod_options {
    const char *coscheduling_scheduler; /* its schedulerName */
    const char *worker_image;           /* for jobs with section coxswain that name no image */
    const struct push_endpoint *push;   /* where scripts report their progress (progress_push.h); NULL: nowhere */
    int64_t machine_gpus;               /* of the embedded control plane's machine; 0: none, or a cluster */
};

/* The values that all pods of a job share. Borrows the job. */
struct pod_builder {
    const struct training_job *job;
    const struct pod_options *options;
    const char *image;
    const char *storage_image;        /* contains coxswain-storage */
    const struct json *placement;     /* where the pods of each role belong (queue_build.h); NULL: anywhere */
    const char *const *avoided_nodes; /* names of nodes on which the pods must not be placed; set by the caller */
    size_t avoided_node_count;
    char *document;
    bool has_run; /* pods of the job were created before; set by the caller */
};

/* Initialises a builder. ERROR_INVALID if the job cannot have pods: it has no image, or its
 * document or TF_CONFIG is too large. A job with section coxswain that names no image uses
 * the options' worker image. */
int pod_builder_init(struct pod_builder *builder, const struct training_job *job, const struct pod_options *options,
                     struct error *error);
void pod_builder_release(struct pod_builder *builder);

/* Builds a pod for the incarnation and attempt in the job's status. ERROR_INVALID if the template
 * sets a reserved field. */
int pod_build(const struct pod_builder *builder, enum role role, int64_t index, struct json **ret_pod,
              struct error *error);

/* Returns the pod's name for the incarnation in the job's status, "digits-worker-0-5"; free with
 * free(). */
char *pod_name(const struct training_job *job, enum role role, int64_t index);

#endif
