/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether a pod's end may be the fault of its node, so that another node may do better:
 * the node was lost, its kubelet refused the pod, a device failed, or a worker failed its pre-flight
 * check. node_avoidance.h counts such ends. What the program itself does wrong, an eviction for using
 * too much, a drain, a preemption and a node that is shut down or removed are not the node's fault. The
 * rules are the table in docs/operations.md, "Nodes that fail pods".
 */
#ifndef COXSWAIN_CONTROLLER_NODE_BLAME_H
#define COXSWAIN_CONTROLLER_NODE_BLAME_H

#include <stdbool.h>

#include "common/job/training_job.h"
#include "operator/controller/observed/pod_view.h"

/* The reason of a pod whose node was lost. In a job's status the pod's name follows it. */
#define NODE_BLAME_LOST "the node was lost"

struct node_blame {
    const char *reason; /* why, as a static phrase: "the node was lost"; NULL: the node is not blamed */
    /* The container's own exit or words say so. Errors of devices and networks often reach other members
     * of the crew, too, so only the member that ended first is evidence against its node. */
    bool by_program;
    bool is_sure; /* a check of the node itself says so: one such failure suffices */
};

/* Returns why a pod that has ended or is being deleted blames its node. A pod without a node blames none. */
struct node_blame node_blame_of(const struct pod_view *pod, enum framework framework);

/* Returns whether the container runtime could not give the container its devices, so that its command never ran. */
bool node_blame_is_device_setup(const struct pod_view *pod);

#endif
