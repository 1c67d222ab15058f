/* SPDX-License-Identifier: Apache-2.0
 *
 * What Kueue's flavors and admission checks say of the pods of one role (a pod set of the Workload), as JSON:
 * {"nodeSelector":{},"tolerations":[],"labels":{},"annotations":{}}. What is taken is added; of members of one name the later
 * stays.
 */
#ifndef COXSWAIN_CONTROLLER_QUEUE_PART_H
#define COXSWAIN_CONTROLLER_QUEUE_PART_H

#include "common/json.h"

/* The members of the object `name` in `from` go into the object `name` in `part`. */
void queue_part_take_members(struct json *part, const char *name, const struct json *from);
/* Where pods belong: nodeSelector and tolerations; `part` may be a pod's spec. */
void queue_part_take_place(struct json *part, const struct json *from);
/* That, and how they are marked: labels and annotations. */
void queue_part_take(struct json *part, const struct json *from);

#endif
