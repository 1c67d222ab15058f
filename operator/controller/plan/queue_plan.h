/* SPDX-License-Identifier: Apache-2.0
 *
 * Kueue: a job with the label kueue.x-k8s.io/queue-name has pods only while its
 * Workload is admitted. Until then, and after an eviction, it is suspended: by the
 * same durable steps as by spec.suspend, which is not touched.
 */
#ifndef COXSWAIN_CONTROLLER_QUEUE_PLAN_H
#define COXSWAIN_CONTROLLER_QUEUE_PLAN_H

#include "operator/controller/plan/planning.h"

/* Whether pods may be there. When not, `ret_reason` and `ret_message` say why. */
bool queue_admits(struct planning *planning, const char **ret_reason, const char **ret_message);

/* The Workload of a suspended job goes: its quota is free. Only once no pod is left. */
void queue_dismiss(struct planning *planning);
/* The Workload as it should be while the job wants to run. `suspended`: the status says so, and no pod is left. */
void queue_keep(struct planning *planning, bool suspended);
/* What the Workload is told of the status that is about to be written. */
void queue_tell(struct planning *planning);

#endif
