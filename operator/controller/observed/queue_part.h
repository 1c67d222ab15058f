/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects, as JSON, what Kueue's flavors and admission checks add to the pods of one role (a pod
 * set of the Workload): {"nodeSelector":{},"tolerations":[],"labels":{},"annotations":{}}. Each
 * function adds to `part`; a later member replaces an earlier one of the same name.
 */
#ifndef COXSWAIN_CONTROLLER_QUEUE_PART_H
#define COXSWAIN_CONTROLLER_QUEUE_PART_H

#include "common/json.h"

/* Copies the members of the object `name` in `from` into the object `name` in `part`. */
void queue_part_take_members(struct json *part, const char *name, const struct json *from);
/* Copies nodeSelector and tolerations; `part` may be a pod's spec. */
void queue_part_take_place(struct json *part, const struct json *from);
/* Copies nodeSelector, tolerations, labels and annotations. */
void queue_part_take(struct json *part, const struct json *from);

#endif
