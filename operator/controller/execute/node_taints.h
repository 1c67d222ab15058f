/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets and removes the taint coxswain.dev/sick for --taint-sick-nodes. sick_node.h decides which nodes get
 * it. The failures come from the status of each job (node_taints_note), and the taints that are set from the
 * cache of nodes, so a restarted operator goes on with both. The annotation coxswain.dev/sick-since of the
 * node has the time of the taint; both are written by one patch, which fails if the node has changed since
 * it was read, so that taints of others stay as they are. A node that cannot be patched is tried again
 * when every other node has had its turn.
 *
 * At most sick_nodes_most of the cluster's nodes have the taint at a time, and one node is changed at a
 * time. A taint without the annotation was not set by the operator and is left alone.
 *
 * Life cycle: node_taints_start, node_taints_stop before the client and the cache of nodes are freed, then
 * node_taints_free.
 */
#ifndef COXSWAIN_CONTROLLER_NODE_TAINTS_H
#define COXSWAIN_CONTROLLER_NODE_TAINTS_H

#include <stdint.h>

#include "common/job/training_job.h"
#include "operator/kube/client.h"
#include "operator/kube/event_recorder.h"
#include "operator/kube/informer.h"

struct node_taints;

/* The most failures that are kept, of all jobs; the oldest one is dropped first. */
#define NODE_TAINTS_FAILURES_MAX 512

struct node_taints_options {
    struct kube_client *client;
    struct event_recorder *recorder;
    const struct informer *nodes; /* of struct node_trouble */
    int64_t window_ms;            /* within which failures count together, and for which a taint stays */
    int64_t look_ms;              /* how often the nodes are judged; 0: 5000 */
};

/* Copies `options`. */
struct node_taints *node_taints_start(const struct node_taints_options *options);
/* NULL: does nothing. */
void node_taints_stop(struct node_taints *taints);
void node_taints_free(struct node_taints *taints);

/* Takes over the failures that the job's status has now, in place of those that were noted for it before. The failures of a job that is
 * deleted stay. NULL: does nothing. */
void node_taints_note(struct node_taints *taints, const struct training_job *job);

#endif
