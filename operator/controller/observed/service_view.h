/* SPDX-License-Identifier: Apache-2.0
 *
 * What the operator keeps of a Service: whose it is.
 */
#ifndef COXSWAIN_CONTROLLER_SERVICE_VIEW_H
#define COXSWAIN_CONTROLLER_SERVICE_VIEW_H

#include <stdbool.h>

#include "common/json.h"

/* One block; free with free(). Of a Service that nothing controls the owner's texts are "". */
struct service_view {
    const char *name, *owner_uid, *owner_kind, *owner_name;
    const char *job_uid; /* the label */
    bool of_job;         /* of a TrainingJob, of whatever UID */
    bool deleting;
};

struct service_view *service_view_new(const struct json *service);

bool service_view_is_of(const struct service_view *service, const char *job_uid);

#endif
