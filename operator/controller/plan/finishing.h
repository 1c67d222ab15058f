/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides when a job has succeeded. In most frameworks training is over when the chief has
 * finished. In PyTorch and JAX every process trains to the end by itself, so all must finish.
 *
 * In an elastic PyTorch or JAX crew, workers.minReplicas workers must finish, including the first,
 * which hosts the rendezvous. Once one worker has finished, training is over: a pod that starts
 * later has no crew to join. So no worker is created, replaced or waited for any more, as long as
 * enough of the running workers can still finish. If too few are left, the whole crew starts over,
 * because the finished workers accept no new members. A deleted pod that has far outlasted its
 * grace period is on a node that does not report, and does not count as running.
 */
#ifndef COXSWAIN_CONTROLLER_FINISHING_H
#define COXSWAIN_CONTROLLER_FINISHING_H

#include "operator/controller/plan/planning.h"

/* Returns whether the slot's pod has succeeded, by the status or by the pod. */
bool finishing_slot_done(const struct planning *planning, const struct slot *slot);

/* Returns whether every worker must succeed, not only the chief. */
bool finishing_needs_workers(const struct training_job *job);

/* Returns how far an elastic crew has finished; FINISHING_NOT for all others. If a pod is being
 * deleted, the plan is made again when its grace period and dead_node_ms have passed. */
enum finishing finishing_of(struct planning *planning);

/* Notes in the next status when the chief of an elastic PyTorch or JAX crew finished, which must be known after its pod is gone. Call
 * it once the next status' attempt is known. */
void finishing_update(struct planning *planning);

/* Withdraws the promises of all workers, because they would start too late. */
void finishing_promise_nobody(struct planning *planning);

#endif
