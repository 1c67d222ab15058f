/* SPDX-License-Identifier: Apache-2.0
 *
 * The container of a pod, as JSON, that trains: "trainer", which pods of ours have and those of most others; of a template that
 * names it otherwise the first.
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
