/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes the fields of a pod that the core/v1 Pod type does not have, when a client of the embedded API server writes the pod, and finds
 * quantities that are none. As in a real API server, the caller then warns of unknown fields, or refuses the object in strict validation;
 * a pod with a wrong quantity is always refused.
 */
#ifndef COXSWAIN_STANDALONE_POD_FIELDS_H
#define COXSWAIN_STANDALONE_POD_FIELDS_H

#include "common/json.h"

/* Removes unknown fields, in place, and appends the path of each to `unknown`, an array of strings
 * ("spec.containers[0].imagePullPolcy"). */
void pod_fields_prune(struct json *pod, struct json *unknown);

/* Returns "spec.containers[0].resources.limits.memory: " and why its value is no quantity; NULL: there is no such field. Free it with
 * free(). */
char *pod_fields_wrong_quantity(const struct json *pod);

#endif
