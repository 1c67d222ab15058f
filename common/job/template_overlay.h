/* SPDX-License-Identifier: Apache-2.0
 *
 * Merges a user's pod template over a default one as kubectl apply would: objects are merged member
 * by member, null removes a member, lists whose elements have a key (containers by name, mounts by
 * path, …) are merged element by element, and other lists are replaced. Of members that exclude
 * each other (exec and httpGet, value and valueFrom, the sources of a volume) the base loses those
 * that the overlay does not have, if the overlay has one. pod_build.c merges the spec
 * of each pod in this way, after template_overlay_check has limited the template's size. The rules
 * are those of Kubernetes' strategic merge patch, with the patchMergeKey of each field of core/v1
 * PodSpec.
 */
#ifndef COXSWAIN_JOB_TEMPLATE_OVERLAY_H
#define COXSWAIN_JOB_TEMPLATE_OVERLAY_H

#include "common/json.h"

/* Merges `overlay` into `base`. The time grows with the square of the number of elements in a list
 * or object, so check a user's overlay with template_overlay_check first. */
void template_overlay(struct json *base, const struct json *overlay);
/* Merges two templates into one that is itself to be laid over a base: as template_overlay, but a
 * null of `overlay` stays in the result, so that it removes the member from that base. */
void template_merge(struct json *base, const struct json *overlay);

/* Fails with ERROR_INVALID if an object, or a list that is merged by element, has more than
 * TEMPLATE_BREADTH_MAX elements: no pod needs that many, and one job must not delay all others. */
#define TEMPLATE_BREADTH_MAX 1000
int template_overlay_check(const struct json *overlay, struct error *error);

/* Returns the main container of a role's template: the one called trainer, else the first. NULL: the
 * template has none. */
struct json *template_main_container(const struct json *template);

#endif
