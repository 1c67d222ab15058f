/* SPDX-License-Identifier: Apache-2.0
 *
 * What the operator keeps of a Service: whose it is.
 */
#ifndef COXSWAIN_CONTROLLER_SERVICE_VIEW_H
#define COXSWAIN_CONTROLLER_SERVICE_VIEW_H

#include <stdbool.h>

#include "common/json.h"

/* One block; free with free(). */
struct service_view {
    const char *name, *job_uid;
    bool deleting;
};

struct service_view *service_view_new(const struct json *service);

#endif
