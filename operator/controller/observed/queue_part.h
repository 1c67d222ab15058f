/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects, as JSON, what Kueue adds to the pods of one role (a pod set of the Workload): the node
 * selectors and tolerations of the assigned flavors, and what admission checks add. The result has
 * the form {"nodeSelector":{},"tolerations":[],"labels":{},"annotations":{}}. Each function copies
 * from one source into `part`; tolerations are appended, and any other member that is added later
 * replaces an earlier one of the same name. workload_view.c and queue_build.c use it.
 */
#ifndef COXSWAIN_CONTROLLER_QUEUE_PART_H
#define COXSWAIN_CONTROLLER_QUEUE_PART_H

#include "common/json.h"

/* A member of a part whose pods Kueue assigns to topology domains: the Workload's name. Kueue decides pod by pod, and puts the domain
 * into the nodeSelector of a pod that waits for it. */
#define QUEUE_PART_WORKLOAD "workload"

/* Copies the members of the object `name` in `from` into the object `name` in `part`. */
void queue_part_take_members(struct json *part, const char *name, const struct json *from);
/* Copies nodeSelector and tolerations; `part` may be a pod's spec. */
void queue_part_take_place(struct json *part, const struct json *from);
/* Copies nodeSelector, tolerations, labels and annotations. */
void queue_part_take(struct json *part, const struct json *from);

#endif
