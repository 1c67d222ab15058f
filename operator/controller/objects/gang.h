/* SPDX-License-Identifier: Apache-2.0
 *
 * Gang scheduling: the PodGroup of a job, and what its pods carry to be found as
 * members of it. One line of a table for each scheduler.
 */
#ifndef COXSWAIN_CONTROLLER_GANG_H
#define COXSWAIN_CONTROLLER_GANG_H

#include "operator/controller/objects/pod_build.h"
#include "operator/controller/observed/optional_api.h"

#define POD_GROUP_PLURAL "podgroups"

struct gang_kind {
    const char *group;
    const char *versions[OPTIONAL_VERSIONS_MAX + 1]; /* that this operator knows, the best first */
    bool waits;                                      /* pods are created once the group has left Pending */
};
/* NULL for GANG_NONE. */
const struct gang_kind *gang_kind_of(enum gang_scheduler scheduler);

/* The PodGroup, in this version of its API. ERROR_INVALID when the pods cannot be built. */
int gang_build(const struct pod_builder *builder, const char *version, struct json **ret_group, struct error *error);

/* Makes a pod a member. `scheduler_name` is that of Coscheduling. */
void gang_mark(struct json *pod, const struct training_job *job, enum role role, const char *scheduler_name);

#endif
