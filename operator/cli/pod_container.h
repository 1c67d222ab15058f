/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the state of a pod's containers from the pod's JSON, for the commands that show pods or read logs.
 * One of the containers trains; the others are sidecars, which admission webhooks may add
 * (common/contract/main_container.h).
 */
#ifndef COXSWAIN_CLI_POD_CONTAINER_H
#define COXSWAIN_CLI_POD_CONTAINER_H

#include <stdbool.h>

#include "common/json.h"

/* Returns the name of the container that trains; "trainer" if the pod has none. Borrowed from the
 * pod or static. */
const char *pod_trainer(const struct json *pod);
/* Returns the status of a container or init container; NULL if there is none yet. Borrowed from the
 * pod. */
const struct json *pod_container_status(const struct json *pod, const char *container);
/* Returns whether the container is running or has terminated, so that it has a log. */
bool pod_container_started(const struct json *pod, const char *container);
/* Returns whether the container has terminated, or its whole pod has: no more log lines will
 * come. */
bool pod_container_ended(const struct json *pod, const char *container);

#endif
