/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the PodGroup of a job for a gang scheduler, which starts all pods of a job together or
 * none, and sets the labels, annotations or fields that make the job's pods members of the group.
 * Volcano, Coscheduling and Kubernetes' own PodGroups are supported (spec.runPolicy.gang).
 * gang_plan.c decides when the group is created; no pod is created before its group exists, and
 * with Volcano not before the group has left the phase Pending.
 */
#ifndef COXSWAIN_CONTROLLER_GANG_H
#define COXSWAIN_CONTROLLER_GANG_H

#include "operator/controller/objects/pod_build.h"
#include "operator/controller/observed/optional_api.h"

#define POD_GROUP_PLURAL "podgroups"

struct gang_kind {
    const char *group;
    const char *versions[OPTIONAL_VERSIONS_MAX + 1]; /* supported API versions, the preferred one first */
    bool waits;                                      /* pods are created once the group has left Pending */
};
/* Returns the scheduler's PodGroup API; NULL for GANG_NONE. */
const struct gang_kind *gang_kind_of(enum gang_scheduler scheduler);

/* Builds the PodGroup for this version of its API. ERROR_INVALID if the job's pods cannot be
 * built. */
int gang_build(const struct pod_builder *builder, const char *version, struct json **ret_group, struct error *error);

/* Makes a pod a member of the job's PodGroup. `scheduler_name`: the schedulerName to use for
 * Coscheduling. */
void gang_mark(struct json *pod, const struct training_job *job, enum role role, const char *scheduler_name);

#endif
