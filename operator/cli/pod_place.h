/* SPDX-License-Identifier: Apache-2.0
 *
 * The place that a pod, as JSON, has or had in its job's crew, by its labels.
 */
#ifndef COXSWAIN_CLI_POD_PLACE_H
#define COXSWAIN_CLI_POD_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/json.h"

/* Not replaced by another one. */
bool pod_is_current(const struct json *pod);
/* A role of NULL, or an index below 0: whichever it is. */
bool pod_is_at(const struct json *pod, const char *role, int64_t index);

#endif
