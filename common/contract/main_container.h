/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the container of a pod that runs the training. The operator reads that container's exit code, termination message and log. It is
 * the container named "trainer"; if there is none, the first with the operator's variable COXSWAIN_JOB_UID; if there is none, the first.
 * Its position in the pod does not matter otherwise, because admission webhooks may insert sidecars before or after it.
 */
#ifndef COXSWAIN_CONTRACT_MAIN_CONTAINER_H
#define COXSWAIN_CONTRACT_MAIN_CONTAINER_H

#include "common/json.h"

/* Returns the container from the spec of `pod`, a Pod as JSON that owns it; NULL if it has none. */
const struct json *main_container(const struct json *pod);

#endif
