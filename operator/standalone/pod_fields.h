/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes fields that the core/v1 Pod type does not have. As in a real API server,
 * the caller then warns of them, or refuses the object in strict validation.
 */
#ifndef COXSWAIN_STANDALONE_POD_FIELDS_H
#define COXSWAIN_STANDALONE_POD_FIELDS_H

#include "common/json.h"

/* Removes unknown fields, in place, and appends the path of each to `unknown`, an array of strings
 * ("spec.containers[0].imagePullPolcy"). */
void pod_fields_prune(struct json *pod, struct json *unknown);

#endif
