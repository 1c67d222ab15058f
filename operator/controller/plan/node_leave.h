/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves the pods of a job from nodes that go away, before they are ended there. A node goes away if a
 * cloud or an autoscaler has announced its end by a taint (node_view.h), or if it has a condition
 * that runPolicy.avoidNodeConditions names. The operator deletes the pod: it gets SIGTERM and its
 * whole grace period, in which our worker saves its state, where a node that is shut down gives it
 * some seconds. The end counts as a disruption, and the successor avoids the node. Templates can say
 * that pods stay to the end, and pods that nobody could replace do (docs/operations.md, "Nodes that
 * go away").
 */
#ifndef COXSWAIN_CONTROLLER_NODE_LEAVE_H
#define COXSWAIN_CONTROLLER_NODE_LEAVE_H

#include "operator/controller/plan/planning.h"

/* Returns why pods of the job must leave the node; NULL: they may stay. In the plan's arena. */
const char *node_leave_reason(struct planning *planning, const struct node_trouble *trouble);

#endif
