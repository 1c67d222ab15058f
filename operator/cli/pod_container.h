/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pod, as JSON, says of the container that trains (common/contract/main_container.h), and of others.
 */
#ifndef COXSWAIN_CLI_POD_CONTAINER_H
#define COXSWAIN_CLI_POD_CONTAINER_H

#include <stdbool.h>

#include "common/json.h"

/* Its name; the pod's, or static. */
const char *pod_trainer(const struct json *pod);
/* What the status says of a container, an init container too; NULL: nothing yet. */
const struct json *pod_container_status(const struct json *pod, const char *container);
/* It has a log, and whether more may come. */
bool pod_container_started(const struct json *pod, const char *container);
bool pod_container_ended(const struct json *pod, const char *container);

#endif
