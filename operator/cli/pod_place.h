/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells which pod of a job a Pod object is, from the labels in its JSON: its role and index, such as worker
 * 1, and whether it is the current pod for that role and index or has been replaced by a newer one. Commands
 * use it to select pods.
 */
#ifndef COXSWAIN_CLI_POD_PLACE_H
#define COXSWAIN_CLI_POD_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/json.h"

/* Returns whether the pod holds its seat now, that is, has not been replaced. */
bool pod_is_current(const struct json *pod);
/* Returns whether the pod has this role and index. A `role` of NULL or a negative `index` matches
 * any. */
bool pod_is_at(const struct json *pod, const char *role, int64_t index);

#endif
