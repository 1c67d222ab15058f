/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads from a Service what the plan of a job needs: whom the Service belongs to, and whether it is
 * being deleted. No pod of a job is created before the job's own Service exists. If another owner
 * has a Service of the job's name, the job waits. The informer's cache keeps this view and not the
 * JSON.
 */
#ifndef COXSWAIN_CONTROLLER_SERVICE_VIEW_H
#define COXSWAIN_CONTROLLER_SERVICE_VIEW_H

#include <stdbool.h>

#include "common/json.h"

/* A single allocation; free with free(). The owner's strings are "" if the Service has no
 * controller. */
struct service_view {
    const char *name, *owner_uid, *owner_kind, *owner_name;
    const char *job_uid; /* from the label */
    bool of_job;         /* the owner is a TrainingJob, of any UID */
    bool deleting;
};

struct service_view *service_view_new(const struct json *service);

bool service_view_is_of(const struct service_view *service, const char *job_uid);

#endif
