/* SPDX-License-Identifier: Apache-2.0
 *
 * Lays a user's pod template over a default one as kubectl apply would: objects
 * merge member by member, null removes, lists whose elements have a key (containers
 * by name, mounts by path, …) merge element by element, other lists replace.
 * Source: Kubernetes' strategic merge patch and the patchMergeKey of each field of
 * core/v1 PodSpec.
 */
#ifndef COXSWAIN_CONTROLLER_TEMPLATE_OVERLAY_H
#define COXSWAIN_CONTROLLER_TEMPLATE_OVERLAY_H

#include "common/json.h"

/* Changes `base` in place. Takes time with the square of how broad the overlay is: what users have written is to be checked. */
void template_overlay(struct json *base, const struct json *overlay);

/* ERROR_INVALID for an object, or a list that merges by element, of more than TEMPLATE_BREADTH_MAX: no pod needs as many, and one
 * job must not keep all others waiting. */
#define TEMPLATE_BREADTH_MAX 1000
int template_overlay_check(const struct json *overlay, struct error *error);

#endif
