/* SPDX-License-Identifier: Apache-2.0
 *
 * Deletes the pods of a job on nodes that they must leave, so that they are replaced elsewhere: nodes
 * whose removal a cloud or an autoscaler has announced by a taint (node_view.h), and nodes with a
 * condition that runPolicy.avoidNodeConditions names. A deleted pod gets SIGTERM and its whole grace
 * period, in which Coxswain's worker saves its state; if it waited until the node shuts down, it would
 * have only seconds. The end counts as a disruption, and the successor avoids the node. Templates can say
 * that pods stay to the end, and pods that nobody could replace do (docs/operations.md, "Nodes that
 * go away").
 */
#ifndef COXSWAIN_CONTROLLER_NODE_LEAVE_H
#define COXSWAIN_CONTROLLER_NODE_LEAVE_H

#include "operator/controller/plan/planning.h"

/* Returns why pods of the job must leave the node; NULL: they may stay. In the plan's arena. */
const char *node_leave_reason(struct planning *planning, const struct node_trouble *trouble);
/* Returns why pods of the job must leave the node of this name; NULL: they may stay. In the plan's arena. */
const char *node_leave_reason_at(struct planning *planning, const char *node);

#endif
