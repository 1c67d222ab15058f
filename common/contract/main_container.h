/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the container of a pod that runs the training, whose exit code, termination message and log count for the job: the container named
 * "trainer", otherwise the first one with the operator's variable COXSWAIN_JOB_UID, otherwise the first. Its position in the pod does not
 * matter, because admission webhooks may insert sidecars before or after it.
 */
#ifndef COXSWAIN_CONTRACT_MAIN_CONTAINER_H
#define COXSWAIN_CONTRACT_MAIN_CONTAINER_H

#include "common/json.h"

/* Returns the container from the spec of `pod`, a Pod as JSON that owns it; NULL if it has none. */
const struct json *main_container(const struct json *pod);

#endif
