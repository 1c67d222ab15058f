/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps a job's new pods away from nodes on which its pods have failed for reasons that the node may
 * be to blame for (node_blame.h). When a node has failed runPolicy.nodeAvoidance.failures times
 * within windowSeconds, new pods of the job get a node affinity that excludes it, until windowSeconds
 * after the last of these failures. The condition AvoidingNodes names the nodes; an event is
 * recorded about the job and about the node.
 *
 * A failed pre-flight check of a worker is a check of the node itself: one suffices.
 *
 * The newest failures are kept in status.controllerState.nodeFailures, written together with the
 * restart that they caused. Which nodes are avoided, and until when, follows from this list and the
 * time alone; so the list is all that has to survive a restart of the operator.
 *
 * If pods that avoid nodes find no node for unschedulableSeconds, the failures of these nodes are
 * forgotten. New pods also exclude nodes that they would have to leave (node_leave.h), as long as these
 * are about to be removed or have the condition. A pod that has no node, and whose affinity excludes a
 * node that is no longer avoided, is created again.
 */
#ifndef COXSWAIN_CONTROLLER_NODE_AVOIDANCE_H
#define COXSWAIN_CONTROLLER_NODE_AVOIDANCE_H

#include "operator/controller/plan/planning.h"

/* The most failures that the status keeps; older ones are dropped. */
#define NODE_FAILURES_MAX 32

/* The most nodes that a pod's affinity excludes; the scheduler and the API server can handle this many. */
#define NODES_AVOIDED_MAX 100

/* Counts a failure of the node of each failed pod that blames its node (node_blame_of). A blame that is `by_program` counts only for
 * `cause`: the slot whose pod ended first, apart from pods that ended because another one had. A pod is not counted if it existed when
 * a failure was counted, ends within a minute after that, and either ran on the same node or has a blame that is `by_program`. Does nothing
 * if nodeAvoidance is off or Kueue has chosen the nodes. Called by judge_plan. */
void node_avoidance_count(struct planning *planning, const struct slot *cause);

/* Blames the node of a pod that still runs: `reason` is a static phrase. This alone suffices to avoid the node. */
void node_avoidance_blame(struct planning *planning, const struct pod_view *pod, const char *reason);

/* Forgets failures that were counted together with the failure that take_back.h takes back: they followed from a disruption. */
void node_avoidance_take_back(struct planning *planning);

/* Sets the condition AvoidingNodes and plan.avoided_nodes. Called whatever the policies decide. */
void node_avoidance_update(struct planning *planning);

#endif
