/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes the fields of a pod that the core/v1 Pod type does not have, when a client of the embedded API server writes the pod, and finds
 * invalid resource quantities. As in a real API server, the caller then warns of unknown fields, or refuses the object in strict
 * validation; it always refuses a new pod with an invalid quantity.
 */
#ifndef COXSWAIN_STANDALONE_POD_FIELDS_H
#define COXSWAIN_STANDALONE_POD_FIELDS_H

#include "common/json.h"

/* Removes unknown fields, in place, and appends the path of each to `unknown`, an array of strings
 * ("spec.containers[0].imagePullPolcy"). Returns the path of the first invalid quantity and what is wrong with it
 * ("spec.containers[0].resources.limits.memory: unable to parse quantity's suffix"); NULL: all are valid. Free it with free(). */
char *pod_fields_check(struct json *pod, struct json *unknown);

#endif
